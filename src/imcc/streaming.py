"""Training in passes over chunks of rows, wherever they are.

The model is the one of :mod:`imcc.models`: only where the sums are taken changes.

1. A look at all rows: are they as they should be, how many, their mean, and a random sample.
2. On the sample: width and landmarks, and the prototypes that clusters start from (mini-batch
   k-means).
3. Lloyd's steps, each a pass, if asked for: the prototypes become the means of their rows.
4. The sums of :mod:`imcc.statistics`, each row with its nearest prototype.  The virtual examples
   are the means of the rows that were assigned: true means, whatever the prototypes are.
5. The solver, on sums only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans

from imcc._validation import Features
from imcc.approximations import Approximation, FourierMap, NystroemMap
from imcc.features import IdentityMap
from imcc.kernels import row_blocks
from imcc.models import SUM_ENTRIES, LinearModel, Model, Setting, approximate_model, solve_features
from imcc.sampling import Sample
from imcc.solver import ClusterTerms
from imcc.sources import (
    Chunk,
    ChunkSource,
    Layout,
    Source,
    check_finite,
    read_classes,
    read_layout,
    read_rows,
    read_signs,
)
from imcc.statistics import Statistics
from imcc.virtual import (
    DEFAULT_N_CLUSTERS,
    check_prototypes,
    membership_matrix,
    nearest,
    warn_if_empty,
)

# Rows that the prototypes of clusters start from, and at least so many for each cluster.
CLUSTER_ROWS = 10_000
ROWS_PER_CLUSTER = 50
# The largest matrix of products of features, in features: 8 GiB.
MAX_FEATURES = 2**15

FeatureMap = IdentityMap | NystroemMap | FourierMap


@dataclass(frozen=True)
class Plan:
    """What to fit.

    Attributes
    ----------
    setting : Setting
    approximation : Approximation or None
        None is the linear model.
    width_scale : float
    n_clusters : list of int or None
        One entry a clustering.
    prototypes : ndarray of shape (n_clusters, n_features) or None
        Fixed ones; then nothing about clusters is learned.
    lloyd_passes : int
    solver : str
    seed : int
    """

    setting: Setting
    approximation: Approximation | None
    width_scale: float
    n_clusters: Sequence[int | None]
    prototypes: np.ndarray | None
    lloyd_passes: int
    solver: str
    seed: int

    @property
    def needs_look(self) -> bool:
        """Whether something must be learned from all rows before they can be summed."""
        learned = self.approximation is not None and self.approximation.needs_sample
        return learned or self.prototypes is None

    @property
    def counts(self) -> list[int]:
        """Number of prototypes of each clustering."""
        if self.prototypes is not None:
            return [len(self.prototypes)]
        return [count or DEFAULT_N_CLUSTERS for count in self.n_clusters]

    @property
    def sample_size(self) -> int:
        """Rows to draw in the first pass."""
        for_map = 1 if self.approximation is None else self.approximation.sample_size
        return max(for_map, self.cluster_sample_size)

    @property
    def cluster_sample_size(self) -> int:
        """Rows that the prototypes start from."""
        return max(CLUSTER_ROWS, ROWS_PER_CLUSTER * max(self.counts))


@dataclass(frozen=True)
class Look:
    """What the first pass finds out.

    Attributes
    ----------
    layout : Layout
    classes : ndarray or None
        The classes of a target with one class a row.
    n_rows : int
    sums : ndarray of shape (n_features,)
        Of the columns.
    sample : Sample
    first : Chunk
        The first of the chunks, without its rows: how to speak of them.
    """

    layout: Layout
    classes: np.ndarray | None
    n_rows: int
    sums: np.ndarray
    sample: Sample
    first: Chunk

    @property
    def mean(self) -> np.ndarray:
        """The mean row."""
        return self.sums / self.n_rows


@dataclass(frozen=True)
class Sums:
    """The sums over rows, with those that the centres come from.

    Attributes
    ----------
    statistics : Statistics
    rows : ndarray of shape (c, n_features)
        P^T X.
    """

    statistics: Statistics
    rows: np.ndarray

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.statistics + other.statistics, self.rows + other.rows)


@dataclass(frozen=True)
class Rules:
    """How a row becomes a part of the sums.

    Attributes
    ----------
    feature_map : IdentityMap, NystroemMap or FourierMap
    prototypes : list of ndarray of shape (c, n_features)
        One array a clustering.
    layout : Layout
    classes : ndarray
    """

    feature_map: FeatureMap
    prototypes: list[np.ndarray]
    layout: Layout
    classes: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A model and the virtual examples it was trained with."""

    model: Model
    centers: np.ndarray
    soft_labels: np.ndarray
    sizes: np.ndarray
    rules: Rules


