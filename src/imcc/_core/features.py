"""Feature maps psi: what stands between the rows and the one linear solver.

==============  ==========================================================
map             psi(x)
==============  ==========================================================
IdentityMap     x, moved by the mean of the training rows
KernelMap       ``diag(lam)^(-1/2) Q^T k(X, x)``, ``K = Q diag(lam) Q^T``
==============  ==========================================================

The kernel map is the paper's restriction W = phi(X)^T A to the span of the training rows: a linear
model W on psi gives the scores of A = Q diag(lam)^(-1/2) W on k(X, x).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from imcc._backend.array import Array, astype, divided, mean_of_rows, namespace, to_numpy
from imcc._backend.linalg import eigh
from imcc._utils.validation import Features

# A similarity that is no kernel has eigenvalues below -INDEFINITE times the largest one.
INDEFINITE = 1e-8


@dataclass(frozen=True)
class IdentityMap:
    """psi(x) = x - shift.

    The model has an unpenalised intercept, so moving the rows changes nothing but the rounding:
    products of centred rows lose fewer digits.  Sparse rows are left where they are.
    """

    shift: Array | None

    @classmethod
    def fit(cls, X: Features) -> IdentityMap:
        """Take the mean of dense rows as the shift."""
        if sp.issparse(X):
            return cls(None)
        return cls(mean_of_rows(X))

    def transform(self, X: Features) -> Features:
        """Map rows, in float64."""
        X = astype(X, "float64")
        return X if self.shift is None else X - self.shift


@dataclass(frozen=True)
class KernelMap:
    """The empirical kernel map of the training rows.

    Attributes
    ----------
    basis : array of shape (n_rows, rank)
        Q diag(lam)^(-1/2).
    eigenvalues : array of shape (rank,)
        lam, those at or below ``n * eps * max(lam)`` left out.
    negative : float
        Size of the most negative eigenvalue, relative to the largest: rounding for a kernel, more
        for a similarity that is none.
    """

    basis: Array
    eigenvalues: Array
    negative: float

    @classmethod
    def fit(cls, K: Array) -> KernelMap:
        """Decompose a kernel matrix, which is overwritten."""
        values, vectors = eigh(K)
        on_host = to_numpy(values)
        largest = max(on_host[-1], np.finfo(np.float64).tiny)
        negative = float(max(-on_host[0], 0.0) / largest)
        # The values ascend, so the ones to keep are a tail.
        first = int(np.searchsorted(on_host, len(on_host) * np.finfo(np.float64).eps * largest))
        values, vectors = values[first:], vectors[:, first:]
        # LAPACK's vectors are in Fortran order, which sparse products would copy again and again.
        return cls(divided(vectors, namespace(values).sqrt(values)), values, negative)

    def transform(self, K: Array) -> Array:
        """Map rows given by their kernel values with the training rows, (n_new, n_rows)."""
        return K @ self.basis

    def train_sums(self, weights: Array) -> Array:
        """Return weights @ Psi for the training rows, where Psi = basis * lam."""
        return (weights @ self.basis) * self.eigenvalues


def warn_if_indefinite(negative: float) -> None:
    """Say so when a matrix was not that of a kernel: its negative part has been left out."""
    if negative > INDEFINITE:
        warnings.warn(
            "the kernel is not positive semi-definite: the negative part of its matrix "
            f"({negative:.1g} of the largest eigenvalue) is left out",
            UserWarning,
            stacklevel=2,
        )
