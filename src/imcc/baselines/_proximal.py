r"""Proximal gradient method for sparse linear models with coupled labels: LLSF and JFSC.

Minimises over W (d x q)::

    F(W) = 1/2 |X W - Y|^2 + alpha/2 tr(W R W^T) + gamma/2 sum_ik S_ik W_ik^2 + beta |W|_1

for labels Y in {0, 1}, a coupling R of the labels (q x q) and a weight S_ik per coefficient (d x q;
None for LLSF).  Everything that depends on the rows is in the sums of a :class:`Problem`, which all
settings share.  With sample weights, |X W - Y|^2 is a weighted sum over rows: the rows of X and Y
are multiplied by the square roots of the weights, and the cosines of R are computed from these.

R and S have negative curvature, so F need not be convex and may be unbounded below.  Each step is a
step of FISTA (Beck and Teboulle); if the momentum increases F, it is reset and a plain proximal
step is taken.  That step cannot increase F, as its length for entry i, k is 1/L_ik with

    L_ik = lambda_max(X^T X) + alpha lambda_max(R) + gamma max(S_ik, 0),

a diagonal upper bound on the curvature of F's smooth part.  (The authors' step size has
L^2 = 2 (|X^T X|^2 + |alpha R|^2), which is at least the L of LLSF.)  So F decreases from step to
step, convex or not, and at convergence W satisfies the conditions for a (local) minimum.  If F
falls below -F(0), the negative coupling term dominates, as the fit and the l1 norm cannot be
negative: F is unbounded below or has no meaningful minimum.

References
----------
A. Beck, M. Teboulle. "A fast iterative shrinkage-thresholding algorithm for linear inverse
problems." SIAM Journal on Imaging Sciences 2, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.metrics.pairwise import cosine_distances

from imcc._array.array import dense, scaled_rows
from imcc._utils.validation import Features

# A sparse product takes about this many times longer per entry than a dense one.
_SPARSE_COST = 8
# Up to this size, computing all eigenvalues is as fast as computing the largest one.
_SMALL = 200


class UnboundedError(ValueError):
    """The objective of LLSF or JFSC is unbounded below, so it has no minimum.

    Raised by ``fit`` of :class:`LLSF`, :class:`JFSC` and their searches; a subclass of
    ``ValueError``.
    """


@dataclass(frozen=True)
class Weights:
    """Weights of the coupling (alpha), the l1 norm (beta) and Fisher's criterion (gamma)."""

    alpha: float
    beta: float
    gamma: float = 0.0


