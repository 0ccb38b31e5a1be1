"""Other libraries for multi-label learning on the same splits: accuracy and time.

    OMP_NUM_THREADS=1 python -m benchmarks.other_libraries --other /path/to/python [--other ...]
        [--data emotions] [--splits 3]

The libraries are not installed beside imcc (scikit-multilearn needs an old scikit-learn): each
``--other`` is the interpreter of an environment that has one, and this script asks it what it has.
It runs itself there with the training and test rows in a file, and gets the scores back.  All
methods have the defaults of their library.  Features are standardised for all.  Times are those of
the processor.  A method that fails is in the table with its error.

Emotions in 80/20 splits of :func:`imcc.datasets.paper_splits`, unless other data are named; nothing
was chosen on it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def scikit_multilearn():
    """Return the methods of scikit-multilearn that are compared."""
    from sklearn.linear_model import LogisticRegression
    from skmultilearn.adapt import MLkNN
    from skmultilearn.ensemble import RakelD
    from skmultilearn.problem_transform import BinaryRelevance, ClassifierChain, LabelPowerset

    def base():
        return LogisticRegression(max_iter=1000)

    return {
        "scikit-multilearn BinaryRelevance(LogisticRegression)": lambda: BinaryRelevance(base()),
        "scikit-multilearn ClassifierChain(LogisticRegression)": lambda: ClassifierChain(base()),
        "scikit-multilearn LabelPowerset(LogisticRegression)": lambda: LabelPowerset(base()),
        "scikit-multilearn RakelD(LogisticRegression)": lambda: RakelD(base()),
        "scikit-multilearn MLkNN": MLkNN,
    }


def mlrl_boomer():
    """Return the method of MLRL-Boomer."""
    from mlrl.boosting import BoomerClassifier

    return {"MLRL-Boomer BoomerClassifier": BoomerClassifier}


def own():
    """Return the methods of this library that they are compared with."""
    from imcc import IMCCClassifier, KernelEnsembleClassifier

    return {
        "imcc KernelEnsembleClassifier": lambda: KernelEnsembleClassifier(random_state=0),
        "imcc IMCCClassifier": lambda: IMCCClassifier(random_state=0),
    }


def available() -> dict:
    found = {}
    for methods in (scikit_multilearn, mlrl_boomer, own):
        try:
            found.update(methods())
        except ImportError:
            continue
    return found


def run(file: Path, method: str) -> None:
    """Train on the rows of a file, score its test rows, and write scores and seconds beside it."""
    data = np.load(file)
    start = time.process_time()
    model = available()[method]().fit(data["X"], data["Y"])
    fitted = time.process_time()
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(data["X_test"])
        scores = scores.toarray() if hasattr(scores, "toarray") else np.asarray(scores)
        scores = scores * 2.0 - 1
    else:
        scores = model.decision_function(data["X_test"])
    done = time.process_time()
    np.savez(file.with_suffix(".out.npz"), scores=scores, seconds=[fitted - start, done - fitted])


def compare(others: list[str], names: list[str], splits: int) -> str:
    from sklearn.preprocessing import StandardScaler

    from imcc.datasets import load_dataset, paper_splits
    from imcc.metrics import average_precision, hamming_loss

    methods = []
    for python in [sys.executable, *others]:
        listed = subprocess.run(
            [python, __file__, "--list"], capture_output=True, text=True, check=True
        )
        methods += [(python, name) for name in json.loads(listed.stdout)]
    lines = [
        "| data | method | average precision | Hamming loss | training |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            data = load_dataset(name)
            results: dict[str, list[list[float]]] = {}
            failed: dict[str, str] = {}
            for train, test in paper_splits(data, n_splits=splits):
                scaler = StandardScaler().fit(data.X[train])
                file = Path(folder, "rows.npz")
                X, X_test = scaler.transform(data.X[train]), scaler.transform(data.X[test])
                np.savez(file, X=X, Y=data.Y[train], X_test=X_test)
                for python, method in methods:
                    done = subprocess.run(
                        [python, __file__, "--run", file, method], capture_output=True, text=True
                    )
                    if done.returncode:
                        failed[method] = done.stderr.strip().splitlines()[-1]
                        continue
                    out = np.load(file.with_suffix(".out.npz"))
                    scores = out["scores"]
                    row = [
                        average_precision(data.Y[test], scores),
                        hamming_loss(data.Y[test], scores),
                        float(out["seconds"][0]),
                    ]
                    results.setdefault(method, []).append(row)
            order = sorted(results, key=lambda method: -np.mean(results[method], axis=0)[0])
            for method in order:
                precision, loss, seconds = np.mean(results[method], axis=0)
                lines.append(
                    f"| {name} | {method} | {precision:.3f} | {loss:.3f} | {seconds:.1f} s |"
                )
            lines += [f"| {name} | {m} | {error} | | |" for m, error in failed.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--other", action="append", default=[], help="an interpreter")
    parser.add_argument("--data", nargs="+", default=["emotions"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.list:
        print(json.dumps(list(available())))
    elif given.run:
        run(Path(given.run[0]), given.run[1])
    else:
        print(compare(given.other, given.data, given.splits))


if __name__ == "__main__":
    main()
