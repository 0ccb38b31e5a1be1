"""Syntax of ARFF: quotes, escapes and declarations of attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content
from imcc.datasets._text import plain_float

# Possessive quantifiers ("*+") do not backtrack, so that no input takes more than linear time.
_QUOTED = r"""'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+\""""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|\S++)\s++(.++)", re.IGNORECASE)
_SQUEEZED = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{'\"][^\s{{]*+)(\{{.++)", re.IGNORECASE)
_RELATION = re.compile(r"@relation\b\s*+(.*+)", re.IGNORECASE)
# One value of a comma-separated list, with the following comma or the end.
_CELL = re.compile(rf"\s*+((?:{_QUOTED})(?=\s*+(?:,|$))|[^,'\"]*+)\s*+(,|$)")
# One "index value" of a sparse row.
_ENTRY = re.compile(rf"\s*+(\d++)\s++({_QUOTED}|[^\s,'\"]++)\s*+(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_TO_ESCAPE = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_BARE = re.compile(r"[A-Za-z0-9_.+/#=-]+")

# Any file may have so many attributes, which take more memory than the name of a feature.
_FEW_ATTRIBUTES = 2**18

_NUMERIC = frozenset({"numeric", "real", "integer"})


class _Words(dict[str, float]):
    """The values of a string attribute, numbered in order of appearance."""

    def __missing__(self, word: str) -> float:
        position = float(len(self))
        self[word] = position
        return position


@dataclass
class Column:
    """An attribute with functions to convert its cells to numbers."""

    name: str
    kind: str
    words: dict[str, float]

    def number(self, cell: str) -> float:
        """Return the number of a cell; raise ValueError or KeyError if it is invalid."""
        if self.kind == "numeric":
            return plain_float(cell)
        return self.words[cell]

    @property
    def convert(self) -> Callable[[str], float]:
        """Return a fast function for ordinary cells, which raises as above for others."""
        if self.kind == "string":
            return self._string
        return plain_float if self.kind == "numeric" else self.words.__getitem__

    def _string(self, cell: str) -> float:
        return float("nan") if cell == "?" else self.words[unquote(cell)]


def parse_header(lines: Iterator[tuple[int, str]], content: Content) -> tuple[str, list[Column]]:
    """Return the name of the relation and the columns, consuming the lines up to @data."""
    path = content.path
    relation = ""
    columns: list[Column] = []
    number, empty = 0, True
    for number, line in lines:
        stripped = line.strip()
        if not stripped or stripped[0] == "%":
            continue
        empty = False
        word = stripped.split(None, 1)[0].lower()
        if word == "@data":
            if not columns:
                raise DataFormatError("@data comes before any @attribute", path, number)
            return relation, columns
        if word == "@attribute":
            columns.append(_column(stripped, path, number))
            content.check_columns(len(columns), "attributes", _FEW_ATTRIBUTES)
        elif match := _RELATION.match(stripped):
            relation = unquote(match[1].strip())
        elif word.startswith("@"):
            raise DataFormatError(f"the declaration {word!r} is not supported", path, number)
        else:
            raise DataFormatError(
                f"expected @relation, @attribute or @data, found {stripped[:40]!r}; is this an "
                "ARFF file?",
                path,
                number,
            )
    if empty:
        raise DataFormatError("the file is empty", path)
    raise DataFormatError("there is no @data: the file is incomplete", path, number)


def _column(declaration: str, path: str, line: int) -> Column:
    match = _SQUEEZED.fullmatch(declaration) or _ATTRIBUTE.fullmatch(declaration)
    if not match:
        raise DataFormatError(
            f"an attribute needs a name and a type, found {declaration[:60]!r}", path, line
        )
    name, kind = unquote(match[1]), match[2].strip()
    if not name:
        raise DataFormatError("an attribute has an empty name", path, line)
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise DataFormatError(
                f"the values of the attribute {name!r} do not end with '}}'", path, line
            )
        values = [unquote(cell) for cell in split_cells(kind[1:-1], path, line)]
        words = {word: float(position) for position, word in enumerate(values)}
        if twice := repeated(values):
            raise DataFormatError(
                f"the attribute {name!r} lists a value twice: {listed(twice)}", path, line
            )
        return Column(name, "nominal", words)
    word = kind.split(None, 1)[0].lower()
    if word in _NUMERIC:
        return Column(name, "numeric", {})
    if word in ("string", "date"):
        return Column(name, "string", _Words())
    raise DataFormatError(
        f"the attribute {name!r} has the unknown type {kind[:40]!r}; supported are numeric, real, "
        "integer, string, date and {a, list, of, values}",
        path,
        line,
    )


def unquote(cell: str) -> str:
    r"""Return the text of a cell without quotes and escapes.

    >>> unquote(r"'it\'s'"), unquote("plain")
    ("it's", 'plain')
    """
    if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "'\"":
        cell = cell[1:-1]
        if "\\" in cell:
            return _ESCAPE.sub(_unescaped, cell)
    return cell


def quote(name: str) -> str:
    r"""Return a name as written in ARFF: in quotes unless it is a plain word.

    >>> print(quote("age"), quote("it's"))
    age 'it\'s'
    """
    return name if _BARE.fullmatch(name) else f"'{name.translate(_TO_ESCAPE)}'"


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _ESCAPED.get(escape, escape)


def split_cells(text: str, path: str, line: int) -> list[str]:
    """Return the cells of a comma-separated row, including quotes."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    return [match[1].strip() for match in _walk(_CELL, text, path, line)]


def split_entries(text: str, path: str, line: int) -> tuple[list[str], list[str]]:
    """Return the indices and cells of the content of a sparse row, including quotes."""
    matches = list(_walk(_ENTRY, text, path, line))
    return [match[1] for match in matches], [match[2] for match in matches]


def _walk(pattern: re.Pattern[str], text: str, path: str, line: int) -> Iterator[re.Match[str]]:
    position = 0
    while True:
        match = pattern.match(text, position)
        if not match:
            raise DataFormatError(
                f"cannot parse {text[position : position + 40]!r}: a quote is not closed, or a "
                "comma is missing or superfluous",
                path,
                line,
            )
        yield match
        position = match.end()
        if match[match.lastindex or 0] != ",":
            return
