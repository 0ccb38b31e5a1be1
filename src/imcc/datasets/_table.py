"""Tables as files have them: named columns of numbers and of words, before they are features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._errors import DataFormatError, listed


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
    values : ndarray or csr_array of shape (n_rows, n_attributes)
        Numbers, category positions, and NaN where a value is missing.  What a sparse file leaves
        out is 0: the number or the first category.
    lines : ndarray of shape (n_rows,)
        The line of the file that each row stands on; row numbers for files without lines.
    paths : list of str
        The file of each part; one for a table that was not joined.
    starts : list of int
        The first row of each part.
    title : str
        What the file calls itself.
    """

    attributes: tuple[Attribute, ...]
    values: Any
    lines: np.ndarray
    paths: list[str]
    starts: list[int] = field(default_factory=lambda: [0])
    title: str = ""

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
        """Return one column as a dense array."""
        if sp.issparse(self.values):
            return np.asarray(self.values[:, [position]].toarray().ravel())
        return np.asarray(self.values[:, position])


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
    values = table.values
    for position, (old, new) in enumerate(zip(table.attributes, attributes, strict=True)):
        if old.categories == new.categories:
            continue
        places = {word: float(place) for place, word in enumerate(new.categories)}
        where = np.array([places[word] for word in old.categories])
        column = table.column(position)
        known = ~np.isnan(column)
        column[known] = where[column[known].astype(int)]
        values = values.tolil() if sp.issparse(values) else values.copy()
        values[:, [position]] = column[:, np.newaxis]
    return sp.csr_array(values) if sp.issparse(values) else values


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
