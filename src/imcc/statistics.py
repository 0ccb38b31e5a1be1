"""The sums over training rows that the solver needs.

For features Psi (n x r), labels Y (n x q) and the membership matrix P (n x c), given the centres,
everything the solver asks of the rows is a sum over them::

    Psi^T Psi,   Psi^T Y,   P^T Psi,   P^T Y,   P^T 1,   n

so statistics of parts add up to the statistics of the whole, and those of a part can be taken away.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import scipy.sparse as sp

from imcc._validation import Features


@dataclass(frozen=True)
class Statistics:
    """Sums over rows; ``a + b`` and ``total - part`` are the sums over the union and the rest.

    Attributes
    ----------
    gram : ndarray of shape (r, r)
        Psi^T Psi.
    cross : ndarray of shape (r, q)
        Psi^T Y.
    cluster_sums : ndarray of shape (c, r)
        P^T Psi.
    cluster_labels : ndarray of shape (c, q)
        P^T Y.
    sizes : ndarray of shape (c,)
        P^T 1, members of each cluster.
    n_rows : float
    """

    gram: np.ndarray
    cross: np.ndarray
    cluster_sums: np.ndarray
    cluster_labels: np.ndarray
    sizes: np.ndarray
    n_rows: float

    @classmethod
    def of_rows(cls, psi: Features, signs: np.ndarray, membership: sp.csr_array) -> Statistics:
        """Sum over the rows of a block (dense, or CSR that is not densified)."""
        sums = membership.T @ psi
        gram = psi.T @ psi
        return cls(
            gram=_dense(gram),
            cross=_dense(psi.T @ signs),
            cluster_sums=_dense(sums),
            cluster_labels=_dense(membership.T @ signs),
            sizes=np.asarray(membership.sum(axis=0)).ravel(),
            n_rows=float(psi.shape[0]),
        )

    def rotated(self, basis: np.ndarray) -> Statistics:
        """Return the sums over the features Psi @ basis."""
        return replace(
            self,
            gram=basis.T @ self.gram @ basis,
            cross=basis.T @ self.cross,
            cluster_sums=self.cluster_sums @ basis,
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def __sub__(self, other: Statistics) -> Statistics:
        return Statistics(
            **{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)}
        )


def _dense(matrix: Features) -> np.ndarray:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
