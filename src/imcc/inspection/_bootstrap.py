r"""Bootstrap intervals: rows are drawn with replacement, all labels of a row together.

A resample is given by the number of times w_i that each row was drawn; they sum to n.  F1, AUC and
average precision of a resample are those of the rows with weights w_i, so that scores are sorted
only once.  For one label with true values y_i, rows in the order of decreasing scores, and tied
scores in one group g ::

    TP_g = sum of w_i y_i up to the end of group g,     N_g = sum of w_i up to the end of group g
    pos_g = TP_g - TP_{g-1},   FP_g = N_g - TP_g,       TP = TP_g of the last group

    average precision = sum_g pos_g / TP  *  TP_g / N_g
    AUC               = sum_g pos_g (n - TP - (FP_g + FP_{g-1}) / 2) / (TP (n - TP))
    F1                = 2 sum_i w_i y_i yhat_i / (sum_i w_i y_i + sum_i w_i yhat_i)

The AUC is undefined for a resample in which no row or every row has the label; such resamples are
ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from imcc._utils.config import get_config
from imcc._utils.progress import report_progress


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval.

    Attributes
    ----------
    value : float
        NaN if undefined.
    low, high : float
        Bounds of the interval; NaN if there is none.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int = 3) -> str:
        """Return the value and its interval, if there is one, as text; "-" if undefined.

        Parameters
        ----------
        digits : int, default=3
            Number of decimals of the interval's bounds; the value has three.
        """
        if np.isnan(self.value):
            return "-"
        if np.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def resampled_counts(
    n: int, n_resamples: int, rng: np.random.Generator, entries: int
) -> Iterator[np.ndarray]:
    """Yield blocks of counts, shape (n_block, n), with about ``entries`` entries each.

    The first block is empty, so that there is one without resamples, too.
    """
    block = max(1, entries // n)
    yield np.empty((0, n))
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)]
        yield np.array(drawn, dtype=np.float64)
        report_progress(start + size, n_resamples)


def estimate(value: float, drawn: np.ndarray, confidence: float) -> Estimate:
    """Return a value with the interval between the quantiles of its defined resamples."""
    defined = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(defined):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, float(low), float(high))


class LabelMeasures(NamedTuple):
    """Counts and measures of resamples, each of shape (n_resamples, n_labels).

    Attributes
    ----------
    right, given, predicted : ndarray
        Number of rows that have the label and are predicted to, that have it, and that are
        predicted to have it.
    average_precision, auc : ndarray
        NaN where undefined.
    """

    right: np.ndarray
    given: np.ndarray
    predicted: np.ndarray
    average_precision: np.ndarray
    auc: np.ndarray


def measure_labels(
    on: np.ndarray,
    scores: np.ndarray,
    predicted: np.ndarray,
    known: np.ndarray,
    counts: np.ndarray,
) -> LabelMeasures:
    """Return the measures of each label for resamples, given by their counts of rows.

    Parameters
    ----------
    on, predicted, known : ndarray of bool of shape (n_samples, n_labels)
        Which labels the rows have, are predicted to have, and are known for.
    scores : ndarray of shape (n_samples, n_labels)
    counts : ndarray of shape (n_resamples, n_samples)
    """
    ranked = []
    for j in range(on.shape[1]):
        rows = slice(None) if known[:, j].all() else known[:, j]
        ranked.append(ranked_measures(on[rows, j], scores[rows, j], counts[:, rows]))
    averages, aucs = (np.column_stack(values) for values in zip(*ranked, strict=True))
    right, given, called = (counts @ a.astype(float) for a in (on & predicted, on, predicted))
    return LabelMeasures(right, given, called, averages, aucs)


def resample_labels(
    on: np.ndarray,
    scores: np.ndarray,
    predicted: np.ndarray,
    known: np.ndarray,
    n_resamples: int,
    seed: int,
) -> LabelMeasures:
    """Return the measures of :func:`measure_labels` for bootstrap resamples."""
    # Blocks of about the size of a cache, as several arrays of this size are computed per label.
    blocks = resampled_counts(
        len(on), n_resamples, np.random.default_rng(seed), get_config().kernel_entries
    )
    parts = [measure_labels(on, scores, predicted, known, counts) for counts in blocks]
    return LabelMeasures(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def ranked_measures(
    on: np.ndarray, scores: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the average precision and the AUC of one label per resample.

    The formulas are in the docstring of this module.

    Parameters
    ----------
    on : ndarray of bool of shape (n,)
    scores : ndarray of shape (n,)
    counts : ndarray of shape (n_resamples, n)

    Returns
    -------
    average_precision, auc : ndarray of shape (n_resamples,)
        NaN where undefined.
    """
    if not on.any():
        nothing = np.full(len(counts), np.nan)
        return nothing, nothing
    order = np.argsort(-scores, kind="stable")
    groups = np.concatenate([[0], np.cumsum(np.diff(scores[order]) != 0)])
    hit = np.flatnonzero(on[order])
    # Start and end of the groups with positive rows; the other groups contribute nothing.
    kept, first = np.unique(groups[hit], return_index=True)
    starts = np.searchsorted(groups, kept)
    ends = np.searchsorted(groups, kept, side="right")
    up_to = np.zeros((len(counts), len(scores) + 1))
    np.cumsum(counts[:, order], axis=1, out=up_to[:, 1:])
    rows, rows_before = up_to[:, ends], up_to[:, starts]
    hits = np.add.reduceat(counts[:, order[hit]], first, axis=1)
    found = np.cumsum(hits, axis=1)
    total, n = found[:, -1], up_to[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        average = np.where(hits > 0, hits * found / rows, 0.0).sum(axis=1) / total
        others = n - total
        above = rows_before - (found - hits)  # negative rows with a higher score
        tied = rows - rows_before - hits
        auc = (hits * (others[:, np.newaxis] - above - tied / 2)).sum(axis=1) / (total * others)
    average[total == 0] = np.nan
    auc[(total == 0) | (total == n)] = np.nan
    return average, auc
