"""The algorithms of the comparison: our average precision beside the paper's, time and memory.

    python -m benchmarks.baselines                               the table of docs/baselines.md
    python -m benchmarks.baselines --data scene --repetitions 1  a quick look
    python -m benchmarks.baselines --speed                       one training run of each on arts
    python -m benchmarks.baselines --variants lift               all metrics of LIFT's two scores
    python -m benchmarks.baselines --ratio                       old and new time of the machines

``--ratio`` trains BRsvm, ECC and LIFT on arts, bibtex and corel5k, and beside it times what they
did before: one libsvm machine from the rows for each label, chain and calibration fold, as kept in
``tests/naive/baselines.py``.  The old way takes hours, so only a few labels are timed, spread over
the labels in the order of their frequency, and their mean is multiplied by the number of labels.
All times are of the CPU, with one thread.

The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
``--store`` names a file to which every finished run is added, one JSON object a line; what is in it
is not run again.  Its tables can be printed at any time with ``--print``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV
from imcc.baselines import (
    JFSC,
    JFSCCV,
    LIFT,
    LLSF,
    LLSFCV,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    ExtraTreesBaseline,
    KernelRidgeBaseline,
)
from imcc.metrics import METRICS, evaluate
from imcc.published import table

DATA = ("scene", "yeast", "image", "enron", "medical")
BUDGET = 40  # settings of LLSF's and JFSC's grids, with halving over the folds

# Average precision in the paper's Table 3, in the order of DATA.
PAPER = {
    name: tuple(table("average_precision").cell(data, name.lower())[0] for data in DATA)
    for name in ("BRsvm", "ECC", "MAHR", "LLSF", "JFSC", "LIFT", "IMCC")
}
SEARCH = {"budget": BUDGET, "halving": True, "max_iter": 100}
ALGORITHMS: dict[str, Any] = {
    "BRsvm": BinaryRelevanceSVM(),
    "ECC": EnsembleClassifierChains(),
    "MAHR": MAHR(),
    "LLSF": LLSFCV(**SEARCH),
    "JFSC": JFSCCV(**SEARCH),
    "LIFT": LIFT(),
    "kernel ridge": KernelRidgeBaseline(),
    "extra-trees": ExtraTreesBaseline(),
    "IMCC": IMCCClassifierCV(n_clusters=(8, 32, 128), grid="paper"),
}
# One training run each: LLSF and JFSC at one setting, and their searches.
SPEED: dict[str, Any] = {
    **{name: model for name, model in ALGORITHMS.items() if name not in ("LLSF", "JFSC", "IMCC")},
    "LLSF, one setting": LLSF(alpha=2**-3, beta=2**-3, max_iter=100),
    "LLSF, search": ALGORITHMS["LLSF"],
    "JFSC, one setting": JFSC(alpha=4**-2, beta=4**-1, gamma=4**-4, max_iter=100),
    "JFSC, search": ALGORITHMS["JFSC"],
}
VARIANTS: dict[str, dict[str, Any]] = {
    "lift": {
        "LIFT, probability": LIFT(scores="probability"),
        "LIFT, margin": LIFT(scores="margin"),
    },
    "mahr": {
        "MAHR": MAHR(),
        "MAHR, no reuse": MAHR(reuse=False),
        "MAHR, labels never stop": MAHR(min_loss=0),
    },
}


def seeded(model: Any, seed: int) -> Any:
    """Return the model with its seed, and with shuffled folds where it has folds."""
    own = model.get_params()
    chosen = {"random_state": seed, "cv": KFold(5, shuffle=True, random_state=seed)}
    return clone(model).set_params(**{k: v for k, v in chosen.items() if k in own})


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    from imcc.datasets import load_dataset

    data = load_dataset(name)
    X = data.X.toarray() if data.is_sparse else data.X
    return np.ascontiguousarray(X, dtype=np.float64), data.Y


def one_run(model: Any, name: str, repetition: int) -> dict[str, Any]:
    """Train on 80 % of the rows and judge on the rest."""
    X, Y = load(name)
    X, X_new, Y, Y_new = train_test_split(X, Y, test_size=0.2, random_state=repetition)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Iterations are limited on purpose, and rare labels make clusters of few rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = seeded(model, repetition).fit(X, Y)
    seconds = time.perf_counter() - start
    row = {"data": name, "repetition": repetition, "seconds": round(seconds, 2)}
    row |= evaluate(Y_new, model.decision_function(X_new))
    for extra in ("best_params_", "budget_"):
        if hasattr(model, extra):
            row[extra] = getattr(model, extra)
    return row


def run_all(
    algorithms: dict[str, Any],
    names: list[str],
    repetitions: int,
    store: Path | None,
) -> list[dict[str, Any]]:
    rows = stored_rows(store)
    done = {(row["algorithm"], row["data"], row["repetition"]) for row in rows}
    for name in names:
        for repetition in range(repetitions):
            for algorithm, model in algorithms.items():
                if (algorithm, name, repetition) in done:
                    continue
                row = {"algorithm": algorithm, **one_run(model, name, repetition)}
                rows.append(row)
                if store:
                    with store.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                print(
                    f"{algorithm} on {name}, repetition {repetition}: average precision "
                    f"{row['average_precision']:.3f} in {row['seconds']:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return rows


def stored_rows(store: Path | None) -> list[dict[str, Any]]:
    if store is None or not store.is_file():
        return []
    return [json.loads(line) for line in store.read_text().splitlines()]


def accuracy_table(rows: list[dict[str, Any]], names: list[str]) -> str:
    lines = ["| | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for algorithm in ALGORITHMS:
        cells = []
        for name in names:
            found = [
                row["average_precision"]
                for row in rows
                if (row["algorithm"], row["data"]) == (algorithm, name)
            ]
            cell = f"{np.mean(found):.3f} ± {np.std(found):.3f}" if found else "not run"
            if algorithm in PAPER and name in DATA:
                cell += f" ({PAPER[algorithm][DATA.index(name)]:.3f})"
            cells.append(cell)
        lines.append(f"| {algorithm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def metric_table(rows: list[dict[str, Any]], algorithms: list[str], names: list[str]) -> str:
    lines = ["| | " + " | ".join(METRICS) + " |", "| --- |" + " --- |" * len(METRICS)]
    for name in names:
        for algorithm in algorithms:
            found = [r for r in rows if (r["algorithm"], r["data"]) == (algorithm, name)]
            cells = [f"{np.mean([r[m] for r in found]):.3f}" if found else "" for m in METRICS]
            lines.append(f"| {name}: {algorithm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speed_table(names: list[str]) -> str:
    """Time and peak memory of one training run, each in a process of its own."""
    lines = ["| | seconds | peak memory above the start, in copies of X |", "| --- | --- | --- |"]
    for name in names:
        command = [sys.executable, *_launcher(), "--measure", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, copies = json.loads(done.stdout)
        lines.append(f"| {name} | {seconds:.1f} | {copies:.1f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def _launcher() -> list[str]:
    return ["-m", f"{__package__}.baselines"]


def measure(name: str) -> tuple[float, float]:
    X, Y = load("arts")
    X, _, Y, _ = train_test_split(X, Y, test_size=0.2, random_state=0)
    model = seeded(SPEED[name], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:200, :50], Y[:200, :2])  # imports and thread pools
        before = _memory("VmRSS")
        # Loading the data had a peak of its own: forget it (Linux).
        Path("/proc/self/clear_refs").write_text("5")
        start = time.perf_counter()
        model.fit(X, Y)
    return time.perf_counter() - start, (_memory("VmHWM") - before) / X.nbytes


def _memory(entry: str) -> int:
    """Return the resident size now (VmRSS) or at its largest (VmHWM), in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(entry))