class Problem:
    """The sums over the training rows that all settings share.

    With sample weights, the rows, the column of ones and the labels are multiplied by their roots.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    on : ndarray of bool, shape (n_samples, q)
    fisher : bool, default=False
        Whether Fisher's criterion is part of the objective.
    fit_intercept : bool, default=True
        Whether a column of ones is appended to X.
    sample_weight : ndarray of shape (n_samples,), optional
        Weight of each row.

    Attributes
    ----------
    gram_norm : float
        Largest eigenvalue of X^T X.
    cross : ndarray of shape (d, q)
        X^T Y.
    label_square : float
        |Y|^2.
    coupling : ndarray of shape (q, q)
        R.
    coupling_norm : float
        Largest eigenvalue of R.
    scatter : ndarray of shape (d, q) or None
        S.
    """

    def __init__(
        self,
        X: Features,
        on: np.ndarray,
        fisher: bool = False,
        fit_intercept: bool = True,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        self.scatter = fisher_scatter(X, on, sample_weight) if fisher else None
        if self.scatter is not None and fit_intercept:
            self.scatter = np.vstack([self.scatter, np.zeros(on.shape[1])])
        labels = on.astype(np.float64)
        nnz = X.nnz if sp.issparse(X) else np.count_nonzero(X)
        X = X.astype(np.float64, copy=False)
        if fit_intercept:
            column = np.ones((X.shape[0], 1))
            X = sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
        if sample_weight is not None:
            roots = np.sqrt(sample_weight)
            X, labels = scaled_rows(X, roots), labels * roots[:, None]
        if 2 * _SPARSE_COST * nnz < X.shape[1] ** 2:
            X = sp.csr_matrix(X)
            self._transposed, self._gram = X.T.tocsr(), None
        else:
            self._gram = dense(X.T @ X)
        self._X, self._labels = X, labels
        self.gram_norm = _largest_eigenvalue(self.gram, X.shape[1])
        self.cross = X.T @ labels
        self.label_square = float(np.sum(labels * labels))
        self.coupling = cosine_distances(labels.T)
        self.coupling_norm = float(np.linalg.eigvalsh(self.coupling)[-1])

    def gram(self, W: np.ndarray) -> np.ndarray:
        """Return X^T X W, from X^T X or, if X has few nonzero entries, from X and X^T."""
        return self._transposed @ (self._X @ W) if self._gram is None else self._gram @ W

    def ridge(self, eta: float) -> np.ndarray:
        """Return (X^T X + eta I)^-1 X^T Y, from the smaller of X^T X and X X^T."""
        X = self._X
        wide = X.shape[0] < X.shape[1]
        if wide:
            gram = dense(X @ X.T)
        else:
            gram = dense(X.T @ X) if self._gram is None else self._gram.copy()
        gram[np.diag_indices_from(gram)] += eta
        factor = cho_factor(gram, overwrite_a=True)
        if wide:
            return X.T @ cho_solve(factor, self._labels)
        return cho_solve(factor, self.cross)

    def curvature(self, weights: Weights) -> np.ndarray | float:
        """Return L, a diagonal upper bound on the curvature of the smooth part, > 0."""
        largest = self.gram_norm + weights.alpha * self.coupling_norm
        if self.scatter is None:
            return largest
        return largest + weights.gamma * np.maximum(self.scatter, 0)

    def penalty_gradient(self, W: np.ndarray, weights: Weights) -> np.ndarray:
        """Return the gradient of the coupling and the scatter terms."""
        gradient = weights.alpha * (W @ self.coupling)
        if self.scatter is not None and weights.gamma:
            gradient += weights.gamma * self.scatter * W
        return gradient

    def objective(self, W: np.ndarray, weights: Weights, of_gram: np.ndarray) -> float:
        """Return F(W); ``of_gram`` is X^T X W."""
        fit = 0.5 * (np.vdot(W, of_gram) - 2 * np.vdot(W, self.cross) + self.label_square)
        penalty = 0.5 * np.vdot(W, self.penalty_gradient(W, weights))
        return float(fit + penalty + weights.beta * np.abs(W).sum())


def solve(
    problem: Problem, weights: Weights, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, list[float], bool]:
    """Minimise F from a starting point.

    Parameters
    ----------
    problem : Problem
    weights : Weights
    start : ndarray of shape (d, q)
    max_iter : int
    tol : float
        Stop when the last step times L is at most ``tol`` times the largest absolute entry of
        X^T Y; the optimality conditions then hold to that precision.

    Returns
    -------
    W : ndarray of shape (d, q)
    objectives : list of float
        F at the starting point and after each iteration.
    converged : bool

    Raises
    ------
    UnboundedError
        If F falls below -F(0).
    """
    L = problem.curvature(weights)
    enough = tol * float(np.abs(problem.cross).max(initial=0.0))
    lowest = -0.5 * problem.label_square

    def step(V: np.ndarray, of_gram: np.ndarray) -> np.ndarray:
        gradient = of_gram - problem.cross + problem.penalty_gradient(V, weights)
        return soft_threshold(V - gradient / L, weights.beta / L)

    # of_W is X^T X W; V is W plus momentum.
    W, of_W = start, problem.gram(start)
    objectives = [problem.objective(W, weights, of_W)]
    V, of_V, momentum = W, of_W, 1.0
    for _ in range(max_iter):
        moved = step(V, of_V)
        of_moved = problem.gram(moved)
        value = problem.objective(moved, weights, of_moved)
        base = V
        if not value <= objectives[-1] and V is not W:
            momentum, base = 1.0, W
            moved = step(W, of_W)
            of_moved = problem.gram(moved)
            value = problem.objective(moved, weights, of_moved)
        if not value >= lowest:
            gamma = f", gamma={weights.gamma:g}" if weights.gamma else ""
            raise UnboundedError(
                f"alpha={weights.alpha:g}, beta={weights.beta:g}{gamma}: the objective is "
                "unbounded below (the coupling of the labels is not positive semidefinite), so it "
                f"has no minimum; use a smaller alpha{' or gamma' if gamma else ''}, or a larger "
                "beta"
            )
        change = float(np.abs(L * (moved - base)).max(initial=0.0))
        objectives.append(value)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        V, of_V = moved + push * (moved - W), of_moved + push * (of_moved - of_W)
        W, of_W, momentum = moved, of_moved, following
        if change <= enough:
            return W, objectives, True
    return W, objectives, False


def soft_threshold(W: np.ndarray, amount: np.ndarray | float) -> np.ndarray:
    """Move every entry towards zero by ``amount``, but not beyond zero."""
    return W - np.clip(W, -amount, amount)


def fisher_scatter(
    X: Features, on: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return S_k(i, i) for every feature i and label k; 0 for a constant label.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    on : ndarray of bool, shape (n_samples, q)
    sample_weight : ndarray of shape (n_samples,), optional
        Weight of each row.

    Returns
    -------
    ndarray of shape (n_features, q)
    """
    X = X.astype(np.float64, copy=False)
    if not sp.issparse(X):
        # Scatters are invariant under translation; centring the rows avoids cancellation.
        X = X - X.mean(axis=0)
    squares = X.multiply(X).tocsr() if sp.issparse(X) else X * X
    labels, others = on.astype(np.float64), (~on).astype(np.float64)
    if sample_weight is not None:
        labels, others = labels * sample_weight[:, None], others * sample_weight[:, None]
    positives, negatives = labels.sum(axis=0), others.sum(axis=0)
    both = (positives > 0) & (negatives > 0)
    means, scatters = [], []
    for members, count in ((labels, positives), (others, negatives)):
        mean = (X.T @ members) / np.where(count > 0, count, 1.0)
        means.append(mean)
        scatters.append(np.maximum(squares.T @ members - count * mean**2, 0))
    ratio = positives / np.where(negatives > 0, negatives, 1.0)
    scatter = scatters[0] + ratio * scatters[1] - positives * (means[0] - means[1]) ** 2
    return np.where(both, scatter, 0.0)


def _largest_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    if size <= _SMALL:
        return float(np.linalg.eigvalsh(product(np.eye(size)))[-1])
    operator = LinearOperator((size, size), matvec=product, matmat=product, dtype=np.float64)
    # A fixed starting vector makes the result reproducible.
    start = np.ones(size) / np.sqrt(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
