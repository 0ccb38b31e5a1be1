"""Text from files made harmless: on a terminal, and in a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

# Characters that change how text is shown rather than being shown: those that begin escape
# sequences (Cc), those that turn the direction of writing or are invisible (Cf), halves of pairs
# (Cs), and the separators of lines and paragraphs (Zl, Zp).
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What makes a spreadsheet take a cell for a formula; also behind spaces, which it passes over.
_FORMULA = re.compile(r"\s*[=+\-@\t\r|%]", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?(inf|nan)\s*", re.ASCII)


def printable(text: object, *, keep: str = "") -> str:
    r"""Return text with control characters and escape sequences written out.

    A name in a file may hold sequences that move the cursor, change the title of the window or
    overwrite the lines above; shown by this function they are plain text.

    Parameters
    ----------
    text : object
        What is to be shown; ``str`` of it is taken.
    keep : str
        Characters that stay, such as ``"\n"`` where the text has lines.

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


def defused(cell: object) -> object:
    """Return a cell of a table for a spreadsheet: one that begins a formula gets an apostrophe.

    Numbers, and text that reads as a number, stay as they are.

    >>> defused("=1+1"), defused("wren"), defused(-1.5), defused("-1.5")
    ("'=1+1", 'wren', -1.5, '-1.5')
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
