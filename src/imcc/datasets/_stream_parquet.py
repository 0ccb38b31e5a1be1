"""Reading a Parquet file in chunks of rows, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc.datasets._encode import choose_labels
from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._parquet import is_number, known_labels, parquet_errors
from imcc.datasets._table import Attribute, Table


class ParquetRows:
    """The rows of a Parquet file."""

    def __init__(self, path: Path, labels: Any, label_prefix: str | None) -> None:
        parquet = require("pyarrow.parquet", "Reading Parquet files")
        arrow = require("pyarrow", "Reading Parquet files")
        self.path = path
        self._parquet, self._errors = parquet, parquet_errors()
        try:
            schema = parquet.read_schema(path)
            known = known_labels((schema.metadata or {}).get(b"imcc"))
        except self._errors as error:
            raise DataFormatError(f"this is not a Parquet file ({error})", str(path)) from error
        for field in schema:
            kind = field.type
            if not is_number(kind, arrow.types):
                raise DataFormatError(
                    f"the column {field.name!r} has the type {kind}; streams support only numbers "
                    "and booleans: encode it before, or read the file with imcc.datasets.read",
                    str(path),
                )
        names = schema.names
        if twice := repeated(names):
            raise DataFormatError(f"several columns have the same name: {listed(twice)}", str(path))
        if labels is None and label_prefix is None:
            labels = known
        # Select labels as the reader of whole files does, on a table without rows.
        empty = np.empty((0, len(names)))
        table = Table(tuple(map(Attribute, names)), empty, np.empty(0, int), [str(path)])
        chosen = choose_labels(table, labels, label_prefix)
        self.label_names = tuple(names[i] for i in chosen)
        self.feature_names = tuple(n for i, n in enumerate(names) if i not in set(chosen))

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the chunks (X, Y) of the file."""
        try:
            with self._parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=rows):
                    if batch.num_rows:
                        yield (
                            _columns(batch, self.feature_names),
                            _columns(batch, self.label_names),
                        )
        except self._errors as error:
            if isinstance(error, DataFormatError):
                raise
            raise DataFormatError(
                f"the file is damaged or incomplete ({error})", str(self.path)
            ) from error


def _columns(batch: Any, names: Sequence[str]) -> np.ndarray:
    """Return columns of a batch as float64; missing values are NaN."""
    out = np.empty((batch.num_rows, len(names)))
    for j, name in enumerate(names):
        column = batch.column(batch.schema.get_field_index(name))
        out[:, j] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return out
