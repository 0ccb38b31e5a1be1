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
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from imcc.datasets import list_datasets
from imcc_paper import _rows
from imcc_paper.places import RESULTS
from imcc_paper.rivals.methods import ENSEMBLE, METHODS, RIVALS, STACK, STACKED
from imcc_paper.rivals.task import (
    COLUMNS,
    DONE,
    PARTS,
    SPLITS,
    WHOLE,
    WORDS,
    Limits,
    NoTimeError,
    Task,
    load,
    parts_of,
    row_of,
)

CSV = RESULTS / "rivals.csv"
# Within sets of about the same size, these first.
FIRST = (ENSEMBLE, "svm", "extra_trees", "lightgbm", "xgboost", "logistic")
# Training rows times labels: above, a set waits for all smaller ones.
_SIZES = (100_000, 600_000)
# Above, the fits of a task are computed side by side.
_IN_PARTS = 200_000
# Seconds after the end until what is still computing is stopped.
_GRACE = 20
_NOT_FINISHED = 75


class Job(NamedTuple):
    """A task, or some parts of one: those of large sets are computed side by side."""

    name: str
    method: str
    parts: tuple[str, ...] = PARTS


def stored_rows(path: Path = CSV) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, WORDS, WHOLE)


def key(row: dict[str, Any]) -> tuple[str, str, int]:
    """Return what there is one row of."""
    return row["dataset"], row["method"], row["split"]


def merge(path: Path, others: Iterable[Path]) -> None:
    """Add the rows of other files that a file does not have."""
    have = {key(row) for row in stored_rows(path)}
    for other in others:
        new = [row for row in stored_rows(other) if key(row) not in have]
        have |= {key(row) for row in new}
        _rows.add_rows(path, COLUMNS, new)
        print(f"{len(new)} rows of {other}", file=sys.stderr)


def has_package(method: str) -> bool:
    """Whether the package of a method is here."""
    needs = RIVALS[method].needs if method in RIVALS else ""
    try:
        return not needs or find_spec(needs) is not None
    except ModuleNotFoundError:  # of "a.b" without a
        return False


def whole_or_parts(name: str, method: str, size: int) -> list[Job]:
    """Return the jobs of a task: one, or one per fit for a large data set."""
    if method == STACK or size <= _IN_PARTS:
        return [Job(name, method)]
    return [Job(name, method, (part,)) for part in parts_of(method)]


