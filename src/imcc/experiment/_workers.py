"""Computation of tasks in this process, or in worker processes."""

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
from contextlib import suppress
from typing import Any, BinaryIO

# Time that the end of a killed worker has to reach the thread that listens to it.
_PATIENCE_SECONDS = 5.0


class WorkerDiedError(RuntimeError):
    """A worker process exited or was killed during a call, for example for lack of memory."""


class Call:
    """A call of a function, and its result.

    Attributes
    ----------
    begun : float or None
        When a worker started the call (``time.perf_counter``); None before that.
    """

    def __init__(self) -> None:
        self.begun: float | None = None
        self.value: Any = None
        self.error: str | None = None

    def result(self) -> Any:
        """Return the result of a completed call; raise WorkerDiedError if its worker died."""
        if self.error is not None:
            raise WorkerDiedError(self.error)
        return self.value


class SerialExecutor:
    """Runs calls one after the other in this process, with the methods of ProcessExecutor."""

    n_workers = 1

    def __init__(self) -> None:
        self._ended: list[Call] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Call:
        """Run the call immediately."""
        call = Call()
        call.value = function(*arguments)
        self._ended.append(call)
        return call

    def wait(self, timeout: float) -> list[Call]:
        """Return the completed calls."""
        ended, self._ended = self._ended, []
        return ended

    def stop(self, call: Call) -> None:
        """Do nothing: the call has completed."""

    def close(self) -> None:
        """Do nothing: there are no workers."""


class ProcessExecutor:
    """Runs calls in local processes; if one dies, only its call is lost.

    Parameters
    ----------
    n_workers : int
        Maximum number of processes.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._idle: list[_Worker] = []
        self._busy: dict[Call, _Worker] = {}
        self._ended: queue.SimpleQueue[Call] = queue.SimpleQueue()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Call:
        """Start a call in an idle or a new worker."""
        while self._idle and not self._idle[-1].is_alive():
            self._idle.pop().close()
        worker = self._idle.pop() if self._idle else _Worker()
        call = Call()
        self._busy[call] = worker
        worker.begin(call, (function, arguments), self._ended)
        return call

    def wait(self, timeout: float) -> list[Call]:
        """Wait until calls have completed, or for ``timeout`` seconds; return the completed."""
        deadline = time.monotonic() + timeout
        ended: list[Call] = []
        while not ended:
            # Child processes of a dead worker may keep its pipe open, so kill its group.
            for worker in self._busy.values():
                if not worker.is_alive():
                    worker.kill()
            left = deadline - time.monotonic()
            with suppress(queue.Empty):
                ended.append(self._ended.get(timeout=min(0.5, max(left, 0.0))))
                while True:
                    ended.append(self._ended.get_nowait())
            ended = [call for call in ended if call in self._busy]  # ignore stopped calls
            if left <= 0:
                break
        for call in ended:
            worker = self._busy.pop(call)
            if worker.is_alive():
                self._idle.append(worker)
            else:
                worker.close()
        return ended

    def stop(self, call: Call) -> None:
        """Kill the worker of a call."""
        if (worker := self._busy.pop(call, None)) is not None:
            worker.close()

    def close(self) -> None:
        """Kill the workers."""
        for worker in (*self._busy.values(), *self._idle):
            worker.close()
        self._busy.clear()
        self._idle.clear()


# A worker must be able to import the same modules as this process.
_START_WORKER = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from imcc.experiment._workers import serve; serve()"
)


class _Worker:
    """A process that runs one call after the other, in its own process group.

    Ctrl-C in a terminal is sent to a whole group, and the main process decides what to stop.  By
    killing the group, all processes started by a method are killed, too.
    """

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._send(sys.path)

    def _send(self, value: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a dead worker is noticed when reading its answer
            pickle.dump(value, self.process.stdin)
            self.process.stdin.flush()

    def begin(self, call: Call, what: Any, ended: queue.SimpleQueue[Call]) -> None:
        """Start a call; it is put into a queue when it has completed."""
        # In a thread, because not every system can poll pipes.
        self._thread = threading.Thread(target=self._compute, args=(call, what, ended), daemon=True)
        self._thread.start()

    def _compute(self, call: Call, what: Any, ended: queue.SimpleQueue[Call]) -> None:
        assert self.process.stdout is not None
        self._send(what)
        try:
            answer = pickle.load(self.process.stdout)
            if answer == "begun":
                call.begun = time.perf_counter()
                answer = pickle.load(self.process.stdout)
            call.value, call.error = answer
        except Exception:  # half an answer, or none
            call.error = self._how_it_ended()
        ended.put(call)

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

    def close(self) -> None:
        """Kill the process and wait for it."""
        self.kill()
        self.process.wait()
        self._thread.join(_PATIENCE_SECONDS)
        if self._thread.is_alive():  # a process of the method that left the group has the pipe
            return
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):  # what was not sent
            self.process.stdin.close()
        self.process.stdout.close()


def serve() -> None:
    """Run the calls read from standard input; the main function of a worker."""
    results = os.fdopen(os.dup(1), "wb")
    # Methods that print or read must not interfere with the calls and their results.
    os.dup2(2, 1)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, calls), daemon=True).start()
    with open(os.devnull) as nothing:
        sys.stdin = nothing
        while True:
            call = calls.get()
            answer: tuple[Any, str | None] = (None, call)
            if not isinstance(call, str):
                pickle.dump("begun", results)
                results.flush()
                function, arguments = call
                try:
                    answer = function(*arguments), None
                except BaseException:
                    answer = None, traceback.format_exc()
            pickle.dump(answer, results)
            results.flush()


def _receive(source: BinaryIO, calls: queue.SimpleQueue[Any]) -> None:
    """Pass on calls; end this process and those it has started if the main process is gone."""
    while True:
        try:
            calls.put(pickle.load(source))
        except EOFError:
            if hasattr(os, "killpg"):
                os.killpg(0, signal.SIGKILL)
            os._exit(1)
        except Exception:  # arguments that cannot be unpickled here
            calls.put(traceback.format_exc())
