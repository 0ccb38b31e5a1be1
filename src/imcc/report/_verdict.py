"""Texts on which method is best, by how much, whether significantly, and when not to use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imcc.comparison import Comparison, effect_size
from imcc.comparison._table import FEWEST
from imcc.experiment import Run
from imcc.report._results import Panel, leaders
from imcc.report._times import gather_times
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
# Minimum number of data sets for an interval.
_FEW = 3
# The end of the sentence on pairs, if all of them differ.
_AS_WELL = " as well."

# A short answer and its explanation.
Answer = tuple[str, str]


@dataclass(frozen=True)
class Verdict:
    """Conclusions from the results by one metric.

    Attributes
    ----------
    winner, lead, significant : (str, str)
        Which method is best, by how much, and whether that is significant: a short answer and its
        explanation.
    not_different : tuple of str
        The methods that are not significantly different from the winner; empty if nothing was
        tested.
    test : str
        The test, with its p-value if it has one; "" if nothing was tested.
    """

    winner: Answer
    lead: Answer
    significant: Answer
    not_different: tuple[str, ...] = ()
    test: str = ""


def _name(name: str) -> str:
    return shorten(name, 40)


def verdict(panel: Panel) -> Verdict:
    """Return which method is best, by how much, and whether that is significant."""
    comparison = panel.comparison
    if comparison is None:
        unknown = ("Not known", "The methods have no repetition in common on any data set.")
        return Verdict(unknown, unknown, unknown)
    first = leaders(comparison)
    rest = [i for i in comparison.order if i not in first]
    names = joined(_name(comparison.methods[i]) for i in first)
    if len(comparison.methods) == 1:
        unknown = ("Not known", "There is nothing to compare it with.")
        only = f"{names} is the only method that can be compared."
        return Verdict(("One method only", only), unknown, unknown)
    winner = (names, _winner_text(comparison, first, names))
    if not rest:
        none = ("Not at all", "All methods have the same mean rank.")
        return Verdict(winner, none, ("No", none[1]), comparison.methods)
    lead = _lead(panel, comparison, first[0], rest[0])
    return Verdict(winner, lead, *_tested(comparison, *first, *rest))


def _winner_text(comparison: Comparison, first: list[int], names: str) -> str:
    metric, n = metric_title(comparison.metric), len(comparison.datasets)
    verb = "share" if len(first) > 1 else "has"
    if n == 1:
        n_splits = counted(int(comparison.counts[0, first[0]]), "random split")
        return (
            f"On {_name(comparison.datasets[0])}, {names} {verb} the best mean {metric}: "
            f"{_value(comparison, first[0])} over {n_splits}."
        )
    counts = [f"{_name(comparison.methods[i])} on {comparison.n_first[i]}" for i in first]
    alone = f"It is first, alone or in a tie, on {comparison.n_first[first[0]]} of {n}."
    return (
        f"{names} {verb} the best mean rank by {metric}, "
        f"{rank_text(comparison.mean_ranks[first[0]])} of "
        f"{counted(len(comparison.methods), 'method')} on {counted(n, 'data set')}. "
        + (alone if len(first) == 1 else f"First, alone or in a tie: {joined(counts)} of {n}.")
    )


def _value(comparison: Comparison, method: int) -> str:
    """Return mean ± std of a method on the only data set."""
    text, std = number(comparison.means[0, method]), comparison.stds[0, method]
    return text if np.isnan(std) else f"{text} ± {number(std)}"


def _lead(panel: Panel, comparison: Comparison, first: int, second: int) -> Answer:
    """Return the lead of the winner over the next method and the control."""
    winner, following = comparison.methods[first], comparison.methods[second]
    if len(comparison.datasets) == 1:
        apart = abs(comparison.means[0, first] - comparison.means[0, second])
        return number(apart), f"Next is {_name(following)} with {_value(comparison, second)}."
    parts = []
    for other in dict.fromkeys((following, comparison.control)):
        if other in (None, winner):
            continue
        differences = np.round(panel.scores.differences(winner, other), 12)
        n, n_better = len(differences), int((differences > 0).sum())
        mean, (_, high) = effect_size(differences)
        half = f" ± {high - mean:.4f}" if n >= _FEW else ""
        parts.append(
            f"{signed(mean)}{half} against {_name(other)} (better on {n_better} of "
            f"{counted(n, 'data set')})"
        )
    interval = ", with 95 % intervals" if len(comparison.datasets) >= _FEW else ""
    lead = panel.scores.differences(winner, following).mean()
    return f"{signed(lead)} against {_name(following)}", (
        f"Next is {_name(following)}, mean rank {rank_text(comparison.mean_ranks[second])}. Mean "
        f"difference in {metric_title(comparison.metric)}, positive where {_name(winner)} is "
        f"better{interval}: {'; '.join(parts)}."
    )


def _tested(comparison: Comparison, first: int, *rest: int) -> tuple[Answer, tuple[str, ...], str]:
    """Return which methods the winner differs from, by a test for this number of methods."""
    n = len(comparison.datasets)
    level = f"at the level {comparison.alpha:g}"
    more = ""
    if n == 1:
        more = " One data set does not show which method is better on others."
        if comparison.significant_wins is None:
            return ("Not known", f"With one split there is no spread to test.{more}"), (), ""
        beaten = [i for i in rest if comparison.significant_wins[first, i]]
        n_splits = counted(int(comparison.counts[0, first]), "random split")
        how = (
            f"On this data set, by a t test over {n_splits} (corrected for their overlap, not "
            "adjusted for the number of methods),"
        )
        test = "t test over the splits"
    elif comparison.wilcoxon is not None and len(comparison.methods) == 2:
        p = float(comparison.wilcoxon.p[first, rest[0]])
        beaten = list(rest) if p < comparison.alpha else []
        how = f"By Wilcoxon's signed-rank test over {counted(n, 'data set')} ({p_text(p)}),"
        test = f"Wilcoxon, {p_text(p)}"
    else:
        friedman, against = comparison.friedman, comparison.against_control
        assert friedman is not None
        assert comparison.nemenyi is not None
        test = f"Friedman, {p_text(friedman.f_p)}"
        if not friedman.significant:
            text = (
                f"Friedman's test finds no significant difference {level} "
                f"({p_text(friedman.f_p)}), so no two of them are compared further."
            )
            return ("No", text), tuple(comparison.methods[i] for i in rest), test
        differs, name = comparison.nemenyi.significant[first], "Nemenyi's"
        if against is not None and against.control == first:
            differs, name = against.ranks_differ, "Bonferroni and Dunn's"
        beaten = [i for i in rest if differs[i]]
        how = (
            f"The methods differ (Friedman's test, {p_text(friedman.f_p)}). By {name} test of the "
            "mean ranks,"
        )
        more = _pair_by_pair(comparison, first, [i for i in rest if i not in beaten])
    alike = tuple(comparison.methods[i] for i in rest if i not in beaten)
    short = f"Against {len(beaten)} of {len(rest)}" if beaten else "No"
    if not alike:
        short = {1: "Yes", 2: "Yes, against both"}.get(len(rest), f"Yes, against all {len(rest)}")
    elif more.endswith(_AS_WELL):
        short += ", pair by pair against all"
    parts = []
    if beaten:
        parts.append(f"is better than {joined(_name(comparison.methods[i]) for i in beaten)}")
    if alike:
        parts.append(f"is not significantly different from {joined(map(_name, alike))}")
    text = f"{how} {_name(comparison.methods[first])} {'; it '.join(parts)} {level}.{more}"
    return (short, text), alike, test


def _pair_by_pair(comparison: Comparison, first: int, alike: list[int]) -> str:
    """Return the result of Wilcoxon's test, which does not depend on the other methods."""
    n, pairs = len(comparison.datasets), comparison.wilcoxon
    if pairs is None or not alike:
        return ""
    if n < FEWEST:
        return f" Pair by pair nothing can be found with {n} data sets (Wilcoxon's test)."
    differ = [_name(comparison.methods[i]) for i in alike if pairs.significant[first, i]]
    same = [_name(comparison.methods[i]) for i in alike if not pairs.significant[first, i]]
    text = " Pair by pair (Wilcoxon's test, Holm's adjustment for all pairs) it "
    if not differ:
        return text + f"does not differ from {joined(same)} either."
    text += f"differs from {joined(differ)}"
    return text + (f", not from {joined(same)}." if same else _AS_WELL)


