"""Reading of tables from files, completely or in parts, with cells as they are written."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc._utils.progress import is_watched, report_progress
from imcc.datasets import DataFormatError
from imcc.datasets._files import Content, Source, inner_name, open_content
from imcc.tables._columns import arrow, is_text, release_memory, to_python, without_views
from imcc.tables._json_lines import read_json_lines
from imcc.tables._parquet import ParquetSource
from imcc.tables._sheet import read_sheet
from imcc.tables._text_file import TextFile

_SHEET = ".xlsx"
# By suffix, for those that are not text.
_FORMATS = {
    ".parquet": ".parquet",
    ".pq": ".parquet",
    _SHEET: _SHEET,
    ".jsonl": ".jsonl",
    ".ndjson": ".jsonl",
}
#: Suffixes of the files that are tables.
SUFFIXES = (".csv", ".tsv", *_FORMATS)
# Of spreadsheet programs, but not read.
_OTHER_SHEETS = (".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
# Rows of a Parquet file that are read at a time.
_BLOCK_ROWS = 8192
# Number of bytes of a column per chunk.
_PIECE_BYTES = 2**26
# A column is dictionary-encoded if it has at most the first number of distinct values, or at most
# the second and a quarter of the rows of each part.
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
        options = ["delimiter", "encoding"] if self._format else []
        if self._format not in ("", _SHEET):
            options.append("header")
        for option in options:
            if getattr(self, option) not in (None, True):
                raise InvalidArgumentError(option, f"is for files of text, not for {self.path}")
        if self.member is not None and not (self._is_archive or self._format == _SHEET):
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
        if self._format:
            return arrow().concat_tables(self.parts(whole=True))
        # Text is also read in parts: reading it at once needs twice the memory.
        columns: dict[str, list[Any]] = {}
        n_rows, expected = 0, self.estimated_rows() if is_watched() else None
        for part in self.parts():
            for name in part.column_names:
                columns.setdefault(name, []).append(_coded(part[name]))
            n_rows += part.num_rows
            if expected is not None:
                report_progress(n_rows, max(n_rows, expected), f"{n_rows:,} rows of {self.name}")
        del part
        table = arrow().table({name: _joined(columns.pop(name)) for name in list(columns)})
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
        n_rows = 0
        for part in self._parts(whole):
            if part.num_rows:
                n_rows += part.num_rows
                yield part
                # Memory reserved for freed parts would grow with the file.
                del part
                release_memory()
        if not n_rows:
            raise DataFormatError("the file has no rows", self.path)

    def _parts(self, whole: bool) -> Iterator[Any]:
        if self._format == "":
            yield from self._text.parts()
        elif self._format == ".parquet":
            yield from self._parquet.parts(None if whole else _BLOCK_ROWS)
        else:
            opened = self._opened()
            file: IO[bytes]
            with io.BytesIO(opened) if isinstance(opened, bytes) else open(opened, "rb") as file:
                if self._format == ".jsonl":
                    yield read_json_lines(file, self.limits)
                else:
                    sheet = None if self._is_archive else self.member
                    yield read_sheet(file, self.limits, sheet, self.header)

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
        return None if self._format else self._text.line_of(row)

    def estimated_rows(self) -> int | None:
        """Return the number of rows, estimated from the file size for text; None if unknown."""
        if self._format == ".parquet":
            return self._parquet.n_rows
        return None if self._format else self._text.estimated_rows()

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
    def _format(self) -> str:
        """The suffix that stands for the format; empty for text."""
        return _FORMATS.get(os.path.splitext(self._file_name.lower())[1], "")

    @property
    def _is_archive(self) -> bool:
        return not isinstance(self.source, Content) and self.path.lower().endswith(".zip")

    @functools.cached_property
    def _file_name(self) -> str:
        return file_name(self.source, self.member)

    @property
    def _text(self) -> TextFile:
        options = self.delimiter, self.header, self.encoding
        return TextFile(self._opened(), self.limits, *options)

    @property
    def _parquet(self) -> ParquetSource:
        return ParquetSource(self._opened(), self.limits)

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


def _coded(values: Any) -> Any:
    """Return a part of a column as codes, which take less memory, if it has few distinct values."""
    coded = values.dictionary_encode().unify_dictionaries()
    most = min(_MOST_CODES, max(_FEW_CODES, len(values) // 4))
    return coded if len(coded.chunk(0).dictionary) <= most else values


def _joined(parts: list[Any]) -> Any:
    """Return a column, as codes if all of its parts are and there are few distinct values.

    It has few chunks: thousands of small ones need twice the memory, due to fragmentation.
    """
    pa = arrow()
    if all(pa.types.is_dictionary(part.type) for part in parts):
        chunks = [chunk for part in parts for chunk in part.chunks]
        column = pa.chunked_array(chunks).unify_dictionaries()
        words = column.chunk(0).dictionary
        if len(words) <= _MOST_CODES:
            codes = pa.int8() if len(words) <= 128 else pa.int16()
            indices = pa.concat_arrays([chunk.indices.cast(codes) for chunk in column.chunks])
            return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, words)])
    waiting, joined, size = [], [], 0
    while parts:
        plain = parts.pop(0).cast(pa.string())
        waiting += plain.chunks
        size += plain.nbytes
        if size >= _PIECE_BYTES or not parts:
            joined.append(pa.concat_arrays(waiting, pa.system_memory_pool()))
            waiting, size = [], 0
    return pa.chunked_array(joined, pa.string())


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
