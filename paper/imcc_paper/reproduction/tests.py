"""Ranks, tests and sizes of differences of the committed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from imcc.comparison import (
    Comparison,
    ScoreTable,
    bayesian_signed_rank,
    compare,
    effect_size,
    holm,
    wilcoxon_p,
)
from imcc.report import draw_critical_difference
from imcc_paper.reproduction.ranked import (
    DECIMALS,
    FEW,
    FEWEST,
    differences,
    plain_methods,
    rank_among,
    ranked_together,
)
from imcc_paper.reproduction.rows import CONTROL, ROPES, TITLES, listed, prose, splits_text, table

Tables = Mapping[str, ScoreTable]


def compare_complete(tables: Tables) -> dict[str, Comparison]:
    """Compare, by each metric, the methods that have every data set, on the splits they share."""
    found = {}
    for metric, scores in tables.items():
        methods = ranked_together(scores)
        if len(methods) < 2:
            continue
        runs = scores.common_runs(methods)
        if len(runs.datasets) >= 2:
            control = CONTROL if CONTROL in methods else None
            found[metric] = compare(runs, control=control, rope=ROPES[metric])
    return found


def ranks(tables: Tables, compared: Mapping[str, Comparison]) -> Iterator[str]:
    """Yield the ranks of the complete methods, the tests of them all, and the other methods."""
    some = next(iter(tables.values()))
    complete = ranked_together(some)
    if not compared:
        yield prose(
            "No two methods have rows on all of these data sets yet, so there are no ranks and no "
            "tests."
        )
        return
    runs = some.common_runs(complete)
    dropped = [d for d in some.datasets if d not in runs.datasets]
    yield prose(
        f"The {len(complete)} methods that have rows on all {len(some.datasets)} data sets "
        f"are ranked and tested together, on the {len(runs.datasets)} data sets and the splits "
        f"that all of them share: {splits_text(runs)}."
        + (f" Without {listed(dropped)}, where they share no split." if dropped else "")
    )
    order = sorted(
        complete,
        key=lambda m: np.mean([c.mean_ranks[c.methods.index(m)] for c in compared.values()]),
    )
    yield table(
        ["average rank", *(TITLES[m] for m in compared)],
        [
            [m, *(f"{c.mean_ranks[c.methods.index(m)]:.2f}" for c in compared.values())]
            for m in order
        ],
    )
    yield "\n" + prose(
        "Friedman's test (the methods differ where F_F is above the critical value at 5 %) and "
        "Nemenyi's critical difference of average ranks, on the same data sets and splits:"
    )
    yield table(
        ["", "F_F", "critical value", "p", "critical difference", "data sets"],
        [
            [
                TITLES[metric],
                f"{c.friedman.f:.2f}".replace("inf", "infinite"),
                f"{c.friedman.f_critical:.2f}",
                f"{c.friedman.f_p:.1e}",
                f"{c.nemenyi.critical_difference:.2f}",
                str(len(c.datasets)),
            ]
            for metric, c in compared.items()
            if c.friedman is not None and c.nemenyi is not None
        ],
    )
    if others := [m for m in some.methods if m not in complete]:
        yield from _others(tables, complete, others)


def _others(tables: Tables, complete: list[str], others: list[str]) -> Iterator[str]:
    yield "\n" + prose(
        "A method that lacks data sets is not in the table above, so that it takes none away from "
        "the others; nor one that is another method with calibrated scores. Here each is ranked "
        "among them on the data sets that it has; in brackets the average rank of "
        f"`{CONTROL}` there."
    )
    rows = []
    for method in others:
        cells, n = [], 0
        for scores in tables.values():
            n, by_name = rank_among(scores, complete, method)
            if not by_name:
                cells.append("no split in common")
                continue
            text = f"{by_name[method]:.2f}"
            cells.append(text + (f" ({by_name[CONTROL]:.2f})" if CONTROL in by_name else ""))
        rows.append([method, f"{n}", f"{len(complete) + 1}", *cells])
    yield table(["average rank", "data sets", "methods", *(TITLES[m] for m in tables)], rows)


def largest_group(scores: ScoreTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return data sets and methods without a gap, as many cells as possible.

    Of the k data sets on which most methods have rows, with the methods that have all of them, the
    k with the largest product; methods with calibrated scores are left out, as in the ranking.
    """
    plain = plain_methods(scores)
    have = scores.select(methods=plain).counts > 0
    order = np.argsort(-have.sum(axis=1), kind="stable")
    best: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    for k in range(FEW, len(order) + 1):
        rows = np.sort(order[:k])
        methods = tuple(m for m, all_ in zip(plain, have[rows].all(axis=0), strict=True) if all_)
        if k * len(methods) >= len(best[0]) * len(best[1]):
            best = tuple(scores.datasets[i] for i in rows), methods
    return best


