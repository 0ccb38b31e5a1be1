"""The ensemble: its quality on development splits.

    python -m imcc_paper.ensemble --data yeast scene --splits 2

Quality is measured on development splits (seeds from 1000 on), which no experiment uses: the
recipe was chosen on them.  What is reported comes from experiments with ``kernel_ensemble``, whose
splits are those of :func:`imcc.datasets.paper_splits`.

The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, train_test_split

from imcc import KernelEnsembleClassifier
from imcc.baselines import KernelRidgeBaseline
from imcc.datasets import load_dataset
from imcc.metrics import METRICS, evaluate

FIRST_SEED = 1000  # experiments count their repetitions from 0


def split(name: str, number: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return training and test rows of a development split."""
    data = load_dataset(name)
    train, test = train_test_split(
        np.arange(data.n_rows), test_size=0.2, random_state=FIRST_SEED + number
    )
    return data.X[train], data.Y[train], data.X[test], data.Y[test]


def compare_quality(names: list[str], n_splits: int) -> None:
    """Print the metrics of kernel ridge, calibrated kernel ridge and the ensemble."""
    print(f"{'data':10s} {'model':24s} " + " ".join(f"{metric:>17s}" for metric in METRICS))
    totals: dict[str, list[np.ndarray]] = {}
    for name in names:
        found: dict[str, list[list[float]]] = {}
        for number in range(n_splits):
            X, Y, X_new, Y_new = split(name, number)
            folds = KFold(5, shuffle=True, random_state=number)
            for name_of_model, model in (
                ("kernel ridge", KernelRidgeBaseline(cv=folds)),
                ("kernel ridge, calibrated", KernelRidgeBaseline(cv=folds, calibrate=True)),
                ("ensemble", KernelEnsembleClassifier(random_state=number)),
            ):
                scores = model.fit(X, Y).decision_function(X_new)
                found.setdefault(name_of_model, []).append(list(evaluate(Y_new, scores).values()))
        for model, rows in found.items():
            means = np.mean(rows, axis=0)
            totals.setdefault(model, []).append(means)
            print(f"{name:10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means), flush=True)
    for model, rows in totals.items():
        means = np.mean(rows, axis=0)
        print(f"{'mean':10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means))


def main() -> None:
    """Read the command line and compute what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=["arts", "yeast"])
    parser.add_argument("--splits", type=int, default=1)
    options = parser.parse_args()
    compare_quality(options.data, options.splits)


if __name__ == "__main__":
    main()
