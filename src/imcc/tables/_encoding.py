"""From typed columns to features, a block of rows at a time; unknown values are counted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer

from imcc._utils.optional import require
from imcc.tables._schema import Schema, TableError, require_rows
from imcc.tables._transformer import BLOCK_ROWS
from imcc.tables._typed import MISSING_VALUE, typed_frame

# Different unknown values of a column that are counted one by one, and what stands for the rest.
_MOST_UNKNOWN = 1000
_OTHER_VALUES = "(others)"


def encoded(
    table: Any, schema: Schema, encoder: ColumnTransformer
) -> tuple[Any, dict[str, dict[str, int]]]:
    """Return the features of a table, and the counts of values that are not in the training table.

    Computed in blocks of rows, so that only the table and the features are in memory completely.
    """
    require_rows(table)
    made: _Rows | None = None
    unknown: dict[str, dict[str, int]] = {}
    for start in range(0, table.num_rows, BLOCK_ROWS):
        try:
            typed = typed_frame(table.slice(start, BLOCK_ROWS), schema)
        except TableError as error:
            if error.row is None:
                raise
            raise TableError(error.problem, error.row + start) from error
        _count_unknown_values(typed, schema, encoder, unknown)
        with warnings.catch_warnings():
            # Counted above, with the values.
            warnings.filterwarnings("ignore", message="Found unknown categories")
            block = encoder.transform(typed)
        made = made or (_SparseRows if sp.issparse(block) else _DenseRows)(table.num_rows, block)
        made.append(block)
    assert made is not None
    return made.result(), unknown


class _DenseRows:
    """An array that is filled a block of rows at a time."""

    def __init__(self, n_rows: int, first: np.ndarray) -> None:
        self.array = np.empty((n_rows, first.shape[1]))
        self.end = 0

    def append(self, block: np.ndarray) -> None:
        self.array[self.end : self.end + len(block)] = block
        self.end += len(block)

    def result(self) -> np.ndarray:
        return self.array


class _SparseRows:
    """A CSR matrix that is filled in blocks of rows, in arrays that are resized in place.

    Collecting the blocks and concatenating them would need twice the memory.
    """

    def __init__(self, n_rows: int, first: Any) -> None:
        self.shape = (n_rows, first.shape[1])
        # The number of entries estimated from the first block, and a few more.
        room = first.nnz * n_rows // max(first.shape[0], 1)
        self.data = np.empty(room + room // 50 + 1)
        self.indices = np.empty(len(self.data), dtype=np.int32)
        self.counts = [np.zeros(1, dtype=np.int64)]
        self.end = 0

    def append(self, block: Any) -> None:
        block = sp.csr_matrix(block)
        end = self.end + block.nnz
        if end > len(self.data):
            self._resize(end + len(self.data) // 16)
        self.data[self.end : end] = block.data
        self.indices[self.end : end] = block.indices
        self.counts.append(np.diff(block.indptr))
        self.end = end

    def _resize(self, size: int) -> None:
        # In place: nothing else refers to the arrays.
        self.data.resize(size, refcheck=False)
        self.indices.resize(size, refcheck=False)

    def result(self) -> Any:
        self._resize(self.end)
        ends = np.cumsum(np.concatenate(self.counts))
        ends = ends.astype(np.int32) if self.end <= np.iinfo(np.int32).max else ends
        return sp.csr_matrix((self.data, self.indices, ends), shape=self.shape)


_Rows = _DenseRows | _SparseRows


class UnknownValuesWarning(UserWarning):
    """A table has values that are not in the training table.

    Parameters
    ----------
    counts : mapping of str to mapping of str to int
        Per column, the number of rows with each value.
    """

    def __init__(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        self.counts = counts
        said = [
            f"{name!r} in {sum(values.values())} rows ({', '.join(map(repr, sorted(values)[:3]))}"
            f"{', ...' if len(values) > 3 else ''})"
            for name, values in counts.items()
        ]
        super().__init__(
            "values that the training table does not have (categories count as rare or as none, "
            "numbers as they are): " + "; ".join(said)
        )

    def add_to(self, counts: dict[str, dict[str, int]]) -> None:
        """Add the counts of this warning to others.

        Parameters
        ----------
        counts : dict of str to dict of str to int
            Modified in place.
        """
        for name, values in self.counts.items():
            for value, often in values.items():
                _add_unknown(counts, name, value, often)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts,)


def _add_unknown(counts: dict[str, dict[str, int]], name: str, value: str, often: int) -> None:
    found = counts.setdefault(name, {})
    # If the column has ids by mistake, the first thousand values are enough.
    value = value if value in found or len(found) < _MOST_UNKNOWN else _OTHER_VALUES
    found[value] = found.get(value, 0) + often


def _count_unknown_values(
    typed: Any, schema: Schema, encoder: ColumnTransformer, counts: dict[str, dict[str, int]]
) -> None:
    """Count values that are not in the training table."""
    pandas = require("pandas", "Encoding tables")
    for name in schema.of_kind("yes/no"):
        flags = typed[name].to_numpy()
        others = flags[~(np.isnan(flags) | (flags == 0) | (flags == 1))]
        for value, often in zip(*np.unique(others, return_counts=True), strict=True):
            _add_unknown(counts, name, f"{value:.15g}", int(often))
    names = schema.of_kind("category")
    if not names:
        return
    known = encoder.named_transformers_["categories"].categories_
    for name, categories in zip(names, known, strict=True):
        codes, values = pandas.factorize(typed[name].to_numpy(dtype=object))
        there = {*categories, MISSING_VALUE}
        often = np.bincount(codes, minlength=len(values))
        for j, value in enumerate(values):
            if value not in there:
                _add_unknown(counts, name, str(value), int(often[j]))
