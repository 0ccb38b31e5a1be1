"""Sources of chunks of rows, which can be read several times.

Algorithms are therefore the same for slices of a memory-mapped array and parts of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_array, indexable

from imcc._array.array import Array, column_sums, is_numpy, to_numpy
from imcc._math.fitting import FitSettings
from imcc._utils.config import get_config
from imcc._utils.validation import (
    Features,
    check_device_rows,
    check_magnitude,
    column_names,
    label_matrix,
    without_duplicates,
)


@dataclass(frozen=True)
class Chunk:
    """Rows and labels of a chunk before checks, and their position.

    Attributes
    ----------
    number : int
        Number of the chunk, from 0.
    start : int
        Index of its first row.
    X, y
        Rows and labels.
    """

    number: int
    start: int
    X: Any
    y: Any

    def __str__(self) -> str:
        return f"chunk {self.number} (starting at row {self.start})"


class ChunkSource:
    """Chunks of an iterable, one after the other, for several passes.

    Parameters
    ----------
    make : callable
        Returns an iterable of (X, y), with the same chunks in each call.
    n_rows : int, default=None
        Number of rows, if it is known.
    """

    def __init__(self, make: Callable[[], Iterable[Any]], n_rows: int | None = None) -> None:
        self.make = make
        self.n_rows = n_rows

    def __iter__(self) -> Iterator[Chunk]:
        start = 0
        for number, item in enumerate(self.make()):
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise ValueError(
                    f"chunk {number} of the stream must be a pair (X, y) of rows and labels, got "
                    f"{type(item).__name__}"
                )
            X, y = item
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            if n:
                yield Chunk(number, start, X, y)
            start += n
        if self.n_rows is not None and start != self.n_rows:
            raise ValueError(
                f"the stream gave {start} rows in a later pass, but {self.n_rows} before: each "
                "pass must give the same chunks, and an iterator that has ended gives none"
            )
        self.n_rows = start


def _slices(X: np.memmap, y: Any) -> Iterator[tuple[Any, Any]]:
    """Yield slices of the rows of two arrays."""
    step = max(1, get_config().slice_entries // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield X[rows], _safe_indexing(y, rows)


def find_source(X: Any, y: Any, settings: FitSettings) -> ChunkSource | None:
    """Return a source of rows and labels; None if they are used as arrays.

    Parameters
    ----------
    X, y
        Arguments of ``fit``.
    settings : FitSettings
    """
    source = as_source(X, y)
    if source is None:
        return None
    if y is not None:
        # A memory-mapped array is used as an array if the settings need one.
        clusterer = settings.clusterer
        can_cluster = clusterer is None or isinstance(clusterer, np.ndarray)
        return source if settings.has_features and can_cluster else None
    if settings.has_features:
        return source
    raise ValueError(
        f"kernel={settings.kernel.function!r} does not support streams, because the exact model "
        "needs all rows at once; use approximation='nystroem', or kernel='linear'"
    )


def as_source(X: Any, y: Any) -> ChunkSource | None:
    """Return a source of rows and labels, or None if they are plain arrays.

    A source is a memory-mapped array with an indicator matrix of labels, or, if y is None, an
    iterable of (X, y) pairs or a function that returns one.
    """
    if isinstance(X, np.memmap) and X.ndim == 2 and _is_matrix(y) and not _is_joblibs(X):
        try:
            X, labels = indexable(X, y)
        except ValueError as error:
            raise ValueError(f"X and y must have the same number of rows: {error}") from error
        return ChunkSource(lambda: _slices(X, labels), X.shape[0])
    if y is not None or any(hasattr(X, name) for name in ("shape", "__array__", "columns")):
        return None
    if callable(X):
        return ChunkSource(X)
    if isinstance(X, Iterator):
        raise ValueError(
            "the stream can be read only once, because it is an iterator, but the rows are read "
            "several times: pass a list, or a function that returns an iterator"
        )
    is_stream = isinstance(X, Iterable) and not isinstance(X, (str, bytes))
    return ChunkSource(lambda: X) if is_stream else None


def _is_matrix(y: Any) -> bool:
    try:
        return np.ndim(y) == 2
    except ValueError:  # lists of labels, some longer than others
        return False


def _is_joblibs(X: np.memmap) -> bool:
    """Whether an array was memory-mapped by joblib, to share it between processes.

    It is not a stream then, so that the result does not depend on the number of processes.
    """
    return "joblib_memmapping_folder" in str(X.filename)


def refuse_stream(X: Any, y: Any, name: str) -> None:
    """Raise an error for a stream, if an estimator needs all rows at once."""
    if y is None and as_source(X, y) is not None:
        raise ValueError(
            f"{name} does not support streams, because it splits the rows into folds: search on a "
            "sample of the rows, then fit IMCCClassifier with the best parameters on the stream"
        )


def read_rows(chunk: Chunk, n_features: int | None, move: Callable[[Any], Any]) -> Features:
    """Return the rows of a chunk as an array or CSR matrix of floats, on the device.

    ``n_features`` is the number of features of the previous chunks.
    """
    with _naming(chunk):
        if is_numpy(chunk.X):
            X = check_array(
                chunk.X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_all_finite=False,
            )
            X = without_duplicates(X)
        else:
            X = check_device_rows(chunk.X)
        if n_features is not None and X.shape[1] != n_features:
            raise ValueError(f"it has {X.shape[1]} features instead of {n_features}")
    return move(X)


def check_finite(chunk: Chunk, X: Features) -> Array:
    """Return the sums of the columns; raise an error that names the row if one is not finite."""
    sums = column_sums(X)
    if not np.isfinite(to_numpy(sums)).all():
        cells = sp.coo_matrix(to_numpy(X))
        for k in np.flatnonzero(~np.isfinite(cells.data))[:1]:
            row, column = cells.row[k], cells.col[k]
            raise ValueError(
                f"X has a value that is NaN or infinite: chunk {chunk.number}, row {row} of the "
                f"chunk (row {chunk.start + row} of all), column {column}, all counted from 0"
            )
    with _naming(chunk):
        check_magnitude(X, column_names(chunk.X), "it")
    return sums


def read_labels(chunk: Chunk, n_rows: int, n_labels: int | None) -> np.ndarray:
    """Return which labels rows have, one column per label.

    ``n_rows`` is the number of rows of the chunk, ``n_labels`` that of labels of previous chunks.
    """
    with _naming(chunk):
        if chunk.y is None:
            raise ValueError("it has no labels")
        on = label_matrix(chunk.y, "y")
        if on.shape[0] != n_rows:
            raise ValueError(
                "X and y must have the same number of rows: "
                f"X has {n_rows}, y has the shape {on.shape}"
            )
        if n_labels is not None and on.shape[1] != n_labels:
            raise ValueError(
                f"it has {on.shape[1]} labels instead of {n_labels}: every chunk needs a column "
                "for every label, even if none of its rows has the label"
            )
        return on


@contextmanager
def _naming(chunk: Chunk) -> Iterator[None]:
    """Add the chunk to error messages."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{chunk}: {error}") from error
