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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content, text_lines
from imcc.datasets._table import Attribute, Table

# Possessive quantifiers ("*+") do not backtrack, so that no input takes more than linear time.
_QUOTED = r"""'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+\""""
_ATTRIBUTE = re.compile(
    rf"@attribute\s++({_QUOTED}|[^\s{{'\"][^\s{{]*+(?=\{{)|\S++)\s*+(.++)", re.IGNORECASE
)
_RELATION = re.compile(r"@relation\b\s*+(.*+)", re.IGNORECASE)
# One value of a comma-separated list, with the following comma or the end.
_CELL = re.compile(rf"\s*+((?:{_QUOTED})(?=\s*+(?:,|$))|[^,'\"]*+)\s*+(,|$)")
# One "index value" of a sparse row.
_ENTRY = re.compile(rf"\s*+(\d++\s++(?:{_QUOTED}|[^\s,'\"]++))\s*+(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}

# Any file may have so many attributes, which take more memory than the name of a feature.
_FEW_ATTRIBUTES = 2**18

_NUMERIC = ("numeric", "real", "integer")
_TEXT = ("string", "date")


def parse_arff(content: Content, encoding: str | None = None) -> Table:
    """Return the table of an ARFF file.

    Parameters
    ----------
    content : Content
        The file.
    encoding : str, default=None
        Encoding of the text; None detects it.
    """
    parser = _Parser(content)
    number = None
    try:
        for number, line in enumerate(text_lines(content, encoding), 1):
            text = line.strip()
            if text and text[0] != "%":
                parser.read(text, number)
        number = None
        return parser.table()
    except DataFormatError as error:
        if error.path is not None:
            raise
        raise DataFormatError(error.reason, content.path, number) from None


class _Parser:
    """The attributes and rows that were read until now; errors have no file and line yet."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.relation = ""
        self.attributes: list[Attribute] = []
        self.converters: list[Callable[[str], float]] = []
        self.read: Callable[[str, int], None] = self._read_header
        self.is_sparse: bool | None = None  # not known before the first row
        # Arrays instead of lists of rows, which need much more memory than the file.
        self.lines, self.values = array("q"), array("d")
        self.indices, self.starts = array("q"), array("q", [0])

    def _read_header(self, text: str, _: int) -> None:
        word = text.split(None, 1)[0].lower()
        if word == "@data":
            if not self.attributes:
                raise DataFormatError("@data comes before any @attribute")
            self.places: Sequence[int] = range(len(self.attributes))
            self.positions = {str(place): place for place in self.places}
            self.read = self._read_row
        elif word == "@attribute":
            self._add_attribute(text)
        elif match := _RELATION.match(text):
            self.relation = _unquoted(match[1].strip())
        else:
            raise DataFormatError(
                f"expected @relation, @attribute or @data, found {text[:40]!r}; is this an ARFF "
                "file?"
            )

    def _add_attribute(self, text: str) -> None:
        match = _ATTRIBUTE.fullmatch(text)
        name = _unquoted(match[1]) if match else ""
        if not match or not name:
            raise DataFormatError(f"an attribute needs a name and a type, found {text[:60]!r}")
        kind = match[2].strip()
        word = kind.split(None, 1)[0].lower()
        if kind.startswith("{"):
            if not kind.endswith("}"):
                raise DataFormatError(f"the values of the attribute {name!r} do not end with '}}'")
            values = _split_cells(kind[1:-1])
            if twice := repeated(values):
                raise DataFormatError(
                    f"the attribute {name!r} lists a value twice: {listed(twice)}"
                )
            codes = {value: float(position) for position, value in enumerate(values)}
            self.attributes.append(Attribute(name, "nominal", tuple(values)))
            self.converters.append(codes.__getitem__)
        elif word in _NUMERIC:
            self.attributes.append(Attribute(name))
            self.converters.append(_plain_float)
        elif word in _TEXT:
            self.attributes.append(Attribute(name, "text"))
            self.converters.append(_not_kept)
        else:
            raise DataFormatError(
                f"the attribute {name!r} has the unknown type {kind[:40]!r}; supported are "
                "numeric, real, integer, string, date and {a, list, of, values}"
            )
        self.content.check_columns(len(self.attributes), "attributes", _FEW_ATTRIBUTES)

    def _read_row(self, text: str, line: int) -> None:
        is_sparse = text[0] == "{"
        if self.is_sparse is None:
            self.is_sparse = is_sparse
        elif self.is_sparse != is_sparse:
            raise DataFormatError("a file must have dense or sparse rows, not both")
        places = self.places
        if is_sparse:
            places, cells = self._split_entries(text)
            self.indices.extend(places)
        else:
            cells = _split_cells(text)
            if len(cells) == 1 and len(places) > 1:
                cells = text.split()  # separated by tabs or spaces
            if len(cells) != len(places):
                raise DataFormatError(
                    f"the row has {len(cells)} values for {len(places)} attributes"
                )
        for place, cell in zip(places, cells, strict=True):
            try:
                value = self.converters[place](cell)
            except (ValueError, KeyError):
                if cell != "?":
                    raise self._invalid(place, cell) from None
                value = np.nan
            self.values.append(value)
        self.starts.append(len(self.values))
        self.lines.append(line)

    def _invalid(self, place: int, cell: str) -> DataFormatError:
        attribute = self.attributes[place]
        is_not = "a number"
        if attribute.kind == "nominal":
            is_not = f"one of its values ({listed(attribute.categories)})"
        return DataFormatError(f"the attribute {attribute.name!r}: {cell[:40]!r} is not {is_not}")

    def _split_entries(self, text: str) -> tuple[list[int], list[str]]:
        """Return the positions of the attributes of a sparse row, and their cells."""
        if text[-1] != "}":
            raise DataFormatError("a sparse row must end with '}': the file may be incomplete")
        body = text[1:-1]
        if "'" in body or '"' in body:
            parts = [part for entry in _matches(_ENTRY, body) for part in entry.split(None, 1)]
            parts[1::2] = map(_unquoted, parts[1::2])
        else:
            parts = body.replace(",", " ").split()
            if len(parts) != 2 * (body.count(",") + 1) and (parts or "," in body):
                raise DataFormatError(
                    "a sparse row must be '{index value, index value, ...}', but this one has "
                    f"{len(parts)} parts and {body.count(',')} commas"
                )
        try:
            places = [self.positions[place] for place in parts[0::2]]
        except KeyError as error:
            raise DataFormatError(
                f"there is no attribute {error.args[0][:40]!r}: the file declares "
                f"{len(self.positions)} attributes, counted from 0"
            ) from None
        if len(set(places)) < len(places):
            twice = listed(repeated(parts[0::2]))
            raise DataFormatError(f"the row contains an attribute twice: {twice}")
        return places, parts[1::2]

    def table(self) -> Table:
        """Return the table, after all lines were read."""
        if not self.lines:
            raise DataFormatError(
                "there are no rows after @data: the file is empty, no ARFF file or incomplete"
            )
        shape = len(self.lines), len(self.attributes)
        values: Any = np.array(self.values)
        if self.is_sparse:
            parts = values, np.array(self.indices), np.array(self.starts)
            values = sp.csr_array(parts, shape)
            values.sort_indices()
        else:
            values = values.reshape(shape)
        return Table(
            self.attributes,
            values,
            [(self.content.path, self.lines)],
            title=self.relation,
            max_cells=self.content.max_cells,
        )


def _plain_float(text: str) -> float:
    """Convert a text to a number; unlike ``float``, reject underscores as in 1_000.

    >>> _plain_float(" 1e3 ")
    1000.0
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _not_kept(_text: str) -> float:
    return np.nan


def _unquoted(cell: str) -> str:
    r"""Return the text of a cell without quotes and escapes.

    >>> _unquoted(r"'it\'s'"), _unquoted("plain")
    ("it's", 'plain')
    """
    if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "'\"":
        return _ESCAPE.sub(_unescaped, cell[1:-1])
    return cell


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)


def _split_cells(text: str) -> list[str]:
    """Return the cells of a comma-separated row."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    return [_unquoted(cell.strip()) for cell in _matches(_CELL, text)]


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the parts of a text that consists of matches with commas between them."""
    parts = []
    position, end = 0, ","
    while end:
        match = pattern.match(text, position)
        if not match:
            raise DataFormatError(
                f"cannot parse {text[position : position + 40]!r}: a quote is not closed, or a "
                "comma is missing or superfluous"
            )
        parts.append(match[1])
        position, end = match.end(), match[2]
    return parts
