"""Scores of held-out rows for the selected setting of a search, from one fit per fold.

The search only stores metrics, since the scores of all settings would need too much memory.  One
Cholesky fit per fold, with the clusters and landmarks of the search, takes a small part of the time
of the search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed

from imcc._array.array import asarray, is_numpy, take_rows, to_numpy
from imcc._math.fitting import FitSettings, check_model, fit_assigned
from imcc._math.search.folds import Fold
from imcc._math.search.search import FoldClusters
from imcc._utils.validation import Features, explained_singularity


def out_of_fold_scores(
    X: Features,
    signs: np.ndarray,
    folds: Sequence[Fold],
    clusters: Sequence[FoldClusters],
    settings: FitSettings,
    n_jobs: int | None = None,
    weights: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Score each row with the model of the fold that holds it out.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Determines library and device.
    signs : ndarray of shape (n_samples, q)
        Labels as -1 and +1; 0 where they are unknown.
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
    known : ndarray of bool of shape (n_samples, q), default=None
        Which labels are known; None means all.

    Returns
    -------
    ndarray of shape (n_samples, q)
        Scores, on the host.
    """
    parallel = Parallel(n_jobs=n_jobs if is_numpy(X) else 1)
    parts = parallel(
        delayed(_held_out_scores)(X, signs, fold, found, settings, weights, known)
        for fold, found in zip(folds, clusters, strict=True)
    )
    scores = np.empty(signs.shape)
    for fold, part in zip(folds, parts, strict=True):
        scores[fold.test] = part
    return scores


def _held_out_scores(
    X: Features,
    signs: np.ndarray,
    fold: Fold,
    clusters: FoldClusters,
    settings: FitSettings,
    weights: np.ndarray | None,
    known: np.ndarray | None,
) -> np.ndarray:
    rows = take_rows(X, fold.train)
    (assignment,) = clusters.assignments
    with explained_singularity(f"the model with {settings.setting}", rows):
        model, _, constants = fit_assigned(
            rows,
            asarray(signs[fold.train], rows),
            assignment,
            settings,
            clusters.landmarks,
            None if weights is None else asarray(weights[fold.train], rows),
            None if known is None else known[fold.train],
        )
    check_model(model, settings.setting, rows)
    return to_numpy(model.scores(take_rows(X, fold.test)) + constants)
