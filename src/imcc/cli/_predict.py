"""``imcc predict``: labels for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.files import check_target
from imcc.cli import _options as options
from imcc.cli._inputs import (
    are_tables,
    load_matching,
    open_saved,
    reading_of,
    sources,
)
from imcc.cli._progress import working
from imcc.cli._terminal import print_result, say


@options.command(
    "imcc predict model.skops new.csv -o labels.csv",
    "imcc predict model.skops new.csv --top 3 --scores",
    "imcc predict calibrated.skops new.csv --proba -o probabilities.parquet",
    "cat new.csv | imcc predict model.skops - --json",
)
@options.MODEL
@options.INPUTS
@options.SCHEMA
@options.file_option(
    "-o",
    "--output",
    help="File to write, .csv, .json or .parquet; - for the standard output.  [default: -]",
)
@click.option("--scores", is_flag=True, help="Write the scores of the labels.")
@click.option(
    "--proba",
    is_flag=True,
    help="Write the probabilities of the labels; for models that have them, such as those of "
    "'imcc tune' or 'imcc tune --model imcc --calibrate'.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help="Write the K labels with the highest scores per row; with --scores or --proba, also their "
    "numbers.",
)
@options.IGNORE
@options.TRUST
@options.FORCE
@options.QUIET
@options.JSON
def predict(
    model_file: str,
    inputs: tuple[str, ...],
    schema: str | None,
    output: str | None,
    scores: bool,
    proba: bool,
    top: int | None,
    ignore_extra: bool,
    trusted: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the labels of new rows with a model.

    Columns are matched to the features of the model by name, in any order; label columns are
    ignored.  The output has one row per input row, in the same order: a column of 0 and 1 per label
    (of scores or probabilities with --scores or --proba), or in JSON the names of the predicted
    labels.  For a table model, id columns come first, and files of any size are read in parts.
    """
    from imcc.tables._predict import format_of, table_model, write_predictions

    if scores and proba:
        raise click.UsageError("--scores and --proba: pass only one of the two")
    printed = output is None or output == options.STDIN
    file: Any = SimpleNamespace(write=print_result) if printed else output
    form = format_of(file)
    if not printed:
        if as_json and Path(file).suffix.lower() not in ("", ".json"):
            raise click.UsageError(f"--json and -o {file}: give one of the two")
        check_target(file, overwrite=force)
    model, card = open_saved(model_file, trusted)
    if proba and not hasattr(model, "predict_proba"):
        raise InvalidArgumentError(
            "proba",
            "is for models with probabilities, and this one has scores only: train it with "
            "--calibrate, or wrap it in MultilabelCalibrator(model, cv='prefit') in Python",
        )
    reading = reading_of(schema)
    rows: Any
    if table_model(model) is not None and are_tables(inputs, reading):
        rows, reading["ignore_extra"] = sources(inputs), ignore_extra
    else:
        with working("reading", quiet=quiet):
            rows, _ = load_matching(
                model, card, inputs, schema, with_labels=False, ignore_extra=ignore_extra
            )
        reading = {"label_names": card.label_names}
    # A progress bar would interfere with rows printed on the terminal.
    with working("predicting", quiet=quiet or (printed and sys.stdout.isatty())):
        count = write_predictions(
            model,
            rows,
            file,
            values="probability" if proba else "score" if scores else None,
            top=top,
            format="json" if as_json else form,
            **reading,
        )
    if not printed and not quiet:
        say(f"{count:,} rows written to {output}", err=True)
