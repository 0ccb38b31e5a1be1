"""Claims of tasks, so that runners that share a store do not compute the same task."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Self

from imcc.experiment._database import connect
from imcc.experiment._errors import StoreError
from imcc.experiment._results import TaskKey, parsed

if TYPE_CHECKING:
    from imcc.experiment._store import Store

_HEARTBEAT_SECONDS = 10.0
# A runner without a heartbeat for this long is considered dead.
_SILENT_SECONDS = 120.0


class Claims:
    """The claims of a runner on the tasks of a store, a context manager.

    Parameters
    ----------
    store : Store
        The store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runner = json.dumps([uuid.uuid4().hex, machine(), os.getpid()])
        self._begun = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="imcc-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop.set()
        self._thread.join()
        try:
            self.release()
        except StoreError:
            # The disk may be full.  Claims expire when this process ends; keep the first error.
            if error is None:
                raise

    def claim(self, wanted: Sequence[TaskKey]) -> TaskKey | None:
        """Claim the first task that is neither done, nor claimed, nor has failed in this run."""
        with self._store.writing() as connection:
            ended = connection.execute(
                "SELECT dataset, method, repetition FROM tasks WHERE state = 'done' OR at >= ?",
                (self._begun,),
            )
            taken = {TaskKey(*row) for row in ended}.union(self._store.running())
            key = next((key for key in wanted if key not in taken), None)
            if key is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO claims (dataset, method, repetition, runner, at) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (*key, self._runner, time.time()),
                )
        return key

    def release(self) -> None:
        """Release all claims of this runner."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM claims WHERE runner = ?", (self._runner,))

    def _beat(self) -> None:
        while not self._stop.wait(_HEARTBEAT_SECONDS):
            try:
                with closing(connect(self._store.path)) as connection:
                    connection.execute(
                        "UPDATE claims SET at = ? WHERE runner = ?", (time.time(), self._runner)
                    )
            except (sqlite3.Error, StoreError):
                # A missed heartbeat does no harm; problems with the file are reported when a row
                # is written.
                continue


def is_alive(runner: str, heartbeat: float) -> bool:
    """Return whether a runner is alive: by its heartbeat and, on this machine, by its process."""
    _, on, pid = parsed(runner, list)
    if not isinstance(pid, int):
        raise ValueError(f"the process {pid!r} of a runner")
    if time.time() - heartbeat >= _SILENT_SECONDS:
        return False
    if on != machine() or os.name != "posix":  # elsewhere, signal 0 is no question
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def machine() -> str:
    """Return the name of this machine, and the namespace of its process ids.

    Containers may have the same name but their own process ids.
    """
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux
        namespace = ""
    return f"{platform.node()}/{namespace}"
