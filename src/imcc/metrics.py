"""Multi-label metrics: the five metrics of the paper, F1, and log loss.

Notation for the five metrics: scores F and true labels Y, both of shape (n, q).  The rank of a
label in a row is the number of labels of that row with at least the same score; tied labels all
get the largest rank of their group.

=================  ======  =====================================================================
metric             better  value of a row
=================  ======  =====================================================================
one_error          low     1 if the top-scored label is not relevant (0 if a relevant one ties)
hamming_loss       low     share of wrong labels, where F >= 0 predicts a label
ranking_loss       low     share of (relevant, irrelevant) pairs with F_relevant <= F_irrelevant
coverage           low     (largest rank of a relevant label - 1) / q; 0 without labels
average_precision  high    mean over relevant labels of (relevant labels of at least its score)/rank
=================  ======  =====================================================================

Each metric is the mean of its values over the rows.  one_error, ranking_loss and average_precision
are undefined for rows with no label or with all labels, and ignore these rows.

Two metrics are called average precision.  :func:`average_precision` is that of a *row*: it ranks
the labels of each row.  :func:`macro_average_precision` is that of a *label*: it ranks the rows for
each label, as scikit-learn's ``average_precision_score`` does, and takes the mean over labels.

A NaN in ``y_true`` marks an unknown label.  Unknown labels of a row are ignored: q is the number of
its known labels, and ranks and pairs are computed among these.  Rows without a known label are
ignored by every metric.  With ``sample_weight``, the means over rows are weighted.
"""

# All five metrics follow from two counts per relevant label.  Rows have few relevant labels, so the
# cost grows with the number of ones in Y instead of the cost of sorting all of its entries.

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score, make_scorer

from imcc._array.array import Array, asarray, is_numpy, namespace, take, zeros
from imcc._array.device import block_entries
from imcc._utils.config import get_config
from imcc._utils.validation import (
    check_choice,
    check_sample_weight,
    check_scores,
    known_labels,
    label_matrix,
)

__all__ = [
    "METRICS",
    "Metric",
    "average_precision",
    "coverage",
    "evaluate",
    "f1_of_counts",
    "get_scorer",
    "hamming_loss",
    "log_loss",
    "macro_average_precision",
    "macro_f1",
    "macro_f1_present",
    "micro_f1",
    "one_error",
    "ranking_loss",
]


@dataclass(frozen=True)
class Metric:
    """Name and properties of a metric.

    Attributes
    ----------
    name : str
        Name of the metric.
    greater_is_better : bool
        Whether larger values are better.
    ranked_rows_only : bool
        Whether the metric ignores rows with no label or with all labels.
    """

    name: str
    greater_is_better: bool
    ranked_rows_only: bool


#: The five metrics of the paper by name.
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


