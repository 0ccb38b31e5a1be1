"""Comparable training times: with one thread on a CPU, on the same data sets and machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from imcc.experiment import Run, Store
from imcc_paper._measured import table

PLACES = ("CPU", "GPU")
#: Median training seconds of a method by data set and processor.
Seconds = dict[tuple[str, str], float]


def place(run: Run) -> str:
    """Return whether a run was computed on a CPU or a GPU."""
    return "GPU" if run.environment.get("device") else "CPU"


def training_times(runs: Sequence[Run]) -> dict[str, Seconds]:
    """Return the times of each method with one thread on a CPU, search included."""
    cells: dict[str, dict[tuple[str, str], list[float]]] = {}
    for run in runs:
        if place(run) == "CPU" and run.environment.get("threads") == 1:
            where = run.key.dataset, str(run.environment.get("processor"))
            cells.setdefault(run.key.method, {}).setdefault(where, []).append(run.fit_seconds)
    return {
        method: {where: float(np.median(seconds)) for where, seconds in of.items()}
        for method, of in cells.items()
    }


def ratio(times: Seconds, reference: Seconds) -> float | None:
    """Return the geometric mean of the ratios of times; None without common data sets."""
    logs = [
        np.log(_positive(seconds) / _positive(reference[where]))
        for where, seconds in times.items()
        if where in reference
    ]
    return float(np.exp(np.mean(logs))) if logs else None


def _positive(seconds: float) -> float:
    return max(seconds, 1e-6)  # below the resolution of a clock


def origins(store: Store, methods: Sequence[str]) -> str:
    """Return how many rows each method has, by where they were computed, and what is missing."""
    runs = store.runs()
    found = Counter((run.key.method, place(run)) for run in runs)
    total = len(store.experiment.datasets) * store.experiment.n_repeats
    rows = []
    for method in methods:
        have = {run.key.dataset for run in runs if run.key.method == method}
        lacking = [spec.name for spec in store.experiment.datasets if spec.name not in have]
        n = [found[method, where] for where in PLACES]
        rows.append(
            [method, *(str(k) for k in n), f"{sum(n)} of {total}", ", ".join(lacking) or "none"]
        )
    return table(["method", "on a CPU", "on a GPU", "rows", "data sets without a row"], rows)
