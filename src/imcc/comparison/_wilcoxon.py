"""Which methods differ, judged pair by pair: Wilcoxon's signed-rank test with Holm's adjustment.

Mean ranks depend on which other methods are in the table; a test of two methods does not (Benavoli,
Corani and Mangili, "Should we really use post-hoc tests based on mean-ranks?", Journal of Machine
Learning Research 17, 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from imcc._utils.validation import check_share
from imcc.comparison._posthoc import cliques, holm
from imcc.comparison._ranks import check_control, check_matrix

# Up to so many differences the distribution is counted out: 10 ms a test at most.
COUNTED = 200


@dataclass(frozen=True, eq=False)
class WilcoxonPairs:
    """All pairs by Wilcoxon's test.

    Attributes
    ----------
    p : ndarray of shape (n_methods, n_methods)
        Of each pair by itself; the diagonal is 1.
    holm_p : ndarray of shape (n_methods, n_methods)
        Adjusted for testing all pairs.
    significant : ndarray of bool, shape (n_methods, n_methods)
        Which pairs differ: ``holm_p`` is below alpha.
    cliques : tuple of tuple of int
        The maximal groups of methods in which no two differ (see :func:`cliques`).
    alpha : float
        The level of significance.
    """

    p: np.ndarray
    holm_p: np.ndarray
    significant: np.ndarray
    cliques: tuple[tuple[int, ...], ...]
    alpha: float


@dataclass(frozen=True, eq=False)
class WilcoxonControl:
    """A control against each other method by Wilcoxon's test.

    Attributes
    ----------
    control : int
        Which method it is.
    p : ndarray of shape (n_methods,)
        Of each method by itself; 1 for the control.
    holm_p : ndarray of shape (n_methods,)
        Adjusted for testing all of them.
    significant : ndarray of bool, shape (n_methods,)
        Which methods differ from the control: ``holm_p`` is below alpha.
    alpha : float
        The level of significance.
    """

    control: int
    p: np.ndarray
    holm_p: np.ndarray
    significant: np.ndarray
    alpha: float


def wilcoxon_p(differences: Any) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test.

    Differences of 0 are left out, as by Wilcoxon himself, and equal ones share their ranks.  The
    distribution of the rank sum, every sign being as likely as its opposite, is counted out for up
    to 200 differences, ties or not; beyond, it is taken as normal, with the variance that the
    ties leave.  Without any difference the p is 1.

    Parameters
    ----------
    differences : array-like of shape (n_rows,)
        Of the two methods, row by row.

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
    # Twice the ranks are whole numbers, also where ties share theirs.
    ranks = np.rint(2 * rankdata(np.abs(values))).astype(int)
    total, positive = int(ranks.sum()), int(ranks[values > 0].sum())
    smaller = min(positive, total - positive)
    if len(values) > COUNTED:
        z = (smaller - total / 2) / np.sqrt(np.sum(ranks.astype(float) ** 2) / 4)
        return min(1.0, 2 * float(norm.cdf(z)))
    return min(1.0, 2 * float(signed_rank_chances(ranks)[: smaller + 1].sum()))


def signed_rank_chances(ranks: np.ndarray) -> np.ndarray:
    """Return the probabilities of the sums 0, 1, ... of ranks that are each counted or not.

    Parameters
    ----------
    ranks : ndarray of int, shape (n,)
        Positive.  Each is counted with a probability of 1/2.
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
        The scores, not their ranks.
    mean_ranks : array-like of shape (n_methods,)
        The order in which the cliques are given.
    alpha : float
        The level of significance.
    decimals : int, optional
        Round the differences, which frees differences of rounded values from the noise that makes
        0.3 - 0.2 unlike 0.2 - 0.1.
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
        The scores, not their ranks.
    control : int
        The position of the control.
    alpha : float
        The level of significance.
    decimals : int, optional
        As for :func:`wilcoxon_pairs`.
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
