"""What all baselines share: fitting, validation and scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from imcc._utils.validation import Features, check_features, check_weighted
from imcc.estimators.base import ScoringClassifierMixin


class BaselineClassifier(ScoringClassifierMixin, BaseEstimator, ABC):
    """A classifier that scores every label; subclasses say how to train and how to score.

    A subclass has ``_check_parameters()``, ``_train(X, on, weights)`` and ``_score_rows(X)``.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each row counts for, >= 0; all 1 unless given.  Rows of weight 0 are left
            out.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = check_features(self, X, reset=True)
        rows = check_weighted(X, y, sample_weight, type(self).__name__)
        self._train(rows.X, rows.target.signs > 0, rows.weights)
        self._remember_target(rows.target)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        return self._score_rows(check_features(self, X, reset=False))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError that names the parameter, before the data are looked at."""

    @abstractmethod
    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Learn from checked rows and a boolean label matrix (n_samples, q).

        ``weights`` are those of the rows, all above zero; None if each is 1.
        """

    @abstractmethod
    def _score_rows(self, X: Features) -> np.ndarray:
        """Return the scores of checked rows, (n_samples, q)."""


def is_constant(on: np.ndarray) -> bool:
    """Whether a label is on in every row or in none: there is nothing to learn."""
    return bool(on.all() or not on.any())
