"""The committed rows beside the paper's numbers: what is reproduced, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from imcc.experiment import EACH, Cell, Run, Store, compare_with_published
from imcc.metrics import METRICS
from imcc_paper.places import PUBLISHED
from imcc_paper.published import DECIMALS
from imcc_paper.published import table as published_table
from imcc_paper.reproduction.ranked import FEWEST
from imcc_paper.reproduction.rows import TITLES, WORDS, listed, present, prose, table

PAPER = ("imcc", "brsvm", "ecc", "mahr", "llsf", "jfsc", "lift")
SELECTIONS = {"average_precision": "average precision", EACH: "each metric itself"}
#: So many of the paper's standard deviations may our mean be worse.
DEVIATIONS = 2
ROUNDING = 0.5 * 10**-DECIMALS


def cells(
    store: Store, selection: str, method: str, column: str, beside: str | None = None
) -> list[Cell]:
    """Return the rows of a method beside what the paper prints for another one.

    Parameters
    ----------
    store : Store
    selection : str
        The metric that chose the settings, or "each".
    method : str
        Whose rows.
    column : str
        Whose published numbers.
    beside : str, optional
        Only the splits that this method has as well.
    """
    tables = {}
    for metric in METRICS:
        scores = store.scores(metric, selection)
        if beside is not None and beside != method:
            scores = scores.common_runs((method, beside))
        tables[metric] = replace(scores.select(methods=[method]), methods=(column,))
    return [
        cell for cell in compare_with_published(tables, PUBLISHED).cells if cell.method == column
    ]


def by_deviations(cell: Cell) -> str:
    """Return the verdict on a cell by the paper's standard deviation alone."""
    if cell.difference is None:
        return "missing"
    room = DEVIATIONS * max(cell.published_std, ROUNDING) + ROUNDING
    if abs(cell.difference) <= room:
        return "reproduced"
    better = (cell.difference > 0) == METRICS[cell.metric].greater_is_better
    return "better" if better else "worse"


def counts(found: Sequence[Cell], rule: str) -> dict[str, int]:
    """Return how many cells have which verdict by one of the rules "deviations" and "welch"."""
    verdicts = [by_deviations(c) if rule == "deviations" else c.verdict for c in found]
    return {v: verdicts.count(v) for v in ("reproduced", "better", "worse", "missing")}


def searches(store: Store, method: str) -> bool:
    """Return whether the two selections of a method differ."""
    tables = (store.scores("coverage", s).select(methods=[method]).values for s in SELECTIONS)
    return not np.array_equal(*tables, equal_nan=True)


def with_rows(store: Store) -> list[str]:
    """Return the methods that have any row."""
    return list(present(store.scores("average_precision")).methods)


def summary(store: Store) -> Iterator[str]:
    """Yield how many of the paper's numbers are reproduced, method by method."""
    yield prose(
        "Two rules. By the first a cell is reproduced if our mean is not worse than the paper's by "
        f"more than {DEVIATIONS} of the paper's standard deviations; it is better if it is better "
        "by more. By the second, which is stricter where there are many splits, the two means must "
        "not be significantly different (Welch's t, 5 %); of means that are truly equal, it calls "
        "5 % different. Both allow for the rounding of the print. All splits of each cell are "
        "taken. Some of the paper's own cells are in doubt, mostly because their standard "
        "deviations show failed runs (`imcc_paper.published.SLIPS`); they are counted, and their "
        "number is given."
    )
    rows = []
    for method in (m for m in PAPER if m in with_rows(store)):
        for selection, words in SELECTIONS.items():
            if selection == EACH and not searches(store, method):
                continue
            found = cells(store, selection, method, method)
            first, second = counts(found, "deviations"), counts(found, "welch")
            rows.append(
                [
                    method,
                    words if searches(store, method) else "(no search)",
                    *(str(first[v]) for v in ("reproduced", "better", "worse")),
                    *(str(second[v]) for v in ("reproduced", "better", "worse")),
                    str(second["missing"]),
                    str(sum(c.doubtful is not None for c in found)),
                ]
            )
    yield table(
        [
            *("method", "settings chosen by", "within 2 deviations", "better", "worse"),
            *("not significantly different", "better", "worse", "not run", "in doubt"),
        ],
        rows,
    )
    six = [cells(store, "average_precision", m, m) for m in PAPER[1:] if m in with_rows(store)]
    flat = [cell for found in six for cell in found]
    for words, kept in (
        ("Of the 450 cells of the six", flat),
        ("Without those that are in doubt", [c for c in flat if c.doubtful is None]),
    ):
        first, second = counts(kept, "deviations"), counts(kept, "welch")
        yield "\n" + prose(
            f"{words}, {len(kept) - first['missing']} were run: {first['reproduced']} are within "
            f"two deviations, {first['better']} better and {first['worse']} worse; "
            f"{second['reproduced']} are not significantly different, {second['better']} better "
            f"and {second['worse']} worse. Settings are chosen by average precision."
        )


