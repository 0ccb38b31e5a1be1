"""Reading of tables from files, completely or in parts, with cells as they are written."""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from imcc._utils.cells import csv_rows
from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc._utils.optional import require
from imcc._utils.progress import is_watched, report_progress
from imcc.datasets import DataFormatError
from imcc.datasets._files import Content, Source, check_text, inner_name, open_content
from imcc.tables._columns import (
    arrow,
    column_names,
    is_text,
    release_memory,
    to_python,
    without_views,
)
from imcc.tables._json_lines import read_json_lines
from imcc.tables._parquet import ParquetSource
from imcc.tables._sheet import read_sheet

#: Delimiters of text files that are detected.
DELIMITERS = (",", ";", "\t", "|")
_PARQUET = (".parquet", ".pq")
_SHEET = ".xlsx"
_JSON_LINES = (".jsonl", ".ndjson")
#: Suffixes of the files that are tables.
SUFFIXES = (".csv", ".tsv", *_PARQUET, _SHEET, *_JSON_LINES)
# Of spreadsheet programs, but not read.
_OTHER_SHEETS = (".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
# Number of bytes of a file in which the delimiter is detected.
_SAMPLE = 2**16
# Number of bytes of text, or rows of Parquet, that are read at a time.
_BLOCK_BYTES = 2**20
# Block sizes of Arrow in bytes; the next one is used if a row is longer.  Arrow reads up to 32
# blocks ahead, so that large blocks would read small files completely.
_BLOCK_SIZES = (2**18, 2**22, 2**26)
_BLOCK_ROWS = 8192
# Number of columns of a text file that are read, each of which takes so much memory in Arrow.
_MOST_COLUMNS, _COLUMN_BYTES = 2**16, 2**14
# Number of bytes of a column per chunk.
_PIECE_BYTES = 2**26
# A column is dictionary-encoded if it has at most the first number of distinct values, or at most
# the second and a quarter of the rows of a part.
_FEW_CODES, _MOST_CODES = 64, 8192


def is_table(source: Source, member: str | None = None) -> bool:
    """Return whether a file is a table by its name: CSV, Parquet, ..., or one in a .zip.

    >>> is_table("a.csv.gz"), is_table("a.arff")
    (True, False)
    """
    return file_name(source, member).lower().endswith((*SUFFIXES, *_OTHER_SHEETS))


def file_name(source: Source, member: str | None = None) -> str:
    """Return the name of a file without folders; of a packed one, that of the file inside."""
    if isinstance(source, Content):
        return source.name
    path = os.fspath(source)
    if path.lower().endswith(".zip") and not inner_name(path).lower().endswith(SUFFIXES):
        if member is None:
            with contextlib.suppress(OSError, DataFormatError):  # reading it says what is wrong
                return open_content(path).name
        return os.path.basename(member or "")
    return inner_name(path)


@dataclass(frozen=True)
class TableFile:
    r"""A CSV, TSV, Parquet or JSON lines file or a spreadsheet, with its reading options.

    Parameters
    ----------
    source : path-like or Content
        The file; may be compressed: ``.csv.gz``, ``.csv.bz2``, or in a ``.zip`` archive.  It is
        Parquet, a spreadsheet or JSON lines (``.jsonl``) if its name says so, and CSV otherwise.
    delimiter : str, default=None
        Delimiter of a text file.  None detects commas, semicolons, tabs and vertical bars; an
        ambiguous file is an error.
    header : bool, default=True
        Whether the first row has the column names; otherwise they are ``column0, column1, ...``.
    encoding : str, default=None
        Encoding of a text file; None means UTF-8, or that of a byte order mark.
    max_bytes : int, default=None
        As for :func:`imcc.datasets.read`, for compressed and Parquet files and spreadsheets.
    member : str, default=None
        File in a ``.zip`` archive, or sheet of a spreadsheet, if there are several.
    """

    source: Source
    delimiter: str | None = None
    header: bool = True
    encoding: str | None = None
    max_bytes: int | None = None
    member: str | None = None

    def __post_init__(self) -> None:
        if self._file_name.lower().endswith(_OTHER_SHEETS):
            raise DataFormatError(
                "this is a workbook of a spreadsheet program in a format that is not read: save it "
                "as .xlsx, or the sheet as CSV in UTF-8",
                self.path,
            )
        texts = ("delimiter", "encoding", *(() if self._is_sheet or self.header else ("header",)))
        for option in () if self._is_csv else texts:
            if getattr(self, option) not in (None, True):
                raise InvalidArgumentError(option, f"is for files of text, not for {self.path}")
        if self.member is not None and not (self._is_archive or self._is_sheet):
            raise InvalidArgumentError(
                "member", f"is a file in a .zip archive or a sheet, and {self.path} has none"
            )

    @property
    def path(self) -> str:
        """Path of the file, for messages."""
        return self.source.path if isinstance(self.source, Content) else os.fspath(self.source)

    @property
    def name(self) -> str:
        """Name of the file without folders and suffix."""
        return os.path.splitext(self._file_name)[0]

    def read(self) -> Any:
        """Return the whole table.

        Columns of a text file with few distinct values are dictionary-encoded, which needs a
        fraction of the memory; their values are the same.

        Returns
        -------
        pyarrow.Table
        """
        # Text is also read in parts: reading it at once needs twice the memory.
        if not self._is_csv:
            return arrow().concat_tables(self.parts(whole=True))
        columns: dict[str, _Gathered] = {}
        n_rows, expected = 0, self.estimated_rows() if is_watched() else None
        for part in self.parts():
            for name in part.column_names:
                columns.setdefault(name, _Gathered()).add(part[name])
            n_rows += part.num_rows
            if expected is not None:
                report_progress(n_rows, max(n_rows, expected), f"{n_rows:,} rows of {self.name}")
        del part
        table = arrow().table({name: column.result() for name, column in columns.items()})
        release_memory()
        return table

    def parts(self, *, whole: bool = False) -> Iterator[Any]:
        """Yield the table in parts of some thousand rows, so that it need not fit into memory.

        Parameters
        ----------
        whole : bool, default=False
            Whether all parts of a Parquet file together have to be within the limit on sizes.

        Yields
        ------
        pyarrow.Table
        """
        opened, n_rows = self._opened(), 0
        if self._is_sheet:
            parts = self._sheet_parts(opened)
        elif self._is_json_lines:
            parts = self._json_parts(opened)
        elif self._is_parquet:
            parts = self._parquet(opened).parts(None if whole else _BLOCK_ROWS)
        else:
            parts = self._text_parts(opened)
        for part in parts:
            if part.num_rows:
                n_rows += part.num_rows
                yield part
                # Memory reserved for freed parts would grow with the file.
                del part
                release_memory()
        if not n_rows:
            raise DataFormatError("the file has no rows", self.path)

    def line_of(self, row: int) -> int | None:
        """Return the line of the file in which a row begins; None if it is not known.

        Parameters
        ----------
        row : int
            Index of the row, from 0, without the header.

        Returns
        -------
        int or None
        """
        if not self._is_csv:
            return None
        opened = self._opened()
        layout = self._layout(opened)
        for number, (line, _) in enumerate(self._records(opened, layout)):
            if number == row + int(self.header):
                return line
        return None

    def estimated_rows(self) -> int | None:
        """Return the number of rows, estimated from the file size for text; None if unknown."""
        opened = self._opened()
        if self._is_sheet or self._is_json_lines:
            return None
        if self._is_parquet:
            return self._parquet(opened).n_rows
        with _binary(opened) as file:
            head = file.read(_SAMPLE)
            size = file.seek(0, os.SEEK_END)
        lines = head.count(b"\n")
        return max(round(lines * size / len(head)) - int(self.header), 1) if lines else None

    @property
    def limits(self) -> Content:
        """The path and size of the file, from which limits on sizes follow."""
        if isinstance(self.source, Content):
            return self.source
        return Content(
            b"",
            self._file_name,
            self.path,
            Path(self.path),
            self.max_bytes,
            os.path.getsize(self.path),
        )

    @property
    def _is_parquet(self) -> bool:
        return self._file_name.lower().endswith(_PARQUET)

    @property
    def _is_sheet(self) -> bool:
        return self._file_name.lower().endswith(_SHEET)

    @property
    def _is_json_lines(self) -> bool:
        return self._file_name.lower().endswith(_JSON_LINES)

    @property
    def _is_csv(self) -> bool:
        return not (self._is_parquet or self._is_sheet or self._is_json_lines)

    @property
    def _is_archive(self) -> bool:
        return not isinstance(self.source, Content) and self.path.lower().endswith(".zip")

    @functools.cached_property
    def _file_name(self) -> str:
        return file_name(self.source, self.member)

    def _opened(self) -> str | bytes:
        """Return the path of an uncompressed file, or the bytes of a compressed one."""
        source = self.source
        if isinstance(source, Content):
            return source.data
        path = os.fspath(source)
        if inner_name(path) != os.path.basename(path):
            return open_content(path, max_bytes=self.max_bytes, member=self.member).data
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path} is a folder; give the file in it")
        with open(path, "rb"):  # a missing file is not a damaged one
            return path

    def _layout(self, opened: str | bytes) -> _Layout:
        """Determine the encoding, the delimiter and the column names."""
        path = self.path
        with _binary(opened) as file:
            head = file.read(_SAMPLE)
            encoding = self.encoding or _encoding_of(head)
            if not encoding.lower().startswith(("utf-16", "utf-32")):
                check_text(head, path)
            file.seek(0)
            try:
                text = io.TextIOWrapper(file, encoding, newline="")
            except LookupError as error:
                raise InvalidArgumentError(
                    "encoding", f"{encoding!r} is not known to Python"
                ) from error
            try:
                return self._layout_of(text, encoding)
            except UnicodeError as error:
                raise DataFormatError(self._not_text(), path) from error
            except csv.Error as error:
                problem, line = error.args
                raise DataFormatError(
                    f"the first row cannot be parsed: {problem}", path, line
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
            is_tsv = self._file_name.lower().endswith(".tsv")
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

    def _text_parts(self, opened: str | bytes) -> Iterator[Any]:
        pa = arrow()
        layout = self._layout(opened)
        n_rows, end = 0, ""
        try:
            for part in _gathered(self._pieces(opened, layout)):
                if part.num_rows:
                    n_rows += part.num_rows
                    end = part[part.num_columns - 1][-1].as_py()
                    yield part
        except UnicodeError as error:
            raise DataFormatError(self._not_text(), self.path) from error
        except pa.ArrowException as error:
            said = str(error).splitlines()[0]
            if "UTF8" in said:
                raise DataFormatError(self._not_text(), self.path) from error
            self._refuse_uneven(opened, layout)
            raise DataFormatError(
                f"the file cannot be read as a table: {said}", self.path
            ) from error
        if ("\n" in end or "\r" in end) and not _ends_with_quote(opened):
            raise DataFormatError(
                "the last cell of the row goes on to the end of the file, because a quotation mark "
                "at its beginning is not closed",
                self.path,
                self.line_of(n_rows - 1),
            )

    def _options(self, layout: _Layout, block_size: int) -> dict[str, Any]:
        """Return the options of Arrow for reading the file."""
        pa = arrow()
        reader = require("pyarrow.csv", "Reading tables")
        names, utf8 = layout.names, layout.encoding.lower().startswith("utf-8")
        return {
            "read_options": reader.ReadOptions(
                column_names=names,
                skip_rows=layout.n_above,
                skip_rows_after_names=1 if self.header else 0,
                encoding="utf8" if utf8 else layout.encoding,
                block_size=block_size,
                use_threads=False,
            ),
            "parse_options": reader.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
            ),
            "convert_options": reader.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        }

    def _pieces(self, opened: str | bytes, layout: _Layout) -> Iterator[Any]:
        """Yield the rows in small blocks, or in larger ones if a row is longer than a block."""
        pa = arrow()
        reader = require("pyarrow.csv", "Reading tables")
        given_before = 0
        for size in _BLOCK_SIZES:
            seen = 0
            source = opened if isinstance(opened, str) else pa.BufferReader(opened)
            try:
                for batch in reader.open_csv(source, **self._options(layout, size)):
                    again = min(max(given_before - seen, 0), batch.num_rows)
                    seen += batch.num_rows
                    yield pa.Table.from_batches([batch.slice(again)])
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or size == _BLOCK_SIZES[-1]:
                    raise
            given_before = max(given_before, seen)

    def _refuse_uneven(self, opened: str | bytes, layout: _Layout) -> None:
        """Raise an error that names the first row with another number of cells than the header."""
        for line, cells in self._records(opened, layout):
            if len(cells) != len(layout.names):
                raise DataFormatError(
                    f"the row has {len(cells)} cells, and the first has {len(layout.names)}; if "
                    f"{layout.delimiter!r} is not the delimiter, specify it with "
                    + given("delimiter"),
                    self.path,
                    line,
                )

    def _records(self, opened: str | bytes, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows as read by the csv module, with the lines in which they begin.

        It does not read cells of more than 131,072 characters, and ends there.
        """
        with (
            _binary(opened) as file,
            io.TextIOWrapper(file, layout.encoding, errors="replace", newline="") as text,
            contextlib.suppress(csv.Error),
        ):
            yield from csv_rows(text, layout.delimiter, header=self.header)

    def _not_text(self) -> Message | str:
        if self.encoding is not None:
            return f"the file is not text in the encoding {self.encoding!r}"
        return "the file is not UTF-8: specify the encoding with " + given("encoding", "latin-1")

    def _parquet(self, opened: str | bytes) -> ParquetSource:
        limits = self.limits
        return ParquetSource(opened, self.path, size=limits.size, max_bytes=limits.max_bytes)

    def _json_parts(self, opened: str | bytes) -> Iterator[Any]:
        with _binary(opened) as file:
            yield read_json_lines(file, self.limits)

    def _sheet_parts(self, opened: str | bytes) -> Iterator[Any]:
        with _binary(opened) as file:
            sheet = None if self._is_archive else self.member
            yield read_sheet(file, self.limits, sheet, self.header)


def _gathered(tables: Iterator[Any]) -> Iterator[Any]:
    """Concatenate small tables to tables of about :data:`_BLOCK_BYTES`."""
    waiting: list[Any] = []
    for table in tables:
        waiting.append(table)
        if sum(part.nbytes for part in waiting) >= _BLOCK_BYTES:
            yield arrow().concat_tables(waiting)
            waiting = []
    if waiting:
        yield arrow().concat_tables(waiting)


class _Gathered:
    """A column of text read in parts, dictionary-encoded as long as this saves memory."""

    def __init__(self) -> None:
        self.codes: dict[str, int] | None = {}
        self.parts: list[Any] = []

    def add(self, values: Any) -> None:
        """Append the cells of a part."""
        pa = arrow()
        for chunk in values.chunks:
            if self.codes is None:
                self.parts.append(chunk)
                continue
            coded = chunk.dictionary_encode()
            new = [word for word in coded.dictionary.to_pylist() if word not in self.codes]
            most = min(_MOST_CODES, max(_FEW_CODES, len(values) // 4))
            if new and len(self.codes) + len(new) > most:
                self._give_up()
                self.parts.append(chunk)
                continue
            self.codes |= {word: len(self.codes) + k for k, word in enumerate(new)}
            numbers = np.array([self.codes[w] for w in coded.dictionary.to_pylist()], np.int16)
            self.parts.append(pa.array(numbers[coded.indices.to_numpy()], pa.int16()))

    def _give_up(self) -> None:
        """Stop encoding: there are too many distinct values."""
        pa = arrow()
        assert self.codes is not None
        words = pa.array(list(self.codes), pa.string())
        self.parts = [words.take(part) for part in self.parts]
        self.codes = None

    def result(self) -> Any:
        """Return the column; the parts are released."""
        pa = arrow()
        joined, parts = [], self.parts
        self.parts = []
        # In few chunks: thousands of small ones need twice the memory, due to fragmentation.
        while parts:
            count = int(np.searchsorted(np.cumsum([part.nbytes for part in parts]), _PIECE_BYTES))
            joined.append(pa.concat_arrays(parts[: count + 1], pa.system_memory_pool()))
            del parts[: count + 1]
        if self.codes is None:
            return pa.chunked_array(joined, pa.string())
        words = pa.array(list(self.codes), pa.string())
        codes = pa.int8() if len(words) <= 128 else pa.int16()
        return pa.chunked_array(
            [pa.DictionaryArray.from_arrays(part.cast(codes), words) for part in joined],
            pa.dictionary(codes, pa.string()),
        )


def decoded(table: Any) -> Any:
    """Return a table with dictionary-encoded columns of text decoded.

    Parameters
    ----------
    table : pyarrow.Table
        The table.

    Returns
    -------
    pyarrow.Table
    """
    pa = arrow()
    for j, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table[name].type) and is_text(table[name]):
            values = without_views(table[name])
            table = table.set_column(j, name, values.cast(values.type.value_type))
    return table


def joined_tables(tables: Sequence[Any]) -> Any:
    """Concatenate tables with the same columns.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        Tables with the same columns in the same order.

    Returns
    -------
    pyarrow.Table
    """
    if len(tables) == 1:
        return tables[0]
    if any(table.schema.types != tables[0].schema.types for table in tables):
        tables = [decoded(table) for table in tables]
    # The same codes may stand for different values in different files.
    return arrow().concat_tables(tables).unify_dictionaries()


@dataclass(frozen=True)
class _Layout:
    names: list[str]
    delimiter: str
    encoding: str
    n_above: int  # empty lines above the first row


def _binary(opened: str | bytes) -> IO[bytes]:
    return open(opened, "rb") if isinstance(opened, str) else io.BytesIO(opened)


def _ends_with_quote(opened: str | bytes) -> bool:
    with _binary(opened) as file:
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


def table_fingerprint(table: Any) -> str:
    """Return a SHA-256 hash of the names and cells of a table, independent of its chunks.

    Parameters
    ----------
    table : pyarrow.Table
        The table.

    Returns
    -------
    str

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"a": ["x", "y", "z"]})
    >>> again = pa.concat_tables([table[:1], table[1:]])
    >>> table_fingerprint(table) == table_fingerprint(again)
    True
    """
    pa = arrow()
    pacsv = require("pyarrow.csv", "Reading tables")
    digest = hashlib.sha256()
    # A block at a time: plain text takes far more memory than codes.
    for start in range(0, max(table.num_rows, 1), _BLOCK_ROWS):
        block = decoded(table.slice(start, _BLOCK_ROWS))
        for j, name in enumerate(block.column_names):
            if getattr(block[name].type, "tz", None) is not None:  # which may not be known here
                in_utc = block[name].cast(pa.timestamp(block[name].type.unit, "UTC"))
                block = block.set_column(j, name, in_utc)
            elif not _has_text_form(block[name].type):
                texts = [repr(value) for value in to_python(block[name])]
                block = block.set_column(j, name, pa.array(texts, pa.string()))
        written = pa.BufferOutputStream()
        pacsv.write_csv(block, written, pacsv.WriteOptions(include_header=start == 0))
        digest.update(written.getvalue())
    return digest.hexdigest()


def _has_text_form(kind: Any) -> bool:
    """Return whether Arrow can write the values of a type as text."""
    types = arrow().types
    tests = (
        *(types.is_null, types.is_primitive, types.is_decimal, types.is_string),
        *(types.is_large_string, types.is_binary, types.is_large_binary),
        types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests) and not types.is_interval(kind)
