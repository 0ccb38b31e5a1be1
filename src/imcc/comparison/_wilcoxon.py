"""Tests of pairs of methods: Wilcoxon's signed-rank test with Holm's adjustment.

The difference of two mean ranks depends on the other methods in the table; a test of two methods
does not (Benavoli, Corani and Mangili, "Should we really use post-hoc tests based on mean-ranks?",
Journal of Machine Learning Research 17, 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from imcc._utils.validation import check_share
from imcc.comparison._posthoc import cliques, holm
from imcc.comparison._ranks import check_control, check_matrix

# Up to this many differences, the exact distribution is computed: at most 10 ms per test.
COUNTED = 200


@dataclass(frozen=True, eq=False)
class WilcoxonPairs:
    """Result of Wilcoxon's test of all pairs.

    Attributes
    ----------
    p : ndarray of shape (n_methods, n_methods)
        Unadjusted p-value of each pair; the diagonal is 1.
    holm_p : ndarray of shape (n_methods, n_methods)
        p-values adjusted for testing all pairs.
    significant : ndarray of bool, shape (n_methods, n_methods)
        Which pairs differ significantly (``holm_p < alpha``).
    cliques : tuple of tuple of int
        Maximal groups of methods that do not differ significantly (see :func:`cliques`).
    alpha : float
        Significance level.
    """

    p: np.ndarray
    holm_p: np.ndarray
    significant: np.ndarray
    cliques: tuple[tuple[int, ...], ...]
    alpha: float


@dataclass(frozen=True, eq=False)
class WilcoxonControl:
    """A control compared with each other method by Wilcoxon's test.

    Attributes
    ----------
    control : int
        Index of the control.
    p : ndarray of shape (n_methods,)
        Unadjusted p-value of each method; 1 for the control.
    holm_p : ndarray of shape (n_methods,)
        p-values adjusted for the number of methods.
    significant : ndarray of bool, shape (n_methods,)
        Which methods differ significantly from the control (``holm_p < alpha``).
    alpha : float
        Significance level.
    """

    control: int
    p: np.ndarray
    holm_p: np.ndarray
    significant: np.ndarray
    alpha: float


def wilcoxon_p(differences: Any) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test.

    Zero differences are discarded, as Wilcoxon proposed, and tied differences share their ranks.
    For up to 200 differences, the exact distribution of the rank sum is used, also with ties; for
    more, the normal approximation with a variance that accounts for ties.  The p-value is 1 if all
    differences are zero.

    Parameters
    ----------
    differences : array-like of shape (n_rows,)
        Differences of the scores of the two methods, one per row (data set).

    Returns
    -------
    float

    Examples
    --------
    >>> from imcc.comparison import wilcoxon_p
    >>> wilcoxon_p([0.1, 0.2, 0.2, 0.4, -0.1, 0.0])
    0.1875
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("differences must be a list of finite numbers")
    values = values[values != 0]
    if not len(values):
        return 1.0
    # Doubled ranks are integers, also for ties.
    ranks = np.rint(2 * rankdata(np.abs(values))).astype(int)
    total, positive = int(ranks.sum()), int(ranks[values > 0].sum())
    smaller = min(positive, total - positive)
    if len(values) > COUNTED:
        z = (smaller - total / 2) / np.sqrt(np.sum(ranks.astype(float) ** 2) / 4)
        return min(1.0, 2 * float(norm.cdf(z)))
    return min(1.0, 2 * float(signed_rank_chances(ranks)[: smaller + 1].sum()))


def signed_rank_chances(ranks: np.ndarray) -> np.ndarray:
    """Return the probabilities of the sums 0, 1, ... of a random subset of ranks.

    Parameters
    ----------
    ranks : ndarray of int, shape (n,)
        Positive ranks, each of which is in the subset with probability 1/2.
    """
    chance = np.zeros(int(ranks.sum()) + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    return chance


def wilcoxon_pairs(
    values: Any, mean_ranks: Any, *, alpha: float = 0.05, decimals: int | None = None
) -> WilcoxonPairs:
    """Compare all pairs of methods by Wilcoxon's test, with Holm's adjustment.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores, not ranks.
    mean_ranks : array-like of shape (n_methods,)
        Mean ranks, by which the cliques are sorted.
    alpha : float, default=0.05
        Significance level.
    decimals : int, default=None
        Number of decimals to which the differences are rounded.  This removes floating-point noise,
        because of which 0.3 - 0.2 differs from 0.2 - 0.1.

    Returns
    -------
    WilcoxonPairs
    """
    check_share("alpha", alpha)
    matrix = check_matrix(values)
    k = matrix.shape[1]
    first, second = np.triu_indices(k, k=1)
    methods = matrix.T
    single = [_pair(methods[i], methods[j], decimals) for i, j in zip(first, second, strict=True)]
    p, holm_p = np.ones((k, k)), np.ones((k, k))
    p[first, second] = p[second, first] = single
    holm_p[first, second] = holm_p[second, first] = holm(single)
    different = holm_p < alpha
    return WilcoxonPairs(p, holm_p, different, cliques(different, mean_ranks), float(alpha))


def wilcoxon_control(
    values: Any, control: int, *, alpha: float = 0.05, decimals: int | None = None
) -> WilcoxonControl:
    """Compare a control with every other method by Wilcoxon's test, with Holm's adjustment.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores, not ranks.
    control : int
        Index of the control.
    alpha : float, default=0.05
        Significance level.
    decimals : int, default=None
        As for :func:`wilcoxon_pairs`.

    Returns
    -------
    WilcoxonControl
    """
    check_share("alpha", alpha)
    matrix = check_matrix(values)
    k = matrix.shape[1]
    check_control(control, k)
    others = np.flatnonzero(np.arange(k) != control)
    p, holm_p = np.ones(k), np.ones(k)
    p[others] = [_pair(matrix[:, control], matrix[:, j], decimals) for j in others]
    holm_p[others] = holm(p[others])
    return WilcoxonControl(int(control), p, holm_p, holm_p < alpha, float(alpha))


def _pair(first: np.ndarray, second: np.ndarray, decimals: int | None) -> float:
    differences = first - second
    return wilcoxon_p(differences if decimals is None else np.round(differences, decimals))