def against_all(tables: Tables, control: str = CONTROL) -> dict[str, list[str]]:
    """Return, for each method, its cells in the short table against a control."""
    lines = {}
    for method in next(iter(tables.values())).methods:
        if method == control:
            continue
        cells = []
        for scores in tables.values():
            gap = differences(scores, control, method)
            if len(gap) < FEW:
                cells.append("too few data sets")
                continue
            size = effect_size(gap)
            wins = (gap > 0).sum() if scores.greater_is_better else (gap < 0).sum()
            half = size.mean_interval[1] - size.mean
            cells.append(f"{size.mean:+.4f} ± {half:.4f} ({wins} of {len(gap)})")
        lines[method] = cells
    return lines


def against(tables: Tables, control: str, detailed: Sequence[str]) -> Iterator[str]:
    """Yield a control against each method: the short table, then one for some of the metrics."""
    lines = against_all(tables, control)
    if all("too few" in cell for cells in lines.values() for cell in cells):
        yield prose(f"No method has {FEW} data sets in common with `{control}` yet.")
        return
    yield prose(
        f"Mean over the data sets of `{control}` minus the other method, with a 95 % interval "
        "(Student's t over data sets), and the number of data sets on which it is better, on the "
        "data sets and splits that both have. Of average precision more is better, of the others "
        "less."
    )
    yield table(
        ["against", *(TITLES[m] for m in tables)], [[m, *cells] for m, cells in lines.items()]
    )
    details = {metric: _detail(metric, tables[metric], control) for metric in detailed}
    if not any(details.values()):
        return
    yield "\n" + prose(
        f"In more detail, positive where `{control}` is better: mean with its 95 % interval, the "
        "p of Wilcoxon's test with Holm's adjustment for the number of methods in the table, and "
        "the probabilities of the Bayesian signed-rank test that it is better, practically "
        "equivalent and worse. "
        f"Equivalent are differences up to {ROPES['average_precision']:g}"
        + (
            f", of Hamming loss up to {ROPES['hamming_loss']:g}"
            if "hamming_loss" in details
            else ""
        )
        + ". Each pair is on the data sets and splits that both have; pairs with fewer than "
        f"{FEWEST} data sets are left out."
    )
    for metric, rows in details.items():
        if rows:
            yield f"**{TITLES[metric]}**\n"
            yield table(
                [
                    *("against", "data sets", "better on", "mean", "p"),
                    *("P(better)", "P(equivalent)", "P(worse)"),
                ],
                rows,
            )
            yield ""


def _detail(metric: str, scores: ScoreTable, control: str) -> list[list[str]]:
    sign = 1 if scores.greater_is_better else -1
    gaps = {
        method: sign * differences(scores, control, method)
        for method in scores.methods
        if method != control
    }
    gaps = {method: gap for method, gap in gaps.items() if len(gap) >= FEWEST}
    adjusted = holm([wilcoxon_p(np.round(gap, DECIMALS)) for gap in gaps.values()])
    rows = []
    for (method, gap), p in zip(gaps.items(), adjusted, strict=True):
        size = effect_size(gap)
        chances = bayesian_signed_rank(gap, rope=ROPES[metric])
        rows.append(
            [
                *(method, str(len(gap)), str(int((gap > 0).sum()))),
                _with_ends(size.mean, size.mean_interval),
                f"{p:.2g}",
                *(f"{chance:.2f}" for chance in chances),
            ]
        )
    return rows


def _with_ends(value: float, ends: tuple[float, float]) -> str:
    return f"{value:+.4f} ({ends[0]:+.4f} to {ends[1]:+.4f})"


def figures(compared: Mapping[str, Comparison], experiment: str) -> Iterator[tuple[str, Any]]:
    """Yield name and picture of the critical-difference diagrams of all metrics."""
    for metric, comparison in compared.items():
        if comparison.nemenyi is not None:
            yield (
                f"cd_{experiment}_{metric}.svg",
                draw_critical_difference(comparison, control=False),
            )
