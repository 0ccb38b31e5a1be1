"""Options, reading, schemas and models for tables (CSV, TSV, Parquet), shared by the commands.

A table is a file with named columns of any kind.  The kinds are inferred, shown and stored in the
model (:mod:`imcc.tables`); files in other formats are read as an :class:`imcc.datasets.Dataset`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, Message, given, named
from imcc.cli._inputs import is_name, sources
from imcc.cli._options import STDIN
from imcc.cli._terminal import print_table

if TYPE_CHECKING:
    import numpy as np

    from imcc.persistence._card import ModelCard
    from imcc.tables import KnownColumns, Schema, TableClassifier, TableError, TableFile

_FORMATS = ("csv", "parquet")
# Maximum number of columns that are listed individually.
_MOST_SHOWN = 40
_SUFFIXES = (".csv", ".tsv", ".parquet")
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
# Reading options that are available for tables.
_READING = ("delimiter", "header", "encoding", "max_bytes", "member")
# What the kinds of columns are called as options.
KIND_OPTIONS = {
    "text": "text",
    "category": "category",
    "number": "number",
    "date": "date",
    "yes_no": "yes/no",
    "id": "id",
}


def _columns_option(name: str, text: str) -> Callable[..., Any]:
    return click.option(
        f"--{name.replace('_', '-')}", f"table_{name}", multiple=True, metavar="COLUMN", help=text
    )


TABLE_OPTIONS: dict[str, Callable[..., Any]] = {
    "table_label": click.option(
        "--label",
        "table_label",
        multiple=True,
        metavar="COLUMN",
        help="Label column of a table, also with commas in its name; may be repeated, like the "
        "options below.",
    ),
    "table_tags": click.option(
        "--tags",
        "table_tags",
        metavar="COLUMN",
        help="Column of a table that lists the labels of a row: news|sport, or a JSON list.",
    ),
    "table_separator": click.option(
        "--separator",
        "table_separator",
        metavar="TEXT",
        help="Separator of the tags, or json.  [default: detected]",
    ),
    "table_unknown_labels": click.option(
        "--unknown-labels",
        "table_unknown_labels",
        is_flag=True,
        default=None,
        help="Empty cells in label columns are labels that are not known, not an error.",
    ),
    "table_text": _columns_option("text", "This column is text."),
    "table_category": _columns_option("category", "This column is a category, even if numeric."),
    "table_number": _columns_option("number", "This column has numbers."),
    "table_date": _columns_option("date", "This column has dates."),
    "table_date_format": click.option(
        "--date-format",
        "table_date_format",
        nargs=2,
        multiple=True,
        metavar="COLUMN FORMAT",
        help="Format of the dates of a column, such as %d.%m.%Y.",
    ),
    "table_yes_no": _columns_option("yes_no", "This column is yes or no."),
    "table_id": _columns_option("id", "This column has ids: not a feature, but in predictions."),
    "table_drop": _columns_option("drop", "Do not use this column."),
    "table_features": _columns_option("features", "Use this column; others are not used."),
    "table_missing": click.option(
        "--missing",
        "table_missing",
        multiple=True,
        metavar="WORD",
        help="Further word for a missing value.",
    ),
    "table_schema": click.option(
        "--schema",
        "table_schema",
        type=click.Path(),
        metavar="FILE",
        help="File with the types of the columns, as written by 'imcc datasets schema'.",
    ),
}


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about columns of tables; the given ones are passed as ``columns``."""

    @functools.wraps(command)
    def collecting(**arguments: Any) -> Any:
        given = {name.removeprefix("table_"): arguments.pop(name) for name in TABLE_OPTIONS}
        columns = {name: value for name, value in given.items() if value not in (None, ())}
        return command(columns=columns, **arguments)

    for option in reversed(TABLE_OPTIONS.values()):
        collecting = option(collecting)
    return collecting


def are_tables(inputs: tuple[str, ...], reading: dict[str, Any]) -> bool:
    """Return whether the inputs are tables, by their names or ``--format``."""
    if is_name(inputs):
        return False
    for name in inputs:
        if name.lower().endswith(_WORKBOOKS):
            from imcc.datasets import DataFormatError

            raise DataFormatError(
                "this is a workbook of a spreadsheet program, which is not read: save the sheet "
                "as CSV in UTF-8 (or as Parquet), and give that file",
                name,
            )
    wanted = reading.get("format")
    if wanted is not None:
        return wanted in _FORMATS
    if reading.get("nominal") or reading.get("variables"):
        return False
    return all(name == STDIN or _looks_like_table(name, reading) for name in inputs)


