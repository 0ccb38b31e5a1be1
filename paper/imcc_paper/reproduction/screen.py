"""The numbers of docs/reproduction.md: its table, and what the rows say in a few sentences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from imcc.comparison import Comparison, ScoreTable, bayesian_signed_rank, effect_size
from imcc.experiment import Store
from imcc_paper._measured import table
from imcc_paper.reproduction import paper
from imcc_paper.reproduction.ranked import (
    FEW,
    YAHOO,
    behind,
    compare_on_shared,
    complete_methods,
    differences,
    family_differences,
    not_different,
    plain_methods,
)
from imcc_paper.reproduction.rows import (
    CONTROL,
    NAMES,
    ROPES,
    items,
    listed,
    named,
    prose,
    splits_text,
)
from imcc_paper.reproduction.times import ratio, training_times

METRIC = "average_precision"
#: A method needs so many splits of every data set to be in the table of the page.
SPLITS = 2
Tables = Mapping[str, ScoreTable]


def gap_text(gap: np.ndarray, greater_is_better: bool = True) -> str:
    """Return the mean of differences over data sets with its interval, and how many are better."""
    mean, (_, high) = effect_size(gap)
    better = int((gap > 0).sum() if greater_is_better else (gap < 0).sum())
    return f"{mean:+.4f} ± {high - mean:.4f} ({better} of {len(gap)})"


def _gap_cell(scores: ScoreTable, method: str) -> str:
    """Return the difference from the ensemble; nothing if a method has too few data sets."""
    if method not in scores.methods:
        return ""
    gap = differences(scores, CONTROL, method)
    return gap_text(gap) if len(gap) >= FEW else ""


def methods_table(
    store: Store,
    tables: Tables,
    outside: Tables,
    losses: tuple[int, int, Mapping[str, float]],
) -> str:
    """Return the table of the appendix: quality on the paper's data sets, outside, and the cost."""
    scores, others = tables[METRIC], outside[METRIC]
    compared = compare_on_shared({METRIC: scores}, complete_methods(scores, SPLITS))[METRIC]
    means = compared.means.mean(axis=0)
    firsts = (compared.ranks == compared.ranks.min(axis=1, keepdims=True)).sum(axis=0)
    seconds = _times(store)
    rows = []
    for j in compared.order:
        method = compared.methods[j]
        own = method == CONTROL
        rows.append(
            [
                f"**{named(method)}**" if own else named(method),
                f"{means[j]:.4f}",
                f"{losses[2][method]:.4f}" if method in losses[2] else "",
                f"{compared.mean_ranks[j]:.2f}",
                str(firsts[j]),
                *("" if own else _gap_cell(of, method) for of in (scores, others)),
                seconds.get(method, "GPU only"),
            ]
        )
    runs = scores.common_runs(tuple(compared.methods))
    n, n_outside = len(scores.datasets), len(others.datasets)
    header = [
        *("method", "average precision", "log loss", f"mean rank of {len(means)}", "first on"),
        *(f"ensemble minus it, {n} sets", f"the same, {n_outside} outside", "training time"),
    ]
    note = (
        f"Average precision, mean rank and first places: the {n} data sets of the paper "
        f"({_sizes(store)} training rows), on the splits that all of these methods share: "
        f"{splits_text(runs)}. Differences: on all splits that two methods share. "
        f"Log loss: {losses[0]} of the data sets, {losses[1]} splits in all, where it was "
        "measured for all ([](probabilities.md)). Training time: search included, one thread of a "
        "CPU, relative to the ensemble on the same data sets and kind of machine (geometric mean), "
        "several at a time, so that small differences mean nothing."
    )
    return table(header, rows) + "\n\n" + prose(note).rstrip()


def plain_lines(store: Store, tables: Tables, outside: Tables) -> list[list[str]]:
    """Return lines of the page's table for methods of the experiment, without log losses.

    Kernel ridge and IMCC, also calibrated, and the best of the paper's six other algorithms.
    """
    means = tables[METRIC].select(methods=list(paper.PAPER[1:])).mean().mean(axis=0)
    best = paper.PAPER[1:][int(np.argmax(means))]
    seconds = _times(store)
    return [
        [
            named(method) + (", best of the paper's six" if method == best else ""),
            _gap_cell(tables[METRIC], method),
            "",
            _gap_cell(outside[METRIC], method),
            "",
            seconds.get(method, "GPU only"),
        ]
        for method in ("kernel_ridge_calibrated", "kernel_ridge", "imcc_calibrated", "imcc", best)
    ]


def _sizes(store: Store) -> str:
    sizes = {run.n_train for run in store.runs()}
    return f"{min(sizes)} to {max(sizes)}"


def _times(store: Store) -> dict[str, str]:
    """Return the training times on a CPU over those of the ensemble."""
    times = training_times(store.runs())
    ratios = {method: ratio(found, times[CONTROL]) for method, found in times.items()}
    return {method: f"{factor:.2g}" for method, factor in ratios.items() if factor is not None}


def log_losses(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int, dict[str, float]]:
    """Return the mean log loss of each method, from the rows of results/calibration.csv.

    Before calibration it is that of the method itself, after it that of its calibrated form; the
    ensemble calibrates itself.

    Returns
    -------
    n_datasets, n_splits : int
        Those that all methods have, which the means are over: first over the splits of a data set.
    means : dict of str to float
    """
    methods = {name.lower(): method for method, name in NAMES.items()}
    losses: dict[str, dict[tuple[str, int], float]] = {}
    for row in rows:
        method = methods.get(row["method"].lower())
        if method is not None:
            if row["stage"] == "after" and method != CONTROL:
                method = f"{method}_calibrated"
            losses.setdefault(method, {})[row["data"], row["split"]] = row["log_loss"]
    common = sorted(set.intersection(*(set(of) for of in losses.values())))
    datasets = sorted({data for data, _ in common})
    means = {
        method: np.mean([np.mean([of[at] for at in common if at[0] == d]) for d in datasets])
        for method, of in losses.items()
    }
    return len(datasets), len(common), {method: float(mean) for method, mean in means.items()}


