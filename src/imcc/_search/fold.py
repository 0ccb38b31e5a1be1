"""A fold of the exact search: cluster means, kernel, eigenbasis, then the whole grid."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imcc._backend.array import (
    Array,
    asarray,
    astype,
    dense,
    scaled_rows,
    side_by_side,
    submatrix,
    take_rows,
)
from imcc._backend.device import require_memory
from imcc._core.clustering import VirtualExamples, virtual_examples
from imcc._core.kernels import Kernel, choose_width
from imcc._core.maps import Approximation, FeatureMap, IdentityMap, KernelMap, feature_sums
from imcc._core.models import REMEDY
from imcc._core.sampling import sample_weighted
from imcc._core.solver import ClusterTerms, Rotation, kernel_problem
from imcc._search.folds import Fold
from imcc._search.grid import EigenProblem, Grid, score_grid
from imcc._search.judges import BatchJudge, judge_of
from imcc._search.known import patterns_of, score_known
from imcc._search.labels import DistinctLabels
from imcc._search.scorers import Scorer, ScorerJudge, Truth
from imcc._utils.validation import Features
from imcc.metrics import Judge

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
        :class:`imcc._core.maps.KernelMap`).
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
        Rows in float64, relative to the origin of the kernel.
    signs : ndarray of shape (n_samples, q)
        Labels as -1 and +1, on the host.
    judged : ndarray of bool of shape (n_samples, q or 2)
        Labels for the metrics, on the host.
    kernel : Kernel
    base : array of shape (n_samples, n_samples), or None
        ``kernel.base(rows)``; None for primal models.
    approximation : Approximation or None
        Approximation of the kernel, if any; the rows are then unchanged.
    seed : int
        Seed of the approximation.
    scorers : dict of str to scorer
        Metrics that are scorers.
    truth : Truth or None
        Labels for the scorers.
    weights : ndarray of shape (n_samples,) or None
        Row weights for the fits and the metrics, on the host.
    known : ndarray of bool of shape (n_samples, q), or None
        Which labels are known; None if all are.
    """

    rows: Features
    signs: np.ndarray
    judged: np.ndarray
    kernel: Kernel
    base: Array | None
    approximation: Approximation | None = None
    seed: int = 0
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    truth: Truth | None = None
    weights: np.ndarray | None = None
    known: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        X: Features,
        signs: np.ndarray,
        judged: np.ndarray,
        kernel: Kernel,
        folds: Sequence[Fold],
        approximation: Approximation | None = None,
        seed: int = 0,
    ) -> Shared:
        """Compute the base, unless the model is primal or approximate."""
        if approximation is not None:
            return cls(X, signs, judged, kernel, None, approximation, seed)
        rows = astype(X, "float64")
        origin = IdentityMap.fit(X).shift if kernel.is_linear else kernel.origin(X)
        if origin is not None:
            rows = rows - origin
        if is_primal(X, kernel, folds):
            return cls(rows, signs, judged, kernel, None)
        return cls(rows, signs, judged, kernel, kernel.base(rows))


def is_primal(X: Features, kernel: Kernel, folds: Sequence[Fold]) -> bool:
    """Whether the kernel is linear with fewer features than rows, and is solved in the primal."""
    return kernel.is_linear and all(X.shape[1] < len(fold.train) for fold in folds)


def require_room(X: Features, kernel: Kernel, folds: Sequence[Fold]) -> None:
    """Raise an error for an exact search that does not fit into memory, before it starts."""
    if is_primal(X, kernel, folds):
        return
    n_train = max(len(fold.train) for fold in folds)
    n_bytes = 8.0 * (X.shape[0] ** 2 + FOLD_MATRICES * n_train**2)
    require_memory(n_bytes, X, f"the exact search with {X.shape[0]} rows", REMEDY)


