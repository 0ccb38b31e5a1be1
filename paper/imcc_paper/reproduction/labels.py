"""Rare and frequent labels: who ranks them best."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from imcc.comparison import Comparison, ScoreTable, compare, effect_size
from imcc.experiment import LABEL_RANGES, Store
from imcc_paper.reproduction.ranked import FEW, differences, not_different
from imcc_paper.reproduction.rows import CONTROL, listed, present, prose, table
from imcc_paper.reproduction.tests import largest_group

#: The ranges of ``LABEL_RANGES`` in words: the share of the training rows that have the label.
RANGE_TITLES = {
    "label_ap_to_1": "at most 1 %",
    "label_ap_1_to_5": "1 to 5 %",
    "label_ap_5_to_20": "5 to 20 %",
    "label_ap_above_20": "more than 20 %",
}


def tables(store: Store) -> dict[str, ScoreTable]:
    """Return the average precision of labels by range of frequencies, of the methods with any."""
    found = {name: store.scores(name) for name in LABEL_RANGES}
    return {name: present(scores) for name, scores in found.items() if scores.counts.any()}


def compared(found: dict[str, ScoreTable]) -> dict[str, Comparison]:
    """Compare, in each range, the largest group of data sets and methods without a gap.

    On the splits that the methods share; see :func:`imcc_paper.reproduction.tests.largest_group`.
    """
    result = {}
    for name, scores in found.items():
        some = scores.select(
            datasets=[d for d, n in zip(scores.datasets, _rows(scores), strict=True) if n]
        )
        datasets, methods = largest_group(some)
        if len(methods) < 2:
            continue
        runs = scores.select(datasets=datasets).common_runs(methods)
        if len(runs.datasets) >= 2:
            result[name] = compare(runs)
    return result


def _rows(scores: ScoreTable) -> list[int]:
    """Return how many runs of a data set have the record."""
    return [int(n) for n in scores.counts.sum(axis=1)]


def frequencies(store: Store) -> Iterator[str]:
    """Yield who is best in each range, the means of each method, and the control's differences."""
    found = tables(store)
    ranked = compared(found)
    if not ranked:
        yield prose("No two methods have rows with the record by frequency of labels yet.")
        return
    yield prose(
        "The average precision of each label by itself (how well the test rows are ordered by the "
        "label's score), as a mean over the labels of a data set, by the share of the training "
        "rows that have the label. A data set counts in a range where it has such labels. Labels "
        "that no training row or no test row has are left out. Older rows have no such record: "
        f"these are {_counts(found)}."
    )
    for name, result in ranked.items():
        yield "* " + prose(_winner(name, result)).replace("\n", "\n  ").rstrip() + "\n"
    yield prose(
        "Mean over data sets, and in brackets the average rank, of as many methods on as many data "
        "sets as have no gap, on the splits that all of them share; the best of a column in bold."
    )
    order = sorted(
        dict.fromkeys(m for result in ranked.values() for m in result.methods),
        key=lambda m: np.mean(
            [r.mean_ranks[r.methods.index(m)] for r in ranked.values() if m in r.methods]
        ),
    )
    titles = [RANGE_TITLES[name] for name in ranked]
    rows = [["(data sets)", *(str(len(result.datasets)) for result in ranked.values())]]
    rows += [[m, *(_mean(result, m) for result in ranked.values())] for m in order]
    yield table(["rows with the label", *titles], rows)
    if not any(CONTROL in scores.methods for scores in found.values()):
        return
    yield "\n" + prose(
        f"`{CONTROL}` minus each other method, positive where it is better: mean over the data "
        "sets and splits that both have, with a 95 % interval (Student's t over data sets), and "
        "on how many it is better. In bold where the interval is without zero."
    )
    others = dict.fromkeys(m for scores in found.values() for m in scores.methods if m != CONTROL)
    yield table(
        ["against", *titles],
        [[m, *(_difference(found[name], m) for name in ranked)] for m in others],
    )


def _counts(found: dict[str, ScoreTable]) -> str:
    """Return how many runs have the record, in all and of how many methods."""
    runs = {
        (dataset, method, int(r))
        for scores in found.values()
        for i, dataset in enumerate(scores.datasets)
        for j, method in enumerate(scores.methods)
        for r in np.flatnonzero(np.isfinite(scores.values[i, j]))
    }
    n_methods = len({method for _, method, _ in runs})
    n_sets = len({dataset for dataset, _, _ in runs})
    return f"{len(runs)} runs of {n_methods} methods on {n_sets} data sets"


def _winner(name: str, result: Comparison) -> str:
    first = [
        result.methods[i]
        for i in result.order
        if np.isclose(result.mean_ranks[i], result.mean_ranks.min())
    ]
    rank = f"{result.mean_ranks.min():.2f}"
    of = f"of {len(result.methods)} methods on {len(result.datasets)} data sets"
    text = (
        f"**Labels of {RANGE_TITLES[name]} of the rows:** "
        f"{listed(f'`{m}`' for m in first)} {'has' if len(first) == 1 else 'have'} the best "
        f"average rank, {rank} {of}"
    )
    if result.friedman is None or result.nemenyi is None:
        return text + "."
    text += f" (Friedman's F_F {result.friedman.f:.1f}, p {result.friedman.f_p:.1e})."
    if not result.friedman.significant:
        return text + " The methods are not significantly different."
    alike = not_different(result, first[0])
    if not alike:
        return text + " By Nemenyi's test all others are significantly different."
    verb = "is" if len(alike) == 1 else "are"
    return text + f" By Nemenyi's test {listed(alike)} {verb} not significantly different from it."


def _mean(result: Comparison, method: str) -> str:
    if method not in result.methods:
        return "lacks data sets"
    means = result.means.mean(axis=0)
    j = result.methods.index(method)
    text = f"{means[j]:.3f}"
    return (f"**{text}**" if means[j] == means.max() else text) + f" ({result.mean_ranks[j]:.2f})"


def _difference(scores: ScoreTable, method: str) -> str:
    if method not in scores.methods or CONTROL not in scores.methods:
        return "not run"
    gap = differences(scores, CONTROL, method)
    if len(gap) < FEW:
        return "too few data sets"
    size = effect_size(gap)
    low, high = size.mean_interval
    text = f"{size.mean:+.3f} ± {high - size.mean:.3f}"
    text = f"**{text}**" if low > 0 or high < 0 else text
    return f"{text} ({int((gap > 0).sum())} of {len(gap)})"
