"""NumPy .npz files, read without pickle, as a whole or in chunks of rows.

NumPy reads the headers of the arrays.  Their data are read here, because it would allocate what a
header merely declares, and cannot read the rows of a compressed array one after the other.
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
from imcc.datasets._dataset import Dataset, default_names
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
    """An array of an archive that is read sequentially; its header is checked against its size."""

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

    def read(self, count: int | None = None) -> np.ndarray:
        """Return the next entries along the first axis, or all."""
        shape = self.shape if count is None else (count, *self.shape[1:])
        size = self.dtype.itemsize * math.prod(shape)
        if size < 0:
            raise ValueError(f"the array {self.key!r} has a negative length")
        # In pieces, so that no memory is allocated for what is merely declared.
        data = bytearray()
        while len(data) < size and (piece := self._stream.read(min(size - len(data), _PIECE))):
            data += piece
        if len(data) != size:
            raise ValueError(f"the array {self.key!r} is shorter than its header declares")
        values = np.frombuffer(data, dtype=self.dtype)
        return values.reshape(shape, order="F" if self.by_column else "C")


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


class NpzRows:
    """The rows of a file that is read in chunks.

    Parameters
    ----------
    path : Path
    variables : pair of str
        Names of the arrays of features and labels.  Sparse features X consist of four arrays, as
        written by :func:`write_npz`.
    """

    def __init__(self, path: Path, variables: tuple[str, str]) -> None:
        self.path = path
        self.variables = variables
        rows, labels = variables
        with _opened(path, str(path)) as archive:
            keys = _keys(archive)
            self.is_sparse = f"{rows}_indptr" in keys
            parts = [f"{rows}_{field}" for field in _SPARSE_FIELDS] if self.is_sparse else [rows]
            if missing := [key for key in (labels, *parts) if key not in keys]:
                # The file is intact: other arrays were meant, or forgotten.
                raise DataFormatError(
                    f"the file has no array {listed(missing)}, but "
                    f"{listed(keys, 10) or 'no arrays at all'}; specify the arrays with "
                    + given("variables", text="(features, labels)"),
                    str(path),
                )
            shape: tuple[int, ...]
            if self.is_sparse:
                shape = tuple(self._whole(archive, f"{rows}_shape").tolist())
            else:
                shape = self._shape(archive, rows)
            of_labels = self._shape(archive, labels)
            if len(shape) != 2 or len(of_labels) != 2 or shape[0] != of_labels[0]:
                raise DataFormatError(
                    f"features of shape {shape} and labels of shape {of_labels} do not match: both "
                    "must have n_samples rows",
                    str(path),
                )
            self.n_rows = int(shape[0])
            self.feature_names = self._names(archive, "feature_names", "x", int(shape[1]))
            self.label_names = self._names(archive, "label_names", "label", int(of_labels[1]))

    def chunks(self, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the chunks (X, Y) of the file."""
        key, labels = self.variables
        with _opened(self.path, str(self.path)) as archive, ExitStack() as opened:

            def array(key: str) -> _Array:
                return opened.enter_context(closing(_Array(archive, key, str(self.path))))

            Y = array(labels)
            if self.is_sparse:
                ends = self._whole(archive, f"{key}_indptr")
                data, indices = array(f"{key}_data"), array(f"{key}_indices")
            else:
                X = array(key)
            for start in range(0, self.n_rows, rows):
                count = min(rows, self.n_rows - start)
                if self.is_sparse:
                    bounds = ends[start : start + count + 1]
                    entries = int(bounds[-1] - bounds[0])
                    block: Any = sp.csr_array(
                        (data.read(entries), indices.read(entries), bounds - bounds[0]),
                        shape=(count, len(self.feature_names)),
                    )
                    check_sparse(block)
                    block.sum_duplicates()
                else:
                    block = X.read(count)
                yield block, Y.read(count)

    def _whole(self, archive: zipfile.ZipFile, key: str) -> np.ndarray:
        with closing(_Array(archive, key, str(self.path))) as array:
            return array.read()

    def _shape(self, archive: zipfile.ZipFile, key: str) -> tuple[int, ...]:
        with closing(_Array(archive, key, str(self.path))) as array:
            if array.by_column and len(array.shape) > 1:
                raise DataFormatError(
                    f"the array {key!r} is stored in Fortran order (by columns), so it cannot be "
                    "read row by row: save np.ascontiguousarray of it",
                    str(self.path),
                )
            return array.shape

    def _names(
        self, archive: zipfile.ZipFile, key: str, prefix: str, count: int
    ) -> tuple[str, ...]:
        limits = Content(b"", "", str(self.path), self.path, packed=self.path.stat().st_size)
        limits.check_columns(count, "columns")
        if key not in _keys(archive):
            return default_names(prefix, count)
        names = tuple(str(name) for name in self._whole(archive, key))
        if len(names) != count:
            raise ValueError(f"{key} has {len(names)} names for {count} columns")
        return names


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
