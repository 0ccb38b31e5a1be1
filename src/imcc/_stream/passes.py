"""What is asked of one chunk of a stream, and how the answers of two are merged.

:mod:`imcc._stream.fitting` asks, pass after pass.  A chunk is worked on where it is, or on the
device that it is moved to; what comes out stays there until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imcc._backend.array import (
    Array,
    asarray,
    astype,
    column_sums,
    dense,
    is_numpy,
    moved_record,
    namespace,
    signs,
)
from imcc._backend.device import block_entries
from imcc._core.approximations import FourierMap, NystroemMap
from imcc._core.features import IdentityMap
from imcc._core.kernels import row_blocks
from imcc._core.models import SUM_ENTRIES
from imcc._core.sampling import Sample
from imcc._core.statistics import Statistics
from imcc._core.virtual import membership_matrix, nearest
from imcc._stream.sources import (
    Chunk,
    Layout,
    check_finite,
    given_as,
    read_classes,
    read_labels,
    read_layout,
    read_rows,
)
from imcc._utils.validation import Features

FeatureMap = IdentityMap | NystroemMap | FourierMap
Move = Callable[[Any], Any]  # from the host to the device


@dataclass(frozen=True)
class Look:
    """What the first pass finds out.

    Attributes
    ----------
    layout : Layout
    classes : ndarray or None
        The classes of a target with one class a row.
    n_rows : int
    sums : array of shape (n_features,)
        Of the columns.
    sample : Sample
    first : Chunk
        The first chunk, without its rows.
    given : array
        Without rows, of the kind that chunks were given as.
    """

    layout: Layout
    classes: np.ndarray | None
    n_rows: int
    sums: Array
    sample: Sample
    first: Chunk
    given: Array

    @property
    def mean(self) -> Array:
        """The mean row."""
        return self.sums / self.n_rows


@dataclass(frozen=True)
class Sums:
    """The sums over rows, with those that the centres come from.

    Attributes
    ----------
    statistics : Statistics
    rows : array of shape (c, n_features)
        P^T X.
    """

    statistics: Statistics
    rows: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.statistics + other.statistics, self.rows + other.rows)


@dataclass(frozen=True)
class Rules:
    """How a row becomes a part of the sums.

    Attributes
    ----------
    feature_map : IdentityMap, NystroemMap or FourierMap
    prototypes : list of array of shape (c, n_features)
        One array a clustering.
    layout : Layout
    classes : ndarray
    given : array
        Without rows, of the kind that chunks were given as.
    """

    feature_map: FeatureMap
    prototypes: list[Array]
    layout: Layout
    classes: np.ndarray
    given: Array

    def moved(self, like: Any) -> Rules:
        """Return the rules for rows of the library and on the device of an array."""
        prototypes = [asarray(part, like) for part in self.prototypes]
        return replace(
            self, feature_map=moved_record(self.feature_map, like), prototypes=prototypes
        )


def look_at(
    chunk: Chunk, sample_size: int, seed: int, n_rows: int | None, move: Move | None = None
) -> Look:
    """Look at a chunk: check it and draw its part of the sample.

    Where the number of all rows is known, only rows that have a chance are drawn, so that parts of
    a sample that travel are small.
    """
    X = read_rows(chunk, None, move)
    sums = check_finite(chunk, X)
    layout = read_layout(chunk, X)
    sample = Sample.of_rows(X, chunk.start, sample_size, seed)
    if n_rows is not None:
        sample = sample.likely(sample_size, n_rows)
    header = replace(chunk, X=None, y=None)
    classes, given = read_classes(chunk, layout), given_as(chunk.X)
    return Look(layout, classes, X.shape[0], sums, sample, header, given)


@dataclass(frozen=True)
class MergeLooks:
    """Merges what was seen of two parts.

    Attributes
    ----------
    sample_size : int
    """

    sample_size: int

    def __call__(self, a: Look, b: Look) -> Look:
        """Return what was seen of both."""
        a, b = (a, b) if a.first.start <= b.first.start else (b, a)
        layout = a.layout.merge(b.layout, b.first)
        classes = None
        if a.classes is not None and b.classes is not None:
            classes = np.union1d(a.classes, b.classes)
        sample = a.sample.merge(b.sample, self.sample_size)
        sums = a.sums + asarray(b.sums, a.sums)
        return replace(
            a, layout=layout, classes=classes, n_rows=a.n_rows + b.n_rows, sums=sums, sample=sample
        )


def cluster_sums_of(chunk: Chunk, rules: Rules, move: Move | None) -> tuple[Array, Array]:
    """Return the sum of the rows nearest to each prototype, and their number."""
    X = asarray(read_rows(chunk, rules.layout.n_features, move), rules.prototypes[0])
    P = _membership(X, rules.prototypes)
    return _row_sums(P, X), column_sums(P)


def _row_sums(P: Array, X: Features) -> Array:
    """Return P^T X; SciPy's product is in float64 by itself, without a copy of the rows."""
    return dense(P.T @ (X if is_numpy(X) else astype(X, "float64")))


def sum_chunk(chunk: Chunk, rules: Rules, check: bool = False, move: Move | None = None) -> Sums:
    """Return the sums over a chunk, taken in blocks of rows, and check that they are finite."""
    # As the chunks before it, whatever kind of array it is.
    X = asarray(read_rows(chunk, rules.layout.n_features, move), rules.prototypes[0])
    if check:
        check_finite(chunk, X)
    on = read_labels(chunk, rules.layout, rules.classes)
    Y = signs(asarray(on if move is None else move(on), X))
    P = _membership(X, rules.prototypes)
    feature_map = rules.feature_map
    if isinstance(feature_map, IdentityMap):
        columns, to_sum = X.shape[1], feature_map.transform
    else:
        columns, to_sum = feature_map.n_summed, feature_map.to_sum
    blocks = row_blocks(X.shape[0], columns, block_entries(X) or SUM_ENTRIES)
    parts = (Statistics.of_rows(to_sum(X[b, :]), Y[b, :], P[b, :]) for b in blocks)
    sums = sum(parts, start=next(parts))
    if not isinstance(feature_map, IdentityMap):
        return Sums(sums, _row_sums(P, X))
    shift = 0.0 if feature_map.shift is None else feature_map.shift
    return Sums(sums, sums.cluster_sums + sums.sizes[:, None] * shift)


def _membership(X: Features, prototypes: list[Array]) -> Array:
    columns, n_clusters = [], 0
    for part in prototypes:
        columns.append(nearest(X, part) + n_clusters)
        n_clusters += part.shape[0]
    return membership_matrix(namespace(X).stack(columns, axis=1), n_clusters, X)


def add(a: Sums, b: Sums) -> Sums:
    """Merge the sums over two parts."""
    return a + b


def add_pairs(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """Merge what :func:`cluster_sums_of` gives for two parts."""
    return a[0] + b[0], a[1] + b[1]
