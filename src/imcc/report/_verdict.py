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


def _names(comparison: Comparison) -> list[str]:
    return [shorten(name, 40) for name in comparison.methods]


def verdict(panel: Panel) -> Verdict:
    """Return which method is best, by how much, and whether that is significant."""
    comparison = panel.comparison
    if comparison is None:
        unknown = ("Not known", "The methods have no repetition in common on any data set.")
        return Verdict(unknown, unknown, unknown)
    first = leaders(comparison)
    rest = [i for i in comparison.order if i not in first]
    names = _names(comparison)
    leading = joined(names[i] for i in first)
    if len(names) == 1:
        unknown = ("Not known", "There is nothing to compare it with.")
        only = f"{leading} is the only method that can be compared."
        return Verdict(("One method only", only), unknown, unknown)
    metric, n = metric_title(comparison.metric), len(comparison.datasets)
    verb = "share" if len(first) > 1 else "has"
    if n == 1:
        n_splits = counted(int(comparison.counts[0, first[0]]), "random split")
        text = (
            f"On {shorten(comparison.datasets[0], 40)}, {leading} {verb} the best mean {metric}: "
            f"{_value(comparison, first[0])} over {n_splits}."
        )
    else:
        text = (
            f"{leading} {verb} the best mean rank by {metric}, "
            f"{rank_text(comparison.mean_ranks[first[0]])} of {counted(len(names), 'method')} on "
            f"{counted(n, 'data set')}. First, alone or in a tie: "
            f"{joined(f'{names[i]} on {comparison.n_first[i]}' for i in first)} of {n}."
        )
    winner = (leading, text)
    if not rest:
        none = ("Not at all", "All methods have the same mean rank.")
        return Verdict(winner, none, ("No", none[1]), comparison.methods)
    lead = _lead(panel, comparison, first[0], rest[0])
    return Verdict(winner, lead, *_tested(comparison, *first, *rest))


def _value(comparison: Comparison, method: int) -> str:
    """Return mean ± std of a method on the only data set."""
    text, std = number(comparison.means[0, method]), comparison.stds[0, method]
    return text if np.isnan(std) else f"{text} ± {number(std)}"


def _lead(panel: Panel, comparison: Comparison, first: int, second: int) -> Answer:
    """Return the lead of the winner over the next method and the control."""
    winner, following = comparison.methods[first], comparison.methods[second]
    following_name = _names(comparison)[second]
    if len(comparison.datasets) == 1:
        apart = abs(comparison.means[0, first] - comparison.means[0, second])
        return number(apart), f"Next is {following_name} with {_value(comparison, second)}."
    parts = []
    for other in dict.fromkeys((following, comparison.control)):
        if other in (None, winner):
            continue
        differences = np.round(panel.scores.differences(winner, other), 12)
        n, n_better = len(differences), int((differences > 0).sum())
        mean, (_, high) = effect_size(differences)
        half = f" ± {high - mean:.4f}" if n >= _FEW else ""
        better = f"better on {n_better} of {counted(n, 'data set')}"
        parts.append(f"{signed(mean)}{half} against {shorten(other, 40)} ({better})")
    interval = ", with 95 % intervals" if len(comparison.datasets) >= _FEW else ""
    lead = panel.scores.differences(winner, following).mean()
    return f"{signed(lead)} against {following_name}", (
        f"Next is {following_name}, mean rank {rank_text(comparison.mean_ranks[second])}. Mean "
        f"difference in {metric_title(comparison.metric)}, positive where {shorten(winner, 40)} is "
        f"better{interval}: {'; '.join(parts)}."
    )


