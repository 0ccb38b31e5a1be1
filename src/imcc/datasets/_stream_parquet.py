"""Reading a Parquet file in chunks of rows, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc.datasets._encode import choose_labels
from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._parquet import is_number, known_labels
from imcc.datasets._parquet_file import ParquetSource
from imcc.datasets._table import Attribute, Table


class ParquetRows:
    """The rows of a Parquet file."""

    def __init__(self, path: Path, labels: Any, label_prefix: str | None) -> None:
        types = require("pyarrow", "Reading Parquet files").types
        self.path = path
        self._source = ParquetSource(path, str(path), advice="write it with smaller row groups")
        schema = self._source.schema
        with self._source.damage_reported():
            known = known_labels(schema)
        for field in schema:
            if not is_number(field.type, types):
                raise DataFormatError(
                    f"the column {field.name!r} has the type {field.type}; streams support only "
                    "numbers and booleans: encode it before, or read the file with "
                    "imcc.datasets.read",
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
        for part in self._source.parts(rows):
            if part.num_rows:
                yield _columns(part, self.feature_names), _columns(part, self.label_names)


def _columns(part: Any, names: Sequence[str]) -> np.ndarray:
    """Return columns of a part as float64; missing values are NaN."""
    out = np.empty((part.num_rows, len(names)))
    for j, name in enumerate(names):
        out[:, j] = part.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
    return out
