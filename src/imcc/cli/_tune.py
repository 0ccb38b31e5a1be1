"""``imcc tune``: from a data file to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.files import check_target
from imcc.cli import _options as options
from imcc.cli._choices import CRITERIA, METRICS, MODELS
from imcc.cli._inputs import are_tables, load_numbers, read_table, reading_of
from imcc.cli._progress import working
from imcc.cli._show import print_schema, shown_setting
from imcc.cli._terminal import named, print_json, print_table, say

if TYPE_CHECKING:
    from sklearn.model_selection import KFold

    from imcc.datasets import Dataset
    from imcc.tables import KnownColumns
    from imcc.tables._load import TableSource

# Parameters of the estimators that have options of their own.
_OPTIONS = ("calibrate", "cv", "max_time", "random_state", "refit", "scoring")
# Seconds of the search with --fast.
_FAST_SECONDS = 10.0


@options.command(
    "imcc tune train.csv --labels happy,sad -o model.skops",
    "imcc tune films.csv --tags genres --schema films.toml --drop url -o model.skops",
    "imcc tune my.arff --labels my.xml -o model.skops --model imcc --calibrate",
    "imcc tune yeast -o yeast.skops --model imcc --set n_clusters=16,64 --set betas=0.1,1,10",
    "imcc tune train.csv --tags genres -o quick.skops --fast",
    "cat train.csv | imcc tune - --labels -2 -o model.skops --json",
)
@options.INPUTS
@options.data_options
@options.file_option("-o", "--output", required=True, help="Model file to write (.skops).")
@click.option(
    "--model",
    "kind",
    type=click.Choice(MODELS),
    default=MODELS[0],
    show_default=True,
    help="An ensemble of kernels with probabilities, or the method of the paper with the best "
    "setting of a grid.",
)
@options.settings(
    "--set",
    "Parameter of KernelEnsembleClassifier or, with --model imcc, of IMCCClassifierCV; may be "
    "repeated.",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    help="Metric by which the best setting is chosen.  [default: average_precision, or for one "
    "label hamming_loss]",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Fit probabilities to the scores of held-out folds, for --model imcc; the ensemble has "
    "them.",
)
@click.option(
    "--thresholds",
    type=click.Choice((*CRITERIA, "none")),
    help="Choose the threshold of each label on held-out rows to optimise this criterion; none "
    "means score 0 or probability 1/2.  [default: f1 for the ensemble of a table, otherwise none]",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    help="Number of folds of cross-validations; the ensemble leaves out single rows.  [default: 5]",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop the search of the ensemble after so many seconds, and fit the best found so far.",
)
@click.option(
    "--fast",
    is_flag=True,
    help="A useful ensemble in about ten seconds for 2,000 rows: --max-time 10, and no trees.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@options.FORCE
@options.QUIET
@options.JSON
def tune(
    inputs: tuple[str, ...],
    labels: dict[str, Any] | None,
    output: str,
    kind: str,
    settings: tuple[tuple[str, Any], ...],
    metric: str | None,
    calibrate: bool,
    thresholds: str | None,
    folds: int | None,
    max_time: float | None,
    fast: bool,
    seed: int,
    force: bool,
    quiet: bool,
    as_json: bool,
    **columns: Any,
) -> None:
    """Find the best model for data, and save it.

    The data are a named data set or a file; - is the standard input (CSV).  A table (CSV, TSV,
    Parquet) may have numbers, categories, text, dates and missing values: the kinds of its columns
    are inferred and shown, and --schema can say others.  Its numbers are scaled and its missing
    values filled in; those of other files are taken as they are.

    With --model imcc, all settings of a grid of 672 are cross-validated exactly, and the best one
    is fitted on all rows.  --set changes the grid: alphas=1, betas=0.1,1, n_clusters=16,64 or
    grid=paper.
    """
    from sklearn.model_selection import KFold

    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with, innermost, without_search
    from imcc.estimators import IMCCClassifierCV, KernelEnsembleClassifier
    from imcc.persistence import save_model
    from imcc.persistence._card import make_card, metrics_of
    from imcc.persistence._trust import require_skops
    from imcc.tables import TableClassifier
    from imcc.tables._load import table_card

    is_search = kind == "imcc"
    if is_search:
        options.refuse_options(
            "the ensemble (--set makes the grid smaller)", max_time=max_time, fast=fast
        )
    else:
        options.refuse_options("--model imcc (the ensemble is calibrated)", calibrate=calibrate)
    require_skops()  # without it, the work would be for nothing
    check_target(output, overwrite=force)
    if Path(output).suffix not in ("", ".skops"):
        raise click.UsageError(
            f"-o {output}: model files are of skops, which runs no code when it is read; use "
            "a name that ends in .skops"
        )
    is_table = are_tables(inputs, reading_of(columns["schema"]))
    chosen = dict(settings)
    if own := [name for name in _OPTIONS if name in chosen]:
        raise InvalidArgumentError(own[0], "is an option of its own, not one of --set")
    _check_device(chosen.get("device"))
    with working("reading", quiet=quiet):
        if is_table:
            source, known = read_table(inputs, labels, columns)
            _check_labels(source, known)
            schema, n_labels = source.schema(known), len(known.labels)
        else:
            dataset = load_numbers(inputs, labels, columns)
            _check_complete(dataset)
            n_labels = dataset.n_labels
    if is_table and not (quiet or as_json):
        print_schema(schema, f"{source.name}: {source.table.num_rows:,} rows", known.drop)
    cv = KFold(folds or 5, shuffle=True, random_state=seed)
    # Labels of a row cannot be ranked if there is only one; most metrics are of rankings.
    is_ranked = not (is_search and n_labels == 1)
    metric = metric or ("average_precision" if is_ranked else "hamming_loss")
    scored = METRICS if is_ranked else (metric,)
    classifier: Any
    if is_search:
        classifier = IMCCClassifierCV(cv=cv, scoring=list(scored), refit=metric, random_state=seed)
    else:
        limit = max_time or (_FAST_SECONDS if fast else None)
        classifier = KernelEnsembleClassifier(
            scoring=metric, trees=not fast, max_time=limit, random_state=seed
        )
    classifier.set_params(**chosen)
    # The held-out scores of the ensemble of a table are also those for the thresholds, which
    # the table classifier chooses.
    held_out = is_table and not is_search
    criterion = thresholds or ("f1" if held_out else "none")
    wanted = None if criterion == "none" else criterion
    with working("tuning", quiet=quiet, max_time=None if is_search else limit):
        if is_table:
            model: Any = TableClassifier(
                _wrapped(classifier, calibrate, None if held_out else wanted, cv),
                thresholds=wanted if held_out else None,
                random_state=seed,
                **known.parameters(),
            )
            with source.located():
                model.fit(source.table, known.target)
        else:
            model = _wrapped(classifier, calibrate, wanted, cv).fit(dataset.X, dataset.Y)
    metrics = metrics_of(model)
    model, search = without_search(model)
    inner, tuned = innermost(model), first_with(model, "thresholds_")
    tried = inner.search_results_["score"] if search is None else search.cv_results_["params"]
    if is_table:
        card = table_card(model, source, metrics)
    else:
        card = make_card(model, dataset, metrics=metrics)
    save_model(model, output, card=card)
    if as_json:
        about = {"file": output, **card.to_dict(), "settings": len(tried)}
        del about["columns"]
        about |= {"schema": schema.to_dict()} if is_table else {}
        about["thresholds"] = None if tuned is None else tuned.thresholds_
        print_json(to_plain(about))
    elif not quiet:
        title = f"The best of {len(tried):,} settings, by {named(metric)}"
        if not is_search:
            title = f"An ensemble of {len(inner.members_)} models; {len(tried):,} trials of kernels"
        print_table(title, ("", ""), list(shown_setting(card).items()))
        figures = [(named(name), f"{value:.4f}") for name, value in card.metrics.items()]
        print_table("How good it is", ("", ">"), figures)
        say(f"{card.model} on {card.data_name} ({card.n_rows:,} rows) written to {output}")


def _check_device(device: str | None) -> None:
    """Report a device that is not there as an error of the option that named it."""
    import numpy as np

    from imcc._array.device import on_device

    try:
        on_device(np.empty((0, 1)), device)
    except (RuntimeError, ImportError) as error:
        raise click.UsageError(str(error)) from error


def _check_labels(source: TableSource, known: KnownColumns) -> None:
    from imcc.datasets._errors import listed

    if not known.label_columns:
        raise InvalidArgumentError(
            "labels",
            "are not known: name the columns of 0 and 1 with " + given("labels") + ", the one "
            "column of tags with " + given("tags") + "; the columns are "
            f"{listed(source.table.column_names, 12)}",
        )


def _check_complete(dataset: Dataset) -> None:
    from imcc.datasets import DataFormatError

    if dataset.has_missing:
        raise DataFormatError(
            "some values are missing; in tables they are filled in: write one with "
            "'imcc datasets convert IN OUT.csv'",
            dataset.source or dataset.name,
        )


def _wrapped(model: Any, calibrate: bool, criterion: str | None, cv: KFold) -> Any:
    """Return a classifier with its probabilities and thresholds, if they are wanted."""
    from imcc.estimators import MultilabelCalibrator, TunedThresholds

    model = MultilabelCalibrator(model, cv=cv) if calibrate else model
    return model if criterion is None else TunedThresholds(model, criterion=criterion, cv=cv)
