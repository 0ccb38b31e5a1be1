"""Parser of dense and sparse ARFF files, as written by Weka, MULAN and MEKA.

No package that imcc depends on reads sparse rows with nominal attributes.  Error messages name the
line, the attribute and the reason, and a repeated index in a sparse row is an error.  Rows without
quotes, which are most of them, are split with string methods; only rows with quotes are parsed with
regular expressions.

An omitted entry of a sparse row is 0: the number, or the *first* value of a nominal attribute.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content, decode, each_line
from imcc.datasets._table import Attribute, Table, move_codes
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
class _Column:
    """An attribute: its words with their positions, if it is not numeric."""

    name: str
    kind: str
    words: dict[str, float]

    @property
    def convert(self) -> Callable[[str], float]:
        """Return a fast function for ordinary cells; others raise a ValueError or KeyError."""
        if self.kind == "string":
            return self.number
        return plain_float if self.kind == "numeric" else self.words.__getitem__

    def number(self, cell: str) -> float:
        """Return the number of a cell that may be missing or quoted."""
        if cell == "?":
            return float("nan")
        text = _unquote(cell)
        return plain_float(text) if self.kind == "numeric" else self.words[text]


def parse_arff(content: Content, encoding: str | None = None) -> Table:
    """Return the table of an ARFF file.

    Parameters
    ----------
    content : Content
        The file.
    encoding : str, default=None
        Encoding of the text; None detects it.
    """
    path = content.path
    lines = enumerate(each_line(decode(content, encoding)), 1)
    relation, columns = _parse_header(lines, content)
    width = len(columns)
    places: Sequence[int] = range(width)
    positions = {str(place): place for place in places}
    converters = [column.convert for column in columns]
    # Arrays instead of lists of rows, which need much more memory than the file.
    numbers, indices, starts, values = array("q"), array("q"), array("q", [0]), array("d")
    sparse = None
    for number, line in lines:
        text = line.strip()
        if not text or text[0] == "%":
            continue
        if sparse is None:
            sparse = text[0] == "{"
            for column in columns if sparse else ():
                if column.kind == "string":
                    column.words[""] = 0.0  # omitted entries are the empty string
        elif sparse != (text[0] == "{"):
            raise DataFormatError("a file must have dense or sparse rows, not both", path, number)
        if sparse:
            places, cells = _split_entries(text, positions, path, number)
            indices.extend(places)
        else:
            cells = _split_cells(text, path, number)
            if len(cells) == 1 and width > 1:
                cells = text.split()  # separated by tabs or spaces
            if len(cells) != width:
                much = "too many" if len(cells) > width else "too few"
                raise DataFormatError(
                    f"the row has {much} values: {len(cells)} for {width} attributes", path, number
                )
        try:
            values.extend([converters[i](cell) for i, cell in zip(places, cells, strict=True)])
        except (ValueError, KeyError):
            del values[starts[-1] :]
            for i, cell in zip(places, cells, strict=True):
                values.append(_careful_number(columns[i], cell, path, number))
        starts.append(len(values))
        numbers.append(number)
    if not numbers:
        raise DataFormatError(
            "there are no rows after @data: the file is empty or incomplete", path
        )
    matrix: Any = np.array(values)
    if sparse:
        matrix = sp.csr_array((matrix, np.array(indices), np.array(starts)), (len(numbers), width))
        matrix.sort_indices()
    else:
        matrix = matrix.reshape(len(numbers), width)
    attributes, matrix = _settle_strings(columns, matrix)
    return Table(
        attributes, matrix, np.array(numbers), [path], title=relation, max_cells=content.max_cells
    )


def _careful_number(column: _Column, cell: str, path: str, line: int) -> float:
    """Return the number of a cell that may be missing or quoted; raise an error if invalid."""
    try:
        return column.number(cell)
    except ValueError:
        reason = f"{cell[:40]!r} is not a number"
    except KeyError:
        reason = f"{cell[:40]!r} is not one of its values ({listed(column.words)})"
    raise DataFormatError(f"the attribute {column.name!r}: {reason}", path, line)


def _split_entries(
    text: str, positions: dict[str, int], path: str, line: int
) -> tuple[list[int], list[str]]:
    """Return the positions of the attributes of a sparse row, and their cells with quotes."""
    body = text[1:-1]
    if text[-1] != "}" or ("}" in body and "'" not in body and '"' not in body):
        raise DataFormatError(
            "a sparse row must end with its only '}': the file may be incomplete (weights of rows "
            "are not supported)",
            path,
            line,
        )
    if "'" in body or '"' in body:
        matches = list(_walk(_ENTRY, body, path, line))
        found, cells = [match[1] for match in matches], [match[2] for match in matches]
    else:
        parts = body.replace(",", " ").split()
        found, cells = parts[0::2], parts[1::2]
        entries = body.count(",") + 1 if parts else 0
        if len(parts) != 2 * entries:
            raise DataFormatError(
                "a sparse row must be '{index value, index value, ...}', but this one has "
                f"{len(parts)} parts in {entries} entries",
                path,
                line,
            )
    try:
        places = [positions[place] for place in found]
    except KeyError as error:
        raise DataFormatError(
            f"there is no attribute {error.args[0][:40]!r}: the file declares {len(positions)} "
            "attributes, counted from 0",
            path,
            line,
        ) from None
    if len(set(places)) < len(places):
        raise DataFormatError(
            f"the row contains an attribute twice: {listed(repeated(found))}", path, line
        )
    return places, cells


def _parse_header(lines: Iterator[tuple[int, str]], content: Content) -> tuple[str, list[_Column]]:
    """Return the name of the relation and the columns, consuming the lines up to @data."""
    path = content.path
    relation = ""
    columns: list[_Column] = []
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
            relation = _unquote(match[1].strip())
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


def _column(declaration: str, path: str, line: int) -> _Column:
    match = _SQUEEZED.fullmatch(declaration) or _ATTRIBUTE.fullmatch(declaration)
    if not match:
        raise DataFormatError(
            f"an attribute needs a name and a type, found {declaration[:60]!r}", path, line
        )
    name, kind = _unquote(match[1]), match[2].strip()
    if not name:
        raise DataFormatError("an attribute has an empty name", path, line)
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise DataFormatError(
                f"the values of the attribute {name!r} do not end with '}}'", path, line
            )
        values = [_unquote(cell) for cell in _split_cells(kind[1:-1], path, line)]
        words = {word: float(position) for position, word in enumerate(values)}
        if twice := repeated(values):
            raise DataFormatError(
                f"the attribute {name!r} lists a value twice: {listed(twice)}", path, line
            )
        return _Column(name, "nominal", words)
    word = kind.split(None, 1)[0].lower()
    if word in _NUMERIC:
        return _Column(name, "numeric", {})
    if word in ("string", "date"):
        return _Column(name, "string", _Words())
    raise DataFormatError(
        f"the attribute {name!r} has the unknown type {kind[:40]!r}; supported are numeric, real, "
        "integer, string, date and {a, list, of, values}",
        path,
        line,
    )


def _unquote(cell: str) -> str:
    r"""Return the text of a cell without quotes and escapes.

    >>> _unquote(r"'it\'s'"), _unquote("plain")
    ("it's", 'plain')
    """
    if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "'\"":
        cell = cell[1:-1]
        if "\\" in cell:
            return _ESCAPE.sub(_unescaped, cell)
    return cell


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _ESCAPED.get(escape, escape)


def _split_cells(text: str, path: str, line: int) -> list[str]:
    """Return the cells of a comma-separated row, including quotes."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    return [match[1].strip() for match in _walk(_CELL, text, path, line)]


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


def _settle_strings(columns: list[_Column], values: Any) -> tuple[tuple[Attribute, ...], Any]:
    """Sort the values of string attributes, so that codes do not depend on the order of rows."""
    attributes = []
    moves = {}
    for position, column in enumerate(columns):
        words = tuple(column.words)
        if column.kind == "string" and list(words) != sorted(words):
            # "" sorts first and remains 0, so omitted entries of sparse rows remain omitted.
            moved = np.argsort(np.argsort(np.array(words, dtype=object)))
            moves[position] = moved.astype(float)
            words = tuple(sorted(words))
        attributes.append(Attribute(column.name, column.kind, words))
    return tuple(attributes), move_codes(values, moves)
