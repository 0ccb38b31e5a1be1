"""Where tasks are computed: here, in processes of this machine, or on a Dask cluster.

All three take a function and its arguments and hand back what it returned, in the order in which
the calls end; what they run is the same function with the same arguments.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from imcc._utils.optional import require
from imcc._utils.validation import check_count

# How long a worker that has nothing to do may take to end before it is killed.
_PATIENCE_SECONDS = 5.0


class WorkerDiedError(RuntimeError):
    """A worker was killed, or ended, while it computed; perhaps it ran out of memory."""


class Executor(Protocol):
    """Something that computes calls, ``n_workers`` at a time."""

    n_workers: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a call; return a handle."""

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return those that have ended, as soon as there are any (or the time is over)."""

    def result(self, handle: Any) -> Any:
        """Return what an ended call returned; raise WorkerDiedError if its worker died."""

    def begun(self, handle: Any) -> float | None:
        """Return when a call began to be computed (``time.perf_counter``); None if unknown."""

    def stop(self, handle: Any) -> None:
        """Cancel a call; its result is not needed any more."""

    def close(self, *, kill: bool = False) -> None:
        """Release all workers; with ``kill``, without waiting for what they compute."""


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

    def begun(self, handle: Any) -> float | None:
        """Return None: the call has ended."""

    def stop(self, handle: Any) -> None:
        """Do nothing: the call has ended."""

    def close(self, *, kill: bool = False) -> None:
        """Do nothing: there are no workers."""


class _Call:
    """A call that a worker computes, and what became of it."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.value: Any = None
        self.error: str | None = None


# A worker must find the modules that this process finds, ours among them.
_START_WORKER = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from imcc.experiment._executors import serve; serve()"
)


def serve() -> None:
    """Compute calls that come from standard input until it ends: the program of a worker."""
    calls, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a method prints or reads must not get between the calls and their results.
    os.dup2(2, 1)
    with open(os.devnull) as nothing:
        sys.stdin = nothing
        while True:
            try:
                call = pickle.load(calls)
            except EOFError:
                return
            except Exception:  # an argument that makes no sense here, whatever it is
                answer: tuple[Any, str | None] = (None, traceback.format_exc())
            else:
                pickle.dump("begun", results)
                results.flush()
                answer = _answer(*call)
            pickle.dump(answer, results)
            results.flush()


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    try:
        return function(*arguments), None
    except BaseException:
        return None, traceback.format_exc()


class _Worker:
    """A process that computes one call after the other; it leads its own process group.

    Ctrl-C in a terminal reaches a whole group, and the process that started the run decides what
    ends.  With its group, all that a method has started can be ended.
    """

    def __init__(self, ended: queue.SimpleQueue[_Call]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.call: _Call | None = None
        self._ended = ended
        self._begin = threading.Semaphore(0)
        self._send(sys.path)
        threading.Thread(target=self._listen, name="imcc-worker", daemon=True).start()

    def _send(self, value: Any) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        with suppress(OSError):  # that it is dead shows when the answer does not come
            pickle.dump(value, pipe)
            pipe.flush()

    def begin(self, call: _Call, function: Callable[..., Any], arguments: Any) -> None:
        self.call = call
        self._begin.release()
        self._send((function, arguments))

    def _listen(self) -> None:
        """Wait for the answers, in a thread, because not every system can wait for pipes."""
        pipe = self.process.stdout
        assert pipe is not None
        with pipe:
            while True:
                self._begin.acquire()
                call = self.call
                if call is None:
                    return
                try:
                    answer = pickle.load(pipe)
                    if answer == "begun":
                        call.begun = time.perf_counter()
                        answer = pickle.load(pipe)
                    call.value, call.error = answer
                except Exception:  # half an answer, or none
                    call.error = self._how_it_ended()
                    self._ended.put(call)
                    return
                self._ended.put(call)

    def _how_it_ended(self) -> str:
        self.kill()
        code = self.process.wait()
        if code >= 0:
            return f"the process of the task ended with exit code {code}"
        with suppress(ValueError):
            return f"the process of the task was ended by {signal.Signals(-code).name}"
        return f"the process of the task was ended by signal {-code}"

    def is_alive(self) -> bool:
        """Return whether the process runs; a dead one keeps its number until it is waited for."""
        if self.process.returncode is None and hasattr(os, "waitid"):
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.process.pid, look) is None
        return self.process.poll() is None

    def kill(self) -> None:
        """End the process and all that it has started, unless it has been waited for."""
        if self.process.returncode is not None:
            return
        if hasattr(os, "killpg"):
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def close(self, *, kill: bool) -> None:
        """Let it end; leave nothing of it behind."""
        if kill:
            self.kill()
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.kill()
        self.process.wait()
        self.call = None
        self._begin.release()


