"""Calibration: log loss and the five metrics before and after, on the paper's fifteen data sets.

    python -m imcc_paper.calibration -o rows.csv --jobs 16             all of it
    python -m imcc_paper.calibration -o rows.csv --jobs 16 --device cuda
    python -m imcc_paper.calibration -o rows.csv --data cal500 yeast --splits 1
    python -m imcc_paper.calibration -o rows.csv --print               the tables of what is there

Each method is fitted once on the training rows of a split (80 %,
:func:`imcc.datasets.paper_splits`) inside a :class:`imcc.estimators.MultilabelCalibrator` with
five shuffled folds.  On cal500, bibtex and corel5k, whose 159 to 374 labels make a fold expensive,
there are three folds, and LLSF has 10 settings instead of 40.  *Before* are the scores of the model
inside, *after* the calibrated log-odds, both of the same test rows.  IMCC and kernel ridge are
searches, which calibrate the chosen setting from the held-out scores of the search
(``calibrate=True``).

Probabilities before calibration, for log loss, Brier score and calibration error, are what the
scores mean (:func:`imcc.inspection.score_probabilities`):

* IMCC (the search of the paper) and kernel ridge are least-squares fits of -1 and +1:
  (score + 1) / 2, clipped to [0, 1];
* LLSF is one of 0 and 1, extra-trees give shares of votes, both with 1/2 taken off: score + 1/2,
  clipped to [0, 1];
* BRsvm and LIFT give the log-odds of Platt's sigmoid, which is a calibration already:
  1 / (1 + exp(-score)).

In the log loss, probabilities count as at least 1e-7 away from 0 and 1.

A finished run is added to the file at once, as two rows (before and after); what is in the file is
not run again, so a stopped program goes on where it was.  Runs are processes of one thread each.
With ``--device``, IMCC and kernel ridge are computed there, one after the other, beside the others.
The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV
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
from imcc_paper.methods import ExtraTreesBaseline

MODELS: dict[str, Any] = {
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
PROBABILITY_MEASURES = ("log_loss", "brier", "calibration_error")
MEASURES = (*PROBABILITY_MEASURES, *METRICS)
STAGES = ("before", "after")
COLUMNS = ("data", "split", "method", "stage", "seconds", *MEASURES)


class Run(NamedTuple):
    """One method on one split of one data set."""

    data: str
    split: int
    method: str


def seeded(model: Any, seed: int, device: str | None = None) -> Any:
    """Return a model with its seed, with shuffled folds where it has folds, and its device."""
    chosen = {
        "random_state": seed,
        "cv": KFold(5, shuffle=True, random_state=seed),
        "device": device,
    }
    own = model.get_params()
    return clone(model).set_params(**{k: v for k, v in chosen.items() if k in own})


def measure(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Return the measures before and after calibration, as two rows of the file."""
    data = load_dataset(run.data)
    X = data.X.toarray() if data.is_sparse else data.X
    X, Y = np.ascontiguousarray(X, dtype=np.float64), data.Y
    train, test = paper_splits(data, run.split + 1)[run.split]
    many = Y.shape[1] > MANY_LABELS
    folds = KFold(3 if many else 5, shuffle=True, random_state=run.split)
    inner = seeded(MODELS[run.method], run.split, device)
    if many and run.method == "LLSF":
        inner.set_params(budget=10)
    # The two exact searches have the scores of held-out rows anyway.
    own = run.method in ON_DEVICE
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
        inner = model.best_estimator_ if own else model.estimator_
        found = [
            (label_scores(inner, X[test], n_labels), score_probabilities(inner, X[test], n_labels)),
            (model.decision_function(X[test]), model.predict_proba(X[test])),
        ]
    rows = []
    for stage, (scores, chances) in zip(STAGES, found, strict=True):
        judged = diagnose_probabilities(Y[test], chances, n_resamples=1)
        values = {name: getattr(judged, name).value for name in PROBABILITY_MEASURES}
        values |= evaluate(Y[test], np.asarray(scores))
        rows.append({**run._asdict(), "stage": stage, "seconds": round(seconds, 2), **values})
    return rows


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, ("data", "method", "stage"), ("split",))


def finished(rows: Iterable[dict[str, Any]]) -> set[Run]:
    """Return the runs that have both of their rows."""
    return _rows.finished(
        rows, lambda row: Run(row["data"], row["split"], row["method"]), "stage", STAGES
    )


