"""The exact grid search over folds, kernels and widths, in parallel.

The search only stores metrics, since the scores of all settings would need too much memory.  Scores
of held-out rows for the selected setting come from one Cholesky fit per fold, with the clusters and
landmarks of the search, which takes a small part of the time of the search.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from imcc._array.array import asarray, is_numpy, take_rows, to_numpy
from imcc._array.device import limited_threads
from imcc._math.clustering import assign_rows
from imcc._math.fitting import FitSettings, check_model, fit_assigned, warn_of_patterns
from imcc._math.kernels import Kernel
from imcc._math.maps import Approximation, warn_if_indefinite
from imcc._math.sampling import sample_rows
from imcc._math.search.fold import FoldResult, Shared, require_room, search_fold
from imcc._math.search.folds import Fold, check_defined
from imcc._math.search.grid import Grid
from imcc._math.search.scorers import Scoring, check_scorers
from imcc._math.solver import label_patterns
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features, Target, explained_singularity


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
) -> tuple[dict[tuple[int, int], list[FoldResult]], list[FoldClusters]]:
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
    results : dict of (kernel index, width scale index) to list of FoldResult
        Kernels without a width have only the width scale index 0.
    clusters : list of FoldClusters
        One per fold.
    """
    if approximations[0] is None:
        for kernel in kernels:
            require_room(X, kernel, folds)
    check_defined(scoring.names, target, folds)
    if target.known is not None:
        n_patterns = len(label_patterns(target.known))
        warn_of_patterns(n_patterns, " in every fold", stacklevel=4)
    check_scorers(scoring.scorers, target)
    # A device is shared by all processes, and its arrays cannot be passed between them.
    n_jobs = n_jobs if is_numpy(X) else 1
    report_progress(0.0, what="clustering rows")
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    clusters, messages = [], set()
    for of_fold, said in parallel(
        delayed(_cluster_fold)(
            X,
            fold,
            grid.n_clusters,
            clusterer,
            seed,
            approximations[0],
            None if weights is None else weights[fold.train],
        )
        for fold in folds
    ):
        clusters.append(of_fold)
        messages |= set(said)
    if messages:
        warnings.warn("; ".join(sorted(messages)), ConvergenceWarning, stacklevel=3)

    outcomes: dict[tuple[int, int], list[FoldResult]] = {}
    done, total = 0, len(folds) * sum(len(width_scales) if k.has_width else 1 for k in kernels)
    for k, kernel in enumerate(kernels):
        # One kernel at a time, because its base is an n x n matrix.
        scales = list(width_scales) if kernel.has_width else [1.0]
        share = Shared.of(X, target, grid, scoring, kernel, approximations[k], folds, seed, weights)
        results = []
        for result in parallel(
            delayed(_search_fold)(share, fold, of_fold.assignments, of_fold.landmarks, scale)
            for scale in scales
            for fold, of_fold in zip(folds, clusters, strict=True)
        ):
            results.append(result)
            done += 1
            report_progress(done, total, "searching the grid")
        for w in range(len(scales)):
            outcomes[k, w] = results[w * len(folds) : (w + 1) * len(folds)]
        warn_if_indefinite(max(result.negative for result in results))
    return outcomes, clusters


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


def out_of_fold_scores(
    X: Features,
    target: Target,
    folds: Sequence[Fold],
    clusters: Sequence[FoldClusters],
    settings: FitSettings,
    n_jobs: int | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Score each row with the model of the fold that holds it out.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Determines library and device.
    target : Target
    folds : sequence of Fold
        Folds that hold out each row exactly once.
    clusters : sequence of FoldClusters
        Clusters of each fold for ``n_clusters`` of the settings.
    settings : FitSettings
        The selected setting.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel; ignored for rows on a device.
    weights : ndarray of shape (n_samples,), default=None
        Row weights, on the host.

    Returns
    -------
    ndarray of shape (n_samples, q)
        Scores, on the host.
    """
    parallel = Parallel(n_jobs=n_jobs if is_numpy(X) else 1)
    parts = parallel(
        delayed(_held_out_scores)(X, target, fold, of_fold, settings, weights)
        for fold, of_fold in zip(folds, clusters, strict=True)
    )
    scores = np.empty(target.signs.shape)
    for fold, part in zip(folds, parts, strict=True):
        scores[fold.test] = part
    return scores


def _held_out_scores(
    X: Features,
    target: Target,
    fold: Fold,
    clusters: FoldClusters,
    settings: FitSettings,
    weights: np.ndarray | None,
) -> np.ndarray:
    rows = take_rows(X, fold.train)
    (assignment,) = clusters.assignments
    with explained_singularity(f"the model with {settings.setting}", rows):
        model, _, constants = fit_assigned(
            rows,
            asarray(target.signs[fold.train], rows),
            assignment,
            settings,
            clusters.landmarks,
            None if weights is None else asarray(weights[fold.train], rows),
            None if target.known is None else target.known[fold.train],
        )
    check_model(model, settings.setting, rows)
    return to_numpy(model.scores(take_rows(X, fold.test)) + constants)