# Reads "+pid" and "-pid"; when the other end is gone, whatever way, ends the groups that are left.
_GUARD = """
import os, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(int(line[1:]))
for pid in left:
    try:
        os.killpg(pid, signal.SIGKILL) if hasattr(os, "killpg") else os.kill(pid, signal.SIGTERM)
    except OSError:
        continue
"""


class _Guard:
    """A process that ends the workers when this one is killed and can do nothing any more."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def watch(self, pid: int) -> None:
        self._say(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        self._say(f"-{pid}\n")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # someone has killed it: the workers still end with their pipes
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


class ProcessExecutor:
    """Computes in processes of this machine; one that dies takes only its own call with it.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._idle: list[_Worker] = []
        self._busy: dict[_Call, _Worker] = {}
        self._ended: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._guard: _Guard | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> _Call:
        """Begin a call, in a worker that is free or a new one."""
        while self._idle and not self._idle[-1].is_alive():
            self._end(self._idle.pop(), kill=True)
        if self._guard is None:
            self._guard = _Guard()
        if self._idle:
            worker = self._idle.pop()
        else:
            worker = _Worker(self._ended)
            self._guard.watch(worker.process.pid)
        call = _Call()
        self._busy[call] = worker
        worker.begin(call, function, arguments)
        return call

    def wait(self, handles: list[_Call], timeout: float | None = None) -> list[_Call]:
        """Return the calls that have ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        ended: list[_Call] = []
        while not ended:
            # What a dead worker has started may hold its pipe open, so that no end is seen there.
            for worker in self._busy.values():
                if not worker.is_alive():
                    worker.kill()
            step = 0.5 if deadline is None else min(0.5, max(deadline - time.monotonic(), 0.0))
            found: list[_Call] = []
            with suppress(queue.Empty):
                found.append(self._ended.get(timeout=step))
                while True:
                    found.append(self._ended.get_nowait())
            ended = [call for call in found if call in self._busy]  # not those that were given up
            if deadline is not None and time.monotonic() >= deadline:
                break
        for call in ended:
            worker = self._busy.pop(call)
            if worker.is_alive():
                self._idle.append(worker)
            else:
                self._end(worker, kill=True)
        return ended

    def result(self, handle: _Call) -> Any:
        """Return the result."""
        if handle.error is not None:
            raise WorkerDiedError(handle.error)
        return handle.value

    def begun(self, handle: _Call) -> float | None:
        """Return when a worker had started and taken the call up; None before that."""
        return handle.begun

    def stop(self, handle: _Call) -> None:
        """End the worker of a call."""
        if (worker := self._busy.pop(handle, None)) is not None:
            self._end(worker, kill=True)

    def close(self, *, kill: bool = False) -> None:
        """Stop the processes."""
        for worker in (*self._busy.values(), *self._idle):
            self._end(worker, kill=kill)
        self._busy.clear()
        self._idle.clear()
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def _end(self, worker: _Worker, *, kill: bool) -> None:
        worker.close(kill=kill)
        if self._guard is not None:
            self._guard.forget(worker.process.pid)


class DaskExecutor:
    """Computes on a Dask cluster.

    Parameters
    ----------
    address : str or distributed.Client
        A scheduler's address, a client, or ``"local"`` for a cluster of processes on this machine.
    n_workers : int or None
        Processes of a local cluster; None is one for each core.
    """

    def __init__(self, address: Any, n_workers: int | None = None) -> None:
        self._distributed = require("distributed", "dask", "Running on a Dask cluster")
        self._owned: list[Any] = []
        if isinstance(address, self._distributed.Client):
            self._client = address
        elif address == "local":
            cluster = self._distributed.LocalCluster(
                n_workers=n_workers or n_cores(),
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

    def begun(self, handle: Any) -> float | None:
        """Return None: it is known to the cluster only."""

    def stop(self, handle: Any) -> None:
        """Cancel a call on the cluster; one that has started runs to its end, and is ignored."""
        handle.cancel()

    def close(self, *, kill: bool = False) -> None:
        """Leave the cluster; end it if it was made here."""
        for owned in self._owned:
            owned.close()


def make_executor(n_jobs: int = 1, dask: Any = None, *, isolate: bool = False) -> Executor:
    """Return an executor.

    Parameters
    ----------
    n_jobs : int
        Tasks at the same time; -1 is one for each core.
    dask : str, distributed.Client or None
        See :class:`DaskExecutor`; ``n_jobs`` is then the size of a local cluster.
    isolate : bool
        Whether a single job gets a separate process, too.
    """
    if n_jobs == -1:
        n_jobs = n_cores()
    check_count("n_jobs", n_jobs)
    if dask is not None:
        return DaskExecutor(dask, n_jobs if n_jobs > 1 else None)
    return SerialExecutor() if n_jobs == 1 and not isolate else ProcessExecutor(n_jobs)


def n_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
