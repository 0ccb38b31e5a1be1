"""Scores of held-out rows for the setting that a search has chosen, at the price of a fit per fold.

The search itself keeps metrics only: the scores of all settings would be thousands of times the
labels.  One fit per fold by Cholesky, with the clusters and landmarks that the search has found
already, is a small part of what the search costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed

from imcc._backend.array import asarray, is_numpy, take_rows, to_numpy
from imcc._core.fitting import FitSettings, check_model, fit_assigned
from imcc._search.folds import Fold
from imcc._search.search import FoldClusters
from imcc._utils.validation import Features


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
    """Score each row by the model of the fold that holds it out.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Decides library and device.
    signs : ndarray of shape (n_samples, q)
        Labels as -1 and +1; 0 where they are not known.
    folds : sequence of Fold
        They hold out each row exactly once.
    clusters : sequence of FoldClusters
        What was found in the folds for the ``n_clusters`` of the settings alone.
    settings : FitSettings
        The setting.
    n_jobs : int or None
        Folds computed at the same time; rows on a device are worked on by this process alone.
    weights : ndarray of shape (n_samples,), optional
        Of the rows, on the host.
    known : ndarray of bool, shape (n_samples, q), optional
        Which labels are known; all unless given.

    Returns
    -------
    ndarray of shape (n_samples, q)
        On the host.
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