def _tested(comparison: Comparison, first: int, *rest: int) -> tuple[Answer, tuple[str, ...], str]:
    """Return which methods the winner differs from, by a test for this number of methods."""
    names, n = _names(comparison), len(comparison.datasets)
    level = f"at the level {comparison.alpha:g}"
    more = ""
    friedman, nemenyi, wilcoxon = comparison.friedman, comparison.nemenyi, comparison.wilcoxon
    if friedman is None or nemenyi is None or wilcoxon is None:
        more = " One data set does not show which method is better on others."
        if comparison.significant_wins is None:
            return ("Not known", f"With one split there is no spread to test.{more}"), (), ""
        differs = comparison.significant_wins[first] > 0
        n_splits = counted(int(comparison.counts[0, first]), "random split")
        how = (
            f"On this data set, by a t test over {n_splits} (corrected for their overlap, not "
            "adjusted for the number of methods),"
        )
        test = "t test over the splits"
    elif len(names) == 2:
        p = p_text(float(wilcoxon.p[first, rest[0]]))
        differs = wilcoxon.significant[first]
        how = f"By Wilcoxon's signed-rank test over {counted(n, 'data set')} ({p}),"
        test = f"Wilcoxon, {p}"
    else:
        p = p_text(friedman.f_p)
        test = f"Friedman, {p}"
        if not friedman.significant:
            text = (
                f"Friedman's test finds no significant difference {level} ({p}), so no two of them "
                "are compared further."
            )
            return ("No", text), tuple(comparison.methods[i] for i in rest), test
        against = comparison.against_control
        differs, name = nemenyi.significant[first], "Nemenyi's"
        if against is not None and against.control == first:
            differs, name = against.ranks_differ, "Bonferroni and Dunn's"
        how = f"The methods differ (Friedman's test, {p}). By {name} test of the mean ranks,"
        unlike = [names[i] for i in rest if not differs[i] and wilcoxon.significant[first, i]]
        if not all(differs[i] for i in rest):
            more = (
                " Pair by pair (Wilcoxon's test, Holm's adjustment for all pairs) it also differs "
                f"from {joined(unlike) or 'none of these'}."
            )
    if 1 < n < FEWEST:
        more = f" With fewer than {FEWEST} data sets, Wilcoxon's test cannot find a difference."
    beaten = [i for i in rest if differs[i]]
    alike = [i for i in rest if not differs[i]]
    short = f"Against {len(beaten)} of {len(rest)}" if beaten else "No"
    if not alike:
        short = {1: "Yes", 2: "Yes, against both"}.get(len(rest), f"Yes, against all {len(rest)}")
    parts = []
    if beaten:
        parts.append(f"is better than {joined(names[i] for i in beaten)}")
    if alike:
        parts.append(f"is not significantly different from {joined(names[i] for i in alike)}")
    text = f"{how} {names[first]} {'; it '.join(parts)} {level}.{more}"
    return (short, text), tuple(comparison.methods[i] for i in alike), test


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
    best, names = leaders(comparison)[0], _names(comparison)
    winner, n_sets = comparison.methods[best], len(comparison.datasets)
    time, slow = _time_text(comparison, winner, verdict(panel).not_different, runs)
    short = ["where training time matters"] if slow else []
    texts = [f"About {names[best]}:"] if len(leaders(comparison)) > 1 else []
    places = []
    for dataset, ranks in zip(comparison.datasets, comparison.ranks, strict=True):
        if ranks[best] > ranks.min():
            ahead = joined(names[i] for i in np.flatnonzero(ranks == ranks.min()))
            places.append(f"{shorten(dataset, 40)} ({ahead})")
    if places:
        short.append(f"on {len(places)} of {counted(n_sets, 'data set')}")
        unnamed = [f"{len(places) - _NAMED} more"] if len(places) > _NAMED else []
        texts.append(f"It is not first on {joined(places[:_NAMED] + unnamed)}.")
    elif n_sets > 1:
        texts.append(f"It is first, alone or in a tie, on all {n_sets} data sets.")
    compared = [p.comparison for p in others if p.comparison and winner in p.comparison.methods]
    lost = []
    for result in compared:
        if winner not in [result.methods[i] for i in leaders(result)]:
            ahead = joined(_names(result)[i] for i in leaders(result))
            lost.append(f"{metric_title(result.metric)} ({ahead})")
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

    The winner is compared with the best method that is not significantly different (or the next
    one), the control, and the fastest, on the kind of device on which it has most data sets.
    """
    threads, times, _ = gather_times(runs) if runs else (0, [], 0)
    own = max((t for t in times if t.method == winner), key=lambda t: len(t.seconds), default=None)
    rivals = {
        t.method: t
        for t in times
        if own is not None and t is not own and t.place == own.place and own.shared(t)
    }
    ordered = [comparison.methods[i] for i in comparison.order if comparison.methods[i] in rivals]
    if own is None or not ordered:
        text = "No two methods have times with the same device and number of threads, so that "
        return text + "nothing can be said about cost.", False
    factors = {method: own.ratio(rivals[method]) for method in ordered}
    next_best = next((m for m in ordered if m in alike), ordered[0])
    fastest = max(ordered, key=lambda m: factors[m])
    chosen = [m for m in dict.fromkeys((next_best, comparison.control, fastest)) if m in factors]
    parts = []
    for method in chosen:
        factor, n = factors[method], counted(len(own.shared(rivals[method])), "data set")
        times_as = f"{factor:.2g} times" if factor < 99.5 else f"{factor:,.0f} times"
        as_long = "about" if 0.95 < factor < 1.05 else times_as
        same = "not significantly different; " if method in alike else ""
        machines = "" if own.machines == rivals[method].machines else ", on different machines"
        name = shorten(method, 40)
        parts.append(f"{as_long} as long as {name} ({same}{own.place}, {n}{machines})")
    with_threads = f" (with {counted(threads, 'thread')})" if threads else ""
    text = f"Its search and training{with_threads} take {joined(parts)}."
    return text, any(factors[m] >= _SLOWER for m in chosen)
