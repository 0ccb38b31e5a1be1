"""The committed rows beside the paper's numbers: what is reproduced, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from imcc.experiment import EACH, Cell, Store, compare_with_published
from imcc.metrics import METRICS
from imcc_paper._measured import table
from imcc_paper.places import PUBLISHED
from imcc_paper.reproduction.ranked import FEWEST
from imcc_paper.reproduction.rows import listed, named, present, prose

PAPER = ("imcc", "brsvm", "ecc", "mahr", "llsf", "jfsc", "lift")
SELECTIONS = {"average_precision": "average precision", EACH: "each metric itself"}
#: So many of the paper's standard deviations may our mean be worse.
DEVIATIONS = 2


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
    room = DEVIATIONS * max(cell.published_std, cell.rounding) + cell.rounding
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


def verdicts(store: Store) -> str:
    """Return how many of the paper's numbers are reproduced, method by method, by both rules."""
    rows = []
    for method in (m for m in PAPER if m in with_rows(store)):
        for selection, words in SELECTIONS.items():
            if selection == EACH and not searches(store, method):
                continue
            found = cells(store, selection, method, method)
            first, second = counts(found, "deviations"), counts(found, "welch")
            rows.append(
                [
                    named(method),
                    words if searches(store, method) else "(no search)",
                    *(str(first[v]) for v in ("reproduced", "better", "worse")),
                    *(str(second[v]) for v in ("reproduced", "better", "worse")),
                    str(sum(c.doubtful is not None for c in found)),
                ]
            )
    return table(
        [
            *("method", "settings chosen by", "within 2 deviations", "better", "worse"),
            *("not significantly different", "better", "worse", "in doubt"),
        ],
        rows,
    )


#: The data sets and methods of the short table of docs/baselines.md.
_SOME_SETS = ("scene", "yeast", "image", "enron", "medical")
_SOME_METHODS = (*PAPER[1:], "kernel_ridge", "extra_trees", "imcc")


def some_cells(store: Store) -> str:
    """Return a short table: average precision on five data sets, beside the paper's, and a count.

    Below the table it says which of the six are below the paper's number by more than 0.01.
    """
    metric = "average_precision"
    scores = store.scores(metric)
    printed = {
        (cell.dataset, cell.method): cell.published_mean
        for cell in compare_with_published({metric: scores}, PUBLISHED).cells
        if cell.metric == metric
    }
    rows, below = [], []
    for method in _SOME_METHODS:
        j = scores.methods.index(method)
        cells = []
        for dataset in _SOME_SETS:
            i = scores.datasets.index(dataset)
            mean, std = scores.mean()[i, j], scores.std()[i, j]
            text = f"{mean:.3f} ± {std:.3f}"
            paper = printed.get((dataset, method))
            if paper is not None:
                text += f" ({paper:.3f})"
                if method != "imcc" and paper - mean > 0.01:
                    below.append(f"{named(method)} on {dataset} ({paper - mean:.3f})")
            cells.append(text)
        rows.append([named(method), *cells])
    splits = scores.select(_SOME_SETS, _SOME_METHODS).counts
    n = f"{splits.min()} to {splits.max()}" if splits.min() < splits.max() else f"{splits.max()}"
    said = f"Over {n} splits. Of the six, below the paper's number by more than 0.01: "
    said += (listed(below) or "none") + "."
    return table(["", *_SOME_SETS], rows) + "\n\n" + prose(said).strip()


def passing(store: Store) -> dict[str, tuple[int, int, int, int]]:
    """Put the rows of every method beside the paper's numbers **for IMCC**, by the same rules.

    Settings are chosen by average precision.  The fewer splits, the easier it is to pass, so the
    last number is what IMCC's own rows reach on the same cells and splits.

    Returns
    -------
    dict of str to tuple
        For each method, cells run, those not worse by two deviations, those not significantly
        different, and the last for IMCC.
    """
    found = {}
    for method in _compared(store):
        run = _run(cells(store, "average_precision", method, "imcc", "imcc"))
        own = _run(cells(store, "average_precision", "imcc", "imcc", method))
        found[method] = (
            len(run),
            len(run) - counts(run, "deviations")["worse"],
            counts(run, "welch")["reproduced"],
            counts(own, "welch")["reproduced"],
        )
    return found


def _compared(store: Store) -> list[str]:
    """Return the methods that have enough data sets to be put beside the paper's columns."""
    scores = store.scores("average_precision")
    n_sets = dict(zip(scores.methods, (scores.counts > 0).sum(axis=0), strict=True))
    return [method for method in with_rows(store) if n_sets[method] >= FEWEST]


def _run(found: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in found if cell.verdict != "missing"]


def of_imcc(store: Store) -> list[dict[str, int]]:
    """Return the verdicts on IMCC's cells by Welch's test, for each of ``SELECTIONS``."""
    return [counts(cells(store, chosen_by, "imcc", "imcc"), "welch") for chosen_by in SELECTIONS]


def readme_counts(store: Store) -> str:
    """Return the table of the verdicts on IMCC's cells, by Welch's test."""
    verdicts = ("reproduced", "better", "worse")
    rows = [
        [words, *(str(n[verdict]) for verdict in verdicts)]
        for words, n in zip(SELECTIONS.values(), of_imcc(store), strict=True)
    ]
    return table(["settings chosen by", *verdicts], rows)
