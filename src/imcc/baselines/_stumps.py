"""Decision stumps for many labels at once, found by one (sparse) matrix product.

Every feature is binned once.  The indicator matrix B (n_bins x n_samples) has a one for the bin
that a row is in, per feature.  For signed weights V (n_samples x q), the product B V holds the sum
of each label's weights per bin, and cumulative sums over a feature's bins give the weight to the
left of each cut.  A stump that predicts the majority on both sides of a cut has the edge
|left| + |right|; the best cut of a label has the largest edge.  The cut after the last bin leaves
all rows on the left, so the constant hypothesis is among the candidates.

The fullest bin of a feature is not stored, as its sum is the total minus the sums of the others.
So the zeros of sparse features cost nothing, and B has at most as many entries as X.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from imcc._utils.validation import Features

#: As weights sum to 1, edges that differ by less than this are equal up to rounding.
SAME_EDGE = 1e-12


def first_of_largest(edges: np.ndarray, axis: int) -> np.ndarray:
    """Return the index of the largest edge; the first one if several are equal up to rounding.

    Features that split the rows in the same way have the same edge.  If the last digit decided
    between them, the model would depend on the order of summation.
    """
    largest = edges.max(axis=axis, keepdims=True)
    return (edges >= largest - SAME_EDGE).argmax(axis=axis)


class BinnedRows:
    """Binned training rows, for :meth:`best_stumps`.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    max_bins : int
        A feature with at most this many distinct values has one bin per value, so that its stumps
        are exact.  Other features are cut into bins of about equal weight.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, used to balance the bins.
    """

    def __init__(self, X: Features, max_bins: int, weights: np.ndarray | None = None) -> None:
        self.n_samples = X.shape[0]
        columns = X.tocsc() if sp.issparse(X) else X
        weights = np.ones(self.n_samples) if weights is None else weights
        cuts, bin_counts, fullest, indices = [], [], [], []
        for feature in range(X.shape[1]):
            # The rows where the feature is nonzero, and its values there.
            if sp.issparse(columns):
                part = slice(columns.indptr[feature], columns.indptr[feature + 1])
                rows, values = columns.indices[part], columns.data[part]
                rows, values = rows[values != 0], values[values != 0]
            else:
                rows = np.flatnonzero(columns[:, feature])
                values = columns[rows, feature]
            n_zeros = self.n_samples - len(rows)
            of_zeros = float(weights.sum() - weights[rows].sum()) if n_zeros else 0.0
            at = _cuts(values, weights[rows], of_zeros, max_bins)
            code = np.searchsorted(at, values, side="left")
            zero_code = int(np.searchsorted(at, 0.0, side="left"))
            counts = np.bincount(code, minlength=len(at) + 1)
            counts[zero_code] += n_zeros
            # Zeros are not stored, so their bin must be the one that is not stored.
            left_out = zero_code if n_zeros else int(counts.argmax())
            kept = code != left_out
            order = np.argsort(code[kept], kind="stable")
            indices.append(rows[kept][order])
            counts[left_out] = 0
            bin_counts.append(counts)
            # The last cut is above all values, but finite so that models can be saved.
            cuts.append(np.append(at, np.finfo(np.float64).max))
            fullest.append(left_out)
        n_bins = np.array([len(c) for c in cuts])
        self._ends = np.cumsum(n_bins)
        self._starts = self._ends - n_bins
        self._feature = np.repeat(np.arange(len(cuts)), n_bins)
        self._threshold = np.concatenate(cuts)
        self._fullest = self._starts + np.array(fullest)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(bin_counts))])
        stored = np.concatenate(indices)
        self._membership = sp.csr_matrix(
            (np.ones(len(stored)), stored, indptr), shape=(len(self._feature), self.n_samples)
        )

    def best_stumps(
        self, signed_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the stump with the largest edge per label, the first one among ties.

        A stump predicts ``left`` if x[feature] <= threshold, otherwise ``right``.  Edges that
        differ by less than 1e-12 count as equal.

        Parameters
        ----------
        signed_weights : ndarray of shape (n_samples, q)
            Weight times label in {-1, +1}; the weights of a label sum to 1.

        Returns
        -------
        feature : ndarray of int, shape (q,)
        threshold : ndarray of shape (q,)
        left, right : ndarray of shape (q,)
            -1 or +1.
        cut : ndarray of int, shape (q,)
            Index of the threshold among the cuts of all features.
        """
        total = signed_weights.sum(axis=0)
        sums = self._membership @ signed_weights
        sums[self._fullest] = total - np.add.reduceat(sums, self._starts, axis=0)
        left = np.cumsum(sums, axis=0)
        before = left[self._starts] - sums[self._starts]
        left -= before[self._feature]
        best = first_of_largest(np.abs(left) + np.abs(total - left), axis=0)
        at_best = left[best, np.arange(len(best))]
        return (
            self._feature[best],
            self._threshold[best],
            np.where(at_best >= 0, 1.0, -1.0),
            np.where(total - at_best >= 0, 1.0, -1.0),
            best,
        )

    def outputs(self, cuts: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the predictions of stumps for the training rows, shape (n_samples, q)."""
        indices, indptr = self._membership.indices, self._membership.indptr
        out = np.empty((self.n_samples, len(cuts)))
        for label, cut in enumerate(cuts):
            # The stored bins on the side without the unstored bin: a slice of indices.
            feature = self._feature[cut]
            if self._fullest[feature] > cut:
                rows = indices[indptr[self._starts[feature]] : indptr[cut + 1]]
                out[:, label], out[rows, label] = right[label], left[label]
            else:
                rows = indices[indptr[cut + 1] : indptr[self._ends[feature]]]
                out[:, label], out[rows, label] = left[label], right[label]
        return out


def _cuts(values: np.ndarray, weights: np.ndarray, of_zeros: float, max_bins: int) -> np.ndarray:
    """Return the cuts of a feature, between distinct values, at most ``max_bins - 1`` of them.

    Parameters
    ----------
    values, weights : ndarray of shape (n_nonzero,)
        The nonzero values, and the weights of their rows.
    of_zeros : float
        Total weight of the rows with zeros.
    max_bins : int
    """
    distinct, inverse = np.unique(values, return_inverse=True)
    counts = np.bincount(inverse, weights=weights, minlength=len(distinct))
    if of_zeros:
        at = np.searchsorted(distinct, 0)
        distinct = np.insert(distinct, at, 0)
        counts = np.insert(counts, at, of_zeros)
    if len(distinct) > max_bins:
        # Cut after the values at which the next 1 / max_bins of the rows is complete.
        filled = np.cumsum(counts) / counts.sum()
        after = np.unique(np.searchsorted(filled, np.arange(1, max_bins) / max_bins))
        after = after[after < len(distinct) - 1]
    else:
        after = np.arange(len(distinct) - 1)
    lower, upper = distinct[after].astype(np.float64), distinct[after + 1].astype(np.float64)
    middle = lower + (upper - lower) / 2
    # Adjacent floats have no value between them: the cut is then at the lower one.
    return np.where(middle < upper, middle, lower)
