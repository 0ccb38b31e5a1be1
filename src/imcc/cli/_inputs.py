"""What commands read: data sets, tables, rows for a model, model files; and where they write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc.cli._options import STDIN

if TYPE_CHECKING:
    from imcc.datasets import Dataset
    from imcc.persistence._card import ModelCard
    from imcc.tables import KnownColumns
    from imcc.tables._load import TableSource


def is_name(inputs: tuple[str, ...]) -> bool:
    """Whether the input is the name of a data set."""
    from imcc.datasets import list_datasets

    return len(inputs) == 1 and inputs[0].lower() in list_datasets()


def are_tables(inputs: tuple[str, ...], reading: dict[str, Any]) -> bool:
    """Return whether the inputs are tables, by their names; the standard input is one."""
    from imcc.tables._read import is_table

    return not is_name(inputs) and all(
        name == STDIN or is_table(name, reading.get("member")) for name in inputs
    )


def reading_of(schema: str | None) -> dict[str, Any]:
    """Return how a table is read, by the file of ``--schema``."""
    from imcc.tables import read_schema

    return {} if schema is None else read_schema(schema).reading


def sources(inputs: tuple[str, ...], **reading: Any) -> list[Any]:
    """Return the given files, which must exist; ``-`` is the standard input."""
    from imcc.datasets import dataset_info

    files: list[Any] = []
    for name in inputs:
        if name == STDIN:
            files.append(_standard_input(**reading))
        elif not Path(name).exists():
            if "." not in name:
                dataset_info(name)  # raises, with the names of data sets that may be meant
            raise FileNotFoundError(f"there is no file {name}")
        else:
            files.append(name)
    return files


def _standard_input(max_bytes: int | None = None, **_: Any) -> Any:
    """Return what is read from the standard input; its name only says that it is CSV."""
    from imcc.datasets._files import Content

    content, name = sys.stdin.buffer.read(), "stdin.csv"
    return Content(content, name, "the standard input", Path(name), max_bytes)


def load(inputs: tuple[str, ...], reading: dict[str, Any]) -> Dataset:
    """Return a named data set, or the data set in one or several files."""
    from imcc.datasets import load_dataset, read

    if not is_name(inputs):
        return read(sources(inputs, **reading), **reading)
    for name in reading:
        raise InvalidArgumentError(
            name,
            f"is for files, and {inputs[0]} is a data set (a file of that name is ./{inputs[0]})",
        )
    return load_dataset(inputs[0])


def load_numbers(
    inputs: tuple[str, ...], labels: dict[str, Any] | None, columns: dict[str, Any]
) -> Dataset:
    """Return a data set of numbers; options about columns are refused, which are for tables."""
    for name, value in columns.items():
        if value:
            raise InvalidTypeError(name, "is for tables (CSV, TSV, Parquet, spreadsheets)")
    return load(inputs, labels or {})


def read_table(
    inputs: tuple[str, ...], labels: dict[str, Any] | None, columns: dict[str, Any]
) -> tuple[TableSource, KnownColumns]:
    """Read tables, and return what options and the file of ``--schema`` say about columns.

    The rows of several files follow each other, their columns matched by name.
    """
    from imcc.tables import _load

    source = _load.open_tables(sources(inputs), **reading_of(columns["schema"]))
    names = source.table.column_names
    chosen = dict(labels or {})
    if isinstance(chosen.get("labels"), Path):
        raise InvalidArgumentError(
            "labels",
            f"is a file ({chosen['labels']}), which is for ARFF; name the columns of a table",
        )
    if isinstance(chosen.get("labels"), list) and (whole := ",".join(chosen["labels"])) in names:
        chosen["labels"] = [whole]  # a name with commas, given as it is
    return source, _load.known_columns(names, source.path, **chosen, **columns)


def load_matching(
    model: Any,
    card: ModelCard,
    inputs: tuple[str, ...],
    schema: str | None,
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, Any]:
    """Return rows with the columns of a model, and labels if ``with_labels``."""
    from imcc.datasets._match import match_dataset
    from imcc.tables._predict import read_rows, refused_data, table_model

    wanted, reading = {"with_labels": with_labels, "ignore_extra": ignore_extra}, reading_of(schema)
    if not is_name(inputs):
        return read_rows(model, card, sources(inputs), **wanted, **reading)
    if table_model(model) is not None:
        raise refused_data()
    return match_dataset(load(inputs, reading), card.feature_names, card.label_names, **wanted)


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


def open_saved(path: str, trusted: tuple[str, ...]) -> tuple[Any, ModelCard]:
    """Load a model and its card."""
    from imcc.persistence._file import load_with_digest

    return load_with_digest(path, trusted)[:2]
