"""Claims of tasks, so that runners that share a store do not compute the same task."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from imcc.experiment._database import connect, damage_in_words
from imcc.experiment._errors import StoreError
from imcc.experiment._results import TaskKey, parsed

if TYPE_CHECKING:
    from imcc.experiment._store import Store

_HEARTBEAT_SECONDS = 10.0
# A runner on another machine without a heartbeat for this long is considered dead.
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
        pid = os.getpid()
        self._runner = json.dumps([uuid.uuid4().hex, machine(), pid, process_start(pid)])
        self._begun = time.time()
        # Failures of earlier runs that were replaced by claims; they come back if these end
        # without an outcome.
        self._failed: dict[TaskKey, tuple[Any, ...]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="imcc-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop.set()
        self._thread.join()
        try:
            with self._store.writing() as connection:
                connection.execute(
                    "DELETE FROM tasks WHERE state = 'running' AND content = ?", (self._runner,)
                )
                for row in self._failed.values():
                    connection.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?)", row)
        except StoreError:
            # The disk may be full.  Claims expire when this process ends; keep the first error.
            if error is None:
                raise

    def claim(self, wanted: Sequence[TaskKey]) -> TaskKey | None:
        """Claim the first task that is neither done, nor claimed, nor has failed in this run."""
        with damage_in_words(self._store.path), self._store.writing() as connection:
            rows = connection.execute(
                "SELECT dataset, method, repetition, state, at, "
                "CASE state WHEN 'running' THEN content END FROM tasks"
            )
            taken = {
                TaskKey(*key)
                for *key, state, at, runner in rows
                if state == "done"
                or (state == "failed" and at >= self._begun)
                or (state == "running" and is_alive(runner, at))
            }
            key = next((key for key in wanted if key not in taken), None)
            if key is not None:
                before = connection.execute(
                    "SELECT * FROM tasks WHERE dataset = ? AND method = ? AND repetition = ? "
                    "AND state = 'failed'",
                    key,
                ).fetchone()
                if before is not None:
                    self._failed[key] = before
                connection.execute(
                    "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, 'running', ?, ?)",
                    (*key, self._runner, time.time()),
                )
        return key

    def give_back(self, key: TaskKey) -> None:
        """Release the claim on a task."""
        with self._store.writing() as connection:
            connection.execute(
                "DELETE FROM tasks WHERE dataset = ? AND method = ? AND repetition = ? "
                "AND state = 'running' AND content = ?",
                (*key, self._runner),
            )
            if key in self._failed:
                connection.execute(
                    "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?)", self._failed[key]
                )

    def _beat(self) -> None:
        while not self._stop.wait(_HEARTBEAT_SECONDS):
            try:
                with closing(connect(self._store.path)) as connection:
                    connection.execute(
                        "UPDATE tasks SET at = ? WHERE state = 'running' AND content = ?",
                        (time.time(), self._runner),
                    )
            except (sqlite3.Error, StoreError):
                # A missed heartbeat does no harm; problems with the file are reported when a row
                # is written.
                continue


def is_alive(runner: str, heartbeat: float) -> bool:
    """Return whether a runner is alive, by its process (same machine) or its heartbeat."""
    _, on, pid, started = parsed(runner, list)
    if not isinstance(pid, int):
        raise ValueError(f"the process {pid!r} of a runner")
    if on == machine():
        return process_start(pid) == started
    return time.time() - heartbeat < _SILENT_SECONDS


def machine() -> str:
    """Return an identifier of this machine and its last boot.

    Containers may have the same name but their own process ids, hence the namespace is included.
    """
    parts = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(os.readlink(path) if "ns" in path else Path(path).read_text().strip())
        except OSError:  # not Linux
            parts.append("")
    return "/".join(parts)


def process_start(pid: int) -> str:
    """Return the start time of a process as reported by the system; "" if it does not exist.

    The process id alone is not enough, since the system reuses ids.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    else:
        # After the name, which is in parentheses: state is field 3, start time field 22.
        fields = text.rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    try:
        os.kill(pid, 0)
    except PermissionError:
        return "unknown"
    except (OSError, OverflowError):
        return ""
    return "unknown"
