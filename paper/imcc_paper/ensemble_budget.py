"""The ensemble's accuracy and memory against the memory that it may use.

    python -m imcc_paper.ensemble_budget --file Imdb.arff.bz2 --csv results/ensemble_budget.csv
    python -m imcc_paper.ensemble_budget --sizes --csv results/ensemble_budget.csv
    python -m imcc_paper.ensemble_budget --csv results/ensemble_budget.csv \
        --picture ../docs/images/ensemble_budget.png

The first command fits the ensemble to ``--rows`` rows of a file with each of some budgets
(``max_memory``), of which all but the last admit landmarks only, and evaluates it on 5,000 others.
The rows are from a split of their own (seed 5000).  The second command fits it to made-up rows, of
three sizes, in one view.  Both compare the memory that was announced with what the fit took.

Each fit has a process of its own, and what is already in the file is not measured again, so that a
run can be interrupted.  Memory is read from ``/proc``, on Linux.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from imcc import KernelEnsembleClassifier
from imcc.datasets import read
from imcc.metrics import average_precision
from imcc_paper import _measured
from imcc_paper._measured import Measurements, in_own_process, memory, table

SEED = 5000
N_TEST = 5000
#: Megabytes, for about 600, 1,000, 2,000 and 4,000 landmarks of 20,000 rows of IMDb; and no limit.
BUDGETS = (150, 200, 360, 800, 0)
#: Rows, features and labels.
SIZES = ((2000, 100, 20), (4000, 200, 200), (9000, 200, 50))


def fit(data: tuple[Any, ...], options: dict[str, Any], threads: int) -> dict[str, float]:
    """Fit the ensemble, and return what it took and its metrics on other rows."""
    X, Y, X_new, Y_new = data
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of landmarks
        # What is imported when it is first needed does not count.
        importlib.import_module("lightgbm")
        KernelEnsembleClassifier(views=("raw",)).fit(np.eye(40), np.eye(40)[:, :2])
        before, start, begun = memory("VmRSS"), time.perf_counter(), time.process_time()
        model = KernelEnsembleClassifier(random_state=0, **options).fit(X, Y)
        seconds, used = time.perf_counter() - start, time.process_time() - begun
        after = memory("VmHWM")
        chances = np.clip(model.predict_proba(X_new), 1e-12, 1 - 1e-12)
    losses = np.where(Y_new > 0, np.log(chances), np.log1p(-chances))
    return {
        **{"rows": X.shape[0], "features": X.shape[1], "labels": Y.shape[1]},
        "landmarks": model.n_landmarks_,
        "announced_bytes": model.planned_bytes_,
        "measured_bytes": after - before,
        "fit_seconds": seconds,
        "processor_seconds": used,
        "average_precision": average_precision(Y_new, chances),
        "log_loss": -float(losses.mean()),
    }


def measure(
    found: Measurements,
    part: str,
    data: Callable[[], tuple[Any, ...]],
    options: dict[str, Any],
    threads: int,
) -> None:
    """Fit in another process, unless that was done before."""
    if part in found.parts():
        return
    found.add(part, "ensemble", **in_own_process(fit, data(), options, threads))


def measured(found: Measurements, kind: str) -> list[dict[str, float]]:
    """Return the numbers of the fits of a kind, "budget" or "size", by the announced memory.

    Each fit is a part of its own, since they may be from different days.
    """
    fits = [found.of(part, "ensemble") for part in found.parts() if part.startswith(kind)]
    return sorted(fits, key=lambda own: own["announced_bytes"])


def make(n: int, d: int, q: int) -> tuple[Any, ...]:
    """Return made-up rows, with labels that depend on them, and others."""
    rng = np.random.default_rng(SEED)
    hidden = rng.normal(size=(n + 500, 20))
    X = np.tanh(hidden @ rng.normal(size=(20, d)) / 3) + rng.normal(size=(n + 500, d)) / 2
    scores = hidden @ rng.normal(size=(20, q)) + rng.gumbel(size=(n + 500, q))
    Y = (scores > np.quantile(scores, 0.9, axis=0)).astype(np.int8)
    return X[:n], Y[:n], X[n:], Y[n:]


def budget_table(found: Measurements, kind: str) -> str:
    """Return the memory and the metrics of the fits of a kind."""
    header = ["rows x features x labels", "kernels", "announced", "measured"]
    header += ["average precision", "log loss"]
    lines = []
    for own in measured(found, kind):
        shape = " x ".join(f"{own[key]:,.0f}" for key in ("rows", "features", "labels"))
        kernels = f"{own['landmarks']:,.0f} landmarks" if own["landmarks"] else "exact"
        sizes = [f"{own[f'{kind}_bytes'] / 1e6:,.0f} MB" for kind in ("announced", "measured")]
        metrics = [f"{own[key]:.4f}" for key in ("average_precision", "log_loss")]
        lines.append([shape, kernels, *sizes, *metrics])
    return table(header, lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the tables of docs/ensemble.md."""
    return {
        "ensemble-budget": budget_table(found, "budget"),
        "ensemble-memory": budget_table(found, "size"),
    }


def draw(found: Measurements, path: Path) -> None:
    """Draw the metrics against the memory."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    cases = measured(found, "budget")
    sizes = [case["announced_bytes"] / 1e6 for case in cases]
    names = [f"{case['landmarks']:,.0f}" if case["landmarks"] else "exact" for case in cases]
    for axes, key in zip(figure.subplots(1, 2), ("average_precision", "log_loss"), strict=True):
        values = [case[key] for case in cases]
        axes.plot(sizes, values, marker="o")
        for size, value, name in zip(sizes, values, names, strict=True):
            axes.annotate(name, (size, value), (4, 6), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlabel="memory, MB", ylabel=key.replace("_", " "))
        axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        axes.minorticks_off()
        axes.margins(x=0.15, y=0.15)
        axes.grid(alpha=0.3)
    figure.suptitle("Numbers at the points are those of landmarks", fontsize=10)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Read the command line and measure what was asked for."""
    parser = _measured.make_parser(__doc__, "ensemble_budget")
    parser.add_argument("--file", help="a data set of which rows are fitted with several budgets")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument(
        "--budgets", type=float, nargs="+", default=BUDGETS, help="megabytes; 0 is no limit"
    )
    parser.add_argument("--sizes", action="store_true", help="fit made-up rows of several sizes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", type=Path, help="draw the measurements of --csv, measure none")
    options = parser.parse_args()
    found = Measurements.read(options.csv) if options.csv else Measurements()
    if options.picture:
        draw(found, options.picture)
        return
    fits: list[tuple[str, Callable[[], tuple[Any, ...]], dict[str, Any]]] = []
    if options.file:
        data = read(options.file)
        train, test = train_test_split(
            np.arange(data.n_rows), train_size=options.rows, test_size=N_TEST, random_state=SEED
        )
        parts = data.X[train], data.Y[train], data.X[test], data.Y[test]
        for budget in options.budgets:
            limit = {"max_memory": 1e6 * budget} if budget else {}
            name = f"budget: {budget:g} MB" if budget else "budget: no limit"
            fits.append((name, lambda: parts, limit))
    if options.sizes:
        for size in SIZES:
            name = f"size: {' x '.join(map(str, size))}"
            fits.append((name, lambda size=size: make(*size), {"views": ("standard",)}))
    for name, data_of, limit in fits:
        measure(found, name, data_of, limit, options.threads)
        found.save(options.csv)


if __name__ == "__main__":
    main()
