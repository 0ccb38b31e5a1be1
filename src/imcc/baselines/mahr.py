"""MAHR: boosting that reuses the hypotheses of other labels (Huang, Yu and Zhou, KDD 2012)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from imcc._array.device import one_thread
from imcc._utils.validation import Features, check_count, check_number, check_switch
from imcc.baselines._base import BaselineClassifier, is_constant
from imcc.baselines._stumps import BinnedRows, first_of_largest

# A hypothesis without training errors would get an infinite weight; with this edge, the weight is
# 11.9.
_LARGEST_EDGE = 1 - 1e-10
# Once all exponentials of a label are below this, they are divided by the largest one.  No other
# number changes as long as labels stop when their rows are classified correctly.
_SMALLEST = 1e-100


class Round(NamedTuple):
    """One boosting round of all labels; arrays of shape (q,).

    H_l += own_l * stump_l + reuse_l * scale_l * H_source_l, where the stump predicts ``left`` if
    x[feature] <= threshold, otherwise ``right``.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    own: np.ndarray
    source: np.ndarray
    scale: np.ndarray
    reuse: np.ndarray


class MAHR(BaselineClassifier):
    r"""AdaBoost with decision stumps and hypothesis reuse across labels.

    Every label l has a combined hypothesis H_l and the exponential loss::

        mean_i exp(-y_il H_l(x_i)),    y in {-1, +1}

    All labels are boosted in parallel.  In each round, for every label l with row weights
    D_i ~ exp(-y_il H_l(x_i)):

    1. *Own stump.*  The stump h with the largest edge r = sum_i D_i y_il h(x_i) is added with
       AdaBoost's weight 1/2 log((1 + r) / (1 - r)), and the row weights are updated.
    2. *Reuse.*  The candidates are the combined hypotheses of the *other* labels before the round,
       each divided by the sum of its weights so that it is within [-1, +1]:
       ``g_j = H_j / sum |weights of H_j|``.  The candidate with the largest absolute edge
       ``|r_j|`` for the updated row weights is added with the weight
       1/2 log((1 + r_j) / (1 - r_j)), which is negative for labels that exclude each other.

    Each step multiplies the label's loss by at most sqrt(1 - r^2), so the loss never increases, and
    the stump and the candidate with the smallest bound are chosen.  Edges are limited to
    1 - 1e-10 in absolute value, so that a hypothesis without errors has the weight 11.9 and not an
    infinite one.

    Parameters
    ----------
    n_rounds : int or None, default=None
        Maximum number of rounds; None means twice the number of features, as in the paper.
    reuse : bool, default=True
        Whether to reuse hypotheses of other labels.  If False, this is AdaBoost with stumps per
        label.
    max_bins : int, default=64
        Maximum number of bins per feature, >= 2.  The stumps of a feature with at most this many
        distinct values are exact.
    min_loss : float or None, default=None
        Boosting of a label stops when its exponential loss is below this value, >= 0.  None means
        1 / n_samples: all training rows are then classified correctly, as each misclassified row
        adds at least 1 / n_samples to the loss.  (With sample weights,
        ``min(1, smallest weight) / sum of weights``.)  With 0, all rounds are used: the row
        weights stay defined, as those of a label are computed relative to its largest one when its
        exponentials become too small for a float.

    Attributes
    ----------
    label_relationship_ : ndarray of shape (n_labels, n_labels)
        Entry (l, j) is the sum over rounds of the absolute weights that label l gave to the
        hypotheses of label j, a measure of how informative j is about l.  Not symmetric; zero on
        the diagonal.
    losses_ : ndarray of shape (n_iterations + 1, n_labels)
        The exponential loss before the first round and after each round; 0 where it is smaller
        than any positive float, which only happens if ``min_loss`` is 0 or nearly so.
    rounds_ : list of Round
        The rounds.
    n_iter_ : int
        Number of rounds; less than the maximum if the loss of all labels fell below ``min_loss``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    The exact reuse rule of the publication was not available.  The rule used here was chosen, on
    one split of yeast, among six rules for which the loss cannot increase: reusing sign(H_j) or
    tanh(H_j), or reusing a hypothesis instead of the own stump rather than after it, gave the same
    or a lower average precision.  A hypothesis that overfits its training rows has far more
    accurate signs on these than on new rows; its confidence differs less.

    Sample weights multiply the terms of the loss and are used when binning; a weight of 2 is the
    same as repeating the row.

    The stumps of all labels are found by one matrix product per round; see
    :mod:`imcc.baselines._stumps`.  A constant label, which all training rows or none have, is
    ranked above or below all others: the absolute value of its score exceeds that of any other
    label.

    References
    ----------
    .. [1] S.-J. Huang, Y. Yu, Z.-H. Zhou. "Multi-label hypothesis reuse." KDD 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import MAHR
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> mahr = MAHR(n_rounds=20).fit(X, Y)
    >>> bool((mahr.losses_[1:] <= mahr.losses_[:-1]).all())
    True
    >>> mahr.label_relationship_.shape
    (3, 3)
    """

    def __init__(
        self,
        n_rounds: int | None = None,
        *,
        reuse: bool = True,
        max_bins: int = 64,
        min_loss: float | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.reuse = reuse
        self.max_bins = max_bins
        self.min_loss = min_loss

    def _check_parameters(self) -> None:
        if self.n_rounds is not None:
            check_count("n_rounds", self.n_rounds)
        check_switch("reuse", self.reuse)
        check_count("max_bins", self.max_bins, at_least=2)
        if self.min_loss is not None:
            check_number("min_loss", self.min_loss, at_least=0)

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        # One thread for matrix products, so that results do not depend on the number of threads.
        with one_thread():
            self._boost(X, on, np.ones(len(on)) if weights is None else weights)

    def _boost(self, X: Features, on: np.ndarray, weights: np.ndarray) -> None:
        n_samples, q = on.shape
        signs = np.where(on, 1.0, -1.0)
        constant = np.array([is_constant(labels) for labels in on.T])
        # Normalised to mean 1, so that the mean of the weighted exponentials is the loss.
        shares = weights[:, None] * (n_samples / weights.sum())
        enough = self.min_loss
        if enough is None:
            enough = min(1.0, weights.min()) / weights.sum()
        binned = BinnedRows(X, self.max_bins, weights)
        combined, total = np.zeros(on.shape), np.zeros(q)
        relationship = np.zeros((q, q))
        rounds: list[Round] = []
        losses = [np.ones(q)]
        learning = np.flatnonzero(~constant)
        signs_of, exponentials = signs[:, learning], np.tile(shares, len(learning))
        for _ in range(2 * X.shape[1] if self.n_rounds is None else self.n_rounds):
            still = losses[-1][learning] >= enough
            if not still.all():
                # Labels that have stopped cost nothing; their hypotheses can still be reused.
                learning, signs_of = learning[still], signs_of[:, still]
                exponentials = exponentials[:, still]
            if not learning.size:
                break
            done, moved = self._round(binned, signs_of, exponentials, combined, total, learning)
            combined[:, learning] = moved
            exponentials, factors = _exponentials(-signs_of * moved, shares)
            total = total + np.abs(done.own) + np.abs(done.reuse)
            relationship[np.arange(q), done.source] += np.abs(done.reuse)
            rounds.append(done)
            losses.append(losses[-1].copy())
            losses[-1][learning] = exponentials.mean(axis=0) * factors
        self.rounds_, self.n_iter_ = rounds, len(rounds)
        self.losses_ = np.array(losses)
        self.label_relationship_ = relationship
        # Larger in absolute value than any score of another label.
        self._constant_scores = np.where(constant, signs[0] * (1 + total.max()), 0.0)

    def _round(
        self,
        binned: BinnedRows,
        signs: np.ndarray,
        exponentials: np.ndarray,
        combined: np.ndarray,
        total: np.ndarray,
        learning: np.ndarray,
    ) -> tuple[Round, np.ndarray]:
        """Return a round, and the updated combined hypotheses of the labels still learning.

        Parameters
        ----------
        binned : BinnedRows
        signs : ndarray of shape (n_samples, n_learning)
        exponentials : ndarray of shape (n_samples, n_learning)
            exp(-sign H) before the round, up to a factor per label (see :func:`_exponentials`).
            Its mean is the loss, which starts at 1 and never increases, so no entry exceeds
            n_samples.
        combined : ndarray of shape (n_samples, q)
            H of all labels before the round.
        total : ndarray of shape (q,)
            Sums of the absolute weights in H.
        learning : ndarray of int, shape (n_learning,)
            The labels still learning.
        """
        q = len(total)
        signed = exponentials / exponentials.sum(axis=0)
        signed *= signs
        feature, threshold, left, right, cuts = binned.best_stumps(signed)
        votes = binned.outputs(cuts, left, right)
        own = _weight(np.einsum("ij,ij->j", signed, votes))
        moved = np.take(combined, learning, axis=1)
        moved += own * votes
        scale = 1 / np.where(total > 0, total, 1.0)
        source, reuse = learning, np.zeros(len(learning))
        if self.reuse:
            # exp(-sign (H + own * votes)); signs and votes are -1 or +1.
            votes *= signs
            signed = exponentials * np.where(votes > 0, np.exp(-own), np.exp(own))
            signed *= signs / signed.sum(axis=0)
            edges = (signed.T @ combined) * scale
            each = np.arange(len(learning))
            edges[each, learning] = 0.0
            source = first_of_largest(np.abs(edges), axis=1)
            reuse = _weight(edges[each, source])
            moved += (reuse * scale[source]) * np.take(combined, source, axis=1)

        def of_all(values: np.ndarray, rest: Any) -> np.ndarray:
            out = np.full(q, rest, dtype=values.dtype)
            out[learning] = values
            return out

        sources = np.arange(q)
        sources[learning] = source
        done = Round(
            of_all(feature, 0),
            of_all(threshold, 0.0),
            of_all(left, 1.0),
            of_all(right, 1.0),
            of_all(own, 0.0),
            sources,
            scale[sources],
            of_all(reuse, 0.0),
        )
        return done, moved

    def _score_rows(self, X: Features) -> np.ndarray:
        scores = np.zeros((X.shape[0], len(self._constant_scores)))
        used = np.unique([done.feature for done in self.rounds_])
        columns = X[:, used.astype(int)]
        columns = columns.toarray() if sp.issparse(columns) else columns
        for done in self.rounds_:
            # ``take`` preserves the memory layout, which columns[:, at] does not.
            values = np.take(columns, np.searchsorted(used, done.feature), axis=1)
            votes = np.where(values <= done.threshold, done.left, done.right)
            # H of all labels before the round.
            reused = np.take(scores, done.source, axis=1)
            scores = scores + done.own * votes + (done.reuse * done.scale) * reused
        return scores + self._constant_scores


def _exponentials(exponents: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``shares * exp(exponents)``, divided by a factor per label, and these factors.

    The factor is 1 unless all exponentials of a label are tiny.  It is then the largest one, so
    that the row weights, which do not depend on it, can be computed; the factor itself may be
    rounded to 0.
    """
    exponentials = shares * np.exp(exponents)
    factors = np.ones(exponents.shape[1])
    tiny = np.flatnonzero(exponentials.max(axis=0) < _SMALLEST)
    if tiny.size:
        logarithms = exponents[:, tiny] + np.log(shares)
        largest = logarithms.max(axis=0)
        exponentials[:, tiny] = np.exp(logarithms - largest)
        factors[tiny] = np.exp(largest)
    return exponentials, factors


def _weight(edge: np.ndarray) -> np.ndarray:
    """Return AdaBoost's 1/2 log((1 + r) / (1 - r)), at most 11.9 in absolute value."""
    return np.arctanh(np.clip(edge, -_LARGEST_EDGE, _LARGEST_EDGE))
