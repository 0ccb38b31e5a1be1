"""Computation of the result of a task."""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from imcc.datasets import Dataset, paper_splits, split_seed
from imcc.estimators import EdgeOfGridWarning
from imcc.experiment._errors import ExperimentError
from imcc.experiment._measure import Meter, environment, now, threads_in_use
from imcc.experiment._plan import Task
from imcc.experiment._results import UNSEARCHED, Failure, Run, Selection
from imcc.experiment._scores import (
    all_metrics,
    centred_scores,
    precision_by_frequency,
    predictions,
)
from imcc.experiment._select import fit_choice, prepare, searches
from imcc.experiment._tables import TableData
from imcc.metrics import METRICS

# Below this many entries in X and Y, synchronising threads takes longer than computing.
_SMALL = 1_000_000


def run_task(
    task: Task,
    threads: int | None = None,
    device: str | None = None,
    available: int | None = None,
) -> Run | Failure:
    """Compute the result of a task.

    The metrics of a task are reproducible up to rounding in the linear algebra.  The global random
    generators of NumPy and Python are seeded with the seed of the task, for methods that use them.

    Parameters
    ----------
    task : Task
        The task.
    threads : int or None, default=None
        Number of threads of the linear algebra.  By default, one for less than a million entries in
        X and Y, otherwise ``available``.
    device : str or None, default=None
        Device for methods with a ``device`` parameter, such as ``"cuda"``; not part of the task.
    available : int or None, default=None
        Number of threads of a large task; None means the default of this process.

    Returns
    -------
    Run or Failure
        A failure if an error was raised or ``sys.exit`` was called; KeyboardInterrupt is not
        caught.
    """
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The grid is part of the experiment, so that warnings about its bounds are not useful.
            warnings.simplefilter("ignore", EdgeOfGridWarning)
            meter = Meter()
            if not task.method.is_resolved:
                task = replace(task, method=task.method.resolve())
            data = task.dataset.load()
            fingerprint = data.fingerprint()
            if fingerprint != (task.data_fingerprint or fingerprint):
                raise ExperimentError(
                    f"the data of {task.dataset.name!r} differ from those of existing results, so "
                    "that their splits differ, too: use another name for the new data, or a new "
                    "store"
                )
            seed = split_seed(task.protocol.seed, data.name, data.n_rows, task.repetition)
            if threads is None:
                # Of the data alone, so that a result does not depend on the number of tasks.
                small = data.n_rows * (data.n_features + data.n_labels) < _SMALL
                threads = 1 if small else available
            with threadpool_limits(threads), _seeded(seed):
                return Run(
                    key=task.key,
                    fingerprint=task.fingerprint,
                    data_fingerprint=fingerprint,
                    seed=seed,
                    n_labels=data.n_labels,
                    **_measure(task, data, seed, device),
                    cpu_seconds=meter.cpu_seconds(),
                    peak_memory=meter.peak_memory(),
                    # Each warning once.
                    warnings=tuple(
                        dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
                    ),
                    environment={**environment(device), "threads": threads_in_use()},
                    finished=now(),
                )
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            reason = f"the method called sys.exit({error.code!r})"
        return failure(task, reason, time.perf_counter() - start, traceback.format_exc())


def failure(task: Task, error: str, seconds: float, trace: str = "") -> Failure:
    """Return the failure of a task."""
    return Failure(task.key, error, trace, seconds, now())


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, and restore their states afterwards."""
    # Methods with global generators use the legacy functions.
    before, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpys)  # noqa: NPY002


def _measure(task: Task, data: Dataset, seed: int, device: str | None) -> dict[str, Any]:
    """Split the data, fit the method and score the held-out rows; return fields of a Run."""
    protocol = task.protocol
    train, test = paper_splits(
        data,
        task.repetition + 1,
        protocol.test_size,
        protocol.seed,
        stratified=protocol.stratified,
    )[task.repetition]
    Y, Y_new = data.Y[train], data.Y[test]
    if isinstance(data, TableData):
        X, X_new = data.features(train, test)
    else:
        X, X_new = data.X[train], data.X[test]
    if task.dataset.standardize:
        # Sparse columns are not centred, so that they stay sparse.
        scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
        X, X_new = scaler.transform(X), scaler.transform(X_new)
    estimator, calibrate = prepare(task, seed, device)
    start = time.perf_counter()
    estimator.fit(X, Y)
    fit_seconds = search_seconds = time.perf_counter() - start
    setting: dict[str, Any] = {}
    cv_score: float | None = None
    fitted: dict[str, Any] = {}  # by the repr of their settings
    # The metric of the experiment comes first; the times are those of its choice.
    metrics = (protocol.scoring, *(name for name in METRICS if name != protocol.scoring))
    if not searches(estimator):
        search_seconds, metrics = 0.0, (UNSEARCHED,)
        fitted[repr(setting)] = estimator
    selections: list[Selection] = []
    scored: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    for metric in metrics:
        start = time.perf_counter()
        if metric != UNSEARCHED:
            setting, cv_score = fit_choice(estimator, metric, fitted, X, Y, calibrate)
        chosen = time.perf_counter()
        name = repr(setting)
        if name not in scored:  # settings that are chosen twice share a model
            model = fitted[name]
            scores = centred_scores(model, X_new, Y.shape[1])
            if not selections:
                fit_seconds += chosen - start
                predict_seconds = time.perf_counter() - chosen
            judged = all_metrics(Y_new, scores, predictions(model, X_new, scores))
            scored[name] = judged, precision_by_frequency(Y, Y_new, scores)
        selections.append(Selection(metric, setting, cv_score, *scored[name]))
    return {
        "n_train": len(train),
        "n_test": len(test),
        "n_features": X.shape[1],
        "selections": tuple(selections),
        "fit_seconds": fit_seconds,
        "search_seconds": search_seconds,
        "predict_seconds": predict_seconds,
    }
