"""Tables of named columns of numbers and words, before they are converted to features."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from imcc.datasets._dataset import stacked
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import MAX_CELLS, check_size


class Attribute(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"numeric", "nominal", "text"}, default="numeric"
        Numbers, words, or text, which is not kept.
    categories : tuple of str, default=()
        The words of a nominal column, in the order of their codes.
    """

    name: str
    kind: str = "numeric"
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows of numbers, where words are positions in the categories of their column.

    Attributes
    ----------
    attributes : sequence of Attribute
        The columns.
    values : ndarray or csr_array of shape (n_samples, n_attributes)
        Numbers, positions of categories, and NaN for missing values and for text.  Omitted entries
        of sparse files are 0: the number or the first category.
    parts : list of (str, sequence of int)
        Each file, and the line of each of its rows.
    title : str
        Title in the file.
    max_cells : int
        Limit of the number of entries of matrices made from the table, so that a small file cannot
        exhaust the memory.
    """

    attributes: Sequence[Attribute]
    values: Any
    parts: list[tuple[str, Sequence[int]]]
    title: str = ""
    max_cells: int = MAX_CELLS

    @functools.cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [attribute.name for attribute in self.attributes]

    @property
    def path(self) -> str:
        """Name of the table in messages."""
        return ", ".join(path for path, _ in self.parts)

    def error(self, reason: str, row: int | None = None) -> DataFormatError:
        """Return the error for a row, with its file and line."""
        if row is not None:
            for path, lines in self.parts:
                if row < len(lines):
                    return DataFormatError(reason, path, lines[row])
                row -= len(lines)
        return DataFormatError(reason, self.path)

    def column(self, position: int) -> np.ndarray:
        """Return a column as a dense array, which must not be modified."""
        if not sp.issparse(self.values):
            return np.asarray(self.values[:, position])
        start, stop = self._by_column.indptr[position : position + 2]
        dense = np.zeros(self.values.shape[0])
        dense[self._by_column.indices[start:stop]] = self._by_column.data[start:stop]
        return dense

    @functools.cached_property
    def _by_column(self) -> Any:
        # Selecting a column of a CSR matrix would read all rows each time.
        return self.values.tocsc()

    def check_cells(self, columns: int, what: str) -> None:
        """Raise an error for a matrix of all rows that is too large for the size of the file."""
        check_size(self.values.shape[0], columns, what, self.max_cells, self.path)


def join_tables(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of several files with the same columns."""
    first = tables[0]
    if len(tables) == 1:
        return first
    for other in tables[1:]:
        pairs = zip_longest(first.attributes, other.attributes, fillvalue=Attribute("no column"))
        if differ := [f"{theirs.name} for {ours.name}" for ours, theirs in pairs if ours != theirs]:
            raise DataFormatError(
                f"cannot be concatenated with {first.path}: columns differ in their names, types "
                f"or values ({listed(differ)})",
                other.path,
            )
    return Table(
        first.attributes,
        stacked([table.values for table in tables]),
        [part for table in tables for part in table.parts],
        first.title,
        max(table.max_cells for table in tables),
    )
