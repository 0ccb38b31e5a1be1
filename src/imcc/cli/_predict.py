"""``imcc predict``: labels for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from imcc.cli._evaluate import check_probabilities
from imcc.cli._inputs import are_tables, check_output, load_matching, open_saved, sources
from imcc.cli._options import (
    FORCE,
    IGNORE,
    INPUTS,
    JSON,
    MODEL,
    QUIET,
    STDIN,
    TRUST,
    examples,
    rows_options,
)
from imcc.cli._progress import working
from imcc.cli._terminal import print_result, problems_reported, say


@click.command(
    epilog=examples(
        "imcc predict model.skops new.csv -o labels.csv",
        "imcc predict model.skops new.csv --top 3 --scores",
        "imcc predict calibrated.skops new.csv --proba -o probabilities.parquet",
        "cat new.csv | imcc predict model.skops - --json",
    )
)
@MODEL
@INPUTS
@rows_options
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
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
@IGNORE
@TRUST
@FORCE
@QUIET
@JSON
def predict(
    model_file: str,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    output: str | None,
    scores: bool,
    proba: bool,
    top: int | None,
    ignore_extra: bool,
    trust: tuple[str, ...],
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
    printed = output is None or output == STDIN
    file: Any = SimpleNamespace(write=print_result) if printed else output
    with problems_reported():
        form = format_of(file)
        if not printed:
            if as_json and Path(file).suffix.lower() not in ("", ".json"):
                raise click.UsageError(f"--json and -o {file}: give one of the two")
            check_output(file, force)
        model, card = open_saved(model_file, trust)
        if proba:
            check_probabilities(model, "proba")
        options: dict[str, Any] = {
            "values": "probability" if proba else "score" if scores else None,
            "top": top,
            "format": "json" if as_json else form,
        }
        rows: Any
        if table_model(model) is not None and are_tables(inputs, reading):
            rows = sources(inputs, reading)
            options |= reading | {"ignore_extra": ignore_extra}
        else:
            with working("reading", quiet=quiet):
                rows, _ = load_matching(
                    inputs, reading, card, with_labels=False, ignore_extra=ignore_extra, model=model
                )
            options["label_names"] = card.label_names
        # A progress bar would interfere with rows printed on the terminal.
        with working("predicting", quiet=quiet or (printed and sys.stdout.isatty())):
            count = write_predictions(model, rows, file, **options)
    if not printed and not quiet:
        say(f"{count:,} rows written to {output}", err=True)
