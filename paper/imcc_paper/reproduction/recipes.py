"""The ensemble's first recipe beside the present one; it is not ranked.

``results/recipe_1.csv`` has the rows of ``kernel_ensemble`` that were computed by the first recipe,
on the splits of the experiments.  That program is gone, so they cannot be computed again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from imcc.comparison import ScoreTable, effect_size
from imcc.metrics import METRICS
from imcc_paper.places import RESULTS
from imcc_paper.reproduction.rows import CONTROL, TITLES, prose, table

ROWS = RESULTS / "recipe_1.csv"


def first_recipe(scores: ScoreTable, metric: str, path: Path = ROWS) -> np.ndarray:
    """Return the metric of the first recipe, of shape (n_datasets, n_splits); NaN without a row."""
    found = np.full((len(scores.datasets), scores.values.shape[2]), np.nan)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["dataset"] in scores.datasets:
                i = scores.datasets.index(row["dataset"])
                found[i, int(row["repetition"])] = float(row[metric])
    return found


def beside(tables: Mapping[str, ScoreTable], path: Path = ROWS) -> Iterator[str]:
    """Yield the means of both recipes on each data set, and the differences of all metrics."""
    lines: dict[str, list[str]] = {}
    gaps: dict[str, str] = {}
    for metric in METRICS:
        scores = tables[metric]
        new = scores.values[:, scores.methods.index(CONTROL)]
        old = first_recipe(scores, metric, path)
        both = np.isfinite(new) & np.isfinite(old)
        means = [
            (name, int(k.sum()), a[k].mean(), b[k].mean())
            for name, k, a, b in zip(scores.datasets, both, old, new, strict=True)
            if k.any()
        ]
        mean, (_, high) = effect_size(np.array([after - before for *_, before, after in means]))
        gaps[metric] = f"{mean:+.4f} ± {high - mean:.4f}"
        if metric == "average_precision":
            for name, n, before, after in means:
                cells = [f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}"]
                lines[name] = [name, str(n), *cells]
    yield prose(
        f"Until its second recipe, `{CONTROL}` searched with eigenvectors, coupled labels and "
        "virtual examples, and approximated kernels of more than 8,000 rows. The rows of this "
        "first recipe are in `paper/results/recipe_1.csv`. They are shown here and ranked nowhere. "
        "Average precision on the splits that both have:"
    )
    yield table(["", "splits", "recipe 1", "recipe 2", "difference"], lines.values())
    yield "\n" + prose("Recipe 2 minus recipe 1, mean over data sets with a 95 % interval:")
    yield table([TITLES[m] for m in METRICS], [[gaps[m] for m in METRICS]])
    yield ""