def when_not(panel: Panel, others: Sequence[Panel], runs: Sequence[Run]) -> Answer:
    """Return where the winner is not first, and its training time.

    Parameters
    ----------
    panel : Panel
        Comparison by the main metric.
    others : sequence of Panel
        Comparisons by the other metrics.
    runs : sequence of Run
        Runs, for the times.
    """
    comparison = panel.comparison
    if comparison is None or len(comparison.methods) == 1:
        return "Not known", "There is nothing to compare it with."
    best = leaders(comparison)[0]
    winner, n_sets = comparison.methods[best], len(comparison.datasets)
    time, slow = _time_text(comparison, winner, verdict(panel).not_different, runs)
    short = ["where training time matters"] if slow else []
    texts = [f"About {_name(winner)}:"] if len(leaders(comparison)) > 1 else []
    places = []
    for dataset, ranks in zip(comparison.datasets, comparison.ranks, strict=True):
        first = np.flatnonzero(ranks == ranks.min())
        if best not in first:
            names = joined(_name(comparison.methods[i]) for i in first)
            places.append(f"{_name(dataset)} ({names})")
    if places:
        short.append(f"on {len(places)} of {counted(n_sets, 'data set')}")
        unnamed = [f"{len(places) - _NAMED} more"] if len(places) > _NAMED else []
        texts.append(f"It is not first on {joined(places[:_NAMED] + unnamed)}.")
    elif n_sets > 1:
        texts.append(f"It is first, alone or in a tie, on all {n_sets} data sets.")
    for method, result in panel.partial.items():
        own, other = (result.mean_ranks[result.methods.index(m)] for m in (winner, method))
        if other < own:
            n = counted(len(result.datasets), "data set")
            short.append(f"on the {n} of {_name(method)}")
            texts.append(
                f"{_name(method)}, not ranked above, has a better mean rank on the {n} that it "
                f"has: {rank_text(other)}, not {rank_text(own)}."
            )
    compared = [p.comparison for p in others if p.comparison and winner in p.comparison.methods]
    lost = []
    for result in compared:
        bests = [result.methods[i] for i in leaders(result)]
        if winner not in bests:
            lost.append(f"{metric_title(result.metric)} ({joined(map(_name, bests))})")
    if lost:
        short.append(f"by {len(lost)} of {counted(len(compared) + 1, 'metric')}")
        texts.append(f"By other metrics it is not the best: {joined(lost)}.")
    elif compared:
        texts.append(f"It is the best by all {len(compared) + 1} metrics.")
    return capital(joined(short)) or "No case found", " ".join([*texts, time])


