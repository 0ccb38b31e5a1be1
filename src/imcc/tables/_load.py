"""Tables from one or several files, what is known about their columns, and rows for a model."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError, given, named
from imcc._utils.optional import require
from imcc._utils.plain import to_plain
from imcc.datasets import DataFormatError
from imcc.datasets._coding import Coding
from imcc.datasets._encode import choose_labels
from imcc.datasets._errors import listed
from imcc.datasets._files import Content, Source
from imcc.datasets._match import check_extra, match_columns
from imcc.persistence._card import ModelCard, make_card
from imcc.tables._columns import arrow, check_column
from imcc.tables._infer import column_options, infer_schema
from imcc.tables._labels import indicator_columns, read_tags, tag_matrix
from imcc.tables._read import TableFile, decoded, joined_tables, table_fingerprint
from imcc.tables._schema import KnownColumns, Schema, TableError, read_schema
from imcc.tables._typed import typed_arrays

if TYPE_CHECKING:
    from imcc.tables._classifier import TableClassifier


@dataclass(frozen=True)
class TableSource:
    """A table that was read from one file, or from several one after the other.

    Attributes
    ----------
    files : list of TableFile
        The files.
    table : pyarrow.Table
        Their rows.
    starts : list of int
        First row of each file.
    """

    files: list[TableFile]
    table: Any
    starts: list[int]

    @property
    def path(self) -> str:
        """Paths of the files, for messages."""
        return ", ".join(file.path for file in self.files)

    @property
    def name(self) -> str:
        """Name of the data."""
        return "+".join(file.name for file in self.files)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add file and line to errors about rows."""
        try:
            yield
        except TableError as error:
            if not self.files:  # a data frame
                raise
            if error.row is None:
                raise DataFormatError(error.problem, self.path) from error
            k = max(i for i, start in enumerate(self.starts) if start <= error.row)
            raise located(error, self.files[k], error.row - self.starts[k]) from error

    def schema(self, known: KnownColumns) -> Schema:
        """Infer the schema; errors name the file and the line."""
        with self.located():
            return infer_schema(self.table, labels=known.label_columns, **column_options(known))

    def labels(self, known: KnownColumns) -> tuple[np.ndarray, list[str]]:
        """Return the labels as 0 and 1, and their names; NaN if they may be unknown, and are."""
        with self.located():
            if known.tags is not None:
                return tag_matrix(read_tags(self.table[known.tags], known.separator))
            names = list(known.labels)
            return indicator_columns(self.table, names, unknown=known.unknown_labels), names

    def labels_of(
        self, names: Sequence[str], tags: str | None = None, separator: str | None = None
    ) -> np.ndarray:
        """Return the labels of a model, which the table must have, as columns or as tags."""
        with self.located():
            if tags is not None and tags in self.table.column_names:
                return tag_matrix(read_tags(self.table[tags], separator), names)[0]
            if absent := [name for name in names if name not in self.table.column_names]:
                or_tags = f", nor is the column of tags {tags!r}" if tags is not None else ""
                raise TableError(
                    f"{len(absent)} of the model's labels are not in the data: {listed(absent)}"
                    f"{or_tags}; the columns are {listed(self.table.column_names, 12)}"
                )
            return indicator_columns(self.table, names)


def located(error: TableError, file: TableFile, row: int | None) -> DataFormatError:
    """Return an error about a table with the file, and the line if it is known."""
    line = None if row is None else file.line_of(row)
    at_row = "" if row is None or line is not None else f"row {row}: "
    return DataFormatError(at_row + error.problem, file.path, line)


