"""NumPy .npz files, read without pickle.

NumPy reads the headers of the arrays.  Their data are read here, within the limits on sizes,
because it would allocate what a header merely declares.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from imcc._utils.files import save
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import (
    Content,
    check_sparse,
    damage_reported,
    open_member,
    read_limited,
)

_SPARSE_FIELDS = ("data", "indices", "indptr", "shape")


def load_npz(content: Content) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the matrices of a file by their names, and the names that it contains."""
    left = content.max_arrays
    arrays: dict[str, Any] = {}
    with (
        damage_reported(content.path),
        zipfile.ZipFile(io.BytesIO(content.data)) as archive,
    ):
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with open_member(archive, info, content.path) as stream:
                    data = read_limited(stream, content.path, left)
                left -= len(data)
                arrays[info.filename.removesuffix(".npy")] = _array(data)
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


def _array(data: bytes) -> np.ndarray:
    """Return the array of a .npy file; one of Python objects is an error."""
    stream = io.BytesIO(data)
    old = npy.read_magic(stream) == (1, 0)
    header = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
    shape, by_column, dtype = header(stream)
    values = np.frombuffer(data, dtype, offset=stream.tell())
    if values.size != math.prod(shape):
        raise ValueError(f"an array has {values.size} numbers, but declares the shape {shape}")
    return values.reshape(shape, order="F" if by_column else "C")


def _sparse(arrays: dict[str, Any], key: str, path: str) -> Any:
    """Return a sparse matrix, whose parts are removed from the arrays."""
    try:
        data, indices, indptr, shape = (arrays.pop(f"{key}_{field}") for field in _SPARSE_FIELDS)
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        check_sparse(matrix)
        return matrix
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise DataFormatError(f"the sparse matrix {key!r} is damaged: {error}", path) from error


def write_npz(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a compressed .npz file with the data and names; sparse features stay sparse."""
    arrays: dict[str, Any] = {
        "Y": dataset.Y.astype(np.int8),
        "name": np.array(dataset.name),
        "feature_names": np.array(dataset.feature_names, dtype=np.str_),
        "label_names": np.array(dataset.label_names, dtype=np.str_),
    }
    if dataset.is_sparse:
        X = dataset.X
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays |= {f"X_{field}": part for field, part in zip(_SPARSE_FIELDS, parts, strict=True)}
    else:
        arrays["X"] = dataset.X
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return save(path, buffer.getvalue())
