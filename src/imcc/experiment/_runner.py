"""Running an experiment: missing tasks are computed and stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imcc._array.threads import n_cores
from imcc._utils.validation import check_count, check_number
from imcc.experiment._claims import Claimant
from imcc.experiment._estimate import fit_times, remaining_seconds
from imcc.experiment._executors import (
    Executor,
    ProcessExecutor,
    WorkerDiedError,
    make_executor,
)
from imcc.experiment._plan import Experiment, Task, TaskKey
from imcc.experiment._records import Failure, Outcome
from imcc.experiment._store import Store
from imcc.experiment._task import failure, run_task


@dataclass(frozen=True)
class Progress:
    """Progress of a run, reported when a task starts or ends, and about once per second.

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
    last : Run, Study, Failure or None
        Result of the task that has just ended, if any.
    seconds : float
        Seconds since the start of the run.
    remaining : float or None
        Estimated remaining seconds; None if no task is done.
    """

    n_tasks: int
    n_done: int
    n_failed: int
    running: dict[TaskKey, float]
    last: Outcome | None
    seconds: float
    remaining: float | None


@dataclass
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

    n_computed: int = 0
    failures: list[Failure] = field(default_factory=list)
    n_missing: int = 0
    n_out_of_time: int = 0
    seconds: float = 0.0


def run(
    experiment: Experiment,
    store: str | Path,
    *,
    n_jobs: int = 1,
    dask: Any = None,
    threads: int | None = None,
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
        Number of tasks computed in parallel, in processes; -1 means one per core.
    dask : str, distributed.Client or None, default=None
        Address of a Dask scheduler, a client, or ``"local"``, to compute on a Dask cluster instead.
    threads : int or None, default=None
        Number of threads per task.  By default, one for small data sets (less than a million
        entries in X and Y); otherwise the cores divided by the number of processes, the default of
        the linear algebra library (see ``OPENBLAS_NUM_THREADS``) for a single process, or one with
        Dask.
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
        Function that is called with a :class:`Progress`.

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
    if threads is not None:
        check_count("threads", threads)
    if timeout is not None:
        check_number("timeout", timeout, above=0)
    if budget is not None:
        check_number("budget", budget, at_least=0)
    experiment = experiment.resolve(allow)
    alone = isolate
    if isolate is None:
        alone = timeout is not None or not all(task.method.is_ours for task in experiment.tasks())
    executor = make_executor(n_jobs, dask, isolate=bool(alone) or budget is not None)
    available = None
    if dask is not None:
        available = 1
    elif executor.n_workers > 1:
        available = max(1, n_cores() // executor.n_workers)
    how = (threads, device, available)
    # On a cluster, an isolated task starts a process on the worker.
    call: tuple[Any, ...] = (run_task,)
    if dask is not None and alone:
        call = (run_alone, timeout)
    kill = True
    try:
        with Store.create(store, experiment) as opened, Claimant(opened.path) as claimant:
            running = _Run(experiment, opened, executor, claimant, (call, how), progress)
            running.begun = begun
            running.deadline = None if budget is None else begun + budget
            running.timeout = None if dask is not None else timeout
            summary = running.compute()
        kill = False
        return summary
    finally:
        executor.close(kill=kill)


def run_alone(timeout: float | None, task: Task, *how: Any) -> Outcome:
    """Compute a task in a separate process; if the process dies, the task has failed."""
    executor = ProcessExecutor(1)
    start = time.perf_counter()
    try:
        handle = executor.submit(run_task, task, *how)
        while not executor.wait([handle], 0.5 if timeout is None else min(timeout, 0.5)):
            begun = executor.begun(handle)
            if timeout is not None and begun and time.perf_counter() - begun >= timeout:
                return _too_slow(task, timeout, begun)
        return _outcome(executor, handle, task, start)
    finally:
        executor.close(kill=True)


def _outcome(executor: Executor, handle: Any, task: Task, start: float) -> Outcome:
    try:
        outcome: Outcome = executor.result(handle)
    except WorkerDiedError as error:
        lines = str(error).strip().splitlines() or [""]
        # A crash during a computation is often due to a lack of memory.
        reason = f"the worker process died, possibly for lack of memory ({lines[-1]})"
        outcome = failure(task, reason, time.perf_counter() - start, str(error))
    return outcome


def _too_slow(task: Task, timeout: float | None, start: float) -> Failure:
    reason = f"took longer than the timeout of {timeout:g} s and was stopped"
    return failure(task, reason, time.perf_counter() - start)


class _Run:
    """The state of a run."""

    timeout: float | None = None
    deadline: float | None = None

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        executor: Executor,
        claimant: Claimant,
        how: tuple[tuple[Any, ...], tuple[Any, ...]],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.tasks = {task.key: task for task in experiment.tasks()}
        self.store, self.executor, self.claimant = store, executor, claimant
        self.how, self.progress = how, progress
        self.begun = time.perf_counter()
        self.summary = Summary()
        self.handles: dict[Any, Task] = {}
        self.since: dict[TaskKey, float] = {}
        self.done = {result.key: result.seconds for result in store.results()}

    def compute(self) -> Summary:
        """Submit tasks until there are none left to claim, or the budget is used up."""
        while True:
            while len(self.handles) < self.executor.n_workers and self._submit_next():
                pass
            if not self.handles:
                break
            for handle in self.executor.wait(list(self.handles), timeout=self._patience()):
                task = self.handles.pop(handle)
                self._keep(_outcome(self.executor, handle, task, self.since[task.key]))
            self._stop_late_tasks()
            self.store.check_in_place()
            self._report(None)
        self._sum_up()
        return self.summary

    def _sum_up(self) -> None:
        self.store.check_in_place()
        done, running = self.store.keys(), set(self.store.running())
        missing = [key for key in self.tasks if key not in done]
        self.summary.n_missing = len(missing)
        failed = {found.key for found in self.summary.failures}
        if self.deadline is not None:
            left = [key for key in missing if key not in failed and key not in running]
            self.summary.n_out_of_time = len(left)
        self.summary.seconds = time.perf_counter() - self.begun

    def _submit_next(self) -> bool:
        self.store.check_in_place()
        key = self.claimant.claim(self._wanted())
        if key is None:
            return False
        task = self.tasks[key]
        self.since[task.key] = time.perf_counter()
        if self.executor.n_workers == 1:
            self._report(None)  # a serial executor returns when the task is done
        (function, *first), how = self.how
        self.handles[self.executor.submit(function, *first, task, *how)] = task
        return True

    def _wanted(self) -> list[TaskKey]:
        """Return the tasks that may be started now, the longest first."""
        left = None if self.deadline is None else self.deadline - time.perf_counter()
        if left is not None and left <= 0:
            return []
        seconds = fit_times(self.done)
        if seconds is None:
            return list(self.tasks)
        expected = {key: seconds(key) for key in self.tasks}
        fitting = [key for key in self.tasks if left is None or expected[key] <= left]
        return sorted(fitting, key=lambda key: -expected[key])

    def _patience(self) -> float:
        """Return how long to wait before the next timeout, deadline or progress report."""
        present = time.perf_counter()
        moments = [present + 1.0]
        if self.deadline is not None:
            moments.append(self.deadline)
        if self.timeout is not None:
            begun = (self.executor.begun(handle) for handle in self.handles)
            moments += [start + self.timeout for start in begun if start is not None]
        return max(min(moments) - present, 0.0)

    def _stop_late_tasks(self) -> None:
        present = time.perf_counter()
        for handle, task in list(self.handles.items()):
            start = self.executor.begun(handle)
            if self.timeout is not None and start is not None and present - start >= self.timeout:
                self._give_up(handle)
                self._keep(_too_slow(task, self.timeout, start))
            elif self.deadline is not None and present >= self.deadline:
                self._give_up(handle)
                self.since.pop(task.key)
                self.claimant.give_back(task.key)

    def _give_up(self, handle: Any) -> None:
        self.handles.pop(handle)
        self.executor.stop(handle)

    def _keep(self, outcome: Outcome) -> None:
        self.since.pop(outcome.key)
        new = self.store.add(outcome)
        if isinstance(outcome, Failure):
            self.summary.failures.append(outcome)
        else:
            self.done[outcome.key] = outcome.seconds
            self.summary.n_computed += new
        self._report(outcome)

    def _report(self, last: Outcome | None) -> None:
        if self.progress is None:
            return
        present = time.perf_counter()
        running = {key: present - start for key, start in self.since.items()}
        failed = {found.key for found in self.summary.failures}
        rest = [
            key
            for key in self.tasks
            if key not in self.done and key not in running and key not in failed
        ]
        self.progress(
            Progress(
                n_tasks=len(self.tasks),
                n_done=sum(key in self.done for key in self.tasks),
                n_failed=len(failed),
                running=running,
                last=last,
                seconds=present - self.begun,
                remaining=remaining_seconds(self.done, rest, running, self.executor.n_workers),
            )
        )
