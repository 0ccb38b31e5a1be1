"""What is to be computed: data sets x methods x repetitions, as a list of independent tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.validation import check_choice, check_count, check_number
from imcc.datasets import Dataset, list_datasets, load_dataset, read
from imcc.experiment._errors import ExperimentError
from imcc.experiment._methods import Method, make_methods
from imcc.metrics import METRICS

SCORES = "scores"
SENSITIVITY = "sensitivity"
# The method whose parameters a sensitivity study varies, unless it is said otherwise.
_STUDIED = {"estimator": "imcc.IMCCClassifierCV", "params": {}}

TaskKey = tuple[str, str, str, int]


@dataclass(frozen=True)
class DatasetSpec:
    """Where a data set comes from.

    Attributes
    ----------
    name : str
        As it stands in the tables; part of the seed.
    path : tuple of str
        Files, for a data set that is not one of the named ones.
    options : dict
        How to read the files: the arguments of :func:`imcc.datasets.read`.
    data : Dataset or None
        Given in memory.
    """

    name: str
    path: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    data: Dataset | None = field(default=None, compare=False)
    in_memory: bool = False

    def load(self) -> Dataset:
        """Return the data, named as in the experiment."""
        if self.data is not None:
            return self.data.renamed(self.name)
        if self.in_memory:
            raise ExperimentError(
                f"data set {self.name!r} was given in Python, so it cannot be loaded from here: "
                "give it again, with Experiment(...).run(store)"
            )
        if not self.path:
            return load_dataset(self.name)
        return read(list(self.path), **self.options).renamed(self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as plain data."""
        plain: dict[str, Any] = {"name": self.name}
        if self.in_memory:
            plain["in_memory"] = True
        if self.path:
            plain["path"] = list(self.path)
        return plain | self.options


@dataclass(frozen=True)
class Protocol:
    """How every method is judged; the same for all, so that their numbers can be compared."""

    test_size: float = 0.2
    cv: int = 5
    scoring: str = "average_precision"
    stratified: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """One piece of work: a method on a data set, one repetition.

    It holds all that its result depends on.
    """

    kind: str
    dataset: DatasetSpec
    method: Method
    repetition: int
    protocol: Protocol

    @property
    def key(self) -> TaskKey:
        """What tells it from the other tasks of an experiment."""
        return (self.kind, self.dataset.name, self.method.name, self.repetition)

    @property
    def fingerprint(self) -> str:
        """A hash of protocol and method: results with different ones are not comparable."""
        return _hash({"protocol": asdict(self.protocol), "method": self.method.to_dict()})

    def __str__(self) -> str:
        if self.kind == SENSITIVITY:
            return f"{self.dataset.name} / sensitivity"
        return f"{self.dataset.name} / {self.method.name} / {self.repetition}"


