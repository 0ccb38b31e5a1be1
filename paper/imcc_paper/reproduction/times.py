"""Comparable training times: with the same number of threads, data sets and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imcc.experiment import Run

PLACES = ("CPU", "GPU")


def place(run: Run) -> str:
    """Return whether a run was computed on a CPU or a GPU."""
    return "GPU" if run.environment.get("device") else "CPU"


def threads(run: Run) -> int:
    """Return the number of threads of a run; 0 if unknown."""
    return int(run.environment.get("threads") or 0)


@dataclass(frozen=True)
class Times:
    """The training times of a method on CPUs or GPUs.

    Attributes
    ----------
    method, place : str
    seconds : dict of str to float
        Median training time over the splits per data set, including the search.
    predict : dict of str to float
        Median time of scoring the test rows per data set.
    n_runs : int
    machines : frozenset of str
        Processors and devices on which the runs were computed.
    """

    method: str
    place: str
    seconds: dict[str, float]
    predict: dict[str, float]
    n_runs: int
    machines: frozenset[str] = frozenset()


def gather_times(runs: Sequence[Run]) -> tuple[int, list[Times], int]:
    """Return the most common number of threads, the times with it, and the number of other runs.

    If a method has runs on the machine that computed most of them, on all of its data sets, only
    these count, so that the times of different methods compare the methods and not the machines.

    Parameters
    ----------
    runs : sequence of Run
        At least one.
    """
    usual = Counter(threads(run) for run in runs).most_common(1)[0][0]
    cells: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        if threads(run) == usual:
            of_method = cells.setdefault((run.key.method, place(run)), {})
            of_method.setdefault(run.key.dataset, []).append(run)
    main = {
        where: Counter(
            _machine(run)
            for (_, at), of_method in cells.items()
            if at == where
            for of in of_method.values()
            for run in of
        ).most_common(1)[0][0]
        for where in {at for _, at in cells}
    }
    cells = {key: _on_machine(of_method, main[key[1]]) for key, of_method in cells.items()}
    times = [
        Times(
            method,
            where,
            {d: float(np.median([r.fit_seconds for r in of])) for d, of in of_method.items()},
            {d: float(np.median([r.predict_seconds for r in of])) for d, of in of_method.items()},
            sum(len(of) for of in of_method.values()),
            frozenset(_machine(run) for of in of_method.values() for run in of),
        )
        for (method, where), of_method in sorted(cells.items())
    ]
    return usual, times, sum(threads(run) != usual for run in runs)


def _on_machine(of_method: dict[str, list[Run]], machine: str) -> dict[str, list[Run]]:
    """Return the runs on a machine if they cover all data sets, otherwise all runs."""
    there = {d: [run for run in of if _machine(run) == machine] for d, of in of_method.items()}
    return there if all(there.values()) else of_method


def _machine(run: Run) -> str:
    """Return processor and device of a run; the number of cores does not matter."""
    parts = (run.environment.get("processor"), run.environment.get("device"))
    return ", ".join(str(part) for part in parts if part)


def ratio(times: Times, reference: Times) -> float | None:
    """Return the geometric mean of the ratios of times; None without common data sets."""
    common = [d for d in times.seconds if d in reference.seconds]
    if not common:
        return None
    logs = [np.log(_positive(times.seconds[d]) / _positive(reference.seconds[d])) for d in common]
    return float(np.exp(np.mean(logs)))


def _positive(seconds: float) -> float:
    return max(seconds, 1e-6)  # below the resolution of a clock
