"""All statistics of a table of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.plain import to_plain
from imcc._utils.validation import check_choice, check_number, check_share
from imcc.comparison._bayes import ROPE, BayesianControl, bayesian_control
from imcc.comparison._effects import EffectControl, effect_control
from imcc.comparison._friedman import Friedman, friedman
from imcc.comparison._missing import Dropped, complete
from imcc.comparison._posthoc import ControlRanks, Nemenyi, against_control, nemenyi
from imcc.comparison._ranks import Podium, mean_ranks, podium, rank_methods, round_as_printed
from imcc.comparison._table import ScoreTable
from imcc.comparison._wilcoxon import (
    WilcoxonControl,
    WilcoxonPairs,
    wilcoxon_control,
    wilcoxon_pairs,
)
from imcc.comparison._wins import WinTieLoss, significant_win_tie_loss, win_tie_loss

# Means of the same runs in a different order differ in their last bits, but count as equal.
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of methods on data sets by one metric, the result of :func:`compare`.

    Indices of methods in arrays and groups refer to ``methods``.  A statistic that cannot be
    computed is None, and ``reasons`` gives the reason.

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
    decimals : int or None
        Number of decimals to which the values were rounded first.
    over : {"datasets", "runs"}
        Whether a row of the ranks is a data set or a run.
    rows : tuple of str
        Names of the rows: data sets, or "data set/repetition".
    counts : ndarray of int, shape (n_datasets, n_methods)
        Numbers of runs.
    means, stds : ndarray of shape (n_datasets, n_methods)
        Means and standard deviations over the runs, not rounded; the standard deviation is NaN for
        a single run.
    ranks : ndarray of shape (n_rows, n_methods)
        Ranks per row; 1 is best, ties get the mean rank.
    mean_ranks : ndarray of shape (n_methods,)
        Mean ranks over the rows.
    friedman : Friedman or None
        Test of whether the methods differ.
    nemenyi : Nemenyi or None
        Test of all pairs by their mean ranks.
    control_ranks : ControlRanks or None
        Tests of the control against the others by their mean ranks.
    wilcoxon : WilcoxonPairs or None
        Wilcoxon's test of all pairs with Holm's adjustment.
    wilcoxon_control : WilcoxonControl or None
        Wilcoxon's test of the control against the others with Holm's adjustment.
    bayesian : BayesianControl or None
        Probabilities that the control is better, equivalent or worse.
    effects : EffectControl or None
        Effect sizes of the differences between the control and the others.
    wins : WinTieLoss
        Wins, ties and losses of all pairs over the rows.
    significant_wins : WinTieLoss or None
        The same over the data sets, counting only differences that are significant by a t test over
        the repetitions.
    podium : Podium
        How often each method is first, and among the first three.
    dropped : Dropped
        What was left out because of missing runs.
    reasons : dict of str to str
        For each of the above that is None, the reason.
    notes : tuple of str
        Remarks on the interpretation.
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    control: str | None
    alpha: float
    decimals: int | None
    over: str
    rows: tuple[str, ...]
    counts: np.ndarray
    means: np.ndarray
    stds: np.ndarray
    ranks: np.ndarray
    mean_ranks: np.ndarray
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    control_ranks: ControlRanks | None
    wilcoxon: WilcoxonPairs | None
    wilcoxon_control: WilcoxonControl | None
    bayesian: BayesianControl | None
    effects: EffectControl | None
    wins: WinTieLoss
    significant_wins: WinTieLoss | None
    podium: Podium
    dropped: Dropped
    reasons: dict[str, str]
    notes: tuple[str, ...]

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
    decimals: int | None = None,
    over: str = "datasets",
    test_size: float | None = None,
    rope: float = ROPE,
) -> Comparison:
    """Compare methods on data sets by ranks, tests, effect sizes and wins.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    control : str, default=None
        Name of a method to compare the others with.
    alpha : float, default=0.05
        Significance level.
    missing : {"raise", "drop_datasets", "drop_methods", "drop_repetitions"}, default="raise"
        What to do if a method lacks runs that another method has on the same data set: raise an
        error that lists them; leave out the data sets or the methods with missing runs; or leave
        out the repetitions that not every method has.  ``dropped`` of the result lists what was
        left out.
    decimals : int, default=None
        Number of decimals to which the means are rounded first, to compare the values of a printed
        table.  By default, means are compared to 12 significant digits.
    over : {"datasets", "runs"}, default="datasets"
        Whether to compare the means over the runs of each data set, or the single runs.  The tests
        assume independent rows; runs on the same data set are not independent, so "runs" gives
        p-values that are too small.
    test_size : float, default=None
        Fraction of the rows in each test set.  If given, the t tests of ``significant_wins`` take
        into account that the splits overlap (see :func:`significant_win_tie_loss`).
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

    Examples
    --------
    >>> from imcc.comparison import compare
    >>> from imcc.published import table
    >>> result = compare(table("average_precision").to_scores(), control="imcc")
    >>> round(result.friedman.f, 2), round(result.nemenyi.critical_difference, 3)
    (11.93, 2.326)
    >>> [result.methods[i] for i in result.order[:3]]
    ['imcc', 'llsf', 'jfsc']
    """
    if not isinstance(table, ScoreTable):
        raise TypeError(f"table must be a ScoreTable, got {type(table).__name__}")
    check_share("alpha", alpha)
    if test_size is not None:
        check_share("test_size", test_size)
    check_number("rope", rope, at_least=0)
    check_choice("over", over, ("datasets", "runs"))
    if control is not None and control not in table.methods:
        raise InvalidArgumentError(
            "control", f"must be one of the methods {', '.join(table.methods)}, got {control!r}"
        )
    if not table.datasets or not table.methods:
        raise ValueError("table must have at least one data set and one method")
    table, dropped = complete(table, missing)
    if control in dropped.methods:
        raise InvalidArgumentError(
            "control",
            f"{control!r} lacks runs and would be left out with "
            + given("missing", missing)
            + "; complete its runs, choose another control or another value",
        )
    rows, scores = _rows(table, over)
    values = _clean(scores, decimals)
    ranks = rank_methods(values, greater_is_better=table.greater_is_better)
    means = mean_ranks(ranks)
    position = None if control is None else table.methods.index(control)
    tests = _tests(values, ranks, means, position, alpha, decimals)
    tests |= _sizes(values, position, table.greater_is_better, alpha, decimals, rope)
    reasons = {name: test for name, test in tests.items() if isinstance(test, str)}
    if table.counts.min() < 2:
        reasons["significant_wins"] = "a t test needs at least two repetitions per data set"
    return Comparison(
        metric=table.metric,
        greater_is_better=table.greater_is_better,
        datasets=table.datasets,
        methods=table.methods,
        control=control,
        alpha=float(alpha),
        decimals=decimals,
        over=over,
        rows=rows,
        counts=table.counts,
        means=table.mean(),
        stds=table.std(),
        ranks=ranks,
        mean_ranks=means,
        **{name: None if name in reasons else test for name, test in tests.items()},
        wins=win_tie_loss(values, greater_is_better=table.greater_is_better),
        significant_wins=None
        if "significant_wins" in reasons
        else significant_win_tie_loss(table, alpha=alpha, test_size=test_size),
        podium=podium(values, greater_is_better=table.greater_is_better),
        dropped=dropped,
        reasons=reasons,
        notes=_notes(values.shape, tests["friedman"], alpha, over, dropped),
    )


def _rows(table: ScoreTable, over: str) -> tuple[tuple[str, ...], np.ndarray]:
    if over == "datasets":
        return table.datasets, table.mean()
    names, scores = [], []
    for dataset, runs in zip(table.datasets, table.values, strict=True):
        for repetition in np.flatnonzero(~np.isnan(runs[0])):
            names.append(f"{dataset}/{repetition}")
            scores.append(runs[:, repetition])
    return tuple(names), np.array(scores)


def _clean(values: np.ndarray, decimals: int | None) -> np.ndarray:
    if decimals is not None:
        return round_as_printed(values, decimals)
    return np.array([[float(f"{v:.{_DIGITS}g}") for v in row] for row in values])


def _tests(
    values: np.ndarray,
    ranks: np.ndarray,
    means: np.ndarray,
    control: int | None,
    alpha: float,
    decimals: int | None,
) -> dict[str, Any]:
    """Return the result of each test, or the reason why it cannot be computed."""
    n, k = values.shape
    if n < 2 or k < 2:
        reason = (
            "at least two methods are needed"
            if k < 2
            else "at least two rows (data sets) are needed"
        )
        names = ("friedman", "nemenyi", "control_ranks", "wilcoxon", "wilcoxon_control")
        return dict.fromkeys(names, reason)
    decimals = _decimals(values, decimals)
    tests: dict[str, Any] = {
        "friedman": friedman(ranks, alpha=alpha),
        "nemenyi": nemenyi(means, n, alpha=alpha),
        "wilcoxon": wilcoxon_pairs(values, means, alpha=alpha, decimals=decimals),
    }
    if control is None:
        return {**tests, **dict.fromkeys(("control_ranks", "wilcoxon_control"), "no control given")}
    return {
        **tests,
        "control_ranks": against_control(means, n, control, alpha=alpha),
        "wilcoxon_control": wilcoxon_control(values, control, alpha=alpha, decimals=decimals),
    }


def _decimals(values: np.ndarray, decimals: int | None) -> int:
    """Return the number of significant decimals of differences."""
    if decimals is not None:
        return decimals
    # The number of decimals that the largest value has if it is given to 12 digits.
    largest = float(np.abs(values).max())
    # NumPy cannot round to more than 300.
    return min(_DIGITS - math.ceil(math.log10(largest)), 300) if largest > 0 else _DIGITS


def _sizes(
    values: np.ndarray,
    control: int | None,
    greater: bool,
    alpha: float,
    decimals: int | None,
    rope: float,
) -> dict[str, Any]:
    """Return the Bayesian test and the effect sizes, or the reason why there are none."""
    n, k = values.shape
    names = ("bayesian", "effects")
    if k < 2:
        return dict.fromkeys(names, "at least two methods are needed")
    if n < 2:
        return dict.fromkeys(names, "at least two rows (data sets) are needed")
    if control is None:
        return dict.fromkeys(names, "no control given")
    decimals = _decimals(values, decimals)
    return {
        "bayesian": bayesian_control(
            values, control, greater_is_better=greater, rope=rope, decimals=decimals
        ),
        "effects": effect_control(
            values, control, greater_is_better=greater, level=1 - alpha, decimals=decimals
        ),
    }


def _notes(
    shape: tuple[int, ...], test: Friedman | str, alpha: float, over: str, dropped: Dropped
) -> tuple[str, ...]:
    n, k = shape
    notes = []
    if dropped:
        parts = [
            f"{what} {', '.join(names)}"
            for what, names in (("data sets", dropped.datasets), ("methods", dropped.methods))
            if names
        ]
        parts += [f"{lost} runs on {name}" for name, lost in dropped.runs.items()]
        notes.append("left out because runs are missing: " + "; ".join(parts))
    if over == "runs":
        notes.append("runs on one data set are not independent: the p-values are too small")
    if isinstance(test, Friedman):
        if math.isinf(test.f):
            notes.append(
                "all rows rank the methods in the same way: F_F is infinite, its p-value exact"
            )
        if test.chi_square_tied is None:
            notes.append("all methods are tied on every row")
        smallest = min(1.0, k * (k - 1) / 2 * 2.0 ** (1 - n))
        if smallest >= alpha:
            notes.append(
                f"with {n} rows and {k} methods, no pair can differ significantly by Wilcoxon's "
                f"test with Holm's adjustment: the smallest possible p-value is {smallest:.3g}"
            )
    return tuple(notes)
