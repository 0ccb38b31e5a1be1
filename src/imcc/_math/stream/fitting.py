"""Fitting in passes over chunks of rows.

The model is that of :mod:`imcc._math.fitting`; only the computation of the sums differs.

1. The first pass checks and counts all rows, and computes their mean and a random sample.
2. Width, landmarks and the initial prototypes of the clusters (mini-batch k-means) are determined
   from the sample.
3. Optional Lloyd steps, each of them a pass, move the prototypes to the means of their rows.
4. A last pass computes the sums of :class:`imcc._math.maps.Statistics`, with each row assigned to
   its nearest prototype.  The virtual examples are the means of the assigned rows.
5. The solver uses only these sums.

It is an error if a later pass gives other rows than the first one.

With a device, chunks are moved there one at a time, and everything is computed there, except the
k-means on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans

from imcc._array.array import (
    Array,
    asarray,
    astype,
    at_least,
    column_squares,
    column_sums,
    dense,
    is_numpy,
    namespace,
    one_hot,
    signs,
    take_rows,
    to_numpy,
)
from imcc._array.device import ChunkMover, explained_memory_errors, one_thread
from imcc._math.clustering import (
    DEFAULT_N_CLUSTERS,
    VirtualExamples,
    check_prototypes,
    nearest,
    split_n_clusters,
    warn_if_empty,
)
from imcc._math.fitting import FitSettings, FittedModel, check_model, finished
from imcc._math.maps import FeatureMap, IdentityMap, Statistics, feature_sums
from imcc._math.sampling import Sample
from imcc._math.solver import constant_labels, solve_features
from imcc._math.stream.sources import (
    Chunk,
    ChunkSource,
    check_finite,
    read_labels,
    read_rows,
)
from imcc._utils.config import get_config
from imcc._utils.validation import Features, Target, column_names, explained_singularity

#: Remedy if a chunk does not fit on the device.
REMEDY = "use smaller chunks, or fewer n_components"
# Tolerance of column sums of the same rows, relative to sqrt(n) times the norm of the column;
# rounding errors of a hundred million rows are much smaller.
SAME_SUMS = 1e-9


def fit_stream(
    source: ChunkSource, settings: FitSettings
) -> tuple[FittedModel, Target, np.ndarray | None]:
    """Fit a model in passes over a source; return it, what the labels are, and feature names.

    Parameters
    ----------
    source : ChunkSource
    settings : FitSettings
    """
    with explained_memory_errors("the model of the stream", REMEDY):
        counts, fixed = _read_clusters(settings)
        config, approximation = get_config(), settings.approximation
        for_clusters = max(config.cluster_rows, config.rows_per_cluster * max(counts))
        for_map = 1 if approximation is None else approximation.sample_size
        move = ChunkMover(settings.device).move
        summary = _summarize(source, max(for_map, for_clusters), settings.seed, move)
        stream = _Stream(source, summary, move)
        feature_map = _feature_map(summary, settings)
        if fixed is not None:
            fixed = check_prototypes(fixed, None, summary.n_features)
            prototypes = [asarray(fixed, summary.columns)]
        else:
            sample = summary.sample.smallest(for_clusters).rows
            draws = np.random.RandomState(settings.seed).randint(2**31 - 1, size=len(counts))
            prototypes = [
                _start_prototypes(sample, count, int(draw))
                for count, draw in zip(counts, draws, strict=True)
            ]
            for step in range(settings.lloyd_passes):
                prototypes = stream.lloyd_step(prototypes, f"pass {step + 1} of lloyd_passes")
        statistics, row_sums = stream.sums(feature_map, prototypes)
        n_first = prototypes[0].shape[0]
        virtual, statistics, constants = _virtual_examples(
            statistics, row_sums, n_first, len(prototypes)
        )
        # Overflow raises an error below instead of a warning here.
        with (
            np.errstate(over="ignore", invalid="ignore", divide="ignore"),
            explained_singularity(f"the model with {settings.setting}"),
        ):
            weights, intercept = solve_features(
                feature_map.of_sums(statistics),
                feature_map.transform(virtual.centers),
                virtual,
                settings.setting,
                settings.solver,
            )
            model = feature_map.model(weights, intercept)
        check_model(model, settings.setting)
    target = Target(
        np.empty((0, 0)), "multilabel", np.arange(len(summary.labels)), summary.label_names
    )
    return finished(model, virtual, constants, summary.like), target, summary.feature_names


def _read_clusters(settings: FitSettings) -> tuple[Sequence[int], np.ndarray | None]:
    """Return the number of prototypes of each clustering, and the prototypes if they are given."""
    counts, clusterer = split_n_clusters(settings.n_clusters), settings.clusterer
    if clusterer is None:
        return [count or DEFAULT_N_CLUSTERS for count in counts], None
    if not isinstance(clusterer, np.ndarray):
        raise ValueError(
            f"the clusterer {type(clusterer).__name__} is not supported for streams, which are "
            "clustered by k-means: use clusterer=None, or an array of prototypes"
        )
    count = counts[0] if len(counts) == 1 else sum(c or 0 for c in counts)
    prototypes = check_prototypes(clusterer, count, clusterer.shape[-1])
    return [len(prototypes)], prototypes


@dataclass(frozen=True)
class _Summary:
    """Result of the first pass, or of a part of it.

    Attributes
    ----------
    n_rows : int
    columns, squares : array of shape (n_features,)
        Sums of the columns, and of their squares.
    labels : ndarray of shape (n_labels,)
        Number of rows with each label.
    feature_names, label_names : ndarray of str or None
    sparse : bool
        Whether a chunk is sparse.
    sample : Sample
    like : array
        Without rows, of the kind that chunks were given as.
    """

    n_rows: int
    columns: Array
    squares: Array
    labels: np.ndarray
    feature_names: np.ndarray | None
    label_names: np.ndarray | None
    sparse: bool
    sample: Sample
    like: Array

    @property
    def n_features(self) -> int:
        return int(self.columns.shape[0])

    def merge(self, other: _Summary, chunk: Chunk, sample_size: int) -> _Summary:
        """Return the summary with that of the next chunk; raise an error if its names differ."""
        for what in ("feature_names", "label_names"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if np.array_equal(ours, theirs):
                continue
            difference = "only some of them have names"
            if ours is not None and theirs is not None:
                k = np.flatnonzero(ours != theirs)[0]
                difference = f"{theirs[k]!r} instead of {ours[k]!r}"
            raise ValueError(f"{chunk} has other {what} than the previous chunks: {difference}")
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            columns=self.columns + asarray(other.columns, self.columns),
            squares=self.squares + asarray(other.squares, self.squares),
            labels=self.labels + other.labels,
            sparse=self.sparse or other.sparse,
            sample=self.sample.merge(other.sample, sample_size),
        )


def _summarize(
    source: ChunkSource, sample_size: int, seed: int, move: Callable[[Any], Any]
) -> _Summary:
    """Check, sum and sample the rows in the first pass."""
    summary: _Summary | None = None
    for chunk in source:
        X = read_rows(chunk, None if summary is None else summary.n_features, move)
        on = read_labels(chunk, X.shape[0], None if summary is None else len(summary.labels))
        part = _Summary(
            n_rows=X.shape[0],
            columns=check_finite(chunk, X),
            squares=column_squares(X),
            labels=on.sum(axis=0),
            feature_names=column_names(chunk.X),
            label_names=column_names(chunk.y),
            sparse=sp.issparse(X),
            sample=Sample.of_rows(X, chunk.start, sample_size, seed),
            like=np.empty((0, 0)) if is_numpy(chunk.X) else chunk.X[:0, :],
        )
        summary = part if summary is None else summary.merge(part, chunk, sample_size)
    if summary is None:
        raise ValueError("the stream is empty: it gave no chunk")
    return summary


def _feature_map(summary: _Summary, settings: FitSettings) -> FeatureMap:
    """Return the feature map of the rows that were summarized."""
    approximation, n_features = settings.approximation, summary.n_features
    if approximation is not None:
        sample = summary.sample.smallest(approximation.sample_size)
        return approximation.fit(sample.rows, settings.width_scale, settings.seed)
    if n_features > get_config().max_stream_features:
        raise ValueError(
            f"the linear model of {n_features} features needs a matrix of "
            f"{n_features**2 * 8 / 2**30:.0f} GiB for a stream: use kernel='rbf' with "
            "approximation='nystroem', or fewer features"
        )
    return IdentityMap(None if summary.sparse else summary.columns / summary.n_rows)


def _start_prototypes(rows: Features, n_clusters: int, seed: int) -> Array:
    """Return the centres of mini-batch k-means on a sample, computed on the host."""
    model = MiniBatchKMeans(min(n_clusters, rows.shape[0]), n_init=1, random_state=seed)
    # On one thread, so that the centres do not depend on the number of threads.
    with one_thread():
        model.fit(to_numpy(rows))
    centers = model.cluster_centers_.astype(np.float64)
    return asarray(np.unique(centers, axis=0), rows)


@dataclass(frozen=True)
class _Stream:
    """Later passes over a source, whose rows must be those of the first pass."""

    source: ChunkSource
    first_pass: _Summary
    move: Callable[[Any], Any]

    def lloyd_step(self, prototypes: list[Array], what: str) -> list[Array]:
        """Move each prototype to the mean of its rows, if it has any, in one pass."""
        sums: Any = 0.0
        sizes: Any = 0.0
        for chunk in self.source:
            X, P = self._assigned(chunk, prototypes)
            with np.errstate(invalid="ignore", over="ignore"):  # found by _check_rows
                sums, sizes = _row_sums(P, X) + sums, column_sums(P) + sizes
        xp = namespace(sums)
        n_first = prototypes[0].shape[0]
        self._check_rows(xp.sum(sums[:n_first, :], axis=0), what)
        means = sums / at_least(sizes, 1.0)[:, None]
        moved = xp.where(sizes[:, None] > 0, means, xp.concat(prototypes, axis=0))
        parts, start = [], 0
        for part in prototypes:
            parts.append(moved[start : start + part.shape[0], :])
            start += part.shape[0]
        return parts

    def sums(self, feature_map: FeatureMap, prototypes: list[Array]) -> tuple[Statistics, Array]:
        """Return the sums that the feature map wants, and P^T X, from which the centres come."""
        statistics: Statistics | None = None
        rows: Any = 0.0
        for chunk in self.source:
            X, P = self._assigned(chunk, prototypes)
            on = read_labels(chunk, X.shape[0], len(self.first_pass.labels))
            Y = signs(asarray(self.move(on), X))
            with np.errstate(invalid="ignore", over="ignore"):  # found by _check_rows
                part = feature_sums(feature_map, X, Y, P)
                statistics = part if statistics is None else statistics + part
                rows = _row_sums(P, X) + rows
        assert statistics is not None
        xp, what = namespace(rows), "the pass that sums"
        n_first = prototypes[0].shape[0]
        self._check_rows(xp.sum(rows[:n_first, :], axis=0), what)
        self._check_labels(xp.sum(statistics.cluster_labels[:n_first, :], axis=0), what)
        return statistics, rows

    def _assigned(self, chunk: Chunk, prototypes: list[Array]) -> tuple[Features, Array]:
        """Return the rows of a chunk, and the 0/1 matrix of their nearest prototypes."""
        X = read_rows(chunk, self.first_pass.n_features, self.move)
        # In the library and on the device of the previous chunks.
        X = asarray(X, prototypes[0])
        columns, n_clusters = [], 0
        with np.errstate(invalid="ignore", over="ignore"):
            for part in prototypes:
                columns.append(nearest(X, part) + n_clusters)
                n_clusters += part.shape[0]
        return X, one_hot(namespace(X).stack(columns, axis=1), n_clusters, X)

    def _check_rows(self, columns: Array, what: str) -> None:
        """Raise an error if a pass gave other rows than the first one.

        The source compares the number of rows.

        Parameters
        ----------
        columns : array of shape (n_features,)
            Sums of the columns of the pass.
        what : str
            The pass, for the message.
        """
        first = self.first_pass
        if not np.isfinite(to_numpy(columns)).all():
            # Another pass finds the row; chunks are not checked earlier, because a device would
            # have to synchronise for each of them.
            for chunk in self.source:
                check_finite(chunk, read_rows(chunk, first.n_features, self.move))
        sums, expected = np.asarray(to_numpy(columns)), np.asarray(to_numpy(first.columns))
        allowed = SAME_SUMS * np.sqrt(first.n_rows * np.asarray(to_numpy(first.squares)))
        wrong = np.flatnonzero(~(np.abs(sums - expected) <= allowed))
        if wrong.size:
            k = int(wrong[0])
            raise _changed(
                what,
                f"the values of column {k} (counted from 0) sum to {sums[k]:.9g} instead of "
                f"{expected[k]:.9g}",
            )

    def _check_labels(self, sums: Array, what: str) -> None:
        """Raise an error if a pass, with these sums of labels -1 and +1, gave other labels."""
        expected = self.first_pass.labels
        counts = (np.rint(to_numpy(sums)).astype(np.int64) + self.first_pass.n_rows) // 2
        for key in np.flatnonzero(counts != expected)[:1]:
            raise _changed(what, f"{counts[key]} rows have label {key} instead of {expected[key]}")


def _row_sums(P: Array, X: Features) -> Array:
    """Return P^T X in float64; SciPy's product needs no copy of the rows for this."""
    return dense(P.T @ (X if is_numpy(X) else astype(X, "float64")))


