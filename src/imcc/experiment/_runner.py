"""Running an experiment: missing tasks are computed and stored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imcc._array.device import n_cores
from imcc._utils.validation import check_count, check_number
from imcc.experiment._claims import Claims
from imcc.experiment._describe import packages_of
from imcc.experiment._plan import Experiment, Task
from imcc.experiment._results import Failure, Run, TaskKey
from imcc.experiment._store import Store
from imcc.experiment._task import failure, run_task
from imcc.experiment._workers import Worker, WorkerDiedError

# Seconds between looks at the clock and the store while tasks are computed.
_TICK_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Progress of a run, reported when a task starts or ends, and about twice per second.

    Attributes
    ----------
    n_tasks : int
        Number of tasks of the experiment.
    n_done : int
        Number of tasks with a result.
    n_failed : int
        Number of tasks that failed in this run.
    running : dict of TaskKey to float
        Seconds for which the running tasks have been running.
    last : Run, Failure or None
        Result of the task that has just ended, if any.
    remaining : float or None
        Estimated remaining seconds; None if no task is done.
    """

    n_tasks: int
    n_done: int
    n_failed: int
    running: dict[TaskKey, float]
    last: Run | Failure | None
    remaining: float | None


@dataclass(frozen=True)
class Summary:
    """Summary of a run.

    Attributes
    ----------
    n_computed : int
        Number of new results.
    failures : list of Failure
        Tasks that failed.
    n_missing : int
        Number of tasks without a result: failed tasks, tasks claimed by other runners, and tasks
        for which the budget did not suffice.
    n_out_of_time : int
        Number of tasks for which the budget did not suffice.
    seconds : float
        Duration of the run.
    """

    n_computed: int
    failures: list[Failure]
    n_missing: int
    n_out_of_time: int
    seconds: float


