"""Base class of LLSF and JFSC: row options, labels to learn and linear scores."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from imcc._utils.validation import Features, check_count, check_number, check_switch
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._proximal import Problem, Weights, solve

# Labels are coded {0, 1}; the decision threshold is halfway between.
THRESHOLD = 0.5


class SparseLinearClassifier(BaselineClassifier):
    """Base class of sparse linear models.

    Subclasses have the parameters below and those of their objective, which ``_bounds`` names.
    """

    unit_rows: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    #: The parameters that can be searched, and the bound of each: the weights of the objective, and
    #: the ridge penalty of the starting point.
    _bounds: ClassVar[dict[str, dict[str, float]]]
    #: Whether gamma is the weight of Fisher's criterion.
    _fisher: ClassVar[bool]

    def _check_parameters(self) -> None:
        self._setting()
        check_switch("unit_rows", self.unit_rows)
        check_switch("fit_intercept", self.fit_intercept)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, at_least=0)

    def _setting(self) -> tuple[Weights, float]:
        """Validate and return the weights of the objective, and the ridge penalty of the start."""
        *weights, ridge = (
            check_number(name, getattr(self, name), **bound) for name, bound in self._bounds.items()
        )
        return Weights(*weights), ridge

    def _problem(self, X: Features, on: np.ndarray, weights: np.ndarray | None) -> Problem:
        """Return the sums over the rows that all settings share."""
        return Problem(X, on, self._fisher, bool(self.fit_intercept), weights)

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        labels = LearnedLabels(on)
        W, self.n_iter_, self.objectives_ = None, 0, np.zeros(1)
        if labels.learned.any():
            rows = scaled(X, self.unit_rows)
            problem = self._problem(rows, on[:, labels.learned], weights)
            setting, ridge = self._setting()
            W, objectives, converged = solve(
                problem, setting, problem.ridge(ridge), self.max_iter, self.tol
            )
            if not converged:
                warnings.warn(
                    f"{type(self).__name__} did not converge to tol={self.tol:g} within "
                    f"max_iter={self.max_iter} iterations; increase max_iter or scale the features",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            self.n_iter_, self.objectives_ = len(objectives) - 1, np.array(objectives)
        full = labels.expand(W, X.shape[1])
        self.coef_ = np.ascontiguousarray(full[:-1].T)
        self.intercept_ = full[-1]

    def _score_rows(self, X: Features) -> np.ndarray:
        return linear_scores(scaled(X, self.unit_rows), np.vstack([self.coef_.T, self.intercept_]))


class LearnedLabels:
    """Which labels are learned, and the scores of the others.

    A label that no training row or every training row has is left out of the problem: its score is
    constant, but the coupling would give it weights from other labels.

    Parameters
    ----------
    on : ndarray of bool, shape (n_samples, q)
        Which training rows have each label.

    Attributes
    ----------
    learned : ndarray of bool, shape (q,)
    always : ndarray of bool, shape (q,)
        Labels that all training rows have.
    same_as : list of int
        Index of the first label with the same column.  Labels that are equal on all training rows
        get exactly the same weights.
    """

    def __init__(self, on: np.ndarray) -> None:
        self.always = np.asarray(on.all(axis=0))
        self.learned = np.asarray(on.any(axis=0)) & ~self.always
        first: dict[bytes, int] = {}
        columns = np.packbits(on, axis=0).T
        self.same_as = [first.setdefault(column.tobytes(), k) for k, column in enumerate(columns)]

    def expand(self, W: np.ndarray | None, n_features: int) -> np.ndarray:
        """Return the weights of all labels, shape (n_features + 1, q), intercepts in the last row.

        Parameters
        ----------
        W : ndarray of shape (n_features, n_learned) or (n_features + 1, n_learned), or None
            Weights of the learned labels; None if no label was learned.
        n_features : int
        """
        full = np.zeros((n_features + 1, len(self.learned)))
        full[-1, self.always] = 1.0
        if W is not None:
            full[: len(W), self.learned] = W
        return full[:, self.same_as]


def scaled(X: Features, unit_rows: bool) -> Features:
    """Return the rows, each divided by its Euclidean norm if ``unit_rows``; zero rows stay zero."""
    if not unit_rows:
        return X
    # Divide by the largest entry first, as squares of large entries would overflow.
    return normalize(normalize(X, norm="max"), copy=False)


def linear_scores(X: Features, W: np.ndarray) -> np.ndarray:
    """Return X W minus the threshold, where the last row of W is the intercept."""
    return X @ W[:-1] + (W[-1] - THRESHOLD)
