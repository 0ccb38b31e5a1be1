"""Run the rivals: tasks in processes of one thread each, rows added to the file as they come."""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from imcc.datasets import list_datasets
from imcc_paper import _rows
from imcc_paper.places import RESULTS
from imcc_paper.rivals.methods import ENSEMBLE, METHODS, RIVALS, STACK, STACKED
from imcc_paper.rivals.task import (
    COLUMNS,
    DONE,
    SPLITS,
    WHOLE,
    WORDS,
    Limits,
    NoTimeError,
    Task,
    load,
    row_of,
)

CSV = RESULTS / "rivals.csv"
#: These come before the others.
FIRST = (ENSEMBLE, "svm", "extra_trees", "lightgbm", "xgboost", "logistic")
# Seconds after the end until what is still computing is stopped.
_GRACE = 20
_NOT_FINISHED = 75


def stored_rows(path: Path = CSV) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, WORDS, WHOLE)


def key(row: dict[str, Any]) -> tuple[str, str, int]:
    """Return what there is one row of."""
    return row["dataset"], row["method"], row["split"]


def add(path: Path, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the rows that a file does not have, and return them."""
    have = {key(row) for row in stored_rows(path)}
    new = [row for row in rows if key(row) not in have]
    if new:
        _rows.add_rows(path, COLUMNS, new)
    return new


def has_package(method: str) -> bool:
    """Whether the package of a method is here."""
    needs = RIVALS[method].needs if method in RIVALS else ""
    try:
        return not needs or find_spec(needs) is not None
    except ModuleNotFoundError:  # of "a.b" without a
        return False


class Runner:
    """Runs tasks, each in a process of its own, and adds their rows to a file.

    Parameters
    ----------
    path, cache : Path
    arguments : list of str
        The limits, for the command line of a task.
    until : float
        No task and no computation is begun after it (``time.time()``).
    """

    def __init__(self, path: Path, cache: Path, arguments: list[str], until: float) -> None:
        self.path, self.cache, self.arguments, self.until = path, cache, arguments, until
        self._lock = Lock()

    def rows(self, name: str, method: str) -> list[dict[str, Any]]:
        """Return the finished rows of a task."""
        rows = (row_of(self.cache / Path(name).name, method, split) for split in SPLITS)
        return [row for row in rows if row is not None]

    def run(self, sets: Sequence[str], methods: Sequence[str], jobs: int) -> int:
        """Run what has no rows until none is left or the time is over; return how many failed."""
        with self._lock:
            add(self.path, (row for name in sets for m in methods for row in self.rows(name, m)))
        data = {name: load(name) for name in sets}
        sizes = {name: of.n_rows * of.n_labels for name, of in data.items()}
        have = {key(row) for row in stored_rows(self.path)}
        tasks = [
            (name, method)
            for method in sorted(methods, key=lambda method: method not in FIRST)
            for name in sorted(sets, key=lambda name: sizes[name])
            if has_package(method)
            and any((data[name].name, method, split) not in have for split in SPLITS)
        ]
        absent = [method for method in methods if not has_package(method)]
        if absent:
            print(f"left for another machine: {', '.join(absent)}", file=sys.stderr)
        codes: list[int] = []
        for stacks in (False, True):  # which need the rows of others
            part = [task for task in tasks if (task[1] == STACK) == stacks]
            with ThreadPoolExecutor(jobs) as pool:
                codes += pool.map(self.task, *zip(*part, strict=True)) if part else ()
        left = codes.count(_NOT_FINISHED)
        if left:
            print(f"{left} tasks are left; start again to continue", file=sys.stderr)
        return len(codes) - codes.count(0) - left

    def task(self, name: str, method: str) -> int:
        """Run a task in a process of its own, with one thread; return its exit code."""
        members = STACKED if method == STACK else ()
        ready = all(len(self.rows(name, member)) == len(SPLITS) for member in members)
        if not ready or time.time() >= self.until:
            return _NOT_FINISHED
        command = [sys.executable, "-m", "imcc_paper.rivals", "--task", name, method]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        process = subprocess.Popen(
            [*command, *self.arguments, "--until", str(self.until)],
            env={**os.environ, **one},
            start_new_session=True,
        )
        left = self.until + _GRACE - time.time()
        try:
            code = process.wait(left if math.isfinite(left) else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the process and what it computes in
            process.wait()
            code = _NOT_FINISHED
        with self._lock:
            for row in add(self.path, self.rows(name, method)):
                what = f"{row['average_precision']:.4f}" if row["status"] == DONE else row["status"]
                text = f"{method} on {name}, split {row['split']}: {what} {row['remark']}"
                print(text, file=sys.stderr, flush=True)
        return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and compute what is missing."""
    usual = Limits()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=CSV, help="the file of the rows")
    parser.add_argument("--cache", type=Path, help="folder of what is finished")
    parser.add_argument("--sets", nargs="+", help="data sets (the paper's fifteen)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="tasks at the same time (1)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="nothing is begun after")
    parser.add_argument("--settings", type=int, default=usual.settings, help="settings to try (12)")
    parser.add_argument("--cap", type=float, default=usual.cap, help="CPU seconds of search (60)")
    parser.add_argument(
        "--fit-cap", type=float, default=usual.fit_cap, help="CPU seconds of a fit (300)"
    )
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help="only add their rows")
    parser.add_argument("--task", nargs=2, metavar=("SET", "METHOD"), help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=math.inf, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    for other in asked.merge or ():
        print(f"{len(add(asked.csv, stored_rows(other)))} rows of {other}", file=sys.stderr)
    if asked.merge:
        return 0
    if asked.cache is None:
        parser.error("--cache is needed: a folder outside of the repository")
    limits = Limits(asked.settings, asked.cap, asked.fit_cap)
    if asked.task:
        try:
            Task(*asked.task, asked.cache, limits, asked.until).run()
        except NoTimeError:
            return _NOT_FINISHED
        return 0
    passed = ["--cache", str(asked.cache), "--settings", str(limits.settings)]
    passed += ["--cap", str(limits.cap), "--fit-cap", str(limits.fit_cap)]
    until = time.time() + 60 * asked.minutes
    runner = Runner(asked.csv, asked.cache, passed, until)
    return 1 if runner.run(asked.sets or list_datasets("paper"), asked.methods, asked.jobs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
