"""Cells without a row, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.reproduction.rows import listed, prose
from imcc.comparison import ScoreTable
from imcc.experiment import Store


class Reason(NamedTuple):
    """Why some methods have no row on some data sets; an empty field stands for all."""

    experiment: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    text: str


#: The first that fits a cell is its reason.
REASONS = (
    Reason(
        "",
        ("mahr", "mahr_calibrated"),
        ("bibtex", "goemotions"),
        "each round searches stumps on thousands of features for all labels, and the calibrator "
        "fits five more models: computing time",
    ),
    Reason(
        "",
        ("llsf_calibrated", "jfsc_calibrated", "mahr_calibrated"),
        (),
        "the calibrator fits the whole search five more times, on folds of the training rows: "
        "computing time",
    ),
    Reason("", ("imcc_calibrated",), (), "computing time on a GPU"),
)


def reason(experiment: str, dataset: str, method: str) -> str | None:
    """Return why a cell has no row; None if nothing is written down about it."""
    for found in REASONS:
        if (
            found.experiment in ("", experiment)
            and (not found.methods or method in found.methods)
            and (not found.datasets or dataset in found.datasets)
        ):
            return found.text
    return None


def empty_cells(scores: ScoreTable) -> list[tuple[str, str]]:
    """Return data set and method of the cells without a row."""
    return [
        (dataset, method)
        for i, dataset in enumerate(scores.datasets)
        for j, method in enumerate(scores.methods)
        if scores.counts[i, j] == 0
    ]


def reasons(store: Store) -> Iterator[str]:
    """Yield which cells were not run, and why."""
    scores = store.scores("coverage")
    cells = empty_cells(scores)
    if not cells:
        yield prose("Every method has rows on every data set.")
        return
    groups: dict[str, dict[str, list[str]]] = {}
    for dataset, method in cells:
        text = reason(store.experiment.name, dataset, method) or "no reason is written down"
        groups.setdefault(text, {}).setdefault(method, []).append(dataset)
    yield prose(
        f"{len(cells)} of {scores.counts.size} cells of data set and method have no row. Where a "
        "method has fewer splits than others, computing time was the reason, too."
    )
    for text, methods in groups.items():
        parts = []
        for method, datasets in methods.items():
            everywhere = len(datasets) == len(scores.datasets)
            where = "any data set" if everywhere else listed(datasets)
            parts.append(f"{method} on {where}")
        yield "* " + prose(f"{'; '.join(parts)}: {text}.").rstrip().replace("\n", "\n  ")
    yield ""
