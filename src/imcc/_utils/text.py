"""Escaping of untrusted text for terminals, spreadsheets and JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Categories of characters that change the display: control characters (Cc), changes of the writing
# direction and invisible characters (Cf), surrogates (Cs), line and paragraph separators (Zl, Zp).
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Start of a formula in a spreadsheet, which ignores leading spaces.
_FORMULA = re.compile(r"\s*[=+\-@\t\r|%]", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?(inf|nan)\s*", re.ASCII)


def printable(text: object, *, keep: str = "") -> str:
    r"""Return text with escaped control characters.

    A name in a file may contain sequences that move the cursor, change the title of the window or
    overwrite lines of a terminal.

    Parameters
    ----------
    text : object
        The text; other objects are converted with ``str``.
    keep : str, default=""
        Characters that are not escaped, such as ``"\n"`` in a text with several lines.

    Examples
    --------
    >>> printable("wren\x1b[2J")
    'wren\\x1b[2J'
    >>> printable("a\nb"), printable("a\nb", keep="\n")
    ('a\\nb', 'a\nb')
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or unicodedata.category(char) not in _UNSEEN else _written_out(char)
        for char in text
    )


def _written_out(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def escaped_formula(cell: object) -> object:
    """Return a cell for a spreadsheet, with an apostrophe before text that starts a formula.

    Numbers, and text that is a number, are returned unchanged.

    >>> [escaped_formula(cell) for cell in ("=1+1", "wren", -1.5, "-1.5")]
    ["'=1+1", 'wren', -1.5, '-1.5']
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def json_text(value: Any, indent: int | None = 2) -> str:
    r"""Return a value as JSON, with control characters escaped.

    >>> print(json_text({"wren": "\x1b[2J é \x9b"}, indent=None))
    {"wren": "\u001b[2J é \u009b"}
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    # What cannot be printed stands inside of strings, where JSON has a way to write it.
    return "".join(
        char if char == "\n" or printable(char) == char else json.dumps(char)[1:-1] for char in text
    )
