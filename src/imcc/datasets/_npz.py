"""NumPy .npz files, read without pickle.

NumPy reads the headers of the arrays.  Their data are read here, because it would allocate what a
header merely declares.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from imcc._utils.errors import given
from imcc._utils.files import save
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import UNPACK_ERRORS, Content, check_sparse, open_member
from imcc.datasets._pairs import Pairs, read_pairs

_SPARSE_FIELDS = ("data", "indices", "indptr", "shape")

# Number of bytes that are read at a time.
_PIECE = 2**24


def read_npz(
    contents: Sequence[Content],
    *,
    variables: Pairs | None = None,
    transpose_labels: bool | None = None,
    name: str | None = None,
    labelled: bool = True,
) -> Dataset:
    """Read features and labels from the arrays of .npz files.

    Parameters
    ----------
    contents : sequence of Content
        The files, whose rows are concatenated.
    variables : pair of str or list of pairs, default=None
        Names of the feature and label arrays.  None detects common names (``X`` and ``Y``, ``data``
        and ``target``, ``X_train`` ... ``Y_test``).  A sparse matrix ``X`` consists of the arrays
        ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``.
    transpose_labels : bool, default=None
        Whether the shape of the label arrays is (n_labels, n_samples), as for :func:`read_mat`.
        Always False for files written by :func:`write_npz`, unless set.
    name : str, default=None
        Name of the data set; None uses the name stored in the file, or else that of the file.
    labelled : bool, default=True
        Whether to read the labels; otherwise, there is one label that is always 0.
    """
    return read_pairs(contents, _load, variables, transpose_labels, name, labelled)


@contextmanager
def _opened(file: Any, path: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive; damage is an error of the file."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (*UNPACK_ERRORS, KeyError, IndexError, TypeError) as error:
        if isinstance(error, (DataFormatError, FileNotFoundError)):
            raise
        raise DataFormatError(
            f"this is not an .npz file, or it is damaged or incomplete ({error})", path
        ) from error


def _keys(archive: zipfile.ZipFile) -> list[str]:
    names = archive.namelist()
    return sorted({name.removesuffix(".npy") for name in names if name.endswith(".npy")})


class _Array:
    """An array of an archive, whose header is checked against its size before it is read."""

    def __init__(self, archive: zipfile.ZipFile, key: str, path: str) -> None:
        self.key = key
        info = archive.getinfo(f"{key}.npy")
        with ExitStack() as opened:
            self._stream = opened.enter_context(open_member(archive, info, path))
            old = npy.read_magic(self._stream) == (1, 0)
            header = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
            self.shape, self.by_column, self.dtype = header(self._stream)
            self.size = self.dtype.itemsize * math.prod(self.shape)
            if self.dtype.hasobject:
                raise DataFormatError(
                    f"the array {key!r} contains Python objects, which are not supported", path
                )
            stored = info.file_size - self._stream.tell()
            if any(length < 0 for length in self.shape) or self.size != stored:
                raise DataFormatError(
                    f"the header of the array {key!r} declares {self.size} bytes, but it has "
                    f"{stored}",
                    path,
                )
            opened.pop_all()

    def close(self) -> None:
        self._stream.close()

    def read(self) -> np.ndarray:
        """Return the array."""
        # In pieces, so that no memory is allocated for what is merely declared.
        data = bytearray()
        while len(data) < self.size and (piece := self._stream.read(_PIECE)):
            data += piece
        if len(data) != self.size:
            raise ValueError(f"the array {self.key!r} is not as long as its header declares")
        values = np.frombuffer(data, dtype=self.dtype)
        return values.reshape(self.shape, order="F" if self.by_column else "C")


def _load(content: Content) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the matrices of a file by their names, and the names that it contains."""
    left = content.max_arrays
    arrays: dict[str, Any] = {}
    with _opened(io.BytesIO(content.data), content.path) as archive:
        for key in _keys(archive):
            with closing(_Array(archive, key, content.path)) as array:
                numbers = math.prod(array.shape) if array.dtype.kind in "biuf" else 0
                # One byte of the file can become a number of 8 bytes.
                if array.size > left or 8 * numbers > max(left, 8 * content.size):
                    raise DataFormatError(
                        f"the array {key!r} needs more than the {left:,} bytes that are left of "
                        "the limit; if you trust the file, raise it with " + given("max_bytes"),
                        content.path,
                    )
                arrays[key] = array.read()
                left -= array.size
    facts: dict[str, Any] = {}
    for key in ("feature_names", "label_names"):
        names = arrays.pop(key, np.empty(0, np.str_))
        if names.dtype.kind != "U":
            raise DataFormatError(f"the array {key!r} does not contain strings", content.path)
        content.check_columns(names.size, "names")
        facts[key] = tuple(names.ravel().tolist())
    facts["name"] = str(arrays.pop("name", "unnamed"))
    for key in [key.removesuffix("_indptr") for key in arrays if key.endswith("_indptr")]:
        arrays[key] = _sparse(arrays, key, content.path)
    return arrays, facts


def _sparse(arrays: dict[str, Any], key: str, path: str) -> Any:
    """Return a sparse matrix, whose parts are removed from the arrays."""
    parts = [arrays.pop(f"{key}_{field}", None) for field in _SPARSE_FIELDS]
    try:
        for field, part in zip(_SPARSE_FIELDS, parts, strict=True):
            if part is None:
                raise ValueError(f"'{key}_{field}' is missing")
        *csr, shape = parts
        matrix = sp.csr_array(tuple(csr), shape=tuple(shape.tolist()))
        check_sparse(matrix)
        return matrix
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataFormatError(f"the sparse matrix {key!r}: {error}", path) from error


def write_npz(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a compressed .npz file with the data and names; sparse features stay sparse."""
    names = {key: getattr(dataset, key) for key in ("feature_names", "label_names")}
    if odd := [name for key in names for name in names[key] if name.endswith("\0")]:
        raise ValueError(
            f".npz cannot represent the NUL at the end of these names: {listed(odd)}; rename them"
        )
    arrays: dict[str, Any] = {"Y": dataset.Y.astype(np.int8), "name": np.array(dataset.name)}
    arrays |= {key: np.array(value, dtype=np.str_) for key, value in names.items()}
    if dataset.is_sparse:
        X = dataset.X
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays |= {f"X_{field}": part for field, part in zip(_SPARSE_FIELDS, parts, strict=True)}
    else:
        arrays["X"] = dataset.X
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return save(path, buffer.getvalue())
