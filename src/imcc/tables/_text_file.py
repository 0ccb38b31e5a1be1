"""Text files with a table: CSV, TSV and the like, read in parts, with cells as they are written."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from imcc._utils.cells import csv_rows
from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc._utils.optional import require
from imcc.datasets import DataFormatError
from imcc.datasets._files import Content, check_text
from imcc.tables._columns import arrow, column_names

#: Delimiters of text files that are detected.
DELIMITERS = (",", ";", "\t", "|")
# Number of bytes of a file in which the delimiter is detected.
_SAMPLE = 2**16
# Number of bytes of text that are read at a time.
_BLOCK_BYTES = 2**20
# Block sizes of Arrow in bytes; the next one is used if a row is longer.  Arrow reads up to 32
# blocks ahead, so that large blocks would read small files completely.
_BLOCK_SIZES = (2**18, 2**22, 2**26)
# Number of columns of a text file that are read, each of which takes so much memory in Arrow.
_MOST_COLUMNS, _COLUMN_BYTES = 2**16, 2**14


class _Layout(NamedTuple):
    names: list[str]
    delimiter: str
    encoding: str
    n_above: int  # empty lines above the first row


@dataclass(frozen=True)
class TextFile:
    """A text file with a table.

    Parameters
    ----------
    opened : str or bytes
        Path of the file, or its content.
    limits : Content
        Its path and size; and its name, whose suffix may tell the delimiter.
    delimiter, header, encoding
        As for :class:`imcc.tables._read.TableFile`.
    """

    opened: str | bytes
    limits: Content
    delimiter: str | None
    header: bool
    encoding: str | None

    def parts(self) -> Iterator[Any]:
        """Yield the rows in tables of about :data:`_BLOCK_BYTES`."""
        pa = arrow()
        n_rows, end = 0, ""
        waiting: list[Any] = []
        try:
            for piece in self._pieces():
                waiting.append(piece)
                if sum(part.nbytes for part in waiting) >= _BLOCK_BYTES:
                    yield pa.concat_tables(waiting)
                    waiting = []
                if piece.num_rows:
                    n_rows += piece.num_rows
                    end = piece[piece.num_columns - 1][-1].as_py()
            if waiting:
                yield pa.concat_tables(waiting)
        except (UnicodeError, pa.ArrowException) as error:
            said = str(error).splitlines()[0]
            if isinstance(error, UnicodeError) or "UTF8" in said:
                raise DataFormatError(self._not_text(), self.path) from error
            self._refuse_uneven()
            raise DataFormatError(
                f"the file cannot be read as a table: {said}", self.path
            ) from error
        if ("\n" in end or "\r" in end) and not self._ends_with_quote():
            raise DataFormatError(
                "the last cell of the row goes on to the end of the file, because a quotation mark "
                "at its beginning is not closed",
                self.path,
                self.line_of(n_rows - 1),
            )

    def line_of(self, row: int) -> int | None:
        """Return the line of the file in which a row begins; None if it is not known."""
        records = islice(self._records(), row + int(self.header), None)
        return next((line for line, _ in records), None)

    def estimated_rows(self) -> int | None:
        """Return the number of rows, estimated from the first lines; None if these are no lines."""
        with self._binary() as file:
            head = file.read(_SAMPLE)
            size = file.seek(0, os.SEEK_END)
        lines = head.count(b"\n")
        return max(round(lines * size / len(head)) - int(self.header), 1) if lines else None

    @property
    def path(self) -> str:
        """Path of the file, for messages."""
        return self.limits.path

    def _binary(self) -> IO[bytes]:
        return (
            io.BytesIO(self.opened) if isinstance(self.opened, bytes) else open(self.opened, "rb")
        )

    def _not_text(self) -> Message | str:
        if self.encoding is not None:
            return f"the file is not text in the encoding {self.encoding!r}"
        return "the file is not UTF-8: specify the encoding with " + given("encoding", "latin-1")

    @functools.cached_property
    def _layout(self) -> _Layout:
        """The encoding, the delimiter and the column names."""
        with self._binary() as file:
            head = file.read(_SAMPLE)
            encoding = self.encoding or _encoding_of(head)
            if not encoding.lower().startswith(("utf-16", "utf-32")):
                check_text(head, self.path)
            file.seek(0)
            try:
                text = io.TextIOWrapper(file, encoding, newline="")
                return self._layout_of(text, encoding)
            except LookupError as error:
                problem = f"{encoding!r} is not known to Python"
                raise InvalidArgumentError("encoding", problem) from error
            except UnicodeError as error:
                raise DataFormatError(self._not_text(), self.path) from error
            except csv.Error as error:
                problem, line = error.args
                raise DataFormatError(
                    f"the first row cannot be parsed: {problem}", self.path, line
                ) from error

    def _layout_of(self, text: io.TextIOWrapper, encoding: str) -> _Layout:
        lines = _first_lines(text)
        sample = "".join(lines)
        if not sample.strip():
            raise DataFormatError("the file is empty", self.path)
        if re.match(r"(?i)\s*sep=.?\s*[\r\n]", sample):
            raise DataFormatError(
                "the first line tells Excel the delimiter, and is no row of the table: delete it",
                self.path,
                1,
            )
        delimiter = self.delimiter
        if delimiter is None:
            is_tsv = self.limits.name.lower().endswith(".tsv")
            delimiter = "\t" if is_tsv else find_delimiter(lines, self.path)
        elif delimiter == "\\t":
            delimiter = "\t"
        elif len(delimiter) != 1:
            raise InvalidArgumentError("delimiter", f"must be one character, got {delimiter!r}")
        # The header may be longer than the sample.
        line, first = next(csv_rows(chain(lines, text), delimiter, header=self.header))
        if len(first) > max(_MOST_COLUMNS, (self.limits.max_bytes or 0) // _COLUMN_BYTES):
            raise DataFormatError(
                f"there are {len(first):,} columns, and at most {_MOST_COLUMNS:,} are read: if you "
                "trust the file, raise the limit with " + given("max_bytes"),
                self.path,
            )
        names = column_names(first if self.header else [""] * len(first), self.path)
        return _Layout(names, delimiter, encoding, line - 1)

    def _pieces(self) -> Iterator[Any]:
        """Yield the rows in small blocks, or in larger ones if a row is longer than a block."""
        pa, reader = arrow(), require("pyarrow.csv", "Reading tables")
        names, delimiter, encoding, n_above = self._layout
        options = {
            "parse_options": reader.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
            ),
            "convert_options": reader.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        }
        n_given = 0
        for size in _BLOCK_SIZES:
            how = reader.ReadOptions(
                column_names=names,
                skip_rows=n_above,
                skip_rows_after_names=int(self.header),
                encoding="utf8" if encoding.lower().startswith("utf-8") else encoding,
                block_size=size,
                use_threads=False,
            )
            n_seen = 0
            opened = self.opened
            source = opened if isinstance(opened, str) else pa.BufferReader(opened)
            try:
                for batch in reader.open_csv(source, read_options=how, **options):
                    n_seen += batch.num_rows
                    n_new = min(max(n_seen - n_given, 0), batch.num_rows)
                    n_given += n_new
                    yield pa.Table.from_batches([batch.slice(batch.num_rows - n_new)])
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or size == _BLOCK_SIZES[-1]:
                    raise

    def _refuse_uneven(self) -> None:
        """Raise an error that names the first row with another number of cells than the header."""
        width, delimiter = len(self._layout.names), self._layout.delimiter
        for line, cells in self._records():
            if len(cells) != width:
                raise DataFormatError(
                    f"the row has {len(cells)} cells, and the first has {width}; if {delimiter!r} "
                    "is not the delimiter, specify it with " + given("delimiter"),
                    self.path,
                    line,
                )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows as read by the csv module, with the lines in which they begin.

        It does not read cells of more than 131,072 characters, and ends there.
        """
        with (
            self._binary() as file,
            io.TextIOWrapper(file, self._layout.encoding, errors="replace", newline="") as text,
            contextlib.suppress(csv.Error),
        ):
            yield from csv_rows(text, self._layout.delimiter, header=self.header)

    def _ends_with_quote(self) -> bool:
        with self._binary() as file:
            file.seek(-min(file.seek(0, os.SEEK_END), 64), os.SEEK_END)
            return file.read().rstrip(b" \t\r\n\0").endswith(b'"')


