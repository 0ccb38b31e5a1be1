"""Probabilities before and after calibration, and the ensemble's, on the paper's data sets.

    python -m imcc_paper.calibration -o results/calibration.csv --jobs 16    what is missing there
    python -m imcc_paper.calibration -o rows.csv --data cal500 yeast --splits 1

Each method is fitted once on the training rows of a split (80 %,
:func:`imcc.datasets.paper_splits`) inside a :class:`imcc.estimators.MultilabelCalibrator` with
five shuffled folds (three, and 10 settings of LLSF instead of 40, for more than 100 labels, which
make a fold expensive).  *Before* are the scores of the model inside, *after* the calibrated
log-odds, both of the same test rows.  IMCC and kernel ridge are searches, which calibrate the
chosen setting from the held-out scores of the search (``calibrate=True``).  The ensemble calibrates
itself: it has a row *after* only.  bibtex and corel5k, with 159 and 374 labels, are left out unless
they are named: several fits of one booster per label take long there.

Probabilities before calibration, for log loss, Brier score and calibration error, are what the
scores mean (:func:`imcc.inspection.score_probabilities`):

* IMCC (the search of the paper) and kernel ridge are least-squares fits of -1 and +1:
  (score + 1) / 2, clipped to [0, 1];
* LLSF is one of 0 and 1, extra-trees give shares of votes, both with 1/2 taken off: score + 1/2,
  clipped to [0, 1];
* BRsvm and LIFT give the log-odds of Platt's sigmoid, which is a calibration already, and logistic
  regression and LightGBM log-odds of their own: 1 / (1 + exp(-score)).

In the log loss, probabilities count as at least 1e-7 away from 0 and 1.

A finished run is added to the file at once; what is in the file is not run again, so a stopped
program goes on where it was.  Runs are processes of one thread each.
The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV, KernelEnsembleClassifier
from imcc.baselines import (
    LIFT,
    LLSFCV,
    BinaryRelevanceSVM,
    KernelRidgeBaseline,
)
from imcc.datasets import dataset_info, list_datasets, load_dataset, paper_splits
from imcc.estimators import MultilabelCalibrator, label_scores
from imcc.inspection import diagnose_probabilities, score_probabilities
from imcc.metrics import METRICS, evaluate
from imcc_paper import _rows
from imcc_paper._measured import table
from imcc_paper.methods import (
    ExtraTreesBaseline,
    LightGBMBaseline,
    LogisticRegressionBaseline,
)
from imcc_paper.places import RESULTS

CALIBRATION = RESULTS / "calibration.csv"
MODELS: dict[str, Any] = {
    "ensemble": KernelEnsembleClassifier(),
    "logistic regression": LogisticRegressionBaseline(),
    "LightGBM": LightGBMBaseline(),
    "IMCC": IMCCClassifierCV(grid="paper"),
    "kernel ridge": KernelRidgeBaseline(),
    "BRsvm": BinaryRelevanceSVM(),
    "LIFT": LIFT(),
    "LLSF": LLSFCV(budget=40, halving=True, max_iter=100),
    "extra-trees": ExtraTreesBaseline(n_estimators=100),  # a third of the default, to save time
}
#: Above, fewer folds and settings, to save time.
MANY_LABELS = 100
ON_DEVICE = ("IMCC", "kernel ridge")
#: The ensemble and what it is compared with; they get sparse features as they are.
BESIDE = ("ensemble", "logistic regression", "LightGBM")
#: The others.
OTHERS = tuple(name for name in MODELS if name not in BESIDE)
#: Left out unless they are named.
LARGE = ("bibtex", "corel5k")
PROBABILITY_MEASURES = ("log_loss", "brier", "calibration_error")
MEASURES = (*PROBABILITY_MEASURES, *METRICS)
STAGES = ("before", "after")
COLUMNS = ("data", "split", "method", "stage", "seconds", *MEASURES)


def stages(method: str) -> tuple[str, ...]:
    """Return the stages that a method has rows of."""
    return ("after",) if method == "ensemble" else STAGES


class Run(NamedTuple):
    """One method on one split of one data set."""

    data: str
    split: int
    method: str


def seeded(model: Any, seed: int, device: str | None = None) -> Any:
    """Return a model with its seed, with shuffled folds if it is a search, and its device."""
    chosen = {"random_state": seed, "device": device}
    if isinstance(model, IMCCClassifierCV | KernelRidgeBaseline | LLSFCV):
        chosen["cv"] = KFold(5, shuffle=True, random_state=seed)
    own = model.get_params()
    return clone(model).set_params(**{k: v for k, v in chosen.items() if k in own})


def measure(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Return the measures before and after calibration, as rows of the file."""
    data = load_dataset(run.data)
    X, Y = data.X, data.Y
    if run.method not in BESIDE:
        X = np.ascontiguousarray(X.toarray() if data.is_sparse else X, dtype=np.float64)
    train, test = paper_splits(data, run.split + 1)[run.split]
    many = Y.shape[1] > MANY_LABELS
    folds = KFold(3 if many else 5, shuffle=True, random_state=run.split)
    inner = seeded(MODELS[run.method], run.split, device)
    if many and run.method == "LLSF":
        inner.set_params(budget=10)
    # The two exact searches have the scores of held-out rows anyway, and so has the ensemble.
    own = run.method in ON_DEVICE
    if run.method == "ensemble":
        model = inner
    else:
        model = inner.set_params(calibrate=True) if own else MultilabelCalibrator(inner, cv=folds)
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        # Iterations are limited on purpose, rare labels make clusters of few rows, and the grids
        # are the paper's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="the best setting is at the edge of the grid")
        model.fit(X[train], Y[train])
        seconds = time.perf_counter() - start
        n_labels = Y.shape[1]
        found = {"after": (model.decision_function(X[test]), model.predict_proba(X[test]))}
        if "before" in stages(run.method):
            inner = model.best_estimator_ if own else model.estimator_
            found["before"] = (
                label_scores(inner, X[test], n_labels),
                score_probabilities(inner, X[test], n_labels),
            )
    rows = []
    for stage in stages(run.method):
        scores, chances = found[stage]
        judged = diagnose_probabilities(Y[test], chances, n_resamples=1)
        values = {name: getattr(judged, name).value for name in PROBABILITY_MEASURES}
        values |= evaluate(Y[test], np.asarray(scores))
        rows.append({**run._asdict(), "stage": stage, "seconds": round(seconds, 2), **values})
    return rows


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, ("data", "method", "stage"), ("split",))