def run(
    experiment: Experiment,
    store: str | Path,
    *,
    n_jobs: int = 1,
    device: str | None = None,
    allow: Iterable[str] = (),
    isolate: bool | None = None,
    timeout: float | None = None,
    budget: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Compute the tasks of an experiment that are missing in a store.

    Running an experiment imports and runs its methods: only classes with ``fit`` from allowed
    packages.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    store : path-like
        The store; it is created if it does not exist.  It may already have results of the same or
        of an overlapping experiment.  Several runs may use the same store at the same time.
    n_jobs : int, default=1
        Number of tasks computed in parallel, in processes; -1 means one per core.  A task on a
        small data set (less than a million entries in X and Y) has one thread; others have the
        cores divided by the number of processes, or the default of the linear algebra library (see
        ``OPENBLAS_NUM_THREADS``) for a single process.
    device : str or None, default=None
        Device for methods with a ``device`` parameter, such as ``"cuda"``.
    allow : iterable of str, default=()
        Packages from which methods may be imported, in addition to imcc, sklearn and ``allow`` of
        the experiment, which is empty for an experiment read from a store.
    isolate : bool or None, default=None
        Whether to compute tasks in separate processes, so that a task that crashes, hangs or exits
        does not stop the run.  By default, this is done if a method uses classes outside imcc, or
        if ``n_jobs``, ``timeout`` or ``budget`` require it.
    timeout : float or None, default=None
        Maximum number of seconds per task; a task that takes longer is stopped and counts as
        failed.
    budget : float or None, default=None
        Maximum number of seconds of the run.  Tasks that are not expected to complete in time are
        not started, and tasks that are still running at the end are stopped; they are left to the
        next run.
    progress : callable or None, default=None
        Function that is called when a task starts or ends, and about twice per second, with an
        object that has ``n_tasks``, ``n_done``, ``n_failed``, ``running`` (seconds by task),
        ``last`` (the result of the task that has just ended, or None) and ``remaining`` (estimated
        seconds, or None).

    Returns
    -------
    Summary

    Notes
    -----
    A failed task does not stop the others; it is retried by the next run.  Results are stored
    immediately: after an interruption, the same call resumes the run.  If stored results allow to
    estimate the times of tasks, the longest tasks are started first.
    """
    begun = time.perf_counter()
    if timeout is not None:
        check_number("timeout", timeout, above=0)
    if budget is not None:
        check_number("budget", budget, at_least=0)
    n_workers = n_cores() if n_jobs == -1 else check_count("n_jobs", n_jobs)
    experiment = experiment.resolve(allow)
    if isolate is None:
        isolate = any(packages_of(method.description) for method in experiment.methods)
    # Only a process can be stopped.
    isolate = isolate or n_workers > 1 or timeout is not None or budget is not None
    available = max(1, n_cores() // n_workers) if n_workers > 1 else None
    with Store.create(store, experiment) as opened, Claims(opened) as claims:
        running = _Running(
            experiment,
            opened,
            claims,
            n_workers=n_workers,
            isolate=isolate,
            how=(None, device, available),
            begun=begun,
            deadline=None if budget is None else begun + budget,
            timeout=timeout,
            progress=progress,
        )
        try:
            return running.compute()
        finally:
            for worker in (*running.idle, *(call.worker for call in running.calls.values())):
                if worker is not None:
                    worker.close()


class _Call(NamedTuple):
    """A task that is being computed, since when, and its worker if it is not this process."""

    task: Task
    worker: Worker | None
    since: float


@dataclass
class _Running:
    """The state of a run."""

    experiment: Experiment
    store: Store
    claims: Claims
    n_workers: int
    isolate: bool
    how: tuple[Any, ...]  # the other arguments of run_task
    begun: float
    deadline: float | None
    timeout: float | None
    progress: Callable[[Progress], None] | None

    def __post_init__(self) -> None:
        self.failures: dict[TaskKey, Failure] = {}
        self.n_computed = 0
        self.idle: list[Worker] = []
        self.calls: dict[Future[Any], _Call] = {}
        runs = self.store.runs()
        self.done = {run.key: run.seconds for run in runs}
        data = {run.key.dataset: run.data_fingerprint for run in runs}
        self.tasks = {
            task.key: replace(task, data_fingerprint=data.get(task.dataset.name))
            for task in self.experiment.tasks()
        }

    def compute(self) -> Summary:
        """Submit tasks until there are none left to claim, or the budget is used up."""
        while True:
            while len(self.calls) < self.n_workers and self._submit_next():
                pass
            if not self.calls:
                break
            for future in wait(self.calls, _TICK_SECONDS, FIRST_COMPLETED).done:
                call = self.calls.pop(future)
                if call.worker is not None:
                    self.idle.append(call.worker)
                self._keep(_outcome(future, call))
            self._stop_late_tasks()
            self.store.check_in_place()
            self._report(None)
        self.store.check_in_place()
        self.claims.release()  # of what was stopped at the end of the time
        done = self.store.keys()
        missing = self.tasks.keys() - done
        left = missing - self.failures.keys() - set(self.store.running())
        return Summary(
            n_computed=self.n_computed,
            failures=list(self.failures.values()),
            n_missing=len(missing),
            n_out_of_time=0 if self.deadline is None else len(left),
            seconds=time.perf_counter() - self.begun,
        )

    def _submit_next(self) -> bool:
        self.store.check_in_place()
        key = self.claims.claim(self._wanted())
        if key is None:
            return False
        task, since = self.tasks[key], time.perf_counter()
        future: Future[Any] = Future()
        if self.isolate:
            worker = self.idle.pop() if self.idle else Worker()
            if not worker.is_alive():
                worker.close()
                worker = Worker()
            future = worker.submit(run_task, task, *self.how)
            self.calls[future] = _Call(task, worker, since)
        else:
            self.calls[future] = _Call(task, None, since)
            self._report(None)
            future.set_result(run_task(task, *self.how))
        return True

    def _wanted(self) -> list[TaskKey]:
        """Return the tasks that may be started now, the longest first."""
        left = math.inf if self.deadline is None else self.deadline - time.perf_counter()
        if left <= 0:
            return []
        seconds = _fit_times(self.done)
        if seconds is None:
            return list(self.tasks)
        expected = {key: seconds(key) for key in self.tasks}
        return sorted((k for k in self.tasks if expected[k] <= left), key=lambda k: -expected[k])

    def _stop_late_tasks(self) -> None:
        present = time.perf_counter()
        for future, call in list(self.calls.items()):
            begun = None if call.worker is None else call.worker.begun
            running = 0.0 if begun is None else present - begun
            too_slow = self.timeout is not None and running >= self.timeout
            if not too_slow and (self.deadline is None or present < self.deadline):
                continue
            del self.calls[future]
            if call.worker is not None:
                call.worker.close()
            if too_slow:
                reason = f"took longer than the timeout of {self.timeout:g} s and was stopped"
                self._keep(failure(call.task, reason, running))

    def _keep(self, outcome: Run | Failure) -> None:
        new = self.store.add(outcome)
        if isinstance(outcome, Failure):
            self.failures[outcome.key] = outcome
        else:
            self.done[outcome.key] = outcome.seconds
            self.n_computed += new
        self._report(outcome)

    def _report(self, last: Run | Failure | None) -> None:
        if self.progress is None:
            return
        present = time.perf_counter()
        running = {call.task.key: present - call.since for call in self.calls.values()}
        rest = self.tasks.keys() - self.done.keys() - running.keys() - self.failures.keys()
        self.progress(
            Progress(
                n_tasks=len(self.tasks),
                n_done=len(self.tasks.keys() & self.done.keys()),
                n_failed=len(self.failures),
                running=running,
                last=last,
                remaining=remaining_seconds(self.done, rest, running, self.n_workers),
            )
        )


def _outcome(future: Future[Any], call: _Call) -> Run | Failure:
    try:
        outcome: Run | Failure = future.result()
    except WorkerDiedError as error:
        # A crash during a computation is often due to a lack of memory.
        last = str(error).strip().splitlines()[-1]
        reason = f"the worker process died, possibly for lack of memory ({last})"
        outcome = failure(call.task, reason, time.perf_counter() - call.since, str(error))
    return outcome


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
    >>> done = {("a", "slow", 0): 10.0, ("a", "fast", 0): 1.0, ("b", "fast", 0): 2.0}
    >>> round(remaining_seconds(done, [("b", "slow", 0)], {}, 1))
    20
    """
    guess = _fit_times(done)
    if guess is None:
        return None
    left = [guess(key) for key in rest]
    left += [max(guess(key) - seconds, 0.0) for key, seconds in running.items()]
    # A run takes at least as long as its longest task.
    return max(sum(left) / n_workers, max(left, default=0.0))


def _fit_times(done: Mapping[TaskKey, float]) -> Callable[[TaskKey], float] | None:
    """Return a function that estimates the seconds of a task, or None if no task is done."""
    if not done:
        return None
    cells: dict[tuple[str, str], list[float]] = {}
    for (dataset, method, _), seconds in done.items():
        cells.setdefault((dataset, method), []).append(max(seconds, 1e-3))
    known = {cell: float(np.mean(times)) for cell, times in cells.items()}
    datasets, methods = (sorted(set(names)) for names in zip(*known, strict=True))
    design = np.array(
        [[name == d for name in datasets] + [name == m for name in methods] for d, m in known],
        dtype=float,
    )
    times = np.log(list(known.values()))
    # lstsq returns the solution of minimum norm: the factors nearest to 1.
    factors = np.linalg.lstsq(design, times - times.mean(), rcond=None)[0]
    of_dataset = dict(zip(datasets, factors, strict=False))
    of_method = dict(zip(methods, factors[len(datasets) :], strict=True))

    def guess(key: TaskKey) -> float:
        dataset, method, _ = key
        if (dataset, method) in known:
            return known[dataset, method]
        log = times.mean() + of_dataset.get(dataset, 0.0) + of_method.get(method, 0.0)
        return float(np.exp(log))

    return guess
