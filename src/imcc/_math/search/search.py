"""The exact grid search over folds, kernels and widths, in parallel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from imcc._array.array import is_numpy, take_rows
from imcc._array.device import limited_threads
from imcc._math.clustering import assign_rows
from imcc._math.fitting import warn_of_patterns
from imcc._math.kernels import Kernel
from imcc._math.maps import Approximation, warn_if_indefinite
from imcc._math.sampling import sample_rows
from imcc._math.search.fold import FoldResult, Shared, require_room, search_fold
from imcc._math.search.folds import Fold, check_defined, evaluated_labels
from imcc._math.search.grid import Grid
from imcc._math.search.scorers import Scoring, Truth, check_scorers
from imcc._math.solver import label_patterns
from imcc._utils.progress import is_watched, report_progress
from imcc._utils.validation import Features, Target


@dataclass(frozen=True)
class FoldClusters:
    """Clusters and landmarks of the training rows of a fold.

    Attributes
    ----------
    assignments : list of ndarray of shape (n_train, n_clusterings)
        Clusters of the training rows, for each entry of ``grid.n_clusters``.
    landmarks : array or CSR matrix, or None
        Landmarks of a Nyström approximation.
    """

    assignments: list[np.ndarray]
    landmarks: Features | None

    def only(self, entry: int) -> FoldClusters:
        """Return the clusters of one entry of ``grid.n_clusters``."""
        return FoldClusters([self.assignments[entry]], self.landmarks)


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a search.

    Attributes
    ----------
    results : dict of (kernel index, width scale index) to list of FoldResult
        Kernels without a width have only the width scale index 0.
    clusters : list of FoldClusters
        One per fold.
    """

    results: dict[tuple[int, int], list[FoldResult]]
    clusters: list[FoldClusters]


def search(
    X: Features,
    target: Target,
    folds: Sequence[Fold],
    grid: Grid,
    scoring: Scoring,
    *,
    kernels: Sequence[Kernel],
    approximations: Sequence[Approximation | None],
    width_scales: Sequence[float],
    clusterer: Any,
    seed: int,
    n_jobs: int | None,
    weights: np.ndarray | None = None,
) -> SearchOutcome:
    """Evaluate all settings on all folds.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Determines library and device.
    target : Target
    folds : sequence of Fold
    grid : Grid
    scoring : Scoring
    kernels, width_scales, clusterer, seed
        As for a single fit; ``width_scales`` is for kernels with a width.
    approximations : sequence of Approximation or None
        Approximation of each kernel, if any.
    n_jobs : int or None
        Passed to joblib; ignored for rows on a device.
    weights : ndarray of shape (n_samples,), default=None
        Row weights > 0, on the host.

    Returns
    -------
    SearchOutcome
    """
    if approximations[0] is None:
        for kernel in kernels:
            require_room(X, kernel, folds)
    evaluated = evaluated_labels(target.signs, target.kind)
    check_defined(scoring.names, evaluated, folds, target.known)
    if target.known is not None:
        n_patterns = len(label_patterns(target.known))
        warn_of_patterns(n_patterns, " in every fold", stacklevel=4)
    truth = Truth.of(target) if scoring.scorers else None
    if truth is not None:
        check_scorers(scoring.scorers, truth, target.signs.shape[1])
    # A device is shared by all processes, and its arrays cannot be passed between them.
    n_jobs = n_jobs if is_numpy(X) else 1
    report_progress(0.0, what="clustering rows")
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if is_watched() else "list")
    clustered = dict(
        parallel(
            delayed(_keyed)(
                i,
                _cluster_fold,
                X,
                fold,
                grid.n_clusters,
                clusterer,
                seed,
                approximations[0],
                None if weights is None else weights[fold.train],
            )
            for i, fold in enumerate(folds)
        )
    )
    clusters = [clustered[i][0] for i in range(len(folds))]
    messages = {message for _, said in clustered.values() for message in said}
    if messages:
        warnings.warn("; ".join(sorted(messages)), ConvergenceWarning, stacklevel=3)

    outcomes: dict[tuple[int, int], list[FoldResult]] = {}
    done, total = 0, len(folds) * sum(len(width_scales) if k.has_width else 1 for k in kernels)
    for k, kernel in enumerate(kernels):
        # One kernel at a time, because its base is an n x n matrix.
        scales = list(width_scales) if kernel.has_width else [1.0]
        share = Shared.of(X, target.signs, evaluated, kernel, folds, approximations[k], seed)
        share = replace(
            share, scorers=scoring.scorers, truth=truth, weights=weights, known=target.known
        )
        unordered = parallel(
            delayed(_keyed)(
                (w, i),
                _search_fold,
                share,
                fold,
                clusters[i].assignments,
                grid,
                scoring.names,
                scale,
                clusters[i].landmarks,
            )
            for w, scale in enumerate(scales)
            for i, fold in enumerate(folds)
        )
        results: dict[tuple[int, int], FoldResult] = {}
        for key, result in unordered:
            results[key] = result
            done += 1
            report_progress(done, total, "searching the grid")
        for w in range(len(scales)):
            outcomes[k, w] = [results[w, i] for i in range(len(folds))]
        warn_if_indefinite(max(result.negative for result in results.values()))
    return SearchOutcome(outcomes, clusters)


def _keyed(key: Any, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """Call a function and return the key with the result, since results come in any order."""
    return key, function(*arguments)


def _search_fold(share: Shared, fold: Fold, *rest: Any) -> FoldResult:
    with limited_threads(len(fold.train)):
        return search_fold(share, fold, *rest)


def _cluster_fold(
    X: Features,
    fold: Fold,
    n_clusters: Sequence[Any],
    clusterer: Any,
    seed: int,
    approximation: Approximation | None,
    weights: np.ndarray | None = None,
) -> tuple[FoldClusters, list[str]]:
    """Cluster the training rows of a fold for each entry of ``n_clusters``.

    Landmarks are also chosen here, because they are the same for all kernels and widths.  Warnings
    are returned as text, because they would be lost in a worker process.
    """
    rows = take_rows(X, fold.train)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assignments = [assign_rows(rows, count, clusterer, seed, weights) for count in n_clusters]
    landmarks = None
    if approximation is not None:
        sample = sample_rows(rows, approximation.sample_size, seed)
        landmarks = approximation.choose_landmarks(sample, seed)
    said = [str(warning.message) for warning in caught]
    return FoldClusters(assignments, landmarks), said
