"""Conversion of results to text and to data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imcc._utils.optional import require
from imcc._utils.text import printable

# Maximum number of rows in a ``repr``; the others are counted.
MOST_LINES = 10
_LONGEST_NAME = 30


def as_text(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]], n_rows: int | None = None
) -> str:
    """Return a title and a table, for ``repr``.

    Parameters
    ----------
    title : str
    headings : sequence of str
    rows : sequence of sequences
        Text is aligned to the left, numbers to the right; at most ten rows are shown.
    n_rows : int, default=None
        Total number of rows, if ``rows`` are only the first of them.

    Examples
    --------
    >>> print(as_text("Two labels", ["label", "f1"], [["sea", 0.5], ["beach", float("nan")]]))
    Two labels
      label     f1
      sea    0.500
      beach      -
    """
    shown = [[_word(cell) for cell in row] for row in rows[:MOST_LINES]]
    table = [list(headings), *shown]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    words = [bool(rows) and isinstance(rows[0][column], str) for column in range(len(headings))]
    lines = [
        "  ".join(
            cell.ljust(width) if is_word else cell.rjust(width)
            for cell, width, is_word in zip(row, widths, words, strict=True)
        ).rstrip()
        for row in table
    ]
    left_out = (len(rows) if n_rows is None else n_rows) - len(shown)
    if left_out:
        lines.append(f"... and {left_out:,} more")
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _word(cell: Any) -> str:
    if isinstance(cell, str):
        text = printable(cell)
        return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.3f}"
    return f"{cell:,}"


def as_frame(columns: Any, index: Any = None, names: Any = None) -> Any:
    """Return a pandas DataFrame.

    Parameters
    ----------
    columns : dict of str to sequence, or ndarray
    index : sequence or dict of str to sequence, default=None
        The index; a dict gives a MultiIndex.
    names : sequence of str, default=None
        Names of the columns, for an array.
    """
    pandas = require("pandas", "A data frame")
    if isinstance(index, dict):
        index = pandas.MultiIndex.from_arrays(list(index.values()), names=list(index))
    return pandas.DataFrame(columns, index=index, columns=names)
