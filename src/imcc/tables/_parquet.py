"""Parquet files, opened within limits on what they declare and expand to.

pyarrow allocates what a file declares, and a kilobyte can declare gigabytes; its functions about
the metadata of columns end the process if that is damaged.  So the footer and the headers of the
pages, which are in Thrift's compact protocol, are read here first.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from imcc._utils.errors import given
from imcc._utils.optional import require
from imcc.datasets import DataFormatError
from imcc.datasets._files import Content
from imcc.tables._columns import arrow, compute, damage_reported

# Bytes of memory per byte on disk that a file may take; small files may take more.
_RATIO = 64
# Every page has a header: more pages than this would overlap.
_FEWEST_BYTES_PER_PAGE = 8

# Types of Thrift.
_I32, _I64, _LIST, _STRUCT = 5, 6, 9, 12

# Columns may be nested so deeply.
_DEEPEST = 100

# Numbers in Parquet: the encodings of text that pyarrow cannot read as a dictionary, in one of
# which words can repeat the beginning of the word before; and types of pages, with the field that
# is their header and the field of that header that is the encoding.
_DELTA = (6, 7)
_DICTIONARY_PAGE = 2
_PAGES = {0: (5, 2), _DICTIONARY_PAGE: (7, 2), 3: (8, 4)}

# Values by number and type of the field, as a type that differs is not the field.
Struct = dict[tuple[int, int], Any]

# Numbers of the fields that are kept of the footer and of the header of a page, and of what is in
# them; the others are skipped.
_FOOTER: dict[int, Any] = {
    2: {5: {}},  # elements of the schema: number of children
    4: {1: {3: {5: {}, 9: {}, 11: {}}}, 3: {}},  # row groups: columns (values, offsets), rows
}
_PAGE: dict[int, Any] = {1: {}, 2: {}, 3: {}}  # type, size, size on disk
_PAGE |= {header: {1: {}, encoding: {}} for header, encoding in _PAGES.values()}


class _Leaf(NamedTuple):
    """A column as it is stored: the type of its field, whether it has words, and their length."""

    kind: Any
    has_words: bool
    length: int


class ParquetSource:
    """A Parquet file whose sizes are checked before its rows are read.

    Parameters
    ----------
    source : str or bytes
        The file, or its content.
    limits : Content
        Its path and size on disk, from which the limit of the memory follows.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    n_rows : int
        Number of rows.
    """

    def __init__(self, source: str | bytes, limits: Content) -> None:
        self._source, self._path = source, limits.path
        with self._opened() as file, self._damage_reported():
            footer, self._on_disk = _footer(file)
            _check_depth(footer[2, _LIST])
            self._groups = [(group[3, _I64], group[1, _LIST]) for group in footer[4, _LIST]]
            with self._reader() as reader:
                self._metadata, self.schema = reader.metadata, reader.schema_arrow
                stored = [reader.schema.column(j) for j in range(self._metadata.num_columns)]
                kinds = [field.type for field in self.schema for _ in range(_n_leaves(field.type))]
                self._leaves = [
                    _Leaf(kind, column.physical_type == "BYTE_ARRAY", column.length)
                    for kind, column in zip(kinds, stored, strict=True)
                ]
            widths = {len(kinds), *(len(chunks) for _, chunks in self._groups)}
            if len(widths) > 1 or len(self._groups) != self._metadata.num_row_groups:
                raise ValueError("its row groups do not match its columns")
            if any(n_rows < 0 for n_rows, _ in self._groups):
                raise ValueError("its row groups have negative sizes")
            _ = self.schema.names  # an error if these are no text
        self.n_rows: int = sum(n_rows for n_rows, _ in self._groups)
        self._limit: int = max(limits.max_arrays, _RATIO * limits.size)
        if limits.max_bytes is not None:
            self._limit = limits.max_bytes

    def parts(self, rows: int | None = None) -> Iterator[Any]:
        """Yield the rows in parts.

        Parameters
        ----------
        rows : int, default=None
            Maximum number of rows of a part, each of which has to be within the limit.  None means
            that all parts together have to.

        Yields
        ------
        pyarrow.Table
        """
        needed = n_pages = 0
        with self._damage_reported():
            if rows is None:
                # As numbers; rows with text become objects of Python as well.
                self._check(self.n_rows * (8 * max(len(self._leaves), 1) + 64))
            for number, (n_rows, chunks) in enumerate(self._groups):
                with self._opened() as file:
                    pages = [_pages(file, chunk[3, _STRUCT]) for chunk in chunks]
                n_pages += sum(found.count for found in pages)
                if n_pages * _FEWEST_BYTES_PER_PAGE > self._on_disk:
                    raise ValueError("its pages overlap")
                coded = [
                    j
                    for j, (leaf, found) in enumerate(zip(self._leaves, pages, strict=True))
                    if leaf.has_words and not found.delta
                ]
                step = self._step(n_rows if rows is None else min(rows, n_rows), pages)
                with self._reader(metadata=self._metadata, read_dictionary=coded) as reader:
                    for batch in reader.iter_batches(step, row_groups=[number], use_threads=False):
                        batch.validate(full=True)
                        text = sum(map(_text_bytes, batch.columns))
                        needed = batch.nbytes + text + (needed if rows is None else 0)
                        self._check(needed)
                        yield self._with_text(batch)

    def _damage_reported(self) -> Any:
        return damage_reported(self._path, "a Parquet file")

    def _opened(self) -> IO[bytes]:
        source = self._source
        return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")

    def _reader(self, **options: Any) -> Any:
        parquet = require("pyarrow.parquet", "Reading Parquet files")
        source = self._source
        opened = arrow().BufferReader(source) if isinstance(source, bytes) else source
        return parquet.ParquetFile(opened, **options)

    def _check(self, needed: int) -> None:
        if needed > self._limit:
            raise DataFormatError(
                f"its rows would need {needed:,} bytes, more than the limit of {self._limit:,} for "
                "a file of this size; if you trust the file, raise the limit with "
                + given("max_bytes"),
                self._path,
            )

    def _step(self, n_rows: int, pages: list[_Pages]) -> int:
        """Return how many rows of a row group can be read at a time within the limit."""

        def needed(step: int) -> int:
            total = 0
            for leaf, found in zip(self._leaves, pages, strict=True):
                width = max(8, leaf.length, found.longest if found.delta else 0)
                total += width * _slots(leaf.kind, step, found.values) + 16 * found.words
                total += found.bytes if leaf.has_words else found.longest
            return total

        while n_rows > 1 and needed(n_rows) > self._limit:
            n_rows //= 2
        self._check(needed(n_rows))
        return max(n_rows, 1)

    def _with_text(self, batch: Any) -> Any:
        """Return a batch as a table with text as in the schema, not as dictionaries."""
        types, columns = arrow().types, []
        for field, values in zip(self.schema, batch.columns, strict=True):
            has_fields = types.is_struct(field.type) or types.is_map(field.type)
            same = values.type == field.type or has_fields
            columns.append(values if same else values.cast(field.type))
        table = arrow().Table.from_arrays(columns, names=self.schema.names)
        return table.replace_schema_metadata(self.schema.metadata)


def _inside(kind: Any) -> list[Any]:
    """Return the types that a nested type consists of; none for other types."""
    pa = arrow()
    if isinstance(kind, pa.BaseExtensionType):
        return _inside(kind.storage_type)
    if pa.types.is_struct(kind):
        return [kind.field(i).type for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if pa.types.is_nested(kind) else []


def _n_leaves(kind: Any) -> int:
    """Return how many columns are stored for a field of a type."""
    return sum(map(_n_leaves, _inside(kind))) or 1


def _slots(kind: Any, rows: int, values: int) -> int:
    """Return how many values rows of a type have at most, if they have so many in the file."""
    types = arrow().types
    if isinstance(kind, arrow().BaseExtensionType):
        kind = kind.storage_type
    if types.is_fixed_size_list(kind):  # in which a missing list takes as much space
        rows *= kind.list_size
    elif types.is_nested(kind) and not types.is_struct(kind):
        rows = values
    return max((_slots(inner, rows, values) for inner in _inside(kind)), default=rows)


def _text_bytes(values: Any) -> int:
    """Return how many bytes text in dictionaries takes if it is repeated in every row."""
    types = arrow().types
    if types.is_struct(values.type):
        return sum(map(_text_bytes, values.flatten()))
    if types.is_map(values.type):
        return _text_bytes(values.keys) + _text_bytes(values.items)
    if types.is_nested(values.type):
        return _text_bytes(values.flatten())
    if not types.is_dictionary(values.type):
        return 0
    lengths = compute().binary_length(values.dictionary)
    return 8 * len(values) + (compute().sum(lengths.take(values.indices)).as_py() or 0)


@dataclass
class _Pages:
    """What the pages of a column declare.

    ``words`` is the length of the dictionary, ``longest`` the bytes of the largest page, and
    ``delta`` whether a page has such an encoding, so that each word can be as long.
    """

    count: int = 0
    values: int = 0
    words: int = 0
    bytes: int = 0
    longest: int = 0
    delta: bool = False


def _footer(file: IO[bytes]) -> tuple[Struct, int]:
    """Return the metadata of a file, and its size."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    length, mark = int.from_bytes(file.read(4), "little"), file.read(4)
    if mark != b"PAR1" or length > size - 12:
        raise ValueError("it does not end as a Parquet file does")
    file.seek(size - 8 - length)
    return _struct(io.BytesIO(file.read(length)), _FOOTER), size


