"""What LLSF and JFSC share: the options of the rows, the labels to learn, linear scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from imcc._utils.validation import Features, check_count, check_number, check_switch
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._proximal import Problem, Weights, solve

# Labels are coded {0, 1}: between them is the threshold.
THRESHOLD = 0.5


class SparseLinearClassifier(BaselineClassifier):
    """A sparse linear model; subclasses say which problem and which weights.

    A subclass has the parameters below, those of its objective, which ``_bounds`` names, and
    ``_weights()``, ``_start_ridge()`` and the static
    ``problem(X, on, fit_intercept, sample_weight)``.
    """

    unit_rows: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    #: The parameters that a search has an axis for, and the bound of each.
    _bounds: ClassVar[dict[str, dict[str, float]]]

    def _check_parameters(self) -> None:
        self._weights()
        self._start_ridge()
        check_switch("unit_rows", self.unit_rows)
        check_switch("fit_intercept", self.fit_intercept)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, at_least=0)

    def _checked(self, name: str) -> float:
        return check_number(name, getattr(self, name), **self._bounds[name])

    @abstractmethod
    def _weights(self) -> Weights:
        """Return the checked weights of the objective."""

    @abstractmethod
    def _start_ridge(self) -> float:
        """Return the checked ridge of the starting point."""

    @staticmethod
    @abstractmethod
    def problem(
        X: Features,
        on: np.ndarray,
        fit_intercept: bool,
        sample_weight: np.ndarray | None = None,
    ) -> Problem:
        """Return the sums over the rows that all settings share."""

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        labels = LearnedLabels.of(on)
        W, self.n_iter_, self.objectives_ = None, 0, np.zeros(1)
        if labels.learned.any():
            rows = scaled(X, self.unit_rows)
            learned = on[:, labels.learned]
            problem = self.problem(rows, learned, bool(self.fit_intercept), weights)
            start = problem.ridge(self._start_ridge())
            solution = solve(problem, self._weights(), start, self.max_iter, self.tol)
            if not solution.converged:
                warnings.warn(
                    f"{type(self).__name__} stopped after max_iter={self.max_iter} iterations "
                    f"before tol={self.tol:g} was reached; use a larger max_iter, or scale the "
                    "features",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            W, self.n_iter_ = solution.W, solution.n_iter
            self.objectives_ = np.array(solution.objectives)
        full = labels.expand(W, X.shape[1])
        self.coef_ = np.ascontiguousarray(full[:-1].T)
        self.intercept_ = full[-1]

    def _score_rows(self, X: Features) -> np.ndarray:
        return linear_scores(scaled(X, self.unit_rows), np.vstack([self.coef_.T, self.intercept_]))


@dataclass(frozen=True)
class LearnedLabels:
    """Which labels have something to learn, and what the others are scored.

    A label that no training row has, or all rows have, is left out of the problem: through the
    coupling it would get weights from other labels, and its score is to be constant.

    Attributes
    ----------
    learned : ndarray of bool, shape (q,)
    always : ndarray of bool, shape (q,)
        Labels that all training rows have.
    same_as : ndarray of int, shape (q,)
        The first label with the same column: labels that are equal on all training rows have the
        same weights, to the last bit.
    """

    learned: np.ndarray
    always: np.ndarray
    same_as: np.ndarray

    @classmethod
    def of(cls, on: np.ndarray) -> LearnedLabels:
        """Find constant and equal columns of a boolean label matrix."""
        always, some = np.asarray(on.all(axis=0)), np.asarray(on.any(axis=0))
        first: dict[bytes, int] = {}
        columns = np.packbits(on, axis=0).T
        same_as = [first.setdefault(column.tobytes(), k) for k, column in enumerate(columns)]
        return cls(some & ~always, always, np.array(same_as))

    def expand(self, W: np.ndarray | None, n_features: int) -> np.ndarray:
        """Return the weights of all labels, (n_features + 1, q): the last row is the intercepts.

        Parameters
        ----------
        W : ndarray of shape (n_features, n_learned) or (n_features + 1, n_learned), or None
            Those of the labels that were learned; None if there are none.
        n_features : int
        """
        full = np.zeros((n_features + 1, len(self.learned)))
        full[-1, self.always] = 1.0
        if W is not None:
            full[: len(W), self.learned] = W
        return full[:, self.same_as]


def scaled(X: Features, unit_rows: bool) -> Features:
    """Return the rows, each divided by its Euclidean length if requested; zeros stay zeros."""
    if not unit_rows:
        return X
    # By the largest entry first: squares of large entries would overflow.
    return normalize(normalize(X, norm="max"), copy=False)


def linear_scores(X: Features, W: np.ndarray) -> np.ndarray:
    """Return x W less the threshold, where the last row of W is for a column of ones."""
    return X @ W[:-1] + (W[-1] - THRESHOLD)
