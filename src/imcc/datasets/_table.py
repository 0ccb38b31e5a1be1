"""Tables of named columns of numbers and words, before they are converted to features."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import MAX_CELLS


@dataclass(frozen=True)
class Attribute:
    """A column of a table.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"numeric", "nominal", "string"}, default="numeric"
        Numbers, words that the file declares, or words collected from the rows.
    categories : tuple of str, default=()
        The words of a column that is not numeric, in the order of their codes.
    """

    name: str
    kind: str = "numeric"
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows of numbers, where words are positions in the categories of their column.

    Attributes
    ----------
    attributes : tuple of Attribute
        The columns.
    values : ndarray or csr_array of shape (n_samples, n_attributes)
        Numbers, positions of categories, and NaN for missing values.  Omitted entries of sparse
        files are 0: the number or the first category.
    lines : ndarray of shape (n_samples,)
        Line of each row in the file; row numbers for files without lines.
    paths : list of str
        File of each part; a single one for a table that was not concatenated.
    starts : list of int
        First row of each part.
    title : str
        Title in the file.
    max_cells : int
        Limit of the number of entries of matrices made from the table, so that a small file cannot
        exhaust the memory.
    """

    attributes: tuple[Attribute, ...]
    values: Any
    lines: np.ndarray
    paths: list[str]
    starts: list[int] = field(default_factory=lambda: [0])
    title: str = ""
    max_cells: int = MAX_CELLS

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [attribute.name for attribute in self.attributes]

    @property
    def path(self) -> str:
        """Name of the table in messages."""
        return ", ".join(self.paths)

    def error(self, reason: str, row: int | None = None) -> DataFormatError:
        """Return the error for a row, with its file and line."""
        if row is None:
            return DataFormatError(reason, self.path)
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return DataFormatError(reason, self.paths[part], int(self.lines[row]))

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
        n_rows = self.values.shape[0]
        if n_rows * columns > self.max_cells:
            raise self.error(
                f"{n_rows:,} rows x {columns:,} {what} are more than {self.max_cells:,} numbers, "
                "which is too many for a file of this size"
            )


def join_tables(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of several files with the same columns."""
    first = tables[0]
    if len(tables) == 1:
        return first
    for other in tables[1:]:
        _check_same_columns(first, other)
    attributes = tuple(_merge([t.attributes[i] for t in tables]) for i in range(len(first.names)))
    parts = [_recoded(table, attributes) for table in tables]
    if any(sp.issparse(part) for part in parts):
        values = sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    else:
        values = np.vstack(parts)
    sizes = [table.values.shape[0] for table in tables]
    return Table(
        attributes,
        values,
        np.concatenate([table.lines for table in tables]),
        [path for table in tables for path in table.paths],
        [int(start) for start in np.cumsum([0, *sizes[:-1]])],
        first.title,
        max(table.max_cells for table in tables),
    )


def _check_same_columns(first: Table, other: Table) -> None:
    if len(first.names) != len(other.names):
        raise DataFormatError(
            f"cannot be concatenated with {first.path}: it has {len(other.names)} columns, not "
            f"{len(first.names)}",
            other.path,
        )
    reason = None
    for ours, theirs in zip(first.attributes, other.attributes, strict=True):
        if ours.name != theirs.name:
            reason = f"it has the column {theirs.name!r} instead of {ours.name!r}"
        elif ours.kind != theirs.kind:
            reason = f"the column {ours.name!r} is {theirs.kind}, not {ours.kind}"
        elif ours.kind == "nominal" and ours.categories != theirs.categories:
            reason = f"the column {ours.name!r} has other values"
        if reason:
            break
    if reason:
        raise DataFormatError(f"cannot be concatenated with {first.path}: {reason}", other.path)


def _merge(versions: list[Attribute]) -> Attribute:
    first = versions[0]
    if all(v.categories == first.categories for v in versions):
        return first
    words = sorted({word for version in versions for word in version.categories})
    return Attribute(first.name, first.kind, tuple(words))


def _recoded(table: Table, attributes: tuple[Attribute, ...]) -> Any:
    moves = {}
    for position, (old, new) in enumerate(zip(table.attributes, attributes, strict=True)):
        if old.categories != new.categories:
            places = {word: float(place) for place, word in enumerate(new.categories)}
            moves[position] = np.array([places[word] for word in old.categories])
    return move_codes(table.values, moves)


def move_codes(values: Any, moves: Mapping[int, np.ndarray]) -> Any:
    """Change the codes of the words of some columns.

    Parameters
    ----------
    values : ndarray or csr_array
        The table, which is not modified.
    moves : dict of int to ndarray
        By column, the new code of each word.
    """
    if not moves:
        return values
    if not sp.issparse(values):
        values = values.copy()
        for position, moved in moves.items():
            column = values[:, position]
            known = ~np.isnan(column)
            column[known] = moved[column[known].astype(int)]
        return values
    # All columns at once, in time that does not depend on their number: the concatenated moves and
    # the start of each column.
    begins = np.full(values.shape[1], -1)
    begins[list(moves)] = np.cumsum([0, *(len(moved) for moved in moves.values())])[:-1]
    table = np.concatenate(list(moves.values()))
    first = begins[values.indices]
    stored = (first >= 0) & ~np.isnan(values.data)
    data = values.data.copy()
    data[stored] = table[first[stored] + data[stored].astype(int)]
    moved_values = sp.csr_array((data, values.indices, values.indptr), shape=values.shape)
    # Omitted entries must be stored in columns whose first word gets another code.
    filled = [position for position, moved in moves.items() if len(moved) and moved[0] != 0]
    if not filled:
        return moved_values
    dense = np.zeros((values.shape[0], len(filled)))
    dense[:] = [moves[position][0] for position in filled]
    by_column = moved_values.tocsc()
    for j, position in enumerate(filled):
        start, stop = by_column.indptr[position : position + 2]
        dense[by_column.indices[start:stop], j] = by_column.data[start:stop]
    others = np.setdiff1d(np.arange(values.shape[1]), filled)
    both = sp.hstack([by_column[:, others], sp.csc_array(dense)], format="csc")
    return sp.csr_array(both[:, np.argsort(np.concatenate([others, filled]))])
