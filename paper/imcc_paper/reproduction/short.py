"""What the page says, in a few lines: who wins, by how much, whether it is significant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from imcc.comparison import Comparison, bayesian_signed_rank
from imcc.experiment import EACH, Store
from imcc_paper.reproduction import cost, labels, paper
from imcc_paper.reproduction.labels import RANGE_TITLES
from imcc_paper.reproduction.ranked import behind, gaps, not_different
from imcc_paper.reproduction.rows import CONTROL, ROPES, WORDS, listed, prose
from imcc_paper.reproduction.tests import Tables
from imcc_paper.reproduction.times import PLACES, Times, gather_times, ratio

METRIC = "average_precision"


def short(store: Store, tables: Tables, compared: Mapping[str, Comparison]) -> Iterator[str]:
    """Yield the answers, an item of a list each."""
    if METRIC in compared:
        yield _item(_who(compared[METRIC]))
        yield _item(_how_much(tables))
        yield _item(_not_first(compared))
    if ranked := labels.compared(labels.tables(store)):
        yield _item(_rare(ranked))
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
    alike = not_different(found, best)
    if alike:
        verb = "is" if len(alike) == 1 else "are"
        text += f" By Nemenyi's test {listed(alike)} {verb} not significantly different from it."
    else:
        text += " By Nemenyi's test all others are significantly different from it."
    return text


def _how_much(tables: Tables) -> str:
    nearest = gaps(tables[METRIC], CONTROL)[:3]
    parts = []
    for gap in nearest:
        chances = bayesian_signed_rank(gap.values, rope=ROPES[METRIC])
        parts.append(
            f"{gap.mean:+.4f} ± {gap.half:.4f} against {gap.method} "
            f"({len(gap.values)} data sets; probability of more than {ROPES[METRIC]:g}: "
            f"{chances.better:.2f})"
        )
    return (
        f"**By how much?** In average precision `{CONTROL}` is nearest to "
        f"{listed(gap.method for gap in nearest)}: mean "
        f"difference {'; '.join(parts)}."
    )


def _not_first(compared: Mapping[str, Comparison]) -> str:
    places, n, n_behind = [], 0, 0
    for metric, found in compared.items():
        if CONTROL not in found.methods:
            continue
        n += len(found.datasets)
        others = behind(found, CONTROL)
        n_behind += len(others)
        if others:
            cells = (f"{dataset} ({first[0]})" for dataset, first in others)
            places.append(f"{WORDS[metric]}: {', '.join(cells)}")
    text = f"**Where not?** `{CONTROL}` is first, alone or in a tie, in {n - n_behind} of {n} cells"
    return text + (f"; not by {'; by '.join(places)}." if places else ".")


def _rare(ranked: Mapping[str, Comparison]) -> str:
    parts = []
    for name, found in ranked.items():
        best = found.order[0]
        place = ""
        if CONTROL in found.methods and found.methods[best] != CONTROL:
            own = found.mean_ranks[found.methods.index(CONTROL)]
            place = f"; `{CONTROL}` {own:.2f}"
        parts.append(
            f"of {RANGE_TITLES[name]} of the rows `{found.methods[best]}` "
            f"({found.mean_ranks[best]:.2f} of {len(found.methods)} methods{place})"
        )
    return (
        "**On rare labels?** The best average rank, by the average precision of each label by "
        f"itself, has on labels {'; '.join(parts)}."
    )


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
    _, times, _ = gather_times(store.runs())
    by = {(t.method, t.place): t for t in times}
    on = {where: by[CONTROL, where] for where in PLACES if (CONTROL, where) in by}
    parts = []
    if "CPU" in on:
        against = [
            f"{factor:.2g} times as long as {method} ({_n_common(on['CPU'], by[method, 'CPU'])})"
            for method in ("kernel_ridge", "lightgbm", cost.REFERENCE)
            if (method, "CPU") in by and (factor := ratio(on["CPU"], by[method, "CPU"])) is not None
        ]
        parts.append(f"Training `{CONTROL}` on a CPU with one thread takes {listed(against)}.")
    if len(on) == 2 and (factor := ratio(on["CPU"], on["GPU"])) is not None:
        parts.append(f"On a GPU it takes 1/{factor:.2g} of that time.")
    return f"**What does it cost?** {' '.join(parts)} The picture below has the other methods."


def _n_common(a: Times, b: Times) -> str:
    return f"{len(set(a.seconds) & set(b.seconds))} data sets"
