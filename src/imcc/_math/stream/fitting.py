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
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import _safe_indexing

from imcc._array.array import (
    Array,
    asarray,
    at_least,
    moved_record,
    namespace,
    take_rows,
    to_numpy,
)
from imcc._array.device import ChunkMover, explained_memory_errors, on_device
from imcc._array.threads import one_thread
from imcc._math.clustering import (
    DEFAULT_N_CLUSTERS,
    check_prototypes,
    split_n_clusters,
    warn_if_empty,
)
from imcc._math.fitting import FitSettings, FittedModel, check_model, finished, solve_features
from imcc._math.maps import FeatureMap, IdentityMap
from imcc._math.solver import ClusterTerms, constant_labels
from imcc._math.stream.dask import DaskSource
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
    Chunk,
    Layout,
    Source,
    as_source,
    empty_like,
    is_dask,
    read_layout,
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


def find_source(X: Any, y: Any, settings: FitSettings) -> Source | None:
    """Return a source of rows and labels; None if they are used as arrays.

    Parameters
    ----------
    X, y
        Arguments of ``fit``.
    settings : FitSettings
    """
    if is_dask(X):
        if settings.device is not None:
            raise ValueError(
                f"device={settings.device!r} is not supported for Dask collections, which are "
                "summed by the workers on their CPUs: use device=None, or a stream of chunks, "
                "which are moved to the device of this machine"
            )
        source: Source | None = DaskSource(X, y)
    else:
        source = as_source(X, y)
    if source is None:
        return None
    if y is not None and not is_dask(X):
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


def fit_stream(source: Source, settings: FitSettings) -> FittedModel:
    """Fit a model in passes over a source.

    Parameters
    ----------
    source : Source
    settings : FitSettings
    """
    with explained_memory_errors("the model of the stream", REMEDY):
        return _fit_stream(source, settings)


def _fit_stream(source: Source, settings: FitSettings) -> FittedModel:
    # None without a device, so that nothing is sent to other machines.
    move = None if settings.device is None else ChunkMover(settings.device).move
    clusters = StreamClusters.of(settings)
    head = source.peek()
    if head is not None:
        summary = _summary_of_one_pass(head, settings, clusters, move)
    else:
        size = _sample_size(settings, clusters)
        merge = MergeSummaries(size)
        summary = source.reduce(summarize_chunk, merge, size, settings.seed, source.n_rows, move)
    plan = make_plan(summary, settings, clusters)
    totals = summary.totals if head is None else None
    for step in range(settings.lloyd_passes if clusters.prototypes is None else 0):
        plan = lloyd_step(source, plan, move, totals, f"pass {step + 1} of lloyd_passes")
    # Streams that can be read only once have not been checked before.
    sums = source.reduce(sum_chunk, add, plan, head is not None, move)
    if totals is not None:
        _check_pass(source, plan, move, totals, sums)
    return solve(sums, plan, settings)


def _summary_of_one_pass(
    head: Chunk, settings: FitSettings, clusters: StreamClusters, move: Move | None
) -> Summary:
    """Return the summary of the first chunk of a stream that can be read only once."""
    approximation = settings.approximation
    learned = approximation is not None and approximation.needs_sample
    if learned or clusters.prototypes is None:
        raise ValueError(
            "the stream can be read only once, because it is an iterator, but centres, width or "
            "landmarks must be determined before the rows are summed: pass a list, "
            "imcc.open_stream or a function that returns an iterator, set clusterer, landmarks and "
            "width to fixed values, or use partial_fit"
        )
    summary = summarize_chunk(head, 1, settings.seed, None, move)
    if summary.classes is not None:
        raise ValueError(
            "the stream can be read only once, but its classes are known only at its end: pass "
            "labels as an indicator matrix, or use partial_fit with classes"
        )
    return summary


def _sample_size(settings: FitSettings, clusters: StreamClusters) -> int:
    """Return the size of the sample of the first pass."""
    approximation = settings.approximation
    for_map = 1 if approximation is None else approximation.sample_size
    return max(for_map, clusters.sample_size)


