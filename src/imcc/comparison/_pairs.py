"""Tests of two methods: Wilcoxon's, the size of the difference, and probabilities.

The difference of two mean ranks depends on the other methods in the table; a test of two methods
does not (Benavoli, Corani and Mangili, "Should we really use post-hoc tests based on mean-ranks?",
Journal of Machine Learning Research 17, 2016).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from imcc._utils.config import get_config
from imcc._utils.validation import check_number, check_share

# Up to this many differences, the exact distribution is computed: at most 10 ms per test.
_COUNTED = 200
# Draws from the posterior: the standard error of a probability is at most 0.0023.
_DRAWS = 50_000
# Weight of the prior.
_PRIOR = 0.5
# Decimals of sums of differences: 0.8 - 0.79 is not outside of a region of 0.01.
_DECIMALS = 12


class EffectSize(NamedTuple):
    """Mean difference with its confidence interval."""

    mean: float
    mean_interval: tuple[float, float]


class Probabilities(NamedTuple):
    """Probabilities that one method is better than another, practically equivalent, and worse."""

    better: float
    equivalent: float
    worse: float


def wilcoxon_p(differences: Any) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test.

    Zero differences are discarded, as Wilcoxon proposed, and tied differences share their ranks.
    For up to 200 differences, the exact distribution of the rank sum is used, also with ties; for
    more, the normal approximation with a variance that accounts for ties.  The p-value is 1 if all
    differences are zero.

    Parameters
    ----------
    differences : array-like of shape (n_datasets,)
        Differences of the scores of the two methods, one per data set.

    Returns
    -------
    float

    Examples
    --------
    >>> from imcc.comparison import wilcoxon_p
    >>> wilcoxon_p([0.1, 0.2, 0.2, 0.4, -0.1, 0.0])
    0.1875
    """
    values = _check_differences(differences)
    values = values[values != 0]
    if not len(values):
        return 1.0
    # Doubled ranks are integers, also for ties.
    ranks = np.rint(2 * rankdata(np.abs(values))).astype(int)
    total, positive = int(ranks.sum()), int(ranks[values > 0].sum())
    smaller = min(positive, total - positive)
    if len(values) > _COUNTED:
        z = (smaller - total / 2) / np.sqrt(np.sum(ranks.astype(float) ** 2) / 4)
        return min(1.0, 2 * float(norm.cdf(z)))
    # The probabilities of all sums, if each rank counts with probability 1/2.
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    return min(1.0, 2 * float(chance[: smaller + 1].sum()))


