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

``--csv results/baselines.csv`` writes what ``--speed``, ``--ratio`` and ``--variants`` measure;
``python -m benchmarks.reproduce`` writes these numbers into docs/baselines.md.

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

from benchmarks import _measured
from benchmarks._measured import Measurements
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


def add_metrics(part: str, rows: list[dict[str, Any]], found: Measurements) -> None:
    """Add the means of all metrics over the repetitions."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cases.setdefault(f"{row['data']}: {row['algorithm']}", []).append(row)
    for case, some in cases.items():
        found.add(part, case, **{m: float(np.mean([row[m] for row in some])) for m in METRICS})


def metric_table(found: Measurements, part: str) -> str:
    """Lay out all metrics."""
    rows = ((case, found.of(part, case)) for case in found.cases(part))
    return _measured.table(
        ["", *METRICS], ([case, *(f"{of[m]:.3f}" for m in METRICS)] for case, of in rows)
    )


def add_speed(names: list[str], found: Measurements) -> None:
    """Add time and peak memory of one training run, each in a process of its own."""
    for name in names:
        command = [sys.executable, *_launcher(), "--measure", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.add("speed", name, **json.loads(done.stdout))


def speed_table(found: Measurements) -> str:
    """Lay out time and memory; a cell is empty where nothing was measured."""
    columns = {
        "seconds": "seconds",
        "cpu_seconds": "CPU seconds",
        "copies": "peak memory above the start, in copies of X",
    }
    rows = []
    for name in found.cases("speed"):
        of = found.of("speed", name)
        rows.append([name, *(f"{of[c]:.1f}" if c in of else "" for c in columns)])
    return _measured.table(["", *columns.values()], rows)


def _launcher() -> list[str]:
    return ["-m", f"{__package__}.baselines"]


def measure(name: str) -> dict[str, float]:
    """Return time and peak memory of one training run on arts."""
    X, Y = load("arts")
    X, _, Y, _ = train_test_split(X, Y, test_size=0.2, random_state=0)
    model = seeded(SPEED[name], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:200, :50], Y[:200, :2])  # imports and thread pools
        before = _memory("VmRSS")
        # Loading the data had a peak of its own: forget it (Linux).
        Path("/proc/self/clear_refs").write_text("5")
        start, worked = time.perf_counter(), time.process_time()
        model.fit(X, Y)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - worked,
        "copies": (_memory("VmHWM") - before) / X.nbytes,
    }


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


def add_ratios(names: list[str], n_labels: int, found: Measurements) -> None:
    """Add old and new CPU seconds of one training run."""
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
                case = f"{name}: {algorithm}"
                found.add("ratio", case, separate=old, shared=new, ratio=old / new)


def ratio_table(found: Measurements) -> str:
    """Lay out old and new CPU seconds."""
    rows = []
    for case in found.cases("ratio"):
        of = found.of("ratio", case)
        rows.append([case, f"{of['separate']:.0f}", f"{of['shared']:.1f}", f"{of['ratio']:.1f}"])
    header = ["", "separate, seconds", "shared, seconds", "separate / shared"]
    return _measured.table(header, rows)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/baselines.md."""
    margin, probability = (
        found.of("lift", f"yeast: LIFT, {scores}") for scores in ("margin", "probability")
    )
    lower = probability["average_precision"] - margin["average_precision"]
    more = margin["ranking_loss"] / probability["ranking_loss"] - 1
    return {
        "baselines-speed": speed_table(found),
        "baselines-ratio": ratio_table(found),
        "lift-scores": metric_table(found, "lift"),
        "lift-difference": f"{lower:.3f} and increases the ranking loss by {100 * more:.0f} %",
        "mahr-variants": metric_table(found, "mahr"),
    }


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
    _measured.add_csv_option(parser, "baselines")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}\n"
    )
    if options.csv and not (options.ratio or options.speed or options.variants):
        parser.error("--csv is for --speed, --ratio and --variants")
    found = Measurements()
    if options.ratio:
        add_ratios(options.data or list(RATIO_DATA), options.labels, found)
        print(ratio_table(found))
    elif options.speed:
        add_speed(list(SPEED), found)
        print(speed_table(found))
    else:
        options.data = options.data or list(DATA)
        algorithms = ALGORITHMS
        if options.variants:
            algorithms = VARIANTS[options.variants]
        elif options.algorithms:
            algorithms = {name: ALGORITHMS[name] for name in options.algorithms}
        repetitions = 0 if options.print else options.repetitions
        rows = run_all(algorithms, options.data, repetitions, options.store)
        if options.variants:
            rows = [r for r in rows if r["algorithm"] in algorithms and r["data"] in options.data]
            add_metrics(options.variants, rows, found)
            print(metric_table(found, options.variants))
        else:
            print(accuracy_table(rows, options.data))
    if options.csv:
        found.save(options.csv)


if __name__ == "__main__":
    main()
