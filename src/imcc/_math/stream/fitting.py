"""Fitting in passes over chunks of rows.

The model is that of :mod:`imcc._math.fitting`; only the computation of the sums differs.

1. The first pass checks and counts all rows, and computes their mean and a random sample.
2. Width, landmarks and the initial prototypes of the clusters (mini-batch k-means) are determined
   from the sample.
3. Optional Lloyd steps, each of them a pass, move the prototypes to the means of their rows.
4. A last pass computes the sums of :mod:`imcc._math.statistics`, with each row assigned to its
   nearest prototype.  The virtual examples are the means of the assigned rows.
5. The solver uses only these sums.

It is an error if a later pass gives other rows than the first one.

With a device, chunks are moved there one at a time, and everything is computed there, except the
k-means on the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from imcc._array.array import (
    Array,
    asarray,
    at_least,
    namespace,
    take_rows,
    to_numpy,
)
from imcc._array.device import ChunkMover, explained_memory_errors, one_thread
from imcc._math.clustering import (
    DEFAULT_N_CLUSTERS,
    check_prototypes,
    split_n_clusters,
    warn_if_empty,
)
from imcc._math.fitting import FitSettings, FittedModel, check_model, finished, solve_features
from imcc._math.maps import FeatureMap, IdentityMap
from imcc._math.solver import ClusterTerms, constant_labels
from imcc._math.stream.passes import (
    MergeSummaries,
    Move,
    StreamPlan,
    StreamSums,
    Summary,
    Totals,
    add,
    add_pairs,
    check_chunk,
    cluster_chunk,
    sum_chunk,
    summarize_chunk,
)
from imcc._math.stream.sources import (
    ChunkSource,
)
from imcc._utils.config import get_config
from imcc._utils.validation import Features, Target, explained_singularity

#: Remedy if a chunk does not fit on the device.
REMEDY = "use smaller chunks, or fewer n_components"


@dataclass(frozen=True)
class StreamClusters:
    """How the rows of a stream are clustered.

    Attributes
    ----------
    counts : list of int
        Number of prototypes of each clustering.
    prototypes : ndarray of shape (n_clusters, n_features) or None
        Fixed prototypes; None if they are determined from the rows.
    """

    counts: Sequence[int]
    prototypes: np.ndarray | None

    @classmethod
    def of(cls, settings: FitSettings) -> StreamClusters:
        """Return those of the settings; raise an error if streams do not support them."""
        counts = split_n_clusters(settings.n_clusters)
        clusterer = settings.clusterer
        if clusterer is None:
            return cls([count or DEFAULT_N_CLUSTERS for count in counts], None)
        if not isinstance(clusterer, np.ndarray):
            raise ValueError(
                f"the clusterer {type(clusterer).__name__} is not supported for streams, which are "
                "clustered by k-means: use clusterer=None, or an array of prototypes"
            )
        count = counts[0] if len(counts) == 1 else sum(c or 0 for c in counts)
        prototypes = check_prototypes(clusterer, count, clusterer.shape[-1])
        return cls([len(prototypes)], prototypes)

    @property
    def sample_size(self) -> int:
        """Number of rows used to initialise the prototypes."""
        config = get_config()
        return max(config.cluster_rows, config.rows_per_cluster * max(self.counts))


def fit_stream(source: ChunkSource, settings: FitSettings) -> FittedModel:
    """Fit a model in passes over a source.

    Parameters
    ----------
    source : ChunkSource
    settings : FitSettings
    """
    with explained_memory_errors("the model of the stream", REMEDY):
        return _fit_stream(source, settings)


def _fit_stream(source: ChunkSource, settings: FitSettings) -> FittedModel:
    move = None if settings.device is None else ChunkMover(settings.device).move
    clusters = StreamClusters.of(settings)
    size = _sample_size(settings, clusters)
    summary = source.reduce(summarize_chunk, MergeSummaries(size), size, settings.seed, move)
    plan = make_plan(summary, settings, clusters)
    for step in range(settings.lloyd_passes if clusters.prototypes is None else 0):
        plan = lloyd_step(source, plan, move, summary.totals, f"pass {step + 1} of lloyd_passes")
    sums = source.reduce(sum_chunk, add, plan, move)
    _check_pass(source, plan, move, summary.totals, sums)
    return solve(sums, plan, settings)


def _sample_size(settings: FitSettings, clusters: StreamClusters) -> int:
    """Return the size of the sample of the first pass."""
    approximation = settings.approximation
    for_map = 1 if approximation is None else approximation.sample_size
    return max(for_map, clusters.sample_size)


def make_plan(summary: Summary, settings: FitSettings, clusters: StreamClusters) -> StreamPlan:
    """Determine the feature map and the prototypes from the summary of the rows."""
    layout, approximation, seed = summary.layout, settings.approximation, settings.seed
    feature_map: FeatureMap
    if approximation is None:
        if layout.n_features > get_config().max_stream_features:
            raise ValueError(
                f"the linear model of {layout.n_features} features needs a matrix of "
                f"{layout.n_features**2 * 8 / 2**30:.0f} GiB for a stream: use kernel='rbf' with "
                "approximation='nystroem', or fewer features"
            )
        feature_map = IdentityMap(None if layout.sparse else summary.mean)
    else:
        sample = summary.sample.smallest(approximation.sample_size)
        feature_map = approximation.fit(sample.rows, settings.width_scale, seed)
    if clusters.prototypes is not None:
        given = check_prototypes(clusters.prototypes, None, layout.n_features)
        prototypes = [asarray(given, summary.totals.columns)]
    else:
        start = summary.sample.smallest(clusters.sample_size)
        draws = np.random.RandomState(seed).randint(2**31 - 1, size=len(clusters.counts))
        prototypes = [
            start_prototypes(start.rows, count, int(draw))
            for count, draw in zip(clusters.counts, draws, strict=True)
        ]
    return StreamPlan(feature_map, prototypes, layout, summary.like)


def start_prototypes(rows: Features, n_clusters: int, seed: int) -> Array:
    """Return the centres of mini-batch k-means on a sample, computed on the host."""
    model = MiniBatchKMeans(min(n_clusters, rows.shape[0]), n_init=1, random_state=seed)
    # On one thread, so that the centres do not depend on the number of threads.
    with one_thread():
        model.fit(to_numpy(rows))
    centers = model.cluster_centers_.astype(np.float64)
    return asarray(np.unique(centers, axis=0), rows)


def lloyd_step(
    source: ChunkSource,
    plan: StreamPlan,
    move: Move | None,
    totals: Totals,
    what: str,
) -> StreamPlan:
    """Move each prototype to the mean of its rows, if it has any, in one pass."""
    sums, sizes = source.reduce(cluster_chunk, add_pairs, plan, move)
    xp = namespace(sums)
    first = plan.prototypes[0].shape[0]
    columns = xp.sum(sums[:first, :], axis=0)
    _check_rows(source, plan, move, totals, float(xp.sum(sizes[:first])), columns, what)
    means = sums / at_least(sizes, 1.0)[:, None]
    moved = xp.where(sizes[:, None] > 0, means, xp.concat(plan.prototypes, axis=0))
    prototypes, start = [], 0
    for part in plan.prototypes:
        prototypes.append(moved[start : start + part.shape[0], :])
        start += part.shape[0]
    return replace(plan, prototypes=prototypes)


def _check_pass(
    source: ChunkSource, plan: StreamPlan, move: Move | None, totals: Totals, sums: StreamSums
) -> None:
    """Raise an error if the sums are not over the rows and labels of the first pass."""
    statistics, what = sums.statistics, "the pass that sums"
    first = plan.prototypes[0].shape[0]
    xp = namespace(sums.rows)
    columns = xp.sum(sums.rows[:first, :], axis=0)
    _check_rows(source, plan, move, totals, statistics.n_rows, columns, what)
    labels = np.asarray(to_numpy(xp.sum(statistics.cluster_labels[:first, :], axis=0)))
    totals.check_labels(labels, what)


def _check_rows(
    source: ChunkSource,
    plan: StreamPlan,
    move: Move | None,
    totals: Totals,
    n_rows: float,
    columns: Array,
    what: str,
) -> None:
    if not np.isfinite(to_numpy(columns)).all():
        # Another pass finds the row; chunks are not checked earlier, because a device would have
        # to synchronise for each of them.
        source.reduce(check_chunk, add, plan, move)
    totals.check(n_rows, columns, what)


def solve(sums: StreamSums, plan: StreamPlan, settings: FitSettings) -> FittedModel:
    """Solve for the model, using only the sums."""
    statistics, feature_map = sums.statistics, plan.feature_map
    used = np.flatnonzero(to_numpy(statistics.sizes) > 0)
    warn_if_empty(statistics.sizes.shape[0], len(used))
    first = asarray((used < plan.prototypes[0].shape[0]).astype(np.float64), sums.rows)
    statistics = replace(
        statistics,
        cluster_sums=take_rows(statistics.cluster_sums, used),
        cluster_labels=take_rows(statistics.cluster_labels, used),
        sizes=take_rows(statistics.sizes, used),
    )
    # Constant labels are exactly the intercept.
    constants = constant_labels(first @ statistics.cluster_labels, statistics.n_rows)
    statistics = statistics.without(constants)
    sizes = statistics.sizes[:, None]
    centers, soft_labels = take_rows(sums.rows, used) / sizes, statistics.cluster_labels / sizes
    terms = ClusterTerms(
        soft_labels=soft_labels,
        sizes=statistics.sizes,
        first=first,
        share=1.0 / len(plan.prototypes),
        n_rows=statistics.n_rows,
        label_totals=first @ statistics.cluster_labels,
    )
    # Overflow raises an error below instead of a warning here.
    with (
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
        explained_singularity(f"the model with {settings.setting}"),
    ):
        weights, intercept = solve_features(
            feature_map.of_sums(statistics),
            feature_map.transform(centers),
            terms,
            settings.setting,
            settings.solver,
        )
        model = feature_map.model(weights, intercept)
    check_model(model, settings.setting)
    return finished(
        model,
        centers,
        soft_labels,
        statistics.sizes,
        constants,
        like=plan.like,
        target=Target(
            np.empty((0, 0)),
            "multilabel",
            np.arange(plan.layout.n_labels),
            _names(plan.layout.label_names),
        ),
        feature_names=_names(plan.layout.feature_names),
    )


def _names(names: tuple[str, ...] | None) -> np.ndarray | None:
    return None if names is None else np.array(names, dtype=object)
