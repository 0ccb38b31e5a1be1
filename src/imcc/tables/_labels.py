"""Labels of tables: columns of 0 and 1, or a column of tags."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

from imcc._utils.cells import label_values
from imcc._utils.errors import InvalidArgumentError, Message
from imcc._utils.text import printable
from imcc.tables._columns import (
    TableError,
    arrow,
    clean_text,
    flags_of_words,
    is_text,
    plain_column,
    to_flags,
    to_python,
)

# Separators of tags that are detected, in order of priority.
SEPARATORS = ("|", ";", ",")
#: Value of ``separator`` if every cell is a JSON list.
JSON = "json"
# With at least this many tags, most of them in one row only, the column is probably not tags.
_MANY_TAGS = 20
# Limits of the number of cells of the matrix of tags: any tags may have the first, a character the
# second, and no tags may have more than the last (4 GiB).
_FEW_CELLS, _CELLS_PER_CHARACTER, _MOST_CELLS = 2**24, 256, 2**29


def read_tags(values: Any, separator: str | None = None) -> list[list[str]]:
    """Return the tags of each row of a column.

    Parameters
    ----------
    values : pyarrow array, or sequence of str, of lists or of None
        ``"news|sport"``, ``'["news", "sport"]'`` (JSON) or lists; a missing value means no tags.
    separator : str, default=None
        Separator of the tags, or "json" for JSON lists.  None detects JSON lists, and otherwise
        uses the first of ``|``, ``;`` and ``,`` that occurs in any row.

    Returns
    -------
    list of list of str
        Tags of each row, sorted and without duplicates.

    Examples
    --------
    >>> read_tags(["news|sport", None, "sport"])
    [['news', 'sport'], [], ['sport']]
    >>> read_tags(['["a, b"]', '[]'])
    [['a, b'], []]
    """
    cells = _cells(values)
    if separator is None:
        separator = tag_separator(cells)
    rows: list[list[str]] = []
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            if separator == JSON:
                cell = _from_json(cell, i)
            else:
                cell = cell.split(separator) if separator else [cell]
        elif cell is None:
            cell = []
        elif not isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
            cell = [cell]
        names = [tag.strip() if isinstance(tag, str) else _number(tag, i) for tag in cell]
        rows.append(sorted({name for name in names if name}))
    return rows


def _number(tag: Any, row: int) -> str:
    """Return a tag that is a number as text, and "" for one that is missing."""
    if tag is None or _is_nan(tag):
        return ""
    if isinstance(tag, (float, np.floating)):
        return f"{tag:.15g}"
    if isinstance(tag, (int, np.integer)) and not isinstance(tag, bool):
        return str(tag)
    raise TableError(f"a tag is of type {type(tag).__name__}, not a name", row)


def _cells(values: Any) -> list[Any]:
    cells = to_python(values) if hasattr(values, "to_pylist") else list(values)
    return [None if cell is None or _is_nan(cell) else cell for cell in cells]


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, (float, np.floating)) and bool(np.isnan(cell))


def tag_separator(values: Any, separator: str | None = None) -> str | None:
    """Return the separator of the tags of a column, as given or detected.

    Parameters
    ----------
    values : pyarrow array, or sequence of str, of lists or of None
        The column.
    separator : str, default=None
        Returned if it is not None.

    Returns
    -------
    str or None
        ``"json"`` for JSON lists; None if no row has more than one tag, or all are lists.

    Examples
    --------
    >>> tag_separator(["a;b", "c"]), tag_separator(['["a"]', ""]), tag_separator(["a", "b"])
    (';', 'json', None)
    """
    if separator is not None:
        return separator
    texts = [cell.strip() for cell in _cells(values) if isinstance(cell, str)]
    if any(texts) and all(text[0] == "[" for text in texts if text):
        return JSON
    return next((s for s in SEPARATORS if any(s in text for text in texts)), None)


def _from_json(cell: str, row: int) -> list[Any]:
    if not cell.strip():
        return []
    try:
        found = json.loads(cell)
        json.dumps(found, ensure_ascii=False).encode()  # half a character cannot be written
    except (ValueError, RecursionError) as error:
        raise TableError(f"the tags are not a JSON list: {cell[:80]!r}", row) from error
    if not isinstance(found, list):
        raise TableError(f"the tags are not a JSON list: {cell[:80]!r}", row)
    return found


def tag_matrix(
    rows: Sequence[Sequence[str]], names: Sequence[str] | None = None
) -> tuple[np.ndarray, list[str]]:
    """Return tags as an indicator matrix, and the names of its columns.

    Parameters
    ----------
    rows : sequence of sequences of str
        Tags of each row.
    names : sequence of str, default=None
        Tags of the columns, in this order; other tags are ignored.  By default all tags, sorted.

    Returns
    -------
    matrix : ndarray of int64, shape (n_rows, n_tags)
        1 if the row has the tag, otherwise 0.
    names : list of str
        Tags of the columns.

    Warns
    -----
    UserWarning
        If ``names`` is None and most of at least 20 tags occur in one row only.
    """
    learned = names is None
    if names is None:
        names = sorted({tag for row in rows for tag in row})
        if not names:
            raise TableError("no row has a tag")
    known = set(names)
    kept = [[tag for tag in row if tag in known] for row in rows]
    _check_cells(kept, names)
    # A dense result would be copied to get integers of this size.
    binarizer = MultiLabelBinarizer(classes=list(names), sparse_output=True)
    matrix = binarizer.fit_transform(kept).astype(np.int64).toarray()
    if learned and len(names) >= _MANY_TAGS:
        once = int((matrix.sum(axis=0) == 1).sum())
        if 2 * once > len(names):
            warnings.warn(
                f"{once:,} of the {len(names):,} tags occur in one row only, as "
                f"{printable(names[int(matrix.sum(axis=0).argmin())])!r} does, and cannot be "
                "learned: is this a column of tags, and is the separator right?",
                UserWarning,
                stacklevel=2,
            )
    return matrix, list(names)


def _check_cells(rows: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Raise an error for tags whose matrix would be out of proportion to their text."""
    cells = len(rows) * len(names)
    length = sum(len(tag) for row in rows for tag in row)
    if cells > min(_MOST_CELLS, max(_FEW_CELLS, _CELLS_PER_CHARACTER * length)):
        raise TableError(
            f"the {len(names):,} different tags of {len(rows):,} rows would need a matrix of "
            f"{8 * cells / 2**30:.1f} GiB, which is too large: if this is a column of tags and the "
            "separator is right, leave out the tags of few rows"
        )


