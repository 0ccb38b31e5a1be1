"""Linear support vector machines, one a label, as plain arrays of weights.

scikit-learn's SVC keeps the support vectors of every machine: close to a copy of X for each label.
Of a linear machine only a vector of weights is needed, so that is all that stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC

from imcc._utils.validation import Features, check_choice, check_number
from imcc.baselines._base import is_constant, prior_log_odds
from imcc.baselines._platt import Sigmoid, fit_sigmoid, held_out_margins

SCORES = ("probability", "margin")


@dataclass(frozen=True)
class LinearScore:
    """Scores x . weights + intercept of one label."""

    weights: np.ndarray
    intercept: float

    def __call__(self, X: Features) -> np.ndarray:
        """Return the scores of rows, (n_rows,)."""
        return X @ self.weights + self.intercept

    def rescaled(self, sigmoid: Sigmoid) -> LinearScore:
        """Return the log-odds that belong to these margins."""
        return LinearScore(
            sigmoid.slope * self.weights, sigmoid.slope * self.intercept + sigmoid.offset
        )


def check_svm(C: Any, scores: Any) -> None:
    """Check the parameters that all SVM baselines have."""
    check_number("C", C, above=0)
    check_choice("scores", scores, SCORES)


def train_linear(X: Features, on: np.ndarray, C: float) -> LinearScore:
    """Train libsvm's linear machine: 1/2 |w|^2 + C sum_i max(0, 1 - y_i (x_i w + b)).

    A label that is on in all rows or in none has the constant margin +1 or -1.
    """
    if is_constant(on):
        return LinearScore(np.zeros(X.shape[1]), 1.0 if on[0] else -1.0)
    machine = SVC(kernel="linear", C=C, cache_size=cache_megabytes(X)).fit(X, on)
    weights = machine.coef_.toarray() if sp.issparse(machine.coef_) else machine.coef_
    return LinearScore(np.asarray(weights, dtype=np.float64).ravel(), float(machine.intercept_[0]))


def train_scored(X: Features, on: np.ndarray, C: float, scores: str, seed: int) -> LinearScore:
    """Train a linear machine whose scores are margins or log-odds (``scores="probability"``).

    The log-odds of a constant label, or of one with a single row in the rarer class, are the
    prior's.
    """
    if scores == "margin":
        return train_linear(X, on, C)
    return train_linear(X, on, C).rescaled(
        calibration(lambda rows, labels: train_linear(rows, labels, C), X, on, seed)
    )


def calibration(
    train: Callable[[Features, np.ndarray], Callable[[Features], np.ndarray]],
    X: Features,
    on: np.ndarray,
    seed: int,
) -> Sigmoid:
    """Return Platt's sigmoid for a kind of machine on these rows."""
    margins = held_out_margins(train, X, on, seed)
    return Sigmoid(0.0, prior_log_odds(on)) if margins is None else fit_sigmoid(margins, on)


def cache_megabytes(X: Features) -> float:
    """Return the size of libsvm's cache of kernel rows: two copies of X, but 20 to 200 MB."""
    n_entries = X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]
    return float(np.clip(2 * 8 * n_entries / 2**20, 20, 200))
