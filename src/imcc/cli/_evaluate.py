"""``imcc evaluate``: a model evaluated on rows whose labels are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc.cli._choices import CALIBRATIONS
from imcc.cli._inputs import load_matching, open_saved, refuse_classes
from imcc.cli._options import (
    IGNORE,
    INPUTS,
    JSON,
    MODEL,
    QUIET,
    TRUST,
    examples,
    reading_options,
)
from imcc.cli._terminal import print_json, print_table, print_wide_table, problems_reported, say

# The attributes of CalibrationDiagnostics, in words.
MEASURES = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imcc.inspection import CalibrationDiagnostics, Diagnostics


@click.command(
    epilog=examples(
        "imcc evaluate model.skops test.arff",
        "imcc evaluate model.skops test.csv --draw curves.png --draw-calibration reliability.png",
        "imcc evaluate model.skops yeast --json",
    )
)
@MODEL
@INPUTS
@reading_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="How many labels to list, the most frequent first.",
)
@click.option(
    "--draw",
    metavar="FILE",
    help="Draw precision, recall and F1 against the threshold (PNG, SVG or PDF).",
)
@click.option(
    "--draw-calibration",
    metavar="FILE",
    help="Draw how well calibrated the probabilities are, or the scores as probabilities; for a "
    "calibrated model, before and after.",
)
@click.option(
    "--calibration",
    type=click.Choice(CALIBRATIONS),
    help="How scores become probabilities for that: (score + 1) / 2, or a map learned from the "
    "other rows.  [default: the model's own probabilities, or else what its scores mean]",
)
@IGNORE
@TRUST
@QUIET
@JSON
def evaluate(
    model_file: str,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    top: int,
    draw: str | None,
    draw_calibration: str | None,
    calibration: str | None,
    ignore_extra: bool,
    trust: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Evaluate a model on rows whose labels are known.

    Gives the five metrics of the paper, and for every label its precision, recall, F1, AUC and the
    F1 that another threshold would give.  For a model with probabilities also their log loss, Brier
    score and calibration error, with intervals of 95 % (bootstrap over rows).  Columns of features
    and labels are matched by name.
    """
    import numpy as np

    from imcc import inspection
    from imcc._utils.plain import to_plain
    from imcc.calibration import decision_thresholds, label_scores
    from imcc.metrics import evaluate as evaluate_metrics

    with problems_reported():
        model, card = open_saved(model_file, trust)
        refuse_classes(model, "evaluate")
        X, Y = load_matching(
            inputs, reading, card, with_labels=True, ignore_extra=ignore_extra, model=model
        )
        names = card.label_names
        scores = label_scores(model, X, len(names))
        limits = decision_thresholds(model, len(names))
        metrics = evaluate_metrics(Y, scores)
        # The ranking metrics are of the scores; this one is of the decisions.
        metrics["hamming_loss"] = evaluate_metrics(Y, scores - limits, ["hamming_loss"])[
            "hamming_loss"
        ]
        found = inspection.diagnose(Y, scores, thresholds=limits, label_names=names)
        order = np.argsort([-label.support for label in found.labels], kind="stable")
        judged = judge_probabilities(model, X, Y, names)
        chances = _chances(model, X, Y, scores, calibration)
        records = inspection.reliability(Y, chances, label_names=names)
        if draw is not None:
            curves = inspection.threshold_curve(Y, scores, label_names=names, max_points=400)
            inspection.draw_threshold_curves(
                [curves[j] for j in order], draw, thresholds=limits[order].tolist()
            )
        if draw_calibration is not None and judged is not None and calibration is None:
            inspection.draw_calibration(judged, draw_calibration)
        elif draw_calibration is not None:
            inspection.draw_reliability([records[j] for j in order], draw_calibration)
    if as_json:
        about = found.to_dict()
        for label, record in zip(about["labels"], records, strict=True):
            label["calibration"] = record.to_dict()
        if judged is not None:
            about["probabilities"] = judged.to_dict()
        print_json({"model": model_file, "metrics": to_plain(metrics), **about})
    else:
        shown = [int(j) for j in order[:top]]
        _print(metrics, found, shown)
        if judged is not None:
            print_probabilities(judged, shown)
    for file in (draw, draw_calibration):
        if file is not None and not quiet:
            say(f"Drew {file}", err=True)


