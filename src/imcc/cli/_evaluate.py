"""``imcc evaluate``: evaluation of a model on rows with known labels."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import part
from imcc.cli._choices import CALIBRATIONS
from imcc.cli._inputs import fingerprint_of, load_matching, open_saved, refuse_classes
from imcc.cli._options import (
    IGNORE,
    INPUTS,
    JSON,
    MODEL,
    QUIET,
    TRUST,
    examples,
    reading_options,
    refuse_options,
)
from imcc.cli._progress import working
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
        "imcc evaluate model.skops test.csv --plot labels.png",
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
    default=15,
    show_default=True,
    help="Number of labels to list, the most frequent first.",
)
@click.option(
    "--details",
    is_flag=True,
    help="Also list precision, recall, threshold and the best possible F1 per label.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="Number of bootstrap resamples for the intervals; 0: no intervals.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option(
    "--plot",
    metavar="FILE",
    help="Plot average precision, F1, AUC and calibration error per label, with intervals (PNG, "
    "SVG or PDF).",
)
@click.option(
    "--draw",
    metavar="FILE",
    help="Plot precision, recall and F1 against the threshold (PNG, SVG or PDF).",
)
@click.option(
    "--draw-calibration",
    metavar="FILE",
    help="Plot the calibration of the probabilities, or of the scores as probabilities; for a "
    "calibrated model, before and after.",
)
@click.option(
    "--calibration",
    type=click.Choice(CALIBRATIONS),
    help="How scores are converted to probabilities for that: (score + 1) / 2, or a map fitted to "
    "the other rows.  [default: the model's own probabilities, or those its scores imply]",
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
    details: bool,
    resamples: int,
    seed: int,
    plot: str | None,
    draw: str | None,
    draw_calibration: str | None,
    calibration: str | None,
    ignore_extra: bool,
    trust: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Evaluate a model on rows with known labels.

    Shows the five metrics of the paper, and average precision, F1 and AUC per label; for a model
    with probabilities also log loss, Brier score and calibration error.  These have 95 % bootstrap
    intervals, except the five metrics.  Columns of features and labels are matched by name.
    """
    import numpy as np

    from imcc import inspection
    from imcc._utils.plain import to_plain
    from imcc.calibration import decision_thresholds, label_scores
    from imcc.metrics import evaluate as evaluate_metrics

    if not as_json and draw_calibration is None:
        refuse_options(["calibration"], "--draw-calibration and --json")
    if not resamples:
        refuse_options(["seed"], "the intervals that --resamples 0 leaves out")
    with problems_reported():
        model, card = open_saved(model_file, trust)
        refuse_classes(model, "evaluate")
        with working("reading", quiet=quiet):
            X, Y = load_matching(
                inputs, reading, card, with_labels=True, ignore_extra=ignore_extra, model=model
            )
        if card.fingerprint and fingerprint_of(X, Y, card) == card.fingerprint:
            warnings.warn(
                "these are the rows that the model was trained on: on new rows, the results will "
                "be worse",
                UserWarning,
                stacklevel=1,
            )
        names = card.label_names
        with working("evaluating: scoring rows", quiet=quiet):
            scores = label_scores(model, X, len(names))
        limits = decision_thresholds(model, len(names))
        metrics = evaluate_metrics(Y, scores)
        # The ranking metrics depend on the scores, the Hamming loss on the decisions.
        metrics["hamming_loss"] = evaluate_metrics(Y, scores - limits, ["hamming_loss"])[
            "hamming_loss"
        ]
        with working("evaluating: intervals", quiet=quiet):
            found = inspection.diagnose(
                Y,
                scores,
                thresholds=limits,
                label_names=names,
                n_resamples=resamples,
                random_state=seed,
            )
        order = np.argsort([-label.support for label in found.labels], kind="stable")
        with working("evaluating: probabilities", quiet=quiet):
            judged = judge_probabilities(model, X, Y, names, resamples, seed)
            chances = _chances(model, X, Y, scores, calibration)
        records = inspection.reliability(Y, chances, label_names=names)
        if plot is not None:
            inspection.draw_diagnostics(found, plot, calibration=judged)
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
        print_json({"model": model_file, "metrics": to_plain(metrics), "seed": seed, **about})
    else:
        shown = [int(j) for j in order[:top]]
        _print(metrics, found, shown, seed, details)
        if judged is not None:
            print_probabilities(judged, shown)
    for file in (plot, draw, draw_calibration):
        if file is not None and not quiet:
            say(f"Drew {file}", err=True)


