"""Functions of a chunk of a stream for each pass, and functions to merge two results.

They are used by :mod:`imcc._math.stream.fitting`.  A chunk is processed on its device, or on the
device that it is moved to; results stay there until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    astype,
    column_squares,
    column_sums,
    dense,
    is_numpy,
    namespace,
    signs,
    to_numpy,
)
from imcc._math.clustering import membership_matrix, nearest
from imcc._math.maps import FeatureMap, feature_sums
from imcc._math.sampling import Sample
from imcc._math.statistics import Statistics
from imcc._math.stream.sources import (
    Chunk,
    Layout,
    check_finite,
    count_labels,
    empty_like,
    read_labels,
    read_layout,
    read_rows,
)
from imcc._utils.validation import Features

Move = Callable[[Any], Any]  # from the host to the device
# Tolerance of column sums of the same rows, relative to sqrt(n) times the norm of the column;
# rounding errors of a hundred million rows are much smaller.
SAME_SUMS = 1e-9


@dataclass(frozen=True)
class Totals:
    """Sums over all rows, to check that later passes give the same rows.

    Attributes
    ----------
    n_rows : int
    columns : array of shape (n_features,)
        Sums of the columns.
    squares : array of shape (n_features,)
        Sums of their squares.
    labels : ndarray of shape (n_labels,)
        Number of rows with each label.
    """

    n_rows: int
    columns: Array
    squares: Array
    labels: np.ndarray

    def merge(self, other: Totals) -> Totals:
        """Return the totals of two parts."""
        return Totals(
            self.n_rows + other.n_rows,
            self.columns + asarray(other.columns, self.columns),
            self.squares + asarray(other.squares, self.squares),
            self.labels + other.labels,
        )

    def check(self, n_rows: float, columns: Array, what: str) -> None:
        """Raise an error if a pass gave other rows than the first one.

        Parameters
        ----------
        n_rows : float
            Number of rows of the pass.
        columns : array of shape (n_features,)
            Sums of its columns.
        what : str
            The pass, for the message.
        """
        if int(n_rows) != self.n_rows:
            raise _changed(what, f"{int(n_rows)} rows instead of {self.n_rows}")
        found, expected = np.asarray(to_numpy(columns)), np.asarray(to_numpy(self.columns))
        allowed = SAME_SUMS * np.sqrt(self.n_rows * np.asarray(to_numpy(self.squares)))
        wrong = np.flatnonzero(~(np.abs(found - expected) <= allowed))
        if wrong.size:
            k = int(wrong[0])
            raise _changed(
                what,
                f"the values of column {k} (counted from 0) sum to {found[k]:.9g} instead of "
                f"{expected[k]:.9g}",
            )

    def check_labels(self, sums: np.ndarray, what: str) -> None:
        """Raise an error if a pass, with these sums of labels -1 and +1, gave other labels."""
        counts = (np.rint(sums).astype(np.int64) + self.n_rows) // 2
        for key in np.flatnonzero(counts != self.labels)[:1]:
            raise _changed(
                what, f"{counts[key]} rows have label {key} instead of {self.labels[key]}"
            )


def _changed(what: str, difference: str) -> ValueError:
    return ValueError(
        f"the rows of the stream changed between the first pass and {what}: {difference}; each "
        "pass must give the same rows and labels (a function that uses random numbers needs a "
        "fixed seed)"
    )


@dataclass(frozen=True)
class Summary:
    """Result of the first pass.

    Attributes
    ----------
    layout : Layout
    totals : Totals
    sample : Sample
    first : Chunk
        The first chunk, without its rows.
    like : array
        Without rows, of the kind that chunks were given as.
    """

    layout: Layout
    totals: Totals
    sample: Sample
    first: Chunk
    like: Array

    @property
    def mean(self) -> Array:
        """The mean row."""
        return self.totals.columns / self.totals.n_rows


@dataclass(frozen=True)
class StreamSums:
    """The sums over rows, with those that the centres come from.

    Attributes
    ----------
    statistics : Statistics
        Over what the feature map wants to be summed.
    rows : array of shape (c, n_features)
        P^T X.
    """

    statistics: Statistics
    rows: Array

    def __add__(self, other: StreamSums) -> StreamSums:
        return StreamSums(self.statistics + other.statistics, self.rows + other.rows)


@dataclass(frozen=True)
class StreamPlan:
    """What is needed to sum the rows, determined after the first pass.

    Attributes
    ----------
    feature_map : FeatureMap
    prototypes : list of array of shape (c, n_features)
        One array per clustering.
    layout : Layout
    like : array
        Without rows, of the kind that chunks were given as.
    """

    feature_map: FeatureMap
    prototypes: list[Array]
    layout: Layout
    like: Array


def summarize_chunk(chunk: Chunk, sample_size: int, seed: int, move: Move | None = None) -> Summary:
    """Check a chunk, sum it and draw its part of the sample."""
    X = read_rows(chunk, None, move)
    columns = check_finite(chunk, X)
    layout = read_layout(chunk, X)
    sample = Sample.of_rows(X, chunk.start, sample_size, seed)
    header = replace(chunk, X=None, y=None)
    totals = Totals(X.shape[0], columns, column_squares(X), count_labels(chunk))
    return Summary(layout, totals, sample, header, empty_like(chunk.X))


@dataclass(frozen=True)
class MergeSummaries:
    """Merges the summaries of two parts.

    Attributes
    ----------
    sample_size : int
    """

    sample_size: int

    def __call__(self, a: Summary, b: Summary) -> Summary:
        """Return the summary of both."""
        layout = a.layout.merge(b.layout, b.first)
        sample = a.sample.merge(b.sample, self.sample_size)
        totals = a.totals.merge(b.totals)
        return replace(a, layout=layout, totals=totals, sample=sample)


def cluster_chunk(chunk: Chunk, plan: StreamPlan, move: Move | None) -> tuple[Array, Array]:
    """Return the sum of the rows nearest to each prototype, and their number."""
    X = asarray(read_rows(chunk, plan.layout.n_features, move), plan.prototypes[0])
    P = _membership(X, plan.prototypes)
    with np.errstate(invalid="ignore", over="ignore"):  # found by Totals.check
        return _row_sums(P, X), column_sums(P)


def check_chunk(chunk: Chunk, plan: StreamPlan, move: Move | None) -> Array:
    """Return the sums of the columns; raise an error that names a row that is not finite."""
    return check_finite(chunk, read_rows(chunk, plan.layout.n_features, move))


def _row_sums(P: Array, X: Features) -> Array:
    """Return P^T X in float64; SciPy's product needs no copy of the rows for this."""
    return dense(P.T @ (X if is_numpy(X) else astype(X, "float64")))


def sum_chunk(chunk: Chunk, plan: StreamPlan, move: Move | None = None) -> StreamSums:
    """Return the sums over a chunk."""
    # In the library and on the device of the previous chunks.
    X = asarray(read_rows(chunk, plan.layout.n_features, move), plan.prototypes[0])
    on = read_labels(chunk, plan.layout)
    Y = signs(asarray(on if move is None else move(on), X))
    with np.errstate(invalid="ignore", over="ignore"):  # found by Totals.check
        P = _membership(X, plan.prototypes)
        return StreamSums(feature_sums(plan.feature_map, X, Y, P), _row_sums(P, X))


def _membership(X: Features, prototypes: list[Array]) -> Array:
    columns, n_clusters = [], 0
    for part in prototypes:
        columns.append(nearest(X, part) + n_clusters)
        n_clusters += part.shape[0]
    return membership_matrix(namespace(X).stack(columns, axis=1), n_clusters, X)


def add(a: Any, b: Any) -> Any:
    """Merge the sums over two parts."""
    return a + b


def add_pairs(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """Merge the results of :func:`cluster_chunk` for two parts."""
    return a[0] + b[0], a[1] + b[1]
