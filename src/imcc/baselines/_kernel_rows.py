"""Many support vector machines on the same rows, trained from one kernel matrix.

libsvm spends nearly all its time on inner products: each machine recomputes the rows of the kernel
matrix that it needs.  The machines of all labels, and of all calibration folds of a label, need the
same values, so the matrix is computed once, as one matrix product, and shared by all machines.
Machines of calibration folds use the whole matrix too: rows outside the fold have weight zero, and
libsvm drops them before training, so nothing is copied.  Solver, stopping rule and kernel values
are the same, so the machines equal those that libsvm trains from the rows, up to rounding.

libsvm is given the rows instead if the n_samples x n_samples matrix is larger than the
configuration's ``gram_bytes``, or if rows are so short that inner products are cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.svm import SVC

from imcc._utils.config import get_config
from imcc._utils.validation import Features
from imcc.baselines._base import is_constant

#: Number of features from which a dense inner product costs libsvm more than a lookup.
MIN_GRAM_FEATURES = 32
# Size of libsvm's cache in MB if the kernel matrix is given: its rows are cheap to read again.
_GRAM_CACHE = 50.0


class Dual(NamedTuple):
    """One machine in dual form: margin(x) = sum_i coef_i x . x_i + intercept.

    Attributes
    ----------
    support : ndarray of int, shape (n_support,)
        Indices of the support vectors.
    coef : ndarray of shape (n_support,)
        Their coefficients, y_i a_i with 0 < a_i <= C.
    intercept : float
    """

    support: np.ndarray
    coef: np.ndarray
    intercept: float


class KernelRows:
    """Training rows shared by many machines.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weights : ndarray of shape (n_samples,), optional
        Factors on C per row, all positive.
    """

    def __init__(self, X: Features, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.weights = weights
        short = not sp.issparse(X) and X.shape[1] < MIN_GRAM_FEATURES
        self._gram = linear_gram(X) if fits(X.shape[0]) and not short else None

    def train(self, on: np.ndarray, C: float, rows: np.ndarray | None = None) -> Dual:
        """Train the machine of one label on all rows or on a subset.

        The margin is constant, +1 or -1, if all of these rows or none of them have the label.

        Parameters
        ----------
        on : ndarray of bool, shape (n_samples,)
            Which rows have the label.
        C : float
        rows : ndarray of int, optional
            Indices of the rows to train on, in increasing order.
        """
        part = on if rows is None else on[rows]
        if is_constant(part):
            return constant_machine(bool(part[0]))
        if self._gram is not None:
            return train_on_gram(self._gram, on, C, rows, self.weights)
        weights = self.weights
        if rows is not None and weights is not None:
            weights = weights[rows]
        features = self.X if rows is None else self.X[rows]
        found = train_on_rows(features, part, C, weights)
        return found if rows is None else found._replace(support=rows[found.support])

    def coef(self, machines: Sequence[Dual]) -> np.ndarray:
        """Return the feature weights of the machines, shape (n_machines, n_features)."""
        return np.ascontiguousarray((self.X.T @ dense_weights(machines, self.X.shape[0])).T)

    def margins(self, machines: Sequence[Dual]) -> np.ndarray:
        """Return the margins of all rows, shape (n_samples, n_machines)."""
        intercepts = np.array([machine.intercept for machine in machines])
        return self.X @ self.coef(machines).T + intercepts


def fits(n_samples: int) -> bool:
    """Return whether the kernel matrix of this many rows is at most ``gram_bytes``."""
    return 8 * n_samples**2 <= get_config().gram_bytes


def linear_gram(X: Features) -> np.ndarray:
    """Return the inner products of all rows as an ndarray of shape (n_samples, n_samples)."""
    if sp.issparse(X):
        gram = np.ascontiguousarray((X @ X.T).toarray(), dtype=np.float64)
    else:
        X = np.asarray(X, dtype=np.float64)
        # For X @ X.T, NumPy computes one half and mirrors it entry by entry, which is slower.
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            gram = X @ np.ascontiguousarray(X.T)
    # By Cauchy-Schwarz, every entry is finite if the diagonal is.
    largest = np.diagonal(gram)
    if not np.isfinite(largest).all():
        row = int(np.flatnonzero(~np.isfinite(largest))[0])
        raise ValueError(
            f"X has values so large that the squared norm of row {row} (counting from 0) "
            "overflows: scale the features"
        )
    return gram


def train_on_gram(
    gram: np.ndarray,
    on: np.ndarray,
    C: float,
    rows: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> Dual:
    """Train a machine from a kernel matrix, on all rows or a subset that has both classes."""
    weights = sample_weight
    if rows is not None:
        weights = np.zeros(len(on))
        weights[rows] = 1.0 if sample_weight is None else sample_weight[rows]
    with config_context(assume_finite=True):  # checked once, not once per machine
        machine = SVC(kernel="precomputed", C=C, cache_size=_GRAM_CACHE)
        found = _dual(machine.fit(gram, on, sample_weight=weights))
    if rows is None:
        return found
    # libsvm numbers the remaining rows only.
    support = rows[found.support]
    if not np.array_equal(found.coef > 0, on[support]):
        raise RuntimeError(
            "this version of scikit-learn numbers support vectors in an unexpected way"
        )
    return found._replace(support=support)


def train_on_rows(X: Features, on: np.ndarray, C: float, weights: np.ndarray | None = None) -> Dual:
    """Train a machine from rows that have both classes; libsvm computes the inner products."""
    machine = SVC(kernel="linear", C=C, cache_size=_cache_megabytes(X))
    return _dual(machine.fit(X, on, sample_weight=weights))


def constant_machine(on: bool) -> Dual:
    """Return the machine whose margin is +1 or -1 for every row."""
    return Dual(np.empty(0, dtype=np.intp), np.empty(0), 1.0 if on else -1.0)


def dense_weights(machines: Sequence[Dual], n_samples: int) -> np.ndarray:
    """Return the dual coefficients of all rows, shape (n_samples, n_machines)."""
    out = np.zeros((n_samples, len(machines)))
    for column, machine in enumerate(machines):
        out[machine.support, column] = machine.coef
    return out


def _dual(machine: SVC) -> Dual:
    coef = machine.dual_coef_
    coef = coef.toarray() if sp.issparse(coef) else coef
    return Dual(machine.support_, np.ravel(coef), float(machine.intercept_[0]))


def _cache_megabytes(X: Features) -> float:
    """Return the size of libsvm's kernel cache in MB: twice the size of X, within 20 to 200."""
    n_entries = X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]
    return float(np.clip(2 * 8 * n_entries / 2**20, 20, 200))
