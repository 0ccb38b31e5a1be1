"""Training in passes over chunks of rows, wherever they are.

The model is the one of :mod:`imcc._core.models`: only where the sums are taken changes.

1. A look at all rows: are they as they should be, how many, their mean, and a random sample.
2. On the sample: width and landmarks, and the prototypes that clusters start from (mini-batch
   k-means).
3. Lloyd's steps, each a pass, if asked for: the prototypes become the means of their rows.
4. The sums of :mod:`imcc._core.statistics`, each row with its nearest prototype.  The virtual
   examples are the means of the rows that were assigned: true means, whatever the prototypes are.
5. The solver, on sums only.

With a device, chunks are moved there one after the other, and all of this is done there, but for
the k-means on the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from imcc._backend.array import Array, asarray, at_least, namespace, take_rows, to_numpy, transposed
from imcc._backend.device import Conveyor
from imcc._core.approximations import Approximation
from imcc._core.features import IdentityMap
from imcc._core.models import (
    LinearModel,
    Model,
    Setting,
    approximate_model,
    check_model,
    solve_features,
)
from imcc._core.solver import ClusterTerms
from imcc._core.statistics import constant_labels
from imcc._core.virtual import DEFAULT_N_CLUSTERS, check_prototypes, warn_if_empty
from imcc._stream.passes import (
    FeatureMap,
    Look,
    MergeLooks,
    Move,
    Rules,
    Sums,
    add,
    add_pairs,
    cluster_sums_of,
    look_at,
    sum_chunk,
)
from imcc._stream.sources import ChunkSource, Source
from imcc._utils.validation import Features

# Rows that the prototypes of clusters start from, and at least so many for each cluster.
CLUSTER_ROWS = 10_000
ROWS_PER_CLUSTER = 50
# The largest matrix of products of features, in features: 8 GiB.
MAX_FEATURES = 2**15


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
    device : str or None
        Where chunks are moved to.
    """

    setting: Setting
    approximation: Approximation | None
    width_scale: float
    n_clusters: Sequence[int | None]
    prototypes: np.ndarray | None
    lloyd_passes: int
    solver: str
    seed: int
    device: str | None = None

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
class Fitted:
    """A model and the virtual examples it was trained with."""

    model: Model
    centers: Array
    soft_labels: Array
    sizes: Array
    rules: Rules


def fit_stream(source: Source, plan: Plan) -> Fitted:
    """Fit a model in passes over a source.

    Parameters
    ----------
    source : Source
    plan : Plan
    """
    # Without a device nothing is to be moved, and there is nothing to send to other machines.
    move = None if plan.device is None else Conveyor(plan.device).move
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
        look = look_at(source.peek(), 1, plan.seed, None, move)
        if look.classes is not None:
            raise ValueError(
                "the stream can be read only once, and which classes there are is known at its end "
                "only: pass labels as an indicator matrix, or use partial_fit with classes"
            )
    else:
        size = plan.sample_size
        look = source.reduce(look_at, MergeLooks(size), size, plan.seed, source.n_rows, move)
    rules = make_rules(look, plan)
    for _ in range(plan.lloyd_passes if plan.prototypes is None else 0):
        rules = lloyd_step(source, rules, move)
    # What is read only once has not been looked at.
    return solve(source.reduce(sum_chunk, add, rules, once, move), rules, plan)


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
        given = check_prototypes(plan.prototypes, None, layout.n_features)
        prototypes = [asarray(given, look.sums)]
    else:
        rows = look.sample.smallest(plan.cluster_sample_size).rows
        draws = np.random.RandomState(plan.seed).randint(2**31 - 1, size=len(plan.counts))
        prototypes = [
            start_prototypes(rows, count, int(draw))
            for count, draw in zip(plan.counts, draws, strict=True)
        ]
    if classes is None:
        classes = np.arange(layout.n_labels) if look.classes is None else look.classes
    return Rules(feature_map, prototypes, layout, classes, look.given)


def start_prototypes(rows: Features, n_clusters: int, seed: int) -> Array:
    """Return the centres of mini-batch k-means on a sample, which are found on the host."""
    model = MiniBatchKMeans(min(n_clusters, rows.shape[0]), n_init=1, random_state=seed)
    centers = model.fit(to_numpy(rows)).cluster_centers_.astype(np.float64)
    return asarray(np.unique(centers, axis=0), rows)


def lloyd_step(source: Source, rules: Rules, move: Move | None = None) -> Rules:
    """Move every prototype to the mean of its rows, in one pass; one without rows stays."""
    sums, sizes = source.reduce(cluster_sums_of, add_pairs, rules, move)
    xp = namespace(sums)
    means = sums / at_least(sizes, 1.0)[:, None]
    moved = xp.where(sizes[:, None] > 0, means, xp.concat(rules.prototypes, axis=0))
    prototypes, start = [], 0
    for part in rules.prototypes:
        prototypes.append(moved[start : start + part.shape[0], :])
        start += part.shape[0]
    return replace(rules, prototypes=prototypes)


def solve(sums: Sums, rules: Rules, plan: Plan) -> Fitted:
    """Solve for the model; everything it needs is in the sums."""
    statistics = sums.statistics
    used = np.flatnonzero(to_numpy(statistics.sizes) > 0)
    warn_if_empty(statistics.sizes.shape[0], len(used))
    statistics = replace(
        statistics,
        cluster_sums=take_rows(statistics.cluster_sums, used),
        cluster_labels=take_rows(statistics.cluster_labels, used),
        sizes=take_rows(statistics.sizes, used),
    )
    sizes = statistics.sizes[:, None]
    first = asarray((used < rules.prototypes[0].shape[0]).astype(np.float64), sizes)
    # Labels that do not vary are the intercept alone, exactly.
    constants = constant_labels(first @ statistics.cluster_labels, statistics.n_rows)
    statistics = statistics.without(constants)
    centers, soft_labels = take_rows(sums.rows, used) / sizes, statistics.cluster_labels / sizes
    terms = ClusterTerms(
        soft_labels=soft_labels,
        sizes=statistics.sizes,
        first=first,
        share=1.0 / len(rules.prototypes),
        n_rows=statistics.n_rows,
        label_totals=first @ statistics.cluster_labels,
    )
    feature_map = rules.feature_map
    if not isinstance(feature_map, IdentityMap):
        statistics = feature_map.of_sums(statistics)
    weights, intercept = solve_features(
        statistics, feature_map.transform(centers), terms, plan.setting, plan.solver
    )
    intercept = intercept + constants
    if isinstance(feature_map, IdentityMap):
        if feature_map.shift is not None:
            intercept = intercept - feature_map.shift @ weights
        model: Model = LinearModel(transposed(weights), intercept)
    else:
        model = approximate_model(feature_map, weights, intercept)
    check_model(model, plan.setting)
    return Fitted(model, centers, soft_labels + constants, statistics.sizes, rules)
