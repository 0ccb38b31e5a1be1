"""Errors and warnings about data.

Every reader raises :class:`DataFormatError` and nothing else for a file that cannot be read as
data; getting a file from somewhere raises :class:`DataFetchError`.  Both are
:class:`DatasetError`.  Wrong *arguments* raise ``ValueError`` or ``TypeError`` as everywhere, and
a path that does not exist raises ``FileNotFoundError``.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from imcc._utils.errors import ImccError


class DatasetError(ImccError):
    """Something is wrong with data: the base of the two errors below."""


class DataFormatError(DatasetError, ValueError):
    """A file does not hold what its format promises.

    Parameters
    ----------
    reason : str
        What is wrong, and what to do about it where that is known; a
        :class:`~imcc._utils.errors.Message` where that is an argument.
    path : str or Path, optional
        The file.
    line : int, optional
        The line of the file, counted from 1.

    Examples
    --------
    >>> from imcc.datasets import DataFormatError
    >>> print(DataFormatError("the row has 3 values, not 2", path="birds.arff", line=7))
    birds.arff, line 7: the row has 3 values, not 2
    """

    def __init__(self, reason: str, path: str | Path | None = None, line: int | None = None):
        self.reason = reason
        self.path = path
        self.line = line
        place = "" if path is None else str(path)
        if line is not None:
            place += f", line {line}" if place else f"line {line}"
        super().__init__(f"{place}: " + reason if place else reason)


class DataFetchError(DatasetError, OSError):
    """A file of a named data set could not be got, or is not the file that was expected."""


class DataWarning(UserWarning):
    """Something about a file that the user should know, though it could be read."""


def warn_user(message: str) -> None:
    """Give a :class:`DataWarning` that points at the line of the user's that led to it."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("imcc."):
        frame = frame.f_back
        level += 1
    warnings.warn(message, DataWarning, stacklevel=level)


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order.

    >>> repeated(["b", "a", "b"])
    ['b']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def listed(names: Iterable[object], limit: int = 5) -> str:
    """Return the first few names, quoted, for a message.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