def open_tables(path: Source | Sequence[Source], **reading: Any) -> TableSource:
    """Read tables; the rows of several files follow each other, their columns matched by name.

    Parameters
    ----------
    path : path or list of paths
        The files.
    **reading
        Parameters of :class:`TableFile`.
    """
    paths = [path] if isinstance(path, (str, os.PathLike, Content)) else list(path)
    files = [TableFile(one, **reading) for one in paths]
    tables: list[Any] = []
    for file in files:
        table = file.read()
        if tables and set(table.column_names) != set(tables[0].column_names):
            differ = sorted(set(table.column_names) ^ set(tables[0].column_names))
            raise DataFormatError(
                f"its columns are not those of {files[0].path}: {listed(differ, 12)}", file.path
            )
        tables.append(table.select(tables[0].column_names) if tables else table)
    starts = [sum(t.num_rows for t in tables[:k]) for k in range(len(tables))]
    try:
        return TableSource(files, joined_tables(tables), starts)
    except arrow().ArrowException as error:
        raise DataFormatError(
            f"the files cannot be joined, because columns have different types: {error}",
            ", ".join(file.path for file in files),
        ) from error


def read_table(
    path: Source | Sequence[Source],
    *,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    max_bytes: int | None = None,
    member: str | None = None,
) -> Any:
    r"""Read a table from a CSV, TSV or Parquet file or a spreadsheet (.xlsx).

    Cells of text files are not converted; see :func:`infer_schema`.

    Parameters
    ----------
    path : path or list of paths
        The file, which may be compressed; the rows of several files with the same columns, in any
        order, are concatenated.
    delimiter : str, default=None
        Delimiter of a text file.  None detects commas, semicolons, tabs and vertical bars; an
        ambiguous file is an error.
    header : bool, default=True
        Whether the first row has the column names; otherwise they are ``column0, column1, ...``.
    encoding : str, default=None
        Encoding of a text file; None means UTF-8, or that of a byte order mark.
    max_bytes : int, default=None
        Limit of the decompressed size in bytes, as for :func:`imcc.datasets.read`.
    member : str, default=None
        File in a ``.zip`` archive, or sheet of a spreadsheet, if there are several.

    Returns
    -------
    pyarrow.Table

    See Also
    --------
    read_dataset : Reads a table as arrays of numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "films.csv")
    >>> _ = file.write_text("year;genre\n1942;drama|romance\n1994;comedy\n")
    >>> read_table(file).to_pydict()
    {'year': ['1942', '1994'], 'genre': ['drama|romance', 'comedy']}
    >>> folder.cleanup()
    """
    return open_tables(
        path,
        delimiter=delimiter,
        header=header,
        encoding=encoding,
        max_bytes=max_bytes,
        member=member,
    ).table


def known_columns(
    names: Sequence[str],
    path: str,
    *,
    schema: str | os.PathLike[str] | KnownColumns | None = None,
    labels: int | Sequence[str] | None = None,
    label_prefix: str | None = None,
    tags: str | None = None,
    kinds: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    missing_words: Collection[str] = (),
    unknown_labels: bool | None = None,
) -> KnownColumns:
    """Return what a schema file and arguments say about the columns of a table.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    path : str
        The file, for messages.
    schema : path-like or KnownColumns, default=None
        The schema file, or its content.
    labels : list of str or int, default=None
        Label columns, instead of those of the schema: names, or their number, where a positive
        number means the first columns and a negative one the last columns.
    label_prefix : str, default=None
        Prefix of the names of the label columns, instead.
    tags : str, default=None
        Column of tags, instead.
    kinds : mapping of str to str, default=None
        Further kinds of columns.
    drop : sequence of str, default=()
        Further columns that are not used.
    missing_words : collection of str, default=()
        Further words for a missing value.
    unknown_labels : bool, default=None
        Whether missing values in label columns are unknown labels; None means as in the schema.
    """
    if isinstance(schema, (str, os.PathLike)):
        schema = read_schema(schema)
    known = KnownColumns() if schema is None else schema
    if labels is not None or label_prefix is not None:
        if tags is not None:
            raise InvalidArgumentError(
                "tags",
                "is one column that lists the labels; " + named("labels") + " are columns of 0 "
                "and 1: not both",
            )
        chosen = choose_labels(names, labels, label_prefix, path)
        known = replace(known, labels=tuple(dict.fromkeys(names[i] for i in chosen)), tags=None)
    elif tags is not None:
        known = replace(known, labels=(), tags=tags)
    all_kinds = {**known.kinds, **(kinds or {})}
    wanted = {"drop": drop, "tags": [known.tags] if known.tags else []}
    wanted["schema"] = [*all_kinds, *known.labels, *known.drop]
    for option, columns in wanted.items():
        for name in columns:
            check_column(option, name, names)
    if known.separator is not None and known.tags is None:
        raise InvalidArgumentError(
            "separator",
            "is what stands between tags, and no column of tags is named: " + given("tags"),
        )
    used = set(known.label_columns)
    if both := [name for name in drop if name in used]:
        raise InvalidArgumentError("drop", f"names {both[0]!r}, which is a label")
    out = [name for name in dict.fromkeys((*known.drop, *drop)) if name not in used]
    return replace(
        known,
        kinds={n: kind for n, kind in all_kinds.items() if n not in used and n not in out},
        date_formats={n: f for n, f in known.date_formats.items() if n not in used},
        drop=tuple(out),
        missing_words=(*known.missing_words, *missing_words),
        unknown_labels=known.unknown_labels if unknown_labels is None else unknown_labels,
    )


