"""The sums over training rows that the solver needs.

For features Psi (n x r), labels Y (n x q) and the membership matrix P (n x c), the solver only
needs sums over the rows, in addition to the centres::

    Psi^T Psi,   Psi^T Y,   P^T Psi,   P^T Y,   P^T 1,   n

The statistics of parts can therefore be added and subtracted.  With row weights w, the sums are
weighted: Psi^T diag(w) Psi and so on, P^T w, and sum(w).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from imcc._backend.array import Array, dense, namespace, scaled_rows
from imcc._utils.validation import Features

# Maximum relative difference of sums of the same weights in another order.  Different counts of up
# to 10^11 rows differ by more.
SAME_TOTAL = 1e-11


def constant_labels(totals: Array, n_rows: float) -> Array:
    """Return -1.0 or +1.0 for labels of no row or of all rows, and 0.0 for all others.

    The optimum for a constant label has zero coefficients and the constant as intercept.  The
    closed form is linear in the labels, so a fit subtracts the constants from the labels (the
    columns are then exactly zero) and adds them to the intercept.  Otherwise, the scores of these
    labels would have rounding errors, and their order would depend on the number of threads.

    Parameters
    ----------
    totals : array of shape (q,)
        1^T Y, the sums of labels that are -1 and +1, or of their weights.
    n_rows : float
        Number of rows, or the sum of their weights.
    """
    xp = namespace(totals)
    constant = n_rows - xp.abs(totals) <= SAME_TOTAL * n_rows
    return xp.where(constant, xp.sign(totals), xp.zeros_like(totals))


def label_patterns(known: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Group the labels that are known in the same rows.

    Parameters
    ----------
    known : ndarray of bool of shape (n_samples, q)

    Returns
    -------
    list of (rows, labels)
        Indices of the rows of each pattern, and of the labels that are known in just these.
    """
    patterns, pattern_of = np.unique(known, axis=1, return_inverse=True)
    return [
        (np.flatnonzero(patterns[:, p]), np.flatnonzero(pattern_of.ravel() == p))
        for p in range(patterns.shape[1])
    ]


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
        """Return the sums for labels minus the constants of :func:`constant_labels`."""
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
