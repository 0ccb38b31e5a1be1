"""Diagnostics per label."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils import check_array

from imcc._math.thresholds import cuts
from imcc._utils.validation import check_count, check_share, check_thresholds, label_matrix
from imcc.inspection._bootstrap import Estimate, estimate, resample_labels
from imcc.inspection._results import Result, check_names
from imcc.metrics import f1_of_counts, macro_f1, macro_f1_present, micro_f1


class _WithIntervals:
    intervals: dict[str, tuple[float, float]]

    def estimate(self, name: str) -> Estimate:
        """Return a measure by its name, with its interval; the bounds are NaN if there is none."""
        return Estimate(getattr(self, name), *self.intervals.get(name, (np.nan, np.nan)))

    def _add_intervals(self, resampled: Mapping[str, np.ndarray], confidence: float) -> None:
        for name, drawn in resampled.items():
            found = estimate(getattr(self, name), drawn, confidence)
            self.intervals[name] = found.low, found.high


@dataclass(frozen=True)
class LabelDiagnosis(_WithIntervals):
    """Quality of the predictions of one label.

    Attributes
    ----------
    label : str
        Name of the label.
    support : int
        Number of rows that have the label.
    predicted : int
        Number of rows for which the label is predicted.
    threshold : float
        The label is predicted if its score is at least this value.
    precision : float
        Fraction of the predictions that are correct; NaN if there are none.
    recall : float
        Fraction of the rows with the label for which it is predicted; NaN if there are none.
    f1 : float
        2 TP / (support + predicted); 0 if both are 0 (as in :func:`imcc.metrics.macro_f1`).
    auc : float
        Probability that a row with the label has a higher score than a row without it; NaN if all
        rows or none have the label.
    average_precision : float
        Area under the precision-recall curve; NaN if no row has the label.  It is computed over the
        rows of one label, :func:`imcc.metrics.average_precision` over the labels of one row.
    best_threshold, best_f1 : float
        The threshold with the largest F1 on these rows, and that F1, an upper bound on what a
        better threshold can achieve; NaN if no row has the label.  To choose thresholds, use other
        rows; see :class:`imcc.estimators.TunedThresholds`.
    intervals : dict of str to (float, float)
        Bootstrap intervals of "f1", "auc" and "average_precision"; empty without a bootstrap.
    """

    label: str
    support: int
    predicted: int
    threshold: float
    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    best_threshold: float
    best_f1: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Diagnostics(_WithIntervals, Result):
    """Diagnostics per label, and averages over the labels.

    ``to_frame()`` has one row per label, with the other attributes of :class:`LabelDiagnosis` as
    columns; with a bootstrap also ``f1_low``, ``f1_high`` and the same for ``auc`` and
    ``average_precision``.

    Attributes
    ----------
    labels : tuple of LabelDiagnosis
        One entry per label.
    n_rows : int
        Number of rows.
    macro_f1 : float
        Mean over all labels; see :func:`imcc.metrics.macro_f1`.
    macro_f1_present : float
        Mean over the labels that at least one row has or is predicted to have.
    macro_auc, macro_average_precision : float
        Means over the labels for which they are defined.
    micro_f1, micro_precision, micro_recall : float
        Computed from the decisions of all labels together.
    intervals : dict of str to (float, float)
        Bootstrap intervals of "macro_f1", "macro_auc", "macro_average_precision" and "micro_f1";
        empty without a bootstrap.
    n_resamples : int
        Number of bootstrap resamples; 0 without a bootstrap.
    confidence : float
        Confidence level of the intervals.
    """

    labels: tuple[LabelDiagnosis, ...]
    n_rows: int
    macro_f1: float
    macro_f1_present: float
    macro_auc: float
    micro_f1: float
    micro_precision: float
    micro_recall: float
    macro_average_precision: float = float("nan")
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    n_resamples: int = 0
    confidence: float = 0.95

    _n_index = 1
    _shown = ("label", "support", "predicted", "precision", "recall", "f1", "auc", "best_f1")

    def _title(self) -> str:
        return (
            f"Diagnostics of {len(self.labels):,} labels on {self.n_rows:,} rows: macro-F1 "
            f"{self.macro_f1:.3f}, micro-F1 {self.micro_f1:.3f}, macro-AUC {self.macro_auc:.3f}"
        )

    def _table(self) -> dict[str, list[Any]]:
        names = [f.name for f in fields(LabelDiagnosis) if f.name != "intervals"]
        columns = {name: [getattr(label, name) for label in self.labels] for name in names}
        for name in self.labels[0].intervals:
            bounds = [label.intervals[name] for label in self.labels]
            columns[f"{name}_low"], columns[f"{name}_high"] = map(list, zip(*bounds, strict=True))
        return columns


def diagnose(
    y_true: Any,
    scores: Any,
    *,
    thresholds: Any = None,
    label_names: Sequence[str] | None = None,
    n_resamples: int = 0,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Diagnostics:
    """Compute precision, recall, F1, AUC and average precision per label.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels of held-out rows, coded {0, 1}, {-1, +1} or boolean.
    scores : array-like of shape (n_samples, n_labels)
        Scores of the same rows.
    thresholds : float or array-like of shape (n_labels,), default=None
        A label is predicted if its score is at least this value; 0 by default.
    label_names : sequence of str, default=None
        Names of the labels; ``label0, label1, ...`` by default.
    n_resamples : int, default=0
        Number of bootstrap resamples for the intervals of F1, AUC and average precision; 0 gives no
        intervals.  Rows are drawn with replacement, all labels of a row together, and the intervals
        are bounded by quantiles of the resampled values.
    confidence : float, default=0.95
        Confidence level of the intervals, in (0, 1).
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Diagnostics
        With one entry per label in ``labels`` (``label``, ``support``, ``predicted``,
        ``precision``, ``recall``, ``f1``, ``auc``, ``average_precision``, ``best_threshold``,
        ``best_f1`` and ``intervals``), ``macro_f1``, ``micro_f1``, ``macro_auc`` and others over
        all labels; ``to_frame()`` and ``to_dict()``.

    Examples
    --------
    >>> from imcc.inspection import diagnose
    >>> truth = [[1, 0], [1, 0], [0, 1], [0, 0]]
    >>> scores = [[0.8, -0.9], [-0.2, -0.7], [0.1, -0.1], [-0.6, -0.4]]
    >>> first, second = diagnose(truth, scores, label_names=["cat", "dog"]).labels
    >>> first.label, first.precision, first.recall, first.auc, first.best_f1
    ('cat', 0.5, 0.5, 0.75, 0.8)
    >>> second.f1, second.best_threshold, second.best_f1
    (0.0, -0.25, 1.0)
    """
    check_count("n_resamples", n_resamples, at_least=0)
    check_share("confidence", confidence)
    on, scores, names = checked(y_true, scores, label_names)
    limits = check_thresholds(thresholds, on.shape[1])
    predicted = scores >= limits
    labels = [
        _diagnose_label(names[j], on[:, j], scores[:, j], predicted[:, j], float(limits[j]))
        for j in range(on.shape[1])
    ]
    right, marked, there = (int(v.sum()) for v in (on & predicted, predicted, on))
    found = Diagnostics(
        labels=tuple(labels),
        n_rows=len(on),
        macro_f1=macro_f1(on, predicted),
        macro_f1_present=macro_f1_present(on, predicted),
        macro_auc=_mean_defined([label.auc for label in labels]),
        macro_average_precision=_mean_defined([label.average_precision for label in labels]),
        micro_f1=micro_f1(on, predicted),
        micro_precision=_share(right, marked),
        micro_recall=_share(right, there),
        n_resamples=n_resamples,
        confidence=confidence,
    )
    if not n_resamples:
        return found
    drawn = resample_labels(on, scores, predicted, np.ones_like(on), n_resamples, random_state)
    counts = drawn.right, drawn.predicted - drawn.right, drawn.given - drawn.right
    values = {
        "f1": f1_of_counts(*counts),
        "auc": drawn.auc,
        "average_precision": drawn.average_precision,
    }
    means = {f"macro_{name}": _means_defined(of_labels) for name, of_labels in values.items()}
    means["micro_f1"] = f1_of_counts(*(count.sum(axis=1) for count in counts))

    found._add_intervals(means, confidence)
    for j, label in enumerate(labels):
        label._add_intervals({name: v[:, j] for name, v in values.items()}, confidence)
    return found


def _diagnose_label(
    name: str, on: np.ndarray, scores: np.ndarray, predicted: np.ndarray, threshold: float
) -> LabelDiagnosis:
    right, marked, there = (int(v.sum()) for v in (on & predicted, predicted, on))
    found = cuts(on, scores)
    f1 = f1_of_counts(found.tp, found.fp, found.n_on - found.tp)
    best = int(f1.argmax())
    return LabelDiagnosis(
        label=name,
        support=there,
        predicted=marked,
        threshold=threshold,
        precision=_share(right, marked),
        recall=_share(right, there),
        f1=float(f1_of_counts(right, marked - right, there - right)),
        auc=float(roc_auc_score(on, scores)) if 0 < there < len(on) else np.nan,
        average_precision=float(average_precision_score(on, scores)) if there else np.nan,
        best_threshold=float(found.thresholds[best]) if there else np.nan,
        best_f1=float(f1[best]) if there else np.nan,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _mean_defined(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def _means_defined(values: np.ndarray) -> np.ndarray:
    """Return the means of rows without NaN; NaN where there is nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=1)


def checked(
    y_true: Any, scores: Any, label_names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Validate and return boolean labels, scores of the same shape, and the label names."""
    on = label_matrix(y_true, "y_true")
    scores = check_array(scores, dtype=[np.float64, np.float32], input_name="scores")
    if scores.shape != on.shape:
        raise ValueError(
            f"y_true and scores must have the same shape, got {on.shape} and {scores.shape}"
        )
    if label_names is None:
        return on, scores, [f"label{j}" for j in range(on.shape[1])]
    return on, scores, list(check_names("label_names", "label", on.shape[1], label_names))
