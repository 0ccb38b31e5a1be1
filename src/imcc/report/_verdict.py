"""Which method is best, by how much, and whether that is significant, in plain English."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc.comparison import Comparison
from imcc.report._results import Compared
from imcc.report._words import counted, joined, metric_title, number, p_text, rank_text, shorten


@dataclass(frozen=True)
class Answer:
    """An answer in a few words, and the sentences behind it."""

    short: str
    long: str


@dataclass(frozen=True)
class Verdict:
    """What the numbers of one metric say.

    Attributes
    ----------
    metric : str
    winner, lead, significant : Answer
        Which method is best, by how much, and whether that is significant.
    not_different : tuple of str
        The methods that are not significantly different from the winner; empty where nothing was
        tested.
    test : str
        The test that this rests on, with its p where it has one; "" where nothing was tested.
    """

    metric: str
    winner: Answer
    lead: Answer
    significant: Answer
    not_different: tuple[str, ...] = ()
    test: str = ""


def _name(name: str) -> str:
    return shorten(name, 40)


def verdict(compared: Compared) -> Verdict:
    """Return which method is best, by how much, and whether that is significant.

    Parameters
    ----------
    compared : Compared
        From :func:`imcc.report._results.compare_common_runs`.
    """
    metric = compared.scores.metric
    comparison = compared.comparison
    if comparison is None:
        nothing = Answer("Not known", f"Nothing can be compared: {compared.reason}.")
        return Verdict(metric, nothing, nothing, nothing)
    if len(comparison.methods) == 1:
        return _alone(comparison)
    leaders = _leaders(comparison)
    if len(comparison.datasets) == 1:
        return _one_dataset(comparison, leaders)
    return _many_datasets(comparison, leaders)


def _leaders(comparison: Comparison) -> list[int]:
    """Return the methods with the best mean rank; more than one if they tie."""
    best = comparison.mean_ranks.min()
    return [i for i in comparison.order if np.isclose(comparison.mean_ranks[i], best)]


def _value(comparison: Comparison, method: int) -> str:
    """Return mean ± std of a method on the only data set."""
    text = number(float(comparison.means[0, method]))
    std = float(comparison.stds[0, method])
    return text if np.isnan(std) else f"{text} ± {number(std)}"


def _alone(comparison: Comparison) -> Verdict:
    name, metric = _name(comparison.methods[0]), metric_title(comparison.metric)
    n = len(comparison.datasets)
    where = f"on {_name(comparison.datasets[0])}" if n == 1 else f"mean over {n} data sets"
    mean = number(float(comparison.means.mean()))
    only = Answer("One method only", f"{name} is the only method that can be compared.")
    by = Answer(mean, f"The {metric} of {name}, {where}.")
    return Verdict(
        comparison.metric, only, by, Answer("Not known", "There is nothing to test against.")
    )


def _one_dataset(comparison: Comparison, leaders: list[int]) -> Verdict:
    metric, dataset = metric_title(comparison.metric), _name(comparison.datasets[0])
    names = [_name(comparison.methods[i]) for i in leaders]
    first = leaders[0]
    n = int(comparison.counts[0, first])
    over = f"over {counted(n, 'random split')}"
    share = "share" if len(names) > 1 else "has"
    winner = Answer(
        joined(names),
        f"On {dataset}, {joined(names)} {share} the best mean {metric}: "
        f"{_value(comparison, first)} {over}.",
    )
    rest = [i for i in comparison.order if i not in leaders]
    if not rest:
        none = Answer("Not at all", f"All methods have the same mean {metric} on {dataset}.")
        return Verdict(comparison.metric, winner, none, Answer("No", "There is no difference."))
    second = rest[0]
    apart = abs(float(comparison.means[0, first] - comparison.means[0, second]))
    lead = Answer(
        number(apart),
        f"Next is {_name(comparison.methods[second])} with {_value(comparison, second)}.",
    )
    caution = (
        f"One data set says nothing about others: whether {joined(names)} is better in general "
        "cannot be concluded from it."
    )
    wins = comparison.significant_wins
    if wins is None:
        short = Answer("Not known", f"With one split there is no spread to test. {caution}")
        return Verdict(comparison.metric, winner, lead, short)
    beaten = [i for i in rest if wins.wins[first, i]]
    alike = tuple(comparison.methods[i] for i in rest if i not in beaten)
    test = (
        f"by a t test {over} (corrected for their overlap, level {comparison.alpha:g}, not "
        "adjusted for the number of methods)"
    )
    return Verdict(
        comparison.metric,
        winner,
        lead,
        Answer(
            _against(len(beaten), len(rest)),
            f"On this data set, {_differs(names[0], beaten, alike, comparison)} {test}. {caution}",
        ),
        alike,
        "t test over the splits",
    )


def _many_datasets(comparison: Comparison, leaders: list[int]) -> Verdict:
    names = [_name(comparison.methods[i]) for i in leaders]
    first, n = leaders[0], len(comparison.datasets)
    rest = [i for i in comparison.order if i not in leaders]
    rank = rank_text(float(comparison.mean_ranks[first]))
    share = "share the best mean rank" if len(names) > 1 else "has the best mean rank"
    of = f"of {counted(len(comparison.methods), 'method')} on {counted(n, 'data set')}"
    winner = Answer(
        joined(names),
        f"{joined(names)} {share} {of}: {rank}. {_firsts(comparison, leaders)}",
    )
    if not rest:
        none = Answer("Not at all", "All methods have the same mean rank.")
        no = Answer("No", "The mean ranks do not differ, so there is nothing to test.")
        return Verdict(comparison.metric, winner, none, no, comparison.methods)
    lead = _lead(comparison, first, rest[0])
    if len(leaders) > 1:
        no = Answer("No", f"{joined(names)} have the same mean rank: there is no single winner.")
        alike = tuple(comparison.methods[i] for i in leaders)
        return Verdict(comparison.metric, winner, lead, no, alike)
    significant, alike, test = _tested(comparison, first, rest)
    return Verdict(comparison.metric, winner, lead, significant, alike, test)


def _firsts(comparison: Comparison, leaders: list[int]) -> str:
    counts = [
        f"{_name(comparison.methods[i])} on {int(comparison.podium.n_first[i])}" for i in leaders
    ]
    return f"First of all (alone or in a tie): {joined(counts)} of {comparison.podium.n_rows}."


def _lead(comparison: Comparison, first: int, second: int) -> Answer:
    metric = metric_title(comparison.metric)
    difference = comparison.means[:, first] - comparison.means[:, second]
    better = difference if comparison.greater_is_better else -difference
    mean = float(better.mean())
    ranks = comparison.mean_ranks
    wins = comparison.wins
    gap = rank_text(float(ranks[second] - ranks[first]))
    return Answer(
        f"{gap} rank" if gap == "1" else f"{gap} ranks",
        f"Next is {_name(comparison.methods[second])}, mean rank "
        f"{rank_text(float(ranks[second]))}. Against it: better on {wins.wins[first, second]}, "
        f"equal on {wins.ties[first, second]}, worse on {wins.losses[first, second]} data sets; "
        f"{metric} {number(abs(mean))} {'better' if mean >= 0 else 'worse'} on average.",
    )


def _tested(
    comparison: Comparison, first: int, rest: list[int]
) -> tuple[Answer, tuple[str, ...], str]:
    """Return which methods the winner differs from, by the test that fits the number of methods."""
    level = f"at the level {comparison.alpha:g}"
    if len(comparison.methods) == 2:
        return _tested_pair(comparison, first, rest[0], level)
    friedman, nemenyi = comparison.friedman, comparison.nemenyi
    assert friedman is not None
    assert nemenyi is not None
    p = float(friedman.f_p)
    if not friedman.significant:
        text = (
            f"Friedman's test finds no significant difference {level} ({p_text(p)}), "
            "so no two of them are compared further."
        )
        alike = tuple(comparison.methods[i] for i in rest)
        return Answer("No", text), alike, f"Friedman, {p_text(p)}"
    control = comparison.control_ranks
    if control is not None and control.control == first:
        different, test = control.bonferroni_dunn_significant, "Bonferroni and Dunn's"
    else:
        different, test = nemenyi.significant[first], "Nemenyi's"
    beaten = [i for i in rest if different[i]]
    alike = tuple(comparison.methods[i] for i in rest if i not in beaten)
    text = (
        f"The methods differ (Friedman's test, {p_text(p)}). By {test} test of the mean ranks, "
        f"{_differs(_name(comparison.methods[first]), beaten, alike, comparison)} {level}."
    )
    return Answer(_against(len(beaten), len(rest)), text), alike, f"Friedman, {p_text(p)}"


def _tested_pair(
    comparison: Comparison, first: int, second: int, level: str
) -> tuple[Answer, tuple[str, ...], str]:
    assert comparison.wilcoxon is not None
    p = float(comparison.wilcoxon.p[first, second])
    different = p < comparison.alpha
    text = (
        f"Wilcoxon's signed-rank test over {counted(len(comparison.datasets), 'data set')} "
        f"finds {'a' if different else 'no'} significant difference between "
        f"{_name(comparison.methods[first])} and {_name(comparison.methods[second])} {level} "
        f"({p_text(p)})."
    )
    alike = () if different else (comparison.methods[second],)
    return Answer("Yes" if different else "No", text), alike, f"Wilcoxon, {p_text(p)}"


def _differs(name: str, beaten: list[int], alike: tuple[str, ...], comparison: Comparison) -> str:
    if not beaten:
        return f"{name} is not significantly different from any of the others"
    text = f"{name} is better than {joined(_name(comparison.methods[i]) for i in beaten)}"
    if alike:
        text += (
            f"; it is not significantly different from {joined(_name(other) for other in alike)}"
        )
    return text


def _against(n: int, of: int) -> str:
    if n == of:
        return {1: "Yes", 2: "Yes, against both"}.get(of, f"Yes, against all {of}")
    return "No" if n == 0 else f"Against {n} of {of}"
