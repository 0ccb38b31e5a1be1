"""Tables (CSV, TSV, Parquet, spreadsheets): what options say about them, and showing columns.

A table is a file with named columns of any kind.  The kinds are inferred, shown and stored in the
model (:mod:`imcc.tables`); files in other formats are read as an :class:`imcc.datasets.Dataset`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given
from imcc.cli._inputs import is_name, sources
from imcc.cli._options import STDIN
from imcc.cli._terminal import print_table

if TYPE_CHECKING:
    from imcc.persistence._card import ModelCard
    from imcc.tables import KnownColumns, Schema, TableClassifier
    from imcc.tables._load import TableSource

    Input = TableSource

_FORMATS = ("csv", "parquet", "xlsx")
# Maximum number of columns that are listed individually.
_MOST_SHOWN = 40
# Reading options that are available for tables.
_READING = ("delimiter", "header", "encoding", "max_bytes", "member")


def are_tables(inputs: tuple[str, ...], reading: dict[str, Any]) -> bool:
    """Return whether the inputs are tables, by their names or ``--format``."""
    from imcc.tables._read import is_table

    if is_name(inputs):
        return False
    wanted = reading.get("format")
    if wanted is not None:
        return wanted in _FORMATS
    return all(name == STDIN or is_table(name, reading.get("member")) for name in inputs)


def refuse_labels(reading: dict[str, Any]) -> None:
    """Raise an error for label options: a model finds its labels by their names."""
    for name in ("labels", "label_prefix"):
        if name in reading:
            raise InvalidTypeError(
                name, "is for training: a model knows its labels, and finds them by their names"
            )


def refuse_columns(columns: dict[str, Any]) -> None:
    """Raise an error for options about columns, which are for tables only."""
    for name in columns:
        raise InvalidTypeError(name, "is for tables (CSV, TSV, Parquet, spreadsheets)")


def reading_of_tables(reading: dict[str, Any]) -> dict[str, Any]:
    """Return the options of :class:`TableFile` among those for reading."""
    for name in sorted(set(reading) - {*_READING, "labels", "label_prefix", "format"}):
        raise InvalidTypeError(name, "is not an option of tables (CSV, TSV, Parquet, spreadsheets)")
    return {name: reading[name] for name in _READING if name in reading}


def read_input(inputs: tuple[str, ...], reading: dict[str, Any]) -> Input:
    """Read tables; the rows of several files follow each other, their columns matched by name."""
    from imcc.tables._load import open_tables

    return open_tables(sources(inputs, reading), **reading_of_tables(reading))


def known_columns(
    table: Any, reading: dict[str, Any], columns: dict[str, Any], *, need_labels: bool
) -> KnownColumns:
    """Return what options and the file of ``--schema`` say about columns."""
    from imcc.datasets._errors import listed
    from imcc.tables import _load

    names = list(table.column_names)
    labels = reading.get("labels")
    if isinstance(labels, Path):
        raise InvalidArgumentError(
            "labels", f"is a file ({labels}), which is for ARFF; name the columns of a table"
        )
    if isinstance(labels, list) and (whole := ",".join(labels)) in names:
        labels = [whole]  # a name with commas, given as it is
    for name in labels if isinstance(labels, list) else ():
        _load.check_column("labels", name, names)
    prefix = reading.get("label_prefix")
    if prefix is not None and not any(name.startswith(prefix) for name in names):
        raise InvalidArgumentError(
            "label_prefix", f"is {prefix!r}, and no column begins so: {listed(names, 12)}"
        )
    known = _load.known_columns(
        names,
        "",
        schema=columns.get("schema"),
        labels=labels,
        label_prefix=prefix,
        tags=columns.get("tags"),
        drop=columns.get("drop", ()),
        unknown_labels=columns.get("unknown_labels"),
    )
    if need_labels and not known.label_columns:
        raise InvalidArgumentError(
            "labels",
            "are not known: name the columns of 0 and 1 with " + given("labels") + ", the one "
            "column of tags with " + given("tags") + f"; the columns are {listed(names, 12)}",
        )
    return known


def print_schema(schema: Schema, title: str, drop: tuple[str, ...] = ()) -> None:
    """Print the columns and how they are encoded; if there are many, their numbers per kind."""
    headings = ("column", "kind", "missing", "examples", "what becomes of it")
    if len(schema) > _MOST_SHOWN:
        _print_kinds(schema, title)
        return
    rows = []
    for column in schema:
        missing = f"{column.missing / max(column.n_rows, 1):.1%}" if column.missing else "-"
        if column.spelled:
            missing += f" ({column.spelled} as words)"
        shown = ", ".join(column.examples)
        shown = shown if len(shown) <= 28 else shown[:25] + "..."
        kind = f"{column.kind} (as you say)" if column.overruled else column.kind
        rows.append((column.name, kind, missing, shown, column.becomes))
    rows += [(name, "-", "-", "", "left out (as you say)") for name in drop]
    print_table(title, [(heading, "left") for heading in headings], rows)


def _print_kinds(schema: Schema, title: str) -> None:
    groups: dict[tuple[str, str], list[Any]] = {}
    for column in schema:
        groups.setdefault((column.kind, column.becomes), []).append(column)
    rows = []
    for (kind, becomes), columns in groups.items():
        names = ", ".join(column.name for column in columns[:3]) + (", ..." * (len(columns) > 3))
        missing = sum(column.missing for column in columns)
        share = missing / max(sum(column.n_rows for column in columns), 1)
        rows.append((len(columns), names, kind, f"{share:.1%}" if missing else "-", becomes))
    headings = [("columns", "right")] + [
        (text, "left") for text in ("called", "kind", "missing", "what becomes of them")
    ]
    print_table(title, headings, rows)


def make_classifier(
    estimator: Any, known: KnownColumns, seed: int, thresholds: str | None
) -> TableClassifier:
    """Return an unfitted classifier for a table."""
    from imcc.tables import TableClassifier

    return TableClassifier(
        estimator, thresholds=thresholds, random_state=seed, **known.parameters()
    )


def fit_table(model: TableClassifier, source: Input, known: KnownColumns) -> TableClassifier:
    """Fit a classifier to a table."""
    with source.located():
        return model.fit(source.table, known.target)


def table_model(model: Any) -> TableClassifier | None:
    """Return the table classifier in a model, or None."""
    from imcc.tables import _predict

    return _predict.table_model(model)


def takes_frames(model: Any, card: ModelCard) -> bool:
    """Return whether a model was fitted in Python to a data frame with columns to transform."""
    from imcc._utils.wrappers import transformers

    named_columns = getattr(model, "feature_names_in_", None) is not None
    return named_columns and not card.columns and bool(transformers(model))


def table_rows(
    model: Any,
    card: ModelCard,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, Any, Input]:
    """Return rows for a model that takes tables, labels if ``with_labels``, and their source."""
    from imcc.tables._load import frame_for_model, rows_for_model

    refuse_labels(reading)
    source = read_input(inputs, reading)
    wanted = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    inner = table_model(model)
    if inner is not None:
        X, labels = rows_for_model(inner, source, **wanted)
    else:
        X, labels = frame_for_model(source, card.feature_names, card.label_names, **wanted)
    return X, labels, source
