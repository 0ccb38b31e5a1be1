"""``imcc predict``: labels for new rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.files import save
from imcc._utils.text import defused
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
)
from imcc.cli._terminal import json_text, print_result, problems_reported, say

if TYPE_CHECKING:
    import numpy as np

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
    help="Where to write; - prints.  [default: -]",
)
@click.option("--scores", is_flag=True, help="Give the labels' scores.")
@click.option(
    "--proba",
    is_flag=True,
    help="Give the labels' probabilities; for models that have them (imcc calibrate, imcc tune "
    "--calibrate).",
)
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    metavar="K",
    help="Give the K best-scored labels of each row, in columns of their own.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help="Give the K best-scored labels of each row as tags in one column.",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    help="The format of the output.  [default: by the name of the output, or csv]",
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

    Columns are matched to the model's features by name, in any order; columns of labels are
    ignored.  The output has a row for each row of the input, in the same order: a column of 0 and 1
    per label (csv, parquet, xlsx; of scores or probabilities with --scores or --proba), or the
    names of the labels that are predicted (json, jsonl; with scores or probabilities).  For a model
    of tables, the columns of ids come first, and a file of any size is read part by part.
    """
    from imcc.calibration import label_probabilities, label_scores
    from imcc.cli._predict_table import Wanted, predict_table
    from imcc.cli._tables import are_tables, table_model

    if scores and proba:
        raise click.UsageError("--scores and --proba: give one of the two")
    if top is not None and top_k is not None:
        raise click.UsageError("--top and --top-k: give one of the two")
    output = None if output == STDIN else output
    form = "json" if as_json else form or _form_of(output)
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
                "is for models with probabilities, and this one has scores only: give it "
                f"probabilities with imcc calibrate {model_file} DATA -o NEW, where DATA are rows "
                "with labels that it was not trained on",
            )
        if table_model(model) is not None and are_tables(inputs, reading):
            wished = Wanted(form, scores, proba, top_k, top, raw_csv=raw_csv)
            count = predict_table(
                model, inputs, reading, wished, output, ignore_extra=ignore_extra, quiet=quiet
            )
        else:
            for option, used in (("top", top), ("form", form in _BINARY)):
                if used:
                    raise InvalidArgumentError(option, "is for models of tables")
            X, _ = load_matching(
                inputs, reading, card, with_labels=False, ignore_extra=ignore_extra, model=model
            )
            names, count = card.label_names, X.shape[0]
            ranking = label_scores(model, X, len(names)) if scores or top_k else None
            values = None
            if proba:
                values = _Values("probability", label_probabilities(model, X, len(names)))
            elif scores or (top_k and form != "csv"):
                values = _Values("score", ranking)
            best = None if top_k is None else _best(ranking, top_k)
            text = _text(form, names, model.predict(X), values, best, raw_csv)
            if output is not None:
                save(output, text.encode("utf-8"))
            else:
                print_result(text)
    if output is not None and not quiet:
        say(f"{count:,} rows written to {output}", err=True)


_PACKED = (".gz", ".bz2", ".zip")


def _is_packed(output: str) -> bool:
    return output.lower().endswith(_PACKED)


def _form_of(output: str | None) -> str:
    """Return the format that the name of a file says; no suffix is CSV."""
    name = "" if output is None else Path(output).name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    suffix = Path(name).suffix.removeprefix(".")
    if suffix in FORMS or not suffix:
        return suffix or "csv"
    if suffix in ("txt", "tsv", "xls", "xlsm", "ods", "arff", "html", "md", "feather"):
        raise click.UsageError(
            f"Files of .{suffix} cannot be written: use one of {', '.join(FORMS)}, or say with "
            "--to which of them it is."
        )
    return "csv"


class _Values(NamedTuple):
    """What is given for each label besides the prediction, and how it is called."""

    word: str
    matrix: Any

    @property
    def plural(self) -> str:
        return "scores" if self.word == "score" else "probabilities"


def _best(scores: Any, top_k: int) -> np.ndarray:
    """Return the numbers of each row's best-scored labels."""
    import numpy as np

    return np.argsort(-scores, axis=1, kind="stable")[:, :top_k]


def _text(
    form: str,
    names: Sequence[str],
    predicted: np.ndarray,
    values: _Values | None,
    best: np.ndarray | None,
    raw_csv: bool,
) -> str:
    if form == "csv":
        return _csv(names, predicted, values, best, raw_csv)
    rows = [_record(names, predicted, values, best, i) for i in range(len(predicted))]
    if form == "json":
        return json_text(rows, indent=1) + "\n"
    return "".join(json_text(row, indent=None) + "\n" for row in rows)


def _csv(
    names: Sequence[str],
    predicted: np.ndarray,
    values: _Values | None,
    best: np.ndarray | None,
    raw: bool,
) -> str:
    import numpy as np

    buffer = io.StringIO(newline="")
    # The csv module leaves a carriage return without quotes unless everything is quoted.
    odd = any("\r" in name for name in names)
    writer = csv.writer(
        buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
    )
    heading = _heading(names, predicted, values, best)
    writer.writerow(heading if raw else map(defused, heading))
    for i in range(len(predicted)):
        if best is not None:
            cells: list[Any] = []
            for j in best[i]:
                cells.append(names[j])
                if values is not None:
                    cells.append(repr(float(values.matrix[i, j])))
        elif values is not None:
            cells = [repr(float(value)) for value in values.matrix[i]]
        else:
            cells = np.atleast_1d(predicted[i]).tolist()
        writer.writerow(cells if raw else map(defused, cells))
    return buffer.getvalue()


def _heading(
    names: Sequence[str], predicted: np.ndarray, values: _Values | None, best: np.ndarray | None
) -> list[str]:
    if best is not None:
        places = range(1, best.shape[1] + 1)
        if values is not None:
            return [word for k in places for word in (f"label{k}", f"{values.word}{k}")]
        return [f"label{k}" for k in places]
    return list(names) if values is not None or predicted.ndim == 2 else ["class"]


def _record(
    names: Sequence[str],
    predicted: np.ndarray,
    values: _Values | None,
    best: np.ndarray | None,
    i: int,
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if predicted.ndim == 2:
        row["labels"] = [name for name, on in zip(names, predicted[i], strict=True) if on]
    else:
        row["class"] = predicted[i].item() if hasattr(predicted[i], "item") else predicted[i]
    if best is not None:
        assert values is not None
        row["top"] = [{"label": names[j], values.word: float(values.matrix[i, j])} for j in best[i]]
    elif values is not None:
        row[values.plural] = dict(zip(names, map(float, values.matrix[i]), strict=True))
    return row
