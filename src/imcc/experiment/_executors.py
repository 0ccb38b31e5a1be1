"""Where tasks are computed: here, in processes of this machine, or on a Dask cluster.

All three take a function and its arguments and hand back what it returned, in the order in which
the calls end; what they run is the same function with the same arguments.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any, Protocol

from joblib.externals.loky import ProcessPoolExecutor

from imcc._utils.optional import require
from imcc._utils.validation import check_count


class WorkerDiedError(RuntimeError):
    """A worker was killed, or died, while it computed; perhaps it ran out of memory."""


class Executor(Protocol):
    """Something that computes calls, ``n_workers`` at a time."""

    n_workers: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a call; return a handle."""

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return those that have ended, as soon as there are any (or the time is over)."""

    def result(self, handle: Any) -> Any:
        """Return what an ended call returned; raise WorkerDiedError if its worker died."""

    def close(self, *, kill: bool = False) -> None:
        """Let go of all workers; with ``kill``, without waiting for what they compute."""


class SerialExecutor:
    """Computes in this process, one call after the other."""

    n_workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Compute at once."""
        done: Future[Any] = Future()
        done.set_result(function(*arguments))
        return done

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return all of them: they have ended."""
        return list(handles)

    def result(self, handle: Any) -> Any:
        """Return the result."""
        return handle.result()

    def close(self, *, kill: bool = False) -> None:
        """Do nothing: there are no workers."""


class ProcessExecutor:
    """Computes in processes of this machine (joblib's loky).

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool = self._make_pool()

    def _make_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.n_workers, initializer=_ignore_interrupts)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin a call; a pool whose workers died is replaced."""
        try:
            return self._pool.submit(function, *arguments)
        except BrokenExecutor:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = self._make_pool()
            return self._pool.submit(function, *arguments)

    def wait(self, handles: list[Future[Any]], timeout: float | None = None) -> list[Future[Any]]:
        """Return the calls that have ended."""
        return list(wait(handles, timeout, return_when=FIRST_COMPLETED).done)

    def result(self, handle: Future[Any]) -> Any:
        """Return the result."""
        try:
            return handle.result()
        except BrokenExecutor as error:
            raise WorkerDiedError(str(error)) from error

    def close(self, *, kill: bool = False) -> None:
        """Stop the processes."""
        self._pool.shutdown(wait=True, kill_workers=kill)


class DaskExecutor:
    """Computes on a Dask cluster.

    Parameters
    ----------
    address : str or distributed.Client
        A scheduler's address, a client, or ``"local"`` for a cluster of processes on this machine.
    n_workers : int or None
        Processes of a local cluster; None is one a core.
    """

    def __init__(self, address: Any, n_workers: int | None = None) -> None:
        self._distributed = require("distributed", "dask", "Running on a Dask cluster")
        self._owned: list[Any] = []
        if isinstance(address, self._distributed.Client):
            self._client = address
        elif address == "local":
            cluster = self._distributed.LocalCluster(
                n_workers=n_workers or os.cpu_count(),
                threads_per_worker=1,
                dashboard_address=":0",  # any free port: the usual one may be taken
            )
            self._client = self._distributed.Client(cluster)
            self._owned = [self._client, cluster]
        else:
            try:
                self._client = self._distributed.Client(str(address), timeout="10s")
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"no Dask scheduler answers at {address!r}: {error}"
                ) from error
            self._owned = [self._client]
        self.n_workers = max(1, sum(self._client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a call; Dask gives it to another worker if one dies."""
        return self._client.submit(function, *arguments, pure=False)

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return the calls that have ended."""
        try:
            done = self._distributed.wait(handles, timeout, return_when="FIRST_COMPLETED").done
        except (TimeoutError, self._distributed.TimeoutError):
            return []
        return list(done)

    def result(self, handle: Any) -> Any:
        """Return the result."""
        try:
            return handle.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise WorkerDiedError(str(error)) from error

    def close(self, *, kill: bool = False) -> None:
        """Leave the cluster; end it if it was made here."""
        for owned in self._owned:
            owned.close()


def make_executor(n_jobs: int = 1, dask: Any = None) -> Executor:
    """Return the executor that was asked for.

    Parameters
    ----------
    n_jobs : int
        Processes; 1 is this one, -1 one for each core.
    dask : str, distributed.Client or None
        See :class:`DaskExecutor`; ``n_jobs`` is then the size of a local cluster.
    """
    if n_jobs == -1:
        n_jobs = os.cpu_count() or 1
    check_count("n_jobs", n_jobs)
    if dask is not None:
        return DaskExecutor(dask, n_jobs if n_jobs > 1 else None)
    return SerialExecutor() if n_jobs == 1 else ProcessExecutor(n_jobs)


def _ignore_interrupts() -> None:
    # Ctrl-C reaches every process of the terminal; the one that runs the show decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
