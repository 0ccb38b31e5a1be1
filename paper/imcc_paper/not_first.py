"""Where the ensemble is not first: the part of labels that few training rows have.

    python -m imcc_paper.not_first -o results/not_first.csv            all splits
    python -m imcc_paper.not_first -o rows.csv --splits 2              the first two

On genbase and medical logistic regression has the smaller ranking loss and coverage.  Both methods
are fitted as in the experiment ``paper``, on its splits, and judged by all labels and by those
with at least so many training rows: if rare labels are the reason, the difference vanishes without
them.  Splits that are in the file are not computed again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from imcc.datasets import paper_splits, split_seed
from imcc.estimators import label_scores
from imcc.experiment import Task
from imcc.metrics import coverage, ranking_loss
from imcc_paper.reproduction.rows import plan

DATA = ("genbase", "medical")
METHODS = ("kernel_ensemble", "logistic")
#: Training rows that a label must have to be counted.
AT_LEAST = (0, 1, 2, 5, 10)
FIELDS = ("dataset", "method", "repetition", "at_least", "labels", "ranking_loss", "coverage")


def kept_labels(Y: np.ndarray, at_least: int) -> np.ndarray:
    """Return the labels that at least so many rows have.

    >>> kept_labels(np.array([[1, 0, 0], [1, 1, 0]]), 1).tolist()
    [0, 1]
    """
    return np.flatnonzero(Y.sum(axis=0) >= at_least)


def judge(task: Task) -> Iterator[dict[str, object]]:
    """Yield the metrics of a task by all labels and by those with enough training rows."""
    data = task.dataset.load()
    split = task.repetition
    train, test = paper_splits(data, split + 1, task.protocol.test_size, task.protocol.seed)[split]
    seed = split_seed(task.protocol.seed, data.name, data.n_rows, split)
    X, Y, X_new, Y_new = data.X[train], data.Y[train], data.X[test], data.Y[test]
    with threadpool_limits(1):
        model = task.method.build(task.allow).set_params(random_state=seed).fit(X, Y)
        scores = label_scores(model, X_new, Y.shape[1])
    for at_least in AT_LEAST:
        kept = kept_labels(Y, at_least)
        yield {
            "dataset": data.name,
            "method": task.method.name,
            "repetition": split,
            "at_least": at_least,
            "labels": len(kept),
            "ranking_loss": ranking_loss(Y_new[:, kept], scores[:, kept]),
            "coverage": coverage(Y_new[:, kept], scores[:, kept]),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--splits", type=int, default=10, help="splits of each data set (10)")
    asked = parser.parse_args(arguments)
    done = set()
    if asked.output.exists():
        with asked.output.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            done = {(row["dataset"], row["method"], int(row["repetition"])) for row in rows}
    part = plan("paper").subset(datasets=DATA, methods=METHODS, n_repeats=asked.splits)
    with asked.output.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for task in part.tasks():
            if task.key not in done:
                writer.writerows(judge(task))
                file.flush()


if __name__ == "__main__":
    main()
