"""Executors of tasks: in this process, in local worker processes, or on a Dask cluster.

All three call a function with its arguments and return the results in the order of completion.
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

from imcc._array.threads import n_cores
from imcc._utils.optional import require
from imcc._utils.validation import check_count

# Time that an idle worker has to exit before it is killed.
_PATIENCE_SECONDS = 5.0


class WorkerDiedError(RuntimeError):
    """A worker process exited or was killed during a call, for example for lack of memory."""


class Executor(Protocol):
    """Protocol of executors, which run ``n_workers`` calls in parallel."""

    n_workers: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a call and return its handle."""

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Wait until calls have completed, or for ``timeout`` seconds; return the completed."""

    def result(self, handle: Any) -> Any:
        """Return the result of a completed call; raise WorkerDiedError if its worker died."""

    def begun(self, handle: Any) -> float | None:
        """Return the start time of a call (``time.perf_counter``); None if unknown."""

    def stop(self, handle: Any) -> None:
        """Cancel a call."""

    def close(self, *, kill: bool = False) -> None:
        """Release all workers; with ``kill``, without waiting for running calls."""


class SerialExecutor:
    """Executor that runs calls one after the other in this process."""

    n_workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the call immediately."""
        done: Future[Any] = Future()
        done.set_result(function(*arguments))
        return done

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return all handles: the calls have completed."""
        return list(handles)

    def result(self, handle: Any) -> Any:
        """Return the result."""
        return handle.result()

    def begun(self, handle: Any) -> float | None:
        """Return None: the call has completed."""

    def stop(self, handle: Any) -> None:
        """Do nothing: the call has completed."""

    def close(self, *, kill: bool = False) -> None:
        """Do nothing: there are no workers."""


class _Call:
    """A call in a worker, and its result."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.value: Any = None
        self.error: str | None = None


# A worker must be able to import the same modules as this process.
_START_WORKER = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from imcc.experiment._executors import serve; serve()"
)


def serve() -> None:
    """Run the calls read from standard input until its end; the main function of a worker."""
    calls, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Methods that print or read must not interfere with the calls and their results.
    os.dup2(2, 1)
    with open(os.devnull) as nothing:
        sys.stdin = nothing
        while True:
            try:
                call = pickle.load(calls)
            except EOFError:
                return
            except Exception:  # arguments that cannot be unpickled here
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
    """A process that runs one call after the other, in its own process group.

    Ctrl-C in a terminal is sent to a whole group, and the main process decides what to stop.  By
    killing the group, all processes started by a method are killed, too.
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
        with suppress(OSError):  # a dead worker is noticed when reading its answer
            pickle.dump(value, pipe)
            pipe.flush()

    def begin(self, call: _Call, function: Callable[..., Any], arguments: Any) -> None:
        self.call = call
        self._begin.release()
        self._send((function, arguments))

    def _listen(self) -> None:
        """Wait for answers; in a thread, because not every system can poll pipes."""
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
        """Return whether the process is running, without reaping it."""
        if self.process.returncode is None and hasattr(os, "waitid"):
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.process.pid, look) is None
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill the process and its process group, unless it has been reaped."""
        if self.process.returncode is not None:
            return
        if hasattr(os, "killpg"):
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def close(self, *, kill: bool) -> None:
        """Stop the process and wait for it; with ``kill``, immediately."""
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


# Reads "+pid" and "-pid" lines; at the end of the input, kills the remaining process groups.
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
    """A process that kills the workers if this process is killed."""

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
        with suppress(OSError):  # it was killed; workers still exit when their pipes are closed
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


class ProcessExecutor:
    """Executor that runs calls in local processes; if one dies, only its call is lost.

    Parameters
    ----------
    n_workers : int
        Maximum number of processes.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._idle: list[_Worker] = []
        self._busy: dict[_Call, _Worker] = {}
        self._ended: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._guard: _Guard | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> _Call:
        """Start a call in an idle or a new worker."""
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
        """Return the completed calls."""
        deadline = None if timeout is None else time.monotonic() + timeout
        ended: list[_Call] = []
        while not ended:
            # Child processes of a dead worker may keep its pipe open, so kill its group.
            for worker in self._busy.values():
                if not worker.is_alive():
                    worker.kill()
            step = 0.5 if deadline is None else min(0.5, max(deadline - time.monotonic(), 0.0))
            found: list[_Call] = []
            with suppress(queue.Empty):
                found.append(self._ended.get(timeout=step))
                while True:
                    found.append(self._ended.get_nowait())
            ended = [call for call in found if call in self._busy]  # ignore stopped calls
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
        """Return when a worker started the call; None before that."""
        return handle.begun

    def stop(self, handle: _Call) -> None:
        """Kill the worker of a call."""
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
    """Executor that runs calls on a Dask cluster.

    Parameters
    ----------
    address : str or distributed.Client
        Address of a scheduler, a client, or ``"local"`` for a cluster of processes on this machine.
    n_workers : int or None, default=None
        Number of processes of a local cluster; None means one per core.
    """

    def __init__(self, address: Any, n_workers: int | None = None) -> None:
        self._distributed = require("distributed", "Running on a Dask cluster")
        self._owned: list[Any] = []
        if isinstance(address, self._distributed.Client):
            self._client = address
        elif address == "local":
            cluster = self._distributed.LocalCluster(
                n_workers=n_workers or n_cores(),
                threads_per_worker=1,
                dashboard_address=":0",  # any free port: the default one may be in use
            )
            self._client = self._distributed.Client(cluster)
            self._owned = [self._client, cluster]
        else:
            try:
                self._client = self._distributed.Client(str(address), timeout="10s")
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"cannot connect to a Dask scheduler at {address!r}: {error}"
                ) from error
            self._owned = [self._client]
        self.n_workers = max(1, sum(self._client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a call; Dask reruns it on another worker if a worker dies."""
        return self._client.submit(function, *arguments, pure=False)

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Return the completed calls."""
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
        """Return None: only the cluster knows."""

    def stop(self, handle: Any) -> None:
        """Cancel a call; if it has already started, it completes but its result is ignored."""
        handle.cancel()

    def close(self, *, kill: bool = False) -> None:
        """Disconnect from the cluster; shut it down if it was started here."""
        for owned in self._owned:
            owned.close()


def make_executor(n_jobs: int = 1, dask: Any = None, *, isolate: bool = False) -> Executor:
    """Return an executor.

    Parameters
    ----------
    n_jobs : int, default=1
        Number of tasks that run in parallel; -1 means one per core.
    dask : str, distributed.Client or None, default=None
        See :class:`DaskExecutor`; ``n_jobs`` is then the size of a local cluster.
    isolate : bool, default=False
        Whether to use a separate process even if ``n_jobs`` is 1.
    """
    if n_jobs == -1:
        n_jobs = n_cores()
    check_count("n_jobs", n_jobs)
    if dask is not None:
        return DaskExecutor(dask, n_jobs if n_jobs > 1 else None)
    return SerialExecutor() if n_jobs == 1 and not isolate else ProcessExecutor(n_jobs)