def judge_probabilities(
    model: Any, X: Any, Y: Any, names: Sequence[str]
) -> CalibrationDiagnostics | None:
    """Judge the probabilities of a model, and those before calibration; None if it has none."""
    from imcc import inspection
    from imcc.calibration import label_probabilities

    if not hasattr(model, "predict_proba"):
        return None
    return inspection.diagnose_probabilities(
        Y,
        label_probabilities(model, X, len(names)),
        before=inspection.probabilities_before_calibration(model, X, len(names)),
        label_names=names,
    )


def _chances(model: Any, X: Any, Y: Any, scores: Any, method: str | None) -> Any:
    """Return the probabilities to show, learned or not."""
    from imcc import inspection

    if method == "linear" and hasattr(model, "predict_proba"):
        raise InvalidArgumentError(
            "calibration",
            "linear is for least-squares scores, and this model has probabilities of its own: "
            "leave it out",
        )
    if method is not None:
        return inspection.probabilities(scores, Y, method=method)
    meant = inspection.score_probabilities(model, X, scores.shape[1])
    return inspection.probabilities(scores) if meant is None else meant


def print_probabilities(found: CalibrationDiagnostics, shown: list[int]) -> None:
    """Print how good probabilities are: means over labels, and some labels."""
    before = found.before
    columns = [("mean over labels", "left"), ("value", "right")]
    rows = [[words, str(getattr(found, name))] for name, words in MEASURES.items()]
    rows.append(["calibration error by chance", f"{found.error_by_chance:.3f}"])
    if before is not None:
        columns.append(("before calibration", "right"))
        for row, name in zip(rows, MEASURES, strict=False):
            row.append(str(getattr(before, name)))
        rows[-1].append(f"{before.error_by_chance:.3f}")
    title = f"Probabilities, with intervals of {found.confidence:.0%}; lower is better"
    print_table(title, columns, rows)
    if not shown:
        return
    columns = [("label", "left"), ("rows", "right")]
    for words in MEASURES.values():
        columns.append((words, "right"))
        if before is not None:
            columns.append(("before", "right"))
    cells: list[list[Any]] = []
    for j in shown:
        label = found.labels[j]
        line: list[Any] = [label.label, label.support]
        for name in MEASURES:
            line.append(str(getattr(label, name)))
            if before is not None:
                line.append(f"{getattr(before.labels[j], name).value:.3f}")
        cells.append(line)
    print_wide_table("Probabilities of the labels", columns, cells)


def _print(metrics: dict[str, float], found: Diagnostics, shown: list[int]) -> None:
    from imcc.metrics import METRICS

    rows: list[tuple[Any, ...]] = [
        (name, "higher" if METRICS[name].greater_is_better else "lower", _number(value))
        for name, value in metrics.items()
    ]
    rows += [
        ("macro F1", "higher", _number(found.macro_f1)),
        ("macro F1 of the labels present", "higher", _number(found.macro_f1_present)),
        ("micro F1", "higher", _number(found.micro_f1)),
        ("macro AUC", "higher", _number(found.macro_auc)),
    ]
    columns = [("metric", "left"), ("better", "left"), ("value", "right")]
    print_table(f"{found.n_rows:,} rows", columns, rows)
    if not shown:
        return
    headings = [
        ("label", "left"),
        ("rows", "right"),
        ("precision", "right"),
        ("recall", "right"),
        ("F1", "right"),
        ("AUC", "right"),
        ("threshold", "right"),
        ("best F1", "right"),
        ("at", "right"),
    ]
    labels = [found.labels[j] for j in shown]
    title = f"{len(labels)} of {len(found.labels)} labels, the most frequent first"
    print_table(
        title if len(labels) < len(found.labels) else "The labels",
        headings,
        [
            (
                label.label,
                label.support,
                *(_number(v) for v in (label.precision, label.recall, label.f1, label.auc)),
                _number(label.threshold),
                _number(label.best_f1),
                _number(label.best_threshold),
            )
            for label in labels
        ],
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
