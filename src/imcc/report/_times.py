"""Comparable training times: with the same number of threads, data sets and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imcc.experiment import Run


@dataclass(frozen=True)
class Times:
    """The training times of a method on CPUs or GPUs.

    Attributes
    ----------
    method : str
    place : {"CPU", "GPU"}
    seconds : dict of str to float
        Median training time over the splits per data set, including the search.
    machines : frozenset of str
        Processors and devices on which the runs were computed.
    """

    method: str
    place: str
    seconds: dict[str, float]
    machines: frozenset[str]

    @property
    def mean(self) -> float:
        """Geometric mean over the data sets."""
        return float(np.exp(np.mean(np.log(list(self.seconds.values())))))

    def shared(self, other: Times) -> list[str]:
        """Return the data sets that both have."""
        return [dataset for dataset in self.seconds if dataset in other.seconds]

    def ratio(self, reference: Times) -> float:
        """Return the geometric mean of the ratios of times over the common data sets."""
        logs = [np.log(self.seconds[d] / reference.seconds[d]) for d in self.shared(reference)]
        return float(np.exp(np.mean(logs)))


def gather_times(runs: Sequence[Run]) -> tuple[int, list[Times], int]:
    """Return the most common number of threads, the times with it, and the number of other runs.

    If a method has runs on the machine that computed most of them, on all of its data sets, only
    these count, so that the times of different methods compare the methods and not the machines.

    Parameters
    ----------
    runs : sequence of Run
        At least one.  The number of threads is 0 if it is not known.
    """
    threads = [int(run.environment.get("threads") or 0) for run in runs]
    usual = Counter(threads).most_common(1)[0][0]
    used = [run for run, n in zip(runs, threads, strict=True) if n == usual]
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in used:
        groups.setdefault((run.key.method, _place(run)), []).append(run)
    times = []
    for (method, place), of_method in sorted(groups.items()):
        machines = Counter(_machine(run) for run in used if _place(run) == place)
        usual_machine = machines.most_common(1)[0][0]
        chosen = [run for run in of_method if _machine(run) == usual_machine]
        if {run.key.dataset for run in chosen} != {run.key.dataset for run in of_method}:
            chosen = of_method
        seconds: dict[str, list[float]] = {}
        for run in chosen:
            seconds.setdefault(run.key.dataset, []).append(run.fit_seconds)
        # A clock does not resolve shorter times.
        medians = {d: max(float(np.median(each)), 1e-6) for d, each in seconds.items()}
        times.append(Times(method, place, medians, frozenset(map(_machine, chosen))))
    return usual, times, len(runs) - len(used)


def _place(run: Run) -> str:
    return "GPU" if run.environment.get("device") else "CPU"


def _machine(run: Run) -> str:
    """Return processor and device of a run; the number of cores does not matter."""
    parts = (run.environment.get("processor"), run.environment.get("device"))
    return ", ".join(str(part) for part in parts if part)
