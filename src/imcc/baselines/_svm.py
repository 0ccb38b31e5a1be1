"""Support vector machines, many on the same rows, and scores computed from their margins.

libsvm spends nearly all its time on inner products: each machine recomputes the rows of the kernel
matrix that it needs.  The machines of all labels, and of all calibration folds of a label, need the
same values, so the matrix is computed once, as one matrix product, and shared by all machines.
Machines of calibration folds use the whole matrix too: rows outside the fold have weight zero, and
libsvm drops them before training, so nothing is copied.  Solver, stopping rule and kernel values
are the same, so the machines equal those that libsvm trains from the rows, up to rounding.

libsvm is given the rows instead if the n_samples x n_samples matrix is larger than the
configuration's ``gram_bytes``, or if rows are so short that inner products are cheap.

scikit-learn's SVC stores the support vectors of every machine, almost a copy of X per label.  A
linear machine only needs its vector of weights, so only that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.svm import SVC

from imcc._utils.config import get_config
from imcc._utils.validation import Features, check_choice, check_number
from imcc.baselines._base import is_constant
from imcc.baselines._platt import Sigmoid, calibration_folds, fit_sigmoid, prior_log_odds

#: Number of features from which a dense inner product costs libsvm more than a lookup.
MIN_GRAM_FEATURES = 32
# Size of libsvm's cache in MB if the kernel matrix is given: its rows are cheap to read again.
_GRAM_CACHE = 50.0
# Labels per batch; the margins of a batch's calibration folds are computed in one product.
_LABELS_AT_ONCE = 32


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


@dataclass(frozen=True)
class LinearScore:
    """The linear score x . weights + intercept of one label."""

    weights: np.ndarray
    intercept: float

    def __call__(self, X: Features) -> np.ndarray:
        """Return the scores of rows, shape (n_samples,)."""
        return X @ self.weights + self.intercept


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
        chosen = slice(None) if rows is None else rows
        weights = None if self.weights is None else self.weights[chosen]
        machine = train_on_rows(self.X[chosen], part, C, weights)
        return machine if rows is None else machine._replace(support=rows[machine.support])

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
    # A cache of twice the size of X, within 20 to 200 MB.
    n_entries = X.nnz if sp.issparse(X) else X.size
    cache = float(np.clip(2 * 8 * n_entries / 2**20, 20, 200))
    machine = SVC(kernel="linear", C=C, cache_size=cache)
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


def check_svm(C: Any, scores: Any) -> None:
    """Check the parameters that all SVM baselines share."""
    check_number("C", C, above=0)
    check_choice("scores", scores, ("probability", "margin"))


def train_labels(
    rows: KernelRows, on: np.ndarray, C: float, scores: str, seed: int, n_jobs: int | None = 1
) -> list[Dual]:
    """Train one machine per label, whose outputs are margins or Platt's log-odds.

    The machines of all labels and all calibration folds share the kernel matrix of ``rows``.  With
    ``scores="probability"``, slope and offset of Platt's sigmoid are folded into the weights and
    intercepts.  The log-odds of a constant label, or of one with a single row in the rarer class,
    are those of its prior.

    Parameters
    ----------
    rows : KernelRows
    on : ndarray of bool, shape (n_samples, q)
    C : float
    scores : {"probability", "margin"}
    seed : int
        Seed for shuffling the folds.
    n_jobs : int or None, default=1
        Number of machines trained in parallel, in threads.

    Returns
    -------
    list of Dual
    """
    # libsvm releases the GIL: threads share the rows, processes would copy them.
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    machines: list[Dual] = []
    for start in range(0, on.shape[1], _LABELS_AT_ONCE):
        labels = on[:, start : start + _LABELS_AT_ONCE].T
        trained = parallel(delayed(rows.train)(label, C) for label in labels)
        if scores == "probability":
            sigmoids = _calibrate(rows, labels, C, seed, parallel)
            trained = [
                Dual(m.support, slope * m.coef, slope * m.intercept + offset)
                for m, (slope, offset) in zip(trained, sigmoids, strict=True)
            ]
        machines += trained
    return machines


def _calibrate(
    rows: KernelRows,
    labels: np.ndarray,
    C: float,
    seed: int,
    parallel: Parallel,
) -> list[Sigmoid]:
    """Return Platt's sigmoid per label (a row of ``labels``), fitted to held-out margins."""
    folds = [calibration_folds(label, seed) for label in labels]
    machines = parallel(
        delayed(rows.train)(label, C, inside)
        for label, parts in zip(labels, folds, strict=True)
        for inside, _ in parts
    )
    margins = rows.margins(machines) if machines else np.empty((labels.shape[1], 0))
    sigmoids, column = [], 0
    for label, parts in zip(labels, folds, strict=True):
        if not parts:
            sigmoids.append(Sigmoid(0.0, prior_log_odds(label, rows.weights)))
            continue
        held_out = np.empty(len(label))
        for _, outside in parts:
            held_out[outside] = margins[outside, column]
            column += 1
        sigmoids.append(fit_sigmoid(held_out, label, rows.weights))
    return sigmoids
