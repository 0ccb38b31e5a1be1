"""Compute all rows of the reproduction page again: ``make -C paper full``.

    python -m imcc_paper.reproduce_full --estimate            how long it takes, and nothing else
    python -m imcc_paper.reproduce_full --jobs 16 --device cuda --for 2h
    python -m imcc_paper.reproduce_full --continue            only what results/ does not have

First it says how long it will take, from the times of the committed rows.  Rows go to stores in the
folder ``reproduce-full`` and are there as soon as they are computed: the same command continues
where it was stopped.  At the end of each experiment its store is exported to a file beside it; to
build the page from these, copy them to ``results/`` and run ``make -C paper``.

Options that are not listed here are those of ``imcc experiment run``, such as ``--for`` and
``--timeout``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from imcc.experiment import Run, Store, TaskKey, remaining_seconds
from imcc_paper.places import EXPERIMENTS as PLANS
from imcc_paper.reproduction.rows import listed, opened, plan, rows_of
from imcc_paper.reproduction.times import place

#: The experiments whose rows the page shows, in this order.
EXPERIMENTS = ("paper", "outside")
#: A study that is a program of its own, which does not compute again what is in its file.
STUDY = "clustering"
OUT = Path("reproduce-full")


@dataclass(frozen=True)
class Estimate:
    """How much is left of an experiment.

    Attributes
    ----------
    n_tasks, n_left : int
        All tasks, and those without a row.
    seconds : float or None
        How long these will take, with so many at the same time; None if nothing is known.
    guessed : tuple of str
        Methods without a committed row on the device in question, and data sets on which fewer than
        three methods have one: the times of their tasks are guesses.
    """

    n_tasks: int
    n_left: int
    seconds: float | None
    guessed: tuple[str, ...]


def committed() -> list[Run]:
    """Return the committed rows of all experiments."""
    rows: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in EXPERIMENTS:
            with opened(Path(folder), name) as store:
                rows += store.runs()
    return rows


def estimate(
    experiment: str,
    done: Iterable[TaskKey],
    rows: Sequence[Run],
    *,
    jobs: int = 1,
    device: str | None = None,
) -> Estimate:
    """Return how long the rest of an experiment takes, by the runner's own estimate.

    Parameters
    ----------
    experiment : str
        One of ``EXPERIMENTS``.
    done : iterable of keys
        Tasks that have a row already.
    rows : sequence of Run
        From :func:`committed`.  A method on a GPU and on a CPU count as two; data sets of which
        only one of them has rows still say how much larger they are than others.
    jobs : int
        How many are computed at the same time.
    device : str, optional
        As for ``imcc experiment run``.
    """
    placed = {(row.key.method, place(row)) for row in rows}
    on_gpu = {method for method, where in placed if where == "GPU"}

    def at(key: TaskKey) -> TaskKey:
        # A method that knows no device has no rows on one: it is computed on the CPU anywhere.
        wanted = "GPU" if device is not None and key.method in on_gpu else "CPU"
        other = {"GPU": "CPU", "CPU": "GPU"}[wanted]
        where = other if (key.method, wanted) not in placed else wanted
        return key._replace(method=f"{key.method} on {where}")

    times = {
        row.key._replace(method=f"{row.key.method} on {place(row)}"): row.seconds for row in rows
    }
    finished = set(done)
    tasks = [task.key for task in plan(experiment).tasks()]
    left = [key for key in tasks if key not in finished]
    where = "CPU" if device is None else "GPU"
    on_cpu_anyway = {method for method, _ in placed} - on_gpu
    methods = [
        m
        for m in dict.fromkeys(key.method for key in left)
        if (m, where) not in placed and m not in on_cpu_anyway
    ]
    of_dataset: dict[str, set[str]] = {}
    for row in rows:
        of_dataset.setdefault(row.key.dataset, set()).add(row.key.method)
    datasets = [
        d for d in dict.fromkeys(key.dataset for key in left) if len(of_dataset.get(d, ())) < 3
    ]
    seconds = remaining_seconds(times, [at(key) for key in left], {}, jobs)
    return Estimate(len(tasks), len(left), seconds, (*methods, *datasets))


def duration(seconds: float) -> str:
    """Return a time in hours, or in minutes if it is short."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def begin(folder: Path, experiment: str, *, with_committed: bool) -> set[TaskKey]:
    """Make the store of an experiment, if there is none, and return what it has."""
    folder.mkdir(parents=True, exist_ok=True)
    with Store.create(folder / f"{experiment}.sqlite", plan(experiment)) as store:
        if with_committed:
            store.merge(rows_of(experiment))
        return set(store.keys())


def main(arguments: Sequence[str] | None = None) -> int:
    """Say how long it takes, then compute."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimate", action="store_true", help="compute nothing")
    parser.add_argument(
        "--continue", dest="committed", action="store_true", help="begin with the committed rows"
    )
    parser.add_argument("-o", "--output", type=Path, default=OUT, help=f"folder ({OUT})")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="tasks at the same time (1)")
    parser.add_argument("--device", help="such as cuda, for methods that can use one")
    options, rest = parser.parse_known_args(arguments)
    rows, total = committed(), 0.0
    for name in EXPERIMENTS:
        done = begin(options.output, name, with_committed=options.committed)
        found = estimate(name, done, rows, jobs=options.jobs, device=options.device)
        text = "not known" if found.seconds is None else f"about {duration(found.seconds)}"
        print(f"{name}: {found.n_left} of {found.n_tasks} tasks are left, {text}")
        if found.guessed:
            print(f"  too few committed rows tell the times of {listed(found.guessed)}: guesses")
        total += found.seconds or 0.0
    print(
        f"altogether about {duration(total)} with {options.jobs} at the same time and one thread "
        "each, if this machine is as fast as those of the committed rows"
        + (f"; and, of unknown length, the study {STUDY}")
    )
    if options.estimate:
        return 0
    where = [] if options.device is None else ["--device", options.device]
    for name in EXPERIMENTS:
        store = options.output / f"{name}.sqlite"
        run = [
            "experiment",
            "run",
            str(PLANS / f"{name}.toml"),
            "-o",
            str(store),
            "-j",
            str(options.jobs),
            *where,
            *rest,
        ]
        code = _imcc(run)
        _imcc(["report", str(store), "-o", str(store.with_suffix(".csv"))])
        if code:  # failed, stopped, or out of time: what there is was exported
            return code
    study = [sys.executable, "-m", f"imcc_paper.{STUDY}", "--jobs", str(options.jobs), *where]
    study += ["-o", str(options.output / f"{STUDY}.csv")]
    code = subprocess.run(study, check=False).returncode
    if code:
        return code
    print(f"all rows are in {options.output}; copy the CSV files to results/ and run make -C paper")
    return 0


def _imcc(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "imcc.cli", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
