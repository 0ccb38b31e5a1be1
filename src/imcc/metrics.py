"""The five metrics of the paper, exact about ties and about empty and full label sets.

Scores F (n x q), truth Y.  The rank of a label in a row is the number of labels of that row that
are scored at least as high: labels that tie share the worst of their places.

=================  ======  =====================================================================
metric             better  value of a row
=================  ======  =====================================================================
one_error          low     1 if the top-scored label is not relevant (0 if a relevant one ties)
hamming_loss       low     share of labels on the wrong side, where F >= 0 predicts a label
ranking_loss       low     share of (relevant, irrelevant) pairs with F_relevant <= F_irrelevant
coverage           low     (largest rank of a relevant label - 1) / q; 0 without labels
average_precision  high    mean over relevant labels of (relevant labels of at least its score)/rank
=================  ======  =====================================================================

Rows whose label set is empty or full have no ranking to judge: they are left out of one_error,
ranking_loss and average_precision.  The value of a table is the mean over its rows.

A label that is NaN in ``y_true`` is not known.  A row is then judged as if it had only the labels
that are known of it (q is their number, ranks and pairs are among them), and rows of which none is
known are left out of every metric.  With ``sample_weight``, means over rows are weighted.

All five follow from two counts for each relevant label, and rows have few of those: the work grows
with the number of ones in Y, not with its size times a sort.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils import check_array

from imcc._backend.array import to_numpy
from imcc._utils.config import get_config
from imcc._utils.validation import (
    check_choice,
    check_count,
    check_sample_weight,
    known_labels,
    label_matrix,
)

__all__ = [
    "METRICS",
    "Judge",
    "Metric",
    "average_precision",
    "coverage",
    "evaluate",
    "evaluate_rows",
    "f1_of_counts",
    "get_scorer",
    "hamming_loss",
    "label_f1",
    "macro_f1",
    "macro_f1_present",
    "micro_f1",
    "ndcg_at_k",
    "one_error",
    "precision_at_k",
    "ranking_loss",
]


@dataclass(frozen=True)
class Metric:
    """A metric's name, direction, and whether it leaves out rows without a ranking."""

    name: str
    greater_is_better: bool
    ranked_rows_only: bool


#: The five metrics by name, each with its direction.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("one_error", False, True),
        Metric("hamming_loss", False, False),
        Metric("ranking_loss", False, True),
        Metric("coverage", False, False),
        Metric("average_precision", True, True),
    )
}


