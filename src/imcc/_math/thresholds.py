r"""Exact search for the best threshold per label, in O(n log n) time per label.

A threshold divides the n sorted scores of a label into predicted and not predicted rows.  There are
at most n + 1 such cuts, and their numbers of true positives are one cumulative sum.

Criteria of single labels are maximised separately for each label.  Micro-F1 couples the labels::

    F = 2 sum_l TP_l / (sum_l on_l + sum_l predicted_l)

It is a ratio of sums over labels, so Dinkelbach's method finds its exact maximum: for a current
value F, each label takes the cut with the largest 2 TP_l - F predicted_l; the F of these cuts is
the next value.  When it no longer increases, no other choice of cuts has a larger F.

References
----------
W. Dinkelbach. "On nonlinear fractional programming." Management Science 13, 1967.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.validation import (
    check_count,
    check_sample_weight,
    check_scores,
    check_thresholds,
)
from imcc.metrics import f1_of_counts

Criterion = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Any]
MICRO_F1 = "micro_f1"


@dataclass(frozen=True)
class Cuts:
    """All cuts of the scores of one label, in order of increasing number of predictions.

    Attributes
    ----------
    thresholds : ndarray of shape (n_cuts,)
        Thresholds in descending order; a row is predicted if its score is at least the threshold.
        The first is just above the largest score, the last is the smallest score, and the others
        are midpoints of neighbouring scores.
    tp, fp : ndarray of shape (n_cuts,)
        Numbers of true and false positives, or sums of their weights.
    n_on, n_off : int or float
        Numbers of rows with and without the label, or sums of their weights.
    """

    thresholds: np.ndarray
    tp: np.ndarray
    fp: np.ndarray
    n_on: float
    n_off: float

    def values(self, criterion: Criterion) -> np.ndarray:
        """Return a criterion, a function of the arrays ``(tp, fp, fn, tn)``, of each cut."""
        fn, tn = self.n_on - self.tp, self.n_off - self.fp
        return np.asarray(criterion(self.tp, self.fp, fn, tn), dtype=np.float64)


def cuts(on: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> Cuts:
    """Return all cuts of the scores of one label.

    Parameters
    ----------
    on : ndarray of bool of shape (n_samples,)
        Which rows have the label.
    scores : ndarray of shape (n_samples,)
        Finite scores.
    weights : ndarray of shape (n_samples,), default=None
        Row weights.  None means weight 1.

    Returns
    -------
    Cuts
        The thresholds and their counts.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc._math.thresholds import cuts
    >>> found = cuts(np.array([True, False, True]), np.array([0.5, -1.0, 0.0]))
    >>> found.thresholds.tolist(), found.tp.tolist(), found.fp.tolist()
    ([0.5000000000000001, 0.25, -0.5, -1.0], [0, 1, 2, 2], [0, 0, 0, 1])
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order].astype(np.float64)
    each = np.ones(len(on), dtype=np.int64) if weights is None else weights
    positives = np.cumsum(np.where(on, each, 0)[order])
    negatives = np.cumsum(np.where(on, 0, each)[order])
    # There is a cut after each row whose score differs from the next one, and after the last row.
    ends = np.append(np.flatnonzero(falling[:-1] > falling[1:]), len(falling) - 1)
    above, below = falling[ends[:-1]], falling[ends[:-1] + 1]
    middle = below + (above - below) / 2
    # If the scores are adjacent floating point numbers, use the upper one.
    middle = np.where(middle > below, middle, above)
    return Cuts(
        thresholds=np.concatenate([[np.nextafter(falling[0], np.inf)], middle, falling[-1:]]),
        tp=np.append(0, positives[ends]),
        fp=np.append(0, negatives[ends]),
        n_on=positives[-1].item(),
        n_off=negatives[-1].item(),
    )


