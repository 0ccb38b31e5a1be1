"""Post-hoc tests by mean ranks: Nemenyi for all pairs, Bonferroni-Dunn and Holm for a control."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from imcc._utils.validation import check_choice, check_count, check_share


@dataclass(frozen=True, eq=False)
class Nemenyi:
    """Result of Nemenyi's test of all pairs.

    Attributes
    ----------
    critical_difference : float
        Two methods differ significantly if the difference of their mean ranks is at least this.
    q : float
        Quantile of the studentized range divided by the square root of 2.
    p : ndarray of shape (n_methods, n_methods)
        p-value of each pair, adjusted for testing all pairs; the diagonal is 1.
    significant : ndarray of bool, shape (n_methods, n_methods)
        Which pairs differ significantly.
    cliques : tuple of tuple of int
        Maximal groups of methods that do not differ significantly (see :func:`cliques`).
    alpha : float
        Significance level.
    """

    critical_difference: float
    q: float
    p: np.ndarray
    significant: np.ndarray
    cliques: tuple[tuple[int, ...], ...]
    alpha: float


@dataclass(frozen=True, eq=False)
class ControlRanks:
    """A control compared with each other method by mean ranks.

    Attributes
    ----------
    control : int
        Index of the control.
    difference : ndarray of shape (n_methods,)
        Mean rank of the method minus that of the control; positive if the control is better.
    nemenyi_critical_difference, bonferroni_dunn_critical_difference : float
        Critical differences.  The paper uses Nemenyi's, which is meant for all pairs and thus
        conservative here; Bonferroni-Dunn's is meant for comparisons with a control.
    nemenyi_significant, bonferroni_dunn_significant : ndarray of bool, shape (n_methods,)
        Which methods differ significantly from the control.
    p : ndarray of shape (n_methods,)
        Unadjusted p-values by the normal distribution; 1 for the control.
    bonferroni_dunn_p, holm_p : ndarray of shape (n_methods,)
        p-values adjusted for the number of methods; Holm's are never larger.
    alpha : float
        Significance level.
    """

    control: int
    difference: np.ndarray
    nemenyi_critical_difference: float
    bonferroni_dunn_critical_difference: float
    nemenyi_significant: np.ndarray
    bonferroni_dunn_significant: np.ndarray
    p: np.ndarray
    bonferroni_dunn_p: np.ndarray
    holm_p: np.ndarray
    alpha: float


def rank_standard_error(n_rows: int, n_methods: int) -> float:
    """Return the standard error of the difference of two mean ranks, sqrt(k (k + 1) / 6 N)."""
    return math.sqrt(n_methods * (n_methods + 1) / (6 * n_rows))


def critical_difference(
    n_rows: int, n_methods: int, *, alpha: float = 0.05, procedure: str = "nemenyi"
) -> float:
    r"""Return the smallest difference of two mean ranks that is significant.

    :math:`CD = q_\alpha \sqrt{k (k + 1) / (6 N)}` (Demšar 2006).

    Parameters
    ----------
    n_rows, n_methods : int
        N and k.
    alpha : float, default=0.05
        Significance level.
    procedure : {"nemenyi", "bonferroni-dunn"}, default="nemenyi"
        "nemenyi" is for all pairs: :math:`q_\alpha` is the quantile of the studentized range,
        divided by the square root of 2.  "bonferroni-dunn" is for a control against the others:
        :math:`q_\alpha` is the normal quantile of :math:`1 - \alpha / (2 (k - 1))`.

    Returns
    -------
    float

    Examples
    --------
    >>> from imcc.comparison import critical_difference
    >>> round(critical_difference(15, 7), 3)
    2.326
    >>> round(critical_difference(14, 4, alpha=0.1, procedure="bonferroni-dunn"), 3)
    1.038
    """
    check_count("n_rows", n_rows)
    return _quantile(n_methods, alpha, procedure) * rank_standard_error(n_rows, n_methods)


def _quantile(n_methods: int, alpha: float, procedure: str) -> float:
    check_share("alpha", alpha)
    check_choice("procedure", procedure, ("nemenyi", "bonferroni-dunn"))
    if check_count("n_methods", n_methods) < 2:
        raise ValueError("n_methods must be at least 2")
    if procedure == "nemenyi":
        return float(stats.studentized_range.isf(alpha, n_methods, np.inf)) / math.sqrt(2)
    return float(stats.norm.isf(alpha / (2 * (n_methods - 1))))


def nemenyi(mean_ranks: Any, n_rows: int, *, alpha: float = 0.05) -> Nemenyi:
    """Compare all pairs of methods by their mean ranks.

    Parameters
    ----------
    mean_ranks : array-like of shape (n_methods,)
        Mean ranks, of :func:`mean_ranks`.
    n_rows : int
        Number of rows over which the ranks were averaged.
    alpha : float, default=0.05
        Significance level.

    Returns
    -------
    Nemenyi

    Examples
    --------
    >>> from imcc.comparison import nemenyi
    >>> test = nemenyi([1.2, 1.9, 2.9], 20)
    >>> round(test.critical_difference, 3), test.cliques
    (0.741, ((0, 1),))
    """
    ranks = _check_mean_ranks(mean_ranks)
    k = len(ranks)
    q = _quantile(k, alpha, "nemenyi")
    check_count("n_rows", n_rows)
    error = rank_standard_error(n_rows, k)
    apart = np.abs(ranks[:, np.newaxis] - ranks)
    p = np.minimum(stats.studentized_range.sf(apart / error * math.sqrt(2), k, np.inf), 1.0)
    np.fill_diagonal(p, 1.0)
    different = apart >= q * error
    return Nemenyi(q * error, q, p, different, cliques(different, ranks), float(alpha))


def against_control(
    mean_ranks: Any, n_rows: int, control: int, *, alpha: float = 0.05
) -> ControlRanks:
    """Compare a control with every other method by their mean ranks.

    Parameters
    ----------
    mean_ranks : array-like of shape (n_methods,)
        Mean ranks, of :func:`mean_ranks`.
    n_rows : int
        Number of rows over which the ranks were averaged.
    control : int
        Index of the control.
    alpha : float, default=0.05
        Significance level.

    Returns
    -------
    ControlRanks

    Examples
    --------
    >>> from imcc.comparison import against_control
    >>> test = against_control([1.2, 1.9, 2.9], 20, control=0)
    >>> test.bonferroni_dunn_significant.tolist(), test.bonferroni_dunn_p.round(4).tolist()
    ([False, False, True], [1.0, 0.0537, 0.0])
    """
    ranks = _check_mean_ranks(mean_ranks)
    k = len(ranks)
    if not 0 <= control < k:
        raise ValueError(f"control must be an index from 0 to {k - 1}, got {control}")
    wide = critical_difference(n_rows, k, alpha=alpha)
    narrow = critical_difference(n_rows, k, alpha=alpha, procedure="bonferroni-dunn")
    difference = ranks - ranks[control]
    p = 2 * stats.norm.sf(np.abs(difference) / rank_standard_error(n_rows, k))
    others = np.arange(k) != control
    holm_p = np.ones(k)
    holm_p[others] = holm(p[others])
    return ControlRanks(
        control=int(control),
        difference=difference,
        nemenyi_critical_difference=wide,
        bonferroni_dunn_critical_difference=narrow,
        nemenyi_significant=others & (np.abs(difference) >= wide),
        bonferroni_dunn_significant=others & (np.abs(difference) >= narrow),
        p=p,
        bonferroni_dunn_p=np.where(others, np.minimum((k - 1) * p, 1.0), 1.0),
        holm_p=holm_p,
        alpha=float(alpha),
    )


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


def cliques(
    different: Any, mean_ranks: Any, *, contiguous: bool = False
) -> tuple[tuple[int, ...], ...]:
    """Return the maximal groups of at least two methods in which no two differ.

    Parameters
    ----------
    different : array-like of bool, shape (n_methods, n_methods)
        Which pairs differ significantly; must be symmetric.
    mean_ranks : array-like of shape (n_methods,)
        Mean ranks, by which groups and their members are sorted.
    contiguous : bool, default=False
        Whether to return only groups of methods that are adjacent in this order, which a bar of a
        critical difference diagram can show.  With a critical difference, all groups are
        contiguous; with tests of pairs, they need not be.

    Returns
    -------
    tuple of tuple of int
        Indices of the methods of each group.

    Examples
    --------
    >>> from imcc.comparison import cliques
    >>> different = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]  # only the first and the second differ
    >>> cliques(different, [1.5, 2.0, 2.5])
    ((0, 2), (1, 2))
    >>> cliques(different, [1.5, 2.0, 2.5], contiguous=True)
    ((1, 2),)
    """
    ranks = _check_mean_ranks(mean_ranks)
    apart = np.asarray(different, dtype=bool)
    k = len(ranks)
    if apart.shape != (k, k) or np.any(apart != apart.T):
        raise ValueError(f"different must be a symmetric matrix of shape ({k}, {k})")
    order = np.argsort(ranks, kind="stable")
    alike = ~apart[np.ix_(order, order)]
    np.fill_diagonal(alike, False)
    found = _stretches(alike) if contiguous else _maximal(alike)
    return tuple(tuple(int(order[i]) for i in group) for group in sorted(found) if len(group) > 1)


def _stretches(alike: np.ndarray) -> list[tuple[int, ...]]:
    k, end, found = len(alike), 0, []
    for start in range(k):
        stop = start + 1
        while stop < k and alike[stop, start:stop].all():
            stop += 1
        if stop > end:  # not contained in the previous group
            found.append(tuple(range(start, stop)))
            end = stop
    return found


def _maximal(alike: np.ndarray) -> list[tuple[int, ...]]:
    """Find the maximal cliques (Bron and Kerbosch, with a pivot)."""
    neighbours = [set(np.flatnonzero(row).tolist()) for row in alike]
    found: list[tuple[int, ...]] = []

    def extend(group: list[int], candidates: set[int], done: set[int]) -> None:
        if not candidates and not done:
            found.append(tuple(sorted(group)))
            return
        pivot = max(candidates | done, key=lambda v: len(neighbours[v] & candidates))
        for v in sorted(candidates - neighbours[pivot]):
            extend([*group, v], candidates & neighbours[v], done & neighbours[v])
            candidates = candidates - {v}
            done = done | {v}

    extend([], set(range(len(alike))), set())
    return found


def _check_mean_ranks(mean_ranks: Any) -> np.ndarray:
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    if ranks.ndim != 1 or not np.isfinite(ranks).all():
        raise ValueError("mean_ranks must be a list of one finite number per method")
    return ranks
