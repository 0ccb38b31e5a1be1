"""Errors and warnings about data.

Readers raise :class:`DataFormatError` for an invalid file, and downloads raise
:class:`DataFetchError`; both are :class:`DatasetError`.  Invalid *arguments* raise ``ValueError``
or ``TypeError``, and a path that does not exist raises ``FileNotFoundError``.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from imcc._utils.errors import ImccError


class DatasetError(ImccError):
    """Base class of errors about data: :class:`DataFormatError` and :class:`DataFetchError`."""


class DataFormatError(DatasetError, ValueError):
    """Raised if the content of a file is invalid.

    Parameters
    ----------
    reason : str
        What is wrong and, if possible, what to do; a :class:`~imcc._utils.errors.Message` if it
        names an argument.
    path : str or Path, default=None
        The file.
    line : int, default=None
        Number of the line, counted from 1.

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
    """Raised if a file of a named data set cannot be obtained, or is not the expected file."""


class DataWarning(UserWarning):
    """Warning about a file that was read, but may not be read as intended."""


def warn_user(message: str) -> None:
    """Issue a :class:`DataWarning` that points to the first caller outside imcc."""
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
