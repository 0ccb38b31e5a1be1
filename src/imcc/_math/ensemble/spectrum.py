r"""Kernel ridge regression for all penalties at once, with exact leave-one-out scores.

The model f(x) = k(x, X) alpha + b minimises, for row weights v,

    sum_i v_i (y_i - f(x_i))^2 + lambda alpha' K alpha

With S = diag(sqrt(v)), s = S 1 and C = (S K S + lambda I)^-1 = U diag(1 / (w + lambda)) U', where
S K S = U diag(w) U', the solution is

    t = C S y - a (s' C S y) / (s' a),   a = C s;      alpha = S t,   b = (s' C S y) / (s' a)

and the score of row i by the model that is fitted without row i is exactly

    y_i - t_i / ((C_ii - a_i^2 / (s' a)) sqrt(v_i))

so that one eigendecomposition gives the leave-one-out scores of all rows for any number of
penalties.  A row of weight 2 is left out completely; of two copies of a row, only one would be left
out.

**Coupled labels.**  The penalty tr(A' K A L^-1), L = (1 - eta) I + eta R with R the correlation
matrix of the labels, couples correlated labels.  R depends on the labels of the left-out row, which
matters for rare labels.  The correlations of labels j and k are therefore multiplied by
(m_j / (m_j + c) m_k / (m_k + c))^(1/2), where m is the number of rows with the rarer value of a
label and c = SHRINKAGE.  In the eigenbasis V of R, with eigenvalues r_j, the labels Y V are
independent ridge problems with the penalties lambda / (1 - eta + eta r_j), so that leave-one-out is
exact for a given R.

**Features.**  For a map with features Phi (Nyström), K = Phi Phi' has the eigenvectors
Phi Q diag(w)^(-1/2), where Phi' S^2 Phi = Q diag(w) Q'; outside their span C is 1 / lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imcc._array.array import Array, asarray, at_least, namespace, to_numpy, zeros
from imcc._array.device import block_entries
from imcc._array.linalg import eigh
from imcc._math.kernels import row_blocks

#: Correlations of a label with so many rows are shrunk by the square root of 1/2.
SHRINKAGE = 10.0
# Eigenvalues of a Gram matrix of features at or below this share of the largest are rounding.
_RANK = 1e-12


@dataclass(frozen=True)
class Coupling:
    """The eigenbasis of the labels' shrunk correlation matrix.

    Attributes
    ----------
    vectors : ndarray of shape (q, q)
        V.
    values : ndarray of shape (q,)
        r, at least 0.
    """

    vectors: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, signs: np.ndarray, weight: np.ndarray | None = None) -> Coupling:
        """Decompose the shrunk correlation matrix of labels."""
        centred = signs - np.average(signs, axis=0, weights=weight)
        scaled = centred if weight is None else centred * np.sqrt(weight)[:, None]
        norms = np.sqrt(np.sum(scaled**2, axis=0))
        scaled = scaled / np.where(norms > 0, norms, 1.0)
        v = np.ones(len(signs)) if weight is None else weight
        rarer = np.minimum(v @ (signs > 0), v @ (signs <= 0))
        shrink = np.sqrt(rarer / (rarer + SHRINKAGE))
        scaled = scaled * shrink
        R = scaled.T @ scaled
        R[np.diag_indices_from(R)] = 1.0
        values, vectors = eigh(R)
        return cls(np.ascontiguousarray(vectors), np.maximum(values, 0.0))

    def penalties(self, penalty: float, eta: float) -> np.ndarray:
        """Return the penalty of each rotated label."""
        # A label that others determine has eigenvalue 0: with eta = 1 it could not be learned.
        return penalty / np.maximum(1 - eta + eta * self.values, 1e-6)


@dataclass(frozen=True)
class Spectrum:
    """The eigendecomposition of S K S for some training rows.

    Attributes
    ----------
    vectors : array of shape (n, r)
        U.
    values : array of shape (r,)
        w, at least 0.
    root : array of shape (n, 1) or None
        The square roots of the weights; None if all are 1.
    complete : bool
        Whether r = n; otherwise the other eigenvalues are 0.
    """

    vectors: Array
    values: Array
    root: Array | None
    complete: bool

    @cached_property
    def _ones(self) -> tuple[Array, Array]:
        """The vectors S 1 and U' S 1, which all penalties share."""
        ones = self._rooted(zeros((self.n_samples, 1), self.vectors) + 1.0)
        return ones, self.vectors.T @ ones

    @classmethod
    def of_kernel(cls, K: Array, weight: Array | None = None) -> Spectrum:
        """Decompose a kernel matrix, which is overwritten."""
        root = None
        if weight is not None:
            root = namespace(K).sqrt(weight)[:, None]
            K *= root
            K *= root.T
        values, vectors = eigh(K)
        return cls(vectors, at_least(values, 0.0), root, True)

    @classmethod
    def of_features(cls, features: Array, weight: Array | None = None) -> tuple[Spectrum, Array]:
        """Decompose Phi Phi', given Phi, which is overwritten.

        Returns
        -------
        spectrum : Spectrum
        basis : array of shape (n_features, r)
            Phi @ basis = U.
        """
        xp = namespace(features)
        root = None
        if weight is not None:
            root = xp.sqrt(weight)[:, None]
            features *= root
        values, vectors = eigh(features.T @ features)
        on_host = to_numpy(values)
        first = int(np.searchsorted(on_host, _RANK * max(on_host[-1], np.finfo(float).tiny)))
        values, vectors = values[first:], vectors[:, first:]
        basis = vectors / xp.sqrt(values)
        n, rank = features.shape[0], int(values.shape[0])
        for block in row_blocks(n, features.shape[1], block_entries(features) or 2**21):
            features[block, :rank] = features[block, :] @ basis
        return cls(features[:, :rank], values, root, n == rank), basis

    @property
    def n_samples(self) -> int:
        """Number of training rows."""
        return int(self.vectors.shape[0])

    def project(self, signs: Array) -> Array:
        """Return U' S Y, which the methods below take as ``projected``."""
        return self.vectors.T @ self._rooted(signs)

    def solve(self, signs: Array, projected: Array, penalty: Any) -> tuple[Array, Array]:
        """Return t (n, q) and b (q,) for one penalty, or one per label."""
        t, _, b = self._solve(signs, projected, self._columns(penalty))
        return t, b

    def coefficients(self, signs: Array, projected: Array, penalty: Any) -> tuple[Array, Array]:
        """Return alpha (n, q) and b (q,) for one penalty, or one per label."""
        t, b = self.solve(signs, projected, penalty)
        return self._rooted(t), b

    def leave_one_out(
        self, signs: Array, projected: Array, penalty: Any, diagonal: Array | None = None
    ) -> Array:
        """Return the score of each row from the model without it, shape (n, q).

        Parameters
        ----------
        signs : array of shape (n, q)
        projected : array of shape (r, q)
            ``project(signs)``.
        penalty : float or array of shape (q,)
        diagonal : array of shape (n, 1) or (n, q), optional
            The columns of :meth:`diagonals` for these penalties, if they are known already.
        """
        columns = self._columns(penalty)
        t, a, _ = self._solve(signs, projected, columns)
        diagonal = self.diagonals(penalty) if diagonal is None else diagonal
        leverage = diagonal - a**2 / self._inner(a)
        residual = t / leverage
        return signs - (residual if self.root is None else residual / self.root)

    def diagonals(self, penalties: Any) -> Array:
        """Return C_ii for several penalties, shape (n, n_penalties)."""
        columns = self._columns(penalties)
        weights, rest = self._weights(columns)
        xp, n = namespace(self.vectors), self.n_samples
        parts = [
            self.vectors[block, :] ** 2 @ weights
            for block in row_blocks(n, self.vectors.shape[1], block_entries(self.vectors) or 2**18)
        ]
        out = xp.concat(parts, axis=0)
        return out if rest is None else out + rest

    def _solve(self, signs: Array, projected: Array, columns: Array) -> tuple[Array, Array, Array]:
        """Return t, a and b; a has as many columns as there are penalties."""
        rooted = self._rooted(signs)
        weights, rest = self._weights(columns)
        smooth = self.vectors @ (weights * projected)
        ones, projected_ones = self._ones
        a = self.vectors @ (weights * projected_ones)
        if rest is not None:
            smooth, a = smooth + rooted * rest, a + ones * rest
        b = self._inner(smooth) / self._inner(a)
        return smooth - a * b, a, b

    def _inner(self, x: Array) -> Array:
        """Return s' x for each column."""
        return namespace(x).sum(self._rooted(x), axis=0)

    def _weights(self, columns: Array) -> tuple[Array, Array | None]:
        weights = 1 / (self.values[:, None] + columns)
        return (weights, None) if self.complete else (weights - 1 / columns, 1 / columns)

    def _columns(self, penalty: Any) -> Array:
        return asarray(np.atleast_1d(np.asarray(penalty, dtype=np.float64)), self.vectors)

    def _rooted(self, x: Array) -> Array:
        return x if self.root is None else x * self.root
