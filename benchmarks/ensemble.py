"""The ensemble: its cost beside the paper's search, its memory, and its quality.

    python -m benchmarks.ensemble                        time on arts and yeast, both sides
    python -m benchmarks.ensemble --memory               peak memory, in matrices of n x n
    python -m benchmarks.ensemble --quality --data yeast scene --splits 2
    python -m benchmarks.ensemble --many-rows            100,000 rows x 100 features

Quality is measured on development splits (seeds from 1000 on), which no experiment uses: the
recipe was chosen on them.  What is reported comes from experiments with ``kernel_ensemble``, whose
splits are those of :func:`imcc.datasets.paper_splits`.

The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV, KernelEnsembleClassifier
from imcc._core.logistic import fit_logistic_maps
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


def timed(model: Any, X: Any, Y: np.ndarray, device: str | None = None) -> float:
    """Return the seconds of a fit."""
    if device is not None:
        model.set_params(device=device)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    return time.perf_counter() - start


def compare_cost(names: list[str], threads: int, device: str | None) -> None:
    """Print seconds of the paper's search and of the ensemble on the same rows."""
    print(f"{'data':10s} {'rows':>6s} {'paper search':>13s} {'ensemble':>9s} {'ratio':>6s}")
    for name in names:
        X, Y, _, _ = split(name, 0)
        with threadpool_limits(threads):
            paper = timed(IMCCClassifierCV(random_state=0), X, Y, device)
            ours = timed(KernelEnsembleClassifier(random_state=0), X, Y, device)
        print(f"{name:10s} {X.shape[0]:6d} {paper:11.1f} s {ours:7.1f} s {ours / paper:6.2f}")


def report_memory(names: list[str]) -> None:
    """Print the peak of what NumPy and SciPy allocate, in matrices of n x n doubles."""
    for name in names:
        X, Y, _, _ = split(name, 0)
        tracemalloc.start()
        KernelEnsembleClassifier(random_state=0).fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        n = X.shape[0]
        print(f"{name}: {n} rows, peak {peak / 2**20:.0f} MiB = {peak / (8 * n * n):.1f} n x n")


def calibrated_ridge(X: Any, Y: np.ndarray, X_new: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of kernel ridge, and those calibrated on folds of the training rows."""
    folds = KFold(5, shuffle=True, random_state=seed)
    ridge = KernelRidgeBaseline(cv=folds).fit(X, Y)
    held_out = np.empty(Y.shape)
    for train, test in folds.split(X):
        model = ridge.estimator_for(ridge.search_.best_params_).fit(X[train], Y[train])
        held_out[test] = model.decision_function(X[test])
    scores = ridge.decision_function(X_new)
    return scores, fit_logistic_maps(held_out, Y > 0).log_odds(scores)


def compare_quality(names: list[str], n_splits: int) -> None:
    """Print the metrics of kernel ridge, calibrated kernel ridge and the ensemble."""
    print(f"{'data':10s} {'model':24s} " + " ".join(f"{metric:>17s}" for metric in METRICS))
    totals: dict[str, list[np.ndarray]] = {}
    for name in names:
        found: dict[str, list[list[float]]] = {}
        for number in range(n_splits):
            X, Y, X_new, Y_new = split(name, number)
            ridge, calibrated = calibrated_ridge(X, Y, X_new, number)
            ensemble = KernelEnsembleClassifier(random_state=number).fit(X, Y)
            for model, scores in (
                ("kernel ridge", ridge),
                ("kernel ridge, calibrated", calibrated),
                ("ensemble", ensemble.decision_function(X_new)),
            ):
                found.setdefault(model, []).append(list(evaluate(Y_new, scores).values()))
        for model, rows in found.items():
            means = np.mean(rows, axis=0)
            totals.setdefault(model, []).append(means)
            print(f"{name:10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means), flush=True)
    for model, rows in totals.items():
        means = np.mean(rows, axis=0)
        print(f"{'mean':10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means))


def many_rows(n: int = 100_000, d: int = 100, q: int = 10) -> None:
    """Print the time for many rows, where Nyström features take over."""
    random = np.random.RandomState(0)
    X = random.standard_normal((n, d))
    hidden = np.tanh(X @ random.standard_normal((d, 30)) / np.sqrt(d))
    Y = hidden @ random.standard_normal((30, q)) + 0.5 * random.standard_normal((n, q)) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KernelEnsembleClassifier(random_state=0)
        seconds = timed(model, X, Y.astype(int))
    print(f"{n} rows x {d}, {q} labels: {seconds:.0f} s, {model.n_landmarks_} landmarks")


def main() -> None:
    """Read the command line and print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=["arts", "yeast"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", help="compute there, for the cost only")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--many-rows", action="store_true")
    asked = parser.parse_args()
    if asked.memory:
        report_memory(asked.data)
    elif asked.quality:
        compare_quality(asked.data, asked.splits)
    elif asked.many_rows:
        many_rows()
    else:
        compare_cost(asked.data, asked.threads, asked.device)


if __name__ == "__main__":
    main()
