"""Friedman's test of whether methods differ, and its variant by Iman and Davenport."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from imcc._utils.validation import check_share
from imcc.comparison._ranks import check_matrix


@dataclass(frozen=True)
class Friedman:
    """Result of Friedman's test.

    Attributes
    ----------
    n_rows, n_methods : int
        N and k.
    chi_square : float
        Friedman's statistic computed from the mean ranks, as in the paper and by Demšar.
    chi_square_df : int
        Degrees of freedom, k - 1.
    chi_square_critical, chi_square_p : float
        Critical value and p-value of ``chi_square``.
    chi_square_tied, chi_square_tied_p : float or None
        Statistic with correction for ties and its p-value, as computed by
        :func:`scipy.stats.friedmanchisquare`.  None if all methods are tied on every row.
    f : float
        Iman and Davenport's statistic F_F; infinite if all rows rank the methods in the same way.
    f_df : tuple of int
        Degrees of freedom, k - 1 and (k - 1)(N - 1).
    f_critical, f_p : float
        Critical value and p-value of F_F.  If F_F is infinite, the p-value is exact,
        (1 / k!)^(N - 1).
    alpha : float
        Significance level.
    significant : bool
        Whether ``f_p`` is below ``alpha``.
    """

    n_rows: int
    n_methods: int
    chi_square: float
    chi_square_df: int
    chi_square_critical: float
    chi_square_p: float
    chi_square_tied: float | None
    chi_square_tied_p: float | None
    f: float
    f_df: tuple[int, int]
    f_critical: float
    f_p: float
    alpha: float
    significant: bool


def friedman(ranks: Any, *, alpha: float = 0.05) -> Friedman:
    r"""Test whether all methods have the same mean rank.

    With N rows, k methods and mean ranks R_j (Demšar 2006, section 3.2.2):

    .. math::

        \chi^2_F = \frac{12 N}{k (k + 1)} \Bigl[\sum_j R_j^2 - \frac{k (k + 1)^2}{4}\Bigr], \qquad
        F_F = \frac{(N - 1) \chi^2_F}{N (k - 1) - \chi^2_F} .

    Under the null hypothesis, F_F approximately has the F distribution with k - 1 and
    (k - 1)(N - 1) degrees of freedom.

    Parameters
    ----------
    ranks : array-like of shape (n_rows, n_methods)
        Ranks per row of :func:`rank_methods`, with mean ranks for ties.
    alpha : float, default=0.05
        Significance level.

    Returns
    -------
    Friedman

    Raises
    ------
    ValueError
        If there are fewer than two rows or fewer than two methods.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine
    Learning Research 7, 2006.

    Examples
    --------
    >>> from imcc.comparison import friedman
    >>> test = friedman([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
    >>> round(test.chi_square, 3), round(test.f, 3), test.f_df, test.significant
    (4.5, 3.857, (2, 6), False)
    """
    matrix = check_matrix(ranks, "ranks")
    check_share("alpha", alpha)
    n, k = matrix.shape
    if n < 2 or k < 2:
        raise ValueError(
            f"Friedman's test needs at least two rows and two methods, got {n} and {k}"
        )
    # The sum of (R_j - (k + 1)/2)^2 equals the bracket of the formula, without cancellation.  4 N^2
    # times it is an integer, so that values that should be equal are equal.
    spread = float(np.sum((2 * matrix.sum(axis=0) - n * (k + 1)) ** 2)) / 4
    chi_square = 12 * spread / (n * k * (k + 1))
    slack = n * (k - 1) - chi_square
    f = (n - 1) * chi_square / slack if slack > 1e-9 * n * k else math.inf
    degrees = (k - 1, (k - 1) * (n - 1))
    f_p = stats.f.sf(f, *degrees) if math.isfinite(f) else math.exp((1 - n) * math.lgamma(k + 1))
    f_critical = float(stats.f.isf(alpha, *degrees))
    tied = _tied(matrix, spread)
    return Friedman(
        n_rows=n,
        n_methods=k,
        chi_square=chi_square,
        chi_square_df=k - 1,
        chi_square_critical=float(stats.chi2.isf(alpha, k - 1)),
        chi_square_p=float(stats.chi2.sf(chi_square, k - 1)),
        chi_square_tied=tied,
        chi_square_tied_p=None if tied is None else float(stats.chi2.sf(tied, k - 1)),
        f=f,
        f_df=degrees,
        f_critical=f_critical,
        f_p=float(f_p),
        alpha=float(alpha),
        significant=bool(f_p < alpha),
    )


def _tied(ranks: np.ndarray, spread: float) -> float | None:
    """Return the statistic with the actual variance of the ranks in its denominator."""
    n, k = ranks.shape
    variance = float(np.sum((ranks - (k + 1) / 2) ** 2)) / (n * (k - 1))
    return spread / (n * variance) if variance > 0 else None
