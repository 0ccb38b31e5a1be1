"""What an approximate kernel costs and what it loses, against the exact one.

    python -m benchmarks.approximation              table and plot of docs/scale.md (minutes)
    python -m benchmarks.approximation --folds 2    a quick look

Five-fold cross-validation on yeast, scene and arts with the classifier's default weights and 64
clusters.  Needs the paper's files (``IMCC_DATA_MIRROR``) for all but yeast, and matplotlib for the
plot.
"""

from __future__ import annotations

import argparse
import pickle
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from imcc import IMCCClassifier
from imcc.datasets import load_dataset
from imcc.metrics import evaluate

DATASETS = ("yeast", "scene", "arts")
CASES = {
    "Nyström, k-means": {"approximation": "nystroem", "landmarks": "kmeans"},
    "Nyström, random rows": {"approximation": "nystroem", "landmarks": "random"},
    "Fourier": {"approximation": "fourier"},
}
N_CLUSTERS = 64
SIZES = (100, 250, 500, 1000, 2000, 4000)
SHOWN = (0, 250, 1000, 4000)  # in the table; the plot has all
FIGURE = Path(__file__).parents[1] / "docs" / "approximation.svg"


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


def table(results: dict[tuple[str, str, int], np.ndarray], sizes: tuple[int, ...]) -> str:
    """Lay out the results for some numbers of components (0 is the exact kernel)."""
    lines = [
        "| data | kernel | components | average precision | difference | fit | predict | model |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (data, case, size), (precision, fit, predict, megabytes) in results.items():
        if size not in sizes:
            continue
        difference = precision - results[data, "exact", 0][0]
        lines.append(
            f"| {data} | {case} | {size or ''} | {precision:.4f} | {difference:+.4f} | "
            f"{fit:.2f} s | {1e3 * predict:.0f} ms | {megabytes:.1f} MB |"
        )
    return "\n".join(lines)


def plot(results: dict[tuple[str, str, int], np.ndarray], path: Path) -> None:
    """Draw the loss in average precision against the number of components."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: small, and readable by machines
    mpl.rcParams["svg.hashsalt"] = "imcc"
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots(1, len(DATASETS), sharey=True)
    marks = {"Nyström, k-means": "o", "Nyström, random rows": "s", "Fourier": "^"}
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
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None})
    else:
        figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=5, help="folds (default 5)")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="where the plot goes")
    parser.add_argument("--all", action="store_true", help="all sizes in the table, not a few")
    options = parser.parse_args()
    results: dict[tuple[str, str, int], np.ndarray] = {}
    for data in DATASETS:
        dataset = load_dataset(data)
        X = dataset.X.toarray() if sp.issparse(dataset.X) else dataset.X
        results[data, "exact", 0] = measure(X, dataset.Y, options.folds)
        for case, parameters in CASES.items():
            for size in SIZES:
                if parameters["approximation"] == "nystroem" and size >= 0.8 * len(X):
                    continue  # all rows would be landmarks: the exact model
                results[data, case, size] = measure(
                    X, dataset.Y, options.folds, n_components=size, **parameters
                )
    print(table(results, (0, *SIZES) if options.all else SHOWN))
    plot(results, options.figure)
    print(f"\nplot: {options.figure}")


if __name__ == "__main__":
    main()
