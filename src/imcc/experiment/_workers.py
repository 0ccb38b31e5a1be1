"""Computation of calls in worker processes."""

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
from typing import Any, BinaryIO

# Time that the end of a killed worker has to reach the thread that listens to it.
_PATIENCE_SECONDS = 5.0


class WorkerDiedError(RuntimeError):
    """A worker process exited or was killed during a call, for example for lack of memory."""


# A worker must be able to import the same modules as this process.
_START_WORKER = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from imcc.experiment._workers import serve; serve()"
)


class Worker:
    """A process that computes one call after the other, in its own process group.

    Ctrl-C in a terminal is sent to a whole group, and the main process decides what to stop.  By
    killing the group, all processes started by a method are killed, too.

    Attributes
    ----------
    begun : float or None
        When the process began with its present call (``time.perf_counter``); None before that.
    """

    def __init__(self) -> None:
        self.begun: float | None = None
        self._thread: threading.Thread | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._send(sys.path)
        threading.Thread(target=self._end_group, daemon=True).start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start a call; its future raises WorkerDiedError if the process ends before it has."""
        self.begun = None
        future: Future[Any] = Future()
        call = function, arguments
        # In a thread, because not every system can poll pipes.
        self._thread = threading.Thread(target=self._compute, args=(call, future), daemon=True)
        self._thread.start()
        return future

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # a dead worker is noticed when reading its answer
            pickle.dump(value, self._process.stdin)
            self._process.stdin.flush()

    def _compute(self, call: Any, future: Future[Any]) -> None:
        assert self._process.stdout is not None
        self._send(call)
        try:
            answer = pickle.load(self._process.stdout)
            if answer == "begun":
                self.begun = time.perf_counter()
                answer = pickle.load(self._process.stdout)
            value, error = answer
        except Exception:  # half an answer, or none
            self._kill()
            value, error = None, f"the process of the task {_ending(self._process.wait())}"
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(WorkerDiedError(error))

    def _end_group(self) -> None:
        """Kill the process group when the process has ended: its children may hold the pipes."""
        with suppress(ChildProcessError):  # somebody else waited for it
            if hasattr(os, "waitid"):  # which keeps its id from being used again
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
                self._kill()
        self._process.wait()

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def _kill(self) -> None:
        if self._process.returncode is not None:
            return
        if hasattr(os, "killpg"):
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def close(self) -> None:
        """Kill the process and all that it started, and wait for it."""
        self._kill()
        self._process.wait()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
            if self._thread.is_alive():  # a process of the method that left the group has the pipe
                return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # what was not sent
            self._process.stdin.close()
        self._process.stdout.close()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def serve() -> None:
    """Run the calls read from standard input; the main function of a worker."""
    results = os.fdopen(os.dup(1), "wb")
    # Methods that print or read must not interfere with the calls and their results.
    os.dup2(2, 1)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, calls), daemon=True).start()
    with open(os.devnull) as empty:
        sys.stdin = empty
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