def _looks_like_table(name: str, reading: dict[str, Any]) -> bool:
    lower = name.lower()
    if lower.endswith(".zip"):
        lower = str(reading.get("member", "")).lower() or _inside(name)
    return _without_packing(lower).endswith(_SUFFIXES)


def _without_packing(name: str) -> str:
    """Return the name of a file in small letters, without the suffix of a packed one."""
    name = name.lower()
    for packed in (".gz", ".bz2", ".zip"):
        name = name.removesuffix(packed)
    return name


def _inside(name: str) -> str:
    """Return the name of the only file of an archive; "" if there are several."""
    import zipfile

    try:
        with zipfile.ZipFile(name) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (OSError, zipfile.BadZipFile):
        return ""  # reading it will say what is wrong
    return names[0].lower() if len(names) == 1 else ""


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
        raise InvalidTypeError(name, "is for tables (CSV, TSV, Parquet)")


def table_files(inputs: tuple[str, ...], reading: dict[str, Any]) -> list[TableFile]:
    """Return the files of tables with their reading options."""
    from imcc.tables import TableFile

    other = set(reading) - {*_READING, "labels", "label_prefix", "format"}
    for name in sorted(other):
        raise InvalidTypeError(name, "is not an option of tables (CSV, TSV, Parquet)")
    options = {name: reading[name] for name in _READING if name in reading}
    for name in inputs:
        if "member" in options and not name.lower().endswith(".zip"):
            raise InvalidTypeError("member", f"names a file in a .zip archive, and {name} is none")
        if "header" in options and _without_packing(name).endswith(".parquet"):
            raise InvalidTypeError("header", f"is for files of text, and {name} is Parquet")
    return [TableFile(source, **options) for source in sources(inputs, reading)]


@dataclass(frozen=True)
class Input:
    """A table that was read from one file, or from several one after the other."""

    files: list[TableFile]
    table: Any
    starts: list[int]

    @property
    def path(self) -> str:
        """Paths of the files, for messages."""
        return ", ".join(file.path for file in self.files)

    @property
    def name(self) -> str:
        """The name of the data."""
        return "+".join(file.name for file in self.files)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add file and line to errors about rows."""
        from imcc.tables import TableError

        try:
            yield
        except TableError as error:
            if error.row is None:
                raise located(error, self.path, None) from error
            k = max(i for i, start in enumerate(self.starts) if start <= error.row)
            raise located(error, self.files[k], error.row - self.starts[k]) from error


def located(error: TableError, file: TableFile | str, row: int | None) -> Exception:
    """Return an error about a table with the file, and the line if it is known."""
    from imcc.datasets import DataFormatError

    if isinstance(file, str) or row is None:
        return DataFormatError(error.problem, file if isinstance(file, str) else file.path)
    line = file.line_of(row)
    problem = error.problem if line is not None else f"row {row}: " + error.problem
    return DataFormatError(problem, file.path, line)


def read_input(inputs: tuple[str, ...], reading: dict[str, Any]) -> Input:
    """Read tables; the rows of several files follow each other, their columns matched by name."""
    from imcc.datasets import DataFormatError
    from imcc.tables import joined_tables

    files = table_files(inputs, reading)
    tables: list[Any] = []
    for file in files:
        table = file.read()
        if tables and set(table.column_names) != set(tables[0].column_names):
            differ = sorted(set(table.column_names) ^ set(tables[0].column_names))
            raise DataFormatError(
                f"its columns are not those of {files[0].path}: {_listed(differ)}",
                file.path,
            )
        tables.append(table.select(tables[0].column_names) if tables else table)
    starts = [sum(t.num_rows for t in tables[:k]) for k in range(len(tables))]
    return Input(files, joined_tables(tables), starts)


def known_columns(
    table: Any, reading: dict[str, Any], columns: dict[str, Any], *, need_labels: bool
) -> KnownColumns:
    """Return the columns' properties given by options and by the file of ``--schema``."""
    from imcc.tables import KnownColumns, read_schema

    known = read_schema(columns["schema"]) if "schema" in columns else KnownColumns()
    names = list(table.column_names)
    kinds = dict(known.kinds)
    for option, kind in KIND_OPTIONS.items():
        for name in columns.get(option, ()):
            _check_column(option, name, names)
            kinds[name] = kind
    formats = dict(known.date_formats)
    for name, layout in columns.get("date_format", ()):
        _check_column("date_format", name, names)
        formats[name] = layout
        kinds[name] = "date"
    labels, tags = _labels(names, reading, columns)
    if not labels and tags is None:
        labels, tags = list(known.labels), known.tags
    if tags is None and "separator" in columns:
        raise InvalidArgumentError(
            "separator",
            "is what stands between tags, and no column of tags is named: " + given("tags"),
        )
    for name in (*labels, *filter(None, [tags])):
        _check_column("labels" if name in labels else "tags", name, names)
    if need_labels and not labels and tags is None:
        raise InvalidArgumentError(
            "labels",
            "are not known: name the columns of 0 and 1 with " + given("labels") + ", the one "
            "column of tags with " + given("tags") + f"; the columns are {_listed(names)}",
        )
    used = {*labels, *filter(None, [tags])}
    drop = [*known.drop, *columns.get("drop", ())]
    if "features" in columns:
        for name in columns["features"]:
            _check_column("features", name, names)
        kept = {*columns["features"], *used, *columns.get("id", ())}
        drop += [name for name in names if name not in kept]
    for name in columns.get("drop", ()):
        _check_column("drop", name, names)
    drop = [name for name in dict.fromkeys(drop) if name not in used]
    return KnownColumns(
        {name: kind for name, kind in kinds.items() if name not in used and name not in drop},
        {name: layout for name, layout in formats.items() if name not in used},
        tuple(drop),
        tuple(labels),
        tags,
        (*known.missing_words, *columns.get("missing", ())),
        columns.get("separator", known.separator),
        bool(columns.get("unknown_labels")),
    )


