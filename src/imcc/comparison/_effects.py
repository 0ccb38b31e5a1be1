"""Effect sizes: how large the difference between two methods is, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from imcc._utils.validation import check_share
from imcc.comparison._ranks import ahead_of_others, check_differences
from imcc.comparison._wilcoxon import COUNTED, signed_rank_chances


@dataclass(frozen=True)
class EffectSize:
    """Effect sizes of the difference between two methods.

    Attributes
    ----------
    n : int
        Number of rows (data sets).
    mean : float
        Mean difference.
    mean_interval : (float, float)
        Confidence interval of the mean by Student's t; infinite for a single row.
    median : float
        Hodges-Lehmann estimate: the median of the averages of all pairs of differences, including
        each difference with itself.  It is robust to outlying rows.
    median_interval : (float, float)
        Confidence interval of the median, the values that Wilcoxon's test does not reject; infinite
        if there are too few rows for the level (fewer than 6 for 0.95).
    rank_biserial : float
        Matched-pairs rank-biserial correlation, from -1 to 1: the fraction of the rank sum in
        favour of the first method minus the fraction against it.
    level : float
        Confidence level of the intervals.
    """

    n: int
    mean: float
    mean_interval: tuple[float, float]
    median: float
    median_interval: tuple[float, float]
    rank_biserial: float
    level: float


@dataclass(frozen=True, eq=False)
class EffectControl:
    """Effect sizes of the differences between a control and each other method.

    Positive values mean that the control is better, whatever the direction of the metric.

    Attributes
    ----------
    control : int
        Index of the control.
    mean, median, rank_biserial : ndarray of shape (n_methods,)
        As for :class:`EffectSize`; 0 for the control itself.
    mean_interval, median_interval : ndarray of shape (n_methods, 2)
        Confidence intervals; 0 for the control itself.
    level : float
        Confidence level of each interval, not adjusted for their number.
    """

    control: int
    mean: np.ndarray
    mean_interval: np.ndarray
    median: np.ndarray
    median_interval: np.ndarray
    rank_biserial: np.ndarray
    level: float


def effect_size(
    differences: Any, *, level: float = 0.95, decimals: int | None = None
) -> EffectSize:
    r"""Return mean difference, Hodges-Lehmann estimate and rank-biserial correlation.

    * The mean :math:`\bar z` of the differences :math:`z_1, \dots, z_n`, with the interval
      :math:`\bar z \pm t_{n-1} s / \sqrt n`.
    * The Hodges-Lehmann estimate, the median of the Walsh averages
      :math:`(z_i + z_j) / 2, i \le j`.  The interval is from the k-th smallest to the k-th largest
      average, with the largest k for which the probability that Wilcoxon's rank sum is below k is
      at most ``(1 - level) / 2``.  Its coverage is at least ``level`` if the differences are
      independent and symmetric about their median.
    * The rank-biserial correlation :math:`(R_+ - R_-) / (R_+ + R_-)` of the rank sums of
      Wilcoxon's test; zero differences are discarded, and ties get the mean rank.  It is 0 if all
      differences are zero.

    Parameters
    ----------
    differences : array-like of shape (n_rows,)
        Differences of the scores of the two methods, one per row (data set).
    level : float, default=0.95
        Confidence level of the intervals, in (0, 1).
    decimals : int, default=None
        Number of decimals to which the differences are rounded before they are ranked.  This
        removes floating-point noise, because of which 0.3 - 0.2 differs from 0.2 - 0.1.

    Returns
    -------
    EffectSize

    References
    ----------
    J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of
    Mathematical Statistics 34, 1963.

    D. S. Kerby, "The simple difference formula: an approach to teaching nonparametric correlation",
    Comprehensive Psychology 3, 2014.

    Examples
    --------
    >>> from imcc.comparison import effect_size
    >>> found = effect_size([0.02, 0.03, 0.01, 0.05, -0.01, 0.04, 0.02, 0.03])
    >>> round(found.mean, 4), [round(end, 4) for end in found.mean_interval]
    (0.0238, [0.0083, 0.0392])
    >>> round(found.median, 4), [round(end, 4) for end in found.median_interval]
    (0.025, [0.005, 0.04])
    >>> round(found.rank_biserial, 3)
    0.917
    """
    values = check_differences(differences)
    check_share("level", level)
    n, mean = len(values), float(values.mean())
    half = math.inf
    if n > 1:
        half = float(student.isf((1 - level) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
    i, j = np.triu_indices(n)
    averages = np.sort((values[i] + values[j]) / 2)
    k = _rank_of_end(n, level)
    ends = (float(averages[k - 1]), float(averages[-k])) if k else (-math.inf, math.inf)
    return EffectSize(
        n,
        mean,
        (mean - half, mean + half),
        float(np.median(averages)),
        ends,
        _rank_biserial(values if decimals is None else np.round(values, decimals)),
        float(level),
    )


def effect_control(
    values: Any,
    control: int,
    *,
    greater_is_better: bool,
    level: float = 0.95,
    decimals: int | None = None,
) -> EffectControl:
    """Return the effect sizes of the differences between a control and every other method.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores, not ranks.
    control : int
        Index of the control.
    greater_is_better : bool
        Whether larger scores are better; the effects are positive if the control is better.
    level, decimals
        As for :func:`effect_size`.

    Returns
    -------
    EffectControl
    """
    ahead = ahead_of_others(values, control, greater_is_better)
    found = [effect_size(column, level=level, decimals=decimals) for column in ahead.T]
    ends = np.array([size.mean_interval for size in found])
    median_ends = np.array([size.median_interval for size in found])
    ends[control] = median_ends[control] = 0.0
    return EffectControl(
        int(control),
        np.array([size.mean for size in found]),
        ends,
        np.array([size.median for size in found]),
        median_ends,
        np.array([size.rank_biserial for size in found]),
        float(level),
    )


def _rank_of_end(n: int, level: float) -> int:
    """Return the rank, from 1, of the Walsh average that bounds the interval; 0 if none does."""
    tail = (1 - level) / 2
    if n > COUNTED:
        middle, spread = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(0, math.floor(middle - float(norm.isf(tail)) * spread))
    below = np.cumsum(signed_rank_chances(np.arange(1, n + 1)))
    return int(np.count_nonzero(below <= tail))


def _rank_biserial(values: np.ndarray) -> float:
    values = values[values != 0]
    if not len(values):
        return 0.0
    ranks = rankdata(np.abs(values))
    return float(np.sum(np.sign(values) * ranks) / ranks.sum())
