"""Tests of mean ranks: Friedman's test and critical differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Friedman:
    """Result of Friedman's test; see :class:`imcc.comparison.Comparison`."""

    chi_square: float
    f: float
    f_df: tuple[int, int]
    f_critical: float
    f_p: float
    significant: bool


@dataclass(frozen=True, eq=False)
class Nemenyi:
    """Result of Nemenyi's test of all pairs; see :class:`imcc.comparison.Comparison`."""

    critical_difference: float
    significant: np.ndarray
    cliques: tuple[tuple[int, ...], ...]


def friedman(ranks: np.ndarray, alpha: float) -> Friedman:
    r"""Test whether all methods have the same mean rank.

    With N rows, k methods and mean ranks R_j (Demšar 2006, section 3.2.2):

    .. math::

        \chi^2_F = \frac{12 N}{k (k + 1)} \Bigl[\sum_j R_j^2 - \frac{k (k + 1)^2}{4}\Bigr], \qquad
        F_F = \frac{(N - 1) \chi^2_F}{N (k - 1) - \chi^2_F} .

    Under the null hypothesis, F_F approximately has the F distribution with k - 1 and
    (k - 1)(N - 1) degrees of freedom.

    Parameters
    ----------
    ranks : ndarray of shape (n_rows, n_methods)
        Ranks per row, with mean ranks for ties; at least two rows and two methods.
    alpha : float
        Significance level.
    """
    n, k = ranks.shape
    # The sum of (R_j - (k + 1)/2)^2 equals the bracket of the formula, without cancellation.  4 N^2
    # times it is an integer, so that values that should be equal are equal.
    spread = float(np.sum((2 * ranks.sum(axis=0) - n * (k + 1)) ** 2)) / 4
    chi_square = 12 * spread / (n * k * (k + 1))
    slack = n * (k - 1) - chi_square
    degrees = (k - 1, (k - 1) * (n - 1))
    if slack > 1e-9 * n * k:
        f = (n - 1) * chi_square / slack
        p = float(stats.f.sf(f, *degrees))
    else:  # all rows rank the methods in the same way
        f = math.inf
        p = math.exp((1 - n) * math.lgamma(k + 1))
    return Friedman(chi_square, f, degrees, float(stats.f.isf(alpha, *degrees)), p, p < alpha)


def nemenyi(mean_ranks: np.ndarray, n_rows: int, alpha: float) -> Nemenyi:
    """Compare all pairs of methods by their mean ranks over a number of rows."""
    k = len(mean_ranks)
    q = float(stats.studentized_range.isf(alpha, k, np.inf)) / math.sqrt(2)
    critical = q * _standard_error(n_rows, k)
    significant = np.abs(mean_ranks[:, np.newaxis] - mean_ranks) >= critical
    return Nemenyi(critical, significant, cliques(mean_ranks, critical))


def bonferroni_dunn(n_rows: int, n_methods: int, alpha: float) -> float:
    """Return the critical difference of the mean ranks of a control and each other method."""
    quantile = float(stats.norm.isf(alpha / (2 * (n_methods - 1))))
    return quantile * _standard_error(n_rows, n_methods)


def _standard_error(n_rows: int, n_methods: int) -> float:
    """Return the standard error of the difference of two mean ranks."""
    return math.sqrt(n_methods * (n_methods + 1) / (6 * n_rows))


def cliques(mean_ranks: np.ndarray, critical: float) -> tuple[tuple[int, ...], ...]:
    """Return the maximal groups of at least two methods whose mean ranks are closer than that.

    Members of a group follow each other in the order of the mean ranks.
    """
    order = np.argsort(mean_ranks, kind="stable")
    groups: list[tuple[int, ...]] = []
    end = 0
    for start in range(len(order)):
        close = mean_ranks[order[start:]] - mean_ranks[order[start]] < critical
        # A group that ends where the one before it ends is a part of that.
        last, end = end, start + int(close.sum())
        if end > max(last, start + 1):
            groups.append(tuple(int(i) for i in order[start:end]))
    return tuple(groups)