def _labels(
    names: list[str], reading: dict[str, Any], columns: dict[str, Any]
) -> tuple[list[str], str | None]:
    """Return the label columns, or the column of tags, that options name."""
    labels = list(columns.get("label", ()))
    wanted = reading.get("labels")
    if isinstance(wanted, Path):
        raise InvalidArgumentError(
            "labels", f"is a file ({wanted}), which is for ARFF; name the columns of a table"
        )
    if isinstance(wanted, int):
        if not 0 < abs(wanted) < len(names):
            raise InvalidArgumentError(
                "labels", f"is {wanted}, but the table has {len(names)} columns"
            )
        labels += names[:wanted] if wanted > 0 else names[wanted:]
    elif wanted is not None:
        # A name with commas, given as it is.
        whole = ",".join(wanted)
        labels += [whole] if whole in names else list(wanted)
    if (prefix := reading.get("label_prefix")) is not None:
        found = [name for name in names if name.startswith(prefix)]
        if not found:
            raise InvalidArgumentError(
                "label_prefix", f"is {prefix!r}, and no column begins so: {_listed(names)}"
            )
        labels += found
    tags = columns.get("tags")
    if labels and tags is not None:
        raise InvalidArgumentError(
            "tags",
            "is one column that lists the labels; " + named("labels") + " are columns of 0 "
            "and 1: not both",
        )
    return list(dict.fromkeys(labels)), tags


def _check_column(option: str, name: str, names: list[str]) -> None:
    if name not in names:
        import difflib

        near = difflib.get_close_matches(name, names, 1)
        hint = f"; is it {near[0]!r}?" if near else f"; the columns are {_listed(names)}"
        raise InvalidArgumentError(option, f"names {name!r}, which is no column{hint}")


def _listed(names: Any) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")


def schema_of(source: Input, known: KnownColumns) -> Schema:
    """Infer the schema of a table; errors name the file and the line."""
    from imcc.tables import infer_schema

    labels = (*known.labels, *filter(None, [known.tags]))
    with source.located():
        return infer_schema(
            source.table,
            kinds=known.kinds,
            date_formats=known.date_formats,
            drop=known.drop,
            labels=labels,
            missing_words=known.missing_words,
        )


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
        estimator,
        kinds=known.kinds,
        date_formats=known.date_formats,
        drop=list(known.drop),
        missing_words=list(known.missing_words),
        separator=known.separator,
        thresholds=thresholds,
        unknown_labels=known.unknown_labels,
        random_state=seed,
    )


def fit_table(model: TableClassifier, source: Input, known: KnownColumns) -> TableClassifier:
    """Fit a classifier to a table."""
    with source.located():
        return model.fit(source.table, known.tags if known.tags is not None else list(known.labels))


def table_card(model: Any, source: Input, metrics: dict[str, float]) -> ModelCard:
    """Return the card of a model that was fitted to a table."""
    from dataclasses import replace

    from imcc._utils.plain import to_plain
    from imcc.persistence._card import make_card
    from imcc.tables import table_fingerprint

    return replace(
        make_card(model, metrics=metrics),
        data_name=source.name,
        n_rows=source.table.num_rows,
        fingerprint=table_fingerprint(source.table),
        columns={"table": to_plain(model.schema_.to_dict())},
    )


