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
from imcc.experiment._select import calibrates, fit_choice, prepare, searches
from imcc.experiment._tables import TableData
from imcc.metrics import METRICS

# Below this many entries in X and Y, threads cost more than they save; see choose_threads.
_SMALL = 1_000_000


def choose_threads(data: Dataset, available: int | None = None) -> int | None:
    """Return the default number of threads of the linear algebra for a task.

    One if X and Y have less than a million entries (rows x (features + labels)), since
    synchronising threads then takes longer than computing; otherwise ``available``.  The rule only
    depends on the data, so that a result does not depend on the number of parallel tasks.
    """
    return 1 if data.n_rows * (data.n_features + data.n_labels) < _SMALL else available


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
                task = replace(task, method=task.method.resolve(task.allow))
            table = task.dataset.load_table() if task.dataset.is_table else None
            data = task.dataset.load() if table is None else table.labels
            fingerprint = (data if table is None else table).fingerprint()
            if fingerprint != (task.data_fingerprint or fingerprint):
                raise ExperimentError(
                    f"the data of {task.dataset.name!r} differ from those of existing results, so "
                    "that their splits differ, too: use another name for the new data, or a new "
                    "store"
                )
            seed = split_seed(task.protocol.seed, data.name, data.n_rows, task.repetition)
            limit = choose_threads(data, available) if threads is None else threads
            with threadpool_limits(limit), _seeded(seed):
                return _run(task, data, table, fingerprint, seed, meter, caught, device)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            reason = f"the method called sys.exit({error.code!r})"
        return failure(task, reason, time.perf_counter() - start, traceback.format_exc())


def failure(task: Task, error: str, seconds: float, trace: str = "") -> Failure:
    """Return the failure of a task."""
    return Failure(
        task.key,
        error=error,
        traceback=trace,
        seconds=seconds,
        environment=environment(),
        finished=now(),
    )


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


def _run(
    task: Task,
    data: Dataset,
    table: TableData | None,
    fingerprint: str,
    seed: int,
    meter: Meter,
    caught: list[Any],
    device: str | None,
) -> Run:
    protocol = task.protocol
    train, test = paper_splits(
        data,
        task.repetition + 1,
        protocol.test_size,
        protocol.seed,
        stratified=protocol.stratified,
    )[task.repetition]
    Y, Y_new = data.Y[train], data.Y[test]
    if table is None:
        X, X_new = data.X[train], data.X[test]
    else:
        X, X_new = table.features(train, test)
    if task.dataset.standardize:
        X, X_new = standardized(X, X_new)
    estimator = prepare(task, seed, device)
    start = time.perf_counter()
    estimator.fit(X, Y)
    fit_seconds = time.perf_counter() - start
    if not searches(estimator):
        scores, predicted, predict_seconds = _score(estimator, X_new, Y.shape[1])
        metrics = all_metrics(Y_new, scores, predicted)
        by_frequency = precision_by_frequency(Y, Y_new, scores)
        selections = [Selection(UNSEARCHED, {}, None, metrics, by_frequency)]
        search_seconds = 0.0
    else:
        search_seconds = fit_seconds
        selections, refit_seconds, predict_seconds = _select(
            estimator,
            protocol.scoring,
            X,
            Y,
            X_new,
            Y_new,
            # Not by the search itself, see prepare.
            calibrate=calibrates(task.method.build(task.allow)),
        )
        fit_seconds += refit_seconds
    return Run(
        key=task.key,
        fingerprint=task.fingerprint,
        data_fingerprint=fingerprint,
        seed=seed,
        n_train=len(train),
        n_test=len(test),
        n_features=X.shape[1],
        n_labels=data.n_labels,
        selections=tuple(selections),
        fit_seconds=fit_seconds,
        search_seconds=search_seconds,
        predict_seconds=predict_seconds,
        cpu_seconds=meter.cpu_seconds(),
        peak_memory=meter.peak_memory(),
        # Each warning once.
        warnings=tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)),
        environment={**environment(device), "threads": threads_in_use()},
        finished=now(),
    )


def standardized(X: Any, X_new: Any) -> tuple[Any, Any]:
    """Return the features of training and test rows, standardized by the training rows.

    Columns of a sparse matrix are divided by their standard deviation and not centred, so that
    they stay sparse.
    """
    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
    return scaler.transform(X), scaler.transform(X_new)


def _select(
    search: Any,
    scoring: str,
    X: Any,
    Y: np.ndarray,
    X_new: Any,
    Y_new: np.ndarray,
    calibrate: bool,
) -> tuple[list[Selection], float, float]:
    """Return the settings chosen by each metric, and the fit and predict times of the first.

    The metric of the experiment comes first.  Metrics that chose the same setting share a model.
    """
    fitted: dict[str, Any] = {}
    judged: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    selections, times = [], []
    for metric in (scoring, *(name for name in METRICS if name != scoring)):
        start = time.perf_counter()
        setting, cv_score = fit_choice(search, metric, fitted, X, Y, calibrate)
        refit_seconds = time.perf_counter() - start
        name = repr(setting)
        if name not in judged:
            scores, predicted, predict_seconds = _score(fitted[name], X_new, Y.shape[1])
            judged[name] = (
                all_metrics(Y_new, scores, predicted),
                precision_by_frequency(Y, Y_new, scores),
            )
            times.append((refit_seconds, predict_seconds))
        selections.append(Selection(metric, setting, cv_score, *judged[name]))
    return selections, *times[0]


def _score(model: Any, X: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray, float]:
    start = time.perf_counter()
    scores = centred_scores(model, X, n_labels)
    seconds = time.perf_counter() - start
    return scores, predictions(model, X, scores), seconds
