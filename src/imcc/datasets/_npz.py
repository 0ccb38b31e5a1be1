"""NumPy's .npz archives, read without pickle."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from imcc._utils.files import save
from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import (
    MAX_BYTES,
    UNPACK_ERRORS,
    Content,
    Source,
    check_method,
    joined_name,
    open_all,
)
from imcc.datasets._pairs import Pairs, check_pairs, find_pairs, make_part

_SPARSE_FIELDS = ("data", "indices", "indptr", "shape")


def read_npz(
    path: Source | Sequence[Source],
    *,
    variables: Pairs | None = None,
    member: str | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> Dataset:
    """Read features and labels from the arrays of an .npz file.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several are joined.
    variables : pair of str or list of pairs, optional
        The names of the feature and label arrays; well-known ones (``X`` and ``Y``, ``data`` and
        ``target``, ``X_train`` ... ``Y_test``) are found unless given.  A sparse matrix ``X`` is
        the four arrays ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``.
    member : str, optional
        Which file of a zip archive (an ``.npz`` in a ``.zip``).
    max_bytes : int
        The most bytes that the arrays may unpack to.
    name : str, optional
        The data set's name; the one in the file or the file's own unless given.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> npz = pathlib.Path(folder.name, "toy.npz")
    >>> np.savez(npz, X=np.ones((4, 3)), Y=np.eye(4, 2))
    >>> read_npz(npz)
    Dataset 'toy': 4 rows, 3 features (dense), 2 labels, 0.500 labels a row
    >>> folder.cleanup()
    """
    wanted = None if variables is None else check_pairs(variables)
    contents = open_all(path, max_bytes=max_bytes, member=member)
    parts = [part for content in contents for part in _parts(content, wanted)]
    kept = parts[0].name if len(contents) == 1 and parts[0].name != "unnamed" else None
    return concatenate(parts, name or kept or joined_name(contents))


def _parts(content: Content, wanted: list[tuple[str, str]] | None) -> list[Dataset]:
    if not content.data:
        raise DataFormatError("the file is empty", content.path)
    arrays = _load(content)
    sparse = {key.removesuffix("_indptr") for key in arrays if key.endswith("_indptr")}
    parts = {f"{key}_{field}" for key in sparse for field in _SPARSE_FIELDS}
    names = (set(arrays) | sparse) - parts - {"feature_names", "label_names", "name"}
    return [
        _part(arrays, pair, content) for pair in find_pairs(sorted(names), wanted, content.path)
    ]


def _load(content: Content) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            for info in infos:
                check_method(info, content.path)
            total = sum(info.file_size for info in infos)
            if total > content.max_bytes:
                raise DataFormatError(
                    f"the arrays unpack to {total:,} bytes, more than the limit of "
                    f"{content.max_bytes:,}; if you trust the file, allow more with max_bytes=",
                    content.path,
                )
            return {
                info.filename.removesuffix(".npy"): _array(archive.read(info), info, content)
                for info in infos
            }
    except DataFormatError:
        raise
    except (*UNPACK_ERRORS, KeyError, MemoryError) as error:
        raise DataFormatError(
            f"this is no .npz file, or it is damaged or cut off ({error})", content.path
        ) from error


def _array(data: bytes, info: zipfile.ZipInfo, content: Content) -> np.ndarray:
    """Return an array, after a look at whether its header promises more than there is."""
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _order, dtype = header(stream)
        size = dtype.itemsize
        for length in shape:
            size *= length
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never loaded")
        if any(length < 0 for length in shape) or size != len(data) - stream.tell():
            raise ValueError(f"its header promises {size} bytes")
        stream.seek(0)
        return np.asarray(npy.read_array(stream, allow_pickle=False))
    except (ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError) as error:
        raise DataFormatError(f"the array {info.filename!r}: {error}", content.path) from error


def _part(arrays: dict[str, np.ndarray], pair: tuple[str, str], content: Content) -> Dataset:
    try:
        part = make_part(_matrix(arrays, pair[0]), _matrix(arrays, pair[1]), content.path)
        return Dataset(
            part.X,
            part.Y,
            _names(arrays, "feature_names"),
            _names(arrays, "label_names"),
            str(arrays["name"]) if "name" in arrays else "unnamed",
            content.path,
        )
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError) as error:
        raise DataFormatError(f"the arrays {listed(pair)}: {error}", content.path) from error


def _matrix(arrays: dict[str, np.ndarray], key: str) -> Any:
    if key in arrays:
        return arrays[key]
    missing = [f"{key}_{f}" for f in _SPARSE_FIELDS if f"{key}_{f}" not in arrays]
    if missing:
        raise ValueError(f"the sparse matrix {key!r} lacks {listed(missing)}")
    data, indices, indptr, shape = (arrays[f"{key}_{field}"] for field in _SPARSE_FIELDS)
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)  # the file's indices may point anywhere
    return matrix


def _names(arrays: dict[str, np.ndarray], key: str) -> tuple[str, ...]:
    return tuple(arrays[key].ravel().tolist()) if key in arrays else ()


def write_npz(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write everything into one compressed .npz file; sparse features stay sparse.

    Parameters
    ----------
    dataset : Dataset
        What to write.
    path : path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> npz = write_npz(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.npz"))
    >>> read_npz(npz).n_rows
    1
    >>> folder.cleanup()
    """
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
            f".npz drops the NUL at the end of these names: {listed(odd)}; rename them"
        )
    return np.array(names, dtype=np.str_)