def finished(rows: Iterable[dict[str, Any]]) -> set[Run]:
    """Return the runs that have all of their rows."""

    def run_of(row: dict[str, Any]) -> Run:
        return Run(row["data"], row["split"], row["method"])

    return _rows.finished(rows, run_of, "stage", lambda run: stages(run.method))


def _in_words(rows: Sequence[dict[str, Any]]) -> str:
    losses = " -> ".join(f"{row['log_loss']:.4f}" for row in rows)
    return f"log loss {losses} in {rows[0]['seconds']:.0f} s"


#: What the page shows.
SHOWN = (*PROBABILITY_MEASURES, "ranking_loss", "average_precision")


def page_table(rows: Sequence[dict[str, Any]], wanted: Iterable[str]) -> str:
    """Return what docs/probabilities.md shows of methods: means over data sets, before -> after.

    Only runs that all of these methods have are averaged, first over the splits of a data set.
    """
    whole = finished(rows)
    methods = [method for method in wanted if any(run.method == method for run in whole)]
    if not methods:
        return "No finished runs."
    shared = set.intersection(
        *({(run.data, run.split) for run in whole if run.method == method} for method in methods)
    )
    names = [name for name in list_datasets("all") if name in {data for data, _ in shared}]
    values: dict[tuple[str, str, str], list[list[float]]] = {}
    for row in rows:
        if (row["data"], row["split"]) in shared:
            key = row["method"], row["stage"], row["data"]
            values.setdefault(key, []).append([row[name] for name in SHOWN])
    lines = []
    for method in methods:
        each = [
            np.mean([np.mean(values[method, stage, data], axis=0) for data in names], axis=0)
            for stage in stages(method)
        ]
        cells = [" -> ".join(f"{mean[k]:.4f}" for mean in each) for k in range(len(SHOWN))]
        lines.append([method, *cells])
    return (
        f"Means over {len(names)} data sets ({', '.join(names)}; {len(shared)} splits in all).\n\n"
        + table(["method", *(name.replace("_", " ") for name in SHOWN)], lines)
    )


def blocks() -> dict[str, str]:
    """Return the marked blocks of docs/probabilities.md."""
    rows = stored_rows(CALIBRATION)
    return {"calibration": page_table(rows, OTHERS), "probabilities": page_table(rows, BESIDE)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", help="data sets (thirteen of the paper's)")
    parser.add_argument("--methods", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument("--device", help="where IMCC and kernel ridge are computed: cuda")
    asked = parser.parse_args(arguments)
    done = finished(stored_rows(asked.output))
    runs = [
        run
        for data in asked.data or [d for d in list_datasets("paper") if d not in LARGE]
        for split in range(asked.splits)
        for method in asked.methods
        if (run := Run(data, split, method)) not in done
    ]
    failures = _rows.run_all(
        partial(measure, device=asked.device),
        # The longest first, so that none of them is left over at the end.
        sorted(runs, key=lambda run: -dataset_info(run.data).n_rows),
        lambda rows: _rows.add_rows(asked.output, COLUMNS, rows),
        jobs=asked.jobs,
        name=lambda run: f"{run.method} on {run.data}, split {run.split}",
        outcome=_in_words,
    )
    return min(failures, 1)


if __name__ == "__main__":
    raise SystemExit(main())