def _changed(what: str, difference: str) -> ValueError:
    return ValueError(
        f"the rows of the stream changed between the first pass and {what}: {difference}; each "
        "pass must give the same rows and labels (a function that uses random numbers needs a "
        "fixed seed)"
    )


def _virtual_examples(
    statistics: Statistics, row_sums: Array, n_first: int, n_clusterings: int
) -> tuple[VirtualExamples, Statistics, Array]:
    """Return the virtual examples, and the sums over rows for the labels less their constants.

    Parameters
    ----------
    statistics : Statistics
    row_sums : array of shape (c, n_features)
        P^T X.
    n_first : int
        Number of prototypes of the first clustering.
    n_clusterings : int

    Returns
    -------
    virtual : VirtualExamples
        Of the prototypes that have rows.
    statistics : Statistics
        Over the same clusters.
    constants : array of shape (q,)
        Constant labels are exactly the intercept.
    """
    used = np.flatnonzero(to_numpy(statistics.sizes) > 0)
    warn_if_empty(statistics.sizes.shape[0], len(used))
    first = asarray((used < n_first).astype(np.float64), row_sums)
    labels, sizes = take_rows(statistics.cluster_labels, used), take_rows(statistics.sizes, used)
    constants = constant_labels(first @ labels, statistics.n_rows)
    varied = namespace(constants).astype(constants == 0, constants.dtype)
    virtual = VirtualExamples(
        centers=take_rows(row_sums, used) / sizes[:, None],
        soft_labels=labels * varied / sizes[:, None],
        sizes=sizes,
        first=first,
        n_clusterings=n_clusterings,
        n_rows=statistics.n_rows,
    )
    sums = take_rows(statistics.cluster_sums, used)
    return (
        virtual,
        replace(statistics, cross=statistics.cross * varied, cluster_sums=sums),
        constants,
    )