def _encoding_of(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8-sig" if head.startswith(b"\xef\xbb\xbf") else "utf-8"


def _first_lines(text: io.TextIOWrapper) -> list[str]:
    """Return the lines of the first :data:`_SAMPLE` characters, and two at least."""
    lines: list[str] = []
    size = 0
    while (size < _SAMPLE or len(lines) < 2) and (line := text.readline(_BLOCK_SIZES[-1])):
        lines.append(line)
        size += len(line)
    return lines


def find_delimiter(lines: Sequence[str], path: str) -> str:
    r"""Return the delimiter, which gives all rows the same number of columns.

    >>> find_delimiter(["a;b;c\n", "1,5;2;3\n"], "x.csv")
    ';'
    """
    widths = {}
    for candidate in DELIMITERS:
        try:
            rows = [row for _, row in islice(csv_rows(lines, candidate), 100)]
        except csv.Error:  # a cell is too long, as a row is without its delimiter
            continue
        if len(rows) > 1 and rows[-1][-1].endswith(("\r", "\n")):
            rows.pop()  # the sample ends within quotes
        found = {len(row) for row in rows}
        if len(found) == 1 and found != {1}:
            widths[candidate] = found.pop()
    first = next(line for line in lines if line.strip())
    if len(widths) == 1:
        return next(iter(widths))
    if not widths:
        if not any(candidate in first for candidate in DELIMITERS):
            return ","  # a single column
        # Rows of different lengths: the reader reports where.  Or long cells.
        return max(DELIMITERS, key=first.count)
    shown = " or ".join(repr(candidate) for candidate in widths)
    raise DataFormatError(
        Message(f"the delimiter could be {shown}: specify it with ", given("delimiter")),
        path,
    )
