"""Claims of tasks, so that runners that share a store do not compute the same task."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from imcc.experiment._database import connect, errors_in_words, transaction
from imcc.experiment._errors import StoreError
from imcc.experiment._plan import TaskKey

HEARTBEAT_SECONDS = 10.0
# A runner on another machine without a heartbeat for this long is considered dead.
SILENT_SECONDS = 120.0


class Claimant:
    """The claims of a runner on the tasks of a store, a context manager.

    Parameters
    ----------
    path : Path
        The store.
    heartbeat : float, default=10.0
        Seconds between heartbeats.
    """

    def __init__(self, path: Path, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self.path = path
        self.id = uuid.uuid4().hex
        self.begun = time.time()
        self._heartbeat = heartbeat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="imcc-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._connection = connect(self.path)
        with errors_in_words(self.path), transaction(self._connection):
            self._connection.execute(
                "INSERT INTO runners VALUES (?, ?, ?, ?, ?)",
                (self.id, machine(), os.getpid(), process_start(os.getpid()), time.time()),
            )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        try:
            with errors_in_words(self.path), transaction(self._connection):
                self._forget([self.id])
        except StoreError:
            # The disk may be full.  Claims expire when this process ends; keep the first error.
            if error is None:
                raise
        finally:
            self._connection.close()

    def claim(self, wanted: Sequence[TaskKey]) -> TaskKey | None:
        """Claim the first task that is neither done, nor claimed, nor has failed in this run."""
        with errors_in_words(self.path), transaction(self._connection):
            self._drop_dead_runners()
            taken = {
                tuple(row)
                for row in self._connection.execute(
                    "SELECT kind, dataset, method, repetition FROM runs UNION ALL "
                    "SELECT kind, dataset, method, repetition FROM studies UNION ALL "
                    "SELECT kind, dataset, method, repetition FROM claims UNION ALL "
                    "SELECT kind, dataset, method, repetition FROM failures WHERE at >= ?",
                    (self.begun,),
                )
            }
            for key in wanted:
                if key not in taken:
                    self._connection.execute(
                        "INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                        (*key, self.id, time.time()),
                    )
                    return TaskKey(*key)
        return None

    def give_back(self, key: TaskKey) -> None:
        """Release the claim on a task."""
        with errors_in_words(self.path), transaction(self._connection):
            self._connection.execute(
                "DELETE FROM claims WHERE kind = ? AND dataset = ? AND method = ? "
                "AND repetition = ? AND runner = ?",
                (*key, self.id),
            )

    def _beat(self) -> None:
        connection = connect(self.path)
        try:
            while not self._stop.wait(self._heartbeat):
                try:
                    connection.execute(
                        "UPDATE runners SET heartbeat = ? WHERE id = ?", (time.time(), self.id)
                    )
                except sqlite3.Error:
                    # A missed heartbeat does no harm; problems with the file are reported when a
                    # row is written.
                    continue
        finally:
            connection.close()

    def _drop_dead_runners(self) -> None:
        """Delete dead runners and their claims."""
        rows = self._connection.execute("SELECT id, machine, pid, started, heartbeat FROM runners")
        self._forget([row[0] for row in rows.fetchall() if not is_alive(*row[1:])])

    def _forget(self, runners: Sequence[str]) -> None:
        for runner in runners:
            self._connection.execute("DELETE FROM claims WHERE runner = ?", (runner,))
            self._connection.execute("DELETE FROM runners WHERE id = ?", (runner,))


def is_alive(on: str, pid: int, started: str, heartbeat: float) -> bool:
    """Return whether a runner is alive, by its process (same machine) or its heartbeat."""
    if on == machine():
        return process_start(pid) == started
    return time.time() - heartbeat < SILENT_SECONDS


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
