"""Tables as arrays of numbers: a data set, or the features of a model that was fitted to arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from imcc._utils.cells import MISSING
from imcc._utils.errors import Message, given
from imcc.datasets import Dataset
from imcc.datasets._coding import Coding
from imcc.datasets._encode import choose_labels, encode_as_before, encode_features
from imcc.datasets._files import MAX_CELLS, Content
from imcc.datasets._match import match_columns
from imcc.datasets._table import Attribute, Table
from imcc.tables._columns import arrow, as_table, is_text, plain_column
from imcc.tables._load import TableSource, known_columns, open_tables
from imcc.tables._numbers import number_form, plain_numbers, to_flags
from imcc.tables._schema import Column, KnownColumns, TableError, read_schema
from imcc.tables._typed import typed_column, words_and_codes

# Kinds of columns that are not features of an array.
_NOT_NUMBERS = ("text", "date")
_INFINITE = ("inf", "infinity")


def read_dataset(
    source: Any,
    labels: int | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    tags: str | None = None,
    schema: str | os.PathLike[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    missing_words: Collection[str] = (),
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    max_bytes: int | None = None,
    member: str | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Convert a table whose columns are numbers, yes/no or categories to a data set.

    Numbers stay as they are, yes/no becomes 1 and 0, and missing values are NaN.  A category of two
    values becomes 0 and 1, in alphabetical order, and one of more values an indicator per value.

    Parameters
    ----------
    source : path, list of paths, or table
        CSV, TSV or Parquet files or spreadsheets, as for :func:`read_table`; or a pandas or polars
        data frame, a pyarrow table, or a mapping of names to columns.
    labels : list of str or int, default=None
        Label columns of 0 and 1; or their number, where a positive number means the first columns
        and a negative one the last columns.
    label_prefix : str, default=None
        Prefix of the names of the label columns, instead of ``labels``.
    tags : str, default=None
        Column that lists the labels of each row, instead of ``labels``.
    schema : path-like, default=None
        Schema file, as written by :func:`write_schema`.
    kinds : mapping of str to str, default=None
        Kinds that override the inferred ones, as for :func:`infer_schema`.
    drop : sequence of str, default=()
        Columns that are not used.
    missing_words : collection of str, default=()
        Further words for a missing value.
    delimiter, header, encoding, max_bytes, member
        As for :func:`read_table`.
    name : str, default=None
        Name of the data set; None uses that of the file.

    Returns
    -------
    imcc.datasets.Dataset
        The data.

    Raises
    ------
    imcc.datasets.DataFormatError
        If a file is invalid, or has a column of text, dates or ids; with the file and the line.
    TableError
        The same for a table in memory.

    See Also
    --------
    TableClassifier : Also uses text and dates, and replaces missing values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "films.csv")
    >>> _ = file.write_text("year,black_and_white,is_drama,is_comedy\n1942,yes,1,0\n1994,no,1,1\n")
    >>> films = read_dataset(file, label_prefix="is_")
    >>> films.feature_names, films.label_names
    (('year', 'black_and_white'), ('is_drama', 'is_comedy'))
    >>> films.X
    array([[1.942e+03, 1.000e+00],
           [1.994e+03, 0.000e+00]])
    >>> folder.cleanup()
    """
    known = KnownColumns() if schema is None else read_schema(schema)
    if isinstance(source, (str, os.PathLike, Content, list, tuple)):
        reading: dict[str, Any] = {
            "delimiter": delimiter,
            "header": header,
            "encoding": encoding,
            "max_bytes": max_bytes,
            "member": member,
        }
        table = open_tables(source, **{**reading, **known.reading})
    else:
        table = TableSource([], as_table(source), [0])
    name = name or table.name or "table"
    path = table.path or name
    names = table.table.column_names
    known = known_columns(
        names,
        path,
        schema=known,
        labels=labels,
        label_prefix=label_prefix,
        tags=tags,
        kinds=kinds,
        drop=drop,
        missing_words=missing_words,
    )
    if not known.label_columns:
        choose_labels(names, None, None, path)  # an error that names the columns
    types = table.schema(known)
    Y, label_names = table.labels(known)
    with table.located():
        columns = [column for column in types if column.kind != "label"]
        _refuse_kinds(columns)
        missing = types.missing_words
        left_out = [
            column.name
            for column in columns
            if column.kind == "id" and not _counts_rows(column.name, table.table, missing)
        ]
        columns = [column for column in columns if column.name not in left_out]
        if not columns:
            raise TableError("the table has no columns that could be features")
        values = _columns(
            [_column(column, table.table[column.name], missing) for column in columns],
            path,
            max((file.limits.max_cells for file in table.files), default=MAX_CELLS),
        )
        X, feature_names, coding = encode_features(values, range(len(columns)))
    if known.drop or left_out:
        coding = coding or Coding()
        coding = replace(coding, left_out=(*coding.left_out, *known.drop, *left_out))
    return Dataset(
        X, Y, tuple(feature_names), tuple(label_names), name, source=table.path, coding=coding
    )


