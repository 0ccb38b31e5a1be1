r"""Intervals by the bootstrap over rows: rows are drawn with replacement, all labels together.

A resample is the number of times that each row was drawn, w_i, which sum to n.  F1, AUC and average
precision of a resample are those of the rows with weights w_i, so that nothing is sorted again: for
one label with truths y_i, in the order of falling scores, tied scores in one group g ::

    TP_g = sum of w_i y_i up to the end of group g,     N_g = sum of w_i up to there
    pos_g = TP_g - TP_{g-1},   FP_g = N_g - TP_g,       TP = all of them

    average precision = sum_g pos_g / TP  *  TP_g / N_g
    AUC               = sum_g pos_g (n - TP - (FP_g + FP_{g-1}) / 2) / (TP (n - TP))
    F1                = 2 sum_i w_i y_i yhat_i / (sum_i w_i y_i + sum_i w_i yhat_i)

A resample without rows that have the label, or only with such, has no AUC; the interval is then of
the other resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import tell
from imcc._utils.validation import check_count, check_number


@dataclass(frozen=True)
class Estimate:
    """A value and its interval.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int = 3) -> str:
        """Return the value, and its interval with some digits if there is one; "-" if undefined."""
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
    """Return the quantiles of an interval."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def resampled_counts(
    n: int, n_resamples: int, rng: np.random.Generator, entries: int
) -> Iterator[np.ndarray]:
    """Yield how often each row was drawn, (some resamples, n), so many entries at a time."""
    block = max(1, entries // n)
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)]
        yield np.array(drawn, dtype=np.float64)
        tell(start + size, n_resamples)


def estimate(value: float, drawn: np.ndarray, tails: tuple[float, float]) -> Estimate:
    """Return a value with the interval between quantiles of its resamples, where it is defined."""
    defined = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(defined):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(defined, tails)
    return Estimate(value, float(low), float(high))


def ranked_measures(
    on: np.ndarray, scores: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the average precision and the AUC of one label in resamples; see the module.

    Parameters
    ----------
    on : ndarray of bool of shape (n,)
    scores : ndarray of shape (n,)
    counts : ndarray of shape (n_resamples, n)

    Returns
    -------
    average_precision, auc : ndarray of shape (n_resamples,)
        NaN where they are undefined.
    """
    if not on.any():
        nothing = np.full(len(counts), np.nan)
        return nothing, nothing
    order = np.argsort(-scores, kind="stable")
    groups = np.concatenate([[0], np.cumsum(np.diff(scores[order]) != 0)])
    hit = np.flatnonzero(on[order])
    # Only the groups with a row that has the label count: where they start and end.
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
        above = rows_before - (found - hits)  # rows without the label that are scored higher
        tied = rows - rows_before - hits
        auc = (hits * (others[:, np.newaxis] - above - tied / 2)).sum(axis=1) / (total * others)
    average[total == 0] = np.nan
    auc[(total == 0) | (total == n)] = np.nan
    return average, auc
