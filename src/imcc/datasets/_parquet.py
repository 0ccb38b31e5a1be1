"""Parquet files, read and written with pyarrow."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.files import save
from imcc._utils.optional import require
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import choose_labels, to_dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import Content, Source, joined_name, open_all, refuses_by_memory
from imcc.datasets._parquet_file import ParquetSource
from imcc.datasets._table import Attribute, Table, join_tables, sorted_words
from imcc.datasets._text import check_names

_KEY = b"imcc"


@refuses_by_memory
def read_parquet(
    path: Source | Sequence[Source],
    labels: int | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    nominal: str = "onehot",
    member: str | None = None,
    max_bytes: int | None = None,
    name: str | None = None,
) -> Dataset:
    """Read a Parquet file whose columns are features and labels.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several files are concatenated.
    labels : list of str or int, default=None
        Names of the labels, or their number, as for :func:`read_csv`.  Not needed for files written
        by :func:`write_parquet`, which contain the names of the labels.
    label_prefix : str, default=None
        Prefix of the names of the label columns, instead of ``labels``.
    nominal : {"onehot", "ordinal", "error"}, default="onehot"
        How to encode columns of words with more than two values.
    member, max_bytes, name
        As for :func:`read_mulan`.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    DataFormatError
        If the file is invalid.
    ImportError
        If pyarrow is not installed.

    See Also
    --------
    write_parquet : Writes the file.
    read : Detects the format of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset, write_parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = write_parquet(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.parquet"))
    >>> read_parquet(file).label_names
    ('label0',)
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=max_bytes, member=member)
    parsed = [parse_parquet(content) for content in contents]
    table = join_tables([table for table, _ in parsed])
    if labels is None and label_prefix is None:
        labels = parsed[0][1]
    columns = choose_labels(table, labels, label_prefix)
    foreign = parsed[0][1] is None
    return to_dataset(table, columns, nominal, name or joined_name(contents), find_keys=foreign)


def parse_parquet(content: Content) -> tuple[Table, list[str] | None]:
    """Return the table, and the names of the labels if the file was written by imcc."""
    arrow = require("pyarrow", "Reading and writing Parquet files")
    if not content.data:
        raise DataFormatError("the file is empty", content.path)
    source = ParquetSource(
        content.data, content.path, size=content.size, max_bytes=content.max_bytes
    )
    _check_kinds(source.schema, content, arrow.types)
    with source.damage_reported():
        known = known_labels(source.schema)
        parts = list(source.parts())
        frame = arrow.concat_tables(parts) if parts else source.schema.empty_table()
        columns = [_column(name, frame.column(i)) for i, name in enumerate(frame.column_names)]
    if not columns:
        raise DataFormatError("the file has no columns", content.path)
    values = np.empty((frame.num_rows, len(columns)))
    for position, (_, numbers) in enumerate(columns):
        values[:, position] = numbers
    attributes = tuple(attribute for attribute, _ in columns)
    lines = np.arange(1, len(values) + 1)
    return Table(attributes, values, lines, [content.path], max_cells=content.max_cells), known


def _check_kinds(schema: Any, content: Content, types: Any) -> None:
    """Reject columns that cannot be features before they are read (lists can have any length)."""
    for field in schema:
        kind = field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if not (is_number(kind, types) or _is_text(kind, types)):
            raise DataFormatError(
                f"the column {field.name!r} has the type {field.type}; only numbers, booleans and "
                "strings are supported",
                content.path,
            )


def is_number(kind: Any, types: Any) -> bool:
    """Return whether a column of this type contains numbers or booleans."""
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))


def _is_text(kind: Any, types: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _column(name: str, column: Any) -> tuple[Attribute, np.ndarray]:
    arrow = require("pyarrow", "Reading and writing Parquet files")
    types, kind = arrow.types, column.type
    name = name or "unnamed"
    if types.is_dictionary(kind) and not _is_text(kind.value_type, types):
        column = column.cast(kind.value_type)
    elif types.is_dictionary(kind):
        return _words(name, column)
    elif _is_text(kind, types):  # of a table without rows
        return _words(name, column.dictionary_encode())
    numbers = column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return Attribute(name), np.asarray(numbers, dtype=float)


def _words(name: str, column: Any) -> tuple[Attribute, np.ndarray]:
    """Return a column of words as positions in alphabetical order."""
    positions = np.full(len(column), np.nan)
    words: dict[str, float] = {}
    start = 0
    for chunk in column.chunks:
        entries = chunk.dictionary.to_pylist()
        known = np.array(
            [np.nan if w is None else words.setdefault(w, len(words)) for w in entries]
        )
        codes = chunk.indices.to_numpy(zero_copy_only=False)  # NaN where a word is missing
        here = ~np.isnan(codes.astype(float))
        positions[start : start + len(chunk)][here] = known[codes[here].astype(int)]
        start += len(chunk)
    return sorted_words(name, "words", tuple(words), positions)


def known_labels(schema: Any) -> list[str] | None:
    """Return the names of the labels in the metadata of a file written by imcc."""
    if _KEY not in (schema.metadata or {}):
        return None
    labels = json.loads(schema.metadata[_KEY])["labels"]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("the list of labels in its metadata is damaged")
    return labels


def write_parquet(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a Parquet file with a column per feature and label.

    The names of the labels are stored in the metadata.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        If pyarrow is not installed.

    See Also
    --------
    read_parquet : Reads the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_parquet(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.parquet")).name
    'one.parquet'
    >>> folder.cleanup()
    """
    arrow = require("pyarrow", "Reading and writing Parquet files")
    parquet = require("pyarrow.parquet", "Reading and writing Parquet files")
    check_names(dataset, "Parquet")
    X = dataset.X.tocsc() if dataset.is_sparse else dataset.X
    columns = [
        arrow.array(X[:, [j]].toarray().ravel() if dataset.is_sparse else X[:, j])
        for j in range(dataset.n_features)
    ]
    columns += [arrow.array(dataset.Y[:, j].astype(bool)) for j in range(dataset.n_labels)]
    names = [*dataset.feature_names, *dataset.label_names]
    table = arrow.Table.from_arrays(columns, names=names)
    metadata = json.dumps({"labels": dataset.label_names, "name": dataset.name})
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({_KEY: metadata.encode()}), buffer)
    return save(path, buffer.getvalue())
