"""How long a fit takes alone, and beside busy processes.

    python -m imcc_paper.busy_machine                  800 rows, alone and beside 7 processes
    python -m imcc_paper.busy_machine --rows 200 --busy 3 --before ../../before/src

The default model of a table is fitted to the example table, in a process of its own; with
``--before``, also by another version of imcc, whose folder of sources is given.  The busy processes
only count; they end with this program, and after ``--seconds`` at the latest.

Whatever else the machine does also counts: the load average at the begin of each fit is stored.
``--csv results/busy_machine.csv`` writes the numbers, and ``python -m imcc_paper.reproduce`` shows
them on docs/performance.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from imcc_paper import _measured
from imcc_paper._measured import Measurements

# The versions, as the table calls them.
LIMITED, UNLIMITED = "limited by size", "all cores, as before"
FIT = """
import sys, time, warnings
from imcc import TableClassifier
from imcc.tables import example_table
warnings.simplefilter("ignore")
table, labels = example_table(int(sys.argv[1]))
wall, cpu = time.perf_counter(), time.process_time()
TableClassifier(random_state=0).fit(table, labels)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def count(end: float) -> None:
    """Keep a core busy until a time."""
    while time.time() < end:
        sum(range(10_000))


@contextmanager
def busy(n_processes: int, seconds: float) -> Iterator[None]:
    """Run busy processes within a ``with`` statement, for a bounded time."""
    context = multiprocessing.get_context("spawn")
    end = time.time() + seconds
    processes = [
        context.Process(target=count, args=(end,), daemon=True) for _ in range(n_processes)
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def fit(n_rows: int, source: str | None) -> tuple[float, float]:
    """Return wall and CPU seconds of a fit by this version, or by the one in a folder."""
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = os.path.abspath(source)
    command = [sys.executable, "-c", FIT, str(n_rows)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


def add_fits(
    part: str,
    n_processes: int,
    versions: dict[str, str | None],
    asked: argparse.Namespace,
    found: Measurements,
) -> None:
    """Measure the fits of all versions in turn, beside some busy processes."""
    times: dict[str, list[tuple[float, float, float]]] = {version: [] for version in versions}
    with busy(n_processes, asked.seconds):
        for _ in range(asked.rounds):
            for version, source in versions.items():
                load = os.getloadavg()[0]
                times[version].append((*fit(asked.rows, source), load))
    for version, rounds in times.items():
        wall, cpu, load = (statistics.median(column) for column in zip(*rounds, strict=True))
        found.add(
            part,
            version,
            processes=n_processes,
            rows=asked.rows,
            seconds=wall,
            cpu=cpu,
            load=load,
        )


def fits_table(found: Measurements) -> str:
    """Return the table of all parts."""
    lines = []
    for part in found.parts():
        for version in found.cases(part):
            of = found.of(part, version)
            times = [f"{of['seconds']:.1f} s", f"{of['cpu']:.1f} s"]
            lines.append([version, f"{of['processes']:.0f}", f"{of['load']:.1f}", *times])
    headings = ["threads", "busy processes", "load average", "fit", "CPU time"]
    return _measured.table(headings, lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/performance.md."""
    first = found.parts()[0]
    rows = found.of(first, LIMITED)["rows"]
    cores = found.where(first, "cores")
    return {
        "busy": f"`TableClassifier` on {rows:.0f} rows of the example table, on {cores} cores:\n\n"
        + fits_table(found)
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--busy", type=int, default=7, help="number of busy processes")
    parser.add_argument("--before", metavar="SRC", help="sources of a version without limits")
    parser.add_argument("--rounds", type=int, default=1, help="fits per case; the median is taken")
    parser.add_argument("--seconds", type=float, default=1200, help="the longest time to be busy")
    _measured.add_csv_option(parser, "busy_machine")
    asked = parser.parse_args(arguments)
    found = Measurements()
    versions = {LIMITED: None} | ({} if asked.before is None else {UNLIMITED: asked.before})
    for part, n_processes in {"alone": 0, "busy": asked.busy}.items():
        add_fits(part, n_processes, versions, asked, found)
    print(fits_table(found))
    if asked.csv:
        found.save(asked.csv)


if __name__ == "__main__":
    main()
