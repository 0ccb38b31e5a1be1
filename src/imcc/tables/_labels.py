"""Labels of tables: columns of 0 and 1, or a column of tags."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc._utils.text import printable
from imcc.datasets._errors import listed, repeated
from imcc.tables._columns import TableError, check_column, plain_column, to_python
from imcc.tables._numbers import to_flags

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


def tag_separator(values: Any) -> str | None:
    """Return the separator of the tags of a column.

    Parameters
    ----------
    values : pyarrow array, or sequence of str, of lists or of None
        The column.

    Returns
    -------
    str or None
        ``"json"`` for JSON lists; None if no row has more than one tag, or all are lists.

    Examples
    --------
    >>> tag_separator(["a;b", "c"]), tag_separator(['["a"]', ""]), tag_separator(["a", "b"])
    (';', 'json', None)
    """
    texts = [cell.strip() for cell in _cells(values) if isinstance(cell, str)]
    if any(texts) and all(text[0] == "[" for text in texts if text):
        return JSON
    return next((s for s in SEPARATORS if any(s in text for text in texts)), None)


def _from_json(cell: str, row: int) -> list[Any]:
    try:
        found = json.loads(cell.strip() or "[]")
        json.dumps(found, ensure_ascii=False).encode()  # half a character cannot be written
        if not isinstance(found, list):
            raise ValueError(f"it is of type {type(found).__name__}")
    except (ValueError, RecursionError) as error:
        raise TableError(f"the tags are not a JSON list: {cell[:80]!r}", row) from error
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


def read_labels(
    table: Any,
    y: Any,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    unknown: bool = False,
) -> tuple[Any, list[str], list[str]]:
    """Return labels as 0 and 1, their names, and the columns of the table that contain them.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    y : str, list of str, or labels
        As for :meth:`TableClassifier.fit`.
    separator : str, default=None
        Separator of tags.
    names : sequence of str, default=None
        Names of the labels to return, those of a model; by default all.
    unknown : bool, default=False
        Whether missing values in label columns are unknown labels.

    Returns
    -------
    labels : ndarray of shape (n_rows, n_labels) or None
        None if ``y`` is neither tags nor names of columns, but a matrix.
    names : list of str
        Names of the labels.
    columns : list of str
        Columns of the table that contain them.
    """
    if isinstance(y, str):
        check_column("y", y, table.column_names)
        return *tag_matrix(read_tags(table[y], separator), names), [y]
    if (columns := _columns_in(table, y)) is not None:
        if names is not None and set(columns) != set(names):
            raise InvalidArgumentError("y", f"must name the labels of the model: {names}")
        found = list(columns if names is None else names)
        advice = (
            "; or, to learn each label from the rows in which it is known, say that the others "
            "are not known, with " + given("unknown_labels", True)
        )
        Y = indicator_columns(table, found, unknown=unknown, advice=advice)
        return Y, found, columns
    cells = list(y) if isinstance(y, (list, tuple)) else None
    if cells is None and (getattr(y, "ndim", None) == 1 or hasattr(y, "to_pylist")):
        cells = y.to_pylist() if hasattr(y, "to_pylist") else y.tolist()
    lists = [c for c in cells or () if isinstance(c, (list, tuple, set, frozenset))]
    if any(isinstance(tag, str) for row in (cells or (), *lists) for tag in row):
        return *tag_matrix(read_tags(cells, separator), names), []
    return None, [], []


def _columns_in(table: Any, y: Any) -> list[str] | None:
    """Return the label columns of a table that ``y`` names; None if it is the labels themselves."""
    if getattr(y, "ndim", None) == 1 and len(y) != table.num_rows and hasattr(y, "tolist"):
        y = y.tolist()  # an array or an index of names
    if not isinstance(y, Sequence) or not all(isinstance(name, str) for name in y):
        return None
    if not len(y):
        raise InvalidArgumentError(
            "y", "names no label columns: name those of 0 and 1, or the one column of tags"
        )
    if not set(y) <= set(table.column_names):
        if len(y) != table.num_rows:
            for name in y:
                check_column("y", name, table.column_names)
        return None
    if twice := repeated(y):
        raise InvalidArgumentError("y", f"names label columns twice: {listed(twice)}")
    return list(y)


def _are_marks(values: Any) -> bool:
    """Return whether the cells of a label column are x or empty, as people mark lists."""
    return {str(word).strip().lower() for word in values.drop_null().unique().to_pylist()} == {"x"}


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
        are -1 and 1, or x and empty.
    """
    matrix = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        values = plain_column(name, table[name], dates=False)
        flags, neither = to_flags(values, signs=True)
        if neither.any() and not unknown and _are_marks(values):
            flags, neither = neither.astype(np.float64), np.zeros_like(neither)
        # Invalid values are reported before missing ones: a column named by mistake may have both.
        if neither.any():
            row = int(np.flatnonzero(neither)[0])
            raise TableError(
                f"label column {name!r} must be 0 or 1 (or -1 and 1, no and yes, x or empty), not "
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