def _check_depth(schema: list[Struct]) -> None:
    """Refuse columns that are nested so deeply that pyarrow's recursion could end the process."""
    to_come: list[int] = []  # children of each open group
    for element in schema:
        while to_come and not to_come[-1]:
            to_come.pop()
        if to_come:
            to_come[-1] -= 1
        to_come.append(element.get((5, _I32), 0))
        if len(to_come) > _DEEPEST:
            raise ValueError("its columns are nested too deeply")


def _pages(file: IO[bytes], chunk: Struct) -> _Pages:
    """Return the sizes of the pages of a column, which is read until it has all its values."""
    found = _Pages()
    file.seek(min(chunk[9, _I64], chunk.get((11, _I64), 0) or chunk[9, _I64]))
    while found.values < chunk[5, _I64]:
        page = _struct(file, _PAGE)
        kind, unpacked, packed = page[1, _I32], page[2, _I32], page[3, _I32]
        if kind in _PAGES:
            number, encoding = _PAGES[kind]
            header = page[number, _STRUCT]
            values = header[1, _I32]
            found.delta |= header.get((encoding, _I32)) in _DELTA
        else:  # which is skipped
            values = 0
        if min(unpacked, packed, values) < 0:
            raise ValueError("its pages have negative sizes")
        if kind == _DICTIONARY_PAGE:
            found.words += values
        else:
            found.values += values
        found.count += 1
        found.bytes += unpacked
        found.longest = max(found.longest, unpacked)
        file.seek(packed, os.SEEK_CUR)
    return found


