"""MATLAB .mat files (versions 5 to 7), of which damaged ones were observed to crash SciPy's reader.

Here every length is checked against the size of the file before it is used.  Only numeric matrices
are read; variables of other types (text, cells, structures) are ignored.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import Content, check_sparse

# Data types of version 5 to 7.
_NAMES = ["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8", "i8", "u8"]
_TYPES = dict(zip((1, 2, 3, 4, 5, 6, 7, 9, 12, 13), _NAMES, strict=True))
_MATRIX, _COMPRESSED = 14, 15
_SPARSE_CLASS = 5
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x0800
_HEADER_BYTES = 128


def load_mat(content: Content) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numeric matrices of a file by their names; it has no names of columns."""
    if content.data[:8] == b"\x89HDF\r\n\x1a\n" or content.data[:19] == b"MATLAB 7.3 MAT-file":
        raise DataFormatError(
            "this is a MATLAB 7.3 file (HDF5), which is not supported; save it again in MATLAB "
            "with save('file.mat', '-v7')",
            content.path,
        )
    try:
        return _numeric_variables(content.data, content.max_arrays), {}
    except (ValueError, TypeError, LookupError, OverflowError, struct.error, zlib.error) as error:
        raise DataFormatError(
            f"this is not a MATLAB file, or it is damaged: {error}", content.path
        ) from error


class _Element(NamedTuple):
    kind: int
    data: memoryview


def _numeric_variables(data: bytes, max_bytes: int) -> dict[str, Any]:
    """Return the numeric matrices of a file by their names: ndarrays and csc_arrays.

    Parameters
    ----------
    data : bytes
        The file.
    max_bytes : int
        Limit of the total decompressed size of its variables in bytes.
    """
    if len(data) < _HEADER_BYTES or data[126:128] not in (b"IM", b"MI"):
        raise ValueError("it does not begin with the header of a MATLAB file")
    order = "<" if data[126:128] == b"IM" else ">"
    found: dict[str, Any] = {}
    for element in _elements(memoryview(data)[_HEADER_BYTES:], order, padded=False):
        if element.kind == _COMPRESSED:
            unpacked = _inflate(element.data, max_bytes)
            max_bytes -= len(unpacked)
            element = next(_elements(memoryview(unpacked), order, padded=True), element)
        if element.kind == _MATRIX and element.data:
            found |= _matrix(element.data, order)
    return found


def _elements(data: memoryview, order: str, *, padded: bool) -> Iterator[_Element]:
    """Yield consecutive elements; inside a matrix they are padded to 8 bytes."""
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            if any(data[position:]):
                raise ValueError("it is incomplete")
            return
        word, size = struct.unpack_from(f"{order}II", data, position)
        if word >> 16:  # a small element: the length and the data are in the same 8 bytes
            kind, size = word & 0xFFFF, word >> 16
            if size > 4:
                raise ValueError("a small element is longer than 4 bytes")
            yield _Element(kind, data[position + 4 : position + 4 + size])
            position += 8
            continue
        position += 8
        if size > len(data) - position:
            raise ValueError("it is incomplete")
        yield _Element(word, data[position : position + size])
        position += size
        if padded or word != _COMPRESSED:
            position += -size % 8


def _inflate(packed: memoryview, limit: int) -> bytes:
    unpacker = zlib.decompressobj()
    # One byte more than the limit is enough to detect that it is exceeded.
    unpacked = unpacker.decompress(packed, limit + 1)
    if len(unpacked) > limit:
        raise ValueError(
            "its decompressed variables are larger than max_bytes allows; if you trust the file, "
            "raise the limit"
        )
    if not unpacker.eof:
        raise ValueError("a compressed variable is incomplete")
    return unpacked


def _matrix(data: memoryview, order: str) -> dict[str, Any]:
    """Return a matrix by its name; nothing if it is not numeric."""
    parts = list(_elements(data, order, padded=True))
    if len(parts) < 4 or len(parts[0].data) < 8:
        return {}  # an opaque object
    flags = struct.unpack_from(f"{order}I", parts[0].data)[0]
    kind = flags & 0xFF
    if kind not in (_SPARSE_CLASS, *_NUMERIC_CLASSES) or flags & _COMPLEX:
        return {}
    shape = _array(parts[1], order).tolist()
    if len(shape) != 2 or min(shape) < 0:
        return {}
    name = bytes(parts[2].data).decode("utf-8", "replace")
    if kind == _SPARSE_CLASS:
        return {name: _sparse(parts[3:], shape, order)}
    values = _array(parts[3], order)
    if shape[0] * shape[1] != len(values):
        raise ValueError(
            f"the variable {name!r} is {shape[0]} x {shape[1]}, but has {len(values)} numbers"
        )
    return {name: values.reshape(shape, order="F")}


def _array(element: _Element, order: str) -> np.ndarray:
    return np.frombuffer(element.data, np.dtype(order + _TYPES[element.kind]))


def _sparse(parts: list[_Element], shape: list[int], order: str) -> Any:
    rows, starts, values = (_array(part, order) for part in parts[:3])
    stored = int(starts[-1])
    if not 0 <= stored <= min(len(rows), len(values)):
        raise ValueError("a sparse matrix has fewer numbers than it declares")
    entries = values[:stored].astype(float), rows[:stored], starts
    matrix = sp.csc_array(entries, shape=tuple(shape))
    check_sparse(matrix)
    return matrix
