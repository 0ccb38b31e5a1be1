"""``imcc predict``: labels for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from imcc._utils.errors import InvalidArgumentError, given
from imcc.cli._inputs import check_output, load_matching, open_saved
from imcc.cli._options import (
    FORCE,
    IGNORE,
    INPUTS,
    JSON,
    MODEL,
    QUIET,
    RAW_CSV,
    STDIN,
    TRUST,
    examples,
    reading_options,
    refuse_options,
)
from imcc.cli._predictions import (
    Wanted,
    counted_rows,
    predicted_rows,
    predicted_tables,
    write_predictions,
)
from imcc.cli._progress import working
from imcc.cli._tables import are_tables, refuse_labels, table_files, table_model
from imcc.cli._terminal import problems_reported, say

FORMS = ("csv", "json", "jsonl", "parquet", "xlsx")
# Those that are files of their own making: not text, and packed already.
_BINARY = ("parquet", "xlsx")


@click.command(
    epilog=examples(
        "imcc predict model.skops new.csv -o labels.csv",
        "imcc predict model.skops new.csv --top-k 3 --scores",
        "imcc predict calibrated.skops new.csv --proba -o probabilities.xlsx",
        "cat new.csv | imcc predict model.skops - --to jsonl | head -3",
    )
)
@MODEL
@INPUTS
@reading_options
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="File to write; - for the standard output.  [default: -]",
)
@click.option("--scores", is_flag=True, help="Write the scores of the labels.")
@click.option(
    "--proba",
    is_flag=True,
    help="Write the probabilities of the labels; for models that have them, such as those of "
    "'imcc tune' or 'imcc tune --method imcc --calibrate'.",
)
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    metavar="K",
    help="Write the K labels with the highest scores per row, in separate columns.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help="Write the K labels with the highest scores per row, as tags in one column; with "
    "--scores or --proba, their numbers in a second column.",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    help="Format of the output.  [default: by the suffix of the output, or csv]",
)
@RAW_CSV
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
    top_k: int | None,
    top: int | None,
    form: str | None,
    raw_csv: bool,
    ignore_extra: bool,
    trust: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the labels of new rows with a model.

    Columns are matched to the features of the model by name, in any order; label columns are
    ignored.  The output has one row per input row, in the same order: a column of 0 and 1 per label
    (csv, parquet, xlsx; of scores or probabilities with --scores or --proba), or the names of the
    predicted labels (json, jsonl; with scores or probabilities).  For a table model, id columns
    come first, and files of any size are read in parts.
    """
    if scores and proba:
        raise click.UsageError("--scores and --proba: pass only one of the two")
    if top is not None and top_k is not None:
        raise click.UsageError("--top and --top-k: pass only one of the two")
    output = None if output == STDIN else output
    form = _chosen_form(form, as_json, output)
    if form != "csv":
        refuse_options(["raw_csv"], "csv")
    with problems_reported():
        if output is not None:
            check_output(output, force)
        if form in _BINARY and output is None:
            raise InvalidArgumentError("form", f"{form} is written to a file: " + given("output"))
        if form in _BINARY and output is not None and _is_packed(output):
            raise InvalidArgumentError(
                "output", f"is {output}, and {form} files are packed already: leave out the suffix"
            )
        model, card = open_saved(model_file, trust)
        if proba and not hasattr(model, "predict_proba"):
            raise InvalidArgumentError(
                "proba",
                "is for models with probabilities, and this one has scores only: train it with "
                "--calibrate, or wrap it in MultilabelCalibrator(model, cv='prefit') in Python",
            )
        wanted = Wanted(form, scores, proba, top_k, top, raw_csv=raw_csv)
        if table_model(model) is not None and are_tables(inputs, reading):
            refuse_labels(reading)
            files = table_files(inputs, reading)
            parts = predicted_tables(model, files, wanted, ignore_extra)
        else:
            with working("reading", quiet=quiet):
                X, _ = load_matching(
                    inputs, reading, card, with_labels=False, ignore_extra=ignore_extra, model=model
                )
            parts = predicted_rows(model, X, card.label_names, wanted)
        # A progress bar would interfere with rows printed on the terminal.
        beside = output is not None or not sys.stdout.isatty()
        with working("predicting", quiet=quiet, beside=beside) as report:
            count = write_predictions(counted_rows(parts, report), wanted, output)
    if output is not None and not quiet:
        say(f"{count:,} rows written to {output}", err=True)


_PACKED = (".gz", ".bz2", ".zip")


def _is_packed(output: str) -> bool:
    return output.lower().endswith(_PACKED)


def _chosen_form(form: str | None, as_json: bool, output: str | None) -> str:
    """Return the format to write; an option that contradicts the file name is an error."""
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --to {form}: pass only one of the two")
    asked = "json" if as_json else form
    if asked is None:
        return _form_of(output)
    suffix = Path(_unpacked(output)).suffix.removeprefix(".")
    if suffix in FORMS and suffix != asked:
        flag = "--json" if as_json else f"--to {form}"
        raise click.UsageError(
            f"{flag} and {output}: a file of that name is {suffix}; leave out {flag}, or give "
            "another name"
        )
    return asked


def _unpacked(output: str | None) -> str:
    """Return the name of a file in small letters, without the suffix of a packed one."""
    name = "" if output is None else Path(output).name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return name


def _form_of(output: str | None) -> str:
    """Return the format of a file by its suffix; CSV without a suffix."""
    suffix = Path(_unpacked(output)).suffix.removeprefix(".")
    if suffix in FORMS or not suffix:
        return suffix or "csv"
    if suffix in ("txt", "tsv", "xls", "xlsm", "ods", "arff", "html", "md", "feather"):
        raise click.UsageError(
            f"Files of .{suffix} cannot be written: use one of {', '.join(FORMS)}, or say with "
            "--to which of them it is."
        )
    return "csv"
