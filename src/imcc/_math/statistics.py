"""The sums over training rows that the solver needs.

For features Psi (n x r), labels Y (n x q) and the membership matrix P (n x c), the solver only
needs sums over the rows, in addition to the centres::

    Psi^T Psi,   Psi^T Y,   P^T Psi,   P^T Y,   P^T 1,   n

The statistics of parts can therefore be added and subtracted.  With row weights w, the sums are
weighted: Psi^T diag(w) Psi and so on, P^T w, and sum(w).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from imcc._array.array import Array, dense, namespace, scaled_rows
from imcc._utils.validation import Features


@dataclass(frozen=True)
class Statistics:
    """Sums over rows; ``a + b`` and ``total - part`` are the sums of the union and the rest.

    Attributes
    ----------
    gram : array of shape (r, r)
        Psi^T Psi.
    cross : array of shape (r, q)
        Psi^T Y.
    cluster_sums : array of shape (c, r)
        P^T Psi.
    cluster_labels : array of shape (c, q)
        P^T Y.
    sizes : array of shape (c,)
        P^T 1, members of each cluster (or their weights).
    n_rows : float
        Number of rows (or the sum of their weights).
    """

    gram: Array
    cross: Array
    cluster_sums: Array
    cluster_labels: Array
    sizes: Array
    n_rows: float

    @classmethod
    def of_rows(
        cls, psi: Features, signs: Array, membership: Array, weights: Array | None = None
    ) -> Statistics:
        """Sum over the rows of a block (dense, or CSR that is not densified)."""
        if weights is not None:
            return cls._of_weighted(psi, signs, membership, weights)
        ones = namespace(signs).ones_like(signs[:, 0])
        return cls(
            gram=dense(psi.T @ psi),
            cross=dense(psi.T @ signs),
            cluster_sums=dense(membership.T @ psi),
            cluster_labels=dense(membership.T @ signs),
            sizes=membership.T @ ones,
            n_rows=float(psi.shape[0]),
        )

    @classmethod
    def _of_weighted(
        cls, psi: Features, signs: Array, membership: Array, weights: Array
    ) -> Statistics:
        xp = namespace(weights)
        roots = xp.sqrt(weights)
        # Scaled on both sides, so that Psi^T Psi is exactly symmetric.
        psi, signs, membership = (scaled_rows(x, roots) for x in (psi, signs, membership))
        return cls(
            gram=dense(psi.T @ psi),
            cross=dense(psi.T @ signs),
            cluster_sums=dense(membership.T @ psi),
            cluster_labels=dense(membership.T @ signs),
            sizes=membership.T @ roots,
            n_rows=float(xp.sum(weights)),
        )

    def without(self, constants: Array) -> Statistics:
        """Return the sums for labels minus the constants of ``solver.constant_labels``."""
        varied = namespace(constants).astype(constants == 0, constants.dtype)
        return replace(self, cross=self.cross * varied, cluster_labels=self.cluster_labels * varied)

    def rotated(self, basis: Array) -> Statistics:
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
