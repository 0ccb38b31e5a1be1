"""Texts on which method is best, by how much, whether significantly, and when not to use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from imcc.comparison import Comparison
from imcc.experiment import Run
from imcc.report._cost import TimeRatio, gather_times, time_ratio
from imcc.report._ranked import DECIMALS, FEWEST, Gap, behind, gaps, not_different, shared
from imcc.report._results import Compared
from imcc.report._words import (
    capital,
    counted,
    joined,
    metric_title,
    number,
    p_text,
    rank_text,
    shorten,
    signed,
)

# Times are often measured under load: smaller factors than this are not meaningful.
_SLOWER = 1.5
# Maximum number of data sets that are named; the others are counted.
_NAMED = 6


@dataclass(frozen=True)
class Answer:
    """A short answer and its explanation."""

    short: str
    long: str


@dataclass(frozen=True)
class Verdict:
    """Conclusions from the results by one metric.

    Attributes
    ----------
    metric : str
    winner, lead, significant : Answer
        Which method is best, by how much, and whether that is significant.
    not_different : tuple of str
        The methods that are not significantly different from the winner; empty if nothing was
        tested.
    test : str
        The test, with its p-value if it has one; "" if nothing was tested.
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
    return _many_datasets(compared, comparison, leaders)


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


def _many_datasets(compared: Compared, comparison: Comparison, leaders: list[int]) -> Verdict:
    names = [_name(comparison.methods[i]) for i in leaders]
    first, n = leaders[0], len(comparison.datasets)
    rest = [i for i in comparison.order if i not in leaders]
    rank = rank_text(float(comparison.mean_ranks[first]))
    share = "share the best mean rank" if len(names) > 1 else "has the best mean rank"
    of = f"of {counted(len(comparison.methods), 'method')} on {counted(n, 'data set')}"
    winner = Answer(
        joined(names),
        f"{joined(names)} {share} by {metric_title(comparison.metric)}, {rank} {of}. "
        f"{_firsts(comparison, leaders)}",
    )
    if not rest:
        none = Answer("Not at all", "All methods have the same mean rank.")
        no = Answer("No", "The mean ranks do not differ, so there is nothing to test.")
        return Verdict(comparison.metric, winner, none, no, comparison.methods)
    lead = _lead(compared, comparison, first, rest[0])
    if len(leaders) > 1:
        no = Answer("No", f"{joined(names)} have the same mean rank: there is no single winner.")
        alike = tuple(comparison.methods[i] for i in leaders)
        return Verdict(comparison.metric, winner, lead, no, alike)
    significant, alike, test = _tested(comparison, first, rest)
    return Verdict(comparison.metric, winner, lead, significant, alike, test)


def _firsts(comparison: Comparison, leaders: list[int]) -> str:
    n_first, n = comparison.podium.n_first, comparison.podium.n_rows
    if len(leaders) == 1:
        return f"It is first, alone or in a tie, on {int(n_first[leaders[0]])} of {n}."
    counts = [f"{_name(comparison.methods[i])} on {int(n_first[i])}" for i in leaders]
    return f"First, alone or in a tie: {joined(counts)} of {n}."


def _lead(compared: Compared, comparison: Comparison, first: int, second: int) -> Answer:
    """Return the lead of the winner over the next method, the control and the nearest method."""
    name, following = comparison.methods[first], comparison.methods[second]
    ranks = comparison.mean_ranks
    found = gaps(compared.scores, name)
    by_name = {gap.method: gap for gap in found}
    if following not in by_name:  # hardly a data set in common, although ranked together
        gap = rank_text(float(ranks[second] - ranks[first]))
        short = f"{gap} rank" if gap == "1" else f"{gap} ranks"
        return Answer(short, f"Next is {_name(following)}, mean rank {_rank(ranks[second])}.")
    shown = [following]
    if comparison.control is not None:
        shown.append(comparison.control)
    shown.append(found[0].method)  # of all methods, also of those that lack data sets
    shown = [m for m in dict.fromkeys(shown) if m in by_name and m != name]
    nearest = found[0].method
    parts = [_difference(by_name[m], m == nearest and len(found) > 2) for m in shown]
    interval = ", with 95 % intervals" if by_name[following].half is not None else ""
    near = ""
    if nearest != following:
        near = f", {signed(by_name[nearest].size.mean)} against {_name(nearest)}"
    return Answer(
        f"{signed(by_name[following].size.mean)} against {_name(following)}{near}",
        f"Next is {_name(following)}, mean rank {_rank(ranks[second])}. Mean difference in "
        f"{metric_title(comparison.metric)}, positive where {_name(name)} is better{interval}: "
        f"{'; '.join(parts)}.",
    )