def says(store: Store, tables: Tables, outside: Tables) -> str:
    """Return what the rows say, as a list."""
    lead = _lead(tables[METRIC], outside[METRIC])
    return items([lead, _ranks(tables), imcc_and_ridge(tables), _reproduced(store)])


def _lead(scores: ScoreTable, outside: ScoreTable) -> str:
    """Return by how much the ensemble is ahead of the nearest method, with what is equivalent."""
    nearest = min(
        (m for m in complete_methods(scores, SPLITS) if m != CONTROL),
        key=lambda method: differences(scores, CONTROL, method).mean(),
    )
    gap = differences(scores, CONTROL, nearest)
    other = differences(outside, CONTROL, nearest)
    low, high = effect_size(other).mean_interval
    families = family_differences(scores, CONTROL, nearest)
    rope = ROPES[METRIC]
    chances = bayesian_signed_rank(gap, rope=rope)
    return (
        f"**The nearest is {named(nearest)}.** In average precision the ensemble is ahead of it by "
        f"{gap_text(gap)} on the paper's data sets; by {gap_text(families)} if the {len(YAHOO)} "
        f"from Yahoo count as one; and by {gap_text(other)} on those outside"
        + (", where zero is in the interval" if low < 0 < high else "")
        + f". If differences up to {rope:g} do not matter, the two are practically equivalent with "
        f"probability {chances.equivalent:.2f} (Bayesian signed-rank test on the paper's)."
    )


def _ranks(tables: Tables) -> str:
    """Return mean ranks and first places with and without calibrated forms of other methods."""
    scores = tables[METRIC]
    groups = (
        ("without the calibrated forms of other methods", plain_methods(scores)),
        ("with those of IMCC and kernel ridge", complete_methods(scores, SPLITS)),
        ("with all five", complete_methods(scores)),
    )
    parts = []
    for words, methods in groups:
        compared = compare_on_shared(tables, methods)
        rank = compared[METRIC].mean_ranks[compared[METRIC].methods.index(CONTROL)]
        first, n = first_places(compared)
        parts.append(f"{words} {rank:.2f} of {len(methods)} and {first} of {n}")
    alike = not_different(compare_on_shared(tables, plain_methods(scores))[METRIC], CONTROL)
    everyone = complete_methods(scores)
    values = scores.select(methods=everyone).values
    place = everyone.index(CONTROL)
    values = np.where(np.isfinite(values[:, [place]]), values, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of methods that have none of the ensemble's splits
        means = np.nanmean(values, axis=2)
    own = 1 + (means > means[:, [place]]).sum(axis=1).mean()
    text = (
        "**Mean rank by average precision, and first places** among the cells of a data set and a "
        f"metric, on the splits that the methods share, which are few for some data sets: "
        f"{'; '.join(parts)} ([where not](reproduction_tables.md)). On all splits of the "
        f"ensemble that each method has, the mean rank is {own:.2f} of {len(everyone)}."
    )
    if alike:
        text += (
            f" By Nemenyi's test of the ranks, {listed(map(named, alike))} are not significantly "
            "different from the ensemble."
        )
    return text


def first_places(compared: Mapping[str, Comparison]) -> tuple[int, int]:
    """Return in how many cells the ensemble is first, alone or in a tie, and of how many."""
    n = sum(len(found.datasets) for found in compared.values())
    return n - sum(len(behind(found, CONTROL)) for found in compared.values()), n


def ridge_text(tables: Tables) -> str:
    """Return how IMCC as published compares with kernel ridge regression, for several pages."""
    gap = differences(tables[METRIC], "imcc", "kernel_ridge")
    mean, (_, high) = effect_size(gap)
    word = "worse" if mean < 0 else "better"
    n = int((gap < 0).sum() if mean < 0 else (gap > 0).sum())
    return (
        f"{word} on {n} of {len(gap)} data sets, by {abs(mean):.4f} ± {high - mean:.4f} in average "
        "precision"
    )


def imcc_and_ridge(tables: Tables) -> str:
    """Return the same as an item of the list."""
    return (
        f"**IMCC as published** is {ridge_text(tables)}, than kernel ridge regression, whose "
        "search has four widths of the kernel where the paper's grid has one. With the same search "
        "for both see [](does_clustering_help.md)."
    )


def _reproduced(store: Store) -> str:
    own, each = paper.of_imcc(store)
    found = paper.passing(store)
    scores = store.scores(METRIC)
    others = [m for m in found if m in complete_methods(scores, SPLITS) and m != "imcc"]
    others.sort(key=lambda m: found[m][2] / found[m][0], reverse=True)
    closest = listed(
        f"{named(m)} in {found[m][2]} (IMCC's own, on the same splits, {found[m][3]})"
        for m in others[:2]
    )
    return (
        f"**The paper's {sum(own.values())} numbers for IMCC**: {own['reproduced']} are equal to "
        f"ours within the rule (no significant difference by Welch's t, 5 %), {own['better']} of "
        f"ours are better and {own['worse']} worse, if average precision chooses the setting; "
        f"{each['reproduced']}, {each['better']} and {each['worse']} if each metric chooses its "
        "own. This rule tells methods apart poorly: it also passes the rows of "
        f"{closest} of the cells."
    )