RATIO_DATA = ("arts", "bibtex", "corel5k")


def spread_labels(Y: np.ndarray, n_labels: int) -> np.ndarray:
    """Return labels from the middles of equal parts of all labels, by frequency."""
    order = np.argsort(-Y.sum(axis=0), kind="stable")
    order = order[Y[:, order].any(axis=0) & ~Y[:, order].all(axis=0)]
    n_labels = min(n_labels, len(order))
    return order[((np.arange(n_labels) + 0.5) * len(order) / n_labels).astype(int)]


def slow_twins() -> Any:
    """Return the module of the tests that has the old way; the tests are not a package."""
    path = Path(__file__).parents[1] / "tests" / "naive" / "baselines.py"
    spec = importlib.util.spec_from_file_location("naive_baselines", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def old_seconds(algorithm: str, X: np.ndarray, Y: np.ndarray, n_labels: int) -> float:
    """Return CPU seconds of the old way, from a few labels."""
    naive = slow_twins()
    chosen, q = spread_labels(Y, n_labels), Y.shape[1]
    n_rows, n_chains = len(X), 1
    if algorithm == "ECC":
        n_chains = ALGORITHMS["ECC"].n_chains
        rows = np.random.default_rng(0).permutation(n_rows)
        rows = np.sort(rows[: round(ALGORITHMS["ECC"].sample_fraction * n_rows)])
        X, Y = X[rows], Y[rows]
    total = 0.0
    for label in chosen:
        on = Y[:, label] > 0
        if on.all() or not on.any():
            continue  # constant in the sample: free
        start = time.process_time()
        if algorithm == "BRsvm":
            naive.svm_scores(X, on, X[:1], 1.0, "probability", 0)
        elif algorithm == "LIFT":
            naive.lift_label(X, on, X[:1])
        else:
            # A link in the middle of a chain, where the chosen label is the next.
            others = np.delete(Y, label, axis=1)[:, : q // 2]
            naive.chain_link(X, np.column_stack([others, on]), others.shape[1])
        total += time.process_time() - start
    return total / len(chosen) * q * n_chains


def ratio_table(names: list[str], n_labels: int) -> str:
    """Return a Markdown table of old and new CPU seconds of one training run."""
    lines = [
        f"Old: {n_labels} labels timed, times the number of labels (and chains).",
        "",
        "| | separate, seconds | shared, seconds | separate / shared |",
        "| --- | --- | --- | --- |",
    ]
    for name in names:
        X, Y = load(name)
        X, _, Y, _ = train_test_split(X, Y, test_size=0.2, random_state=0)
        for algorithm in ("BRsvm", "ECC", "LIFT"):
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                old = old_seconds(algorithm, X, Y, n_labels)
                start = time.process_time()
                seeded(ALGORITHMS[algorithm], 0).fit(X, Y)
                new = time.process_time() - start
            lines.append(f"| {name}: {algorithm} | {old:.0f} | {new:.1f} | {old / new:.1f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="data sets")
    parser.add_argument("--algorithms", nargs="+", choices=list(ALGORITHMS), help="which rows")
    parser.add_argument("--repetitions", type=int, default=3, help="80/20 splits (default 3)")
    parser.add_argument("--store", type=Path, help="file to keep finished runs in")
    parser.add_argument("--print", action="store_true", help="print what is in the store")
    parser.add_argument("--speed", action="store_true", help="time and memory on arts instead")
    parser.add_argument("--ratio", action="store_true", help="old and new time instead")
    parser.add_argument("--labels", type=int, default=3, help="labels timed the old way (3)")
    parser.add_argument("--variants", choices=list(VARIANTS), help="of one algorithm, instead")
    parser.add_argument("--measure", choices=list(SPEED), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}\n"
    )
    if options.ratio:
        print(ratio_table(options.data or list(RATIO_DATA), options.labels))
        return
    options.data = options.data or list(DATA)
    if options.speed:
        print(speed_table(list(SPEED)))
        return
    algorithms = ALGORITHMS
    if options.variants:
        algorithms = VARIANTS[options.variants]
    elif options.algorithms:
        algorithms = {name: ALGORITHMS[name] for name in options.algorithms}
    repetitions = 0 if options.print else options.repetitions
    rows = run_all(algorithms, options.data, repetitions, options.store)
    if options.variants:
        print(metric_table(rows, list(algorithms), options.data))
    else:
        print(accuracy_table(rows, options.data))


if __name__ == "__main__":
    main()
