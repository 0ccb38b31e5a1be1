"""All statistics of a table of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.plain import to_plain
from imcc._utils.validation import check_choice, check_number, check_share
from imcc.comparison._pairs import effect_size, holm, probabilities, wilcoxon_p
from imcc.comparison._ranks import Friedman, Nemenyi, bonferroni_dunn, friedman, nemenyi
from imcc.comparison._table import ScoreTable, check_complete, drop_missing

# Means of the same runs in a different order differ in their last bits, but count as equal.
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Wilcoxon:
    """Result of Wilcoxon's test of all pairs; see :class:`Comparison`."""

    p: np.ndarray
    holm_p: np.ndarray
    significant: np.ndarray


@dataclass(frozen=True, eq=False)
class AgainstControl:
    """A control compared with each other method; see :class:`Comparison`."""

    control: int
    critical_difference: float
    ranks_differ: np.ndarray
    wilcoxon_p: np.ndarray
    mean: np.ndarray
    mean_interval: np.ndarray
    better: np.ndarray
    equivalent: np.ndarray
    worse: np.ndarray
    rope: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of methods on data sets by one metric, the result of :func:`compare`.

    Indices of methods in arrays and groups refer to ``methods``.  A test that cannot be computed is
    None, and ``reasons`` gives the reason.

    Attributes
    ----------
    metric : str
        Name of the metric.
    greater_is_better : bool
        Whether larger values of the metric are better.
    datasets, methods : tuple of str
        Names of the data sets and methods.
    control : str or None
        The method that the others are compared with.
    alpha : float
        Significance level.
    counts : ndarray of int, shape (n_datasets, n_methods)
        Numbers of runs.
    means, stds : ndarray of shape (n_datasets, n_methods)
        Means and standard deviations over the runs; the standard deviation is NaN for a single run.
    ranks : ndarray of shape (n_datasets, n_methods)
        Ranks per data set; 1 is best, ties get the mean rank.
    mean_ranks : ndarray of shape (n_methods,)
        Mean ranks over the data sets.
    n_first : ndarray of int, shape (n_methods,)
        Number of data sets on which each method is best, alone or in a tie.
    wins : ndarray of int, shape (n_methods, n_methods)
        ``wins[i, j]`` is the number of data sets on which method i is better than j.
    significant_wins : ndarray of int, shape (n_methods, n_methods), or None
        The same, counting only differences that are significant by a two-sided paired t test over
        the repetitions of a data set.  The tests are not adjusted for their number.
    friedman : object or None
        Friedman's test of whether the methods differ: the statistic ``chi_square``; Iman and
        Davenport's statistic ``f`` (infinite if all data sets rank the methods in the same way)
        with its degrees of freedom ``f_df``, critical value ``f_critical`` and p-value ``f_p``; and
        whether that is ``significant``.
    nemenyi : object or None
        Nemenyi's test of all pairs: the ``critical_difference`` of mean ranks, which pairs differ
        significantly (``significant``, a matrix), and ``cliques``, the maximal groups of methods
        that do not differ significantly, best first.
    wilcoxon : object or None
        Wilcoxon's test of all pairs: matrices of p-values ``p``, adjusted p-values ``holm_p`` and
        ``significant`` pairs.
    against_control : object or None
        The control against each method.  Bonferroni and Dunn's ``critical_difference`` of mean
        ranks and the methods whose mean ranks differ by at least that (``ranks_differ``);
        ``wilcoxon_p``, p-values of Wilcoxon's test with Holm's adjustment; the ``mean`` difference,
        positive if the control is better, with its ``mean_interval`` of confidence level
        ``1 - alpha``; the probabilities that the control is ``better``, practically ``equivalent``
        (up to ``rope``) or ``worse``; and ``control``, the index of the control.
    left_out : tuple of (str, str)
        What was left out because of missing runs, and why.
    reasons : dict of str to str
        For each of the above that is None, the reason.
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    control: str | None
    alpha: float
    counts: np.ndarray
    means: np.ndarray
    stds: np.ndarray
    ranks: np.ndarray
    mean_ranks: np.ndarray
    n_first: np.ndarray
    wins: np.ndarray
    significant_wins: np.ndarray | None
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    wilcoxon: Wilcoxon | None
    against_control: AgainstControl | None
    left_out: tuple[tuple[str, str], ...]
    reasons: dict[str, str]

    @property
    def order(self) -> tuple[int, ...]:
        """Indices of the methods, the best mean rank first."""
        return tuple(int(i) for i in np.argsort(self.mean_ranks, kind="stable"))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with None for NaN and infinity."""
        return to_plain(self)


def compare(
    table: ScoreTable,
    *,
    control: str | None = None,
    alpha: float = 0.05,
    missing: str = "raise",
    test_size: float | None = None,
    rope: float = 0.01,
) -> Comparison:
    """Compare methods on data sets by ranks, tests, differences and wins.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    control : str, default=None
        Name of a method to compare the others with.
    alpha : float, default=0.05
        Significance level.
    missing : {"raise", "drop"}, default="raise"
        What to do if a method lacks runs that another method has on the same data set: raise an
        error that lists them, or compare the methods with runs on all data sets on the repetitions
        that all of them have; with a control, on the data sets and repetitions of the control.  If
        no two methods have all data sets, those that at least half of the methods lack are left
        out, or else those that any method lacks.  ``left_out`` of the result lists what was left
        out.
    test_size : float, default=None
        Fraction of the rows in each test set.  The random splits of a data set overlap, so a plain
        t test finds too many differences.  If given, ``significant_wins`` uses Nadeau and Bengio's
        corrected variance of the mean, ``(1/n + r) s^2`` with the ratio r of test to training rows,
        instead of ``s^2 / n``.
    rope : float, default=0.01
        Differences of means up to this size are negligible in practice, in units of the metric; the
        region of practical equivalence of the Bayesian test (see :func:`bayesian_signed_rank`).
        Choose it before looking at the results.

    Returns
    -------
    Comparison

    Raises
    ------
    MissingRunsError
        If runs are missing and ``missing`` is "raise".

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine
    Learning Research 7, 2006.

    C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.

    Examples
    --------
    >>> from imcc.comparison import ScoreTable, compare
    >>> skill = {"new": 0.8, "old": 0.7, "other": 0.6}
    >>> runs = [(f"set {i}", method, 0, level - 0.01 * i)
    ...         for i in range(8) for method, level in skill.items()]
    >>> result = compare(ScoreTable.from_records(runs, metric="average_precision"))
    >>> result.mean_ranks.tolist(), round(result.nemenyi.critical_difference, 3)
    ([1.0, 2.0, 3.0], 1.172)
    >>> [result.methods[i] for i in result.order]
    ['new', 'old', 'other']
    """
    if not isinstance(table, ScoreTable):
        raise TypeError(f"table must be a ScoreTable, got {type(table).__name__}")
    check_share("alpha", alpha)
    if test_size is not None:
        check_share("test_size", test_size)
    check_number("rope", rope, at_least=0)
    check_choice("missing", missing, ("raise", "drop"))
    if control is not None and control not in table.methods:
        raise InvalidArgumentError(
            "control", f"must be one of the methods {', '.join(table.methods)}, got {control!r}"
        )
    left_out: tuple[tuple[str, str], ...] = ()
    if missing == "drop":
        table, left_out = drop_missing(table, control)
    else:
        check_complete(table)
    if control is not None and control not in table.methods:
        raise InvalidArgumentError(
            "control", f"{control!r} is left out: {dict(left_out)[control]}; choose another one"
        )
    if not table.datasets or not table.methods:
        raise ValueError(f"table has no runs by {table.metric} that all methods have in common")
    means = table.mean()
    values = np.array([[float(f"{v:.{_DIGITS}g}") for v in row] for row in means])
    better = values if table.greater_is_better else -values
    ranks = np.asarray(rankdata(-better, axis=1), dtype=np.float64)
    mean_ranks = ranks.mean(axis=0)
    n, k = values.shape
    tests: dict[str, Any] = dict.fromkeys(("friedman", "nemenyi", "wilcoxon", "against_control"))
    reasons: dict[str, str] = {}
    if n < 2 or k < 2:
        reasons = dict.fromkeys(
            tests, f"at least two {'methods' if k < 2 else 'data sets'} are needed"
        )
    else:
        tests["friedman"] = friedman(ranks, alpha)
        tests["nemenyi"] = nemenyi(mean_ranks, n, alpha)
        tests["wilcoxon"] = wilcoxon = _wilcoxon(values, alpha)
        if control is None:
            reasons["against_control"] = "no control given"
        else:
            tests["against_control"] = _against_control(
                table.methods.index(control), better, mean_ranks, wilcoxon, alpha, rope
            )
    significant_wins = None
    if table.counts.min() < 2:
        reasons["significant_wins"] = "a t test needs at least two repetitions per data set"
    else:
        significant_wins = _significant_wins(table, alpha, test_size)
    return Comparison(
        metric=table.metric,
        greater_is_better=table.greater_is_better,
        datasets=table.datasets,
        methods=table.methods,
        control=control,
        alpha=float(alpha),
        counts=table.counts,
        means=means,
        stds=table.std(),
        ranks=ranks,
        mean_ranks=mean_ranks,
        n_first=(better == better.max(axis=1, keepdims=True)).sum(axis=0),
        wins=(better[:, :, np.newaxis] > better[:, np.newaxis]).sum(axis=0),
        significant_wins=significant_wins,
        **tests,
        left_out=left_out,
        reasons=reasons,
    )


def _wilcoxon(values: np.ndarray, alpha: float) -> Wilcoxon:
    """Compare all pairs of methods by Wilcoxon's test, with Holm's adjustment."""
    # The number of decimals that the largest value has if it is given to 12 digits.  Rounding
    # removes floating-point noise, because of which 0.3 - 0.2 differs from 0.2 - 0.1.
    largest = float(np.abs(values).max())
    # NumPy cannot round to more than 300 of them.
    decimals = min(_DIGITS - math.ceil(math.log10(largest)), 300) if largest > 0 else _DIGITS
    k = values.shape[1]
    first, second = np.triu_indices(k, k=1)
    differences = np.round(values[:, first] - values[:, second], decimals)
    single = [wilcoxon_p(column) for column in differences.T]
    p, holm_p = np.ones((k, k)), np.ones((k, k))
    p[first, second] = p[second, first] = single
    holm_p[first, second] = holm_p[second, first] = holm(single)
    return Wilcoxon(p, holm_p, significant=holm_p < alpha)


def _against_control(
    control: int,
    better: np.ndarray,
    mean_ranks: np.ndarray,
    wilcoxon: Wilcoxon,
    alpha: float,
    rope: float,
) -> AgainstControl:
    n, k = better.shape
    critical = bonferroni_dunn(n, k, alpha)
    others = np.arange(k) != control
    holm_p = np.ones(k)
    holm_p[others] = holm(wilcoxon.p[control, others])
    ahead = better[:, [control]] - better
    sizes = [effect_size(column, level=1 - alpha) for column in ahead.T]
    is_better, is_equivalent, is_worse = probabilities(ahead, rope)
    return AgainstControl(
        control=control,
        critical_difference=critical,
        ranks_differ=np.abs(mean_ranks - mean_ranks[control]) >= critical,
        wilcoxon_p=holm_p,
        mean=np.array([size.mean for size in sizes]),
        mean_interval=np.array([size.mean_interval for size in sizes]),
        better=is_better,
        equivalent=is_equivalent,
        worse=is_worse,
        rope=float(rope),
    )


def _significant_wins(table: ScoreTable, alpha: float, test_size: float | None) -> np.ndarray:
    """Count the data sets on which a method is significantly better than each other one."""
    overlap = 0.0 if test_size is None else test_size / (1 - test_size)
    k = len(table.methods)
    wins = np.zeros((k, k), dtype=np.int64)
    criticals = student.isf(alpha / 2, table.counts[:, 0] - 1)  # all methods have the same runs
    signed = table.values if table.greater_is_better else -table.values
    for values, critical in zip(signed, criticals, strict=True):
        runs = values[:, ~np.isnan(values).any(axis=0)]
        differences = runs[:, np.newaxis] - runs
        error = differences.std(axis=2, ddof=1) * math.sqrt(1 / runs.shape[1] + overlap)
        # Values that only differ in their last bits are equal.
        noise = 1e-12 * float(np.abs(runs).max())
        wins += differences.mean(axis=2) > np.maximum(error * critical, noise)
    return wins