def judge_probabilities(
    model: Any, X: Any, Y: Any, names: Sequence[str], resamples: int = 500, seed: int = 0
) -> CalibrationDiagnostics | None:
    """Evaluate a model's probabilities, and those before calibration; None if it has none."""
    from imcc import inspection
    from imcc.calibration import label_probabilities

    if not hasattr(model, "predict_proba"):
        return None
    shares = (2, 2, 1)
    with part(0, shares, "scoring rows"):
        chances = label_probabilities(model, X, len(names))
    with part(1, shares, "scoring rows before calibration"):
        before = inspection.probabilities_before_calibration(model, X, len(names))
    with part(2, shares, "resampling"):
        return inspection.diagnose_probabilities(
            Y,
            chances,
            before=before,
            label_names=names,
            n_resamples=resamples,
            random_state=seed,
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
    """Print the quality of probabilities: means over labels, and some labels."""
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
    if math.isnan(found.log_loss.low):
        title = "Probabilities; lower is better"
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
            line.append(getattr(label, name).text(2))
            if before is not None:
                line.append(f"{getattr(before.labels[j], name).value:.3f}")
        cells.append(line)
    print_wide_table("Probabilities of the labels", columns, cells)


# Fewer rows with a label than these say little about it: its intervals are too short.
_FEW = 10


def _print(
    metrics: dict[str, float], found: Diagnostics, shown: list[int], seed: int, details: bool
) -> None:
    from imcc.metrics import METRICS

    rows: list[tuple[Any, ...]] = [
        (name, "higher" if METRICS[name].greater_is_better else "lower", _number(value))
        for name, value in metrics.items()
    ]
    means = {
        "macro average precision": "macro_average_precision",
        "macro F1": "macro_f1",
        "macro F1 of the labels present": "macro_f1_present",
        "micro F1": "micro_f1",
        "macro AUC": "macro_auc",
    }
    rows += [(words, "higher", str(found.estimate(name))) for words, name in means.items()]
    columns = [("metric", "left"), ("better", "left"), ("value", "left")]
    title = f"{found.n_rows:,} rows"
    if found.n_resamples:
        title += (
            f"; in brackets intervals of {found.confidence:.0%}, by {found.n_resamples} resamples "
            f"of the rows (seed {seed})"
        )
    print_table(title, columns, rows)
    if not shown:
        return
    labels = [found.labels[j] for j in shown]
    title = f"{len(labels)} of {len(found.labels)} labels, the most frequent first"
    if len(labels) == len(found.labels):
        title = "The labels, the most frequent first"
    print_wide_table(
        title,
        [
            ("label", "left"),
            ("rows", "right"),
            ("average precision", "right"),
            ("F1", "right"),
            ("AUC", "right"),
        ],
        [
            (
                label.label,
                f"{label.support}{'*' if label.support < _FEW else ''}",
                *(label.estimate(n).text(2) for n in ("average_precision", "f1", "auc")),
            )
            for label in labels
        ],
    )
    few = [label for label in found.labels if label.support < _FEW]
    if few:
        said = ", ".join(f"{label.label} ({label.support})" for label in few[:5])
        said += f" and {len(few) - 5} more" if len(few) > 5 else ""
        say(
            f"* fewer than {_FEW} rows have the label; its numbers are uncertain, and its "
            f"intervals too short: {said}\n"
        )
    if details:
        _print_details(labels)


def _print_details(labels: Sequence[Any]) -> None:
    names = ("precision", "recall", "f1", "threshold", "best_f1", "best_threshold")
    words = ("precision", "recall", "F1", "threshold", "best F1", "at")
    print_table(
        "Decisions, and the best threshold on these rows",
        [("label", "left"), ("rows", "right"), *((word, "right") for word in words)],
        [
            (label.label, label.support, *(_number(getattr(label, name)) for name in names))
            for label in labels
        ],
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
