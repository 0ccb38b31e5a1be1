"""``imcc evaluate``: evaluation of a model on rows with known labels."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc.cli import _options as options
from imcc.cli._inputs import fingerprint_of, load_matching, open_saved
from imcc.cli._progress import working
from imcc.cli._terminal import named, print_json, print_table, say

if TYPE_CHECKING:
    from imcc.inspection._calibration import CalibrationDiagnostics
    from imcc.inspection._diagnostics import Diagnostics


@options.command(
    "imcc evaluate model.skops test.arff",
    "imcc evaluate model.skops yeast --json",
)
@options.MODEL
@options.INPUTS
@options.SCHEMA
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    help="Number of labels to list, the most frequent first.",
)
@options.IGNORE
@options.TRUST
@options.QUIET
@options.JSON
def evaluate(
    model_file: str,
    inputs: tuple[str, ...],
    schema: str | None,
    top: int,
    ignore_extra: bool,
    trusted: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Evaluate a model on rows with known labels.

    Shows the five metrics of the paper, and average precision, F1 and AUC per label; for a model
    with probabilities also log loss, Brier score and calibration error.  These have 95 % bootstrap
    intervals, except the five metrics.  Columns of features and labels are matched by name.
    """
    from imcc import inspection
    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with

    model, card = open_saved(model_file, trusted)
    part = first_with(model, "target_kind_")
    if part is not None and part.target_kind_ != "multilabel":
        raise InvalidArgumentError(
            "model", "predicts one class per row, and has no labels to evaluate"
        )
    with working("reading", quiet=quiet):
        X, Y = load_matching(
            model, card, inputs, schema, with_labels=True, ignore_extra=ignore_extra
        )
    if card.fingerprint and fingerprint_of(X, Y, card) == card.fingerprint:
        warnings.warn(
            "these are the rows that the model was trained on: on new rows, the results will "
            "be worse",
            UserWarning,
            stacklevel=1,
        )
    with working("evaluating", quiet=quiet):
        metrics, labels, judged = inspection.evaluate_model(
            model, X, Y, label_names=card.label_names
        )
    if as_json:
        more = {} if judged is None else {"probabilities": judged.to_dict()}
        print_json({"model": model_file, "metrics": to_plain(metrics), **labels.to_dict(), **more})
    else:
        order = sorted(range(len(labels.labels)), key=lambda j: -labels.labels[j].support)
        _print(metrics, labels, order[:top])
        if judged is not None:
            _print_probabilities(judged, order[:top])


# Fewer rows with a label than these say little about it: its intervals are too short.
_FEW = 10


def _print(metrics: dict[str, float], found: Diagnostics, shown: list[int]) -> None:
    """Print the metrics, and the labels with these indices."""
    from imcc.metrics import METRICS

    rows: list[tuple[str, str, str]] = [
        (
            named(name),
            "higher" if METRICS[name].greater_is_better else "lower",
            "-" if math.isnan(value) else f"{value:.3f}",
        )
        for name, value in metrics.items()
    ]
    means = {
        "macro average precision (of rows, per label)": "macro_average_precision",
        "macro F1": "macro_f1",
        "macro F1 of the labels present": "macro_f1_present",
        "micro F1": "micro_f1",
        "macro AUC": "macro_auc",
    }
    rows += [(words, "higher", str(found.estimate(name))) for words, name in means.items()]
    title = (
        f"{found.n_rows:,} rows; in brackets intervals of {found.confidence:.0%}, by "
        f"{found.n_resamples} resamples of the rows"
    )
    print_table(title, ("metric", "better", "value"), rows)
    if not shown:
        return
    labels = [found.labels[j] for j in shown]
    title = f"{len(labels)} of {len(found.labels)} labels, the most frequent first"
    if len(labels) == len(found.labels):
        title = "The labels, the most frequent first"
    print_table(
        title,
        ("label", ">rows", ">average precision", ">F1", ">AUC"),
        [
            (
                label.label,
                f"{label.support}{'*' if label.support < _FEW else ''}",
                *(label.estimate(n).text(2) for n in ("average_precision", "f1", "auc")),
            )
            for label in labels
        ],
    )
    if any(label.support < _FEW for label in labels):
        say(
            f"* fewer than {_FEW} rows have the label; its numbers are uncertain, and its "
            "intervals too short\n"
        )


def _print_probabilities(found: CalibrationDiagnostics, shown: list[int]) -> None:
    """Print the quality of probabilities: means over labels, and the labels with these indices."""
    lines: list[tuple[Any, ...]] = [("mean over labels", "", found)]
    lines += [(found.labels[j].label, found.labels[j].support, found.labels[j]) for j in shown]
    print_table(
        "Probabilities; lower is better, and perfect ones have a calibration error of "
        f"{found.error_by_chance:.3f} by chance",
        ("label", ">rows", ">log loss", ">Brier score", ">calibration error"),
        [
            (name, rows, *(x.text(2) for x in (part.log_loss, part.brier, part.calibration_error)))
            for name, rows, part in lines
        ],
    )