def indicator_columns(
    table: Any, names: Sequence[str], *, unknown: bool = False, advice: Message | str = ""
) -> np.ndarray:
    """Return the label columns of a table as 0 and 1.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : sequence of str
        Names of the label columns.
    unknown : bool, default=False
        Whether missing values are unknown labels, NaN in the result; otherwise they are an error.
    advice : str, default=""
        What else to do about missing values, for the message.

    Returns
    -------
    ndarray of int64, shape (n_rows, n_labels)
        Of float64 if there are unknown labels.

    Raises
    ------
    TableError
        If a cell is missing, or neither 0 nor 1 (nor a word such as yes and no), and not all cells
        are -1 and 1.
    """
    matrix = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        values, flags, neither = _flags(plain_column(name, table[name], dates=False))
        # Invalid values are reported before missing ones: a column named by mistake may have both.
        if neither.any():
            row = int(np.flatnonzero(neither)[0])
            raise TableError(
                f"label column {name!r} must be 0 or 1 (or -1 and 1, or no and yes), not "
                f"{values[row].as_py()!r}; a column that lists labels by name is one of tags",
                row,
            )
        missing = np.flatnonzero(np.isnan(flags))
        if len(missing) == len(values) > 0:
            raise TableError(
                f"label column {name!r} has no values: there is nothing to learn for it, leave it "
                "out"
            )
        if len(missing) and not unknown:
            raise TableError(
                Message(
                    f"label column {name!r} has missing values, in {len(missing):,} of "
                    f"{len(values):,} rows: fill them in, or leave these rows out",
                    advice,
                ),
                int(missing[0]),
            )
        matrix[:, j] = flags
    return matrix if np.isnan(matrix).any() else matrix.astype(np.int64)


def _flags(values: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the cells of a label column, 0.0, 1.0 or NaN for each, and which are neither."""
    if arrow().types.is_null(values.type):
        return values, np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    if is_text(values):
        values, _ = clean_text(values)
        return values, *flags_of_words(
            values, label_values(values.drop_null().unique().to_pylist())
        )
    flags, neither = to_flags(values)
    if neither.any() and np.isin(flags[~np.isnan(flags)], (-1, 1)).all():
        return values, np.where(flags == -1, 0.0, flags), np.zeros(len(values), dtype=bool)
    return values, flags, neither


def check_separator(separator: Any) -> str | None:
    """Validate and return a separator of tags."""
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise InvalidArgumentError("separator", f"must be text or None, got {separator!r}")
    return separator
