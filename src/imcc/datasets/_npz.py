"""NumPy .npz files, read without pickle."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from imcc._utils.errors import given, message_of
from imcc._utils.files import save
from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import (
    UNPACK_ERRORS,
    Content,
    check_sparse,
    joined_name,
    open_member,
    read_limited,
)
from imcc.datasets._pairs import Pairs, Part, check_pairs, find_pairs, join_parts

_SPARSE_FIELDS = ("data", "indices", "indptr", "shape")


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
    wanted = None if variables is None else check_pairs(variables)
    parts: list[Part] = []
    described: list[dict[str, Any]] = []
    for content in contents:
        arrays = _load(content)
        for pair in find_pairs(_names_of(arrays), wanted, content.path, labelled):
            data = _matrix(arrays, pair[0], content)
            target = _matrix(arrays, pair[1], content) if labelled else None
            parts.append(Part(data, target, pair, content))
            described.append(_description(arrays, content))
            if not labelled:
                described[-1]["label_names"] = ()
    if transpose_labels is None and all(facts["label_names"] for facts in described):
        transpose_labels = False  # as write_npz writes them
    joined = []
    for part, facts, dataset in zip(
        parts, described, join_parts(parts, transpose_labels), strict=True
    ):
        try:
            joined.append(Dataset(dataset.X, dataset.Y, source=dataset.source, **facts))
        except (ValueError, TypeError) as error:
            raise part.error(message_of(error)) from error
    kept = joined[0].name if len(contents) == 1 and joined[0].name != "unnamed" else None
    return concatenate(joined, name or kept or joined_name(contents))


def _names_of(arrays: dict[str, np.ndarray]) -> list[str]:
    sparse = {key.removesuffix("_indptr") for key in arrays if key.endswith("_indptr")}
    parts = {f"{key}_{field}" for key in sparse for field in _SPARSE_FIELDS}
    return sorted((set(arrays) | sparse) - parts - {"feature_names", "label_names", "name"})


def _load(content: Content) -> dict[str, np.ndarray]:
    if not content.data:
        raise DataFormatError("the file is empty", content.path)
    left = content.max_arrays
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with open_member(archive, info, content.path) as stream:
                        data = read_limited(stream, content.path, left)
                    arrays[info.filename.removesuffix(".npy")] = _array(data, info, content, left)
                    left -= len(data)
    except DataFormatError:
        raise
    except (*UNPACK_ERRORS, KeyError) as error:
        raise DataFormatError(
            f"this is not an .npz file, or it is damaged or incomplete ({error})", content.path
        ) from error
    return arrays


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape of an array, whether it is stored by columns, and its type."""
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return header(stream)


def _array(data: bytes, info: zipfile.ZipInfo, content: Content, limit: int) -> np.ndarray:
    """Return an array, after checking its header against the size of the file."""
    stream = io.BytesIO(data)
    try:
        shape, fortran, dtype = read_header(stream)
        size = dtype.itemsize
        for length in shape:
            size *= length
        if dtype.hasobject:
            raise ValueError("it contains Python objects, which are not supported")
        if any(length < 0 for length in shape) or size != len(data) - stream.tell():
            raise ValueError(f"its header declares {size} bytes, which is not its size")
        if dtype.kind in "biuf" and (count := math.prod(shape)) > max(limit, 8 * content.size) // 8:
            # One byte of the file can become a number of 8 bytes.
            raise ValueError(
                f"its {count:,} numbers need more than {limit:,} bytes; if you trust the file, "
                "raise the limit with " + given("max_bytes")
            )
        array = np.frombuffer(data, dtype, offset=stream.tell())
        return array.reshape(shape, order="F" if fortran else "C")
    except (ValueError, TypeError, KeyError, EOFError, OverflowError) as error:
        raise DataFormatError(f"the array {info.filename!r}: {error}", content.path) from error


def _matrix(arrays: dict[str, np.ndarray], key: str, content: Content) -> Any:
    if key in arrays:
        return arrays[key]
    missing = [f"{key}_{f}" for f in _SPARSE_FIELDS if f"{key}_{f}" not in arrays]
    try:
        if missing:
            raise ValueError(f"{listed(missing)} is missing")
        data, indices, indptr, shape = (arrays[f"{key}_{field}"] for field in _SPARSE_FIELDS)
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        check_sparse(matrix)
        return matrix
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataFormatError(f"the sparse matrix {key!r}: {error}", content.path) from error


def _description(arrays: dict[str, np.ndarray], content: Content) -> dict[str, Any]:
    """Return the names of the columns and of the data set that the file contains."""
    for key in ("feature_names", "label_names"):
        if key in arrays and arrays[key].size > content.max_columns:
            raise DataFormatError(f"the array {key!r} has too many names", content.path)
    facts: dict[str, Any] = {
        key: tuple(arrays[key].ravel().tolist()) if key in arrays else ()
        for key in ("feature_names", "label_names")
    }
    for key, names in facts.items():
        if not all(isinstance(name, str) for name in names):
            raise DataFormatError(f"the array {key!r} does not contain strings", content.path)
    return {**facts, "name": str(arrays["name"]) if "name" in arrays else "unnamed"}


def write_npz(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a compressed .npz file with the data and names; sparse features stay sparse."""
    arrays: dict[str, np.ndarray] = {
        "Y": dataset.Y.astype(np.int8),
        "feature_names": _name_array(dataset.feature_names),
        "label_names": _name_array(dataset.label_names),
        "name": np.array(dataset.name),
    }
    if dataset.is_sparse:
        X = dataset.X
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays |= {f"X_{field}": part for field, part in zip(_SPARSE_FIELDS, parts, strict=True)}
    else:
        arrays["X"] = dataset.X
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return save(path, buffer.getvalue())


def _name_array(names: tuple[str, ...]) -> np.ndarray:
    if odd := [name for name in names if name.endswith("\0")]:
        raise ValueError(
            f".npz cannot represent the NUL at the end of these names: {listed(odd)}; rename them"
        )
    return np.array(names, dtype=np.str_)
