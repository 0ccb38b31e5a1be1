"""Promises of thresholds: how often they are kept, and how many labels are predicted for that.

    python -m imcc_paper.guarantees                 adds what is missing to results/guarantees.csv
    python -m imcc_paper.guarantees --with-mapie    also MAPIE, where it is installed

A third of the rows of a data set trains a calibrated IMCC, and the others are the population, whose
recall and precision at a threshold are known.  500 rows drawn from it choose the thresholds, 200
times:

* *plug-in*: the threshold that keeps the promise on these rows (for a recall the highest one, for a
  precision the lowest one);
* *guaranteed*: :func:`imcc.estimators.guarantee_thresholds` with a confidence of 90 %;
* *known*: the best threshold for the population, which nobody knows;
* *MAPIE*: ``MultiLabelClassificationController`` with the same confidence, RCPS with the bound of
  Waudby-Smith and Ramdas for recalls and LTT for precisions.  It promises the mean over rows of the
  recall (precision) of a row, with one threshold; its promise is judged by that, 40 times.

A promise is kept if the recall or precision in the population is at least the promised one.  If no
threshold can promise it, a label is always predicted (recall) or never (precision): this keeps it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from imcc import IMCCClassifier
from imcc.datasets import load_dataset
from imcc.estimators import MultilabelCalibrator, NoGuaranteeWarning, guarantee_thresholds
from imcc_paper._measured import table
from imcc_paper._rows import add_rows, read_rows
from imcc_paper.places import RESULTS

FILE = RESULTS / "guarantees.csv"
DATA = ("scene", "yeast", "enron")
PROMISES = (("recall", 0.9), ("precision", 0.8), ("precision", 0.9))
CONFIDENCE = 0.9
N_ROWS = 500
# MAPIE takes more than a second for one calibration.
N_TIMES = {"plug-in": 200, "guaranteed": 200, "known": 1, "MAPIE": 40}
COLUMNS = (
    *("data", "promise", "level", "per", "method"),
    *("kept", "reached", "predicted_per_row", "no_promise"),
)


def population(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and probabilities of rows that the model was not trained on."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(data.n_rows)
    train, rest = np.split(order, [data.n_rows // 3])
    model = MultilabelCalibrator(IMCCClassifier(32, beta=0.1, random_state=0))
    model.fit(data.X[train], data.Y[train])
    return np.asarray(data.Y[rest]) > 0, model.predict_proba(data.X[rest])


def reached(truth: np.ndarray, predicted: np.ndarray, kind: str, per: str) -> np.ndarray:
    """Return the recall or precision of each label or of all of them; 1 where there is none."""
    axis = {"label": 0, "row": 1, "overall": None}[per]
    right = (truth & predicted).sum(axis=axis)
    of = (truth if kind == "recall" else predicted).sum(axis=axis)
    return np.where(of > 0, right / np.maximum(of, 1), 1.0)


def plug_in(truth: np.ndarray, scores: np.ndarray, level: float, kind: str, per: str) -> np.ndarray:
    """Return the thresholds that reach a level on the rows themselves."""
    if per == "label":
        columns = [slice(j, j + 1) for j in range(truth.shape[1])]
        every = [plug_in(truth[:, j], scores[:, j], level, kind, "overall") for j in columns]
        return np.concatenate(every)
    order = np.argsort(-scores, axis=None)
    falling = scores.ravel()[order]
    right = np.cumsum(truth.ravel()[order])
    last = np.append(falling[:-1] > falling[1:], True)  # tied scores are predicted together
    value = right / (max(right[-1], 1) if kind == "recall" else np.arange(1, len(right) + 1))
    good = np.flatnonzero(last & (value >= level))
    if not len(good):
        return np.full(truth.shape[1], -np.inf if kind == "recall" else np.inf)
    return np.full(truth.shape[1], falling[good[0 if kind == "recall" else -1]])


def guaranteed(
    truth: np.ndarray, scores: np.ndarray, level: float, kind: str, per: str
) -> np.ndarray:
    """Return the thresholds of imcc."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoGuaranteeWarning)
        return guarantee_thresholds(truth, scores, **{kind: level}, per=per, confidence=CONFIDENCE)


