"""MATLAB's .mat files (version 7 and older)."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import scipy.io
from scipy.io.matlab import MatReadError

from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import MAX_BYTES, Content, Source, joined_name, open_all
from imcc.datasets._pairs import Pairs, check_pairs, find_pairs, make_part

# Everything that SciPy's reader was seen to raise for damaged files; it has no error of its own
# for them.
_SCIPY_ERRORS = (
    MatReadError,
    AttributeError,
    AssertionError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    UnboundLocalError,
    ValueError,
    struct.error,
    zlib.error,
)

_NUMERIC_CLASSES = frozenset(
    {"double", "single", "logical", "sparse"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)

_HEADER_BYTES = 128
_COMPRESSED = 15


def read_mat(
    path: Source | Sequence[Source],
    *,
    variables: Pairs | None = None,
    member: str | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> Dataset:
    """Read features and labels from the variables of a MATLAB file.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several are joined.
    variables : pair of str or list of pairs, optional
        The names of the feature and label variables, ``("data", "target")``; the rows of several
        pairs are stacked.  Unless given, ``train_data``/``train_target`` and
        ``test_data``/``test_target`` are looked for (and stacked), then pairs such as
        ``data``/``target`` and ``X``/``Y``.
    member : str, optional
        Which file of a zip archive.
    max_bytes : int
        The most bytes that a compressed file may unpack to.
    name : str, optional
        The data set's name; the file's unless given.

    Notes
    -----
    Labels are rows x labels, or labels x rows, as some authors have them: the side that is as
    long as the features have rows is taken for the rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, scipy.io
    >>> folder = tempfile.TemporaryDirectory()
    >>> mat = pathlib.Path(folder.name, "toy.mat")
    >>> scipy.io.savemat(mat, {"bags": np.ones((4, 3)), "tags": -np.ones((4, 2))})
    >>> read_mat(mat, variables=("bags", "tags"))
    Dataset 'toy': 4 rows, 3 features (dense), 2 labels, 0.000 labels a row
    >>> folder.cleanup()
    """
    wanted = None if variables is None else check_pairs(variables)
    contents = open_all(path, max_bytes=max_bytes, member=member)
    parts = [part for content in contents for part in _parts(content, wanted)]
    return concatenate(parts, name or joined_name(contents))


def _parts(content: Content, wanted: list[tuple[str, str]] | None) -> list[Dataset]:
    if not content.data:
        raise DataFormatError("the file is empty", content.path)
    if content.data[:8] == b"\x89HDF\r\n\x1a\n" or content.data[:19] == b"MATLAB 7.3 MAT-file":
        raise DataFormatError(
            "this is a MATLAB 7.3 file (HDF5), which is not read; save it again in MATLAB with "
            "save('file.mat', '-v7')",
            content.path,
        )
    _check_unpacked_size(content)
    found = _numeric_variables(content)
    pairs = find_pairs(found, wanted, content.path)
    try:
        loaded = scipy.io.loadmat(
            io.BytesIO(content.data),
            variable_names=[variable for pair in pairs for variable in pair],
        )
    except _SCIPY_ERRORS as error:
        raise _unreadable(content, error) from error
    return [_part(loaded, pair, content) for pair in pairs]


def _unreadable(content: Content, error: BaseException) -> DataFormatError:
    return DataFormatError(
        f"this is no MATLAB file, or it is damaged or cut off ({error or type(error).__name__})",
        content.path,
    )


def _check_unpacked_size(content: Content) -> None:
    """Refuse a file whose compressed variables would unpack beyond the limit.

    SciPy unpacks without asking how much it is going to be.
    """
    data = content.data
    order = "<" if data[126:128] == b"IM" else ">"
    position, unpacked = _HEADER_BYTES, 0
    while position + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, position)
        position += 8
        if kind == _COMPRESSED:
            unpacked += _inflated_size(
                data[position : position + size], content.max_bytes - unpacked
            )
            if unpacked > content.max_bytes:
                raise DataFormatError(
                    f"the file unpacks to more than {content.max_bytes:,} bytes; if you trust it, "
                    "allow more with max_bytes=",
                    content.path,
                )
        position += size


def _inflated_size(packed: bytes, limit: int) -> int:
    """Return how long some data are when unpacked, or something above the limit if that is less."""
    unpacker = zlib.decompressobj()
    size = 0
    try:
        while packed and size <= limit:
            size += len(unpacker.decompress(packed, 2**20))
            packed = unpacker.unconsumed_tail
    except zlib.error:
        return size  # SciPy will find the damage and say so.
    return size


def _numeric_variables(content: Content) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the variables that hold numbers."""
    try:
        variables = scipy.io.whosmat(io.BytesIO(content.data))
    except _SCIPY_ERRORS as error:
        raise _unreadable(content, error) from error
    return {name: shape for name, shape, kind in variables if kind in _NUMERIC_CLASSES}


def _part(loaded: dict[str, Any], pair: tuple[str, str], content: Content) -> Dataset:
    data, target = (loaded.get(variable) for variable in pair)
    if data is None or target is None:
        raise DataFormatError(f"the variables {listed(pair)} cannot be read", content.path)
    try:
        return make_part(data, target, source=content.path)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise DataFormatError(f"the variables {listed(pair)}: {error}", content.path) from error
