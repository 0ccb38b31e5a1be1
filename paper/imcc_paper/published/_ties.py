"""Ranges of statistics over all orders that are consistent with rounded values.

Two means that are both printed as 0.148 need not be equal.  Rounding preserves the order of values
that differ in print, so the true ranks are those of the printed table with each group of equal
values ordered in some way.  Friedman's statistic increases with the spread of the rank sums; its
minimum and maximum over all these orders show which printed statistics are possible.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

# Number of starting points of the local search for the first bound, and of relaxation steps.
_STARTS = 20
_STEPS = 2000


@dataclass(frozen=True)
class FriedmanRange:
    """The range of F_F over all values that round to the printed ones.

    Attributes
    ----------
    low, high : float
        The smallest and the largest F_F over all strict orders of the methods with equal printed
        values; both are attained.
    bound : float
        Lower bound of F_F that also holds if methods are truly tied and share their ranks.  (In
        that case F_F is at most ``high``, too.)
    """

    low: float
    high: float
    bound: float

    def contains(self, f: float, decimals: int) -> bool:
        """Return whether a rounded F_F is possible.

        Parameters
        ----------
        f : float
            The rounded value.
        decimals : int
            Number of decimals to which it was rounded.
        """
        half = 0.5 * 10**-decimals
        return min(self.low, self.bound) - half <= f <= self.high + half


def friedman_range(values: Any, *, greater_is_better: bool) -> FriedmanRange:
    r"""Return the range of Iman and Davenport's F_F over all ways to break the ties.

    With the rank sums :math:`S_j` over N rows and k methods, F_F increases with
    :math:`\sum_j (S_j - N (k + 1) / 2)^2`.  Its extremes are found by an exact branch-and-bound
    search: the groups of ties are processed one by one, and a vector of rank sums is discarded if
    no order of the remaining groups can improve on the best order known.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Values as printed; the order of equal values is unknown.
    greater_is_better : bool
        Whether larger values are better.

    Returns
    -------
    FriedmanRange

    Examples
    --------
    >>> from imcc_paper.published import friedman_range
    >>> result = friedman_range([[0.1, 0.2, 0.2], [0.1, 0.3, 0.4], [0.1, 0.1, 0.2]],
    ...                         greater_is_better=False)
    >>> round(result.low, 3), round(result.high, 3)
    (1.6, inf)
    """
    matrix = np.asarray(values, dtype=np.float64)
    n, k = matrix.shape
    if n < 2 or k < 2:
        raise ValueError(
            f"Friedman's test needs at least two rows and two methods, got {n} and {k}"
        )
    base, groups = _groups(-matrix if greater_is_better else matrix)
    middle = n * (k + 1)  # for doubled rank sums, which are integers
    low, high = (_extreme(base - middle, groups, sign) for sign in (1, -1))
    bound = min(_relaxed(base - middle, groups), low)
    return FriedmanRange(*(_statistic(spread, n, k) for spread in (low, high, bound)))


def rank_difference_range(
    values: Any, first: int, second: int, *, greater_is_better: bool
) -> tuple[float, float]:
    """Return the range of the difference of two mean ranks over all ways to break the ties.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Values as printed; the order of equal values is unknown.
    first, second : int
        Indices of the two methods.
    greater_is_better : bool
        Whether larger values are better.

    Returns
    -------
    low, high : float
        Range of the mean rank of ``second`` minus that of ``first``.

    Examples
    --------
    >>> rank_difference_range([[0.1, 0.2, 0.2], [0.1, 0.1, 0.4]], 0, 1, greater_is_better=False)
    (0.0, 1.5)
    """
    matrix = np.asarray(values, dtype=np.float64)
    towards_best = -matrix if greater_is_better else matrix
    low = high = 0
    for row in towards_best:
        one, other = row[first], row[second]
        if one == other:
            steps = int((row == one).sum()) - 1
            low, high = low - steps, high + steps
        else:
            low += int((row < other).sum()) + 1 - int((row <= one).sum())
            high += int((row <= other).sum()) - int((row < one).sum()) - 1
    return low / len(matrix), high / len(matrix)


def _groups(towards_best: np.ndarray) -> tuple[np.ndarray, list[tuple[np.ndarray, int]]]:
    """Return the doubled rank sums without the ties, and the methods and offset of each tie."""
    base = np.zeros(towards_best.shape[1], dtype=np.int64)
    groups = []
    for row in towards_best:
        for value in np.unique(row):
            tied = np.flatnonzero(row == value)
            before = int((row < value).sum())
            base[tied] += 2 * before
            if len(tied) == 1:
                base[tied] += 2
            else:
                groups.append((tied, before))
    return base, groups


def _orders(size: int) -> np.ndarray:
    """Return the doubled ranks of all orders of a group."""
    return 2 * (np.array(list(itertools.permutations(range(size)))) + 1)


def _extreme(base: np.ndarray, groups: list[tuple[np.ndarray, int]], sign: int) -> int:
    """Return the minimum (sign +1) or maximum (-1) sum of squares of base + ranks of the groups."""
    choices = sorted(((tied, _orders(len(tied))) for tied, _ in groups), key=lambda c: -len(c[0]))
    known = _local_best(base, choices, sign)
    # Bounds on what the remaining groups add to each method.
    least, most = np.zeros_like(base), np.zeros_like(base)
    for tied, orders in choices:
        least[tied] += orders.min(axis=0)
        most[tied] += orders.max(axis=0)
    weights = (2 * int(np.abs(base).max() + most.max()) + 3) ** np.arange(len(base), dtype=object)
    packed = weights.astype(np.int64) if int(weights[-1]) < 2**60 // int(weights[1]) else None
    states = base[np.newaxis]
    for tied, orders in choices:
        least[tied] -= orders.min(axis=0)
        most[tied] -= orders.max(axis=0)
        reached = np.repeat(states, len(orders), axis=0)
        reached[:, tied] += np.tile(orders, (len(states), 1))
        if packed is None:
            reached = np.unique(reached, axis=0)
        else:
            reached = reached[np.unique(reached @ packed, return_index=True)[1]]
        low, high = reached + least, reached + most
        if sign > 0:
            bound = (np.clip(0, low, high) ** 2).sum(axis=1)
        else:
            bound = -np.maximum(low**2, high**2).sum(axis=1)
        states = reached[bound <= known]
    return sign * int((sign * (states**2).sum(axis=1)).min())


def _local_best(base: np.ndarray, choices: list[tuple[np.ndarray, np.ndarray]], sign: int) -> int:
    """Return sign times the sum of squares of some order, improved by local search."""
    rng = np.random.default_rng(0)
    best = math.inf
    for _ in range(_STARTS):
        picked = [int(rng.integers(len(orders))) for _, orders in choices]
        sums = base.copy()
        for (tied, orders), place in zip(choices, picked, strict=True):
            sums[tied] += orders[place]
        moved = True
        while moved:
            moved = False
            for group, (tied, orders) in enumerate(choices):
                others = np.repeat(sums[np.newaxis], len(orders), axis=0)
                others[:, tied] += orders - orders[picked[group]]
                values = sign * (others**2).sum(axis=1)
                place = int(values.argmin())
                if values[place] < values[picked[group]]:
                    picked[group], sums, moved = place, others[place], True
        best = min(best, sign * int((sums**2).sum()))
    return int(best)


def _relaxed(base: np.ndarray, groups: list[tuple[np.ndarray, int]]) -> float:
    """Return a lower bound of the sum of squares over all mixtures of orders.

    Shared ranks are means of strict orders, so they are in the convex hull of these, over which the
    sum of squares is minimised by the Frank-Wolfe method.  At any point x, linearisation of the
    convex function gives the bound f(x) + min over the hull of f'(x) (v - x).
    """
    point = base.astype(float)
    for tied, _ in groups:
        point[tied] += len(tied) + 1  # all share their rank
    bound = 0.0
    for _ in range(_STEPS):
        corner = base.astype(float)
        for tied, _ in groups:
            # Assign the largest ranks to the smallest slopes.
            order = np.argsort(np.argsort(-point[tied], kind="stable"), kind="stable")
            corner[tied] += 2 * (order + 1)
        direction = corner - point
        slope = 2 * float(point @ direction)
        bound = max(bound, float(point @ point) + slope)
        length = float(direction @ direction)
        if slope >= -1e-9 or length == 0:
            break
        point = point + min(1.0, -slope / (2 * length)) * direction
    return bound


def _statistic(spread: float, n: int, k: int) -> float:
    """Return F_F for the sum of squares of the doubled, centred rank sums."""
    chi_square = 12 * spread / 4 / (n * k * (k + 1))
    slack = n * (k - 1) - chi_square
    return (n - 1) * chi_square / slack if slack > 1e-9 * n * k else math.inf
