"""The ensemble's time and accuracy beside LightGBM and logistic regression.

    python -m imcc_paper.ensemble_speed --threads 2 --csv results/ensemble_speed.csv
    python -m imcc_paper.ensemble_speed --threads 2 --file Imdb.arff.bz2 \
        --rows 1000 3000 10000 23000 43000 100000 --csv results/ensemble_speed.csv
    python -m imcc_paper.ensemble_speed --device cuda --data arts --methods ensemble \
        --csv results/ensemble_speed.csv      where there is a GPU; also with --file
    python -m imcc_paper.ensemble_speed --csv results/ensemble_speed.csv \
        --picture ../docs/images/ensemble_growth.png

The first command measures on a development split (seed 1000) of the data sets of ``--data``.  The
second one measures on the first so many of the training rows of a file, in random order, and
evaluates on the fifth of its rows that is left out.  Everything is measured in one process, one fit
after the other; times are those of a clock, so nothing else should run.  On a GPU, a fit of the
first thousand rows comes first, to load its libraries; trees and linear models use all cores.

* ``ensemble``: ``KernelEnsembleClassifier`` as it is;
* ``lightgbm``: 200 trees per label, one label after the other, with all threads;
* ``logistic``: the methods' own (``imcc_paper.methods``), which tunes its penalty.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from imcc import KernelEnsembleClassifier
from imcc.datasets import load_dataset, read
from imcc.estimators import label_scores
from imcc.metrics import average_precision
from imcc_paper import _measured
from imcc_paper._measured import Measurements, table
from imcc_paper.methods import LogisticRegressionBaseline

SEED = 1000  # of development splits: experiments count their repetitions from 0
DATA = ("yeast", "medical", "enron", "arts", "education")
METHODS = ("ensemble", "lightgbm", "logistic")


def split(name: str) -> tuple[Any, ...]:
    """Return training and test rows of a development split, which no experiment uses."""
    data = load_dataset(name)
    train, test = train_test_split(np.arange(data.n_rows), test_size=0.2, random_state=SEED)
    return data.X[train], data.Y[train], data.X[test], data.Y[test]


def model_of(method: str, options: argparse.Namespace) -> Any:
    """Return the classifier of a method."""
    if method == "ensemble":
        return KernelEnsembleClassifier(random_state=0, device=options.device)
    if method == "logistic":
        return LogisticRegressionBaseline(random_state=0)
    from lightgbm import LGBMClassifier

    return OneVsRestClassifier(
        LGBMClassifier(n_estimators=200, n_jobs=options.threads, random_state=0, verbose=-1)
    )


def measure(
    found: Measurements, part: str, name: str, data: tuple[Any, ...], options: argparse.Namespace
) -> None:
    """Fit each method to training rows, and evaluate it on others."""
    X, Y, X_new, Y_new = data
    size = {"rows": X.shape[0], "features": X.shape[1], "labels": Y.shape[1]}
    for method in options.methods:
        model = model_of(method, options)
        with threadpool_limits(options.threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of labels that all rows have, and of convergence
            if options.device:
                model.fit(X[:1000], Y[:1000])
                reset_peak()
            start = time.perf_counter()
            model.fit(X, Y)
            fitted = time.perf_counter()
            scores = label_scores(model, X_new, Y.shape[1])
            end = time.perf_counter()
        if options.device:
            size |= {"planned_bytes": model.planned_bytes_, "peak_bytes": peak_bytes()}
        found.add(
            part,
            f"{name}, {method}",
            **size,
            fit_seconds=fitted - start,
            predict_seconds=end - fitted,
            average_precision=average_precision(Y_new, scores),
        )
        found.save(options.csv)


def reset_peak() -> None:
    """Begin to measure the memory of a GPU."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_bytes() -> float:
    """Return the most memory of a GPU that was allocated at the same time; NaN without a GPU."""
    import torch

    return float(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else np.nan


def device_name(device: str | None) -> str:
    """Return the name of a GPU; "" without a device."""
    if not device:
        return ""
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") else device


def speed_table(found: Measurements, part: str) -> str:
    """Return the times and metrics of a part, and the mean of the times beside LightGBM's."""
    cases = [case.rpartition(", ") for case in found.cases(part)]
    methods = [m for m in METHODS if any(method == m for *_, method in cases)]
    lines, ratios = [], []
    for name in dict.fromkeys(name for name, *_ in cases):
        own = {m: found.of(part, f"{name}, {m}") for m in methods if (name, ", ", m) in cases}
        size = next(iter(own.values()))
        shape = " x ".join(f"{size[key]:,.0f}" for key in ("rows", "features", "labels"))
        seconds = [f"{own[m]['fit_seconds']:.1f} s" if m in own else "" for m in methods]
        precisions = [f"{own[m]['average_precision']:.3f}" if m in own else "" for m in methods]
        lines.append([name, shape, *seconds, *precisions])
        if "lightgbm" in own and "ensemble" in own:
            ratios.append(own["ensemble"]["fit_seconds"] / own["lightgbm"]["fit_seconds"])
    header = ["", "rows x features x labels"]
    header += [f"{m}, fit" for m in methods] + [f"{m}, average precision" for m in methods]
    text = table(header, lines)
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        text += f"\n\nThe ensemble takes {mean:.2f} times as long as LightGBM (geometric mean)."
    return text


def blocks(found: Measurements) -> dict[str, str]:
    """Return the tables of docs/ensemble.md."""
    gpu = []
    for part in ("sets, GPU", "growth, GPU"):
        for case in found.cases(part):
            own = found.of(part, case)
            shape = " x ".join(f"{own[key]:,.0f}" for key in ("rows", "features", "labels"))
            name = case.partition(",")[0] if part.startswith("sets") else "IMDb"
            precision = f"{own['average_precision']:.3f}"
            sizes = [f"{own[key] / 1e9:.1f} GB" for key in ("planned_bytes", "peak_bytes")]
            gpu.append([name, shape, f"{own['fit_seconds']:.1f} s", *sizes, precision])
    header = ["", "rows x features x labels", "fit", "announced", "measured", "average precision"]
    return {
        "ensemble-speed": speed_table(found, "sets"),
        "ensemble-growth": speed_table(found, "growth"),
        "ensemble-gpu": table(header, gpu),
    }


def draw_growth(found: Measurements, path: Path) -> None:
    """Draw the time and the average precision against the number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    time_axes, precision_axes = figure.subplots(1, 2)
    for method in METHODS:
        cases = [case for case in found.cases("growth") if case.endswith(f", {method}")]
        own = [found.of("growth", case) for case in cases]
        rows = [measured["rows"] for measured in own]
        time_axes.plot(rows, [m["fit_seconds"] for m in own], marker="o", label=method)
        precision_axes.plot(rows, [m["average_precision"] for m in own], marker="o", label=method)
    time_axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="fit, seconds")
    precision_axes.set(xscale="log", xlabel="training rows", ylabel="average precision per row")
    for axes in (time_axes, precision_axes):
        axes.grid(alpha=0.3)
    time_axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Read the command line and measure what was asked for."""
    parser = _measured.make_parser(__doc__, "ensemble_speed")
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--file", help="a data set of which parts are measured")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--threads", type=int, help="of BLAS and LightGBM; all cores by default")
    parser.add_argument("--device", help="a device of the ensemble, such as cuda")
    parser.add_argument("--picture", type=Path, help="draw the measurements of --csv, measure none")
    options = parser.parse_args()
    if options.picture:
        draw_growth(Measurements.read(options.csv), options.picture)
        return
    found = Measurements(device=device_name(options.device))
    part = "growth" if options.file else "sets"
    part = f"{part}, GPU" if options.device else part
    if options.file:
        data = read(options.file)
        train, test = train_test_split(np.arange(data.n_rows), test_size=0.2, random_state=SEED)
        for n in options.rows:
            some = train[:n]
            rows = data.X[some], data.Y[some], data.X[test], data.Y[test]
            measure(found, part, f"{len(some)} rows", rows, options)
    else:
        for name in options.data:
            measure(found, part, name, split(name), options)
    print(speed_table(found, part))


if __name__ == "__main__":
    main()
