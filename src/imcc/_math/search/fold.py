"""A fold of the exact search: cluster means, kernel, eigenbasis, then the whole grid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    astype,
    namespace,
    scaled_rows,
    side_by_side,
    submatrix,
    take,
    take_rows,
    to_numpy,
)
from imcc._array.device import block_entries, require_memory, synchronize
from imcc._math.clustering import VirtualExamples, virtual_examples
from imcc._math.fitting import REMEDY, is_primal
from imcc._math.kernels import Kernel, choose_width
from imcc._math.maps import Approximation, FeatureMap, IdentityMap, KernelMap, feature_sums
from imcc._math.sampling import sample_weighted
from imcc._math.search.folds import Fold, evaluated_labels
from imcc._math.search.grid import DistinctLabels, EigenProblem, Grid, Pair, grid_scores
from imcc._math.search.scorers import ScorerMetrics, Scoring
from imcc._math.solver import Rotation, kernel_problem, label_patterns
from imcc._utils.validation import Features, Target
from imcc.metrics import LabelMetrics

# Measured number of n x n matrices in memory for a fold with n training rows: the kernel matrix,
# the eigenvectors and the workspace of the decomposition.
FOLD_MATRICES = 6


@dataclass(frozen=True)
class FoldResult:
    """Result of a fold for one kernel and width.

    Attributes
    ----------
    values : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
    finite : ndarray of bool of shape (n_alphas, n_betas, n_gammas, n_clusterings)
        Whether all scores of a setting are finite.
    fit_seconds, score_seconds : float
        Total time of solving and of the metrics for all settings.
    negative : float
        How far the kernel matrix is from being positive semidefinite (see
        :class:`imcc._math.maps.KernelMap`).
    """

    values: np.ndarray
    finite: np.ndarray
    fit_seconds: float
    score_seconds: float
    negative: float


@dataclass(frozen=True)
class Shared:
    """Data shared by all folds and widths of a kernel.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_samples, n_features)
        For an exact kernel model in float64, relative to the origin of the kernel.
    target : Target
    grid : Grid
    scoring : Scoring
    kernel : Kernel
    approximation : Approximation or None
        Approximation of the kernel, if any.
    base : array of shape (n_samples, n_samples), or None
        ``kernel.base(rows)``, for an exact kernel model; None for models on features.
    seed : int
        Seed of the approximation.
    weights : ndarray of shape (n_samples,) or None
        Row weights for the fits and the metrics, on the host.
    """

    rows: Features
    target: Target
    grid: Grid
    scoring: Scoring
    kernel: Kernel
    approximation: Approximation | None
    base: Array | None
    seed: int
    weights: np.ndarray | None

    @classmethod
    def of(
        cls,
        X: Features,
        target: Target,
        grid: Grid,
        scoring: Scoring,
        kernel: Kernel,
        approximation: Approximation | None,
        folds: Sequence[Fold],
        seed: int,
        weights: np.ndarray | None,
    ) -> Shared:
        """Compute the base, unless the model is one on features."""
        rows, base = X, None
        if approximation is None and not all_primal(X, kernel, folds):
            rows, origin = astype(X, "float64"), kernel.origin(X)
            rows = rows if origin is None else rows - origin
            base = kernel.base(rows)
        return cls(rows, target, grid, scoring, kernel, approximation, base, seed, weights)


def all_primal(X: Features, kernel: Kernel, folds: Sequence[Fold]) -> bool:
    """Whether the models of all folds are linear, and solved in the primal."""
    return all(is_primal(kernel, X.shape[1], len(fold.train)) for fold in folds)


def require_room(X: Features, kernel: Kernel, folds: Sequence[Fold]) -> None:
    """Raise an error for an exact search that does not fit into memory, before it starts."""
    if all_primal(X, kernel, folds):
        return
    n_train = max(len(fold.train) for fold in folds)
    n_bytes = 8.0 * (X.shape[0] ** 2 + FOLD_MATRICES * n_train**2)
    require_memory(n_bytes, X, f"the exact search with {X.shape[0]} rows", REMEDY)


def search_fold(
    share: Shared,
    fold: Fold,
    assignments: list[np.ndarray],
    landmarks: Features | None,
    width_scale: float,
) -> FoldResult:
    """Evaluate the grid on one fold, for one kernel and width.

    As in :func:`imcc._math.fitting.fit_arrays`, each label is fitted on the training rows in which
    it is known; width, clusters and feature map are computed from all training rows of the fold.
    Labels that are known in the same rows share an eigenbasis.

    Parameters
    ----------
    share : Shared
    fold : Fold
    assignments : list of ndarray of shape (n_train, n_clusterings)
        Clusters of the training rows, for each entry of ``grid.n_clusters``.
    landmarks : array or CSR matrix, or None
        Landmarks of the fold, for a Nyström approximation.
    width_scale : float
        As for a single fit.
    """
    start = time.perf_counter()
    rows = take_rows(share.rows, fold.train)
    weights = None if share.weights is None else asarray(share.weights[fold.train], rows)
    if share.base is None:
        feature_map = _fold_map(share, rows, weights, width_scale, landmarks)
    else:
        base = submatrix(share.base, fold.train, fold.train)
        width = choose_width(share.kernel, base, "mean_distance", width_scale, weights)
    problems, pattern_labels = [], []
    for kept, labels in _patterns(share.target, fold):
        part = fold if kept is None else Fold(fold.train[kept], fold.test)
        own = rows if kept is None else take_rows(rows, kept)
        of_own = weights if kept is None or weights is None else take_rows(weights, kept)
        distinct = DistinctLabels.of(share.target.signs[part.train][:, labels])
        signs = asarray(distinct.signs, own)
        virtuals = [
            virtual_examples(own, signs, _clusters_of(assignment, kept), of_own)
            for assignment in assignments
        ]
        if share.base is None:
            tests = take_rows(share.rows, fold.test)
            problem = _feature_problem(feature_map, own, tests, signs, virtuals)
        else:
            inner = base if kept is None else submatrix(base, kept, kept)
            problem = _kernel_problem(share, part, own, signs, virtuals, inner, width)
        problems.append((problem, distinct))
        pattern_labels.append(labels)
    computed = _metrics(share, fold, problems[0][0].held_out)
    values, finite, score_seconds = _evaluate(share, problems, pattern_labels, computed)
    fit_seconds = time.perf_counter() - start - score_seconds
    negative = max(problem.negative for problem, _ in problems)
    return FoldResult(values, finite, fit_seconds, score_seconds, negative)


def _metrics(share: Shared, fold: Fold, like: Array) -> LabelMetrics | ScorerMetrics:
    """Return what computes the metrics of the held-out rows."""
    target, test = share.target, fold.test
    weights = None if share.weights is None else share.weights[test]
    known = None if target.known is None else target.known[test]
    evaluated = evaluated_labels(target.signs[test], target.kind)
    metrics = LabelMetrics(evaluated, known, weights, like)
    scorers = share.scoring.scorers
    return ScorerMetrics(metrics, scorers, target, test, weights) if scorers else metrics


def _patterns(target: Target, fold: Fold) -> list[tuple[np.ndarray | None, np.ndarray]]:
    """Return the training rows (None: all) and the labels of each pattern of known labels."""
    if target.known is None:
        return [(None, np.arange(target.signs.shape[1]))]
    known = target.known[fold.train]
    if not known.any(axis=0).all():
        label = int(np.flatnonzero(~known.any(axis=0))[0])
        raise ValueError(
            f"label {label} (counted from 0) is unknown in all training rows of a fold: use other "
            "folds, or remove the label"
        )
    return list(label_patterns(known))


def _clusters_of(assignment: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
    """Return the clusters of some rows, numbered without gaps."""
    if kept is None:
        return assignment
    return np.unique(assignment[kept], return_inverse=True)[1].reshape(len(kept), -1)


def _evaluate(
    share: Shared,
    problems: Sequence[tuple[EigenProblem, DistinctLabels]],
    pattern_labels: Sequence[np.ndarray],
    computed: LabelMetrics | ScorerMetrics,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the metrics of all settings.

    Parameters
    ----------
    share : Shared
    problems : sequence of (EigenProblem, DistinctLabels)
        One per pattern of known labels.
    pattern_labels : sequence of ndarray of int
        The labels of each pattern.
    computed : LabelMetrics or ScorerMetrics
        Computes the metrics of all labels.

    Returns
    -------
    values : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
    finite : ndarray of bool of shape (n_alphas, n_betas, n_gammas, n_clusterings)
        Whether all scores of a setting are finite.
    seconds : float
        Time spent on the metrics.
    """
    like, grid = problems[0][0].held_out, share.grid
    xp, seconds = namespace(like), 0.0
    # A device computes as many settings at once as its memory allows, a CPU only one pair (beta,
    # gamma), so that the data stay in its cache; so do the patterns, which then keep in step.
    entries = (block_entries(like) or 1) if len(problems) == 1 else 1
    steps = (
        grid_scores(problem, grid, distinct, entries, computed.entries())
        for problem, distinct in problems
    )
    back = asarray(np.argsort(np.concatenate(pattern_labels)), like)
    parts: list[Array] = []
    places: list[tuple[int, list[Pair]]] = []
    for of_patterns in zip(*steps, strict=True):
        clustering, pairs, scores = of_patterns[0]
        if len(problems) > 1:
            scores = take(xp.concat([part for _, _, part in of_patterns], axis=0), back, 0)
        synchronize(like)
        before = time.perf_counter()
        # The sum is not finite if a score is not.  It is checked on the host, for all settings at
        # once, with a better message than the warnings of the metrics.
        with np.errstate(invalid="ignore", over="ignore"):
            sums = xp.sum(scores, axis=(0, 2))
            if scores.shape[0] < computed.n_labels:
                # A binary 1-D target: the ranking of its two classes.
                scores = xp.concat([-scores, scores], axis=0)
            means = computed.means(scores, share.scoring.names)
        parts.append(xp.concat([means, sums[None, :]], axis=0))
        places.append((clustering, pairs))
        synchronize(like)
        seconds += time.perf_counter() - before
    table = _as_table(to_numpy(xp.concat(parts, axis=1)), places, grid)
    return table[:-1], np.isfinite(table[-1]), seconds


