"""Reading an .npz file in chunks of rows."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import given
from imcc.datasets._dataset import default_names
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import UNPACK_ERRORS, Content, check_columns, check_sparse, open_member
from imcc.datasets._npz import read_header

_DAMAGED = (*UNPACK_ERRORS, KeyError, IndexError, TypeError, MemoryError)

_PIECE = 2**24


class _Member:
    """An array of the archive that is read sequentially, and then closed."""

    def __init__(self, archive: zipfile.ZipFile, key: str) -> None:
        self.key = key
        info = archive.getinfo(f"{key}.npy")
        self._stream: IO[bytes] = open_member(archive, info, str(archive.filename))
        try:
            self._read_header(str(archive.filename))
        except BaseException:
            self.close()
            raise

    def _read_header(self, path: str) -> None:
        key = self.key
        self.shape, fortran, self.dtype = read_header(self._stream)
        if self.dtype.hasobject:
            raise DataFormatError(
                f"the array {key!r} contains Python objects, which are not supported", path
            )
        if fortran and len(self.shape) > 1:
            raise DataFormatError(
                f"the array {key!r} is stored in Fortran order (by columns), so it cannot be read "
                "row by row: save np.ascontiguousarray of it",
                path,
            )

    def close(self) -> None:
        """Close the array; the file is closed with the last one."""
        self._stream.close()

    def read(self, count: int) -> np.ndarray:
        """Return the next entries along the first axis."""
        shape = (count, *self.shape[1:])
        size = math.prod(shape) * self.dtype.itemsize
        if size < 0:
            raise ValueError(f"the array {self.key!r} has a negative length")
        # In pieces, so that no memory is allocated for what the header merely declares.
        data = bytearray()
        while len(data) < size and (piece := self._stream.read(min(size - len(data), _PIECE))):
            data += piece
        if len(data) != size:
            raise ValueError(f"the array {self.key!r} is shorter than its header declares")
        return np.frombuffer(data, dtype=self.dtype).reshape(shape)


class NpzRows:
    """The rows of a file.

    Parameters
    ----------
    path : Path
    variables : pair of str
        Names of the arrays of features and labels.  Sparse features X consist of four arrays, as
        written by :func:`imcc.datasets.write_npz`.
    """

    def __init__(self, path: Path, variables: tuple[str, str]) -> None:
        self.path = path
        self.variables = variables
        try:
            with zipfile.ZipFile(path) as archive:
                names = {n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")}
                rows, labels = variables
                self.is_sparse = f"{rows}_indptr" in names
                needed = [labels, *(_parts(rows) if self.is_sparse else [rows])]
                if missing := [key for key in needed if key not in names]:
                    # The file is intact: other arrays were meant, or forgotten.
                    raise DataFormatError(
                        f"the file has no array {listed(missing)}, but "
                        f"{listed(sorted(names), 10) or 'no arrays at all'}; specify the arrays "
                        "with " + given("variables", text="(features, labels)"),
                        str(path),
                    )
                of_labels = _shape(archive, labels)
                shape: tuple[int, ...] = (
                    tuple(_whole(archive, f"{rows}_shape").tolist())
                    if self.is_sparse
                    else _shape(archive, rows)
                )
                if len(shape) != 2 or len(of_labels) != 2 or shape[0] != of_labels[0]:
                    raise DataFormatError(
                        f"features of shape {shape} and labels of shape {of_labels} do not "
                        "match: both must have n_samples rows",
                        str(path),
                    )
                limits = Content(b"", "", "", path, packed=path.stat().st_size)
                check_columns(int(shape[1]), limits.max_columns, "features")
                check_columns(int(of_labels[1]), limits.max_columns, "labels")
                self.n_rows = int(shape[0])
                self.feature_names = _names(archive, names, "feature_names", "x", int(shape[1]))
                self.label_names = _names(archive, names, "label_names", "label", int(of_labels[1]))
        except _DAMAGED as error:
            raise self._error(error) from error

    def chunks(self, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the chunks (X, Y) of the file."""
        key, labels = self.variables
        try:
            with zipfile.ZipFile(self.path) as archive, ExitStack() as opened:
                Y = opened.enter_context(closing(_Member(archive, labels)))
                if self.is_sparse:
                    ends = _whole(archive, f"{key}_indptr")
                    data, indices = (
                        opened.enter_context(closing(_Member(archive, f"{key}_{part}")))
                        for part in ("data", "indices")
                    )
                else:
                    X = opened.enter_context(closing(_Member(archive, key)))
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
        except _DAMAGED as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> Exception:
        if isinstance(error, (DataFormatError, FileNotFoundError)):
            return error
        return DataFormatError(
            f"this is not an .npz file, or it is damaged or incomplete ({error})", str(self.path)
        )


def _parts(key: str) -> list[str]:
    return [f"{key}_{part}" for part in ("data", "indices", "indptr", "shape")]


def _whole(archive: zipfile.ZipFile, key: str) -> np.ndarray:
    with closing(_Member(archive, key)) as member:
        return member.read(member.shape[0])


def _shape(archive: zipfile.ZipFile, key: str) -> tuple[int, ...]:
    with closing(_Member(archive, key)) as member:
        return member.shape


def _names(
    archive: zipfile.ZipFile, known: set[str], key: str, prefix: str, count: int
) -> tuple[str, ...]:
    if key not in known:
        return default_names(prefix, count)
    names = tuple(str(name) for name in _whole(archive, key))
    if len(names) != count:
        raise ValueError(f"{key} has {len(names)} names for {count} columns")
    return names
