"""Decision stumps for many labels at once, found by one (sparse) matrix product.

Every feature is cut into bins once.  B (n_bins x n_samples) says which row is in which bin of which
feature; then for signed weights V (n_samples x q) the product B V has the sum of each label's
weights in each bin, and running sums along a feature's bins are what lies left of each cut.  A
stump that predicts the majority on both sides of a cut has the edge |left| + |right|; the best cut
of each label is the largest one.  The cut after the last bin leaves all rows on the left: the
constant hypothesis is among the candidates.

The fullest bin of a feature is not stored, as its sum is the total less the others'.  So the zeros
of sparse features cost nothing, and B has at most one entry for each entry of X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from imcc._utils.validation import Features


@dataclass(frozen=True)
class Stumps:
    """One stump per label: ``left`` where x[feature] <= threshold, otherwise ``right``.

    Attributes
    ----------
    feature : ndarray of int, shape (q,)
    threshold : ndarray of shape (q,)
    left, right : ndarray of shape (q,)
        -1 or +1.
    cut : ndarray of int, shape (q,)
        Where the threshold is among the cuts of all features.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    cut: np.ndarray


#: Weights sum up to 1: edges that differ by less are equal but for rounding.
SAME_EDGE = 1e-12


def first_of_largest(edges: np.ndarray, axis: int) -> np.ndarray:
    """Return where the largest edge is; the first one where several are equal up to rounding.

    Features that split the rows alike have the same edge.  Were the last digit to decide between
    them, another order of the same sums would give another model.
    """
    largest = edges.max(axis=axis, keepdims=True)
    return (edges >= largest - SAME_EDGE).argmax(axis=axis)


class BinnedRows:
    """Training rows cut into bins, ready for :meth:`best_stumps`.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    max_bins : int
        A feature with at most this many different values has a bin for each: its stumps are exact.
        Others are cut into about equally full bins.
    weights : ndarray of shape (n_samples,), optional
        Of the rows, for how full bins are.
    """

    def __init__(self, X: Features, max_bins: int, weights: np.ndarray | None = None) -> None:
        self.n_samples = X.shape[0]
        columns = X.tocsc() if sp.issparse(X) else X
        cuts, bin_counts, fullest, indices = [], [], [], []
        for feature in range(X.shape[1]):
            rows, values, n_zeros = _entries(columns, feature)
            if weights is None:
                at = _cuts(values, n_zeros, max_bins)
            else:
                rest = float(weights.sum() - weights[rows].sum()) if n_zeros else 0.0
                at = _cuts(values, rest, max_bins, weights[rows])
            code = np.searchsorted(at, values, side="left")
            zero_code = int(np.searchsorted(at, 0.0, side="left"))
            counts = np.bincount(code, minlength=len(at) + 1)
            counts[zero_code] += n_zeros
            # A feature's zeros that are not stored must be in the bin that is not stored.
            left_out = zero_code if n_zeros else int(counts.argmax())
            kept = code != left_out
            order = np.argsort(code[kept], kind="stable")
            indices.append(rows[kept][order])
            counts[left_out] = 0
            bin_counts.append(counts)
            cuts.append(np.append(at, np.inf))
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

    def best_stumps(self, signed_weights: np.ndarray) -> Stumps:
        """Return each label's stump with the largest edge, the first one among ties.

        Edges that differ by less than 1e-12 are equal.

        Parameters
        ----------
        signed_weights : ndarray of shape (n_samples, q)
            Weight times label, in {-1, +1}; the weights of a label add up to 1.
        """
        total = signed_weights.sum(axis=0)
        sums = self._membership @ signed_weights
        sums[self._fullest] = total - np.add.reduceat(sums, self._starts, axis=0)
        left = np.cumsum(sums, axis=0)
        before = left[self._starts] - sums[self._starts]
        left -= before[self._feature]
        best = first_of_largest(np.abs(left) + np.abs(total - left), axis=0)
        at_best = left[best, np.arange(len(best))]
        return Stumps(
            self._feature[best],
            self._threshold[best],
            np.where(at_best >= 0, 1.0, -1.0),
            np.where(total - at_best >= 0, 1.0, -1.0),
            best,
        )

    def outputs(self, stumps: Stumps) -> np.ndarray:
        """Return what the stumps say of the training rows, (n_samples, q), without looking at X."""
        indices, indptr = self._membership.indices, self._membership.indptr
        out = np.empty((self.n_samples, len(stumps.cut)))
        for label, (feature, cut) in enumerate(zip(stumps.feature, stumps.cut, strict=True)):
            # The stored bins on the side that the bin not stored is not on: a slice of indices.
            if self._fullest[feature] > cut:
                rows = indices[indptr[self._starts[feature]] : indptr[cut + 1]]
                out[:, label] = stumps.right[label]
                out[rows, label] = stumps.left[label]
            else:
                rows = indices[indptr[cut + 1] : indptr[self._ends[feature]]]
                out[:, label] = stumps.left[label]
                out[rows, label] = stumps.right[label]
        return out


def _entries(columns: Features, feature: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the rows where a feature is not zero, its values there, and how many zeros it has."""
    if sp.issparse(columns):
        part = slice(columns.indptr[feature], columns.indptr[feature + 1])
        rows, values = columns.indices[part], columns.data[part]
        rows, values = rows[values != 0], values[values != 0]
    else:
        rows = np.flatnonzero(columns[:, feature])
        values = columns[rows, feature]
    return rows, values, columns.shape[0] - len(rows)


def _cuts(
    values: np.ndarray, n_zeros: float, max_bins: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return where to cut a feature: between different values, at most ``max_bins - 1`` times.

    With weights of the rows that the values are of, ``n_zeros`` is the weight of all others.
    """
    if weights is None:
        distinct, counts = np.unique(values, return_counts=True)
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
        counts = np.bincount(inverse, weights=weights, minlength=len(distinct))
    if n_zeros:
        at = np.searchsorted(distinct, 0)
        distinct = np.insert(distinct, at, 0)
        counts = np.insert(counts, at, n_zeros)
    if len(distinct) > max_bins:
        # After the values at which the next share of the rows is full.
        filled = np.cumsum(counts) / counts.sum()
        after = np.unique(np.searchsorted(filled, np.arange(1, max_bins) / max_bins))
        after = after[after < len(distinct) - 1]
    else:
        after = np.arange(len(distinct) - 1)
    lower, upper = distinct[after].astype(np.float64), distinct[after + 1].astype(np.float64)
    middle = lower + (upper - lower) / 2
    # Neighbouring numbers have nothing between them: the cut is "at most the lower one".
    return np.where(middle < upper, middle, lower)
