"""Rare and frequent labels: the rows of ``benchmarks.label_frequency``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.label_frequency import bin_names, bin_of, by_frequency, common_labels, read
from benchmarks.reproduction.rows import CONTROL, RESULTS, listed, prose, table
from imcc.comparison import effect_size
from imcc.report._ranked import FEW

FILE = RESULTS / "label_frequency.csv"


def frequencies() -> Iterator[str]:
    """Yield the means of each method over labels, by how many training rows have the label."""
    lines = read(FILE)
    datasets = dict.fromkeys(line["dataset"] for line in lines)
    counts, means = by_frequency(lines)
    yield prose(
        "The average precision of each label by itself (how well the test rows are ordered by the "
        f"label's score), on the first split of {listed(datasets)}: means over the labels that "
        "some but not all test rows have, by the number of training rows with the label. The best "
        "of a column is in bold. `python -m benchmarks.label_frequency` computes these rows."
    )
    best = [max(values[b] for values in means.values()) for b in range(len(counts))]
    rows = [["(labels)", *(str(n) for n in counts)]]
    for method, values in means.items():
        cells = [
            "none" if np.isnan(v) else f"**{v:.3f}**" if v == b else f"{v:.3f}"
            for v, b in zip(values, best, strict=True)
        ]
        rows.append([method, *cells])
    yield table(["training rows with the label", *bin_names()], rows)
    yield "\n" + prose(
        f"`{CONTROL}` minus the others, mean over the same labels with a 95 % interval (Student's "
        "t over labels; those of one data set are not independent, so that the intervals are "
        "rather too narrow):"
    )
    n_train, found = common_labels(lines)
    place = bin_of(n_train)
    yield table(
        ["against", *bin_names()],
        [
            [
                method,
                *(_difference((found[CONTROL] - values)[place == b]) for b in range(len(counts))),
            ]
            for method, values in found.items()
            if method != CONTROL
        ],
    )


def _difference(gap: np.ndarray) -> str:
    if len(gap) < FEW:
        return "too few labels"
    size = effect_size(gap)
    return f"{size.mean:+.3f} ± {size.mean_interval[1] - size.mean:.3f}"