def _as_table(
    values: np.ndarray, places: Sequence[tuple[int, list[Pair]]], grid: Grid
) -> np.ndarray:
    """Arrange values, (n_values, n_settings), by the axes of the grid."""
    table = np.empty((len(values), *grid.shape))
    start, n_alphas = 0, len(grid.alphas)
    for clustering, pairs in places:
        for _, i, j in pairs:
            table[:, :, i, j, clustering] = values[:, start : start + n_alphas]
            start += n_alphas
    return table


def _fold_map(
    share: Shared,
    rows: Features,
    weights: Array | None,
    width_scale: float,
    landmarks: Features | None,
) -> FeatureMap:
    """Return the feature map fitted on the training rows."""
    approximation, seed = share.approximation, share.seed
    if approximation is None:
        return IdentityMap.fit(rows)
    sample, of_sample = sample_weighted(rows, weights, approximation.sample_size, seed)
    return approximation.fit(sample, width_scale, seed, landmarks, of_sample)


def _kernel_problem(
    share: Shared,
    fold: Fold,
    rows: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
    base: Array,
    width: float | None,
) -> EigenProblem:
    """Set up the exact kernel model; ``base``, of the training rows, is overwritten."""
    kernel, roots = share.kernel, virtuals[0].roots
    assert share.base is not None
    # Rows are scaled by the square roots of their weights; see the solver.
    K = kernel.finish(base, width)
    K_test = kernel.finish(submatrix(share.base, fold.test, fold.train), width)
    if roots is not None:
        K *= roots[:, None]
        K *= roots
        K_test *= roots
        signs = scaled_rows(signs, roots)
    kernel_map = KernelMap.fit(K)
    cross = kernel_map.train_sums(signs.T)
    problems = []
    for virtual in virtuals:
        K_centers = kernel.finish(kernel.base(virtual.centers, rows), width)
        if roots is not None:
            K_centers *= roots
        problems.append(kernel_problem(kernel_map, cross, K_centers, virtual))
    return EigenProblem(problems, kernel_map.transform(K_test), kernel_map.negative)


def _feature_problem(
    feature_map: FeatureMap,
    rows: Features,
    tests: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
) -> EigenProblem:
    """Set up the model on features."""
    # One pass over the rows for all clusterings.
    P = side_by_side([virtual.membership for virtual in virtuals])
    sums = feature_map.of_sums(feature_sums(feature_map, rows, signs, P, virtuals[0].weights))
    rotation = Rotation.of_gram(sums.gram)
    problems, start = [], 0
    for virtual in virtuals:
        end = start + virtual.sizes.shape[0]
        own = replace(sums, cluster_sums=sums.cluster_sums[start:end, :])
        problems.append(rotation.problem(own, feature_map.transform(virtual.centers), virtual))
        start = end
    return EigenProblem(problems, feature_map.transform(tests) @ rotation.vectors)
