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

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import report_progress
from imcc._utils.validation import check_count, check_number


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


def check_resampling(n_resamples: int, confidence: float, at_least: int = 1) -> None:
    """Check the arguments of a bootstrap."""
    check_number("confidence", confidence, above=0)
    if confidence >= 1:
        raise InvalidArgumentError("confidence", f"must be below 1, got {confidence!r}")
    check_count("n_resamples", n_resamples, at_least=at_least)


def tails_of(confidence: float) -> tuple[float, float]:
    """Return the two quantile levels of an interval."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def resampled_counts(
    n: int, n_resamples: int, rng: np.random.Generator, entries: int
) -> Iterator[np.ndarray]:
    """Yield blocks of counts, shape (n_block, n), with about ``entries`` entries each."""
    block = max(1, entries // n)
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)]
        yield np.array(drawn, dtype=np.float64)
        report_progress(start + size, n_resamples)


def estimate(value: float, drawn: np.ndarray, tails: tuple[float, float]) -> Estimate:
    """Return a value with the interval between the quantiles of its defined resamples."""
    defined = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(defined):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(defined, tails)
    return Estimate(value, float(low), float(high))


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