class LabelMetrics:
    """Computes the five metrics of many score matrices for the same true labels.

    Parameters
    ----------
    relevant : ndarray of bool of shape (n_samples, n_labels)
        The true labels, on the host; False where a label is unknown.
    known : ndarray of bool of shape (n_samples, n_labels), default=None
        Which labels are known; the others are ignored.  None means all.
    weights : ndarray of shape (n_samples,), default=None
        Row weights for the means.  None means equal weights.
    like : array, default=None
        Determines library and device of the scores.  None is NumPy.

    Attributes
    ----------
    ranked : ndarray of bool of shape (n_samples,)
        The rows with at least one relevant and one irrelevant label (of those known).
    n_labels, n_rows : int

    See Also
    --------
    evaluate : Metrics of a single score matrix.

    Notes
    -----
    Scores have shape (n_labels, n_settings, n_samples): labels come first, so that counting over
    labels adds contiguous arrays.  All metrics but Hamming loss and one-error follow from two
    counts per pair (row, relevant label): ``rank``, the number of labels of the row with at least
    the score of the label, and ``hits``, the number of relevant labels among them.
    """

    def __init__(
        self,
        relevant: np.ndarray,
        known: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        like: Array | None = None,
    ) -> None:
        like = np.empty(0) if like is None else like
        self.n_rows, self.n_labels = relevant.shape
        # The (row, label) pairs with a relevant label, sorted by row.
        pair_rows, pair_labels = np.nonzero(relevant)
        self.n_pairs = len(pair_rows)
        n_relevant = relevant.sum(axis=1)
        n_known = np.full(self.n_rows, self.n_labels) if known is None else known.sum(axis=1)
        self.ranked = (n_relevant > 0) & (n_relevant < n_known)
        # Row weights of the means over ranked rows, and over rows with a known label.
        weights = np.ones(self.n_rows) if weights is None else weights
        self._weights = {
            ranked_only: (asarray(np.where(rows, weights, 0.0), like), float(weights[rows].sum()))
            for ranked_only, rows in ((True, self.ranked), (False, n_known > 0))
        }
        at_least_one = np.maximum(n_relevant, 1)
        self._lengths = n_relevant
        self._pair_rows, self._pair_labels = asarray(pair_rows, like), asarray(pair_labels, like)
        self._relevant = asarray(np.ascontiguousarray(relevant.T), like)
        self._known = None if known is None else asarray(np.ascontiguousarray(known.T), like)
        self._n_known = asarray(np.maximum(n_known, 1.0), like)
        self._n_relevant = asarray(at_least_one * 1.0, like)
        self._n_ordered = asarray(np.maximum(at_least_one * (n_known - n_relevant), 1.0), like)
        self._block_entries = block_entries(like) or get_config().pair_entries

    def entries(self) -> int:
        """Return the approximate number of entries in memory for one setting on a device."""
        return self.n_labels * (4 * self.n_rows + self.n_pairs)

    def means(self, scores: Array, names: Sequence[str]) -> Array:
        """Return the metrics of each setting.

        Parameters
        ----------
        scores : array of shape (n_labels, n_settings, n_samples)
        names : sequence of str
            Names from :data:`METRICS`.

        Returns
        -------
        array of shape (n_metrics, n_settings)
            NaN where a metric is undefined.
        """
        xp, means = namespace(scores), []
        for name, values in zip(names, self._values_of_rows(scores, names), strict=True):
            weights, total = self._weights[METRICS[name].ranked_rows_only]
            # A sum, not a product of matrices, whose last digit depends on the threads of BLAS.
            means.append(xp.sum(values * weights, axis=1) / (total if total > 0 else np.nan))
        return xp.stack(means)

    def _values_of_rows(self, scores: Array, names: Sequence[str]) -> list[Array]:
        """Return each metric per row, (n_settings, n_samples); meaningless in rows it ignores."""
        xp = namespace(scores)
        if self._known is not None:
            # Unknown labels come last in every ranking and are never counted for a relevant label.
            scores = xp.where(self._known[:, None, :], scores, -np.inf)
        counts = None
        values = []
        for name in names:
            if name == "hamming_loss":
                wrong = (scores >= 0) != self._relevant[:, None, :]
                values.append(_count(wrong) / self._n_known)
            elif name == "one_error":
                wrong = self._best_relevant(scores) < xp.max(scores, axis=0)
                values.append(xp.astype(wrong, xp.float64))
            else:
                counts = self._counts(scores) if counts is None else counts
                rank, hits = counts
                if name == "coverage":
                    of_rows = (self._per_row("max", rank, fill=1.0) - 1) / self._n_known
                elif name == "average_precision":
                    of_rows = self._per_row("sum", hits / rank, fill=0.0) / self._n_relevant
                else:
                    of_rows = self._per_row("sum", rank - hits, fill=0.0) / self._n_ordered
                values.append(of_rows)
        return values

    def _best_relevant(self, scores: Array) -> Array:
        """Return the highest score of a relevant label per row, shape (n_settings, n_rows)."""
        if is_numpy(scores):
            own = scores[self._pair_labels, :, self._pair_rows].T
            return self._per_row("max", own, fill=-np.inf)
        xp = namespace(scores)
        return xp.max(xp.where(self._relevant[:, None, :], scores, -np.inf), axis=0)

    def _per_row(self, function: str, of_pairs: Array, fill: float) -> Array:
        """Return the "max" or "sum" over the pairs of each row, ``fill`` for rows without pairs."""
        ends = np.cumsum(self._lengths)
        starts = ends - self._lengths
        if is_numpy(of_pairs):
            reduce = {"max": np.maximum, "sum": np.add}[function].reduceat
            out = np.full((len(of_pairs), self.n_rows), fill)
            labelled = np.flatnonzero(self._lengths)
            if len(labelled):
                out[:, labelled] = reduce(of_pairs, starts[labelled], axis=1)
            return out
        # The pairs of each row as a line of a table, filled up with a pair that does not exist.
        xp, places = namespace(of_pairs), np.arange(self._lengths.max(initial=1))
        table = np.where(
            places < self._lengths[:, np.newaxis], starts[:, np.newaxis] + places, self.n_pairs
        )
        filled = xp.concat([of_pairs, zeros((of_pairs.shape[0], 1), of_pairs) + fill], axis=1)
        taken = take(filled, asarray(table.ravel(), of_pairs), 1)
        by_row = xp.reshape(taken, (of_pairs.shape[0], *table.shape))
        return getattr(xp, function)(by_row, axis=-1)

    def _counts(self, scores: Array) -> tuple[Array, Array]:
        """Return ``rank`` and ``hits`` of all pairs, each of shape (n_settings, n_pairs)."""
        # Comparing takes n_labels steps per pair.  Sorting was measured to cost as much as
        # comparing with about 4 log2(n_labels) relevant labels per row.
        many = self.n_pairs > 4 * np.log2(max(self.n_labels, 2)) * self.n_rows
        if many and is_numpy(scores):
            return self._counts_by_sorting(scores)
        return self._counts_by_comparing(scores)

    def _counts_by_comparing(self, scores: Array) -> tuple[Array, Array]:
        xp = namespace(scores)
        n_labels, n_settings, _ = scores.shape
        ranks, hits = [zeros((n_settings, 0), scores)], [zeros((n_settings, 0), scores)]
        step = max(1, self._block_entries // (n_labels * n_settings))
        for start in range(0, self.n_pairs, step):
            pairs = slice(start, min(start + step, self.n_pairs))
            rows, labels = self._pair_rows[pairs], self._pair_labels[pairs]
            around = take(scores, rows, 2)
            index = xp.broadcast_to(labels, (1, n_settings, labels.shape[0]))
            reaches = around >= xp.take_along_axis(around, index, axis=0)
            ranks.append(_count(reaches))
            reaches &= take(self._relevant, rows, 1)[:, None, :]
            hits.append(_count(reaches))
        return xp.concat(ranks, axis=1), xp.concat(hits, axis=1)

    def _counts_by_sorting(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_labels, n_settings, _ = scores.shape
        falling = np.moveaxis(-scores, 0, -1)
        order = np.argsort(falling, axis=-1)
        falling = np.take_along_axis(falling, order, axis=-1)
        relevant = np.take_along_axis(
            np.broadcast_to(self._relevant.T, falling.shape), order, axis=-1
        )
        # Tied labels get the last position of their group.
        last = np.broadcast_to(np.arange(n_labels), falling.shape).copy()
        last[..., :-1][falling[..., :-1] == falling[..., 1:]] = n_labels - 1
        last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
        up_to = np.take_along_axis(np.cumsum(relevant, axis=-1), last, axis=-1)
        back = np.empty_like(order)
        np.put_along_axis(back, order, np.broadcast_to(np.arange(n_labels), order.shape), axis=-1)
        place = back[:, self._pair_rows, self._pair_labels]
        at = (np.arange(n_settings)[:, np.newaxis], self._pair_rows, place)
        return last[at] + 1.0, up_to[at].astype(np.float64)


def _count(flags: Array) -> Array:
    """Count over the first axis; NumPy adds at most 255 entries in bytes, which is much faster."""
    if not is_numpy(flags):
        xp = namespace(flags)
        return xp.astype(xp.count_nonzero(flags, axis=0), xp.float64)
    in_bytes = flags.view(np.uint8)
    counts = np.zeros(flags.shape[1:])
    for start in range(0, len(in_bytes), 255):
        counts += np.add.reduce(in_bytes[start : start + 255], axis=0, dtype=np.uint8)
    return counts


def evaluate(
    y_true: Any,
    scores: Any,
    metrics: Sequence[str] | None = None,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Compute several metrics of a score matrix.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, coded {0, 1}, {-1, +1} or boolean; NaN where a label is unknown.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores; labels with a score >= 0 are predicted.  Arrays on a device are copied
        to the host.
    metrics : sequence of str, default=None
        Names from :data:`METRICS`.  None means all five.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, >= 0.  None means equal weights.

    Returns
    -------
    dict of str to float
        The metrics by name; NaN where a metric is undefined.

    Warns
    -----
    sklearn.exceptions.UndefinedMetricWarning
        If a metric is undefined, because no row counts in it.

    See Also
    --------
    get_scorer : A scikit-learn scorer of one of the metrics.

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
    relevant, scores, known = check_scores(y_true, scores)
    computed = LabelMetrics(relevant, known, check_sample_weight(sample_weight, len(relevant)))
    means = computed.means(np.ascontiguousarray(scores.T)[:, np.newaxis], names)[:, 0]
    if np.isnan(means).any():
        undefined = ", ".join(n for n, m in zip(names, means, strict=True) if np.isnan(m))
        warnings.warn(
            f"{undefined}: undefined, because every row has either no label or all labels"
            + ("" if known is None else " (of those known)"),
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return dict(zip(names, map(float, means), strict=True))


def one_error(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Share of rows whose top-scored label is not relevant (lower is better).

    A row counts as correct if a relevant label is among those tied for the highest score.  Rows
    with no label or with all labels are ignored.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        Between 0 and 1; NaN, with a warning, if undefined.

    Examples
    --------
    >>> from imcc.metrics import one_error
    >>> one_error([[1, 0, 1], [0, 1, 0]], [[0.9, -0.3, 0.2], [0.4, 0.1, -0.8]])
    0.5
    """
    return evaluate(y_true, scores, ["one_error"], sample_weight)["one_error"]


def hamming_loss(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Share of labels that are predicted wrongly (lower is better).

    A label is predicted where its score is at least 0.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        Between 0 and 1; NaN, with a warning, if undefined.

    Examples
    --------
    >>> from imcc.metrics import hamming_loss
    >>> hamming_loss([[1, 0], [0, 1]], [[0.9, -0.3], [0.4, 0.1]])
    0.25
    """
    return evaluate(y_true, scores, ["hamming_loss"], sample_weight)["hamming_loss"]


def ranking_loss(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Share of wrongly ordered (relevant, irrelevant) pairs of labels (lower is better).

    A pair is ordered wrongly if the score of the relevant label is not larger than that of the
    irrelevant one, so ties count as errors.  Rows with no label or with all labels are ignored.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        Between 0 and 1; NaN, with a warning, if undefined.

    Examples
    --------
    >>> from imcc.metrics import ranking_loss
    >>> ranking_loss([[1, 0, 1], [0, 1, 0]], [[0.9, -0.3, 0.2], [0.4, 0.1, -0.8]])
    0.25
    """
    return evaluate(y_true, scores, ["ranking_loss"], sample_weight)["ranking_loss"]


def coverage(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Mean of (largest rank of a relevant label - 1) / n_labels (lower is better).

    Rows without labels have the value 0.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        At least 0 and below 1; NaN, with a warning, if undefined.

    Examples
    --------
    >>> from imcc.metrics import coverage
    >>> coverage([[1, 0, 0, 1], [0, 1, 0, 0]], [[0.9, 0.3, 0.1, 0.2], [0.4, 0.1, -0.8, -0.9]])
    0.375
    """
    return evaluate(y_true, scores, ["coverage"], sample_weight)["coverage"]


def average_precision(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Average precision per row, which ranks the labels of each row (higher is better).

    Also known as label ranking average precision.  Per row, the mean over its relevant labels of
    the share of relevant labels among those with at least the same score.  Rows with no label or
    with all labels are ignored.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        Above 0 and at most 1; NaN, with a warning, if undefined.

    Notes
    -----
    scikit-learn's ``label_ranking_average_precision_score`` has the same value per row, except
    that it counts rows with no label or with all labels as 1.  Its ``average_precision_score`` is
    another metric, which ranks the rows for each label: see :func:`macro_average_precision`.

    Examples
    --------
    >>> from imcc.metrics import average_precision
    >>> average_precision([[1, 0, 1], [0, 1, 0]], [[0.9, -0.3, 0.2], [0.4, 0.1, -0.8]])
    0.75
    """
    return evaluate(y_true, scores, ["average_precision"], sample_weight)["average_precision"]


def f1_of_counts(tp: Any, fp: Any, fn: Any) -> np.ndarray:
    """F1 score from counts: 2 TP / (2 TP + FP + FN), and 0 where all three are 0.

    Parameters
    ----------
    tp, fp, fn : array-like
        Numbers of true positives, false positives and false negatives; broadcast together.

    Returns
    -------
    ndarray
        F1, in the broadcast shape.

    Examples
    --------
    >>> from imcc.metrics import f1_of_counts
    >>> f1_of_counts([2, 0], [1, 0], [1, 0])
    array([0.66666667, 0.        ])
    """
    tp, fp, fn = np.broadcast_arrays(*(np.asarray(n, dtype=np.float64) for n in (tp, fp, fn)))
    below = 2 * tp + fp + fn
    return np.divide(2 * tp, below, out=np.zeros(below.shape), where=below > 0)


def macro_f1(y_true: Any, y_pred: Any) -> float:
    """Mean F1 score over all labels (higher is better).

    The same as scikit-learn's ``f1_score(..., average="macro", zero_division=0)`` for indicator
    matrices.

    Parameters
    ----------
    y_true, y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted labels, coded {0, 1}, {-1, +1} or boolean.  A NaN in ``y_true`` is an
        unknown label, which is ignored.

    Returns
    -------
    float
        Between 0 and 1; a label that neither occurs nor is predicted counts 0.

    See Also
    --------
    macro_f1_present : Ignores labels that neither occur nor are predicted.

    Examples
    --------
    >>> from imcc.metrics import macro_f1
    >>> macro_f1([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.3333333333333333
    """
    return float(f1_of_counts(*_label_counts(y_true, y_pred)).mean())


def macro_f1_present(y_true: Any, y_pred: Any) -> float:
    """Mean F1 score over the labels that occur or are predicted (higher is better).

    At least as large as :func:`macro_f1`, which counts all other labels as 0.

    Parameters
    ----------
    y_true, y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted labels, as for :func:`macro_f1`.

    Returns
    -------
    float
        Between 0 and 1; NaN if no label occurs or is predicted.

    Examples
    --------
    >>> from imcc.metrics import macro_f1_present
    >>> macro_f1_present([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.6666666666666666
    """
    counts = _label_counts(y_true, y_pred)
    present = np.sum(counts, axis=0) > 0
    return float(f1_of_counts(*counts)[present].mean()) if present.any() else float("nan")


def micro_f1(y_true: Any, y_pred: Any) -> float:
    """F1 score of the counts summed over all labels (higher is better).

    The same as scikit-learn's ``f1_score(..., average="micro", zero_division=0)`` for indicator
    matrices with several columns.  A single column is treated as one label here; scikit-learn
    treats it as two classes, and its micro average is then the accuracy.

    Parameters
    ----------
    y_true, y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted labels, as for :func:`macro_f1`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from imcc.metrics import micro_f1
    >>> micro_f1([[1], [0], [0], [0]], [[1], [1], [0], [0]])
    0.6666666666666666
    """
    return float(f1_of_counts(*(counts.sum() for counts in _label_counts(y_true, y_pred))))


def macro_average_precision(y_true: Any, scores: Any) -> float:
    """Average precision per label, which ranks the rows for each label (higher is better).

    The mean of scikit-learn's ``average_precision_score`` over the labels that some row has.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.  The rows in which a label is unknown (NaN) are
        ignored for this label.
    scores : array-like of shape (n_samples, n_labels)
        Real-valued scores, as for :func:`evaluate`.

    Returns
    -------
    float
        Above 0 and at most 1; NaN if no row has a label.

    See Also
    --------
    average_precision : Ranks the labels of each row instead.

    Examples
    --------
    >>> from imcc.metrics import macro_average_precision
    >>> macro_average_precision([[1, 0], [0, 1], [1, 0]], [[0.9, 0.3], [0.4, 0.8], [0.1, 0.2]])
    0.9166666666666666
    """
    on, scores, known = check_scores(y_true, scores)
    rows = [slice(None)] * on.shape[1] if known is None else list(known.T)
    labels = np.flatnonzero(on.any(axis=0))
    values = [average_precision_score(on[rows[j], j], scores[rows[j], j]) for j in labels]
    return float(np.mean(values)) if values else float("nan")


def log_loss(y_true: Any, probabilities: Any) -> float:
    """Mean over rows and labels of -log(the probability of what is true) (lower is better).

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, as for :func:`evaluate`.  Unknown labels (NaN) are ignored.
    probabilities : array-like of shape (n_samples, n_labels)
        Probability of each label, as of ``predict_proba``; at least 1e-7 from 0 and 1, to which
        others are clipped.

    Returns
    -------
    float
        At least 0; log(2) = 0.69 for probabilities of 1/2.

    Examples
    --------
    >>> from imcc.metrics import log_loss
    >>> round(log_loss([[1, 0], [0, 1]], [[0.9, 0.2], [0.5, 0.5]]), 3)
    0.429
    """
    on, probabilities, known = check_scores(y_true, probabilities)
    if (probabilities < 0).any() or (probabilities > 1).any():
        raise ValueError("probabilities must be between 0 and 1")
    right = np.clip(np.where(on, probabilities, 1 - probabilities), 1e-7, 1 - 1e-7)
    return float(-np.log(right if known is None else right[known]).mean())


def _label_counts(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of true positives, false positives and false negatives per label.

    Unknown labels (NaN in ``y_true``) are not counted.
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
    function.__name__: function
    for function in (one_error, hamming_loss, ranking_loss, coverage, average_precision)
}


# Of the metrics that are not in METRICS: function, method of the classifier, greater is better.
_SCORERS: dict[str, tuple[Any, Any, bool]] = {
    "macro_average_precision": (
        macro_average_precision,
        ("decision_function", "predict_proba"),
        True,
    ),
    "macro_f1": (macro_f1, "predict", True),
    "log_loss": (log_loss, "predict_proba", False),
}


def get_scorer(name: str) -> Any:
    """Make a scikit-learn scorer from a metric.

    The scorer negates losses, so that greater is better, as in scikit-learn.

    Parameters
    ----------
    name : str
        A name from :data:`METRICS`, which are computed from ``decision_function``, or
        "macro_average_precision" (``decision_function`` or ``predict_proba``), "macro_f1"
        (``predict``) or "log_loss" (``predict_proba``).  "average_precision" ranks the labels of
        each row, "macro_average_precision" the rows for each label.

    Returns
    -------
    callable
        A scorer ``scorer(estimator, X, y)``.

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
    check_choice("name", name, (*METRICS, *_SCORERS))
    function, method, greater_is_better = _SCORERS.get(name) or (
        _FUNCTIONS[name],
        "decision_function",
        METRICS[name].greater_is_better,
    )
    return make_scorer(function, response_method=method, greater_is_better=greater_is_better)