class Runner:
    """Starts tasks in an order, and collects their rows.

    Parameters
    ----------
    path, cache : Path
    sets : sequence of str
    methods : sequence of str
    arguments : list of str
        The limits, for the command line of a task.
    until : float
        No task and no computation is begun after it (``time.time()``).
    """

    def __init__(
        self,
        path: Path,
        cache: Path,
        sets: Sequence[str],
        methods: Sequence[str],
        arguments: list[str],
        until: float,
    ) -> None:
        self.path, self.cache, self.arguments, self.until = path, cache, arguments, until
        self.names, sizes = {}, {}
        for name in sets:
            data = load(name)
            self.names[name] = data.name
            sizes[name] = data.n_rows * data.n_labels
        self.have = {key(row) for row in stored_rows(path)}
        for name in sets:
            for method in methods:
                self.collect(Job(name, method))
        absent = [method for method in methods if not has_package(method)]
        jobs = [
            job
            for name in sets
            for method in methods
            if any((self.names[name], method, split) not in self.have for split in SPLITS)
            for job in whole_or_parts(name, method, sizes[name])
        ]
        left = [job for job in jobs if job.method in absent]
        if left:
            print(
                f"not here: {', '.join(absent)}; {len(left)} tasks are left for another machine",
                file=sys.stderr,
            )
        self.jobs = sorted(
            (job for job in jobs if job not in left),
            key=lambda job: (
                sum(sizes[job.name] > size for size in _SIZES),
                job.method not in FIRST and job.method != STACK,
                sizes[job.name],
            ),
        )
        self.running: dict[Job, subprocess.Popen[bytes]] = {}
        self.failures = 0

    def collect(self, job: Job) -> list[dict[str, Any]]:
        """Add the finished rows of a task to the file, and return the new ones."""
        rows = [row_of(self.cache / Path(job.name).name, job.method, split) for split in SPLITS]
        new = [row for row in rows if row is not None and key(row) not in self.have]
        if new:
            _rows.add_rows(self.path, COLUMNS, new)
            self.have |= {key(row) for row in new}
        return new

    def ready(self, job: Job) -> bool:
        """Whether what a job needs is finished: members of a stack, or the first of the parts."""
        folder = self.cache / Path(job.name).name
        if job.method == STACK:
            return all(row_of(folder, m, split) is not None for m in STACKED for split in SPLITS)
        first = PARTS[0]
        alone = job.method == ENSEMBLE or first in job.parts
        # Rows before the first part is there: it was over the limit, and so is the rest.
        known = (folder / job.method / f"{first}.npz").exists()
        return alone or known or row_of(folder, job.method, SPLITS[-1]) is not None

    def run(self, jobs: int) -> int:
        """Run tasks until none is left or the time is over; return how many failed."""
        while True:
            while len(self.running) < jobs and time.time() < self.until:
                job = next((job for job in self.jobs if self.ready(job)), None)
                if job is None:
                    break
                self.jobs.remove(job)
                self.start(job)
            if not self.running:
                break
            time.sleep(0.2)
            for job, process in list(self.running.items()):
                self.report(job, process)
            if time.time() > self.until + _GRACE:
                self.stop()
        if self.jobs:
            print(f"{len(self.jobs)} tasks are left; start again to continue", file=sys.stderr)
        return self.failures

    def start(self, job: Job) -> None:
        """Start a task in a process of its own, with one thread."""
        command = [sys.executable, "-m", "imcc_paper.rivals", "--task", job.name, job.method]
        command += ["--parts", *job.parts, *self.arguments]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.running[job] = subprocess.Popen(
            [*command, "--until", str(self.until)],
            env={**os.environ, **one},
            start_new_session=True,
        )

    def report(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        """Collect the rows of a task, and say so when it has ended."""
        for row in self.collect(job):
            what = f"{row['average_precision']:.4f}" if row["status"] == DONE else row["status"]
            print(
                f"{job.method} on {job.name}, split {row['split']}: {what} {row['remark']}",
                file=sys.stderr,
                flush=True,
            )
        code = process.poll()
        if code is None:
            return
        del self.running[job]
        self.collect(job)
        if code == _NOT_FINISHED:
            self.jobs.append(job)
        elif code:
            self.failures += 1
            print(f"{job.method} on {job.name} ended with {code}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Stop the tasks that still run."""
        for job, process in list(self.running.items()):
            os.killpg(process.pid, signal.SIGKILL)  # the process and what it computes in
            process.wait()
            del self.running[job]
            self.collect(job)
            self.jobs.append(job)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and compute what is missing."""
    usual = Limits()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=CSV, help="the file of the rows")
    parser.add_argument("--cache", type=Path, help="folder of what is finished")
    parser.add_argument("--sets", nargs="+", help="data sets (the paper's fifteen)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="tasks at the same time (1)")
    parser.add_argument("--minutes", type=float, default=1e6, help="nothing is begun after them")
    parser.add_argument("--settings", type=int, default=usual.settings, help="settings to try (12)")
    parser.add_argument("--cap", type=float, default=usual.cap, help="CPU seconds of search (120)")
    parser.add_argument(
        "--fit-cap", type=float, default=usual.fit_cap, help="CPU seconds of a fit (300)"
    )
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help="only add their rows")
    parser.add_argument("--task", nargs=2, metavar=("SET", "METHOD"), help=argparse.SUPPRESS)
    parser.add_argument("--parts", nargs="+", default=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.merge:
        merge(asked.csv, asked.merge)
        return 0
    if asked.cache is None:
        parser.error("--cache is needed: a folder outside of the repository")
    limits = Limits(asked.settings, asked.cap, asked.fit_cap)
    if asked.task:
        try:
            until = asked.until or math.inf
            Task(*asked.task, asked.cache, limits, until).run(asked.parts)
        except NoTimeError:
            return _NOT_FINISHED
        return 0
    start = time.time()
    sets = asked.sets or list_datasets("paper")
    passed = ["--cache", str(asked.cache), "--settings", str(limits.settings)]
    passed += ["--cap", str(limits.cap), "--fit-cap", str(limits.fit_cap)]
    until = start + 60 * asked.minutes
    runner = Runner(asked.csv, asked.cache, sets, asked.methods, passed, until)
    return 1 if runner.run(asked.jobs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
