"""Kernels of the training rows, and models of them: exact, with landmarks, with unknown labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imcc._array.array import (
    Array,
    add_to_diagonal,
    asarray,
    astype,
    is_numpy,
    namespace,
    submatrix,
    take,
    take_rows,
    zeros,
)
from imcc._array.linalg import cholesky, lower_product, triangular_inverse
from imcc._math.ensemble.ridge import (
    Solution,
    entries_of_blocks,
    solve_features,
    solve_kernel,
)
from imcc._math.kernels import (
    LaplacianKernel,
    RBFKernel,
    WidthKernel,
    row_blocks,
    squared_distances,
)
from imcc._math.solver import label_patterns
from imcc._utils.validation import Features

#: The kernels that members may have.
KERNELS = ("rbf", "laplacian")
# Added to the kernel matrix of the landmarks, of which some may be equal, per row.
_JITTER = 1e-7


class Labels(NamedTuple):
    """What is learned: the labels of some rows, and how the rows count.

    Attributes
    ----------
    signs : array of shape (n_samples, n_labels)
        -1 and +1, 0 where unknown, in float32 or float64; determines library and device.
    known : ndarray of bool, shape (n_samples, n_labels), or None
        None if all are.
    weight : ndarray of shape (n_samples,) or None
    groups : ndarray of int, shape (n_samples,), or None
        Rows of the same group are left out together.
    """

    signs: Array
    known: np.ndarray | None = None
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> Labels:
        """Return the labels of some rows."""
        others = (None if x is None else x[rows] for x in (self.known, self.weight, self.groups))
        return Labels(take_rows(self.signs, rows), *others)

    def columns(self, which: np.ndarray) -> Labels:
        """Return some of the labels."""
        if len(which) == self.signs.shape[1]:
            return self
        known = None if self.known is None else self.known[:, which]
        return self._replace(signs=take(self.signs, asarray(which, self.signs), 1), known=known)

    def filled(self) -> Labels:
        """Return labels whose unknown entries are the mean of the known ones.

        Models of them need one factor, however many sets of known rows there are; good enough to
        compare kernels.
        """
        if self.known is None:
            return self
        known = asarray(self.known, self.signs, "float64")
        xp = namespace(known)
        mean = xp.sum(self.signs, axis=0) / xp.sum(known, axis=0)
        return self._replace(signs=self.signs + (1.0 - known) * mean, known=None)

    @property
    def device_weight(self) -> Array | None:
        """The weights where the labels are."""
        return None if self.weight is None else asarray(self.weight, self.signs)

    def held_together(self) -> list[np.ndarray] | None:
        """Return the rows of each group; None for single rows."""
        if self.groups is None:
            return None
        order = np.argsort(self.groups, kind="stable")
        starts = np.flatnonzero(np.diff(self.groups[order])) + 1
        return np.split(order, starts)


def make_kernel(name: str) -> WidthKernel:
    """Return one of KERNELS, as a function of squared distances in its space."""
    return RBFKernel(name) if name == "rbf" else LaplacianKernel(name)


def distances(
    rows: Features, others: Features | None = None, precision: str = "float32", like: Any = None
) -> Array:
    """Return squared Euclidean distances; ``like`` is the device that sparse rows are moved to."""
    own = astype(rows, precision)
    return squared_distances(own, None if others is None else astype(others, precision), like=like)


@dataclass(frozen=True)
class Gram:
    """The kernel of training rows.

    Attributes
    ----------
    kernel : str
    width : float
    rows : array or CSR matrix of shape (n_samples, n_coordinates)
        The rows in the space of the kernel, in float32; sparse ones are on the host.
    like : array, optional
        Determines library and device of the kernel, if the rows are sparse.
    """

    kernel: str
    width: float
    rows: Features
    like: Any = None

    def values(self, X: Features, rows: Features, precision: str = "float64") -> Array:
        """Return the kernel values of rows and other rows."""
        base = distances(X, rows, precision, self.like)
        return make_kernel(self.kernel).finish(base, self.width)

    def matrix(self, part: np.ndarray | None = None, precision: str = "float64") -> Array:
        """Return the kernel matrix of all rows, or of some."""
        rows = self.rows if part is None else take_rows(self.rows, part)
        base = distances(rows, None, precision, self.like)
        return make_kernel(self.kernel).finish(base, self.width)

    def scores(self, tests: np.ndarray | None, part: np.ndarray | None, coef: Array) -> Array:
        """Return the products of kernel values in float64 and coefficients, in blocks.

        Parameters
        ----------
        tests, part : ndarray of int, or None
            Rows to score, and rows that the coefficients are of; None means all.
        coef : array of shape (n_part, n_labels)
        """
        every = np.arange(self.rows.shape[0])
        same = tests is part
        tests, part = every if tests is None else tests, every if part is None else part
        out = zeros((len(tests), coef.shape[1]), coef)
        # Squares, so that few rows are in float64 at a time, and each serves both of its sides.
        side = max(1, int(entries_of_blocks(coef) ** 0.5))
        for rows in row_blocks(len(tests), 1, side):
            own = take_rows(self.rows, tests[rows])
            for others in row_blocks(len(part), 1, side):
                if same and others.start < rows.start:
                    continue
                K = self.values(own, take_rows(self.rows, part[others]))
                out[rows, :] += K @ coef[others, :]
                if same and others.start > rows.start:
                    out[others, :] += K.T @ coef[rows, :]
        return out


def fit_kernel(
    gram: Gram, labels: Labels, penalty: float, precision: str, K: Array | None = None
) -> Solution:
    """Fit ridge regression to a kernel on all rows, with the precision of the factor.

    Coefficients from a factor in float32 are refined to float64, unless K is given, which is for
    comparing kernels.

    Parameters
    ----------
    gram : Gram
    labels : Labels
        Each label is learned from the rows in which it is known; each set of known rows needs a
        factor.  Unknown entries are scored by the model of the label, which never saw them.
    penalty : float
    precision : {"float32", "float64"}
    K : array of shape (n_samples, n_samples), optional
        The kernel matrix, which is not changed.
    """

    def fit(part: np.ndarray | None, own: Labels) -> Solution:
        product: Callable[[Array], Array] | None = None
        if K is None:
            matrix = gram.matrix(part, precision)
            if precision == "float32":
                product = lambda coef: gram.scores(part, part, coef)  # noqa: E731
        else:
            matrix = K + 0.0 if part is None else submatrix(K, part, part)
        groups = own.held_together()
        return solve_kernel(matrix, own.signs, penalty, own.device_weight, groups, product)

    def score(tests: np.ndarray, part: np.ndarray, coef: Array) -> Array:
        return gram.scores(tests, part, coef)

    return _of_patterns(labels, fit, score)


def _of_patterns(
    labels: Labels,
    fit: Callable[[np.ndarray | None, Labels], Solution],
    score: Callable[[np.ndarray, np.ndarray, Array], Array],
    anchors: np.ndarray | None = None,
) -> Solution:
    """Fit the labels of each set of known rows, and put the models together.

    The coefficients of a set are those of its rows, or of all ``anchors``.
    """
    if labels.known is None:
        return fit(None, labels)
    n, q = labels.signs.shape
    held_out, coef = (
        zeros((n, q), labels.signs),
        zeros((n if anchors is None else len(anchors), q), labels.signs),
    )
    intercept = zeros((1, q), labels.signs)
    for rows, columns in label_patterns(labels.known):
        own = labels.part(rows).columns(columns)._replace(known=None)
        found = fit(rows, own)
        others = np.setdiff1d(np.arange(n), rows)
        _put(held_out, rows, columns, found.held_out)
        if len(others):
            _put(held_out, others, columns, score(others, rows, found.coef) + found.intercept)
        _put(coef, rows if anchors is None else anchors, columns, found.coef)
        _put(intercept, np.zeros(1, dtype=int), columns, found.intercept[None, :])
    return Solution(held_out, coef, intercept[0, :])


def _put(out: Array, rows: np.ndarray, columns: np.ndarray, values: Array) -> None:
    """Write a submatrix, in place."""
    if is_numpy(out):
        out[np.ix_(rows, columns)] = values
        return
    at = asarray(rows, out)
    for i, j in enumerate(columns.tolist()):
        out[at, j] = values[:, i]


def fit_landmarks(gram: Gram, labels: Labels, penalty: float, marks: np.ndarray) -> Solution:
    """Fit ridge regression to the features of landmarks (Nyström).

    Parameters
    ----------
    gram : Gram
    labels : Labels
    penalty : float
    marks : ndarray of int
        The rows that are landmarks.

    Returns
    -------
    Solution
        Its coefficients are those of the landmarks' kernel values.
    """
    anchors = take_rows(gram.rows, marks)
    inner = gram.matrix(marks)
    add_to_diagonal(inner, _JITTER * len(marks))
    inverse = triangular_inverse(cholesky(inner))
    n, m = gram.rows.shape[0], len(marks)
    xp = namespace(labels.signs)
    Z = (
        xp.zeros((n, m), dtype=xp.float32)
        if is_numpy(inverse)
        else astype(zeros((n, m), inverse), "float32")
    )
    for block in row_blocks(n, m, entries_of_blocks(inverse)):
        rows = take_rows(gram.rows, np.arange(n)[block])
        Z[block, :] = astype(lower_product(inverse, gram.values(rows, anchors).T).T, "float32")

    def fit(part: np.ndarray | None, own: Labels) -> Solution:
        rows = Z if part is None else take_rows(Z, part)
        return solve_features(rows, own.signs, penalty, own.device_weight, own.held_together())

    def score(tests: np.ndarray, _part: np.ndarray, coef: Array) -> Array:
        return astype(take_rows(Z, tests), "float64") @ coef

    found = _of_patterns(labels, fit, score, np.arange(m))
    return found._replace(coef=lower_product(inverse, found.coef, transposed=True))
