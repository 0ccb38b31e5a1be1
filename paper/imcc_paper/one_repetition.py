"""One repetition of the paper's six other algorithms on its fifteen data sets: time per run.

    python -m imcc_paper.one_repetition --jobs 2           adds what is missing to the rows

A run is one algorithm on one data set: training on 80 % of the rows and judging on the rest, with
one thread.  Those that take long come first.  Next to the time on the clock stands the CPU time,
which other programs on the machine change less.  LLSF and JFSC search as in
:mod:`imcc_paper.baselines`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from imcc.datasets import dataset_info, list_datasets
from imcc.metrics import METRICS, evaluate
from imcc_paper import _measured, _rows
from imcc_paper.baselines import ALGORITHMS, seeded
from imcc_paper.places import RESULTS

ROWS = RESULTS / "one_repetition.csv"
DATA = tuple(list_datasets("paper"))
COLUMNS = ("data", "algorithm", "repetition", "seconds", "cpu_seconds", "predict_seconds", *METRICS)


class Run(NamedTuple):
    """An algorithm on a data set."""

    data: str
    algorithm: str


def measure(run: Run) -> list[dict[str, Any]]:
    """Train and judge one algorithm on one data set, with one thread."""
    X, Y = _measured.dense_rows(run.data)
    X, X_new, Y, Y_new = train_test_split(X, Y, test_size=0.2, random_state=0)
    model = seeded(ALGORITHMS[run.algorithm], 0)
    with threadpool_limits(1), warnings.catch_warnings():
        # Iterations are limited on purpose, and rare labels make clusters of few rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, Y)
        trained, cpu = time.perf_counter(), time.process_time() - cpu
        scores = model.decision_function(X_new)
        done = time.perf_counter()
    row = {**run._asdict(), "repetition": 0, "seconds": trained - wall, "cpu_seconds": cpu}
    return [row | {"predict_seconds": done - trained, **evaluate(Y_new, scores)}]


def stored_rows(path: Path = ROWS) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, ("data", "algorithm"), ("repetition",))


def page_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the seconds of training, data sets by algorithms, with sums."""
    found = {(row["data"], row["algorithm"]): row["seconds"] for row in rows}
    lines = [[name, *(found[name, algorithm] for algorithm in ALGORITHMS)] for name in DATA]
    lines.append(["sum", *(sum(line[k] for line in lines) for k in range(1, len(ALGORITHMS) + 1))])
    return _measured.table(
        ["", *ALGORITHMS, "sum"],
        ([name, *(f"{v:.1f}" for v in [*values, sum(values)])] for name, *values in lines),
    )


def blocks() -> dict[str, str]:
    """Return the marked block of docs/baselines.md."""
    return {"one-repetition": page_table(stored_rows())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=ROWS, help="the file of the rows")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (2)")
    asked = parser.parse_args(arguments)
    done = {Run(row["data"], row["algorithm"]) for row in stored_rows(asked.csv)}
    runs = {Run(data, algorithm) for data in DATA for algorithm in ALGORITHMS} - done

    def size(run: Run) -> int:
        info = dataset_info(run.data)
        return info.n_rows * info.n_labels

    return _rows.run_all(
        measure,
        sorted(runs, key=size, reverse=True),
        lambda rows: _rows.add_rows(asked.csv, COLUMNS, rows),
        name=lambda run: f"{run.algorithm} on {run.data}",
        outcome=lambda rows: f"{rows[0]['seconds']:.1f} s",
        jobs=asked.jobs,
    )


if __name__ == "__main__":
    raise SystemExit(main())