def _rank(rank: float) -> str:
    return rank_text(float(rank))


def _difference(gap: Gap, nearest: bool) -> str:
    half = "" if gap.half is None else f" ± {gap.half:.4f}"
    equal = f", equal on {gap.n_equal}" if gap.n_equal else ""
    return (
        f"{signed(gap.size.mean)}{half} against {_name(gap.method)}"
        + (", the nearest of all" if nearest else "")
        + f" (better on {gap.n_better} of {counted(gap.n, 'data set')}{equal})"
    )


def _tested(
    comparison: Comparison, first: int, rest: list[int]
) -> tuple[Answer, tuple[str, ...], str]:
    """Return which methods the winner differs from, by a test for this number of methods."""
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
        same = not_different(comparison, comparison.methods[first])
        different = np.array([method not in same for method in comparison.methods])
        test = "Nemenyi's"
    beaten = [i for i in rest if different[i]]
    alike = tuple(comparison.methods[i] for i in rest if i not in beaten)
    text = (
        f"The methods differ (Friedman's test, {p_text(p)}). By {test} test of the mean ranks, "
        f"{_differs(_name(comparison.methods[first]), beaten, alike, comparison)} {level}."
        + _by_pairs(comparison, first, alike)
    )
    short = _against(len(beaten), len(rest))
    if alike and set(alike) == set(_differ_by_pairs(comparison, first, alike)):
        short += ", pair by pair against all"
    return Answer(short, text), alike, f"Friedman, {p_text(p)}"


def _differ_by_pairs(comparison: Comparison, first: int, alike: tuple[str, ...]) -> list[str]:
    pairs = comparison.wilcoxon
    if pairs is None:
        return []
    return [m for m in alike if pairs.significant[first, comparison.methods.index(m)]]


def _by_pairs(comparison: Comparison, first: int, alike: tuple[str, ...]) -> str:
    """Return the result of Wilcoxon's test, which does not depend on the other methods."""
    if comparison.wilcoxon is None or not alike:
        return ""
    n = len(comparison.datasets)
    if n < FEWEST:
        return f" Pair by pair nothing can be found with {n} data sets (Wilcoxon's test)."
    differ = _differ_by_pairs(comparison, first, alike)
    test = " Pair by pair (Wilcoxon's test, Holm's adjustment for all pairs) "
    if not differ:
        these = "any of these" if len(alike) > 1 else "it"
        return f"{test}it does not differ from {these} either."
    same = [m for m in alike if m not in differ]
    text = f"{test}it differs from {joined(_name(m) for m in differ)}"
    return text + (f", not from {joined(_name(m) for m in same)}." if same else " as well.")


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


def when_not(compared: Compared, others: Sequence[Compared], runs: Sequence[Run]) -> Answer:
    """Return where the winner is not first, and its training time.

    Parameters
    ----------
    compared : Compared
        Comparison by the main metric.
    others : sequence of Compared
        Comparisons by the other metrics.
    runs : sequence of Run
        Runs, for the times.
    """
    comparison = compared.comparison
    if comparison is None or len(comparison.methods) == 1:
        return Answer("Not known", "There is nothing to compare it with.")
    found = verdict(compared)
    leaders = _leaders(comparison)
    winner = comparison.methods[leaders[0]]
    short, texts = [], []
    times = list(_times(comparison, winner, found.not_different, runs))
    if any(factor >= _SLOWER for factor, _ in times):
        short.append("where training time matters")
    if len(leaders) > 1:
        texts.append(
            f"{joined(_name(comparison.methods[i]) for i in leaders)} are equally good; what "
            f"follows is about {_name(winner)}."
        )
    n_sets = len(comparison.datasets)
    elsewhere = behind(comparison, winner)
    if elsewhere:
        short.append(f"on {len(elsewhere)} of {counted(n_sets, 'data set')}")
        texts.append(f"It is not first on {_places(elsewhere)}.")
    elif n_sets > 1:
        texts.append(f"It is first, alone or in a tie, on all {n_sets} data sets.")
    named = set(comparison.methods)
    for partial in compared.partial:
        if partial.ranks and partial.ranks[partial.method] < partial.ranks[winner]:
            named.add(partial.method)
            texts.append(
                f"{_name(partial.method)}, not ranked above, has a better mean rank on the "
                f"{len(partial.datasets)} data sets that it has: "
                f"{_rank(partial.ranks[partial.method])}, not {_rank(partial.ranks[winner])}."
            )
            n_own = counted(len(partial.datasets), "data set")
            short.append(f"on the {n_own} of {_name(partial.method)}")
    ahead = list(_ahead(compared, winner, [m for m in compared.scores.methods if m not in named]))
    if ahead:
        texts.append(f"Methods that are not ranked are ahead of it on {_places(ahead)}.")
        if not elsewhere:
            short.append(f"on {len(ahead)} of {counted(n_sets, 'data set')}")
    metrics = list(_other_metrics(winner, others))
    lost = [f"{title} ({name})" for title, name in metrics if name]
    if lost:
        texts.append(f"By other metrics it is not the best: {joined(lost)}.")
        short.append(f"by {len(lost)} of {counted(len(metrics) + 1, 'metric')}")
    elif metrics:
        every = "both" if len(metrics) == 1 else f"all {len(metrics) + 1}"
        texts.append(f"It is the best by {every} metrics.")
    texts += [text for _, text in times] or [
        "No two methods have times with the same device and number of threads, so that nothing "
        "can be said about cost."
    ]
    return Answer(capital(joined(short)) or "No case found", " ".join(texts))