def search_fold(
    share: Shared,
    fold: Fold,
    assignments: list[np.ndarray],
    grid: Grid,
    metrics: Sequence[str],
    width: Any,
    width_scale: float,
    span: str,
    landmarks: Features | None = None,
) -> FoldResult:
    """Evaluate the grid on one fold, for one kernel and width.

    Parameters
    ----------
    share : Shared
    fold : Fold
    assignments : list of ndarray of shape (n_train, n_clusterings)
        Clusters of the training rows, for each entry of ``grid.n_clusters``.
    grid : Grid
    metrics : sequence of str
    width, width_scale, span
        As for a single fit.
    landmarks : array or CSR matrix, default=None
        Landmarks of the fold, for a Nyström approximation.
    """
    start = time.perf_counter()
    if share.known is not None:
        return _search_known(share, fold, assignments, grid, metrics, width, width_scale, landmarks)
    rows, labels = take_rows(share.rows, fold.train), DistinctLabels.of(share.signs[fold.train])
    signs = asarray(labels.signs, rows)
    weights, of_tests = None, None
    if share.weights is not None:
        weights, of_tests = asarray(share.weights[fold.train], rows), share.weights[fold.test]
    virtuals = [virtual_examples(rows, signs, assignment, weights) for assignment in assignments]
    if share.approximation is not None:
        feature_map = _fold_map(share, rows, weights, width_scale, landmarks)
        problem = _approximate_problem(share, fold, rows, signs, virtuals, feature_map)
    elif share.base is None:
        problem = _feature_problem(rows, take_rows(share.rows, fold.test), signs, virtuals)
    else:
        problem = _kernel_problem(share, fold, rows, signs, virtuals, width, width_scale, span)
    ours = judge_of(share.judged[fold.test], problem.held_out, of_tests)
    judge: Judge | BatchJudge | ScorerJudge = ours
    if share.truth is not None:
        judge = ScorerJudge(ours, share.scorers, share.truth.rows(fold.test), of_tests)
    values, finite, score_seconds = score_grid(problem, judge, grid, metrics, labels)
    fit_seconds = time.perf_counter() - start - score_seconds
    return FoldResult(values, finite, fit_seconds, score_seconds, problem.negative)


def _search_known(
    share: Shared,
    fold: Fold,
    assignments: list[np.ndarray],
    grid: Grid,
    metrics: Sequence[str],
    width: Any,
    width_scale: float,
    landmarks: Features | None,
) -> FoldResult:
    """Evaluate the grid if some labels are unknown; see :mod:`imcc._search.known`."""
    assert share.known is not None
    start = time.perf_counter()
    rows, weights = take_rows(share.rows, fold.train), None
    if share.weights is not None:
        weights = asarray(share.weights[fold.train], rows)
    feature_map, chosen = None, width
    if share.approximation is not None:
        feature_map = _fold_map(share, rows, weights, width_scale, landmarks)
    elif share.base is not None:
        inner = submatrix(share.base, fold.train, fold.train)
        chosen = choose_width(share.kernel, inner, width, width_scale, weights)
    solved = []
    for pattern in patterns_of(share.known[fold.train]):
        part = Fold(fold.train[pattern.rows], fold.test)
        labels = DistinctLabels.of(share.signs[np.ix_(part.train, pattern.labels)])
        own = take_rows(share.rows, part.train)
        signs = asarray(labels.signs, own)
        of_own = None if weights is None else take_rows(weights, pattern.rows)
        virtuals = []
        for assignment in assignments:
            kept = assignment[pattern.rows]
            clusters = np.unique(kept, return_inverse=True)[1].reshape(kept.shape)
            virtuals.append(virtual_examples(own, signs, clusters, of_own))
        if feature_map is not None:
            problem = _approximate_problem(share, part, own, signs, virtuals, feature_map)
        elif share.base is None:
            problem = _feature_problem(own, take_rows(share.rows, fold.test), signs, virtuals)
        else:
            problem = _kernel_problem(share, part, own, signs, virtuals, chosen, 1.0, "train")
        solved.append((pattern, problem, labels))
    of_tests = None if share.weights is None else share.weights[fold.test]
    ours = Judge(share.judged[fold.test], share.known[fold.test], of_tests)
    judge: Judge | ScorerJudge = ours
    if share.truth is not None:
        judge = ScorerJudge(ours, share.scorers, share.truth.rows(fold.test), of_tests)
    values, finite = score_known(solved, judge, grid, metrics)
    negative = max(problem.negative for _, problem, _ in solved)
    return FoldResult(values, finite, time.perf_counter() - start, 0.0, negative)


