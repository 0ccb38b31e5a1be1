"""``imcc calibrate`` and ``imcc thresholds``: adjust an existing model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import part
from imcc.cli._choices import CALIBRATORS, CRITERIA
from imcc.cli._evaluate import MEASURES
from imcc.cli._inputs import check_output, fingerprint_of, load_matching, open_saved, refuse_classes
from imcc.cli._options import (
    FORCE,
    IGNORE,
    INPUTS,
    JSON,
    MODEL,
    OUTPUT,
    QUIET,
    STDIN,
    TRUST,
    examples,
    reading_options,
    refuse_options,
)
from imcc.cli._progress import working
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:
    from imcc.inspection import CalibrationDiagnostics
    from imcc.persistence import ModelCard


@click.command(
    epilog=examples(
        "imcc calibrate model.skops more.csv -o calibrated.skops",
        "imcc calibrate model.skops more.csv -o calibrated.skops --method isotonic",
        "imcc predict calibrated.skops new.csv --proba",
    )
)
@MODEL
@INPUTS
@reading_options
@OUTPUT
@click.option(
    "--method",
    type=click.Choice(CALIBRATORS),
    default="logistic",
    show_default=True,
    help="Maps from scores to log-odds: linear, or step functions for labels with enough rows.",
)
@click.option(
    "--min-support",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Minimum number of rows with and without a label for a step function.",
)
@IGNORE
@TRUST
@FORCE
@QUIET
@JSON
def calibrate(
    model_file: str,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    output: str,
    method: str,
    min_support: int,
    ignore_extra: bool,
    trust: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Calibrate a model: fit probabilities to new rows with labels.

    The rows must not be training rows.  The model is not changed; one map per label from scores to
    probabilities is fitted to the given rows.  Columns are matched by name.  "imcc tune
    --calibrate" fits a model with probabilities to training rows alone.
    """
    from imcc._utils.wrappers import first_with, without_outer
    from imcc.calibration import MultilabelCalibrator, TunedThresholds

    if method != "isotonic":
        refuse_options(["min_support"], "--method isotonic")
    with problems_reported():
        check_output(output, force)
        model, card = open_saved(model_file, trust)
        refuse_classes(model, "calibrate")
        with working("reading", quiet=quiet):
            X, Y, name, fingerprint = _new_rows(inputs, reading, model, card, ignore_extra)
        if first_with(model, "thresholds_") is not None:
            warnings.warn(
                "the thresholds of the model are on its scores, and are left out: a label is now "
                "predicted from probability 1/2 on; choose new ones with imcc thresholds",
                stacklevel=2,
            )
        model = without_outer(model, (TunedThresholds, MultilabelCalibrator))
        with working("calibrating", quiet=quiet):
            with part(0, (1, 2), "scoring rows"):
                calibrated = MultilabelCalibrator(
                    model, method=method, cv="prefit", min_support=min_support
                ).fit(X, Y)
            with part(1, (1, 2), "judging the probabilities"):
                found = _judged(model, X, Y, method, min_support)
        note = f"Calibrated ({method}) on {_rows_used(X, name, fingerprint)}."
        metrics = {f"{key}, before calibration": value for key, value in card.metrics.items()}
        if found is not None:
            metrics |= _as_metrics(found, name)
        new = _save(calibrated, output, card, metrics, note)
    if as_json:
        about = {} if found is None else {"probabilities": found.to_dict()}
        print_json({**_result(new, output), "methods": calibrated.methods_.tolist(), **about})
    elif not quiet:
        if found is not None:
            _print_change(found, name)
        say(f"{new.model}, calibrated on {name} ({X.shape[0]:,} rows), written to {output}")