def table_model(model: Any) -> TableClassifier | None:
    """Return the table classifier in a model, or None."""
    from imcc._utils.wrappers import layers
    from imcc.tables import TableClassifier

    return next((layer for layer in layers(model) if isinstance(layer, TableClassifier)), None)


def takes_frames(model: Any, card: ModelCard) -> bool:
    """Return whether a model was fitted in Python to a data frame with columns to transform."""
    from imcc._utils.wrappers import transformers

    named_columns = getattr(model, "feature_names_in_", None) is not None
    return named_columns and not card.columns and bool(transformers(model))


def labels_of(model: TableClassifier, source: Input, *, unknown: bool = False) -> np.ndarray:
    """Return the labels of a model from a table that has them; NaN where they are unknown."""
    from imcc.datasets import DataFormatError
    from imcc.tables import indicator_columns, read_tags, tag_matrix

    names, column = [str(name) for name in model.label_names_], model.tags_column_
    there = set(source.table.column_names)
    with source.located():
        if column is not None and column in there:
            return tag_matrix(read_tags(source.table[column], model.separator_), names)[0]
        if absent := [name for name in names if name not in there]:
            tags = f", nor is the column of tags {column!r}" if column is not None else ""
            raise DataFormatError(
                f"{len(absent)} of the model's labels are not in the data: {_listed(absent)}{tags}"
                f"; the columns are {_listed(source.table.column_names)}",
                source.path,
            )
        return indicator_columns(source.table, names, unknown=unknown)


def check_extra(model: TableClassifier, names: list[str], path: str, ignore: bool) -> None:
    """Raise an error for columns that a model does not know, unless they are ignored."""
    from imcc.datasets import DataFormatError

    known = {*model.feature_names_in_, *model.drop, *model.label_names_, model.tags_column_}
    extra = [name for name in names if name not in known]
    if extra and not ignore:
        raise DataFormatError(
            f"{len(extra)} column(s) are unknown to the model: {_listed(extra)}; leave them out, "
            "or ignore them with " + given("ignore_extra", True),
            path,
        )


def table_rows(
    model: Any,
    card: ModelCard,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, Any, Input]:
    """Return rows for a model that takes tables, labels if ``with_labels``, and their source.

    For a model that was fitted in Python, the columns have the types that pandas infers.
    """
    from imcc.datasets import DataFormatError
    from imcc.tables import check_table, indicator_columns

    refuse_labels(reading)
    source = read_input(inputs, reading)
    inner = table_model(model)
    if inner is not None:
        check_extra(inner, source.table.column_names, source.path, ignore_extra)
        labels = labels_of(inner, source) if with_labels else None
        with source.located():
            # Invalid rows are reported before anything is computed, with their line.
            check_table(source.table, inner.schema_)
        return source.table, labels, source
    wanted = list(card.feature_names)
    if absent := [name for name in wanted if name not in source.table.column_names]:
        raise DataFormatError(
            f"{len(absent)} column(s) that the model needs are missing: {_listed(absent)}; the "
            f"file has {_listed(source.table.column_names)}",
            source.path,
        )
    known = {*wanted, *card.label_names}
    extra = [name for name in source.table.column_names if name not in known]
    if extra and not ignore_extra:
        raise DataFormatError(
            Message(
                f"{len(extra)} column(s) are unknown to the model: {_listed(extra)}; leave them "
                "out, or ignore them with ",
                given("ignore_extra", True),
            ),
            source.path,
        )
    labels = None
    if with_labels:
        there = set(source.table.column_names)
        if absent := [name for name in card.label_names if name not in there]:
            raise DataFormatError(
                f"{len(absent)} of the model's labels are not in the data: {_listed(absent)}",
                source.path,
            )
        with source.located():
            labels = indicator_columns(source.table, list(card.label_names))
    return natural_frame(source.table.select(wanted)), labels, source


def natural_frame(table: Any) -> Any:
    """Return a table as a pandas data frame with the types that pandas infers from a file."""
    import io

    import pyarrow as pa
    import pyarrow.csv as pacsv

    from imcc._utils.optional import require
    from imcc.tables import TableError, decoded

    pandas = require("pandas", "Reading tables")
    table = decoded(table)
    if not all(pa.types.is_string(kind) for kind in table.schema.types):
        try:
            return table.to_pandas()  # Parquet has types of its own
        except (pa.ArrowException, ValueError, OverflowError) as error:
            columns = _listed(f"{field.name}: {field.type}" for field in table.schema)
            raise TableError(
                f"pandas does not have the values of one of the columns {columns}: {error}"
            ) from error
    buffer = io.BytesIO()
    pacsv.write_csv(table, buffer)
    buffer.seek(0)
    return pandas.read_csv(buffer)
