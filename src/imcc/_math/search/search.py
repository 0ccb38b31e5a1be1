"""The exact grid search over folds, kernels and widths, in parallel.

The search only stores metrics, since the scores of all settings would need too much memory.  Scores
of held-out rows for the selected setting come from one Cholesky fit per fold, with the clusters and
landmarks of the search, which takes a small part of the time of the search.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from imcc._array.array import asarray, astype, is_numpy, take_rows, to_numpy
from imcc._array.device import require_memory
from imcc._math.clustering import assign_rows
from imcc._math.fitting import (
    REMEDY,
    FitSettings,
    check_model,
    fit_assigned,
    is_primal,
    warn_of_patterns,
)
from imcc._math.kernels import Kernel, moved_by
from imcc._math.maps import warn_if_indefinite
from imcc._math.search.fold import Clusters, Search, search_fold
from imcc._math.search.folds import Fold, check_defined
from imcc._math.search.scorers import check_scorers
from imcc._math.solver import label_patterns
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features, explained_singularity

# Measured number of n x n matrices in memory for a fold with n training rows: the kernel matrix,
# the eigenvectors and the workspace of the decomposition.
FOLD_MATRICES = 6


def run_search(search: Search, n_jobs: int | None) -> tuple[list[np.ndarray], list[Clusters]]:
    """Evaluate all settings on all folds.

    Parameters
    ----------
    search : Search
    n_jobs : int or None
        Passed to joblib; ignored for rows on a device.

    Returns
    -------
    outcomes : list of ndarray of shape (n_scales, n_folds, 3 + n_metrics, *grid.shape)
        The tables of the folds (:func:`imcc._math.search.fold.search_fold`) of each kernel.
    clusters : list of Clusters
        One per fold.
    """
    X, target, grid, folds = search.X, search.target, search.grid, search.folds
    exact = [
        approximation is None and not _all_primal(search, kernel)
        for (_, kernel), approximation in zip(grid.kernels, search.approximations, strict=True)
    ]
    if any(exact):
        n_train = max(len(fold.train) for fold in folds)
        n_bytes = 8.0 * (X.shape[0] ** 2 + FOLD_MATRICES * n_train**2)
        require_memory(n_bytes, X, f"the exact search with {X.shape[0]} rows", REMEDY)
    check_defined(search.scoring.names, target, folds)
    if target.known is not None:
        n_patterns = len(label_patterns(target.known))
        warn_of_patterns(n_patterns, " in every fold", stacklevel=4)
    check_scorers(search.scoring.scorers, target)
    report_progress(0.0, what="clustering rows")
    # A device is shared by all processes, and its arrays cannot be passed between them.
    parallel = Parallel(n_jobs=n_jobs if is_numpy(X) else 1, return_as="generator")
    clustered = list(parallel(delayed(_cluster_fold)(search, fold) for fold in folds))
    clusters = [of_fold for of_fold, _ in clustered]
    messages = {message for _, said in clustered for message in said}
    if messages:
        warnings.warn("; ".join(sorted(messages)), ConvergenceWarning, stacklevel=3)

    outcomes: list[np.ndarray] = []
    done, total = 0, len(folds) * sum(len(grid.scales(kernel)) for _, kernel in grid.kernels)
    for k, (_, kernel) in enumerate(grid.kernels):
        # One kernel at a time, because its base is an n x n matrix.
        of_kernel, base = search, None
        if exact[k]:
            rows = moved_by(astype(X, "float64"), kernel.origin(X))
            of_kernel, base = replace(search, X=rows), kernel.base(rows)
        tables, negatives = [], []
        for table, negative in parallel(
            delayed(search_fold)(of_kernel, k, base, fold, of_fold, scale)
            for scale in grid.scales(kernel)
            for fold, of_fold in zip(folds, clusters, strict=True)
        ):
            tables.append(table)
            negatives.append(negative)
            done += 1
            report_progress(done, total, "searching the grid")
        outcomes.append(np.reshape(tables, (-1, len(folds), *tables[0].shape)))
        warn_if_indefinite(max(negatives))
    return outcomes, clusters


def _all_primal(search: Search, kernel: Kernel) -> bool:
    """Whether the models of all folds are linear, and solved in the primal."""
    n_features = search.X.shape[1]
    return all(is_primal(kernel, n_features, len(fold.train)) for fold in search.folds)


def _cluster_fold(search: Search, fold: Fold) -> tuple[Clusters, list[str]]:
    """Cluster the training rows of a fold for each entry of ``n_clusters``.

    Landmarks are also chosen here, because they are the same for all kernels and widths.  Warnings
    are returned as text, because they would be lost in a worker process.
    """
    rows, seed = take_rows(search.X, fold.train), search.seed
    weights = None if search.weights is None else search.weights[fold.train]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assignments = [
            assign_rows(rows, count, search.clusterer, seed, weights)
            for count in search.grid.n_clusters
        ]
    landmarks, approximation = None, search.approximations[0]
    if approximation is not None:
        landmarks = approximation.choose_landmarks(rows, seed)
    return (assignments, landmarks), [str(warning.message) for warning in caught]


def out_of_fold_scores(
    search: Search,
    clusters: list[Clusters],
    entry: int,
    settings: FitSettings,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Score each row with the model of the fold that holds it out.

    Parameters
    ----------
    search : Search
        With folds that hold out each row exactly once.
    clusters : list of Clusters
        Those of each fold.
    entry : int
        The entry of ``grid.n_clusters`` that the settings have.
    settings : FitSettings
        The selected setting.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel; ignored for rows on a device.

    Returns
    -------
    ndarray of shape (n_samples, q)
        Scores, on the host.
    """
    parallel = Parallel(n_jobs=n_jobs if is_numpy(search.X) else 1)
    parts = parallel(
        delayed(_held_out_scores)(search, fold, assignments[entry], landmarks, settings)
        for fold, (assignments, landmarks) in zip(search.folds, clusters, strict=True)
    )
    scores = np.empty(search.target.signs.shape)
    for fold, part in zip(search.folds, parts, strict=True):
        scores[fold.test] = part
    return scores


def _held_out_scores(
    search: Search,
    fold: Fold,
    assignment: np.ndarray,
    landmarks: Features | None,
    settings: FitSettings,
) -> np.ndarray:
    target, rows = search.target, take_rows(search.X, fold.train)
    with explained_singularity(f"the model with {settings.setting}", rows):
        model, _, constants = fit_assigned(
            rows,
            asarray(target.signs[fold.train], rows),
            assignment,
            settings,
            landmarks,
            None if search.weights is None else asarray(search.weights[fold.train], rows),
            None if target.known is None else target.known[fold.train],
        )
    check_model(model, settings.setting, rows)
    return to_numpy(model.scores(take_rows(search.X, fold.test)) + constants)
