"""Platt's sigmoid: log-odds from the margin of an SVM, which are comparable between labels.

Margins of two SVMs are not comparable: a margin of 1 may mean 55 % for a rare label and 99 % for a
frequent one.  With Platt's P(on | m) = 1 / (1 + e^-z), z = slope m + offset is the log-odds.  Slope
and offset maximise the likelihood on margins of rows that the SVM was not trained on.

References
----------
J. Platt. "Probabilistic outputs for support vector machines." 1999.
H.-T. Lin, C.-J. Lin, R. Weng. "A note on Platt's probabilistic outputs." Machine Learning 68, 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

N_FOLDS = 5  # as in libsvm
_NEWTON_STEPS = 100
_FLAT = 1e-10


class Sigmoid(NamedTuple):
    """Log-odds = slope * margin + offset."""

    slope: float
    offset: float


def fit_sigmoid(margins: np.ndarray, on: np.ndarray, weights: np.ndarray | None = None) -> Sigmoid:
    """Fit slope and offset by maximum likelihood, with Platt's targets and slope >= 0.

    The targets are (P + 1) / (P + 2) for the P positives and 1 / (N + 2) for the N negatives
    instead of 1 and 0, which keeps the slope finite for separated classes.  If the best slope is
    negative, the margins are not informative, and only the prior is used.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
    on : ndarray of bool, shape (n_samples,)
    weights : ndarray of shape (n_samples,), default=None
        Row weights, in the likelihood and in P and N.
    """
    weights = np.ones(len(on)) if weights is None else weights
    n_on, n_off = float(weights[on].sum()), float(weights[~on].sum())
    targets = np.where(on, (n_on + 1) / (n_on + 2), 1 / (n_off + 2))
    # Standardised margins give a well-conditioned Hessian.
    spread = float(margins.std())
    prior = Sigmoid(0.0, prior_log_odds(on, weights))
    if spread <= _FLAT * (1 + float(np.abs(margins).max())):
        return prior
    middle = float(margins.mean())
    design = np.column_stack([(margins - middle) / spread, np.ones(len(margins))])
    slope, offset = _maximise_likelihood(design, targets, np.array([0.0, prior.offset]), weights)
    if slope <= 0:
        return prior
    return Sigmoid(slope / spread, offset - slope * middle / spread)


def _maximise_likelihood(
    design: np.ndarray, targets: np.ndarray, start: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Minimise the cross-entropy by Newton steps, which are halved until it decreases."""

    def cross_entropy(point: np.ndarray) -> float:
        log_odds = design @ point
        return float(np.sum(weights * (np.logaddexp(0, log_odds) - targets * log_odds)))

    total = float(weights.sum())
    point, loss = start, cross_entropy(start)
    for _ in range(_NEWTON_STEPS):
        chance = expit(design @ point)
        gradient = design.T @ (weights * (chance - targets))
        if np.abs(gradient).max() <= 1e-9 * total:
            break
        curvature = (design.T * (weights * (chance * (1 - chance)))) @ design + _FLAT * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        size, moved_loss = 1.0, cross_entropy(point - step)
        while not moved_loss < loss and size > _FLAT:
            size /= 2
            moved_loss = cross_entropy(point - size * step)
        if not moved_loss < loss:
            break
        point, loss = point - size * step, moved_loss
    return float(point[0]), float(point[1])


def calibration_folds(on: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds, so that each row gets a margin from an SVM that was fitted without it.

    Parameters
    ----------
    on : ndarray of bool, shape (n_samples,)
    seed : int
        Shuffles the folds.

    Returns
    -------
    list of (inside, outside)
        Rows to train on and held-out rows, in ascending order; both classes are in the first.
        Empty if the rarer class has at most one row.
    """
    rarer = int(min(np.count_nonzero(on), np.count_nonzero(~on)))
    if rarer < 2:
        return []
    folds = StratifiedKFold(min(N_FOLDS, rarer), shuffle=True, random_state=seed)
    return list(folds.split(np.empty((len(on), 1)), on))


def prior_log_odds(on: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return log((positives + 1) / (negatives + 1)), the prior log-odds of a label."""
    weights = np.ones(len(on)) if weights is None else weights
    return float(np.log((weights[on].sum() + 1) / (weights[~on].sum() + 1)))
