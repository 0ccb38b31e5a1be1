"""Data sets of an experiment: names, files, tables or data in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imcc._utils.validation import check_choice
from imcc.datasets import Dataset, list_datasets, load_dataset, read
from imcc.datasets._errors import repeated
from imcc.experiment._errors import ExperimentError
from imcc.experiment._tables import OPTIONS, load_table


@dataclass(frozen=True)
class DatasetSpec:
    """Source of a data set.

    Attributes
    ----------
    name : str
        Name of the data set in tables; part of the seed.
    path : tuple of str
        Files; empty for a named data set or one in memory.
    options : dict
        Options for reading the files, as for :func:`imcc.datasets.read`.
    data : Dataset or None
        The data, if they were given in memory.
    in_memory : bool
        Whether the data were given in memory.
    standardize : bool
        Whether the features are standardized by the training rows of each split, for all methods.
    """

    name: str
    path: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    data: Dataset | None = field(default=None, compare=False)
    in_memory: bool = False
    standardize: bool = False

    def load(self) -> Dataset:
        """Load the data set, with the name of the experiment.

        Returns
        -------
        imcc.datasets.Dataset
        """
        if self.data is not None:
            return self.data.renamed(self.name)
        if self.in_memory:
            raise ExperimentError(
                f"data set {self.name!r} was given in memory, so it cannot be loaded: pass it "
                "again, with Experiment(...).run(store)"
            )
        if not self.path:
            return load_dataset(self.name)
        if self.is_table:
            return load_table(self.name, self.path[0], self.options)
        return read(list(self.path), **self.options).renamed(self.name)

    @property
    def is_table(self) -> bool:
        """Whether the data set is a table with columns of any type."""
        return bool(self.options.get("table"))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON."""
        plain: dict[str, Any] = {"name": self.name}
        if self.in_memory:
            plain["in_memory"] = True
        if self.path:
            plain["path"] = list(self.path)
        if self.standardize:
            plain["standardize"] = True
        return plain | self.options


def make_datasets(given: Any, folder: Path = Path()) -> list[DatasetSpec]:
    """Return the specifications of the data sets given by a user; paths are relative to a folder.

    Paths become absolute, so that they are still valid if a store is moved.
    """
    if isinstance(given, (str, Path, Dataset)):
        given = [given]
    if isinstance(given, Mapping):
        given = [_named_entry(str(name), source) for name, source in given.items()]
    if not isinstance(given, Iterable):
        raise ExperimentError(f"datasets must be names, files or data sets, got {given!r}")
    specs = [_make_dataset(entry, folder) for entry in given]
    if twice := repeated(spec.name for spec in specs):
        raise ExperimentError(f"datasets: duplicate names {twice}; use different names")
    return specs


def _named_entry(name: str, source: Any) -> Any:
    if isinstance(source, Mapping):
        return {"name": name, **source}
    return source.renamed(name) if isinstance(source, Dataset) else {"name": name, "path": source}


def _make_dataset(entry: Any, folder: Path) -> DatasetSpec:
    if isinstance(entry, DatasetSpec):
        return entry
    if isinstance(entry, Dataset):
        return DatasetSpec(entry.name, data=entry, in_memory=True)
    if not isinstance(entry, Mapping):
        text = str(entry)
        is_file = isinstance(entry, Path) or "." in text or "/" in text
        if is_file and text not in list_datasets():
            if not (folder / text).exists():
                raise ExperimentError(f"datasets: there is no file {folder / text}")
            entry = {"name": Path(text).name.partition(".")[0], "path": text}
        else:
            entry = {"name": text}
    options = dict(entry)
    if isinstance(options.get("table"), (str, Path)):
        if "path" in options:
            raise ExperimentError("datasets: an entry has either a path or a table, not both")
        options["path"], options["table"] = options["table"], True
    paths = options.pop("path", ())
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    name = str(options.pop("name", Path(paths[0]).stem if paths else ""))
    where = f"data set {name!r}"
    standardize = options.pop("standardize", False)
    if not isinstance(standardize, bool):
        raise ExperimentError(f"{where}: standardize must be true or false, got {standardize!r}")
    if options.pop("in_memory", False):
        return DatasetSpec(name, in_memory=True, standardize=standardize)
    if not paths:
        check_choice("datasets", name, list_datasets())
        if options:
            raise ExperimentError(f"{where}: {', '.join(options)} can only be given with a path")
        return DatasetSpec(name, standardize=standardize)
    for key in ("schema", "labels"):  # the latter may be columns, or a file of Mulan
        value = options.get(key)
        if isinstance(value, (str, Path)) and (key == "schema" or str(value).endswith(".xml")):
            options[key] = str((folder / value).resolve())
    files = tuple(str((folder / path).resolve()) for path in paths)
    spec = DatasetSpec(name, files, options, standardize=standardize)
    if spec.is_table:
        if standardize:
            raise ExperimentError(
                f"{where}: standardize is for numeric files; the columns of a table are scaled by "
                "its encoder"
            )
        if len(paths) != 1:
            raise ExperimentError(f"{where}: a table must be a single file")
        if unknown := sorted(set(options) - {"table", *OPTIONS}):
            raise ExperimentError(
                f"{where}: unknown option {unknown[0]!r} for a table; known options are "
                f"{', '.join(OPTIONS)}"
            )
    return spec
