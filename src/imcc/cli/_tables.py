"""Tables (CSV, TSV, Parquet, spreadsheets): what options say about them, and showing columns.

A table is a file with named columns of any kind.  The kinds are inferred, shown and stored in the
model (:mod:`imcc.tables`); files in other formats are read as an :class:`imcc.datasets.Dataset`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given
from imcc.cli._inputs import sources
from imcc.cli._terminal import print_table

if TYPE_CHECKING:
    from imcc.tables import KnownColumns, Schema
    from imcc.tables._load import TableSource

# Maximum number of columns that are listed individually.
_MOST_SHOWN = 40


def refuse_columns(columns: dict[str, Any]) -> None:
    """Raise an error for options about columns, which are for tables only."""
    for name in columns:
        raise InvalidTypeError(name, "is for tables (CSV, TSV, Parquet, spreadsheets)")


def read_table(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    columns: dict[str, Any],
    *,
    need_labels: bool,
) -> tuple[TableSource, KnownColumns, Schema]:
    """Read tables, and return what options and the file of ``--schema`` say about columns.

    The rows of several files follow each other, their columns matched by name.
    """
    from imcc.datasets._errors import listed
    from imcc.tables import _load

    selection = ("labels", "label_prefix")
    how = {name: value for name, value in reading.items() if name not in selection}
    source = _load.open_tables(sources(inputs, reading), **how)
    names = source.table.column_names
    chosen = {name: reading[name] for name in selection if name in reading}
    labels = chosen.get("labels")
    if isinstance(labels, Path):
        raise InvalidArgumentError(
            "labels", f"is a file ({labels}), which is for ARFF; name the columns of a table"
        )
    if isinstance(labels, list) and (whole := ",".join(labels)) in names:
        chosen["labels"] = [whole]  # a name with commas, given as it is
    known = _load.known_columns(names, source.path, **chosen, **columns)
    if need_labels and not known.label_columns:
        raise InvalidArgumentError(
            "labels",
            "are not known: name the columns of 0 and 1 with " + given("labels") + ", the one "
            "column of tags with " + given("tags") + f"; the columns are {listed(names, 12)}",
        )
    return source, known, source.schema(known)


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
