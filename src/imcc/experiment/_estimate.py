"""How long the rest will take: learned from the tasks that are done."""

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
    """Estimate the time that is left.

    The time of a task is taken to be the product of a factor of its data set and one of its
    method (a sum of logarithms, fitted to the times that are known by least squares); known cells
    are taken as they are.

    Parameters
    ----------
    done : mapping of key to seconds
        Tasks that have ended.
    rest : iterable of keys
        Tasks that have not begun.
    running : mapping of key to seconds
        Tasks that run, and since when.
    n_workers : int

    Returns
    -------
    float or None
        Seconds; None as long as nothing is known.

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
    # No plan is shorter than its longest task.
    return max(sum(left) / n_workers, max(left, default=0.0))


def fit_times(done: Mapping[TaskKey, float]) -> Callable[[TaskKey], float] | None:
    """Return the function that estimates the seconds of a task from those that are done.

    None as long as nothing is done.
    """
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
    # Of the factors that fit equally well, those nearest to 1.
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