def _ahead(
    compared: Compared, winner: str, methods: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield data sets on which some methods have a better mean than the winner, with these.

    Each over the splits that it shares with the winner.
    """
    scores = compared.scores
    sign = 1 if scores.greater_is_better else -1
    found: dict[str, list[str]] = {}
    for method in methods:
        runs = shared(scores, (winner, method))
        for dataset, (own, other) in zip(runs.datasets, sign * runs.mean(), strict=True):
            if round(other - own, DECIMALS) > 0:
                found.setdefault(dataset, []).append(method)
    for dataset in scores.datasets:
        if dataset in found:
            yield dataset, found[dataset]


def _places(places: list[tuple[str, list[str]]]) -> str:
    """Return data sets with the methods that are first, naming at most ``_NAMED`` of them."""
    texts = [
        f"{_name(dataset)} ({joined(_name(m) for m in first)})"
        for dataset, first in places[:_NAMED]
    ]
    more = len(places) - _NAMED
    return joined([*texts, *([f"{more} more"] if more > 0 else [])])


def _other_metrics(winner: str, others: Sequence[Compared]) -> Iterator[tuple[str, str]]:
    """Yield the other metrics with the methods that are best by them; "" if the winner is."""
    for other in others:
        found = other.comparison
        if found is None or winner not in found.methods or len(found.methods) < 2:
            continue
        best = [found.methods[i] for i in _leaders(found)]
        title = metric_title(found.metric)
        yield title, "" if winner in best else joined(_name(m) for m in best)


def _times(
    comparison: Comparison, winner: str, alike: Sequence[str], runs: Sequence[Run]
) -> Iterator[tuple[float, str]]:
    """Yield the largest ratio of training times, and a sentence that compares these times.

    The winner is compared with the best method that is not significantly different and faster (or
    the next one), the control, and the fastest.
    """
    if not runs:
        return
    threads, times, _ = gather_times(runs)
    ratios = {
        comparison.methods[i]: found
        for i in comparison.order
        if comparison.methods[i] != winner
        and (found := time_ratio(times, winner, comparison.methods[i])) is not None
    }
    if not ratios:
        return
    faster = [m for m in ratios if m in alike and ratios[m].factor >= _SLOWER]
    names = [next(iter(faster or ratios)), max(ratios, key=lambda m: ratios[m].factor)]
    if comparison.control in ratios:
        names.insert(1, comparison.control)
    chosen = [ratios[m] for m in dict.fromkeys(names)]
    parts = [_ratio_text(r, r.method in alike) for r in chosen]
    with_threads = f" (with {counted(threads, 'thread')})" if threads else ""
    yield (
        max(r.factor for r in chosen),
        f"Its search and training{with_threads} take {joined(parts)}.",
    )


def _ratio_text(found: TimeRatio, alike: bool) -> str:
    machines = "" if found.same_machine else ", on different machines"
    how = "not significantly different; " if alike else ""
    return (
        f"{_factor(found.factor)} as long as {_name(found.method)} ({how}{found.place}, "
        f"{counted(found.n, 'data set')}{machines})"
    )


def _factor(value: float) -> str:
    if 0.95 < value < 1.05:
        return "about"
    return (f"{value:.2g}" if value < 99.5 else f"{value:,.0f}") + " times"
