"""Other libraries for multi-label learning on the same splits: accuracy and time.

    OMP_NUM_THREADS=1 python -m imcc_paper.other_libraries --other /path/to/python [--other ...]
        [--data emotions birds yeast scene enron] [--splits 2] [--csv results/other_libraries.csv]

The libraries are not installed beside imcc (their requirements conflict): each ``--other`` is the
interpreter of an environment that has one, and this script asks it what it has.  It runs itself
there with the training and test rows in a file, and gets scores and predictions back.  All methods
have the defaults of their library.  Rows that the CSV file already has are not computed again.

The splits are the first of :func:`imcc.datasets.paper_splits`, 80/20.  Features are standardised
for all methods, except on data where all of them are 0 or 1.  Average precision is that of the
scores, Hamming loss and macro F1 those of the library's own ``predict``.  Times are CPU seconds.
A method that fails or takes longer than ``--limit`` seconds has a remark in place of numbers, and
is not tried on further splits of the same data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PAPER = Path(__file__).parents[1]
ROWS = PAPER / "results" / "other_libraries.csv"
DATA = ("emotions", "birds", "yeast", "scene", "enron")
COLUMNS = (
    "data", "split", "method", "library", "average_precision", "hamming_loss", "macro_f1",
    "fit_seconds", "predict_seconds", "error",
)  # fmt: skip
Methods = dict[str, Callable[[], Any]]


def scikit_learn() -> Methods:
    """Return scikit-learn's ways to a label matrix."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import ClassifierChain
    from sklearn.neural_network import MLPClassifier

    def base() -> Any:
        return LogisticRegression(max_iter=1000)

    return {
        "OneVsRest(LogisticRegression)": lambda: OneVsRestClassifier(base()),
        "ClassifierChain(LogisticRegression)": lambda: ClassifierChain(base()),
        "RandomForestClassifier": lambda: RandomForestClassifier(random_state=0),
        "OneVsRest(HistGradientBoosting)": lambda: OneVsRestClassifier(
            HistGradientBoostingClassifier(random_state=0)
        ),
        "MLPClassifier": lambda: MLPClassifier(random_state=0),
    }


def scikit_multilearn() -> Methods:
    """Return the methods of scikit-multilearn that scikit-learn does not have."""
    from sklearn.linear_model import LogisticRegression
    from skmultilearn.adapt import MLkNN
    from skmultilearn.ensemble import RakelD
    from skmultilearn.problem_transform import LabelPowerset

    def base() -> Any:
        return LogisticRegression(max_iter=1000)

    return {
        "LabelPowerset(LogisticRegression)": lambda: LabelPowerset(base()),
        "RakelD(LogisticRegression)": lambda: RakelD(base()),
        "MLkNN": MLkNN,
    }


def mlrl_boomer() -> Methods:
    """Return the method of MLRL-Boomer."""
    from mlrl.boosting import BoomerClassifier

    return {"BoomerClassifier": lambda: BoomerClassifier(random_state=1)}


class _Linear:
    """A training function of LibMultiLabel with scikit-learn's interface."""

    def __init__(self, train: Callable[..., Any]) -> None:
        self.train = train

    def fit(self, X: Any, Y: Any) -> _Linear:
        from scipy import sparse

        # With an intercept, which its default does not have (it is made for words).
        self.model_ = self.train(
            sparse.csr_matrix(Y), sparse.csr_matrix(X), options="-B 1", verbose=False
        )
        return self

    def decision_function(self, X: Any) -> Any:
        from libmultilabel import linear
        from scipy import sparse

        return linear.predict_values(self.model_, sparse.csr_matrix(X))

    def predict(self, X: Any) -> Any:
        return self.decision_function(X) > 0


def libmultilabel() -> Methods:
    """Return LibMultiLabel's linear methods (its networks are for texts)."""
    from libmultilabel import linear

    return {
        "train_1vsrest": lambda: _Linear(linear.train_1vsrest),
        "train_thresholding": lambda: _Linear(linear.train_thresholding),
    }


