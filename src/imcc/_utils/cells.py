"""What the cells of a table of text mean, for all packages that read tables.

The rows of a CSV file, the words for a missing value and for no and yes, and keys that name rows.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator

import numpy as np

#: Words for a missing value, compared in lower case after trimming.
MISSING = frozenset(
    {"", "?", "-", "--", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "<na>"}
)

#: Pairs of words for no and yes, in lower case.
YES_NO = (
    ("0", "1"),
    ("no", "yes"),
    ("n", "y"),
    ("false", "true"),
    ("f", "t"),
    ("off", "on"),
    ("absent", "present"),
    ("neg", "pos"),
    ("negative", "positive"),
    ("nein", "ja"),
    ("non", "oui"),
)
_TRUTH = {word: float(value) for pair in YES_NO for value, word in enumerate(pair)}
# Other forms of the same numbers.
_SAME = {"0.0": "0", "1.0": "1", "+1": "1", "-1.0": "-1"}

# Minimum number of distinct values of a column of keys, and the fraction that must be distinct.
_FEWEST_KEYS = 20
_MOSTLY_DISTINCT = 0.95
_KEY_NAME = re.compile(r"(^|[_\W])(id|key|uuid|guid|index|nr|no|number)$", re.IGNORECASE)
_KEY = re.compile(r"\S*\d\S*")


def csv_rows(
    lines: Iterable[str], delimiter: str, *, header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the rows of a CSV file, each with the number of the line in which it begins.

    An empty line is a row with a missing value if the table has a single column, and no row
    otherwise or above the header.  A row that cannot be parsed raises a ``csv.Error`` with two
    arguments, the problem and the line in which the row begins.

    >>> list(csv_rows(["a\n", "1\n", "\n", "3\n"], ","))
    [(1, ['a']), (2, ['1']), (3, ['']), (4, ['3'])]
    >>> list(csv_rows(["a,b\n", "1,2\n", "\n", "3,4\n"], ","))
    [(1, ['a', 'b']), (2, ['1', '2']), (4, ['3', '4'])]
    """
    rows = csv.reader(lines, delimiter=delimiter)
    width, line = 0, 1
    try:
        for cells in rows:
            if cells and not width:
                width = len(cells)
                if width == 1 and not header:
                    yield from ((above, [""]) for above in range(1, line))
            if cells or width == 1:
                yield line, cells or [""]
            line = rows.line_num + 1
    except csv.Error as error:
        raise csv.Error(str(error), line) from error


def truth(word: str) -> float | None:
    """Return 0.0 or 1.0 for a word that means no or yes, and None for other words.

    >>> truth("YES"), truth("0.0"), truth("red")
    (1.0, 0.0, None)
    """
    return _TRUTH.get(_plain(word))


def _plain(word: str) -> str:
    small = word.strip().lower()
    return _SAME.get(small, small)


def yes_no_words(words: Collection[str]) -> tuple[str, str] | None:
    """Return the words for no and yes of a column, in lower case, if it has just these two.

    >>> yes_no_words(["Yes", "no", "yes"]), yes_no_words(["yes"]), yes_no_words(["no", "yes", "y"])
    (('no', 'yes'), None, None)
    """
    plain = {_plain(word) for word in words}
    found = {_TRUTH.get(word): word for word in plain}
    return (found[0.0], found[1.0]) if len(plain) == 2 and set(found) == {0.0, 1.0} else None


def label_values(words: Collection[str]) -> dict[str, float | None]:
    """Return 0.0 or 1.0 for each word of a label column, and None for those that mean neither.

    If there are no others, -1 and 1 mean no and yes.

    >>> label_values(["yes", "No"]), label_values(["1", "-1"]), label_values(["1", "0", "-1"])
    ({'yes': 1.0, 'No': 0.0}, {'1': 1.0, '-1': 0.0}, {'1': 1.0, '0': 0.0, '-1': None})
    """
    plain = {word: _plain(word) for word in words}
    signs = set(plain.values()) <= {"-1", "1"}
    return {
        word: float(value == "1") if signs else _TRUTH.get(value) for word, value in plain.items()
    }


def numbers_are_keys(name: str, numbers: np.ndarray) -> bool:
    """Return whether a column of numbers names rows: distinct integers without a missing value.

    They are consecutive, or the name of the column ends in id, key or similar.

    >>> numbers_are_keys("x", np.arange(30.0)), numbers_are_keys("x", np.arange(30.0) ** 2)
    (True, False)
    """
    if len(numbers) < _FEWEST_KEYS or not (numbers == np.round(numbers)).all():
        return False
    distinct = np.unique(numbers)
    if not mostly_distinct(len(distinct), len(numbers)):
        return False
    consecutive = distinct[-1] - distinct[0] == len(distinct) - 1
    return bool(consecutive or _KEY_NAME.search(name))


def words_are_keys(distinct: Iterable[str]) -> bool:
    """Return whether :func:`mostly_distinct` words name rows: each is a single one with a digit.

    >>> words_are_keys(["T-01", "T-02"]), words_are_keys(["Ulm", "Bonn"])
    (True, False)
    """
    return all(_KEY.fullmatch(word) for word in distinct)


def mostly_distinct(n_distinct: int, n_values: int) -> bool:
    """Return whether a column has enough distinct values for keys."""
    return n_distinct >= max(_FEWEST_KEYS, _MOSTLY_DISTINCT * n_values)
