"""A fold of the exact search: cluster means, kernel, eigenbasis, then the whole grid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    namespace,
    scaled_rows,
    side_by_side,
    submatrix,
    take,
    take_rows,
    to_numpy,
)
from imcc._array.device import block_entries, limited_threads, synchronize
from imcc._math.clustering import VirtualExamples, virtual_examples
from imcc._math.kernels import Kernel, choose_width
from imcc._math.maps import Approximation, FeatureMap, IdentityMap, KernelMap, feature_sums
from imcc._math.search.folds import Fold, evaluated_labels
from imcc._math.search.grid import DistinctLabels, EigenProblem, Grid, Pair, grid_scores
from imcc._math.search.scorers import ScorerMetrics, Scoring
from imcc._math.solver import eigenbasis, kernel_factors, label_patterns
from imcc._utils.validation import Features, Target
from imcc.metrics import LabelMetrics

# Clusters of the training rows of a fold for each entry of ``grid.n_clusters``, of shape
# (n_train, n_clusterings), and the landmarks of a Nyström approximation, if any.
Clusters = tuple[list[np.ndarray], Features | None]


@dataclass(frozen=True)
class Search:
    """What a search is about: the data, the folds and the settings.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Determines library and device.  In the folds of an exact kernel model, the rows are in
        float64 and relative to the origin of the kernel.
    target : Target
    folds : list of Fold
    grid : Grid
    scoring : Scoring
    approximations : list of Approximation or None
        Approximation of each kernel of the grid, if any.
    clusterer
        As for a single fit.
    seed : int
        Seed of the clusters and the approximations.
    weights : ndarray of shape (n_samples,) or None
        Row weights > 0 for the fits and the metrics, on the host.
    """

    X: Features
    target: Target
    folds: list[Fold]
    grid: Grid
    scoring: Scoring
    approximations: Sequence[Approximation | None]
    clusterer: Any
    seed: int
    weights: np.ndarray | None


def search_fold(
    search: Search,
    k: int,
    base: Array | None,
    fold: Fold,
    clusters: Clusters,
    width_scale: float,
) -> tuple[np.ndarray, float]:
    """Evaluate the grid on one fold, for one kernel and width.

    As in :func:`imcc._math.fitting.fit_arrays`, each label is fitted on the training rows in which
    it is known; width, clusters and feature map are computed from all training rows of the fold.
    Labels that are known in the same rows share an eigenbasis.

    Parameters
    ----------
    search : Search
    k : int
        Index of the kernel.
    base : array of shape (n_samples, n_samples), or None
        ``kernel.base(search.X)``, for an exact kernel model; None for models on features.
    fold : Fold
    clusters : Clusters
    width_scale : float
        As for a single fit.

    Returns
    -------
    table : ndarray of shape (3 + n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
        Whether all scores of a setting are finite (1.0), its share of the seconds of solving and
        of those of the metrics, and the metrics.
    negative : float
        How far the kernel matrix is from being positive semidefinite (see
        :class:`imcc._math.maps.KernelMap`).
    """
    start = time.perf_counter()
    with limited_threads(len(fold.train)):
        (_, kernel), target = search.grid.kernels[k], search.target
        approximation, (assignments, landmarks) = search.approximations[k], clusters
        rows = take_rows(search.X, fold.train)
        weights = None if search.weights is None else asarray(search.weights[fold.train], rows)
        feature_map: FeatureMap | None = None
        width = None
        if approximation is not None:
            feature_map = approximation.fit(rows, width_scale, search.seed, landmarks, weights)
        elif base is None:
            feature_map = IdentityMap.fit(rows)
        else:
            inner = submatrix(base, fold.train, fold.train)
            width = choose_width(kernel, inner, "mean_distance", width_scale, weights)
        problems = []
        for kept, labels in _patterns(target, fold):
            train = fold.train[kept]
            own, of_own = _part(rows, kept), None if weights is None else _part(weights, kept)
            distinct = DistinctLabels.of(target.signs[train][:, labels])
            signs = asarray(distinct.signs, own)
            virtuals = [
                virtual_examples(own, signs, _clusters_of(assignment, kept), of_own)
                for assignment in assignments
            ]
            if feature_map is not None:
                tests = take_rows(search.X, fold.test)
                parts = _feature_problem(feature_map, own, tests, signs, virtuals)
            else:
                # It is overwritten: with unknown labels, each pattern needs its own.
                K = inner if target.known is None else submatrix(inner, kept, kept)
                K_test = submatrix(base, fold.test, train)
                parts = _kernel_problem(kernel, width, K, K_test, own, signs, virtuals)
            problems.append(
                EigenProblem(**parts, virtuals=virtuals, distinct=distinct, labels=labels)
            )
        finite, values, score_seconds = _evaluate(search, fold, problems)
    fit_seconds = time.perf_counter() - start - score_seconds
    shares = [np.full_like(finite, s / finite.size) for s in (fit_seconds, score_seconds)]
    return np.stack([finite, *shares, *values]), max(problem.negative for problem in problems)


def _patterns(target: Target, fold: Fold) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training rows and the labels of each pattern of known labels."""
    if target.known is None:
        return [(np.arange(len(fold.train)), np.arange(target.signs.shape[1]))]
    known = target.known[fold.train]
    if not known.any(axis=0).all():
        label = int(np.flatnonzero(~known.any(axis=0))[0])
        raise ValueError(
            f"label {label} (counted from 0) is unknown in all training rows of a fold: use other "
            "folds, or remove the label"
        )
    return label_patterns(known)


def _part(values: Any, rows: np.ndarray) -> Any:
    """Return some rows in ascending order; all of them without a copy."""
    return values if len(rows) == values.shape[0] else take_rows(values, rows)


def _clusters_of(assignment: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the clusters of some rows, numbered without gaps."""
    return np.unique(assignment[kept], return_inverse=True)[1].reshape(len(kept), -1)


def _kernel_problem(
    kernel: Kernel,
    width: float | None,
    base: Array,
    base_test: Array,
    rows: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
) -> dict[str, Any]:
    """Set up the exact kernel model; the bases of training and held-out rows are overwritten."""
    # Rows are scaled by the square roots of their weights; see the solver.
    roots = virtuals[0].roots
    K, K_test = kernel.finish(base, width), kernel.finish(base_test, width)
    if roots is not None:
        K *= roots[:, None]
        K *= roots
        K_test *= roots
        signs = scaled_rows(signs, roots)
    kernel_map = KernelMap.fit(K)
    factors = []
    for virtual in virtuals:
        K_centers = kernel.finish(kernel.base(virtual.centers, rows), width)
        if roots is not None:
            K_centers *= roots
        factors.append(kernel_factors(kernel_map, K_centers, virtual))
    return {
        "eigenvalues": kernel_map.eigenvalues,
        "cross": kernel_map.train_sums(signs.T),
        "factors": factors,
        "held_out": kernel_map.transform(K_test),
        "negative": kernel_map.negative,
    }


def _feature_problem(
    feature_map: FeatureMap,
    rows: Features,
    tests: Features,
    signs: Array,
    virtuals: list[VirtualExamples],
) -> dict[str, Any]:
    """Set up the model on features."""
    # One pass over the rows for all clusterings.
    P = side_by_side([virtual.membership for virtual in virtuals])
    sums = feature_map.of_sums(feature_sums(feature_map, rows, signs, P, virtuals[0].weights))
    eigenvalues, vectors = eigenbasis(sums.gram)
    factors, start = [], 0
    for virtual in virtuals:
        end = start + virtual.sizes.shape[0]
        own = [feature_map.transform(virtual.centers), sums.cluster_sums[start:end, :]]
        factors.append(namespace(vectors).concat(own, axis=0) @ vectors)
        start = end
    return {
        "eigenvalues": eigenvalues,
        "cross": sums.cross.T @ vectors,
        "factors": factors,
        "held_out": feature_map.transform(tests) @ vectors,
    }


def _metrics(search: Search, fold: Fold, like: Array) -> LabelMetrics | ScorerMetrics:
    """Return what computes the metrics of the held-out rows."""
    target, test = search.target, fold.test
    weights = None if search.weights is None else search.weights[test]
    known = None if target.known is None else target.known[test]
    evaluated = evaluated_labels(target.signs[test], target.kind)
    metrics = LabelMetrics(evaluated, known, weights, like)
    scorers = search.scoring.scorers
    return ScorerMetrics(metrics, scorers, target, test, weights) if scorers else metrics


def _evaluate(
    search: Search, fold: Fold, problems: Sequence[EigenProblem]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the metrics of all settings.

    Parameters
    ----------
    search : Search
    fold : Fold
    problems : sequence of EigenProblem
        One per pattern of known labels.

    Returns
    -------
    finite : ndarray of shape (n_alphas, n_betas, n_gammas, n_clusterings)
        1.0 where all scores of a setting are finite, otherwise 0.0.
    values : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
    seconds : float
        Time spent on the metrics.
    """
    like, grid = problems[0].held_out, search.grid
    computed = _metrics(search, fold, like)
    xp, seconds = namespace(like), 0.0
    # A device computes as many settings at once as its memory allows, a CPU only one pair (beta,
    # gamma), so that the data stay in its cache; so do the patterns, which then keep in step.
    entries = (block_entries(like) or 1) if len(problems) == 1 else 1
    steps = (grid_scores(problem, grid, entries, computed.entries()) for problem in problems)
    back = asarray(np.argsort(np.concatenate([problem.labels for problem in problems])), like)
    parts: list[Array] = []
    places: list[tuple[int, Pair]] = []
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
            means = computed.means(scores, search.scoring.names)
        parts.append(xp.concat([sums[None, :], means], axis=0))
        places += [(clustering, pair) for pair in pairs]
        synchronize(like)
        seconds += time.perf_counter() - before
    values = to_numpy(xp.concat(parts, axis=1))
    # Values come for one pair (beta, gamma) of a clustering after the other, all alphas of each.
    table = np.empty((len(values), *grid.shape))
    for n, (clustering, (_, i, j)) in enumerate(places):
        n_alphas = len(grid.alphas)
        table[:, :, i, j, clustering] = values[:, n * n_alphas : (n + 1) * n_alphas]
    return np.isfinite(table[0]).astype(np.float64), table[1:], seconds
