"""What the stages of the ensemble bring: fits without one of them, on development splits.

    python -m imcc_paper.ablation --jobs 16 --csv results/ablation.csv     adds what is missing

Splits of seeds 2000 and 2001 of the paper's data sets, which no experiment reports.  The views and
the trees are parameters of the classifier.  The other stages are not, so here, and only here,
private names of imcc are replaced.  Without neighbouring penalties there are no coupled labels,
which are mixed from them.  docs/ensemble.md shows the means; several fits ran at a time, with one
thread each.
"""

from __future__ import annotations

import argparse
import math
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy.stats import t, wilcoxon
from threadpoolctl import threadpool_limits

from imcc import KernelEnsembleClassifier
from imcc.datasets import list_datasets, load_dataset, paper_splits
from imcc.metrics import evaluate, log_loss
from imcc_paper import _rows
from imcc_paper._measured import table
from imcc_paper.places import RESULTS
from imcc_paper.rivals.fitting import is_mostly_zero

CSV = RESULTS / "ablation.csv"
SEEDS = (2000, 2001)
WHOLE = "everything"
TREES = "trees"
_SEARCH = "imcc._math.ensemble.search."
#: What is replaced for each variant.
PATCHES: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "coupled labels": {_SEARCH + "COUPLINGS": ()},
    "neighbouring penalties": {_SEARCH + "_Search._several": lambda _self, _place: False},
    "laplacian kernel": {_SEARCH + "KERNELS": ("rbf",)},
    TREES: {},
}
VIEWS = {True: ("raw", "tfidf"), False: ("standard", "ranks", "root")}
#: Data sets that take long, on which only trees are left out; they come first.
LONG = ("bibtex", "corel5k")
COLUMNS = (
    *("data", "split", "without", "average_precision", "log_loss", "ranking_loss", "one_error"),
    "cpu_seconds",
)


class Run(NamedTuple):
    """A fit."""

    data: str
    split: int
    without: str


def runs_of(name: str) -> list[Run]:
    """Return the runs of a data set."""
    if name in LONG:
        variants = [WHOLE, TREES]
    else:
        views = VIEWS[is_mostly_zero(load_dataset(name).X)]
        variants = [*PATCHES, *(f"view {view}" for view in views)]
    return [Run(name, seed, without) for seed in SEEDS for without in variants]


def measure(run: Run) -> list[dict[str, Any]]:
    """Fit without a stage, and judge on the test rows of the split."""
    data = load_dataset(run.data)
    train, test = paper_splits(data, 1, seed=run.split)[0]
    model = KernelEnsembleClassifier(
        trees=run.without != TREES, random_state=run.split, keep_held_out=False
    )
    if run.without.startswith("view "):
        views = VIEWS[is_mostly_zero(data.X)]
        model.set_params(views=[view for view in views if f"view {view}" != run.without])
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        for name, value in PATCHES.get(run.without, {}).items():
            stack.enter_context(mock.patch(name, value))
        start = time.process_time()
        model.fit(data.X[train], data.Y[train])
        seconds = time.process_time() - start
    found, on = model.predict_proba(data.X[test]), np.asarray(data.Y[test])
    values = evaluate(on, found, ("average_precision", "ranking_loss", "one_error"))
    row = {**run._asdict(), **values, "log_loss": log_loss(on, found), "cpu_seconds": seconds}
    return [{name: row[name] for name in COLUMNS}]


def stored_rows(path: Path = CSV) -> list[dict[str, Any]]:
    """Return the rows of the file."""
    return _rows.read_rows(path, ("data", "without"), ("split",))


def blocks() -> dict[str, str]:
    """Return the table of docs/ensemble.md."""
    rows = {Run(row["data"], row["split"], row["without"]): row for row in stored_rows()}
    lines = []
    for variant in dict.fromkeys(run.without for run in rows if run.without != WHOLE):
        runs = [run for run in rows if run.without == variant]
        sets = sorted({run.data for run in runs})

        def gaps(name: str, runs: list[Run] = runs, sets: list[str] = sets) -> np.ndarray:
            """Return the mean of each data set over splits, of everything minus the variant."""
            of = {run: rows[run._replace(without=WHOLE)][name] - rows[run][name] for run in runs}
            return np.array([np.mean([of[r] for r in runs if r.data == data]) for data in sets])

        line = [variant, f"{len(sets)}"]
        for name, sign in (("average_precision", 1), ("log_loss", -1)):
            of = gaps(name)
            half = t.ppf(0.975, len(of) - 1) * of.std(ddof=1) / math.sqrt(len(of))
            better = int((sign * of > 0).sum())
            p = wilcoxon(of).pvalue
            line.append(f"{of.mean():+.5f} ± {half:.5f} (better on {better}; p {p:.2g})")
        with_it, without = (
            sum(rows[run._replace(without=name)]["cpu_seconds"] for run in runs)
            for name in (WHOLE, variant)
        )
        lines.append([*line, f"{100 * (1 - without / with_it):.0f} %"])
    header = ["stage", "data sets", "average precision", "log loss", "share of the time"]
    return {"ensemble-ablation": table(header, lines)}


def main() -> int:
    """Read the command line, and compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    have = {(row["data"], row["split"], row["without"]) for row in stored_rows(options.csv)}
    names = sorted(list_datasets("paper"), key=lambda name: name not in LONG)
    runs = [run for name in names for run in runs_of(name) if run not in have]
    return _rows.run_all(
        measure,
        runs,
        partial(_rows.add_rows, options.csv, COLUMNS),
        name=lambda run: f"{run.data}, split {run.split}, without {run.without}",
        outcome=lambda rows: f"{rows[0]['average_precision']:.4f}",
        jobs=options.jobs,
    )


if __name__ == "__main__":
    raise SystemExit(main())