def fit_stream(source: Source, plan: Plan) -> Fitted:
    """Fit a model in passes over a source.

    Parameters
    ----------
    source : Source
    plan : Plan
    """
    once = isinstance(source, ChunkSource) and source.once
    if once and plan.needs_look:
        raise ValueError(
            "the stream can be read only once (it is an iterator), but centres, width or landmarks "
            "must be learned before the rows are summed: pass something that can be iterated "
            "again (a list, imcc.open_stream, a function that gives an iterator), or fix them "
            "(clusterer, landmarks and width as arrays and number), or use partial_fit"
        )
    if once:
        assert isinstance(source, ChunkSource)
        look = look_at(source.peek(), 1, plan.seed, None)
        if look.classes is not None:
            raise ValueError(
                "the stream can be read only once, and which classes there are is known at its end "
                "only: pass labels as an indicator matrix, or use partial_fit with classes"
            )
    else:
        look = source.reduce(
            look_at, _Merge(plan.sample_size), plan.sample_size, plan.seed, source.n_rows
        )
    rules = make_rules(look, plan)
    for _ in range(plan.lloyd_passes if plan.prototypes is None else 0):
        rules = lloyd_step(source, rules)
    # What is read only once has not been looked at.
    return solve(source.reduce(sum_chunk, _add, rules, once), rules, plan)


def look_at(chunk: Chunk, sample_size: int, seed: int, n_rows: int | None) -> Look:
    """Look at a chunk: check it and draw its part of the sample.

    Where the number of all rows is known, only rows that have a chance are drawn, so that parts of
    a sample that travel are small.
    """
    X = read_rows(chunk)
    sums = check_finite(chunk, X)
    layout = read_layout(chunk, X)
    sample = Sample.of_rows(X, chunk.start, sample_size, seed)
    if n_rows is not None:
        sample = sample.likely(sample_size, n_rows)
    header = replace(chunk, X=None, y=None)
    return Look(layout, read_classes(chunk, layout), X.shape[0], sums, sample, header)


@dataclass(frozen=True)
class _Merge:
    """Merge what was seen of two parts."""

    sample_size: int

    def __call__(self, a: Look, b: Look) -> Look:
        a, b = (a, b) if a.first.start <= b.first.start else (b, a)
        layout = a.layout.merge(b.layout, b.first)
        classes = None
        if a.classes is not None and b.classes is not None:
            classes = np.union1d(a.classes, b.classes)
        sample = a.sample.merge(b.sample, self.sample_size)
        return Look(layout, classes, a.n_rows + b.n_rows, a.sums + b.sums, sample, a.first)


def make_rules(look: Look, plan: Plan, classes: np.ndarray | None = None) -> Rules:
    """Decide on the feature map and the prototypes, from what has been seen of the rows."""
    layout = look.layout
    if plan.approximation is None:
        if layout.n_features > MAX_FEATURES:
            raise ValueError(
                f"the linear model of {layout.n_features} features needs a matrix of "
                f"{layout.n_features**2 * 8 / 2**30:.0f} GiB for a stream: use kernel='rbf' with "
                "approximation='nystroem', or fewer features"
            )
        feature_map: FeatureMap = IdentityMap(None if layout.sparse else look.mean)
    else:
        asked = plan.approximation
        sample = look.sample.smallest(asked.sample_size).rows
        feature_map = asked.fit(sample, plan.width_scale, plan.seed)
    if plan.prototypes is not None:
        prototypes = [check_prototypes(plan.prototypes, None, layout.n_features)]
    else:
        rows = look.sample.smallest(plan.cluster_sample_size).rows
        draws = np.random.RandomState(plan.seed).randint(2**31 - 1, size=len(plan.counts))
        prototypes = [
            start_prototypes(rows, count, int(draw))
            for count, draw in zip(plan.counts, draws, strict=True)
        ]
    if classes is None:
        classes = np.arange(layout.n_labels) if look.classes is None else look.classes
    return Rules(feature_map, prototypes, layout, classes)