def _refuse_kinds(columns: Sequence[Column]) -> None:
    wrong = {column.name: column.kind for column in columns if column.kind in _NOT_NUMBERS}
    if wrong:
        shown = ", ".join(f"{name!r} ({kind})" for name, kind in wrong.items())
        raise TableError(
            Message(
                f"these columns cannot become numbers of an array: {shown}; leave them out with ",
                given("drop", list(wrong)),
                ", state another kind with ",
                given("kinds", {next(iter(wrong)): "category"}),
                ", or use imcc.tables.TableClassifier, which encodes them",
            )
        )


def _counts_rows(name: str, table: Any, missing: Collection[str]) -> bool:
    """Return whether an id is a number, and warn of what becomes of it."""
    counts = _kind_of(plain_column(name, table[name], missing)) == "number"
    happens = "it is used as a number" if counts else "it is left out"
    warnings.warn(
        f"the column {name!r} seems to be an id: {happens}; leave it out with drop, or state what "
        f"it is with kinds={{{name!r}: {'number' if counts else 'category'!r}}}",
        UserWarning,
        stacklevel=3,
    )
    return counts


class _Columns(Table):
    """Columns of a table file, whose lines are looked up when an error names a row."""

    def error(self, reason: str, row: int | None = None) -> Exception:  # type: ignore[override]
        return TableError(reason, row)


def _columns(
    columns: Sequence[tuple[Attribute, np.ndarray]], path: str, max_cells: int
) -> _Columns:
    attributes, values = zip(*columns, strict=True)
    matrix = np.column_stack(values)
    return _Columns(attributes, matrix, [(path, ())], max_cells=max_cells)


def _column(column: Column, values: Any, missing: Collection[str]) -> tuple[Attribute, np.ndarray]:
    """Return a column that is not text, a date or an id as numbers, or as codes of its words."""
    values = plain_column(column.name, values, missing)
    if column.kind in ("id", "constant"):
        column = replace(column, kind=_kind_of(values))
    if column.kind != "category":
        (numbers,) = typed_column(column, values).values()
        return Attribute(column.name), numbers
    return _words(column.name, values)


def _kind_of(values: Any) -> str:
    """Return what the values of a column of ids, or of the same value in every row, are."""
    if arrow().types.is_temporal(values.type):
        return "category"
    if not is_text(values) or plain_numbers(values).null_count == values.null_count:
        return "number"
    return "category" if to_flags(values)[1].any() else "yes/no"


def _words(name: str, values: Any) -> tuple[Attribute, np.ndarray]:
    words, codes = words_and_codes(values)
    if infinite := [word for word in words if word.lower().lstrip("+-") in _INFINITE]:
        raise TableError(
            f"the column {name!r} has the infinite value {infinite[0]!r}, which is not supported"
        )
    order = sorted(range(len(words)), key=words.__getitem__)
    positions = np.full(len(words) + 1, np.nan)
    positions[order] = np.arange(len(words))
    return Attribute(name, "nominal", tuple(words[i] for i in order)), positions[codes]


def match_rows(
    source: TableSource,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    coding: Coding,
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, np.ndarray | None]:
    """Return the rows of a table for a model that was fitted to arrays, matched by name.

    Columns that had words in the training data are read as words, and others as numbers or yes/no;
    see :func:`imcc.datasets._match.read_matching`.
    """
    names = source.table.column_names
    places = match_columns(names, feature_names, label_names, coding, ignore_extra, source.path)
    known: dict[str, set[str]] = {column: set(code) for column, code in coding.codes.items()}
    for column, word in coding.indicators.values():
        known.setdefault(column, set()).add(word)
    distinct = list(dict.fromkeys(places))
    with source.located():
        table = _columns(
            [_as_before(names[j], source.table[names[j]], known.get(names[j])) for j in distinct],
            source.path,
            MAX_CELLS,
        )
        X = encode_as_before(table, [distinct.index(j) for j in places], feature_names, coding)
    if not with_labels:
        return X, None
    return X, source.labels_of(label_names)


def _as_before(
    name: str, values: Any, known: Collection[str] | None
) -> tuple[Attribute, np.ndarray]:
    """Return a column as words if some are known, and otherwise as numbers or yes/no."""
    # A word of the training data, such as "none", is not a missing value.
    missing = MISSING - {word.lower() for word in known or ()}
    values = plain_column(name, values, missing, dates=False)
    if known is not None:
        return _words(name, values)
    if not to_flags(values)[1].any():
        column = Column(name, "yes/no")
    else:
        form = number_form(name, values, stated=True) if is_text(values) else {}
        column = Column(name, "number", **form)
    return Attribute(name), typed_column(column, values)[name]
