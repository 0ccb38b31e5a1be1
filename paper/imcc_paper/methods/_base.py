"""What the methods have in common: checks of the rows, and predictions from scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data


class ScoredLabels(ClassifierMixin, BaseEstimator):
    """Base of the methods: they implement ``_train(X, on)`` and ``_score_rows(X)``."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on rows and their labels, an array of shape (n_samples, n_labels)."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        on = y.toarray() if sp.issparse(y) else np.asarray(y)
        self._train(X, on > 0)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores, shape (n_samples, n_labels)."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self._score_rows(rows)

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 where the score is at least 0."""
        return (self.decision_function(X) >= 0).astype(int)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class LogOddsLabels(ScoredLabels):
    """Base of the methods whose scores are log-odds."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities, shape (n_samples, n_labels)."""
        return expit(self.decision_function(X))


def draw_seed(random_state: Any) -> int:
    """Return a seed, which is always the same for the same integer."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def is_constant(on: np.ndarray) -> bool:
    """Return whether every row or no row has the label, so that there is nothing to learn."""
    return bool(on.all() or not on.any())


def prior_log_odds(on: np.ndarray) -> np.ndarray:
    """Return the log-odds of each label's smoothed frequency, log((n + 1) / (rest + 1))."""
    n = on.sum(axis=0)
    return np.log((n + 1) / (len(on) - n + 1))
