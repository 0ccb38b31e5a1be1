"""The run of an experiment: tasks that are missing go out, rows come in and are stored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imcc._utils.validation import check_count
from imcc.experiment._claims import Claimant
from imcc.experiment._estimate import remaining_seconds
from imcc.experiment._executors import Executor, WorkerDiedError, make_executor
from imcc.experiment._measure import environment, now
from imcc.experiment._plan import Experiment, Task, TaskKey
from imcc.experiment._records import Failure, Outcome
from imcc.experiment._store import Store
from imcc.experiment._task import run_task


@dataclass(frozen=True)
class Progress:
    """The state of a run, told whenever a task begins or ends, and every second between.

    Attributes
    ----------
    n_tasks : int
        Tasks of the experiment.
    n_done : int
        Of these, with a result.
    n_failed : int
        Failed in this run.
    running : dict of key to float
        Tasks that are computed now, and for how many seconds already.
    last : Run, Study, Failure or None
        What has just come in.
    seconds : float
        Since the start of the run.
    remaining : float or None
        Estimate of the seconds that are left; None as long as nothing is known.
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
    """What a run did.

    Attributes
    ----------
    n_computed : int
        New results.
    failures : list of Failure
    n_missing : int
        Tasks that still have no result: failed ones, and those that another runner has taken.
    seconds : float
    """

    n_computed: int = 0
    failures: list[Failure] = field(default_factory=list)
    n_missing: int = 0
    seconds: float = 0.0


def run(
    experiment: Experiment,
    store: str | Path,
    *,
    n_jobs: int = 1,
    dask: Any = None,
    threads: int | None = None,
    device: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Compute the tasks of an experiment that a store does not have.

    Parameters
    ----------
    experiment : Experiment
    store : path
        The store; made if it is not there.  An experiment may join a store that has some of its
        rows.  Several runners may work on one store at the same time.
    n_jobs : int, default=1
        Tasks computed at the same time, in processes; -1 is one for each core.
    dask : str, distributed.Client or None, default=None
        Compute on a Dask cluster instead: its address, a client, or ``"local"``.
    threads : int or None, default=None
        Threads inside a task; by default the cores shared out evenly over the processes, and in
        this process what is usual here (such as ``OPENBLAS_NUM_THREADS`` says).
    device : str or None, default=None
        Where methods that know of devices work, such as ``"cuda"``.
    progress : callable or None
        Called with a :class:`Progress`.

    Returns
    -------
    Summary

    Notes
    -----
    A task that fails does not stop the others; it is tried again by the next run.  Rows are in the
    store as soon as they exist: a run that is stopped or killed goes on with the same call.
    """
    if threads is not None:
        check_count("threads", threads)
    executor = make_executor(n_jobs, dask)
    if threads is None and dask is not None:
        threads = 1
    elif threads is None and executor.n_workers > 1:
        threads = max(1, (os.cpu_count() or 1) // executor.n_workers)
    kill = True
    try:
        with Store.create(store, experiment) as opened, Claimant(opened.path) as claimant:
            how = (threads, device)
            summary = _Run(experiment, opened, executor, claimant, how, progress).go()
        kill = False
        return summary
    finally:
        executor.close(kill=kill)


class _Run:
    """One run; its parts are methods because they share so much."""

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        executor: Executor,
        claimant: Claimant,
        how: tuple[int | None, str | None],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.tasks = {task.key: task for task in experiment.tasks()}
        self.store, self.executor, self.claimant = store, executor, claimant
        self.how, self.progress = how, progress
        self.begun = time.perf_counter()
        self.summary = Summary()
        self.handles: dict[Any, Task] = {}
        self.since: dict[TaskKey, float] = {}
        self.suspects: list[Task] = []
        self.done = {result.key: result.seconds for result in store.results()}

    def go(self) -> Summary:
        """Keep all workers busy until nothing is left to claim."""
        while True:
            while len(self.handles) < self.executor.n_workers and self._submit_next():
                pass
            if not self.handles and not self.suspects:
                break
            for handle in self.executor.wait(list(self.handles), timeout=1.0):
                self._take_in(handle)
            if not self.handles:
                self._try_suspects()
            self._tell(None)
        done = self.store.keys()
        self.summary.n_missing = sum(key not in done for key in self.tasks)
        self.summary.seconds = time.perf_counter() - self.begun
        return self.summary

    def _submit_next(self) -> bool:
        key = self.claimant.claim(list(self.tasks))
        if key is None:
            return False
        self._submit(self.tasks[key])
        return True

    def _submit(self, task: Task) -> None:
        self.since[task.key] = time.perf_counter()
        if self.executor.n_workers == 1:
            self._tell(None)  # a serial executor comes back when the task is done
        self.handles[self.executor.submit(run_task, task, *self.how)] = task

    def _take_in(self, handle: Any) -> None:
        task = self.handles.pop(handle)
        try:
            outcome = self.executor.result(handle)
        except WorkerDiedError:
            # When one worker dies, so do the calls of the others: who did it, is found out later.
            self.since.pop(task.key)
            self.suspects.append(task)
            return
        self._keep(outcome)

    def _keep(self, outcome: Outcome) -> None:
        self.since.pop(outcome.key)
        new = self.store.add(outcome)
        if isinstance(outcome, Failure):
            self.summary.failures.append(outcome)
        else:
            self.done[outcome.key] = outcome.seconds
            self.summary.n_computed += new
        self._tell(outcome)

    def _try_suspects(self) -> None:
        """Compute one by one the tasks whose workers died; one that dies alone has failed."""
        while self.suspects:
            task = self.suspects.pop(0)
            start = self.since[task.key] = time.perf_counter()
            handle = self.executor.submit(run_task, task, *self.how)
            while not self.executor.wait([handle], timeout=1.0):
                self._tell(None)
            try:
                outcome = self.executor.result(handle)
            except WorkerDiedError as error:
                outcome = Failure(
                    task.key,
                    error=f"the worker process died, perhaps for lack of memory ({error})",
                    traceback="",
                    seconds=time.perf_counter() - start,
                    environment=environment(),
                    finished=now(),
                )
            self._keep(outcome)

    def _tell(self, last: Outcome | None) -> None:
        if self.progress is None:
            return
        present = time.perf_counter()
        running = {key: present - start for key, start in self.since.items()}
        failed = {failure.key for failure in self.summary.failures}
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
