"""Tables with text, dates and missing values as data sets of an experiment.

The features are computed by :class:`imcc.tables.TableEncoder`, fitted to the training rows of each
repetition only.  All methods get the same features.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset
from imcc.experiment._errors import ExperimentError
from imcc.tables import (
    Schema,
    TableEncoder,
    TableError,
    infer_schema,
    read_schema,
    read_tags,
    tag_matrix,
)
from imcc.tables._labels import indicator_columns
from imcc.tables._read import TableFile, table_fingerprint

# Options of an entry: how to read the file, and properties of its columns.
_READING = ("delimiter", "header", "encoding", "member", "max_bytes")
_COLUMNS = (
    *("labels", "tags", "separator", "kinds", "date_formats", "drop", "missing_words", "schema"),
)
OPTIONS = (*_READING, *_COLUMNS)


@dataclass(frozen=True)
class TableData:
    """A table, its labels and its schema.

    Attributes
    ----------
    labels : Dataset
        The labels and the names of the feature columns, without the values of the features.
    table : pyarrow.Table
    schema : Schema
        Schema inferred from all rows, so that column types do not depend on the split.
    """

    labels: Dataset
    table: Any
    schema: Schema

    def fingerprint(self) -> str:
        """Return a hash of all cells."""
        return table_fingerprint(self.table)

    def features(self, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Return the features of training and test rows; the encoder is fitted to the former."""
        encoder = TableEncoder()
        X = encoder.fit_schema(self.table.take(train), self.schema)
        return X, encoder.transform(self.table.take(test))


def load_table(name: str, path: str, options: Mapping[str, Any]) -> TableData:
    """Read a table for an experiment.

    Parameters
    ----------
    name : str
    path : str
    options : mapping
        Values of :data:`OPTIONS`.

    Returns
    -------
    TableData
    """
    check_options(name, options)
    file = TableFile(path, **{key: options[key] for key in _READING if key in options})
    table = file.read()
    known = read_schema(options["schema"]) if "schema" in options else None
    names = list(options.get("labels", known.labels if known else ()))
    tags = options.get("tags", known.tags if known else None)
    separator = options.get("separator", known.separator if known else None)
    if bool(names) == (tags is not None):
        raise ExperimentError(f"data set {name!r}: give either label columns or a column of tags")
    used = [tags] if tags is not None else names
    if absent := [column for column in used if column not in table.column_names]:
        raise DataFormatError(f"there are no columns {absent}", path)
    try:
        if tags is not None:
            Y, names = tag_matrix(read_tags(table[tags], separator))
        else:
            Y = indicator_columns(table, names)
        schema = infer_schema(
            table,
            kinds={**(known.kinds if known else {}), **options.get("kinds", {})},
            date_formats={
                **(known.date_formats if known else {}),
                **options.get("date_formats", {}),
            },
            drop=[*(known.drop if known else ()), *options.get("drop", ())],
            labels=used,
            missing_words=[
                *(known.missing_words if known else ()),
                *options.get("missing_words", ()),
            ],
        )
    except TableError as error:
        line = None if error.row is None else file.line_of(error.row)
        raise DataFormatError(error.problem, path, line) from error
    features = schema.features
    if not features:
        raise DataFormatError("the table has no feature columns", path)
    empty = sp.csr_array((table.num_rows, len(features)))
    labels = Dataset(empty, Y, tuple(features), tuple(names), name, source=os.fspath(path))
    return TableData(labels, table, schema)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise an error for options that a table does not have."""
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise ExperimentError(
            f"data set {name!r}: unknown option {unknown[0]!r} for a table; known options are "
            f"{', '.join(OPTIONS)}"
        )