def mapie(truth: np.ndarray, scores: np.ndarray, level: float, kind: str, per: str) -> np.ndarray:
    """Return the threshold of MAPIE."""
    from mapie.risk_control import MultiLabelClassificationController

    assert per == "row"
    more = {"rcps_bound": "wsr"} if kind == "recall" else {}
    controller = MultiLabelClassificationController(
        lambda rows: rows,
        risk=kind,
        method="rcps" if kind == "recall" else "ltt",
        target_level=level,
        confidence_level=CONFIDENCE,
        random_state=0,
        **more,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A row without labels has no recall.
        some = truth.any(axis=1) if kind == "recall" else np.ones(len(truth), dtype=bool)
        controller.calibrate(scores[some], truth[some].astype(int))
    best = np.ravel(np.asarray(controller.best_predict_param, dtype=object))
    found = best[0] if len(best) and best[0] is not None else np.nan
    nothing = -np.inf if kind == "recall" else np.inf
    # It predicts what is above its threshold.
    chosen = nothing if np.isnan(float(found)) else np.nextafter(float(found), np.inf)
    return np.full(truth.shape[1], chosen)


CHOOSE: dict[str, Callable[..., np.ndarray]] = {
    "plug-in": plug_in,
    "guaranteed": guaranteed,
    "known": plug_in,
    "MAPIE": mapie,
}


def measure(
    truth: np.ndarray, scores: np.ndarray, kind: str, level: float, per: str, method: str
) -> np.ndarray:
    """Return the means of :func:`outcome` over the calibrations."""
    found = []
    for seed in range(N_TIMES[method]):
        rows = np.random.default_rng(seed).integers(0, len(truth), N_ROWS)
        rows = np.arange(len(truth)) if method == "known" else rows
        thresholds = CHOOSE[method](truth[rows], scores[rows], level, kind, per)
        found.append(outcome(truth, scores, thresholds, level, kind, per))
    return np.mean(found, axis=0)


def wanted(with_mapie: bool) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the rows, in the order of the file."""
    for name in DATA:
        for kind, level in PROMISES:
            for per in ("label", "overall"):
                for method in ("plug-in", "guaranteed", "known"):
                    yield name, kind, str(level), per, method
            if with_mapie:
                yield name, kind, str(level), "row", "MAPIE"


def compute(with_mapie: bool) -> None:
    """Add the rows that are missing to the file."""
    there = {tuple(row[name] for name in COLUMNS[:5]) for row in stored_rows()}
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for key in wanted(with_mapie):
        if key in there:
            continue
        name, kind, level, per, method = key
        drawn[name] = drawn.get(name) or population(name)
        means = measure(*drawn[name], kind, float(level), per, method)
        figures = [round(float(value), 4) for value in means]
        add_rows(FILE, COLUMNS, [dict(zip(COLUMNS, (*key, *figures), strict=True))])


def outcome(
    truth: np.ndarray, scores: np.ndarray, thresholds: np.ndarray, level: float, kind: str, per: str
) -> list[float]:
    """Return whether a promise is kept, what is reached, the labels per row, and where is none."""
    predicted = scores >= thresholds
    values = reached(truth, predicted, kind, per)
    if per == "row":
        values = values[truth.any(axis=1)].mean() if kind == "recall" else values.mean()
    return [
        float(np.mean(values >= level)),
        float(np.mean(values)),
        float(predicted.sum(axis=1).mean()),
        float(np.mean(~np.isfinite(thresholds))),
    ]


def stored_rows() -> list[dict[str, Any]]:
    """Return the rows of the file."""
    return read_rows(FILE, ("data", "promise", "level", "per", "method"))


def page_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/rare_labels.md."""
    found = {tuple(row[name] for name in COLUMNS[:5]): row for row in rows}
    lines = []
    for key, row in found.items():
        if row["method"] != "guaranteed":
            continue
        plain, best = found[*key[:4], "plug-in"], found[*key[:4], "known"]
        per = "each label" if row["per"] == "label" else "overall"
        cells = [f"{of['kept']:.1%}" for of in (row, plain)]
        cells += [f"{of['predicted_per_row']:.2f}" for of in (row, plain, best)]
        promise = f"{row['promise']} {row['level']}, {per}"
        lines.append([row["data"], promise, *cells, f"{row['no_promise']:.0%}"])
    header = ["data set", "promise", "kept: guaranteed", "plug-in", "labels per row: guaranteed"]
    return table([*header, "plug-in", "best, if known", "no promise"], lines, n_left=2)


def mapie_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table that compares one threshold for all labels with MAPIE's."""
    found = {tuple(row[name] for name in COLUMNS[:5]): row for row in rows}
    lines = []
    for key, row in found.items():
        if row["method"] != "MAPIE":
            continue
        pair = found[*key[:3], "overall", "guaranteed"], row
        cells = [f"{of['kept']:.1%}" for of in pair]
        cells += [f"{of['predicted_per_row']:.2f}" for of in pair]
        cells += [f"{of['no_promise']:.0%}" for of in pair]
        lines.append([row["data"], f"{row['promise']} {row['level']}", *cells])
    header = ["data set", "promise", "kept: imcc", "MAPIE", "labels per row: imcc", "MAPIE"]
    return table([*header, "no promise: imcc", "MAPIE"], lines, n_left=2)


def blocks() -> dict[str, str]:
    """Return the marked blocks of docs/rare_labels.md."""
    rows = stored_rows()
    return {"guarantees": page_table(rows), "guarantees-mapie": mapie_table(rows)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and add the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with-mapie", action="store_true", help="compare with MAPIE")
    compute(parser.parse_args(arguments).with_mapie)


if __name__ == "__main__":
    main()
