"""Bayesian signed-rank test: the probability that one of two methods is better.

A p-value is not the probability that two methods are equal, and with enough data any difference
becomes significant.  The Bayesian signed-rank test gives probabilities, and treats differences
within a region of practical equivalence as negligible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imcc._utils.config import get_config
from imcc._utils.validation import check_count, check_number
from imcc.comparison._ranks import ahead_of_others, check_differences

#: Default of half the width of the region of practical equivalence.
ROPE = 0.01


@dataclass(frozen=True)
class SignedRankPosterior:
    """Result of the Bayesian signed-rank test for two methods.

    Attributes
    ----------
    less, equivalent, greater : float
        Probabilities that the differences are mostly below, within and above the region of
        practical equivalence.  They sum to 1.
    rope : float
        The region of practical equivalence is [-rope, rope].
    n_samples : int
        Number of draws from the posterior.
    """

    less: float
    equivalent: float
    greater: float
    rope: float
    n_samples: int


@dataclass(frozen=True, eq=False)
class BayesianControl:
    """A control compared with each other method by the Bayesian signed-rank test.

    Attributes
    ----------
    control : int
        Index of the control.
    better, equivalent, worse : ndarray of shape (n_methods,)
        Probabilities that the control is better than the method by more than ``rope``, that they
        are practically equivalent, and that the control is worse.  0, 1 and 0 for the control
        itself.
    rope : float
        Half the width of the region of practical equivalence, in units of the metric.
    """

    control: int
    better: np.ndarray
    equivalent: np.ndarray
    worse: np.ndarray
    rope: float


def bayesian_signed_rank(
    differences: Any,
    *,
    rope: float = ROPE,
    prior_strength: float = 0.5,
    n_samples: int = 50_000,
    random_state: Any = 0,
    decimals: int | None = None,
) -> SignedRankPosterior:
    r"""Return the probabilities that one method is better, equivalent or worse.

    The prior of the unknown distribution of the differences :math:`z_1, \dots, z_n` is a Dirichlet
    process, which amounts to one additional difference :math:`z_0 = 0` of weight :math:`s`.  In the
    posterior, the differences have random weights :math:`w \sim \mathrm{Dir}(s, 1, \dots, 1)`.  For
    each draw, the total weights of the Walsh averages :math:`(z_i + z_j) / 2` below, within and
    above the region of practical equivalence :math:`[-r, r]` are

    .. math::

        \theta_< = \sum_{i,j} w_i w_j [z_i + z_j < -2 r], \quad
        \theta_= = \sum_{i,j} w_i w_j [|z_i + z_j| \le 2 r], \quad
        \theta_> = \sum_{i,j} w_i w_j [z_i + z_j > 2 r],

    with :math:`i, j = 0, \dots, n`.  The result is the fraction of draws for which each of the
    three is the largest; ties are divided equally.

    Parameters
    ----------
    differences : array-like of shape (n_rows,)
        Differences of the scores of the two methods, one per row (data set).
    rope : float, default=0.01
        Differences up to this size are negligible in practice, in units of the metric; >= 0.
    prior_strength : float, default=0.5
        Weight s of the prior, > 0.
    n_samples : int, default=50000
        Number of draws.  The standard error of a probability p is
        ``sqrt(p (1 - p) / n_samples)``, at most 0.0023 by default.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.
    decimals : int, default=None
        Number of decimals to which sums of differences are rounded before they are compared with
        the region.  This removes floating-point noise, because of which 0.8 - 0.79 is outside a
        region of 0.01.

    Returns
    -------
    SignedRankPosterior

    See Also
    --------
    bayesian_control : Compare a control with several methods.

    References
    ----------
    A. Benavoli, F. Mangili, G. Corani, M. Zaffalon and F. Ruggeri, "A Bayesian Wilcoxon signed-rank
    test based on the Dirichlet process", International Conference on Machine Learning, 2014.

    A. Benavoli, G. Corani, J. Demšar and M. Zaffalon, "Time for a change: a tutorial for comparing
    multiple classifiers through Bayesian analysis", Journal of Machine Learning Research 18, 2017.

    Examples
    --------
    >>> from imcc.comparison import bayesian_signed_rank
    >>> found = bayesian_signed_rank([0.02, 0.03, 0.015, 0.025, 0.004, 0.03, 0.012])
    >>> round(found.greater, 2), round(found.equivalent, 2), round(found.less, 2)
    (0.97, 0.03, 0.0)
    """
    values = check_differences(differences)
    random = check_random_state(random_state)
    shares = _probabilities(
        values[:, np.newaxis], rope, prior_strength, n_samples, random, decimals
    )
    less, equivalent, greater = (float(share) for share in shares[:, 0])
    return SignedRankPosterior(less, equivalent, greater, float(rope), int(n_samples))


def bayesian_control(
    values: Any,
    control: int,
    *,
    greater_is_better: bool,
    rope: float = ROPE,
    prior_strength: float = 0.5,
    n_samples: int = 50_000,
    random_state: Any = 0,
    decimals: int | None = None,
) -> BayesianControl:
    """Compare a control with every other method by the Bayesian signed-rank test.

    All comparisons use the same draws.  Posterior probabilities need no adjustment for the number
    of methods.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores, not ranks.
    control : int
        Index of the control.
    greater_is_better : bool
        Whether larger scores are better.
    rope, prior_strength, n_samples, random_state, decimals
        As for :func:`bayesian_signed_rank`.

    Returns
    -------
    BayesianControl

    Examples
    --------
    >>> from imcc.comparison import bayesian_control
    >>> scores = [[0.80, 0.795, 0.75], [0.70, 0.701, 0.68], [0.90, 0.898, 0.88], [0.6, 0.6, 0.57]]
    >>> test = bayesian_control(scores, control=0, greater_is_better=True)
    >>> test.better.round(2).tolist(), test.equivalent.round(2).tolist()
    ([0.0, 0.0, 0.99], [1.0, 1.0, 0.01])
    """
    ahead = ahead_of_others(values, control, greater_is_better)
    random = check_random_state(random_state)
    worse, equivalent, better = _probabilities(
        ahead, rope, prior_strength, n_samples, random, decimals
    )
    # A method is equivalent to itself.
    better[control], equivalent[control], worse[control] = 0.0, 1.0, 0.0
    return BayesianControl(int(control), better, equivalent, worse, float(rope))


def _probabilities(
    differences: np.ndarray,
    rope: Any,
    prior_strength: Any,
    n_samples: Any,
    random: Any,
    decimals: int | None,
) -> np.ndarray:
    """Return how often each region has the largest weight, shape (3, n_methods).

    The rows are less, equivalent and greater.
    """
    check_number("rope", rope, at_least=0)
    check_number("prior_strength", prior_strength, above=0)
    check_count("n_samples", n_samples)
    columns = [_Walsh(np.append(0.0, column), float(rope), decimals) for column in differences.T]
    won = np.zeros((3, len(columns)))
    for weights in _weights(len(differences), float(prior_strength), int(n_samples), random):
        for j, column in enumerate(columns):
            shares = column.shares(weights)
            largest = shares == shares.max(axis=0)
            won[:, j] += (largest / largest.sum(axis=0)).sum(axis=1)
    return won / int(n_samples)


def _weights(n: int, prior_strength: float, n_samples: int, random: Any) -> Iterator[np.ndarray]:
    """Yield the weights of all draws in blocks, one column per draw.

    The weights are those of a single call of ``random.dirichlet``, whatever the block size.
    """
    alpha = np.append(prior_strength, np.ones(n))
    step = max(1, get_config().draw_entries // (n + 1))
    for start in range(0, n_samples, step):
        yield random.dirichlet(alpha, size=min(step, n_samples - start)).T


class _Walsh:
    """The regions of the Walsh averages, computed once for all weights.

    With sorted differences, the ``z_j`` for which the average with ``z_i`` is above the region are
    those from some index on, so their total weight is a cumulative sum: n terms per draw instead of
    n^2.
    """

    def __init__(self, values: np.ndarray, rope: float, decimals: int | None) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        sums = ordered[:, np.newaxis] + ordered
        if decimals is not None:
            sums = np.round(sums, decimals)
        self.n_less = (sums < -2 * rope).sum(axis=1)
        self.n_greater = (sums > 2 * rope).sum(axis=1)

    def shares(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the averages below, within and above the region, per draw."""
        w = weights[self.order]
        up = np.vstack([np.zeros((1, w.shape[1])), np.cumsum(w, axis=0)])
        down = np.vstack([np.zeros((1, w.shape[1])), np.cumsum(w[::-1], axis=0)])
        less = np.einsum("is,is->s", w, up[self.n_less])
        greater = np.einsum("is,is->s", w, down[self.n_greater])
        return np.stack([less, np.maximum(1.0 - less - greater, 0.0), greater])