#: The data sets and methods of the short table of docs/baselines.md.
_SOME_SETS = ("scene", "yeast", "image", "enron", "medical")
_NAMES = {
    "brsvm": "BRsvm",
    "ecc": "ECC",
    "mahr": "MAHR",
    "llsf": "LLSF",
    "jfsc": "JFSC",
    "lift": "LIFT",
    "kernel_ridge": "kernel ridge",
    "extra_trees": "extra-trees",
    "imcc": "IMCC",
}


def some_cells(store: Store) -> str:
    """Return a short table: average precision on five data sets, beside the paper's, and a count.

    Below the table it says which of the six are below the paper's number by more than 0.01.
    """
    scores, printed = store.scores("average_precision"), published_table("average_precision")
    rows, below = [], []
    for method, name in _NAMES.items():
        j = scores.methods.index(method)
        cells = []
        for dataset in _SOME_SETS:
            i = scores.datasets.index(dataset)
            mean, std = scores.mean()[i, j], scores.std()[i, j]
            text = f"{mean:.3f} ± {std:.3f}"
            if method in printed.methods:
                paper = printed.cell(dataset, method)[0]
                text += f" ({paper:.3f})"
                if method != "imcc" and paper - mean > 0.01:
                    below.append(f"{name} on {dataset} ({paper - mean:.3f})")
            cells.append(text)
        rows.append([name, *cells])
    splits = scores.select(_SOME_SETS, list(_NAMES)).counts
    n = f"{splits.min()} to {splits.max()}" if splits.min() < splits.max() else f"{splits.max()}"
    said = f"Over {n} splits. Of the six, below the paper's number by more than 0.01: "
    said += (listed(below) or "none") + "."
    return table(["", *_SOME_SETS], rows) + "\n\n" + prose(said).strip()


def power(store: Store) -> Iterator[str]:
    """Yield how many of IMCC's cells the rows of other methods would reproduce."""
    yield prose(
        "How much does it say that IMCC's cells are reproduced? As much as the rules tell methods "
        "apart. So the rows of every method are put beside the paper's numbers **for IMCC**, with "
        "the same rules, settings chosen by average precision. The last column is what the rows "
        "of IMCC itself reach on the same cells and splits: the fewer splits, the easier it is to "
        "pass. Methods with few data sets are left out."
    )
    rows, closest = [], ("", 0, 0, 0)
    for method in _compared(store):
        found = _run(cells(store, "average_precision", method, "imcc", "imcc"))
        own = _run(cells(store, "average_precision", "imcc", "imcc", method))
        first, second = counts(found, "deviations"), counts(found, "welch")
        passed, reference = second["reproduced"], counts(own, "welch")["reproduced"]
        rows.append(
            [
                method,
                str(len(found)),
                str(len(found) - first["worse"]),
                str(first["reproduced"]),
                f"{passed} ({100 * passed / len(found):.0f} %)",
                f"{reference} ({100 * reference / len(own):.0f} %)",
            ]
        )
        if method != "imcc" and passed * max(closest[2], 1) >= closest[1] * len(found):
            closest = (method, passed, len(found), reference)
    yield table(
        [
            *("rows of", "cells run", "not worse by 2 deviations", "within 2 deviations"),
            *("not significantly different", "IMCC on these"),
        ],
        rows,
    )
    yield "\n" + prose(
        'A method that is better everywhere passes the rule "not worse" everywhere, so by itself '
        "that rule says nothing about being the same method. By the second rule the closest other "
        f"method is `{closest[0]}`: its rows pass in {closest[1]} of {closest[2]} cells, those of "
        f"IMCC in {closest[3]} of the same, on the same splits."
    )
    yield from _matrix(store)


def _compared(store: Store) -> list[str]:
    """Return the methods that have enough data sets to be put beside the paper's columns."""
    scores = store.scores("average_precision")
    n_sets = dict(zip(scores.methods, (scores.counts > 0).sum(axis=0), strict=True))
    return [method for method in with_rows(store) if n_sets[method] >= FEWEST]


def _run(found: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in found if cell.verdict != "missing"]