def holm(p: Any) -> np.ndarray:
    """Adjust p-values for multiple testing by Holm's step-down method.

    The i-th smallest of m p-values is multiplied by m - i + 1; the adjusted p-values are made
    nondecreasing and are at most 1.

    Parameters
    ----------
    p : array-like of shape (n_tests,)
        p-values.

    Returns
    -------
    ndarray of shape (n_tests,)
        Adjusted p-values, in the order of ``p``.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> from imcc.comparison import holm
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise ValueError("p must be a list of numbers from 0 to 1")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    factors = np.arange(len(values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return adjusted


def effect_size(differences: Any, *, level: float = 0.95) -> EffectSize:
    r"""Return the mean difference of two methods with its confidence interval.

    The interval is :math:`\bar z \pm t_{n-1} s / \sqrt n` (Student's t).

    Parameters
    ----------
    differences : array-like of shape (n_datasets,)
        Differences of the scores of the two methods, one per data set.
    level : float, default=0.95
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    mean : float
        Mean difference.
    mean_interval : (float, float)
        Confidence interval; infinite for a single data set.

    Examples
    --------
    >>> from imcc.comparison import effect_size
    >>> mean, (low, high) = effect_size([0.02, 0.03, 0.01, 0.05, -0.01, 0.04, 0.02, 0.03])
    >>> round(mean, 4), round(low, 4), round(high, 4)
    (0.0238, 0.0083, 0.0392)
    """
    values = _check_differences(differences)
    check_share("level", level)
    n, mean = len(values), float(values.mean())
    half = math.inf
    if n > 1:
        half = float(student.isf((1 - level) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return EffectSize(mean, (mean - half, mean + half))


def bayesian_signed_rank(differences: Any, *, rope: float = 0.01) -> Probabilities:
    r"""Return the probabilities that one method is better, equivalent or worse.

    A p-value is not the probability that two methods are equal, and with enough data any difference
    becomes significant.  The Bayesian signed-rank test gives probabilities, and treats differences
    within a region of practical equivalence as negligible.

    The prior of the unknown distribution of the differences :math:`z_1, \dots, z_n` is a Dirichlet
    process, which amounts to one additional difference :math:`z_0 = 0` of weight :math:`s = 0.5`.
    In the posterior, the differences have random weights
    :math:`w \sim \mathrm{Dir}(s, 1, \dots, 1)`.  For each of 50,000 draws, the total weights of the
    averages :math:`(z_i + z_j) / 2` below, within and above the region of practical equivalence
    :math:`[-r, r]` are

    .. math::

        \theta_< = \sum_{i,j} w_i w_j [z_i + z_j < -2 r], \quad
        \theta_= = \sum_{i,j} w_i w_j [|z_i + z_j| \le 2 r], \quad
        \theta_> = \sum_{i,j} w_i w_j [z_i + z_j > 2 r],

    with :math:`i, j = 0, \dots, n`.  The result is the fraction of draws for which each of the
    three is the largest; ties are divided equally.  The draws are the same in every call.

    Parameters
    ----------
    differences : array-like of shape (n_datasets,)
        Differences of the scores of the two methods, one per data set; positive if the first is
        better.
    rope : float, default=0.01
        Differences up to this size are negligible in practice, in units of the metric; >= 0.

    Returns
    -------
    better, equivalent, worse : float
        The probabilities, which sum to 1.

    References
    ----------
    A. Benavoli, F. Mangili, G. Corani, M. Zaffalon and F. Ruggeri, "A Bayesian Wilcoxon signed-rank
    test based on the Dirichlet process", International Conference on Machine Learning, 2014.

    A. Benavoli, G. Corani, J. Demšar and M. Zaffalon, "Time for a change: a tutorial for comparing
    multiple classifiers through Bayesian analysis", Journal of Machine Learning Research 18, 2017.

    Examples
    --------
    >>> from imcc.comparison import bayesian_signed_rank
    >>> result = bayesian_signed_rank([0.02, 0.03, 0.015, 0.025, 0.004, 0.03, 0.012])
    >>> round(result.better, 2), round(result.equivalent, 2), round(result.worse, 2)
    (0.97, 0.03, 0.0)
    """
    values = _check_differences(differences)
    check_number("rope", rope, at_least=0)
    better, equivalent, worse = probabilities(values[:, np.newaxis], rope)[:, 0].tolist()
    return Probabilities(better, equivalent, worse)


def probabilities(differences: np.ndarray, rope: float) -> np.ndarray:
    """Return the probabilities of :func:`bayesian_signed_rank` for several columns at once.

    Parameters
    ----------
    differences : ndarray of shape (n_datasets, n_methods)
        Differences to each method.
    rope : float
        Half the width of the region of practical equivalence.

    Returns
    -------
    ndarray of shape (3, n_methods)
        The rows are better, equivalent and worse.
    """
    # With sorted differences, the z_j for which the average with z_i is above the region are those
    # from some index on, so their total weight is a cumulative sum: n terms per draw, not n^2.
    columns = []
    for column in differences.T:
        values = np.append(0.0, column)
        order = np.argsort(values, kind="stable")
        sums = np.round(values[order][:, np.newaxis] + values[order], _DECIMALS)
        columns.append((order, (sums > 2 * rope).sum(axis=1), (sums < -2 * rope).sum(axis=1)))
    n = len(differences)
    random = np.random.RandomState(0)
    won = np.zeros((3, len(columns)))
    # In blocks; the weights are those of a single call, whatever the size of a block.
    step = max(1, get_config().draw_entries // (n + 1))
    for start in range(0, _DRAWS, step):
        size = min(step, _DRAWS - start)
        weights = random.dirichlet(np.append(_PRIOR, np.ones(n)), size=size).T
        for j, (order, n_better, n_worse) in enumerate(columns):
            w = weights[order]
            up, down = (np.cumsum(np.vstack([np.zeros(size), v]), axis=0) for v in (w, w[::-1]))
            better = np.einsum("is,is->s", w, down[n_better])
            worse = np.einsum("is,is->s", w, up[n_worse])
            shares = np.stack([better, np.maximum(1.0 - worse - better, 0.0), worse])
            largest = shares == shares.max(axis=0)
            won[:, j] += (largest / largest.sum(axis=0)).sum(axis=1)
    return won / _DRAWS


def _check_differences(differences: Any) -> np.ndarray:
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError("differences must be a list of at least one number, all finite")
    return values
