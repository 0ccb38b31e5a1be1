"""One repetition of the paper's six other algorithms on its fifteen data sets: time per cell.

    python -m imcc_paper.one_repetition --out cells.csv              all cells, two at a time
    python -m imcc_paper.one_repetition --out cells.csv --data arts --algorithms BRsvm ECC
    python -m imcc_paper.one_repetition --out cells.csv --print      the table of what is there

A cell is one algorithm on one data set: training on 80 % of the rows and judging on the rest, in a
process of its own with one thread.  Finished cells are appended to the CSV file and not run again,
so a run that was interrupted goes on where it stopped.  Cells that take long are started first.
Next to the time on the clock stands the CPU time, which other programs on the machine change less.
LLSF and JFSC search as in :mod:`imcc_paper.baselines`.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from imcc.datasets import dataset_info, list_datasets
from imcc.metrics import METRICS, evaluate
from imcc_paper.baselines import ALGORITHMS, load, seeded

SIX = ("BRsvm", "ECC", "MAHR", "LIFT", "LLSF", "JFSC")
DATA = tuple(list_datasets("paper"))
COLUMNS = ("data", "algorithm", "repetition", "seconds", "cpu_seconds", "predict_seconds", *METRICS)


def one_cell(data: str, algorithm: str, repetition: int) -> dict[str, Any]:
    """Train and judge one algorithm on one data set, with one thread."""
    X, Y = load(data)
    X, X_new, Y, Y_new = train_test_split(X, Y, test_size=0.2, random_state=repetition)
    model = seeded(ALGORITHMS[algorithm], repetition)
    with threadpool_limits(1), warnings.catch_warnings():
        # Iterations are limited on purpose, and rare labels make clusters of few rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, Y)
        trained, cpu = time.perf_counter(), time.process_time() - cpu
        scores = model.decision_function(X_new)
        done = time.perf_counter()
    row = {"data": data, "algorithm": algorithm, "repetition": repetition}
    row |= {"seconds": trained - wall, "cpu_seconds": cpu, "predict_seconds": done - trained}
    return row | evaluate(Y_new, scores)


def cells_to_run(
    names: list[str], algorithms: list[str], repetition: int, done: set[tuple[str, str, int]]
) -> list[tuple[str, str, int]]:
    """Return the cells that are not in the file yet, those with most labels and rows first."""
    cells = [(data, algorithm, repetition) for data in names for algorithm in algorithms]

    def size(cell: tuple[str, str, int]) -> int:
        info = dataset_info(cell[0])
        return info.n_rows * info.n_labels

    return sorted((cell for cell in cells if cell not in done), key=size, reverse=True)


def stored(path: Path) -> list[dict[str, str]]:
    """Return the finished cells of a file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(cells: list[tuple[str, str, int]], path: Path, jobs: int) -> None:
    """Run cells in processes and append each to the file as it is finished."""
    new = not path.exists()
    with (
        path.open("a", newline="") as file,
        # A process for each cell: what one leaves in memory does not slow down the next.
        ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        running = [pool.submit(one_cell, *cell) for cell in cells]
        for future in as_completed(running):
            row = future.result()
            numbers = {key: f"{v:.6g}" for key, v in row.items() if isinstance(v, float)}
            writer.writerow(row | numbers)
            file.flush()
            print(
                f"{row['algorithm']} on {row['data']}: {row['seconds']:.1f} s "
                f"({row['cpu_seconds']:.1f} s of CPU), average precision "
                f"{row['average_precision']:.3f}",
                flush=True,
            )


def time_table(rows: list[dict[str, str]], column: str) -> str:
    """Return a Markdown table of seconds, data sets by algorithms, with sums."""
    lines = ["| | " + " | ".join([*SIX, "sum"]) + " |", "| --- |" + " --- |" * (len(SIX) + 1)]
    found = {(row["data"], row["algorithm"]): float(row[column]) for row in rows}
    names = [name for name in DATA if any(data == name for data, _ in found)]
    for name in names:
        cells = [found.get((name, algorithm)) for algorithm in SIX]
        lines.append(_line(name, cells))
    sums = [
        sum(found[name, algorithm] for name in names if (name, algorithm) in found)
        for algorithm in SIX
    ]
    return "\n".join([*lines, _line("sum", list(sums))])


def _line(name: str, cells: list[float | None]) -> str:
    shown = ["not run" if cell is None else f"{cell:.1f}" for cell in cells]
    total = float(np.sum([cell for cell in cells if cell is not None]))
    return f"| {name} | " + " | ".join([*shown, f"{total:.1f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="CSV file of the cells")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="data sets")
    parser.add_argument("--algorithms", nargs="+", choices=SIX, default=list(SIX))
    parser.add_argument("--repetition", type=int, default=0, help="seed of the split (default 0)")
    parser.add_argument("--jobs", type=int, default=2, help="cells at the same time (default 2)")
    parser.add_argument("--print", action="store_true", help="print what is in the file")
    options = parser.parse_args()
    rows = stored(options.out)
    done = {(row["data"], row["algorithm"], int(row["repetition"])) for row in rows}
    if not options.print:
        cells = cells_to_run(options.data, options.algorithms, options.repetition, done)
        start = time.perf_counter()
        run(cells, options.out, options.jobs)
        minutes = (time.perf_counter() - start) / 60
        print(f"\n{len(cells)} cells in {minutes:.1f} minutes, {options.jobs} at a time")
    rows = [r for r in stored(options.out) if int(r["repetition"]) == options.repetition]
    for column, title in (("seconds", "on the clock"), ("cpu_seconds", "of CPU")):
        print(f"\nSeconds of training, {title}\n\n{time_table(rows, column)}")


if __name__ == "__main__":
    main()
