"""``imcc evaluate``: a model evaluated on rows whose labels are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc.cli._choices import CALIBRATIONS
from imcc.cli._inputs import load_matching, open_saved
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
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:
    from imcc.inspection import Diagnostics


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
    "--draw-calibration", metavar="FILE", help="Draw what the scores are worth as probabilities."
)
@click.option(
    "--calibration",
    type=click.Choice(CALIBRATIONS),
    default="linear",
    show_default=True,
    help="How scores become probabilities for that: (score + 1) / 2, or a map learned from the "
    "other rows.",
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
    calibration: str,
    ignore_extra: bool,
    trust: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Evaluate a model on rows whose labels are known.

    Gives the five metrics of the paper, and for every label its precision, recall, F1, AUC and the
    F1 that another threshold would give.  Columns of features and labels are matched by name.
    """
    import numpy as np

    from imcc import inspection
    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with
    from imcc.calibration import label_scores
    from imcc.metrics import evaluate as evaluate_metrics

    with problems_reported():
        model, card = open_saved(model_file, trust)
        if getattr(model, "target_kind_", "multilabel") != "multilabel":
            raise InvalidArgumentError(
                "model", "predicts one class per row, and has no labels to evaluate"
            )
        X, Y = load_matching(
            inputs, reading, card, with_labels=True, ignore_extra=ignore_extra, model=model
        )
        names = card.label_names
        scores = label_scores(model, X, len(names))
        tuned = first_with(model, "thresholds_")
        limits = np.zeros(len(names)) if tuned is None else np.asarray(tuned.thresholds_)
        metrics = evaluate_metrics(Y, scores)
        # The ranking metrics are of the scores; this one is of the decisions.
        metrics["hamming_loss"] = evaluate_metrics(Y, scores - limits, ["hamming_loss"])[
            "hamming_loss"
        ]
        found = inspection.diagnose(Y, scores, thresholds=limits, label_names=names)
        order = np.argsort([-label.support for label in found.labels], kind="stable")
        chances = inspection.probabilities(scores, Y, method=calibration)
        records = inspection.reliability(Y, chances, label_names=names)
        if draw is not None:
            curves = inspection.threshold_curve(Y, scores, label_names=names, max_points=400)
            inspection.draw_threshold_curves(
                [curves[j] for j in order], draw, thresholds=limits[order].tolist()
            )
        if draw_calibration is not None:
            inspection.draw_reliability([records[j] for j in order], draw_calibration)
    if as_json:
        about = found.to_dict()
        for label, record in zip(about["labels"], records, strict=True):
            label["calibration"] = record.to_dict()
        print_json({"model": model_file, "metrics": to_plain(metrics), **about})
    else:
        _print(metrics, found, [int(j) for j in order[:top]])
    for file in (draw, draw_calibration):
        if file is not None and not quiet:
            say(f"Drew {file}", err=True)


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
