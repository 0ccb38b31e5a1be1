"""Training times that can be compared: at equal threads, on the same data sets and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from imcc.experiment import Run

PLACES = ("CPU", "GPU")


def place(run: Run) -> str:
    """Return where a row was computed."""
    return "GPU" if run.environment.get("device") else "CPU"


def threads(run: Run) -> int:
    """Return with how many threads; 0 if that is not known."""
    return int(run.environment.get("threads") or 0)


@dataclass(frozen=True)
class Times:
    """The training times of a method at one place.

    Attributes
    ----------
    method, place : str
    seconds : dict of str to float
        The median over the splits, search included, for each data set.
    predict : dict of str to float
        The same of scoring the test rows.
    n_runs : int
    machines : frozenset of str
        The processors and devices that the runs were computed on.
    """

    method: str
    place: str
    seconds: dict[str, float]
    predict: dict[str, float]
    n_runs: int
    machines: frozenset[str] = frozenset()


def gather_times(runs: Sequence[Run]) -> tuple[int, list[Times], int]:
    """Return the usual number of threads, the times with it, and how many rows have another.

    Parameters
    ----------
    runs : sequence of Run
        At least one.
    """
    usual = Counter(threads(run) for run in runs).most_common(1)[0][0]
    cells: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        if threads(run) == usual:
            of_method = cells.setdefault((run.key[2], place(run)), {})
            of_method.setdefault(run.key[1], []).append(run)
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


def _machine(run: Run) -> str:
    """Return what a run was computed on; its number of cores does not matter at equal threads."""
    parts = (run.environment.get("processor"), run.environment.get("device"))
    return ", ".join(str(part) for part in parts if part)


def ratio(times: Times, reference: Times) -> float | None:
    """Return the geometric mean of the times divided by those of the reference; None without."""
    common = [d for d in times.seconds if d in reference.seconds]
    if not common:
        return None
    logs = [np.log(_positive(times.seconds[d]) / _positive(reference.seconds[d])) for d in common]
    return float(np.exp(np.mean(logs)))


def _positive(seconds: float) -> float:
    return max(seconds, 1e-6)  # below the resolution of a clock


@dataclass(frozen=True)
class TimeRatio:
    """How much longer the training of one method takes than that of another.

    Attributes
    ----------
    method : str
        The other method.
    factor : float
        Geometric mean over the data sets.
    place : str
        Where both were computed.
    n : int
        The number of data sets that both have there.
    same_machine : bool
        Whether both were computed on the same processors and devices.
    """

    method: str
    factor: float
    place: str
    n: int
    same_machine: bool


def time_ratio(times: Iterable[Times], method: str, other: str) -> TimeRatio | None:
    """Return how much longer a method takes than another one, where they have most in common.

    Parameters
    ----------
    times : iterable of Times
        From :func:`gather_times`.
    method, other : str
        The two methods.

    Returns
    -------
    TimeRatio or None
        None if they have no data set in common at any place.
    """
    by = {(t.method, t.place): t for t in times}
    found = []
    for where in PLACES:
        first, second = by.get((method, where)), by.get((other, where))
        factor = None if first is None or second is None else ratio(first, second)
        if first is not None and second is not None and factor is not None:
            n = len(first.seconds.keys() & second.seconds.keys())
            found.append(TimeRatio(other, factor, where, n, first.machines == second.machines))
    return max(found, key=lambda r: r.n, default=None)