def start_prototypes(rows: Features, n_clusters: int, seed: int) -> np.ndarray:
    """Return the centres of mini-batch k-means on a sample."""
    model = MiniBatchKMeans(min(n_clusters, rows.shape[0]), n_init=1, random_state=seed)
    return np.unique(model.fit(rows).cluster_centers_.astype(np.float64), axis=0)


def lloyd_step(source: Source, rules: Rules) -> Rules:
    """Move every prototype to the mean of its rows, in one pass; one without rows stays."""
    sums, sizes = source.reduce(_cluster_sums, _add_pairs, rules)
    old = np.concatenate(rules.prototypes)
    moved = np.where(sizes[:, np.newaxis] > 0, sums / np.maximum(sizes, 1)[:, np.newaxis], old)
    ends = np.cumsum([len(part) for part in rules.prototypes])
    return replace(rules, prototypes=np.split(moved, ends[:-1]))


def _cluster_sums(chunk: Chunk, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    X = read_rows(chunk, rules.layout.n_features)
    P = _membership(X, rules.prototypes)
    return _dense(P.T @ X), np.asarray(P.sum(axis=0)).ravel()


def sum_chunk(chunk: Chunk, rules: Rules, check: bool = False) -> Sums:
    """Return the sums over a chunk, taken in blocks of rows, and check that they are finite."""
    X = read_rows(chunk, rules.layout.n_features)
    if check:
        check_finite(chunk, X)
    signs = read_signs(chunk, rules.layout, rules.classes)
    P = _membership(X, rules.prototypes)
    feature_map = rules.feature_map
    if isinstance(feature_map, IdentityMap):
        columns, to_sum = X.shape[1], feature_map.transform
    else:
        columns, to_sum = feature_map.n_summed, feature_map.to_sum
    blocks = row_blocks(X.shape[0], columns, SUM_ENTRIES)
    parts = (Statistics.of_rows(to_sum(X[b]), signs[b], P[b]) for b in blocks)
    sums = sum(parts, start=next(parts))
    if not isinstance(feature_map, IdentityMap):
        return Sums(sums, _dense(P.T @ X))
    shift = 0.0 if feature_map.shift is None else feature_map.shift
    return Sums(sums, sums.cluster_sums + sums.sizes[:, np.newaxis] * shift)


def solve(sums: Sums, rules: Rules, plan: Plan) -> Fitted:
    """Solve for the model; everything it needs is in the sums."""
    counts = [len(part) for part in rules.prototypes]
    used = sums.statistics.sizes > 0
    warn_if_empty(len(used), int(used.sum()))
    statistics = replace(
        sums.statistics,
        cluster_sums=sums.statistics.cluster_sums[used],
        cluster_labels=sums.statistics.cluster_labels[used],
        sizes=sums.statistics.sizes[used],
    )
    sizes = statistics.sizes[:, np.newaxis]
    centers, soft_labels = sums.rows[used] / sizes, statistics.cluster_labels / sizes
    first = (np.arange(len(used)) < counts[0]).astype(np.float64)[used]
    terms = ClusterTerms(
        soft_labels=soft_labels,
        sizes=statistics.sizes,
        first=first,
        share=1.0 / len(counts),
        n_rows=statistics.n_rows,
        label_totals=first @ statistics.cluster_labels,
    )
    feature_map = rules.feature_map
    if not isinstance(feature_map, IdentityMap):
        statistics = feature_map.of_sums(statistics)
    weights, intercept = solve_features(
        statistics, feature_map.transform(centers), terms, plan.setting, plan.solver
    )
    if isinstance(feature_map, IdentityMap):
        if feature_map.shift is not None:
            intercept = intercept - feature_map.shift @ weights
        model: Model = LinearModel(np.ascontiguousarray(weights.T), intercept)
    else:
        model = approximate_model(feature_map, weights, intercept)
    return Fitted(model, centers, soft_labels, statistics.sizes, rules)


def _membership(X: Features, prototypes: list[np.ndarray]) -> sp.csr_array:
    counts = [len(part) for part in prototypes]
    offsets = np.cumsum([0, *counts[:-1]])
    columns = [nearest(X, part) + at for part, at in zip(prototypes, offsets, strict=True)]
    return membership_matrix(np.stack(columns, axis=1), sum(counts))


def _add(a: Sums, b: Sums) -> Sums:
    return a + b


def _add_pairs(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return a[0] + b[0], a[1] + b[1]


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
