"""What an approximate kernel costs and what it loses, against the exact one.

    python -m imcc_paper.approximation --csv results/approximation.csv    minutes
    python -m imcc_paper.approximation --folds 2                          a quick look

``python -m imcc_paper.reproduce`` makes the table and the plot of docs/scale.md from the file.
Five-fold cross-validation on yeast, scene and arts with the classifier's default weights and 64
clusters.  Needs the paper's files (``IMCC_DATA_MIRROR``) for all but yeast, and matplotlib for the
plot.
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from imcc import IMCCClassifier
from imcc.metrics import evaluate
from imcc_paper import _measured
from imcc_paper._measured import Measurements
from imcc_paper.places import DOCS, RESULTS

DATASETS = ("yeast", "scene", "arts")
CASES = {
    "Nyström, k-means": {"approximation": "nystroem", "landmarks": "kmeans"},
    "Nyström, random rows": {"approximation": "nystroem", "landmarks": "random"},
}
N_CLUSTERS = 64
SIZES = (100, 250, 500, 1000, 2000, 4000)
SHOWN = (0, 250, 1000)  # in the table; the plot has all
DEFAULT = ("Nyström, k-means", 1000)  # of the classifier
QUANTITIES = ("average_precision", "fit_seconds", "predict_seconds", "megabytes")
ROWS = RESULTS / "approximation.csv"
FIGURE = DOCS / "approximation.svg"

Results = dict[tuple[str, str, int], np.ndarray]


def measure(X: np.ndarray, Y: np.ndarray, folds: int, **parameters) -> np.ndarray:
    """Return the means of average precision, fit and predict seconds and megabytes of the model."""
    rows = []
    for train, test in KFold(folds, shuffle=True, random_state=0).split(X):
        clf = IMCCClassifier(N_CLUSTERS, random_state=0, **parameters)
        start = time.perf_counter()
        clf.fit(X[train], Y[train])
        middle = time.perf_counter()
        scores = clf.decision_function(X[test])
        end = time.perf_counter()
        precision = evaluate(Y[test], scores, ["average_precision"])["average_precision"]
        rows.append((precision, middle - start, end - middle, len(pickle.dumps(clf)) / 1e6))
    return np.mean(rows, axis=0)


def stored(found: Measurements) -> Results:
    """Return the results by data set, kernel and number of components (0 is the exact kernel)."""
    results = {}
    for data in DATASETS:
        for name in found.cases(data):
            case, _, size = name.rpartition(" ")
            values = found.of(data, name)
            # For sizes that only the plot shows, the precision is enough.
            numbers = [values.get(key, np.nan) for key in QUANTITIES]
            results[data, case, int(size)] = np.array(numbers)
    return results


def table(results: Results, sizes: tuple[int, ...]) -> str:
    """Lay out the results for some numbers of components."""
    header = [
        "data", "kernel", "components", "average precision", "difference", "fit", "predict", "model"
    ]  # fmt: skip
    lines = []
    for (data, case, size), (precision, fit, predict, megabytes) in results.items():
        if size not in sizes:
            continue
        difference = precision - results[data, "exact", 0][0]
        quality = [f"{precision:.4f}", f"{difference:+.4f}"]
        cost = [f"{fit:.2f} s", f"{1e3 * predict:.0f} ms", f"{megabytes:.1f} MB"]
        lines.append([data, case, str(size or ""), *quality, *cost])
    return _measured.table(header, lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/scale.md."""
    results = stored(found)
    worst = max(results[data, "exact", 0][0] - results[(data, *DEFAULT)][0] for data in DATASETS)
    return {"approximation": table(results, SHOWN), "approximation-loss": f"{worst:.4f}"}


def plot(results: Results, path: Path, description: str) -> None:
    """Draw the loss in average precision against the number of components."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: small, and readable by machines
    mpl.rcParams["svg.hashsalt"] = "imcc"
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(DATASETS), sharey=True)
    marks = {"Nyström, k-means": "o", "Nyström, random rows": "s"}
    for ax, data in zip(axes, DATASETS, strict=True):
        ax.axhspan(-0.005, 0.005, color="0.9", zorder=0)
        ax.axhline(0, color="0.5", linewidth=0.8)
        exact = results[data, "exact", 0][0]
        for case, mark in marks.items():
            points = [
                (size, r[0] - exact)
                for (d, c, size), r in results.items()
                if (d, c) == (data, case)
            ]
            ax.plot(*zip(*points, strict=True), marker=mark, markersize=4, label=case)
        ax.set(xscale="log", title=f"{data} (exact: {exact:.3f})", xlabel="components")
        ax.set_xticks(SIZES, labels=[str(size) for size in SIZES], fontsize=8)
        ax.minorticks_off()
        ax.set_ylim(-0.05, 0.01)
    axes[0].set_ylabel("average precision\nless that of the exact kernel")
    axes[0].legend(loc="lower right", fontsize=8)
    figure.savefig(path, metadata={"Date": None, "Description": description})


def draw() -> None:
    """Draw the figure of the page."""
    plot(stored(Measurements.read(ROWS)), FIGURE, _measured.digest(ROWS))


def main() -> None:
    parser = _measured.make_parser(__doc__, "approximation")
    parser.add_argument("--folds", type=int, default=5, help="folds (default 5)")
    options = parser.parse_args()
    found = Measurements()
    for data in DATASETS:
        X, Y = _measured.dense_rows(data)

        def add(case: str, size: int, X=X, Y=Y, data=data, **parameters) -> None:
            values = measure(X, Y, options.folds, **parameters)
            found.add(data, f"{case} {size}", **dict(zip(QUANTITIES, values, strict=True)))

        add("exact", 0)
        for case, parameters in CASES.items():
            for size in SIZES:
                if parameters["approximation"] == "nystroem" and size >= 0.8 * len(X):
                    continue  # all rows would be landmarks: the exact model
                add(case, size, n_components=size, **parameters)
    print(table(stored(found), SHOWN))
    found.save(options.csv)


if __name__ == "__main__":
    main()
