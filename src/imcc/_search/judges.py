"""The five metrics of many score matrices at once, on a device.

The values are those of :class:`imcc.metrics.Judge`, including ties.  They are computed with few
operations on large arrays, because each operation on a device takes a few microseconds, however
small it is.  Means over rows are sums over pairs (row, relevant label) with weights that do not
depend on the scores::

    average precision = sum over pairs of  (found / rank) / (labels of the row * rows)
    ranking loss      = sum over pairs of  (rank - found) / (pairs of the row * rows)

where ``rank`` is the number of labels of the row with at least the score of the label of the pair,
and ``found`` the number of relevant labels among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from imcc._backend.array import Array, asarray, at_least, is_numpy, namespace, take, zeros
from imcc._backend.device import block_entries
from imcc.metrics import Judge


class BatchJudge:
    """Computes the five metrics of many score matrices on a device.

    Parameters
    ----------
    relevant : ndarray of bool of shape (n_samples, n_labels)
        The true labels, on the host.
    like : array
        Determines library and device.
    weights : ndarray of shape (n_samples,), default=None
        Row weights for the means, on the host.
    """

    def __init__(
        self, relevant: np.ndarray, like: Array, weights: np.ndarray | None = None
    ) -> None:
        self.n_rows, self.n_labels = relevant.shape
        n_relevant = relevant.sum(axis=1)
        ranked = (n_relevant > 0) & (n_relevant < self.n_labels)
        self.n_ranked = int(ranked.sum())
        rows, labels = np.nonzero(relevant & ranked[:, np.newaxis])
        self.n_pairs = len(rows)
        on, off = n_relevant[rows], self.n_labels - n_relevant[rows]
        self._rows, self._labels = asarray(rows, like), asarray(labels, like)
        self._for_precision = asarray(1.0 / np.maximum(on * self.n_ranked, 1), like)
        self._for_loss = asarray(1.0 / np.maximum(on * off * self.n_ranked, 1), like)
        # Weight of each row in a mean over all rows, and over those with a ranking.
        self._shares = self._ranked_shares = None
        if weights is not None:
            of_ranked = np.where(ranked, weights, 0.0) / max(weights[ranked].sum(), 1e-300)
            self._for_precision = asarray(of_ranked[rows] / np.maximum(on, 1), like)
            self._for_loss = asarray(of_ranked[rows] / np.maximum(on * off, 1), like)
            self._shares = asarray(weights / weights.sum(), like)
            self._ranked_shares = asarray(of_ranked, like)
        self._relevant = asarray(np.ascontiguousarray(relevant.T), like)
        self._ranked = asarray(ranked, like)
        self._block_entries = block_entries(like) or relevant.size

    def entries(self) -> int:
        """Return the approximate number of entries needed for one setting."""
        return self.n_labels * (4 * self.n_rows + self.n_pairs)

    def means(self, scores: Array, names: Sequence[str]) -> Array:
        """Return the metrics of each setting, shape (n_metrics, n_settings); NaN if undefined.

        Parameters
        ----------
        scores : array of shape (n_labels, n_settings, n_rows)
        names : sequence of str
        """
        xp = namespace(scores)
        sums = None
        means = []
        for name in names:
            if name == "hamming_loss":
                wrong = (scores >= 0) != self._relevant[:, None, :]
                means.append(self._share(xp.count_nonzero(wrong, axis=0)) / self.n_labels)
            elif name == "coverage":
                means.append(self._coverage(scores))
            elif self.n_ranked == 0:
                means.append(zeros((scores.shape[1],), scores) + np.nan)
            elif name == "one_error":
                means.append(self._one_error(scores))
            else:
                if sums is None:
                    sums = self._pair_sums(scores)
                means.append(sums[name])
        return xp.stack(means)

    def _share(self, of_rows: Array) -> Array:
        """Return the mean over rows of integers of shape (n_settings, n_rows)."""
        xp = namespace(of_rows)
        if self._shares is not None:
            return xp.astype(of_rows, xp.float64) @ self._shares
        return xp.astype(xp.sum(of_rows, axis=1), xp.float64) / self.n_rows

    def _of_relevant(self, scores: Array, otherwise: float) -> Array:
        xp = namespace(scores)
        return xp.where(self._relevant[:, None, :], scores, otherwise)

    def _one_error(self, scores: Array) -> Array:
        xp = namespace(scores)
        best_relevant = xp.max(self._of_relevant(scores, -np.inf), axis=0)
        wrong = (best_relevant < xp.max(scores, axis=0)) & self._ranked
        if self._ranked_shares is not None:
            return xp.astype(wrong, xp.float64) @ self._ranked_shares
        return xp.astype(xp.count_nonzero(wrong, axis=1), xp.float64) / self.n_ranked

    def _coverage(self, scores: Array) -> Array:
        xp = namespace(scores)
        # Without relevant labels, the bound is infinite and no label reaches it.
        lowest = xp.min(self._of_relevant(scores, np.inf), axis=0)
        rank = xp.count_nonzero(scores >= lowest, axis=0)
        return self._share(at_least(rank, 1) - 1) / self.n_labels

    def _pair_sums(self, scores: Array) -> dict[str, Array]:
        """Sum the terms of average precision and ranking loss over the pairs."""
        xp = namespace(scores)
        n_labels, n_settings, _ = scores.shape
        precision, loss = zeros((n_settings,), scores), zeros((n_settings,), scores)
        step = max(1, self._block_entries // (n_labels * n_settings))
        for start in range(0, self.n_pairs, step):
            pairs = slice(start, min(start + step, self.n_pairs))
            rows, labels = self._rows[pairs], self._labels[pairs]
            around = take(scores, rows, 2)
            index = xp.broadcast_to(labels, (1, n_settings, labels.shape[0]))
            reaches = around >= xp.take_along_axis(around, index, axis=0)
            rank = xp.astype(xp.count_nonzero(reaches, axis=0), xp.float64)
            reaches &= take(self._relevant, rows, 1)[:, None, :]
            found = xp.astype(xp.count_nonzero(reaches, axis=0), xp.float64)
            precision += (found / rank) @ self._for_precision[pairs]
            loss += (rank - found) @ self._for_loss[pairs]
        return {"average_precision": precision, "ranking_loss": loss}


def judge_of(
    relevant: np.ndarray, like: Array, weights: np.ndarray | None = None
) -> Judge | BatchJudge:
    """Return a judge for scores in the library and on the device of an array."""
    if is_numpy(like):
        return Judge(relevant, weights=weights)
    return BatchJudge(relevant, like, weights)
