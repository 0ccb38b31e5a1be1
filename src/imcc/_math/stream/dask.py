"""Dask collections: the passes of :mod:`imcc._math.stream.fitting` on Dask workers.

Only sums, samples and the model are sent; the size of results does not depend on the number of
rows.  The graph contains all that the tasks need, so that results of a lost worker are computed
again.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from imcc._math.stream.sources import Chunk
from imcc._utils.config import get_config
from imcc._utils.optional import require

T = TypeVar("T")


class DaskSource:
    """Blocks of a Dask array, or partitions of a Dask data frame, with their labels.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        The blocks of an array may be sparse.
    y : dask.array.Array, dask.dataframe.DataFrame or Series, or array
        Arrays are rechunked as X if needed; the partitions of a data frame must match those of X.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._dask = require("dask", "Training on Dask collections")
        if y is None:
            raise ValueError("y must be passed with a Dask collection, but the target y is None")
        if _is_frame(X):
            self._rows = X.to_delayed()
            lengths = self._dask.compute(*[self._dask.delayed(len)(part) for part in self._rows])
            self.lengths = [int(length) for length in lengths]
        else:
            X = _one_block_wide(X, "X")
            self.lengths = [int(length) for length in X.chunks[0]]
            # Not optimised separately, because labels may be computed from the same blocks.
            self._rows = X.to_delayed(optimize_graph=False).ravel().tolist()
        self.n_rows = sum(self.lengths)
        self._labels = self._cut_labels(y)

    def _cut_labels(self, y: Any) -> Sequence[Any]:
        """Return the labels of each block."""
        if _is_frame(y):
            parts = y.to_delayed()
            if len(parts) != len(self.lengths):
                raise ValueError(
                    f"y has {len(parts)} partitions, but X has {len(self.lengths)}: they must be "
                    "partitioned in the same way"
                )
            return list(parts)
        array = require("dask.array", "Training on Dask collections")
        if not isinstance(y, array.Array):
            y = array.from_array(np.asarray(y), chunks=-1)
        if math.isnan(sum(y.chunks[0])):
            raise _unknown("y")
        if sum(y.chunks[0]) != self.n_rows:
            raise ValueError(
                "X and y must have the same number of rows: "
                f"X has {self.n_rows}, y has {sum(y.chunks[0])}"
            )
        if y.ndim == 2:
            y = _one_block_wide(y, "y")
        if tuple(y.chunks[0]) != tuple(self.lengths):
            y = y.rechunk({0: tuple(self.lengths)})
        return list(y.to_delayed(optimize_graph=False).ravel())

    def peek(self) -> None:
        """Return None, since blocks can be computed again."""

    def reduce(self, function: Callable[..., T], merge: Callable[[T, T], T], *arguments: Any) -> T:
        """Return the merged ``function(chunk, *arguments)`` of all blocks, as a tree reduction."""
        delayed = self._dask.delayed
        # One node of the graph for all tasks; scattered data would be lost with a worker.
        shared = delayed(arguments, traverse=False)
        starts = np.cumsum([0, *self.lengths]).tolist()
        parts = [
            delayed(_apply)(function, number, start, rows, labels, shared)
            for number, (start, length, rows, labels) in enumerate(
                zip(starts[:-1], self.lengths, self._rows, self._labels, strict=True)
            )
            if length
        ]
        if not parts:
            raise ValueError("the Dask collection has no rows")
        width = get_config().dask_merge
        while len(parts) > 1:
            parts = [
                delayed(_merge_all)(merge, parts[i : i + width])
                for i in range(0, len(parts), width)
            ]
        with warnings.catch_warnings():
            # Landmarks of some megabytes are sent once, which needs no warning.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self._dask.compute(parts[0])[0]


def _apply(function: Callable[..., T], number: int, start: int, X: Any, y: Any, shared: Any) -> T:
    return function(Chunk(number, start, X, y), *shared)


def _merge_all(merge: Callable[[T, T], T], parts: list[T]) -> T:
    return functools.reduce(merge, parts)


def predict_lazily(estimator: Any, method: str, X: Any, **options: Any) -> Any:
    """Return the results of a method for all blocks as a lazy Dask array.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator; later fits do not change the result.
    method : {"predict", "predict_proba", "decision_function"}
        The method to call.
    X : dask.array.Array or dask.dataframe.DataFrame
    **options
        Other arguments of the method.
    """
    dask = require("dask", "Prediction on Dask collections")
    array = require("dask.array", "Prediction on Dask collections")
    if _is_frame(X):
        blocks, lengths = X.to_delayed(), [math.nan] * X.npartitions
        one = X._meta.iloc[:0].reindex([0]).fillna(0.0)
    else:
        X = _one_block_wide(X, "X", known=False)
        blocks, lengths = X.to_delayed().ravel().tolist(), X.chunks[0]
        one = np.zeros((1, X.shape[1]), dtype=X.dtype)
    like = getattr(estimator, method)(
        one, **options
    )  # checks names and number of features, and determines the type of the result
    model = dask.delayed(copy.copy(estimator), traverse=False)
    parts = [
        array.from_delayed(
            dask.delayed(_call)(model, method, block, options),
            shape=(length, *like.shape[1:]),
            dtype=like.dtype,
        )
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def _call(estimator: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    if X.shape[0]:
        return getattr(estimator, method)(X, **options)
    like = getattr(estimator, method)(np.zeros((1, estimator.n_features_in_)), **options)
    return like[:0]


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "npartitions") and not hasattr(collection, "chunks")


def _one_block_wide(X: Any, name: str, known: bool = True) -> Any:
    """Return a two-dimensional Dask array whose blocks contain all columns."""
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got a Dask array of shape {X.shape}")
    if math.isnan(X.shape[1]) or (known and math.isnan(sum(X.chunks[0]))):
        raise _unknown(name)
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _unknown(name: str) -> ValueError:
    return ValueError(
        f"{name} is a Dask array with unknown chunk sizes, so its rows cannot be counted: call "
        f"{name}.compute_chunk_sizes() before (a data frame: to_dask_array(lengths=True))"
    )