def f1(
    tp: np.ndarray,
    fp: np.ndarray,
    fn: np.ndarray,
    tn: np.ndarray,  # noqa: ARG001
) -> np.ndarray:
    """Return the harmonic mean of precision and recall; 0 if tp, fp and fn are all 0."""
    return f1_of_counts(tp, fp, fn)


def balanced_accuracy(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Return the mean of the recalls of rows with and without the label."""
    return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2


def accuracy(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Return the share of correct rows; its mean over labels is 1 - Hamming loss."""
    return _ratio(tp + tn, tp + fp + fn + tn)


def _ratio(above: Any, below: Any) -> np.ndarray:
    above, below = np.broadcast_arrays(np.asarray(above, np.float64), np.asarray(below, np.float64))
    return np.divide(above, below, out=np.zeros(above.shape), where=below > 0)


#: The criteria by name; ``"micro_f1"`` couples the labels, the others are per label.
CRITERIA: dict[str, Criterion] = {
    "f1": f1,
    "balanced_accuracy": balanced_accuracy,
    "accuracy": accuracy,
    MICRO_F1: f1,
}


@dataclass(frozen=True)
class ThresholdChoice:
    """Selected thresholds, and the criterion on the scores they were selected on.

    Attributes
    ----------
    thresholds : ndarray of shape (n_labels,)
        Threshold of each label.
    values : ndarray of shape (n_labels,)
        Criterion of each label with its threshold (its F1 score for "micro_f1").
    default_values : ndarray of shape (n_labels,)
        Criterion of each label with the default threshold.
    overall, default_overall : float
        Mean of ``values`` and ``default_values`` over the tuned labels (NaN if there are none), or
        the micro-F1 of all labels.
    tuned : ndarray of bool of shape (n_labels,)
        False for labels with too few rows with or without the label, which keep the default.
    """

    thresholds: np.ndarray
    values: np.ndarray
    default_values: np.ndarray
    overall: float
    default_overall: float
    tuned: np.ndarray


def check_criterion(criterion: Any) -> Criterion:
    """Return the function of a criterion, given as a name or as a function."""
    if callable(criterion):
        return criterion
    if criterion not in CRITERIA:
        raise ValueError(
            f"criterion must be one of {', '.join(map(repr, CRITERIA))} or a function of (tp, fp, "
            f"fn, tn), got {criterion!r}"
        )
    return CRITERIA[criterion]


def choose_thresholds(
    y_true: Any,
    scores: Any,
    criterion: str | Criterion = "f1",
    *,
    default: float = 0.0,
    min_support: int = 1,
    sample_weight: Any = None,
) -> ThresholdChoice:
    """Select the threshold of each label that maximises a criterion, exactly.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, coded {0, 1}, {-1, +1} or boolean.  NaN in a dense matrix is an unknown label:
        the row is ignored for this label.
    scores : array-like of shape (n_samples, n_labels)
        Scores of rows that the model was not trained on.
    criterion : {"f1", "balanced_accuracy", "accuracy", "micro_f1"} or callable, default="f1"
        Criterion to maximise: F1, balanced accuracy or accuracy of each label; the F1 of all labels
        together; or a function of the arrays ``(tp, fp, fn, tn)``, which have an entry per cut of a
        label.
    default : float, default=0.0
        Threshold of labels with too few rows to select one.  Of several thresholds that are equally
        good, the one closest to ``default`` is selected.
    min_support : int, default=1
        Minimum number of rows with the label, and without it, to select a threshold; the sum of
        their weights with ``sample_weight``.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, >= 0, also used for ``min_support``.  None means weight 1.

    Returns
    -------
    ThresholdChoice
        With ``thresholds``, and the criterion per label (``values``) and over all of them
        (``overall``), also at the default threshold (``default_values``, ``default_overall``);
        ``tuned`` is False where a label keeps the default.

    See Also
    --------
    TunedThresholds : Selects thresholds on cross-validated scores.

    Examples
    --------
    >>> from imcc.estimators import choose_thresholds
    >>> truth = [[1, 0], [1, 0], [0, 0]]
    >>> chosen = choose_thresholds(truth, [[-0.2, -0.9], [-0.4, -0.8], [-0.8, -1.0]])
    >>> chosen.thresholds.round(6).tolist(), chosen.tuned.tolist()
    ([-0.6, 0.0], [True, False])
    >>> chosen.values.tolist(), chosen.default_values.tolist()
    ([1.0, 0.0], [0.0, 0.0])
    """
    function = check_criterion(criterion)
    on, scores, known = check_scores(y_true, scores)
    default = float(check_thresholds(default, 1)[0])
    check_count("min_support", min_support)
    known = np.ones(on.shape, dtype=bool) if known is None else known
    weights = check_sample_weight(sample_weight, len(on))
    if weights is not None and not weights.all():
        kept = weights > 0
        on, known, scores, weights = on[kept], known[kept], scores[kept], weights[kept]
    each = np.ones(len(on), dtype=np.int64) if weights is None else weights
    off = known & ~on

    def counts(predicted: np.ndarray) -> list[np.ndarray]:
        """Return the (weighted) tp, fp, fn and tn per label; unknown labels are not counted."""
        pairs = ((on, predicted), (off, predicted), (on, ~predicted), (off, ~predicted))
        return [each @ (a & b) for a, b in pairs]

    tuned = np.minimum(each @ on, each @ off) >= min_support
    every = [
        cuts(on[k, j], scores[k, j], each[k]) if tuned[j] else None for j, k in enumerate(known.T)
    ]
    if criterion == MICRO_F1:
        at = _best_together(every, counts(scores >= default), (each @ on).sum(), default)
    else:
        at = [None if c is None else _best(c.values(function), c, default) for c in every]
    thresholds = np.array(
        [default if c is None else c.thresholds[k] for c, k in zip(every, at, strict=True)]
    )

    def evaluated(predicted: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the criterion of each label, and that of all of them."""
        tp, fp, fn, tn = counts(predicted)
        values = np.asarray(function(tp, fp, fn, tn), dtype=np.float64)
        if criterion == MICRO_F1:
            return values, float(f1_of_counts(tp.sum(), fp.sum(), fn.sum()))
        return values, float(values[tuned].mean()) if tuned.any() else float("nan")

    values, overall = evaluated(scores >= thresholds)
    default_values, default_overall = evaluated(scores >= default)
    return ThresholdChoice(thresholds, values, default_values, overall, default_overall, tuned)


def _best(values: np.ndarray, found: Cuts, default: float) -> int:
    if values.shape != found.thresholds.shape or np.isnan(values).any():
        raise ValueError(
            "criterion must return one number per cut and no NaN, got an array of shape "
            f"{values.shape} for {len(found.thresholds)} cuts"
        )
    best = np.flatnonzero(values == values.max())
    return int(best[np.argmin(np.abs(found.thresholds[best] - default))])


def _best_together(
    every: list[Cuts | None], counts: list[np.ndarray], n_on: float, default: float
) -> list[int | None]:
    """Return the cuts with the largest micro-F1; ``counts`` are those at the default threshold."""
    fixed = np.array([c is None for c in every])
    tp, fp, _, _ = counts
    tp_fixed = tp[fixed].sum()
    marked_fixed = (tp + fp)[fixed].sum() + n_on
    value = 0.0
    while True:
        at = [
            None if c is None else _best(2 * c.tp - value * (c.tp + c.fp), c, default)
            for c in every
        ]
        chosen = [(c.tp[k], c.fp[k]) for c, k in zip(every, at, strict=True) if c is not None]
        found_tp = tp_fixed + sum(t for t, _ in chosen)
        marked = marked_fixed + sum(t + f for t, f in chosen)
        found = float(2 * found_tp / marked) if marked else 0.0
        if found <= value:
            return at
        value = found