class Judge:
    """The truth of some rows, made ready to judge many score matrices.

    Parameters
    ----------
    relevant : ndarray of bool, shape (n_samples, n_labels)
        The true label sets.
    known : ndarray of bool, shape (n_samples, n_labels), optional
        Which labels are known; unknown ones are not relevant, and are left out.
    weights : ndarray of shape (n_samples,), optional
        Of the rows, for means.

    Notes
    -----
    Scores are given as (n_labels, n_settings, n_rows): labels first, so that counting over labels
    adds up whole contiguous arrays.
    """

    def __init__(
        self,
        relevant: np.ndarray,
        known: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        self.n_rows, self.n_labels = relevant.shape
        self.weights = weights
        self.known = None if known is None else np.ascontiguousarray(known.T)
        # Labels that a row is judged by: a number for all rows, or one for each.
        self.n_known: Any = self.n_labels if known is None else known.sum(axis=1)
        self.judged = np.broadcast_to(np.asarray(self.n_known) > 0, (self.n_rows,))
        self.relevant = np.ascontiguousarray(relevant.T)
        # The (row, label) pairs with a relevant label, sorted by row.
        self.pair_rows, self.pair_labels = np.nonzero(relevant)
        self.n_relevant = relevant.sum(axis=1)
        self.ranked = (self.n_relevant > 0) & (self.n_relevant < self.n_known)
        self._labelled = np.flatnonzero(self.n_relevant)
        ends = np.cumsum(self.n_relevant[self._labelled])
        self._starts = ends - self.n_relevant[self._labelled]

    def means(self, scores: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return the metrics of each setting, shape (n_metrics, n_settings); NaN if undefined."""
        rows = self.rows(scores, names)
        means = np.full((len(names), scores.shape[1]), np.nan)
        for i, (name, values) in enumerate(zip(names, rows, strict=True)):
            if not METRICS[name].ranked_rows_only and self.known is None and self.weights is None:
                means[i] = values.mean(axis=-1)
                continue
            counted = self.ranked if METRICS[name].ranked_rows_only else self.judged
            means[i] = self._mean(values, counted)
        return means

    def _mean(self, values: np.ndarray, counted: np.ndarray) -> np.ndarray | float:
        """Return the (weighted) means over some of the rows; NaN if there are none."""
        if not counted.any():
            return float("nan")
        if self.weights is None:
            return values[:, counted].mean(axis=-1)
        weights = self.weights[counted]
        if not (total := weights.sum()) > 0:
            return float("nan")
        return values[:, counted] @ (weights / total)

    def rows(self, scores: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
        """Return for each metric its values, shape (n_settings, n_rows).

        The values of ranking metrics mean nothing where ``ranked`` is False.
        """
        counted: tuple[np.ndarray, np.ndarray] | None = None
        values = []
        n_known = self.n_known
        if self.known is not None:
            # Last in every ranking, and never among those counted up to a relevant label.
            scores = np.where(self.known[:, np.newaxis], scores, -np.inf)
            n_known = np.maximum(n_known, 1)
        for name in names:
            if name == "hamming_loss":
                wrong = (scores >= 0) != self.relevant[:, np.newaxis]
                values.append(_count(wrong) / n_known)
            elif name == "one_error":
                values.append(self._one_error(scores))
            else:
                if counted is None:
                    counted = self._counts(scores)
                values.append(self._from_counts(name, *counted))
        return values

    def _one_error(self, scores: np.ndarray) -> np.ndarray:
        own = scores[self.pair_labels, :, self.pair_rows].T
        best_relevant = self._per_row(np.maximum, own, fill=-np.inf)
        return (best_relevant < scores.max(axis=0)).astype(np.float64)

    def _from_counts(self, name: str, rank: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Combine, over the relevant labels of a row, ranks and relevant labels up to them."""
        if name == "coverage":
            return (self._per_row(np.maximum, rank, fill=1) - 1) / np.maximum(self.n_known, 1)
        n_relevant = np.maximum(self.n_relevant, 1)
        if name == "average_precision":
            return self._per_row(np.add, found / rank, fill=0) / n_relevant
        n_pairs = np.maximum(n_relevant * (self.n_known - self.n_relevant), 1)
        return self._per_row(np.add, rank - found, fill=0) / n_pairs

    def _per_row(self, combine: np.ufunc, of_pairs: np.ndarray, fill: float) -> np.ndarray:
        out = np.full((of_pairs.shape[0], self.n_rows), fill, dtype=np.float64)
        if len(self._labelled):
            out[:, self._labelled] = combine.reduceat(of_pairs, self._starts, axis=1)
        return out

    def _counts(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Count, for each relevant label, the labels and relevant labels of at least its score."""
        # Comparing takes n_labels steps for each relevant label; sorting was measured to take as
        # long as about 4 log2(n_labels) relevant labels per row.
        if len(self.pair_rows) > 4 * np.log2(max(self.n_labels, 2)) * self.n_rows:
            return self._counts_by_sorting(scores)
        return self._counts_by_comparing(scores)

    def _counts_by_comparing(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_labels, n_settings, _ = scores.shape
        rank = np.empty((n_settings, len(self.pair_rows)))
        found = np.empty_like(rank)
        step = max(1, get_config().pair_entries // (n_labels * n_settings))
        for start in range(0, len(self.pair_rows), step):
            pairs = slice(start, start + step)
            rows, labels = self.pair_rows[pairs], self.pair_labels[pairs]
            around = scores.take(rows, axis=2)
            own = around[labels, :, np.arange(len(rows))].T
            reaches = around >= own
            rank[:, pairs] = _count(reaches)
            reaches &= self.relevant.take(rows, axis=1)[:, np.newaxis]
            found[:, pairs] = _count(reaches)
        return rank, found

    def _counts_by_sorting(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_labels, n_settings, _ = scores.shape
        falling = np.moveaxis(-scores, 0, -1)
        order = np.argsort(falling, axis=-1)
        falling = np.take_along_axis(falling, order, axis=-1)
        relevant = np.take_along_axis(
            np.broadcast_to(self.relevant.T, falling.shape), order, axis=-1
        )
        # Labels that tie share the last place of their group.
        last = np.broadcast_to(np.arange(n_labels), falling.shape).copy()
        last[..., :-1][falling[..., :-1] == falling[..., 1:]] = n_labels - 1
        last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
        up_to = np.take_along_axis(np.cumsum(relevant, axis=-1), last, axis=-1)
        back = np.empty_like(order)
        np.put_along_axis(back, order, np.broadcast_to(np.arange(n_labels), order.shape), axis=-1)
        place = back[:, self.pair_rows, self.pair_labels]
        at = (np.arange(n_settings)[:, np.newaxis], self.pair_rows, place)
        return last[at] + 1.0, up_to[at].astype(np.float64)


def _count(flags: np.ndarray) -> np.ndarray:
    """Count over the first axis, in bytes while these suffice: they add up much faster."""
    in_bytes = flags.view(np.uint8)
    counts = np.zeros(flags.shape[1:], dtype=np.int32)
    for start in range(0, len(in_bytes), 255):
        counts += np.add.reduce(in_bytes[start : start + 255], axis=0, dtype=np.uint8)
    return counts


def _check_scores(y_true: Any, scores: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    relevant, known = known_labels(y_true, "y_true")
    scores = to_numpy(scores)
    if sp.issparse(scores):
        raise ValueError("scores must be dense: a score of zero is a score; call .toarray() first")
    scores = check_array(scores, dtype=[np.float64, np.float32], input_name="scores")
    if scores.shape != relevant.shape:
        raise ValueError(
            f"y_true and scores must have the same shape, got {relevant.shape} and {scores.shape}"
        )
    return relevant, scores, known


def evaluate(
    y_true: Any,
    scores: Any,
    metrics: Sequence[str] | None = None,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Return several metrics of a score matrix.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        The true labels, coded {0, 1}, {-1, +1} or boolean; NaN where a label is not known.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores; 0 is the threshold between off and on.  Arrays on a device (scores or
        labels) are brought to the host.
    metrics : sequence of str, optional
        Names out of :data:`METRICS`; all five by default.
    sample_weight : array-like of shape (n_samples,), optional
        How many rows each row counts for.

    Returns
    -------
    dict of str to float
        NaN, with a warning, where no row has a ranking to judge.

    Examples
    --------
    >>> from imcc.metrics import evaluate
    >>> truth = [[1, 0, 1], [0, 1, 0]]
    >>> result = evaluate(truth, [[0.9, -0.3, 0.2], [0.4, 0.1, -0.8]])
    >>> {name: round(value, 3) for name, value in result.items()}
    {'one_error': 0.5, 'hamming_loss': 0.167, 'ranking_loss': 0.25, 'coverage': 0.333,
     'average_precision': 0.75}
    """
    names = list(METRICS) if metrics is None else list(metrics)
    for name in names:
        check_choice("metrics", name, METRICS)
    relevant, scores, known = _check_scores(y_true, scores)
    judge = Judge(relevant, known, check_sample_weight(sample_weight, len(relevant)))
    means = judge.means(np.ascontiguousarray(scores.T)[:, np.newaxis], names)[:, 0]
    if np.isnan(means).any():
        undefined = ", ".join(n for n, m in zip(names, means, strict=True) if np.isnan(m))
        warnings.warn(
            f"{undefined}: undefined, every row has either no label or all of them"
            + ("" if known is None else " (of those known)"),
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return dict(zip(names, map(float, means), strict=True))


def evaluate_rows(y_true: Any, scores: Any) -> dict[str, np.ndarray]:
    """Return the five metrics of each row.

    Parameters
    ----------
    y_true, scores
        As for :func:`evaluate`.

    Returns
    -------
    dict of str to ndarray of shape (n_samples,)
        NaN in the rows that a metric leaves out.
    """
    relevant, scores, known = _check_scores(y_true, scores)
    judge = Judge(relevant, known)
    values = judge.rows(np.ascontiguousarray(scores.T)[:, np.newaxis], list(METRICS))
    return {
        name: np.where(judge.ranked if metric.ranked_rows_only else judge.judged, row[0], np.nan)
        for (name, metric), row in zip(METRICS.items(), values, strict=True)
    }


def one_error(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the share of rows whose top-scored label is not relevant (lower is better)."""
    return evaluate(y_true, scores, ["one_error"], sample_weight)["one_error"]


def hamming_loss(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the share of labels on the wrong side of zero (lower is better)."""
    return evaluate(y_true, scores, ["hamming_loss"], sample_weight)["hamming_loss"]


def ranking_loss(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the share of wrongly ordered (relevant, irrelevant) pairs (lower is better)."""
    return evaluate(y_true, scores, ["ranking_loss"], sample_weight)["ranking_loss"]


def coverage(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return how far down the last relevant label is ranked, over n_labels (lower is better)."""
    return evaluate(y_true, scores, ["coverage"], sample_weight)["coverage"]


def average_precision(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return the label ranking average precision (higher is better)."""
    return evaluate(y_true, scores, ["average_precision"], sample_weight)["average_precision"]


def precision_at_k(y_true: Any, scores: Any, k: int) -> float:
    """Return the share of relevant labels among the k top-scored ones (higher is better).

    The mean over rows of ::

        P@k = 1/k * sum over relevant labels l of  P(place of l <= k)

    Labels that tie are taken to stand in random order: with ``a`` labels scored above l and ``t``
    as high (l among them), the probability is (k - a) / t, no less than 0 and no more than 1.  A
    row without labels counts 0.  Unknown labels (NaN) have no place; rows of which no label is
    known are left out.

    Parameters
    ----------
    y_true, scores
        As for :func:`evaluate`.
    k : int
        From 1 to n_labels.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.3, 0.2], [0.1, 0.1, 0.8]], k=2)
    0.375
    """
    relevant, scores, known = _check_scores(y_true, scores)
    _check_k(k, relevant.shape[1])
    above, ties = _places(_known_scores(scores, known))
    chances = np.clip((k - above) / ties, 0.0, 1.0)
    values = (chances * relevant).sum(axis=1)
    return float((values if known is None else values[known.any(axis=1)]).mean() / k)


def ndcg_at_k(y_true: Any, scores: Any, k: int) -> float:
    """Return the normalised discounted cumulative gain of the k top labels (higher is better).

    The mean, over the rows with at least one label, of ::

        nDCG@k = sum over relevant labels l of d(place of l) / sum_{r <= min(k, n_relevant)} d(r)

        d(r) = 1 / log2(1 + r)  for r <= k,  else 0

    Labels that tie share the mean of their places' d.  For rows with labels it is scikit-learn's
    ``ndcg_score(..., k=k)``, which counts rows without any as 0.  Unknown labels (NaN) have no
    place.

    Parameters
    ----------
    y_true, scores
        As for :func:`evaluate`.
    k : int
        From 1 to n_labels.

    Returns
    -------
    float
        NaN, with a warning, where no row has a label.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.3, 0.2], [0.1, 0.5, 0.8]], k=2)
    0.62...
    """
    relevant, scores, known = _check_scores(y_true, scores)
    n_labels = relevant.shape[1]
    _check_k(k, n_labels)
    above, ties = _places(_known_scores(scores, known))
    discounts = np.where(np.arange(n_labels) < k, 1 / np.log2(np.arange(n_labels) + 2), 0.0)
    up_to = np.append(0.0, np.cumsum(discounts))
    gains = ((up_to[above + ties] - up_to[above]) / ties * relevant).sum(axis=1)
    n_relevant = relevant.sum(axis=1)
    labelled = n_relevant > 0
    if not labelled.any():
        warnings.warn(
            "ndcg_at_k: undefined, no row has a label", UndefinedMetricWarning, stacklevel=2
        )
        return float("nan")
    return float((gains[labelled] / up_to[n_relevant[labelled]]).mean())


def _check_k(k: Any, n_labels: int) -> None:
    if check_count("k", k) > n_labels:
        raise ValueError(f"k must be at most the number of labels, {n_labels}; got {k}")


def _known_scores(scores: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """Return scores in which unknown labels are last."""
    return scores if known is None else np.where(known, scores, -np.inf)


def _places(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each entry how many of its row are larger, and how many are equal (itself too)."""
    last = rankdata(-scores, method="max", axis=1).astype(np.int64)
    above = rankdata(-scores, method="min", axis=1).astype(np.int64) - 1
    return above, last - above


def f1_of_counts(tp: Any, fp: Any, fn: Any) -> np.ndarray:
    """Return F1 = 2 TP / (2 TP + FP + FN), 0 where nothing is relevant and nothing is predicted.

    Parameters
    ----------
    tp, fp, fn : array-like
        Numbers of true positives, false positives and false negatives.

    Examples
    --------
    >>> f1_of_counts([2, 0], [1, 0], [1, 0])
    array([0.66666667, 0.        ])
    """
    tp, fp, fn = np.broadcast_arrays(*(np.asarray(n, dtype=np.float64) for n in (tp, fp, fn)))
    below = 2 * tp + fp + fn
    return np.divide(2 * tp, below, out=np.zeros(below.shape), where=below > 0)


def label_f1(y_true: Any, y_pred: Any) -> np.ndarray:
    """Return the F1 of every label, with scikit-learn's ``zero_division=0``.

    Parameters
    ----------
    y_true, y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted labels, coded {0, 1}, {-1, +1} or boolean; true ones may be NaN, which
        are not counted.

    Returns
    -------
    ndarray of shape (n_labels,)
        2 TP / (2 TP + FP + FN); 0 for a label that no row has and none is predicted to have.
    """
    return f1_of_counts(*_label_counts(y_true, y_pred))


def macro_f1(y_true: Any, y_pred: Any) -> float:
    """Return the mean of all labels' F1 (higher is better).

    The same as scikit-learn's ``f1_score(..., average="macro", zero_division=0)`` of indicator
    matrices.

    Parameters
    ----------
    y_true, y_pred
        As for :func:`label_f1`.

    Examples
    --------
    >>> macro_f1([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.3333333333333333
    """
    return float(label_f1(y_true, y_pred).mean())


def macro_f1_present(y_true: Any, y_pred: Any) -> float:
    """Return the mean F1 of the labels that occur, in truth or among the predictions.

    Larger than :func:`macro_f1` where labels do neither; NaN where no label does.

    Parameters
    ----------
    y_true, y_pred
        As for :func:`label_f1`.

    Examples
    --------
    >>> macro_f1_present([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.6666666666666666
    """
    counts = _label_counts(y_true, y_pred)
    present = np.sum(counts, axis=0) > 0
    return float(f1_of_counts(*counts)[present].mean()) if present.any() else float("nan")


def micro_f1(y_true: Any, y_pred: Any) -> float:
    """Return the F1 of all labels' decisions together (higher is better).

    The same as scikit-learn's ``f1_score(..., average="micro", zero_division=0)`` of indicator
    matrices with several columns.  A single column is a label like any other; scikit-learn takes
    it for two classes, and its micro-average is then the accuracy.

    Parameters
    ----------
    y_true, y_pred
        As for :func:`label_f1`.

    Examples
    --------
    >>> micro_f1([[1], [0], [0], [0]], [[1], [1], [0], [0]])
    0.6666666666666666
    """
    return float(f1_of_counts(*(counts.sum() for counts in _label_counts(y_true, y_pred))))


def _label_counts(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the true positives, false positives and false negatives of every label.

    Labels that are not known (NaN in ``y_true``) are not counted.
    """
    (on, known), predicted = known_labels(y_true, "y_true"), label_matrix(y_pred, "y_pred")
    if on.shape != predicted.shape:
        raise ValueError(
            f"y_true and y_pred must have the same shape, got {on.shape} and {predicted.shape}"
        )
    if known is not None:
        predicted = predicted & known
    tp = (on & predicted).sum(axis=0)
    return tp, predicted.sum(axis=0) - tp, on.sum(axis=0) - tp


_FUNCTIONS = {
    "one_error": one_error,
    "hamming_loss": hamming_loss,
    "ranking_loss": ranking_loss,
    "coverage": coverage,
    "average_precision": average_precision,
}


def get_scorer(name: str) -> Any:
    """Return a scikit-learn scorer for one of the five metrics.

    Losses come out negated, as scikit-learn wants it: greater is better.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from imcc import IMCCClassifier
    >>> from imcc.metrics import get_scorer
    >>> X, Y = make_multilabel_classification(100, random_state=0)
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0)
    >>> scores = cross_val_score(clf, X, Y, scoring=get_scorer("ranking_loss"))
    >>> bool((scores <= 0).all())
    True
    """
    check_choice("name", name, METRICS)
    return make_scorer(
        _FUNCTIONS[name],
        response_method="decision_function",
        greater_is_better=METRICS[name].greater_is_better,
    )
