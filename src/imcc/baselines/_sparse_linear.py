"""What LLSF and JFSC share: training by proximal gradient, linear scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from imcc._utils.validation import Features, check_count, check_number
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._proximal import Problem, Weights, solve

# Labels are coded {0, 1}: between them is the threshold.
THRESHOLD = 0.5


class SparseLinearClassifier(BaselineClassifier):
    """A sparse linear model; subclasses say which problem and which weights.

    A subclass has the parameters ``max_iter`` and ``tol``, and ``_weights()``, ``_start_ridge()``
    and the static ``problem(X, on)``.
    """

    max_iter: int
    tol: float
    _has_fisher_term = False

    def _check_parameters(self) -> None:
        self._weights()
        self._start_ridge()
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, at_least=0)

    @abstractmethod
    def _weights(self) -> Weights:
        """Return the checked weights of the objective."""

    @abstractmethod
    def _start_ridge(self) -> float:
        """Return the checked ridge of the starting point."""

    @staticmethod
    @abstractmethod
    def problem(X: Features, on: np.ndarray) -> Problem:
        """Return the sums over the rows that all settings share."""

    def _train(self, X: Features, on: np.ndarray) -> None:
        problem = self.problem(X, on)
        start = problem.ridge(self._start_ridge())
        solution = solve(problem, self._weights(), start, self.max_iter, self.tol)
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} iterations before "
                f"tol={self.tol:g} was reached; use a larger max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.coef_ = np.ascontiguousarray(solution.W[:-1].T)
        self.intercept_ = solution.W[-1]
        self.n_iter_ = solution.n_iter
        self.objectives_ = np.array(solution.objectives)

    def _score_rows(self, X: Features) -> np.ndarray:
        return linear_scores(X, np.vstack([self.coef_.T, self.intercept_]))


def linear_scores(X: Features, W: np.ndarray) -> np.ndarray:
    """Return x W less the threshold, where the last row of W is for a column of ones."""
    return X @ W[:-1] + (W[-1] - THRESHOLD)
