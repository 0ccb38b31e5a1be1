"""Input and output of commands: data, model files, and checks of output paths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import Message, given, named
from imcc.cli._choices import dataset_names
from imcc.cli._options import STDIN

if TYPE_CHECKING:
    from imcc.datasets import Dataset
    from imcc.persistence._card import ModelCard


def load(inputs: tuple[str, ...], reading: dict[str, Any]) -> Dataset:
    """Return a named data set, or the data set in one or several files."""
    from imcc.datasets import load_dataset, read

    if not is_name(inputs):
        return read(sources(inputs, reading), **reading)
    if reading:
        options = Message(*[part for name in reading for part in (", ", named(name))][1:])
        raise ValueError(
            f"{inputs[0]} is the name of a data set: " + options + " is for files (a file of that "
            f"name is ./{inputs[0]})"
        )
    return load_dataset(inputs[0])


def is_name(inputs: tuple[str, ...]) -> bool:
    """Whether the input is the name of a data set."""
    return len(inputs) == 1 and inputs[0].lower() in dataset_names()


def load_matching(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    card: ModelCard,
    *,
    with_labels: bool,
    ignore_extra: bool,
    model: Any,
) -> tuple[Any, Any]:
    """Return rows with the columns of a model, and labels if ``with_labels``."""
    from imcc.datasets._match import match_dataset
    from imcc.tables._predict import read_rows, refused_data, table_model

    wanted = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    if not is_name(inputs):
        return read_rows(model, card, sources(inputs, reading), **wanted, **reading)
    if table_model(model) is not None:
        raise refused_data()
    return match_dataset(load(inputs, reading), card.feature_names, card.label_names, **wanted)


def are_tables(inputs: tuple[str, ...], reading: dict[str, Any]) -> bool:
    """Return whether the inputs are tables, by their names; the standard input is one."""
    from imcc.tables._read import is_table

    return not is_name(inputs) and all(
        name == STDIN or is_table(name, reading.get("member")) for name in inputs
    )


def sources(inputs: tuple[str, ...], reading: dict[str, Any]) -> list[Any]:
    """Return the given files, which must exist; ``-`` is the standard input."""
    from imcc.datasets import dataset_info

    found: list[Any] = []
    for name in inputs:
        if name == STDIN:
            found.append(_standard_input(reading))
        elif not Path(name).exists():
            if "." not in name:
                dataset_info(name)  # raises, with the names of data sets that may be meant
            raise FileNotFoundError(f"there is no file {name}")
        else:
            found.append(name)
    return found


def _standard_input(reading: dict[str, Any]) -> Any:
    from imcc.datasets._files import Content
    from imcc.datasets._formats import FORMATS

    # There is no file name to determine the format: CSV unless --format is given.
    suffix = FORMATS[reading.get("format", "csv")].suffixes[0]
    content = sys.stdin.buffer.read()
    limit = reading.get("max_bytes")
    return Content(content, f"stdin{suffix}", "the standard input", Path(f"stdin{suffix}"), limit)


# Parameters that are always shown, even if they have their default values.
_ALWAYS = ("n_clusters", "alpha", "beta", "gamma", "kernel", "width_scale")


def shown_setting(card: ModelCard) -> dict[str, str]:
    """Return the parameters of a model to show; most only if they differ from the default."""
    from imcc._utils.plain import to_plain
    from imcc.estimators import IMCCClassifier, KernelEnsembleClassifier

    ensemble = "KernelEnsembleClassifier" in card.model
    kind = KernelEnsembleClassifier if ensemble else IMCCClassifier
    always = ("scoring", "n_members") if ensemble else _ALWAYS
    defaults = to_plain(kind().get_params(deep=False))
    return {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in card.params.items()
        if value is not None and (name in always or name not in defaults or value != defaults[name])
    }


def open_saved(path: str, trust: tuple[str, ...]) -> tuple[Any, ModelCard]:
    """Load a model and its card."""
    from imcc.persistence._file import load_with_card

    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}")
    return load_with_card(path, trust)


def check_output(path: str, force: bool) -> Path:
    """Check that a file can be written, before anything is computed."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give a file to write to")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} into")
    if target.is_file() and not force:
        raise FileExistsError(
            f"{target} already exists; overwrite it with " + given("overwrite", True)
        )
    return target


def fingerprint_of(X: Any, Y: Any, card: ModelCard) -> str:
    """Return the fingerprint of rows from ``load_matching``, to compare with that of a card."""
    from imcc.datasets import Dataset
    from imcc.tables._read import table_fingerprint

    if hasattr(X, "column_names"):  # a table
        return table_fingerprint(X)
    if hasattr(X, "columns"):  # a data frame, for a pipeline that was made in Python
        import pyarrow as pa

        return table_fingerprint(pa.table(X))
    return Dataset(X, Y, card.feature_names, card.label_names).fingerprint()
