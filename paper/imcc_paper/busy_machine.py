"""How long a fit takes alone, and beside busy processes.

    python -m imcc_paper.busy_machine                  800 rows, alone and beside 7 processes
    python -m imcc_paper.busy_machine --rows 200 --busy 3 --rounds 2

The default model of a table is fitted to the example table.  The busy processes only count; they
end with this program, and after ``--seconds`` at the latest.

Whatever else the machine does also counts: the load average at the begin of each fit is stored.
``--csv results/busy_machine.csv`` writes the numbers, and ``python -m imcc_paper.reproduce`` shows
them on docs/performance.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from imcc import TableClassifier
from imcc.tabular import example_table
from imcc_paper import _measured
from imcc_paper._measured import Measurements


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


def add_fit(
    part: str, n_rows: int, n_processes: int, rounds: int, seconds: float, found: Measurements
) -> None:
    """Measure a fit beside some busy processes."""
    table, labels = example_table(n_rows)
    times: list[tuple[float, float, float]] = []
    with busy(n_processes, seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            load, wall, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
            TableClassifier(random_state=0).fit(table, labels)
            times.append((time.perf_counter() - wall, time.process_time() - cpu, load))
    wall, cpu, load = (statistics.median(column) for column in zip(*times, strict=True))
    found.add(part, "fit", processes=n_processes, rows=n_rows, seconds=wall, cpu=cpu, load=load)


def fits_table(found: Measurements) -> str:
    """Return the table of all parts."""
    lines = []
    for part in found.parts():
        of = found.of(part, "fit")
        times = [f"{of['seconds']:.1f} s", f"{of['cpu']:.1f} s"]
        lines.append([f"{of['processes']:.0f}", f"{of['load']:.0f}", *times])
    return _measured.table(["busy processes", "load average", "fit", "CPU time"], lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/performance.md."""
    first = found.parts()[0]
    rows = found.of(first, "fit")["rows"]
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
    parser.add_argument("--rounds", type=int, default=1, help="fits per case; the median is taken")
    parser.add_argument("--seconds", type=float, default=1200, help="the longest time to be busy")
    _measured.add_csv_option(parser, "busy_machine")
    asked = parser.parse_args(arguments)
    found = Measurements()
    for part, n_processes in {"alone": 0, "busy": asked.busy}.items():
        add_fit(part, asked.rows, n_processes, asked.rounds, asked.seconds, found)
    print(fits_table(found))
    if asked.csv:
        found.save(asked.csv)


if __name__ == "__main__":
    main()
