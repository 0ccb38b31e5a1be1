"""Files and folders as streams: chunks of rows that are read when they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from imcc._utils.validation import check_count
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import inner_name, refuses_by_memory
from imcc.datasets._npz import NpzRows
from imcc.datasets._svmlight import SvmlightRows

# Default number of entries of a chunk (32 MiB), and of its rows, which take memory of their own.
_CHUNK_ENTRIES = 2**22
_CHUNK_ROWS = 2**16

_PARQUET = (".parquet", ".pq")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
_SUFFIXES = (*_PARQUET, ".npz", *_SVMLIGHT)


class FileStream:
    """Iterable of chunks (X, Y) of one or several files; each iteration reads the files again.

    Returned by :func:`open_stream`.

    Attributes
    ----------
    paths : list of Path
        The files, in the order of their rows.
    feature_names, label_names : tuple of str
        Names of the columns.
    chunk_rows : int
        Number of rows of a chunk; the last chunk of a file may have fewer.
    """

    def __init__(self, readers: Sequence[Any], chunk_rows: int | None) -> None:
        first = readers[0]
        for other in readers[1:]:
            for what in ("feature_names", "label_names"):
                if getattr(other, what) != getattr(first, what):
                    raise DataFormatError(
                        f"its {what} differ from those of {first.path}; the files of a stream must "
                        "have the same columns",
                        str(other.path),
                    )
        self._readers = readers
        self.paths = [reader.path for reader in readers]
        self.feature_names: tuple[str, ...] = first.feature_names
        self.label_names: tuple[str, ...] = first.label_names
        width = max(1, len(self.feature_names), len(self.label_names))
        default = min(max(1, _CHUNK_ENTRIES // width), _CHUNK_ROWS)
        self.chunk_rows = default if chunk_rows is None else chunk_rows

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        for reader in self._readers:
            yield from reader.chunks(self.chunk_rows)

    def __repr__(self) -> str:
        shown = str(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files"
        return (
            f"FileStream of {shown}: {len(self.feature_names)} features, "
            f"{len(self.label_names)} labels, {self.chunk_rows} rows per chunk"
        )


@refuses_by_memory
def open_stream(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    labels: int | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    variables: tuple[str, str] | None = None,
    n_features: int | None = None,
    index_base: str = "auto",
    chunk_rows: int | None = None,
) -> FileStream:
    """Open files as a stream of chunks (X, Y), of which only one is in memory at a time.

    Parameters
    ----------
    path : path or list of paths
        Parquet (``.parquet``, ``.pq``), NumPy (``.npz``) or svmlight (``.svm``, ``.svmlight``,
        ``.libsvm``, also with ``.gz`` or ``.bz2``) files, or folders of such files, which are read
        in the order of their names.
    labels : list of str or int, default=None
        For Parquet: names of the label columns; or their number, where a positive number means the
        first columns and a negative one the last columns.
    label_prefix : str, default=None
        For Parquet: prefix of the names of the label columns.
    variables : pair of str, default=None
        For NumPy: names of the arrays of features and labels.  None means ("X", "Y").
    n_features : int, default=None
        For svmlight: number of features.  None uses the number that the files declare, or the
        largest index that occurs.
    index_base : {"auto", "zero", "one"}, default="auto"
        For svmlight: whether features are counted from 0 or from 1, as for :func:`read`.
    chunk_rows : int, default=None
        Number of rows of a chunk.  None means about 32 MiB of dense numbers, and at most
        65,536 rows.

    Returns
    -------
    FileStream
        An iterable of pairs that can be read several times, for ``IMCCClassifier.fit``.

    Raises
    ------
    DataFormatError
        If a file is invalid.

    See Also
    --------
    read : Reads whole files, in more formats.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> npz = pathlib.Path(folder.name, "toy.npz")
    >>> np.savez(npz, X=np.ones((5, 3)), Y=np.eye(5, 2))
    >>> [X.shape for X, Y in open_stream(npz, chunk_rows=2)]
    [(2, 3), (2, 3), (1, 3)]
    >>> folder.cleanup()
    """
    if chunk_rows is not None:
        check_count("chunk_rows", chunk_rows)
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = [file for entry in given for file in _files(Path(entry))]
    if not files:
        raise ValueError("path must not be an empty list")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(
            f"the files of a stream must have the same format, got {' and '.join(sorted(kinds))}"
        )
    kind = kinds.pop()
    _refuse_others(
        kind,
        parquet={"labels": labels, "label_prefix": label_prefix},
        npz={"variables": variables},
        svmlight={"n_features": n_features, "index_base": None if index_base == "auto" else 1},
    )
    if kind == "parquet":
        # Not at the top: that package imports this one.
        from imcc.tables._parquet import ParquetRows

        return FileStream([ParquetRows(f, labels, label_prefix) for f in files], chunk_rows)
    if kind == "npz":
        return FileStream([NpzRows(f, variables or ("X", "Y")) for f in files], chunk_rows)
    return FileStream(SvmlightRows.open(files, n_features, index_base), chunk_rows)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        return [path]
    found = sorted(file for file in path.iterdir() if file.is_file() and _suffix(file) in _SUFFIXES)
    if not found:
        raise ValueError(f"the folder {path} contains no files with {', '.join(_SUFFIXES)}")
    return found


def _suffix(path: Path) -> str:
    return PurePath(inner_name(path)).suffix.lower()


def _kind(path: Path) -> str:
    suffix = _suffix(path)
    if suffix in _PARQUET:
        return "parquet"
    if suffix == ".npz":
        return "npz"
    if suffix in _SVMLIGHT:
        return "svmlight"
    raise ValueError(
        f"{path} cannot be read as a stream, only files with {', '.join(_SUFFIXES)}; read it with "
        "imcc.datasets.read, and write it in one of these formats"
    )


def _refuse_others(kind: str, **options: dict[str, Any]) -> None:
    for other, given in options.items():
        if other != kind and (odd := [name for name, value in given.items() if value is not None]):
            raise ValueError(f"{listed(odd)} is for {other} files, but these are {kind} files")