def _struct(file: IO[bytes], kept: dict[int, Any]) -> Struct:
    """Read a struct in Thrift's compact protocol; return the fields that are kept."""
    found: Struct = {}
    number = 0
    while kind := (head := file.read(1)[0]) & 15:
        number = number + (head >> 4) if head >> 4 else _integer(file)
        # True and false are types of fields, without a value.
        value = None if kind <= 2 else _value(file, kind, kept.get(number, {}))
        if (number, kind) in found:
            raise ValueError("its metadata has a field twice")
        if number in kept:
            found[number, kind] = value
    return found


def _value(file: IO[bytes], kind: int, kept: dict[int, Any]) -> Any:
    if kind <= 3:  # a byte; in a list also true or false
        return file.read(1)[0]
    if kind <= 6:
        return _integer(file)
    if kind <= 8:  # a float, or bytes
        length = 8 if kind == 7 else _unsigned(file)
        if len(file.read(length)) < length:
            raise ValueError("its metadata is cut off")
        return None
    if kind <= 10:  # a list or a set
        head = file.read(1)[0]
        count = head >> 4 if head >> 4 < 15 else _unsigned(file)
        found = (_value(file, head & 15, kept) for _ in range(count))
        return [value for value in found if kept]
    if kind == _STRUCT:
        return _struct(file, kept)
    raise ValueError(f"its metadata has a value of the unknown type {kind}")


def _integer(file: IO[bytes]) -> int:
    value = _unsigned(file)
    return value >> 1 if not value & 1 else -(value >> 1) - 1


def _unsigned(file: IO[bytes]) -> int:
    value = shift = 0
    while (byte := file.read(1)[0]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        if shift > 63:
            raise ValueError("its metadata has a number that is too large")
    return value | byte << shift