def _time_text(
    comparison: Comparison, winner: str, alike: Sequence[str], runs: Sequence[Run]
) -> tuple[str, bool]:
    """Return a sentence on the training times of the winner, and whether another is much faster.

    The winner is compared with the best method that is not significantly different and faster (or
    the next one), the control, and the fastest, on the kind of device on which it has most data
    sets.
    """
    threads, times, _ = gather_times(runs) if runs else (0, [], 0)
    own = max((t for t in times if t.method == winner), key=lambda t: len(t.seconds), default=None)
    rivals = {
        t.method: t
        for t in times
        if own is not None
        and t.place == own.place
        and t.method in comparison.methods
        and t.seconds.keys() & own.seconds.keys()
        and t is not own
    }
    if own is None or not rivals:
        text = "No two methods have times with the same device and number of threads, so that "
        return text + "nothing can be said about cost.", False
    ordered = [comparison.methods[i] for i in comparison.order if comparison.methods[i] in rivals]
    factors = {method: own.ratio(rivals[method]) for method in ordered}
    faster = [m for m in ordered if m in alike and factors[m] >= _SLOWER]
    fastest = max(ordered, key=lambda m: factors[m])
    chosen = dict.fromkeys(((faster or ordered)[0], comparison.control, fastest))
    parts = []
    for method in chosen:
        if method in factors:
            factor, other = factors[method], rivals[method]
            times_as = f"{factor:.2g} times" if factor < 99.5 else f"{factor:,.0f} times"
            how = "about" if 0.95 < factor < 1.05 else times_as
            same = "not significantly different; " if method in alike else ""
            n = counted(len(own.seconds.keys() & other.seconds.keys()), "data set")
            machines = "" if own.machines == other.machines else ", on different machines"
            parts.append(f"{how} as long as {_name(method)} ({same}{own.place}, {n}{machines})")
    with_threads = f" (with {counted(threads, 'thread')})" if threads else ""
    text = f"Its search and training{with_threads} take {joined(parts)}."
    return text, any(factors[m] >= _SLOWER for m in chosen if m in factors)