def own() -> Methods:
    """Return the methods of this library that they are compared with."""
    from imcc import IMCCClassifier, KernelEnsembleClassifier, TunedThresholds

    return {
        "KernelEnsembleClassifier": lambda: KernelEnsembleClassifier(random_state=0),
        "TunedThresholds(KernelEnsemble)": lambda: TunedThresholds(
            KernelEnsembleClassifier(random_state=0), cv="held_out"
        ),
        "IMCCClassifier": lambda: IMCCClassifier(random_state=0),
    }


# The distributions that have each, the first that is installed counts.
LIBRARIES: dict[tuple[str, ...], Callable[[], Methods]] = {
    ("imcc",): own,
    ("mlrl-boomer",): mlrl_boomer,
    ("libmultilabel",): libmultilabel,
    ("scikit-multilearn-ng", "scikit-multilearn"): scikit_multilearn,
    ("scikit-learn",): scikit_learn,
}


def available() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return the methods that are installed here, each with its library and its constructor.

    scikit-learn's own are run beside imcc only: the other libraries need it as well.
    """
    found: dict[str, tuple[str, Callable[[], Any]]] = {}
    for names, methods in LIBRARIES.items():
        for name in names:
            try:
                number = version(name)
                if name == "imcc":  # of the sources, where they are not installed
                    number = import_module(name).__version__
            except PackageNotFoundError:
                continue
            if name == "scikit-learn" and not any(key.startswith("imcc ") for key in found):
                continue
            for method, make in methods().items():
                found[f"{name} {method}"] = (f"{name} {number}", make)
            break
    return found


def dense(array: Any) -> Any:
    return array.toarray() if hasattr(array, "toarray") else np.asarray(array)


def run(file: Path, method: str) -> None:
    """Train on the rows of a file, and write scores, predictions and seconds beside it."""
    warnings.simplefilter("ignore")
    data = np.load(file)
    model = available()[method][1]()
    start = time.process_time()
    model.fit(data["X"], data["Y"])
    fitted = time.process_time()
    if hasattr(model, "predict_proba"):
        scores = dense(model.predict_proba(data["X_test"]))
        if scores.ndim == 3:  # one array per label, with the columns of both classes
            scores = scores[:, :, -1].T
    else:
        scores = dense(model.decision_function(data["X_test"]))
    done = time.process_time()
    predicted = dense(model.predict(data["X_test"])).astype(np.int8)
    seconds = [fitted - start, done - fitted]
    np.savez(file.with_suffix(".out.npz"), scores=scores, predicted=predicted, seconds=seconds)


def read(path: Path = ROWS) -> list[dict[str, str]]:
    from imcc_paper._rows import read_rows  # not there in the environments of others

    return read_rows(path, COLUMNS)


def compare(
    others: Sequence[str], names: Sequence[str], splits: int, path: Path, limit: float
) -> None:
    """Compute the rows that the file does not have, and add each as soon as it is known."""
    from sklearn.metrics import f1_score
    from sklearn.metrics import hamming_loss as hamming
    from sklearn.preprocessing import StandardScaler

    from imcc.datasets import load_dataset, paper_splits
    from imcc.metrics import average_precision
    from imcc_paper._rows import add_rows

    methods = []
    for python in [sys.executable, *others]:
        listed = subprocess.run(
            [python, __file__, "--list"], capture_output=True, text=True, check=True
        )
        methods += [(python, *item) for item in json.loads(listed.stdout.splitlines()[-1])]
    have = {(row["data"], int(row["split"]), row["method"]) for row in read(path)}
    failed = {(row["data"], row["method"]) for row in read(path) if row["error"]}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            data = load_dataset(name)
            for split, (train, test) in enumerate(paper_splits(data, n_splits=splits)):
                X, X_test = dense(data.X[train]), dense(data.X[test])
                if not np.isin(X, (0, 1)).all():
                    scaler = StandardScaler().fit(X)
                    X, X_test = scaler.transform(X), scaler.transform(X_test)
                file = Path(folder, "rows.npz")
                np.savez(file, X=X, Y=data.Y[train], X_test=X_test)
                for python, method, library in methods:
                    if (name, split, method) in have or (name, method) in failed:
                        continue
                    row = {"data": name, "split": split, "method": method, "library": library}
                    command = [python, __file__, "--run", str(file), method]
                    try:
                        subprocess.run(
                            command, capture_output=True, text=True, check=True, timeout=limit
                        )
                    except subprocess.TimeoutExpired:
                        row["error"] = f"more than {limit:g} s"
                        failed.add((name, method))
                    except subprocess.CalledProcessError as error:
                        row["error"] = error.stderr.strip().splitlines()[-1]
                        failed.add((name, method))
                    else:
                        out, Y = np.load(file.with_suffix(".out.npz")), data.Y[test]
                        f1 = f1_score(Y, out["predicted"], average="macro", zero_division=0)
                        row |= {
                            "average_precision": f"{average_precision(Y, out['scores']):.6f}",
                            "hamming_loss": f"{hamming(Y, out['predicted']):.6f}",
                            "macro_f1": f"{f1:.6f}",
                            "fit_seconds": f"{out['seconds'][0]:.3f}",
                            "predict_seconds": f"{out['seconds'][1]:.3f}",
                        }
                    add_rows(path, COLUMNS, [row])
                    print(*row.values(), sep="  ", flush=True)


def page_table(rows: Sequence[dict[str, str]]) -> str:
    """Return the table of docs/compared_with.md: means over the splits, the best in bold.

    Of each method the average precision by data set, the other metrics as means over data sets, and
    the time for all of them.  Methods that failed are left out.
    """
    from imcc_paper._measured import table

    names = [name for name in DATA if any(row["data"] == name for row in rows)]
    order = {name: i for i, library in enumerate(LIBRARIES) for name in library}
    methods = dict.fromkeys(row["method"] for row in rows)
    means: dict[str, list[float]] = {}
    for method in sorted(methods, key=lambda method: order[method.partition(" ")[0]]):
        of_method = [row for row in rows if row["method"] == method]
        if any(row["error"] for row in of_method):
            continue

        def by_set(column: str, of_method: list[dict[str, str]] = of_method) -> list[float]:
            return [
                float(np.mean([float(row[column]) for row in of_method if row["data"] == name]))
                for name in names
            ]

        means[method] = [
            *by_set("average_precision"),
            float(np.mean(by_set("hamming_loss"))),
            float(np.mean(by_set("macro_f1"))),
            sum(by_set("fit_seconds")),
        ]
    lowest = len(names)  # the column of the Hamming loss
    best = [
        f"{min(column) if k == lowest else max(column):.3f}"
        for k, column in enumerate(zip(*means.values(), strict=True))
    ]
    lines = []
    for method, values in means.items():
        cells = [f"{value:.3f}" for value in values[:-1]]
        cells = [f"**{cell}**" if cell == best[k] else cell for k, cell in enumerate(cells)]
        lines.append([f"{method.replace(' ', ' `', 1)}`", *cells, f"{values[-1]:.1f}"])
    return table(["", *names, "Hamming loss", "macro F1", "CPU seconds"], lines)


def blocks() -> dict[str, str]:
    """Return the marked block of docs/compared_with.md."""
    return {"other-libraries": page_table(read())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--other", action="append", default=[], help="an interpreter")
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a method")
    parser.add_argument("--csv", type=Path, default=ROWS)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.list:
        print(json.dumps([(name, library) for name, (library, _) in available().items()]))
    elif given.run:
        run(Path(given.run[0]), given.run[1])
    else:
        compare(given.other, given.data, given.splits, given.csv, given.limit)


if __name__ == "__main__":
    main()