def _matrix(store: Store) -> Iterator[str]:
    """Yield the rows of all methods beside all columns of the paper."""
    yield prose(
        "The same for all seven: rows of our methods (down) beside the paper's columns (across), "
        "the share of the cells run that are not significantly different, without the cells that "
        "are in doubt; in brackets what the column's own method reaches on the same cells and "
        "splits, where that is less. Where our program is the paper's, no other method should be "
        "closer to its column."
    )
    rows, closer = [], {}
    for method in _compared(store):
        line = [method]
        for column in PAPER:
            share = _share(cells(store, "average_precision", method, column, column))
            own = _share(cells(store, "average_precision", column, column, method))
            text = "not run" if np.isnan(share) else f"{share:.0%}".replace("%", " %")
            if method == column:
                text = f"**{text}**"
            elif share > own:
                text += f" ({own:.0%})".replace("%", " %")
                closer.setdefault(column, []).append(method)
            line.append(text)
        rows.append(line)
    yield table(["rows of", *PAPER], rows)
    others = [f"{column} ({listed(names)})" for column, names in closer.items()]
    yield "\n" + prose(
        "No other method is closer to a column than its own"
        + (f", except for {listed(others)}." if others else ".")
    )


def _share(found: Sequence[Cell]) -> float:
    run = [cell for cell in _run(found) if cell.doubtful is None]
    return sum(cell.verdict == "reproduced" for cell in run) / len(run) if run else np.nan


def failing(store: Store) -> Iterator[str]:
    """Yield the cells of IMCC that are worse, and what becomes of them by another selection."""
    found = [c for c in cells(store, "average_precision", "imcc", "imcc") if c.verdict == "worse"]
    if not found:
        yield "No cell of IMCC is significantly worse where average precision chooses.\n"
        return
    by = {m: {(c.dataset, c.metric): c for c in cells(store, m, "imcc", "imcc")} for m in METRICS}
    runs = [run for run in store.runs() if run.key.method == "imcc"]
    rows, unexplained = [], []
    for cell in found:
        key = cell.dataset, cell.metric
        if by[cell.metric][key].verdict == "worse":
            unexplained.append(f"{WORDS[cell.metric]} of {cell.dataset}")
        rows.append(
            [
                *(cell.dataset, TITLES[cell.metric], str(cell.n)),
                f"{cell.published_mean:.3f} ± {cell.published_std:.3f}",
                *(_value(by[m][key], m == cell.metric) for m in METRICS),
                _settings(runs, cell.dataset, "average_precision"),
                _settings(runs, cell.dataset, cell.metric),
            ]
        )
    n = len(found)
    yield prose(
        f"{n} {'cell is' if n == 1 else 'cells are'} significantly worse where average precision "
        "chooses the setting. The rows also hold, for the same splits and the same search, the "
        "settings that each other metric chose, so the choice can be exchanged and everything else "
        "kept. Our mean by the metric that chose (\\* not significantly worse than the paper; the "
        "metric itself in bold), and the medians of the weights that were chosen:"
    )
    yield table(
        [
            *("data set", "metric", "splits", "paper"),
            *(f"by {WORDS[m]}" for m in METRICS),
            *("alpha, beta, gamma by average precision", "by the metric itself"),
        ],
        rows,
    )
    text = (
        f"{n - len(unexplained)} of the {n} are not worse when the metric itself chooses: to "
        "exchange the choice of the setting, and nothing else, removes these differences. The "
        "paper does not say which metric chose its settings."
    )
    if unexplained:
        text += f" Not explained by the choice: {listed(unexplained)}."
    yield "\n" + prose(text)


def _value(cell: Cell, own: bool) -> str:
    if cell.mean is None:
        return "not run"
    text = f"**{cell.mean:.3f}**" if own else f"{cell.mean:.3f}"
    return text if cell.verdict == "worse" else text + r"\*"


def _settings(runs: Sequence[Run], dataset: str, metric: str) -> str:
    chosen = [
        selection.setting
        for run in runs
        if run.key.dataset == dataset
        for selection in run.selections
        if selection.selection == metric
    ]
    medians = [np.median([s[name] for s in chosen]) for name in ("alpha", "beta", "gamma")]
    return ", ".join(f"{m:g}" for m in medians)


def readme_counts(store: Store) -> str:
    """Return the table of the verdicts on IMCC's cells, by Welch's test."""
    rows = []
    for selection, words in SELECTIONS.items():
        n = counts(cells(store, selection, "imcc", "imcc"), "welch")
        rows.append([words, *(str(n[v]) for v in ("reproduced", "better", "worse"))])
    return table(["settings chosen by", "reproduced", "better", "worse"], rows)


def n_published() -> int:
    """Return how many numbers the paper has for one method."""
    return sum(len(published_table(metric).datasets) for metric in METRICS)