def _fold_map(
    share: Shared,
    rows: Features,
    weights: Array | None,
    width_scale: float,
    landmarks: Features | None,
) -> FeatureMap:
    """Return the feature map of an approximation, fitted on the training rows."""
    approximation, seed = share.approximation, share.seed
    assert approximation is not None
    sample, of_sample = sample_weighted(rows, weights, approximation.sample_size, seed)
    return approximation.fit(sample, width_scale, seed, landmarks, of_sample)


def _kernel_problem(
    share: Shared,
    fold: Fold,
    rows: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
    width: Any,
    width_scale: float,
    span: str,
) -> EigenProblem:
    kernel, base = share.kernel, share.base
    assert base is not None
    inner = submatrix(base, fold.train, fold.train)
    weights, roots = virtuals[0].weights, virtuals[0].roots
    chosen = choose_width(kernel, inner, width, width_scale, weights)
    # Rows are scaled by the square roots of their weights; see the solver.
    K = kernel.finish(inner, chosen)
    K_test = kernel.finish(submatrix(base, fold.test, fold.train), chosen)
    if roots is not None:
        K *= roots[:, None]
        K *= roots
        K_test *= roots
        signs = scaled_rows(signs, roots)
    kernel_map = KernelMap.fit(K)
    cross = kernel_map.train_sums(signs.T)
    held_out = kernel_map.transform(K_test)
    problems, outside = [], []
    for virtual in virtuals:
        centers = virtual.centers
        K_centers = kernel.finish(kernel.base(centers, rows), chosen)
        if roots is not None:
            K_centers *= roots
        if span == "train":
            problems.append(kernel_problem(kernel_map, cross, K_centers, virtual))
            continue
        K_between = kernel.finish(kernel.base(centers), chosen)
        K_test = kernel.finish(kernel.base(centers, take_rows(share.rows, fold.test)), chosen)
        problem = kernel_problem(kernel_map, cross, K_centers, virtual, K_between)
        problems.append(problem)
        outside.append(K_test - problem.factors[: centers.shape[0], :] @ held_out.T)
    return EigenProblem(problems, held_out, outside or None, kernel_map.negative)


def _feature_problem(
    rows: Features, tests: Features, signs: Array, virtuals: list[VirtualExamples]
) -> EigenProblem:
    """Set up the linear model in the primal."""
    roots = virtuals[0].roots
    if roots is not None:
        rows, signs = scaled_rows(rows, roots), scaled_rows(signs, roots)
    gram = rows.T @ rows
    rotation = Rotation.of_gram(dense(gram))
    cross = rows.T @ signs
    problems = [
        # The centres are the means of their members, so the sums over members are sizes * centres.
        rotation.problem(cross, v.centers, v.centers * v.sizes[:, None], ClusterTerms.of(v))
        for v in virtuals
    ]
    return EigenProblem(problems, tests @ rotation.vectors)


def _approximate_problem(
    share: Shared,
    fold: Fold,
    rows: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
    feature_map: FeatureMap,
) -> EigenProblem:
    """Set up the model on the features of an approximate kernel."""
    weights = virtuals[0].weights
    # One pass over the rows for all clusterings.
    P = side_by_side([virtual.membership for virtual in virtuals])
    sums = feature_map.of_sums(feature_sums(feature_map, rows, signs, P, weights))
    rotation = Rotation.of_gram(sums.gram)
    ends = np.cumsum([virtual.sizes.shape[0] for virtual in virtuals]).tolist()
    problems = [
        rotation.problem(
            sums.cross,
            feature_map.transform(virtual.centers),
            sums.cluster_sums[end - virtual.sizes.shape[0] : end, :],
            ClusterTerms.of(virtual),
        )
        for virtual, end in zip(virtuals, ends, strict=True)
    ]
    tests = feature_map.transform(take_rows(share.rows, fold.test))
    return EigenProblem(problems, tests @ rotation.vectors)
