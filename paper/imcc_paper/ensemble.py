"""The ensemble: its quality on development splits, its cost for many rows, and its members.

    python -m imcc_paper.ensemble --quality --data yeast scene --splits 2
    python -m imcc_paper.ensemble --many-rows 40000      so many rows x 100 features, 10 labels
    python -m imcc_paper.ensemble --picture docs/images/members.png      the members on cal500

Quality is measured on development splits (seeds from 1000 on), which no experiment uses: the
recipe was chosen on them.  What is reported comes from experiments with ``kernel_ensemble``, whose
splits are those of :func:`imcc.datasets.paper_splits`.

``--csv results/ensemble.csv`` also writes what ``--many-rows`` measures to a file, from which
``python -m imcc_paper.reproduce`` writes it into docs/ensemble.md.  The data sets are found through
``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from imcc import KernelEnsembleClassifier
from imcc.baselines import KernelRidgeBaseline
from imcc.datasets import load_dataset
from imcc.inspection import draw_members
from imcc.metrics import METRICS, evaluate
from imcc_paper import _measured
from imcc_paper._measured import Measurements

FIRST_SEED = 1000  # experiments count their repetitions from 0
MANY = 40_000  # rows, on the page


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


def many_rows(n: int, threads: int, measured: Measurements, d: int = 100, q: int = 10) -> None:
    """Measure time and memory for many rows, where Nyström features take over."""
    import resource  # not on Windows

    random = np.random.RandomState(0)
    X = random.standard_normal((n, d))
    hidden = np.tanh(X @ random.standard_normal((d, 30)) / np.sqrt(d))
    Y = hidden @ random.standard_normal((30, q)) + 0.5 * random.standard_normal((n, q)) > 1
    model = KernelEnsembleClassifier(random_state=0)
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are approximated
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        model.fit(X, Y.astype(int))
        numbers = {
            "cpu_seconds": time.process_time() - start,
            "gib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20,
        }
        # A part of its own: the largest memory of a process says nothing about its second fit.
        measured.add(f"{n} rows", f"{d} features, {q} labels", **numbers)


def draw_picture(path: str, name: str = "cal500") -> None:
    """Draw the members of the ensemble of a development split."""
    X, Y, _, _ = split(name, 0)
    model = KernelEnsembleClassifier(random_state=0).fit(X, Y)
    print(draw_members(model, path))


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/ensemble.md."""
    part = f"{MANY} rows"
    (case,) = found.cases(part)
    of = found.of(part, case)
    return {
        "ensemble-many-rows": f"{MANY:,} rows with {case.replace(',', ' and')} took "
        f"{of['cpu_seconds']:.0f} CPU seconds and {of['gib']:.1f} GiB in addition to the data"
    }


def main() -> None:
    """Read the command line and compute what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--many-rows", type=int, metavar="N")
    asked.add_argument("--quality", action="store_true")
    asked.add_argument("--picture", metavar="FILE")
    parser.add_argument("--data", nargs="+", default=["arts", "yeast"], help="of --quality")
    parser.add_argument("--splits", type=int, default=1, help="of --quality")
    parser.add_argument("--threads", type=int, default=1, help="of --many-rows")
    _measured.add_csv_option(parser, "ensemble")
    options = parser.parse_args()
    found = Measurements()
    if options.many_rows:
        many_rows(options.many_rows, options.threads, found)
    elif options.quality:
        compare_quality(options.data, options.splits)
    else:
        draw_picture(options.picture)
    if options.csv:
        found.save(options.csv)


if __name__ == "__main__":
    main()