class Experiment:
    """Methods compared on data sets over repeated random splits, as in section 4 of the paper.

    Parameters
    ----------
    datasets : str, path, Dataset, mapping or iterable of these
        Named data sets, files, data sets in memory; a mapping gives names to files.  A table
        ``{"name": ..., "path": ..., "labels": ...}`` says how to read a file.
    methods : str, estimator, mapping or iterable of these
        Ours by name (see :data:`imcc.experiment.NAMED`), scikit-learn multi-label estimators or
        their import paths; a pair (estimator, grid) is searched by cross-validation.
    n_repeats : int, default=10
        Random splits of each data set.
    test_size : float, default=0.2
        Part of the rows held out in each split.
    cv : int, default=5
        Folds for the choice of parameters, on the training rows of a split.
    scoring : str, default="average_precision"
        The metric by which a search chooses one setting.  Besides, every metric is reported with
        the setting chosen by that metric itself.
    stratified : bool, default=False
        Whether the splits keep the frequency of every label.
    seed : int, default=0
        Other seeds give other splits.
    sensitivity : iterable of str, or mapping, optional
        Data sets (of this experiment or others) whose sensitivity to IMCC's parameters is studied;
        a mapping has ``datasets`` and ``params``, the parameters of
        :class:`imcc.IMCCClassifierCV`.
    name : str, default="experiment"

    Examples
    --------
    >>> from imcc.experiment import Experiment
    >>> experiment = Experiment(["yeast"], ["imcc", "kernel_ridge"], n_repeats=3)
    >>> len(experiment.tasks())
    6
    >>> print(experiment.tasks()[0])
    yeast / imcc / 0
    """

    def __init__(
        self,
        datasets: Any,
        methods: Any = (),
        *,
        n_repeats: int = 10,
        test_size: float = 0.2,
        cv: int = 5,
        scoring: str = "average_precision",
        stratified: bool = False,
        seed: int = 0,
        sensitivity: Any = (),
        name: str = "experiment",
    ) -> None:
        self.name = str(name)
        self.n_repeats = check_count("n_repeats", n_repeats)
        if check_count("cv", cv) < 2:
            raise ValueError(f"cv must be at least 2, got {cv}")
        if not 0 < check_number("test_size", test_size, above=0) < 1:
            raise ValueError(f"test_size must be between 0 and 1, got {test_size}")
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"seed must be a whole number, got {seed!r}")
        if not isinstance(stratified, bool):
            raise ValueError(f"stratified must be True or False, got {stratified!r}")
        self.protocol = Protocol(
            test_size=float(test_size),
            cv=int(cv),
            scoring=check_choice("scoring", scoring, METRICS),
            stratified=stratified,
            seed=int(seed),
        )
        self.datasets = make_datasets(datasets)
        self.methods = make_methods(methods)
        self.studied_datasets, self.studied_method = _make_studies(sensitivity)
        if not self.tasks():
            raise ExperimentError(
                "the experiment has nothing to compute: give datasets and methods, or sensitivity"
            )

    def tasks(self) -> list[Task]:
        """Return all tasks, in an order that fills the tables repetition by repetition."""
        return list(self._tasks())

    def _tasks(self) -> Iterator[Task]:
        for repetition in range(self.n_repeats):
            for dataset in self.datasets:
                for method in self.methods:
                    yield Task(SCORES, dataset, method, repetition, self.protocol)
        for dataset in self.studied_datasets:
            yield Task(SENSITIVITY, dataset, self.studied_method, 0, self.protocol)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole description as plain data."""
        plain: dict[str, Any] = {
            "name": self.name,
            "n_repeats": self.n_repeats,
            **asdict(self.protocol),
            "datasets": [dataset.to_dict() for dataset in self.datasets],
            "methods": {method.name: method.to_dict() for method in self.methods},
        }
        if self.studied_datasets:
            plain["sensitivity"] = {
                "datasets": [dataset.to_dict() for dataset in self.studied_datasets],
                **self.studied_method.description,
            }
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], where: str = "experiment") -> Experiment:
        """Return the experiment that a description, such as that of a TOML file, stands for."""
        known = {
            *("name", "n_repeats", "test_size", "cv", "scoring", "stratified", "seed"),
            *("datasets", "methods", "sensitivity"),
        }
        if unknown := set(plain) - known:
            raise ExperimentError(
                f"{where}: unknown entries {sorted(unknown)}; known are {', '.join(sorted(known))}"
            )
        arguments = {"datasets": (), **plain}
        try:
            return cls(**arguments)
        except (ValueError, TypeError) as error:
            raise ExperimentError(f"{where}: {error}") from error

    def run(self, store: Any, **options: Any) -> Any:
        """Compute what is missing in a store; see :func:`imcc.experiment.run`."""
        from imcc.experiment._runner import run

        return run(self, store, **options)

    def __repr__(self) -> str:
        return (
            f"<Experiment {self.name!r}: {len(self.datasets)} data sets x {len(self.methods)} "
            f"methods x {self.n_repeats} repetitions, {len(self.studied_datasets)} studies>"
        )


def make_datasets(given: Any) -> list[DatasetSpec]:
    """Return the specifications of the data sets that a user named or gave."""
    if isinstance(given, (str, Path, Dataset)):
        given = [given]
    if isinstance(given, Mapping):
        given = [_named_entry(str(name), source) for name, source in given.items()]
    if not isinstance(given, Iterable):
        raise ExperimentError(f"datasets must be names, files or data sets, got {given!r}")
    specs = [_make_dataset(entry) for entry in given]
    names = [spec.name for spec in specs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ExperimentError(
            f"datasets: {sorted(repeated)} occur twice; give them different names"
        )
    return specs


def _named_entry(name: str, source: Any) -> Any:
    if isinstance(source, Mapping):
        return {"name": name, **source}
    return source.renamed(name) if isinstance(source, Dataset) else {"name": name, "path": source}


def _make_dataset(entry: Any) -> DatasetSpec:
    if isinstance(entry, DatasetSpec):
        return entry
    if isinstance(entry, Dataset):
        return DatasetSpec(entry.name, data=entry, in_memory=True)
    if isinstance(entry, Mapping):
        options = dict(entry)
        paths = options.pop("path", ())
        paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
        name = str(options.pop("name", Path(paths[0]).stem if paths else ""))
        if options.pop("in_memory", False):
            return DatasetSpec(name, in_memory=True)
        if not paths:
            check_choice("datasets", name, list_datasets())
            return DatasetSpec(name)
        return DatasetSpec(name, tuple(_absolute(path) for path in paths), _plain(options))
    text = str(entry)
    if text in list_datasets():
        return DatasetSpec(text)
    if isinstance(entry, Path) or "." in text or "/" in text:
        if not Path(text).exists():
            raise ExperimentError(f"datasets: there is no file {text}")
        return DatasetSpec(Path(text).name.partition(".")[0], (_absolute(text),))
    check_choice("datasets", text, list_datasets())
    raise AssertionError("unreachable")  # pragma: no cover


def _absolute(path: Any) -> str:
    """Return a path that still leads to the file when the store has been moved elsewhere."""
    return str(Path(path).resolve())


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Return reading options as they come back from a store: paths are texts there."""
    return {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}


def _make_studies(given: Any) -> tuple[list[DatasetSpec], Method]:
    if isinstance(given, Mapping):
        if unknown := set(given) - {"datasets", "estimator", "params"}:
            raise ExperimentError(
                f"sensitivity: unknown entries {sorted(unknown)}; known are datasets and params"
            )
        description = {
            "estimator": given.get("estimator", _STUDIED["estimator"]),
            "params": dict(given.get("params", {})),
        }
        if description["estimator"] != _STUDIED["estimator"]:
            raise ExperimentError(
                f"sensitivity is that of {_STUDIED['estimator']}, got {description['estimator']!r}"
            )
        given = given.get("datasets", ())
    else:
        description = dict(_STUDIED)
    method = Method("imcc", description)
    method.build()
    return make_datasets(given), method


def _hash(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