def run_all(runs: Sequence[Run], path: Path, jobs: int, device: str | None) -> int:
    """Compute what is not in the file yet; return how many runs failed."""
    done = finished(stored_rows(path))
    # The longest first, so that none of them is left over at the end.
    left = sorted(
        (run for run in runs if run not in done), key=lambda run: -dataset_info(run.data).n_rows
    )
    there = [run for run in left if device is not None and run.method in ON_DEVICE]
    return _rows.run_all(
        measure,
        [
            _rows.Queue([run for run in left if run not in there], jobs),
            _rows.Queue(there, 1, device),
        ],
        lambda rows: _rows.add_rows(path, COLUMNS, rows),
        name=lambda run: f"{run.method} on {run.data}, split {run.split}",
        outcome=_in_words,
    )


def _in_words(rows: Sequence[dict[str, Any]]) -> str:
    before, after = rows
    return (
        f"log loss {before['log_loss']:.4f} -> {after['log_loss']:.4f}, ranking loss "
        f"{before['ranking_loss']:.4f} -> {after['ranking_loss']:.4f} in {after['seconds']:.0f} s"
    )


def mean_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the means over data sets, before and after, as Markdown."""
    lines = [
        "| | " + " | ".join(name.replace("_", " ") for name in MEASURES) + " |",
        "| --- |" + " --- |" * len(MEASURES),
    ]
    for method in MODELS:
        means = _means(rows, method)
        if not means:
            continue
        for stage in STAGES:
            values = np.mean([found[stage] for found in means.values()], axis=0)
            cells = " | ".join(f"{value:.4f}" for value in values)
            lines.append(f"| {method}, {stage} ({len(means)} sets) | {cells} |")
        change = np.mean([found["after"] - found["before"] for found in means.values()], axis=0)
        base = np.mean([found["before"] for found in means.values()], axis=0)
        part = np.divide(change, base, out=np.zeros_like(change), where=base != 0)
        cells = " | ".join(
            f"{c:+.4f} ({100 * p:+.1f} %)" for c, p in zip(change, part, strict=True)
        )
        lines.append(f"| {method}, change | {cells} |")
    return "\n".join(lines)


def page_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/probabilities.md: means over data sets, before -> after."""
    names = ("log_loss", "calibration_error", *METRICS)
    lines = [
        "| method | data sets x splits | " + " | ".join(n.replace("_", " ") for n in names) + " |",
        "| --- | ---: |" + " ---: |" * len(names),
    ]
    whole = finished(rows)
    for method in MODELS:
        means = _means(rows, method)
        if not means:
            continue
        runs = [sum(run[0] == data and run[2] == method for run in whole) for data in means]
        counts = f"{len(means)} x {runs[0]}" if len(set(runs)) == 1 else f"{sum(runs)} runs"
        before, after = (
            np.mean([found[stage] for found in means.values()], axis=0) for stage in STAGES
        )
        cells = [
            f"{before[k]:.4f} -> {after[k]:.4f}" for k in (MEASURES.index(name) for name in names)
        ]
        lines.append(f"| {method} | {counts} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def data_table(rows: Sequence[dict[str, Any]], measure_name: str) -> str:
    """Return one measure of all data sets and methods, before and after, as Markdown."""
    k = MEASURES.index(measure_name)
    found = {method: _means(rows, method) for method in MODELS}
    names = [name for name in list_datasets("all") if any(name in f for f in found.values())]
    lines = [
        f"| {measure_name.replace('_', ' ')} | " + " | ".join(MODELS) + " |",
        "| --- |" + " --- |" * len(MODELS),
    ]
    for name in names:
        cells = [
            f"{means[name]['before'][k]:.4f} -> {means[name]['after'][k]:.4f}"
            if name in means
            else "not run"
            for means in found.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _means(rows: Sequence[dict[str, Any]], method: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the means over splits of each data set, {data: {stage: measures}}."""
    whole = finished(rows)
    gathered: dict[str, dict[str, list[list[float]]]] = {}
    for row in rows:
        if row["method"] == method and Run(row["data"], row["split"], method) in whole:
            stages = gathered.setdefault(row["data"], {})
            stages.setdefault(row["stage"], []).append([row[name] for name in MEASURES])
    return {
        data: {stage: np.mean(values, axis=0) for stage, values in stages.items()}
        for data, stages in gathered.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, compute what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", help="data sets (the paper's fifteen)")
    parser.add_argument("--methods", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument("--device", help="where IMCC and kernel ridge are computed: cuda")
    parser.add_argument("--print", action="store_true", help="compute nothing")
    parser.add_argument("--by-data", nargs="*", choices=MEASURES, help="tables of these measures")
    asked = parser.parse_args(arguments)
    failures = 0
    if not asked.print:
        runs = [
            Run(data, split, method)
            for data in asked.data or list_datasets("paper")
            for split in range(asked.splits)
            for method in asked.methods
        ]
        failures = run_all(runs, asked.output, asked.jobs, asked.device)
    rows = stored_rows(asked.output)
    print(mean_table(rows))
    for name in asked.by_data or ():
        print("\n" + data_table(rows, name))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
