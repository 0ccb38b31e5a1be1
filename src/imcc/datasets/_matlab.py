"""The numeric variables of MATLAB's .mat files, versions 4 to 7.

SciPy reads these files too, but was seen to crash the whole process on damaged ones.  Here every
length is checked against the bytes that are there before anything is made of it.  Variables of
other kinds (text, cells, structures) are passed over.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

# Data types of version 5 to 7.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE_CLASS = 5
_NUMERIC_CLASSES = frozenset(range(6, 16))
_COMPLEX = 0x0800
_HEADER_BYTES = 128

# Data types of version 4.
_TYPES_4 = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}


class MatlabError(Exception):
    """The bytes are not a MATLAB file."""


class _Element(NamedTuple):
    kind: int
    data: memoryview


def numeric_variables(data: bytes, max_bytes: int) -> dict[str, Any]:
    """Return the numeric matrices of a file by their names: ndarrays and csc_arrays.

    Parameters
    ----------
    data : bytes
        The file.
    max_bytes : int
        The most bytes that its compressed variables may unpack to, together.
    """
    if len(data) >= 4 and 0 in data[:4]:
        return dict(_variables_4(memoryview(data)))
    if len(data) < _HEADER_BYTES or data[126:128] not in (b"IM", b"MI"):
        raise MatlabError("it does not begin with the header of a MATLAB file")
    order = "<" if data[126:128] == b"IM" else ">"
    return dict(_variables_5(memoryview(data)[_HEADER_BYTES:], order, max_bytes))


def _variables_5(data: memoryview, order: str, max_bytes: int) -> Iterator[tuple[str, Any]]:
    left = max_bytes
    for element in _elements(data, order, padded=False):
        if element.kind == _COMPRESSED:
            unpacked = _inflate(element.data, left)
            left -= len(unpacked)
            inner = list(_elements(memoryview(unpacked), order, padded=True))
            element = inner[0] if inner else element
        if element.kind == _MATRIX and element.data:
            variable = _matrix(element.data, order)
            if variable is not None:
                yield variable


def _elements(data: memoryview, order: str, *, padded: bool) -> Iterator[_Element]:
    """Yield the elements that follow each other; inside a matrix they are padded to 8 bytes."""
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            if any(data[position:]):
                raise MatlabError("it is cut off")
            return
        word, size = struct.unpack_from(f"{order}II", data, position)
        if word >> 16:  # a small element: the length and the data are in the same 8 bytes
            kind, size = word & 0xFFFF, word >> 16
            if size > 4:
                raise MatlabError("a small element is longer than 4 bytes")
            yield _Element(kind, data[position + 4 : position + 4 + size])
            position += 8
            continue
        position += 8
        if size > len(data) - position:
            raise MatlabError(
                f"it is cut off: {size} bytes are promised, {len(data) - position} left"
            )
        yield _Element(word, data[position : position + size])
        position += size
        if padded or word != _COMPRESSED:
            position += -size % 8


def _inflate(packed: memoryview, limit: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        # One byte more than allowed is enough to know.
        unpacked = unpacker.decompress(packed, limit + 1)
    except zlib.error as error:
        raise MatlabError(f"a compressed variable is damaged: {error}") from error
    if len(unpacked) > limit:
        raise MatlabError(
            "its variables unpack to more bytes than max_bytes allows; if you trust the file, "
            "allow more"
        )
    if not unpacker.eof:
        raise MatlabError("a compressed variable is cut off")
    return unpacked


def _matrix(data: memoryview, order: str) -> tuple[str, Any] | None:
    """Return the name and the value of a matrix, or None if it does not hold numbers."""
    parts = list(_elements(data, order, padded=True))
    if len(parts) < 3 or len(parts[0].data) < 8:
        return None  # an opaque object
    flags = struct.unpack_from(f"{order}I", parts[0].data)[0]
    kind = flags & 0xFF
    if kind != _SPARSE_CLASS and kind not in _NUMERIC_CLASSES:
        return None
    shape = _array(parts[1], order).tolist()
    name = bytes(parts[2].data).decode("utf-8", "replace")
    if flags & _COMPLEX:
        return None
    if len(shape) != 2 or min(shape) < 0:
        return None
    if kind == _SPARSE_CLASS:
        return name, _sparse(parts[3:], shape, order)
    if len(parts) < 4:
        raise MatlabError(f"the variable {name!r} has no data")
    return name, _shaped(_array(parts[3], order), shape, name)


def _array(element: _Element, order: str) -> np.ndarray:
    if element.kind not in _TYPES:
        raise MatlabError(f"numbers of the unknown type {element.kind}")
    dtype = np.dtype(order + _TYPES[element.kind])
    if len(element.data) % dtype.itemsize:
        raise MatlabError("numbers are cut off")
    return np.frombuffer(element.data, dtype)


def _shaped(values: np.ndarray, shape: list[int], name: str) -> np.ndarray:
    if shape[0] * shape[1] != len(values):
        raise MatlabError(
            f"the variable {name!r} is {shape[0]} x {shape[1]}, but has {len(values)} numbers"
        )
    return values.reshape(shape, order="F")


def _sparse(parts: list[_Element], shape: list[int], order: str) -> Any:
    if len(parts) < 3:
        raise MatlabError("a sparse matrix lacks a part")
    rows, starts, values = (_array(part, order) for part in parts[:3])
    if len(starts) != shape[1] + 1:
        raise MatlabError(f"a sparse matrix of {shape[1]} columns has {len(starts)} column starts")
    stored = int(starts[-1])
    if not 0 <= stored <= min(len(rows), len(values)):
        raise MatlabError("a sparse matrix has fewer numbers than it says")
    try:
        matrix = sp.csc_array(
            (values[:stored].astype(float), rows[:stored], starts), shape=tuple(shape)
        )
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise MatlabError(f"a sparse matrix is damaged: {error}") from error
    return matrix


def _variables_4(data: memoryview) -> Iterator[tuple[str, Any]]:
    position = 0
    while position < len(data):
        if len(data) - position < 20:
            raise MatlabError("it is cut off")
        order = "<" if 0 <= struct.unpack_from("<i", data, position)[0] < 5000 else ">"
        kind, rows, columns, imaginary, name_size = struct.unpack_from(f"{order}5i", data, position)
        position += 20
        number, text_or_sparse = kind // 10 % 10, kind % 10
        if not 0 <= kind < 5000 or number not in _TYPES_4 or min(rows, columns, name_size) < 0:
            raise MatlabError("it does not begin with the header of a MATLAB file")
        dtype = np.dtype(order + _TYPES_4[number])
        size = rows * columns * dtype.itemsize
        if name_size + size * (2 if imaginary else 1) > len(data) - position:
            raise MatlabError("it is cut off")
        name = bytes(data[position : position + name_size]).rstrip(b"\0").decode("latin-1")
        position += name_size
        values = np.frombuffer(data[position : position + size], dtype)
        position += size * (2 if imaginary else 1)
        if imaginary or text_or_sparse == 1:
            continue
        matrix = _shaped(values, [rows, columns], name)
        yield name, (_sparse_4(matrix) if text_or_sparse == 2 else matrix)


def _sparse_4(triples: np.ndarray) -> Any:
    """Return the matrix of (row, column, value) lines, the last of which has the shape."""
    if triples.shape[1] != 3 or not len(triples):
        raise MatlabError("a sparse matrix is damaged")
    if not np.all(np.isfinite(triples)) or np.abs(triples[:, :2]).max() >= 2**31:
        raise MatlabError("a sparse matrix has indices that are none")
    places = triples[:, :2].astype(np.int64)
    shape = tuple(places[-1].tolist())
    places = places[:-1] - 1
    if len(places) and (places.min() < 0 or np.any(places.max(axis=0) >= shape)):
        raise MatlabError("a sparse matrix has indices beyond its size")
    return sp.coo_array((triples[:-1, 2].astype(float), tuple(places.T)), shape=shape)
