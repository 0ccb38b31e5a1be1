"""How well each method ranks rare and frequent labels.

    python -m benchmarks.label_frequency -o results/label_frequency.csv
    python -m benchmarks.label_frequency -o rows.csv --data medical --methods brsvm logistic
    python -m benchmarks.label_frequency -o rows.csv --print          what is in the file

The rows of the experiments hold metrics over all labels.  This fits methods of the experiment
``paper`` on the first of its splits of a few data sets, with the same seeds and folds, and writes
the average precision of each label by itself: how well the test rows are ordered by that label's
score (scikit-learn's ``average_precision_score``).  Labels that no test row has are left out, and
those that all have.  The tables are means over labels, by the number of training rows that have
the label.

A finished fit is added to the file at once; what is in the file is not computed again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from imcc.calibration import label_scores
from imcc.datasets import load_dataset, paper_splits, split_seed
from imcc.experiment import load_experiment
from imcc.metrics import average_precision

DATA = ("genbase", "medical", "enron")
METHODS = ("kernel_ensemble", "kernel_ridge", "brsvm", "extra_trees", "logistic")
#: The bins: from how many training rows with the label on.
BINS = (1, 6, 21, 101)
COLUMNS = (
    *("dataset", "method", "label", "n_train", "n_test", "average_precision"),
    *("row_average_precision", "fit_seconds"),
)


def bin_names(bins: Sequence[int] = BINS) -> list[str]:
    """Return the bins in words.

    >>> bin_names([1, 6])
    ['1 to 5', '6 and more']
    """
    ends = [f"{low} to {high - 1}" for low, high in pairwise(bins)]
    return [*ends, f"{bins[-1]} and more"]


def fit_one(dataset: str, method: str) -> list[dict[str, object]]:
    """Return the lines of a method on the first split of a data set, one for each label."""
    experiment = load_experiment("paper").resolve(())
    protocol = experiment.protocol
    data = load_dataset(dataset)
    train, test = paper_splits(data, 1, protocol.test_size, protocol.seed)[0]
    seed = split_seed(protocol.seed, data.name, data.n_rows, 0)
    described = next(m for m in experiment.methods if m.name == method)
    estimator = described.build()
    if "random_state" in (parameters := estimator.get_params(deep=False)):
        estimator.set_params(random_state=seed)
    if "refit" in parameters:  # a search, with the experiment's folds
        folds = KFold(protocol.cv, shuffle=True, random_state=seed)
        estimator.set_params(cv=folds, scoring=protocol.scoring, refit=True)
    start = time.perf_counter()
    with threadpool_limits(1):
        estimator.fit(data.X[train], data.Y[train])
        seconds = time.perf_counter() - start
        scores = label_scores(estimator, data.X[test], data.n_labels)
    Y, Y_new = np.asarray(data.Y[train]) > 0, np.asarray(data.Y[test]) > 0
    whole = average_precision(Y_new, scores)
    return [
        {
            "dataset": dataset,
            "method": method,
            "label": label,
            "n_train": int(Y[:, label].sum()),
            "n_test": int(Y_new[:, label].sum()),
            "average_precision": repr(
                float(average_precision_score(Y_new[:, label], scores[:, label]))
            ),
            "row_average_precision": repr(float(whole)),
            "fit_seconds": f"{seconds:.3g}",
        }
        for label in range(Y.shape[1])
        if 0 < Y_new[:, label].sum() < len(test)
    ]


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def common_labels(
    lines: Iterable[dict[str, str]],
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return, for the labels that all methods have, the training rows and the average precisions.

    Labels without a training row are left out.

    Returns
    -------
    n_train : ndarray of shape (n_labels,)
        How many training rows have each label.
    found : dict of str to ndarray of shape (n_labels,)
        The average precisions by method.
    """
    cells: dict[tuple[str, str], dict[str, float]] = {}
    frequency: dict[tuple[str, str], int] = {}
    methods: dict[str, None] = {}
    for line in lines:
        key = line["dataset"], line["label"]
        cells.setdefault(key, {})[line["method"]] = float(line["average_precision"])
        frequency[key] = int(line["n_train"])
        methods[line["method"]] = None
    kept = [k for k, found in cells.items() if len(found) == len(methods) and frequency[k] > 0]
    return (
        np.array([frequency[key] for key in kept], dtype=int),
        {method: np.array([cells[key][method] for key in kept]) for method in methods},
    )


def bin_of(n_train: np.ndarray, bins: Sequence[int] = BINS) -> np.ndarray:
    """Return the bin of each label.

    >>> bin_of(np.array([1, 5, 6, 1000])).tolist()
    [0, 0, 1, 3]
    """
    return np.searchsorted(bins, n_train, side="right") - 1


def by_frequency(lines: Iterable[dict[str, str]]) -> tuple[list[int], dict[str, list[float]]]:
    """Return the number of labels in each bin, and each method's means; NaN without labels."""
    n_train, found = common_labels(lines)
    place = bin_of(n_train)
    inside = [place == b for b in range(len(BINS))]
    return [int(mask.sum()) for mask in inside], {
        method: [float(values[mask].mean()) if mask.any() else np.nan for mask in inside]
        for method, values in found.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the lines")
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--print", action="store_true", help="compute nothing")
    options = parser.parse_args(arguments)
    done = {(line["dataset"], line["method"]) for line in read(options.output)}
    for dataset in () if options.print else options.data:
        for method in options.methods:
            if (dataset, method) in done:
                continue
            lines = fit_one(dataset, method)
            new = not options.output.exists()
            with options.output.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerows(lines)
            print(f"{dataset}, {method}: {lines[0]['fit_seconds']} s", flush=True)
    counts, means = by_frequency(read(options.output))
    print("training rows with the label:", *bin_names(), sep="\t")
    print("labels", *counts, sep="\t")
    for method, values in means.items():
        print(method, *(f"{value:.3f}" for value in values), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
