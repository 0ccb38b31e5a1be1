"""Tables with text, dates and missing values as data sets of an experiment.

The features are computed by :class:`imcc.tables.TableEncoder`, fitted to the training rows of each
repetition only.  All methods get the same features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset
from imcc.experiment._errors import ExperimentError
from imcc.tables import KnownColumns, TableEncoder, read_schema
from imcc.tables._load import known_columns, open_tables
from imcc.tables._read import table_fingerprint

# Options of an entry; a schema file says everything else about a table.
_COLUMNS = ("labels", "tags", "drop")
OPTIONS = (*_COLUMNS, "schema")


@dataclass(frozen=True, eq=False, repr=False)
class TableData(Dataset):
    """The labels of a table, and its columns without the values, which are encoded per split.

    Attributes
    ----------
    table : pyarrow.Table
    schema : imcc.tables.Schema
        Schema inferred from all rows, so that column types do not depend on the split.
    """

    table: Any = None
    schema: Any = None

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
    known = read_schema(options["schema"]) if "schema" in options else KnownColumns()
    source = open_tables(path, **known.reading)
    known = known_columns(
        source.table.column_names,
        path,
        schema=known,
        unknown_labels=False,  # the metrics need all of them
        **{key: options[key] for key in _COLUMNS if key in options},
    )
    if not known.label_columns:
        raise ExperimentError(f"data set {name!r}: give either label columns or a column of tags")
    Y, names = source.labels(known)
    schema = source.schema(known)
    features = schema.features
    if not features:
        raise DataFormatError("the table has no feature columns", path)
    empty = sp.csr_array((source.table.num_rows, len(features)))
    columns = tuple(features), tuple(names)
    return TableData(empty, Y, *columns, name, source=path, table=source.table, schema=schema)
