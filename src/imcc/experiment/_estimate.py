"""Estimation of the remaining time from the tasks that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from imcc.experiment._plan import TaskKey


def remaining_seconds(
    done: Mapping[TaskKey, float],
    rest: Iterable[TaskKey],
    running: Mapping[TaskKey, float],
    n_workers: int,
) -> float | None:
    """Estimate the remaining time of a run.

    The time of a task is modelled as the product of a factor of its data set and a factor of its
    method, fitted to the known times by least squares of their logarithms.  If the same method has
    already been run on the same data set, the mean of these times is used.

    Parameters
    ----------
    done : mapping of TaskKey to float
        Seconds of the completed tasks.
    rest : iterable of TaskKey
        Tasks that have not started.
    running : mapping of TaskKey to float
        Seconds for which the running tasks have been running.
    n_workers : int
        Number of tasks that run in parallel.

    Returns
    -------
    float or None
        Seconds; None if no task is done.

    Examples
    --------
    >>> done = {("scores", "a", "slow", 0): 10.0, ("scores", "a", "fast", 0): 1.0,
    ...         ("scores", "b", "fast", 0): 2.0}
    >>> round(remaining_seconds(done, [("scores", "b", "slow", 0)], {}, 1))
    20
    """
    guess = fit_times(done)
    if guess is None:
        return None
    left = [guess(key) for key in rest]
    left += [max(guess(key) - seconds, 0.0) for key, seconds in running.items()]
    # A run takes at least as long as its longest task.
    return max(sum(left) / n_workers, max(left, default=0.0))


def fit_times(done: Mapping[TaskKey, float]) -> Callable[[TaskKey], float] | None:
    """Return a function that estimates the seconds of a task, or None if no task is done."""
    if not done:
        return None
    cells: dict[tuple[str, str, str], list[float]] = {}
    for (kind, dataset, method, _), seconds in done.items():
        cells.setdefault((kind, dataset, method), []).append(max(seconds, 1e-3))
    known = {cell: float(np.mean(times)) for cell, times in cells.items()}
    datasets = sorted({dataset for _, dataset, _ in known})
    methods = sorted({(kind, method) for kind, _, method in known})
    design = np.zeros((len(known), len(datasets) + len(methods)))
    for row, (kind, dataset, method) in enumerate(known):
        design[row, datasets.index(dataset)] = 1
        design[row, len(datasets) + methods.index((kind, method))] = 1
    times = np.log(list(known.values()))
    # lstsq returns the solution of minimum norm: the factors nearest to 1.
    factors = np.linalg.lstsq(design, times - times.mean(), rcond=None)[0]
    of_dataset = dict(zip(datasets, factors, strict=False))
    of_method = dict(zip(methods, factors[len(datasets) :], strict=True))

    def guess(key: TaskKey) -> float:
        kind, dataset, method, _ = key
        if (kind, dataset, method) in known:
            return known[kind, dataset, method]
        log = times.mean() + of_dataset.get(dataset, 0.0) + of_method.get((kind, method), 0.0)
        return float(np.exp(log))

    return guess