def check_columns(model: TableClassifier, names: Sequence[str], path: str, ignore: bool) -> None:
    """Raise an error for columns that a model does not know, unless they are ignored."""
    known = {*model.feature_names_in_, *model.drop, *model.label_names_, model.tags_column_}
    if not set(model.schema_.features) & set(names):
        raise DataFormatError(
            "this is another table than the model was fitted to: it has none of the columns that "
            f"the model needs, {listed(model.schema_.features, 10)}, but {listed(names, 10)}",
            path,
        )
    check_extra([name for name in names if name not in known], ignore, path)


def rows_for_model(
    model: TableClassifier, source: TableSource, *, with_labels: bool, ignore_extra: bool
) -> tuple[Any, np.ndarray | None]:
    """Return the rows of a table for a table classifier, and labels if ``with_labels``.

    Invalid rows are reported before anything is computed, with their line.
    """
    check_columns(model, source.table.column_names, source.path, ignore_extra)
    names = [str(name) for name in model.label_names_]
    tags = model.tags_column_, model.separator_
    labels = source.labels_of(names, *tags) if with_labels else None
    with source.located():
        typed_arrays(source.table, model.schema_)
    return source.table, labels


def frame_for_model(
    source: TableSource,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, np.ndarray | None]:
    """Return the columns of a model that was fitted in Python to a data frame, and labels.

    Those of a file have the types that pandas infers.
    """
    names = source.table.column_names
    places = match_columns(names, feature_names, label_names, Coding(), ignore_extra, source.path)
    labels = source.labels_of(label_names) if with_labels else None
    table = source.table.select(places)
    # Without a file, the values already have types.
    return _natural_frame(table) if source.files else table.to_pandas(), labels


def _natural_frame(table: Any) -> Any:
    """Return a table as a pandas data frame with the types that pandas infers from a file."""
    pa, writer = arrow(), require("pyarrow.csv", "Reading tables")
    pandas = require("pandas", "Reading tables")
    table = decoded(table)
    if not all(pa.types.is_string(kind) for kind in table.schema.types):
        try:
            return table.to_pandas()  # Parquet has types of its own
        except (pa.ArrowException, ValueError, OverflowError) as error:
            columns = listed([f"{field.name}: {field.type}" for field in table.schema], 12)
            raise TableError(
                f"pandas does not have the values of one of the columns {columns}: {error}"
            ) from error
    buffer = io.BytesIO()
    writer.write_csv(table, buffer)
    buffer.seek(0)
    return pandas.read_csv(buffer)


def table_card(model: Any, source: TableSource, metrics: dict[str, float]) -> ModelCard:
    """Return the card of a model that was fitted to a table."""
    return replace(
        make_card(model, metrics=metrics),
        data_name=source.name,
        n_rows=source.table.num_rows,
        fingerprint=table_fingerprint(source.table),
        columns={"table": to_plain(model.schema_.to_dict())},
    )
