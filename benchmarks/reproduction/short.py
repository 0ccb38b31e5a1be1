"""What the page says, in a few lines: who wins, by how much, whether it is significant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.reproduction import cost, paper
from benchmarks.reproduction.rows import CONTROL, FEWEST, ROPES, WORDS, listed, prose
from benchmarks.reproduction.tests import DECIMALS, Tables, differences
from imcc.comparison import Comparison, bayesian_signed_rank, effect_size
from imcc.experiment import EACH, Store

METRIC = "average_precision"


def short(store: Store, tables: Tables, compared: Mapping[str, Comparison]) -> Iterator[str]:
    """Yield the answers, an item of a list each."""
    if METRIC in compared:
        yield _item(_who(compared[METRIC]))
        yield _item(_how_much(tables))
        yield _item(_not_first(compared))
    yield _item(_reproduced(store))
    yield _item(_cost(store)) + "\n"


def _item(text: str) -> str:
    lines = prose(text).rstrip("\n").split("\n")
    return "* " + "\n  ".join(lines)


def _who(found: Comparison) -> str:
    best = found.methods[found.order[0]]
    rank = found.mean_ranks[found.order[0]]
    of = f"of {len(found.methods)} methods on {len(found.datasets)} data sets"
    text = (
        f"**Who wins?** `{best}` has the best average rank by average precision, {rank:.2f} {of}."
    )
    assert found.nemenyi is not None
    alike = [
        found.methods[j]
        for j in found.order[1:]
        if not found.nemenyi.significant[found.order[0], j]
    ]
    if alike:
        verb = "is" if len(alike) == 1 else "are"
        text += f" By Nemenyi's test {listed(alike)} {verb} not significantly different from it."
    else:
        text += " By Nemenyi's test all others are significantly different from it."
    return text


def _how_much(tables: Tables) -> str:
    scores = tables[METRIC]
    gaps = {m: differences(scores, CONTROL, m) for m in scores.methods if m != CONTROL}
    gaps = {m: gap for m, gap in gaps.items() if len(gap) >= FEWEST}
    nearest = sorted(gaps, key=lambda m: float(gaps[m].mean()))[:3]
    parts = []
    for method in nearest:
        size = effect_size(gaps[method])
        found = bayesian_signed_rank(gaps[method], rope=ROPES[METRIC], decimals=DECIMALS)
        parts.append(
            f"{size.mean:+.4f} ± {size.mean_interval[1] - size.mean:.4f} against {method} "
            f"({size.n} data sets; probability of more than {ROPES[METRIC]:g}: {found.greater:.2f})"
        )
    return (
        f"**By how much?** In average precision `{CONTROL}` is nearest to {listed(nearest)}: mean "
        f"difference {'; '.join(parts)}."
    )


def _not_first(compared: Mapping[str, Comparison]) -> str:
    places, n = [], 0
    for metric, found in compared.items():
        if CONTROL not in found.methods:
            continue
        own = found.ranks[:, found.methods.index(CONTROL)]
        n += len(own)
        behind = [
            f"{found.datasets[i]} ({found.methods[int(np.argmin(found.ranks[i]))]})"
            for i in np.flatnonzero(own > found.ranks.min(axis=1))
        ]
        if behind:
            places.append(f"{WORDS[metric]}: {', '.join(behind)}")
    n_behind = sum(text.count("(") for text in places)
    text = f"**Where not?** `{CONTROL}` is first, alone or in a tie, in {n - n_behind} of {n} cells"
    return text + (f"; not by {'; by '.join(places)}." if places else ".")


def _reproduced(store: Store) -> str:
    own, each = (
        paper.counts(paper.cells(store, selection, "imcc", "imcc"), "welch")
        for selection in (METRIC, EACH)
    )
    return (
        f"**Is the paper reproduced?** Of its {paper.n_published()} numbers for IMCC, "
        f"{each['reproduced']} are not significantly different, {each['better']} better and "
        f"{each['worse']} worse if each metric chooses its own setting; {own['reproduced']}, "
        f"{own['better']} and {own['worse']} if average precision chooses all."
    )


def _cost(store: Store) -> str:
    _, times, _ = cost.gather(store.runs())
    by = {(t.method, t.place): t for t in times}
    reference = by[cost.REFERENCE, "CPU"]
    parts = []
    for where in cost.PLACES:
        found = by.get((CONTROL, where))
        factor = None if found is None else cost.ratio(found, reference)
        if found is not None and factor is not None:
            parts.append(
                f"{factor:.2g} times as long as {cost.REFERENCE} on a {where} "
                f"({len(found.seconds)} data sets)"
            )
    return (
        f"**What does it cost?** Training `{CONTROL}` with one thread takes {listed(parts)}. The "
        "picture below has the other methods."
    )