@click.command(
    epilog=examples(
        "imcc thresholds model.skops more.csv -o tuned.skops",
        "imcc thresholds model.skops more.csv -o tuned.skops --criterion micro_f1",
    )
)
@MODEL
@INPUTS
@reading_options
@OUTPUT
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    default="f1",
    show_default=True,
    help="The criterion that the thresholds optimise.",
)
@click.option(
    "--min-support",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Minimum number of rows with and without a label to choose its threshold.",
)
@IGNORE
@TRUST
@FORCE
@QUIET
@JSON
def thresholds(
    model_file: str,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    output: str,
    criterion: str,
    min_support: int,
    ignore_extra: bool,
    trust: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Choose the thresholds of a model on new rows with labels.

    The rows must not be training rows.  The model and its scores are not changed; the scores of a
    calibrated model are log-odds.  Columns are matched by name.  "imcc tune --thresholds" chooses
    thresholds on training rows alone.
    """
    import numpy as np

    from imcc._utils.wrappers import first_with, without_outer
    from imcc.calibration import TunedThresholds

    with problems_reported():
        check_output(output, force)
        model, card = open_saved(model_file, trust)
        refuse_classes(model, "choose thresholds for")
        with working("reading", quiet=quiet):
            X, Y, name, fingerprint = _new_rows(inputs, reading, model, card, ignore_extra)
        had = isinstance(first_with(model, "thresholds_"), TunedThresholds)
        model = without_outer(model, TunedThresholds)
        tuned = TunedThresholds(model, criterion=criterion, cv="prefit", min_support=min_support)
        with working("choosing thresholds", quiet=quiet):
            tuned.fit(X, Y)
        note = f"Thresholds chosen ({criterion}) on {_rows_used(X, name, fingerprint)}."
        metrics = {f"{key}, before thresholds": value for key, value in card.metrics.items()}
        chosen = {
            f"{criterion} on {name}, default thresholds": tuned.default_score_,
            f"{criterion} on {name}, thresholds chosen there": tuned.best_score_,
        }
        chosen = {key: float(value) for key, value in chosen.items() if np.isfinite(value)}
        new = _save(tuned, output, card, metrics | chosen, note)
    results = tuned.cv_results_
    if as_json:
        about = {key: results[key].tolist() for key in ("threshold", "support", "tuned")}
        print_json({**_result(new, output), "labels": {"name": list(card.label_names), **about}})
    elif not quiet:
        print_table(
            f"Thresholds on {name}",
            [("", "left"), ("", "right")],
            [(key, f"{value:.4f}") for key, value in chosen.items()]
            + [("labels with a threshold of their own", f"{int(results['tuned'].sum()):,}")],
        )
        if had:
            say(
                "The model already had thresholds, which are replaced; the default thresholds "
                "above are score 0, or probability 1/2"
            )
        say(f"{new.model}, thresholds of {name} ({X.shape[0]:,} rows), written to {output}")


def _new_rows(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    model: Any,
    card: ModelCard,
    ignore_extra: bool,
) -> tuple[Any, Any, str, str]:
    """Return rows, labels, their name and fingerprint; training rows are an error."""
    X, Y = load_matching(
        inputs, reading, card, with_labels=True, ignore_extra=ignore_extra, model=model
    )
    name = ", ".join("the standard input" if file == STDIN else file for file in inputs)
    fingerprint = fingerprint_of(X, Y, card)
    if hasattr(X, "column_names"):  # a table
        X = X.to_pandas()
    if fingerprint == card.fingerprint:
        raise InvalidArgumentError(
            "data",
            "are the rows that the model was trained on: use other rows, or train it again with "
            "imcc tune --calibrate or --thresholds",
        )
    return X, Y, name, fingerprint


def _rows_used(X: Any, name: str, fingerprint: str) -> str:
    return f"{X.shape[0]:,} rows of {name} (fingerprint {fingerprint[:12]}...)"


def _judged(
    model: Any, X: Any, Y: Any, method: str, min_support: int
) -> CalibrationDiagnostics | None:
    """Evaluate the probabilities of each row by maps fitted to the others; None for one row."""
    from imcc.calibration import cross_fit_probabilities
    from imcc.inspection import diagnose_probabilities, score_probabilities

    if X.shape[0] < 2:
        return None
    with part(0, (1, 1, 1)):
        chances = cross_fit_probabilities(
            model, X, Y, method=method, min_support=min_support, cv=min(5, X.shape[0])
        )
    with part(1, (1, 1, 1)):
        before = score_probabilities(model, X, Y.shape[1])
    with part(2, (1, 1, 1)):
        return diagnose_probabilities(Y, chances, before=before)


def _as_metrics(found: CalibrationDiagnostics, name: str) -> dict[str, float]:
    metrics = {}
    for key, words in MEASURES.items():
        if found.before is not None:
            metrics[f"{words} on {name}, before calibration"] = getattr(found.before, key).value
        metrics[f"{words} on {name}, cross-fitted"] = getattr(found, key).value
    return metrics


def _print_change(found: CalibrationDiagnostics, name: str) -> None:
    columns = [("mean over labels", "left"), ("calibrated", "right"), ("before", "right")]
    rows = [
        (
            words,
            str(getattr(found, key)),
            "-" if found.before is None else str(getattr(found.before, key)),
        )
        for key, words in MEASURES.items()
    ]
    print_table(f"Probabilities of {name}, each row's by maps fitted to the others", columns, rows)


def _save(
    model: Any, output: str, old: ModelCard, metrics: dict[str, float], note: str
) -> ModelCard:
    """Write the model with the names and training data of the old card; return the new card."""
    from imcc.persistence import make_card, save_model

    made = make_card(
        model,
        feature_names=old.feature_names,
        label_names=old.label_names,
        metrics=metrics,
        notes=f"{old.notes}\n{note}".lstrip(),
    )
    kept = ("params", "data_name", "fingerprint", "n_rows", "columns", "label_pairs")
    card = replace(made, **{name: getattr(old, name) for name in kept})
    save_model(model, output, card=card)
    return card


def _result(card: ModelCard, output: str) -> dict[str, Any]:
    about = card.to_dict()
    del about["label_pairs"], about["columns"]
    return {"file": output, **about}
