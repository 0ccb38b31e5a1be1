"""The appendix, docs/reproduction_tables.md: tables without which the page could not be checked."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np

from imcc.comparison import ScoreTable, bayesian_signed_rank, holm, wilcoxon_p
from imcc.experiment import LABEL_RANGES, Store
from imcc.metrics import METRICS
from imcc_paper._measured import table
from imcc_paper.places import RESULTS
from imcc_paper.reproduction import paper
from imcc_paper.reproduction.figure import RIVALS
from imcc_paper.reproduction.per_set import by_data_set
from imcc_paper.reproduction.ranked import (
    DECIMALS,
    FEW,
    FEWEST,
    behind,
    compare_on_shared,
    complete_methods,
    differences,
    plain_methods,
)
from imcc_paper.reproduction.rows import (
    CONTROL,
    ROPES,
    TITLES,
    listed,
    means_table,
    named,
    present,
    prose,
    splits_text,
)
from imcc_paper.reproduction.screen import METRIC, SPLITS, Tables, gap_text

#: The rows of the ensemble's first recipe, whose program is gone.
RECIPE_1 = RESULTS / "recipe_1.csv"
#: The ranges of ``LABEL_RANGES`` in words: the share of the training rows that have the label.
RANGE_TITLES = {
    "label_ap_to_1": "at most 1 %",
    "label_ap_1_to_5": "1 to 5 %",
    "label_ap_5_to_20": "5 to 20 %",
    "label_ap_above_20": "more than 20 %",
}


def appendix(store: Store, tables: Tables, outside: Tables, methods: str, rivals: str) -> str:
    """Return the page; the tables of all methods and of rivals are given."""
    parts = [
        "# Tables of the reproduction\n",
        "<!-- Written by paper/imcc_paper/reproduce.py (make -C paper); do not edit. -->\n",
        prose(
            "The appendix of [](reproduction.md), computed from `paper/results/paper.csv` and "
            "`outside.csv`. Differences are the ensemble's value minus that of the other method, "
            "on the data sets and splits that both have: mean with a 95 % interval (Student's t "
            "over data sets), in brackets on how many data sets the ensemble is better."
        ),
        "## All methods\n",
        methods + "\n",
    ]
    for title, found in (
        ("The paper's data sets", tables),
        ("Data sets outside of the paper", outside),
    ):
        parts += [f"## {title}\n", *_section(found)]
    parts += ["## Practically equivalent?\n", *_equivalence(tables[METRIC])]
    parts += ["## Rare and frequent labels\n", *_label_ranges(store)]
    parts += ["## Beside the paper's numbers\n", *_beside(store)]
    parts += ["## Rivals that were tuned\n", rivals + "\n"]
    parts += ["## The first recipe of the ensemble\n", *_recipes(tables, outside)]
    return "\n".join(parts).rstrip() + "\n"


def _section(tables: Tables) -> Iterator[str]:
    yield prose(
        "Average precision, means over all splits of a method; a number in brackets says that a "
        "mean is over so many splits instead."
    )
    yield means_table(tables[METRIC]) + "\n"
    yield prose(
        "The figure in numbers: the ensemble minus the other on each data set, with a 95 % "
        "interval that allows for splits that share training rows (Nadeau and Bengio's variance; "
        "from three splits on)."
    )
    yield _by_data_set(tables[METRIC]) + "\n"
    methods = complete_methods(tables[METRIC], SPLITS)
    if len(methods) < 3:  # outside, where some have one split only
        methods = complete_methods(tables[METRIC])
    compared = compare_on_shared(tables, methods)
    runs = tables[METRIC].common_runs(tuple(methods))
    order = sorted(
        methods,
        key=lambda m: np.mean([c.mean_ranks[c.methods.index(m)] for c in compared.values()]),
    )
    yield prose(f"Mean ranks on the splits that all of these methods share: {splits_text(runs)}.")
    rows = [
        [named(m), *(f"{c.mean_ranks[c.methods.index(m)]:.2f}" for c in compared.values())]
        for m in order
    ]
    nemenyi = [c.nemenyi for c in compared.values()]
    critical = ["" if n is None else f"{n.critical_difference:.2f}" for n in nemenyi]
    rows.append(["(critical difference, Nemenyi)", *critical])
    yield table(["", *(TITLES[m] for m in compared)], rows) + "\n"
    yield from _not_first(tables)
    yield prose("Differences; of average precision more is better, of the others less.")
    lines = against_all(tables)
    yield (
        table(
            ["against", *(TITLES[m] for m in tables)],
            [[named(m), *cells] for m, cells in lines.items()],
        )
        + "\n"
    )


def _not_first(tables: Tables) -> Iterator[str]:
    """Yield where another method is first, of those that are no calibrated form of another."""
    methods = [m for m in plain_methods(tables[METRIC]) if m in complete_methods(tables[METRIC])]
    yield prose("Not first is the ensemble, calibrated forms of other methods aside:")
    for metric, found in compare_on_shared(tables, methods).items():
        cells = [f"{dataset} ({named(first[0])})" for dataset, first in behind(found, CONTROL)]
        yield f"* {TITLES[metric]}: {listed(cells) or 'nowhere'}"
    yield ""


def _by_data_set(scores: ScoreTable) -> str:
    columns = {
        rival: {found.dataset: found for found in by_data_set(scores, CONTROL, rival)}
        for rival in RIVALS
    }
    rows = []
    for dataset in scores.datasets:
        cells = [dataset]
        for of_rival in columns.values():
            found = of_rival.get(dataset)
            half = "" if found is None or np.isnan(found.half) else f" ± {found.half:.4f}"
            cells.append("" if found is None else f"{found.mean:+.4f}{half} ({found.n_splits})")
        rows.append(cells)
    return table(["data set (splits)", *map(named, RIVALS)], rows)


def against_all(tables: Tables, control: str = CONTROL) -> dict[str, list[str]]:
    """Return, for each method, its differences from a control by each metric."""
    return {
        method: [
            gap_text(gap, scores.greater_is_better)
            if len(gap := differences(scores, control, method)) >= FEW
            else "too few data sets"
            for scores in tables.values()
        ]
        for method in next(iter(tables.values())).methods
        if method != control
    }


def _equivalence(scores: ScoreTable) -> Iterator[str]:
    """Yield the tests of the differences in average precision."""
    yield prose(
        "Average precision on the paper's data sets: the p of Wilcoxon's test with Holm's "
        "adjustment for the number of methods, and the probabilities of the Bayesian signed-rank "
        "test that the ensemble is better, practically equivalent (differences up to "
        f"{ROPES[METRIC]:g}) and worse."
    )
    gaps = {m: differences(scores, CONTROL, m) for m in scores.methods if m != CONTROL}
    gaps = {method: gap for method, gap in gaps.items() if len(gap) >= FEWEST}
    adjusted = holm([wilcoxon_p(np.round(gap, DECIMALS)) for gap in gaps.values()])
    rows = []
    for (method, gap), p in zip(gaps.items(), adjusted, strict=True):
        chances = bayesian_signed_rank(gap, rope=ROPES[METRIC])
        rows.append([named(method), f"{p:.2g}", *(f"{chance:.2f}" for chance in chances)])
    yield table(["against", "p", "P(better)", "P(equivalent)", "P(worse)"], rows) + "\n"


def _label_ranges(store: Store) -> Iterator[str]:
    """Yield the differences in the average precision of single labels, by their frequency."""
    yield prose(
        "Average precision of each label by itself (how well the test rows are ordered by its "
        "score), mean over the labels of a data set by the share of the training rows that have "
        "them, on the paper's data sets that have such labels. Labels without a training row or "
        "a test row are left out, and so are older rows, which have no such record."
    )
    found = {name: present(store.scores(name)) for name in LABEL_RANGES}
    methods = dict.fromkeys(m for scores in found.values() for m in scores.methods if m != CONTROL)
    rows = []
    for method in methods:
        gaps = [
            differences(scores, CONTROL, method) if method in scores.methods else np.empty(0)
            for scores in found.values()
        ]
        rows.append([named(method), *(gap_text(g) if len(g) >= FEW else "few rows" for g in gaps)])
    yield table(["against", *(RANGE_TITLES[name] for name in found)], rows) + "\n"


def _beside(store: Store) -> Iterator[str]:
    """Yield the verdicts on the paper's cells, and which other methods pass for IMCC."""
    yield prose(
        "Two rules. A cell is within two deviations if our mean differs from the paper's by no "
        f"more than {paper.DEVIATIONS} of the paper's standard deviations. The other rule is "
        "stricter where there are many splits: the means are not significantly different (Welch's "
        "t, 5 %; of equal means it calls 5 % different). Both allow for the rounding of the print. "
        "In doubt are cells whose printed deviations show failed runs "
        "(`paper/published/README.md`); they are counted."
    )
    yield paper.verdicts(store) + "\n"
    yield prose(
        "What this is worth: the rows of every method beside the paper's numbers **for IMCC**, "
        "with settings chosen by average precision. The last column is what IMCC's own rows reach "
        "on the same cells and splits."
    )
    yield (
        table(
            [
                *("rows of", "cells run", "not worse by 2 deviations"),
                *("not significantly different", "IMCC on these"),
            ],
            [[named(m), *map(str, numbers)] for m, numbers in paper.passing(store).items()],
        )
        + "\n"
    )


def _recipes(tables: Tables, outside: Tables) -> Iterator[str]:
    yield prose(
        "The ensemble minus its first recipe, whose rows are in `paper/results/recipe_1.csv` and "
        "ranked nowhere; its program is gone."
    )
    rows = [
        [title, *(gap_text(recipe_gap(found[m], m), found[m].greater_is_better) for m in METRICS)]
        for title, found in (("the paper's", tables), ("outside", outside))
    ]
    yield table(["data sets", *(TITLES[m] for m in METRICS)], rows)


def recipe_gap(scores: ScoreTable, metric: str) -> np.ndarray:
    """Return the ensemble minus its first recipe per data set, on the splits that both have."""
    old = np.full((len(scores.datasets), scores.values.shape[2]), np.nan)
    with RECIPE_1.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            split = int(row["repetition"])
            if row["dataset"] in scores.datasets and split < old.shape[1]:
                old[scores.datasets.index(row["dataset"]), split] = float(row[metric])
    gap = scores.values[:, scores.methods.index(CONTROL)] - old
    return np.nanmean(gap[np.isfinite(gap).any(axis=1)], axis=1)
