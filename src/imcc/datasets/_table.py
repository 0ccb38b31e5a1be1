"""Tables as files have them: named columns of numbers and of words, before they are features."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import message_of
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import MAX_CELLS, check_cells


@dataclass(frozen=True)
class Attribute:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"numeric", "nominal", "words", "string"}
        Numbers; words that the file declares; words that were collected from the rows; free text.
    categories : tuple of str
        The words of a column that does not hold numbers, in their order.
    """

    name: str
    kind: str = "numeric"
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows of numbers and of the positions of words in their columns' categories.

    Attributes
    ----------
    attributes : tuple of Attribute
        The columns.
    values : ndarray or csr_array of shape (n_samples, n_attributes)
        Numbers, category positions, and NaN where a value is missing.  What a sparse file leaves
        out is 0: the number or the first category.
    lines : ndarray of shape (n_samples,)
        The line of the file that each row stands on; row numbers for files without lines.
    paths : list of str
        The file of each part; one for a table that was not joined.
    starts : list of int
        The first row of each part.
    title : str
        What the file calls itself.
    max_cells : int
        The most numbers of a matrix that may be made of it: a small file of many short rows and
        many columns, or words, must not fill the memory.
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
        """The columns' names."""
        return [attribute.name for attribute in self.attributes]

    @property
    def path(self) -> str:
        """How to call the table in messages that are about all of it."""
        return ", ".join(self.paths)

    def error(self, reason: str, row: int | None = None) -> DataFormatError:
        """Return the error for a row, with its file and line."""
        if row is None:
            return DataFormatError(reason, self.path)
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return DataFormatError(reason, self.paths[part], int(self.lines[row]))

    def column(self, position: int) -> np.ndarray:
        """Return one column as a dense array, not to be written to."""
        if not sp.issparse(self.values):
            return np.asarray(self.values[:, position])
        start, stop = self._by_column.indptr[position : position + 2]
        dense = np.zeros(self.values.shape[0])
        dense[self._by_column.indices[start:stop]] = self._by_column.data[start:stop]
        return dense

    @functools.cached_property
    def _by_column(self) -> Any:
        # Picking columns of rows that are stored one after the other reads all of them.
        return self.values.tocsc()

    def check_cells(self, columns: int, what: str) -> None:
        """Refuse a matrix of all rows that would be too large for the file that it is from."""
        try:
            check_cells(self.values.shape[0], columns, self.max_cells, what)
        except ValueError as error:
            raise self.error(message_of(error)) from error


def join_tables(tables: Sequence[Table]) -> Table:
    """Return the rows of several files with the same columns, one file after the other."""
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
            f"cannot be joined to {first.path}: it has {len(other.names)} columns, not "
            f"{len(first.names)}",
            other.path,
        )
    reason = None
    for ours, theirs in zip(first.attributes, other.attributes, strict=True):
        if ours.name != theirs.name:
            reason = f"it has the column {theirs.name!r} where the first has {ours.name!r}"
        elif ours.kind != theirs.kind:
            reason = f"the column {ours.name!r} is {theirs.kind}, not {ours.kind}"
        elif ours.kind == "nominal" and ours.categories != theirs.categories:
            reason = f"the column {ours.name!r} has other values"
        if reason:
            break
    if reason:
        raise DataFormatError(f"cannot be joined to {first.path}: {reason}", other.path)


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
    """Give the words of some columns other positions.

    Parameters
    ----------
    values : ndarray or csr_array
        The table; a sparse one is changed where it is, as nothing that it leaves out changes unless
        the first word of a column moves.
    moves : dict of int to ndarray
        For each of these columns, the new position of each of its words.
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
    # All columns at once, in time that does not depend on their number: the moves one after the
    # other, and where those of each column begin.
    begins = np.full(values.shape[1], -1)
    begins[list(moves)] = np.cumsum([0, *(len(moved) for moved in moves.values())])[:-1]
    table = np.concatenate(list(moves.values()))
    first = begins[values.indices]
    stored = (first >= 0) & ~np.isnan(values.data)
    data = values.data.copy()
    data[stored] = table[first[stored] + data[stored].astype(int)]
    moved_values = sp.csr_array((data, values.indices, values.indptr), shape=values.shape)
    # A column whose first word moves is not left out any more where it was.
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


def sorted_words(
    name: str, kind: str, words: tuple[str, ...], positions: np.ndarray
) -> tuple[Attribute, np.ndarray]:
    """Put the words of a column in alphabetical order, so that the order of rows does not matter.

    Words that no row has are left out.

    Parameters
    ----------
    name, kind : str
        The column's.
    words : tuple of str
        Its words, in any order.
    positions : ndarray
        The position among them of each row's word, NaN where it is missing.
    """
    known = ~np.isnan(positions)
    used, where = np.unique(positions[known].astype(int), return_inverse=True)
    order = sorted(range(len(used)), key=lambda i: words[used[i]])
    moved = np.empty(len(used))
    moved[order] = np.arange(len(used))
    found = np.full(len(positions), np.nan)
    found[known] = moved[where]
    return Attribute(name, kind, tuple(words[used[i]] for i in order)), found


def find_columns(table: Table, names: Sequence[str], what: str) -> list[int]:
    """Return the positions of the columns with these names, in the order of the names."""
    positions: dict[str, int] = {}
    repeated = set()
    for position, name in enumerate(table.names):
        if name in positions:
            repeated.add(name)
        positions.setdefault(name, position)
    if absent := [name for name in names if name not in positions]:
        raise table.error(
            f"{what} names {len(absent)} label(s) that are not columns of the file: "
            f"{listed(absent)}; the columns are {listed(table.names)}"
        )
    if ambiguous := [name for name in names if name in repeated]:
        raise table.error(f"several columns have the name of a label: {listed(ambiguous)}")
    return [positions[name] for name in names]