def make_plan(
    summary: Summary,
    settings: FitSettings,
    clusters: StreamClusters,
    classes: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> StreamPlan:
    """Determine the feature map and the prototypes from the summary of the rows.

    ``weights`` are the weights of all rows, if there are any.
    """
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
        of_sample = None if weights is None else asarray(weights[sample.numbers], sample.rows)
        feature_map = approximation.fit(sample.rows, settings.width_scale, seed, weights=of_sample)
    if clusters.prototypes is not None:
        given = check_prototypes(clusters.prototypes, None, layout.n_features)
        prototypes = [asarray(given, summary.totals.columns)]
    else:
        start = summary.sample.smallest(clusters.sample_size)
        of_start = None if weights is None else weights[start.numbers]
        draws = np.random.RandomState(seed).randint(2**31 - 1, size=len(clusters.counts))
        prototypes = [
            start_prototypes(start.rows, count, int(draw), of_start)
            for count, draw in zip(clusters.counts, draws, strict=True)
        ]
    if classes is None:
        classes = np.arange(layout.n_labels) if summary.classes is None else summary.classes
    return StreamPlan(feature_map, prototypes, layout, classes, summary.like)


def start_prototypes(
    rows: Features, n_clusters: int, seed: int, weights: np.ndarray | None = None
) -> Array:
    """Return the centres of mini-batch k-means on a sample, computed on the host."""
    model = MiniBatchKMeans(min(n_clusters, rows.shape[0]), n_init=1, random_state=seed)
    # On one thread, so that the centres do not depend on the number of threads.
    with one_thread():
        model.fit(to_numpy(rows), sample_weight=weights)
    centers = model.cluster_centers_.astype(np.float64)
    return asarray(np.unique(centers, axis=0), rows)


def lloyd_step(
    source: Source,
    plan: StreamPlan,
    move: Move | None = None,
    totals: Totals | None = None,
    what: str = "a pass of lloyd_passes",
) -> StreamPlan:
    """Move each prototype to the mean of its rows, if it has any, in one pass."""
    sums, sizes = source.reduce(cluster_chunk, add_pairs, plan, move)
    xp = namespace(sums)
    if totals is not None:
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
    source: Source, plan: StreamPlan, move: Move | None, totals: Totals, sums: StreamSums
) -> None:
    """Raise an error if the sums are not over the rows and labels of the first pass."""
    statistics, what = sums.statistics, "the pass that sums"
    first = plan.prototypes[0].shape[0]
    xp = namespace(sums.rows)
    columns = xp.sum(sums.rows[:first, :], axis=0)
    _check_rows(source, plan, move, totals, statistics.n_rows, columns, what)
    labels = np.asarray(to_numpy(xp.sum(statistics.cluster_labels[:first, :], axis=0)))
    totals.check_labels(labels, plan.classes, plan.layout.kind, what)


def _check_rows(
    source: Source,
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
        target=_target(plan),
        feature_names=_names(plan.layout.feature_names),
        weighted=sums.weighted,
    )


def _target(plan: StreamPlan) -> Target:
    """Describe the labels of a stream as :func:`imcc._utils.validation.encode_target` does."""
    none = np.empty((0, 0))
    if plan.layout.kind == "multilabel":
        return Target(none, "multilabel", plan.classes, _names(plan.layout.label_names))
    return Target(none, "binary" if len(plan.classes) <= 2 else "multiclass", plan.classes)


def _names(names: tuple[str, ...] | None) -> np.ndarray | None:
    return None if names is None else np.array(names, dtype=object)


@dataclass(frozen=True)
class StreamState:
    """State of ``partial_fit``, in arrays of the library of the input."""

    plan: StreamPlan
    sums: StreamSums
    n_chunks: int


def add_rows(
    before: StreamState | None,
    X: Features,
    y: Any,
    settings: FitSettings,
    classes: Any = None,
    feature_names: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> tuple[FittedModel, StreamState]:
    """Update a model with more rows: it is then the model of all rows seen.

    Parameters
    ----------
    before : StreamState or None
        State of the previous call; None for the first rows, which determine the plan.
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows that were checked.
    y : array-like
    settings : FitSettings
    classes : array-like, default=None
        All classes that will occur, for the first rows with one class per row.
    feature_names : ndarray of str, default=None
    sample_weight : ndarray of shape (n_samples,), default=None
        Row weights; rows of weight zero are removed.
    """
    if sample_weight is not None and not sample_weight.all():
        kept = np.flatnonzero(sample_weight)
        X, y = take_rows(X, kept), _safe_indexing(to_numpy(y), kept)
        sample_weight = sample_weight[kept]
    clusters, like = StreamClusters.of(settings), empty_like(X)
    with explained_memory_errors(f"the model with {X.shape[0]} more rows", REMEDY):
        X = on_device(X, settings.device)
        if before is None:
            chunk = Chunk(0, 0, X, y)
            size = _sample_size(settings, clusters)
            summary = summarize_chunk(chunk, size, settings.seed, None)
            known = _check_classes(classes, summary.layout)
            plan = make_plan(summary, settings, clusters, known, sample_weight)
            sums = sum_chunk(chunk, plan, weights=sample_weight)
        else:
            chunk = Chunk(before.n_chunks, int(before.sums.statistics.n_rows), X, y)
            before.plan.layout.merge(read_layout(chunk, X), chunk)
            plan = before.plan.moved(X)
            sums = moved_record(before.sums, X) + sum_chunk(chunk, plan, weights=sample_weight)
        plan = replace(plan, like=like)
        fitted = replace(solve(sums, plan, settings), feature_names=feature_names)
    return fitted, StreamState(plan.moved(like), moved_record(sums, like), chunk.number + 1)


def _check_classes(classes: Any, layout: Layout) -> np.ndarray | None:
    """Return all classes; None for an indicator matrix."""
    if layout.kind == "multilabel":
        return None
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit if y has one class per row"
        )
    return np.unique(np.asarray(classes))
