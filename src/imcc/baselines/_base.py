"""Base class of the baselines: input validation, fitting and scoring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from imcc._array.device import limited_threads
from imcc._utils.validation import Features, check_features, check_weighted
from imcc.estimators.base import ScoringClassifierMixin


class BaselineClassifier(ScoringClassifierMixin, BaseEstimator, ABC):
    """Base class of classifiers that score every label.

    Subclasses implement ``_check_parameters()``, ``_train(X, on, weights)`` and
    ``_score_rows(X)``.
    """

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, >= 0.  Rows of weight 0 are ignored.  By default, all weights are 1.
        groups : None
            Not supported.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        self._refuse_groups(groups)
        self._check_parameters()
        X = check_features(self, X, reset=True)
        rows = check_weighted(X, y, sample_weight, type(self).__name__)
        with limited_threads(max(X.shape)):
            self._train(rows.X, rows.target.signs > 0, rows.weights)
        self._remember_target(rows.target)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        return self._score_rows(check_features(self, X, reset=False))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError that names the invalid parameter; called before the data are read."""

    @abstractmethod
    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Train on validated rows and a boolean label matrix of shape (n_samples, q).

        ``weights`` holds the weights of the rows, all positive; None means that all are 1.
        """

    @abstractmethod
    def _score_rows(self, X: Features) -> np.ndarray:
        """Return the scores of validated rows, shape (n_samples, q)."""


def is_constant(on: np.ndarray) -> bool:
    """Return whether every row or no row has the label, so that there is nothing to learn."""
    return bool(on.all() or not on.any())
