"""``imcc tune``: from a data file to a model file."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from imcc.cli._choices import CRITERIA, METRICS, MODELS
from imcc.cli._inputs import are_tables, check_output, load, shown_setting
from imcc.cli._options import (
    FORCE,
    INPUTS,
    JSON,
    QUIET,
    changed_options,
    data_options,
    examples,
)
from imcc.cli._progress import working
from imcc.cli._tables import print_schema, read_table, refuse_columns
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.model_selection import KFold

    from imcc.datasets import Dataset

# Parameters of the estimators that are lists, of which a command line may name one value.
_LISTS = (
    *("alphas", "betas", "gammas", "n_clusters", "kernels", "width_scales", "views", "trees"),
)
# Parameters of the estimators that have options of their own.
_OPTIONS = {
    "cv": "--folds",
    "random_state": "--seed",
    "refit": "--metric",
    "scoring": "--metric",
    "calibrate": "--calibrate",
}
_WORDS = {"none": None, "true": True, "false": False}


class Setting(click.ParamType):
    """A parameter with its value; several values have commas between them."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, _, text = (part.strip() for part in value.partition("="))
        if not name or not text:
            self.fail(f"{value!r} is not a name and a value, such as betas=0.1,1", param, context)
        if "__" in name:
            self.fail(f"{name!r} is not a parameter of the classifier itself", param, context)
        if name in _OPTIONS:
            self.fail(f"{name} is set by {_OPTIONS[name]}", param, context)
        values = tuple(_value(word.strip()) for word in text.removesuffix(",").split(","))
        several = "," in text or name in _LISTS
        return name, values if several else values[0]


def _value(word: str) -> Any:
    """Return a number, None, True or False if a word is one, otherwise the word."""
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return _WORDS.get(word.lower(), word)


@click.command(
    epilog=examples(
        "imcc tune train.csv --labels happy,sad -o model.skops",
        "imcc tune films.csv --tags genres --schema films.toml --drop url -o model.skops",
        "imcc tune my.arff --labels my.xml -o model.skops --model imcc --calibrate --scale",
        "imcc tune yeast -o yeast.skops --model imcc --set n_clusters=16,64 --set betas=0.1,1,10",
        "cat train.csv | imcc tune - --labels -2 -o model.skops --json",
    )
)
@INPUTS
@data_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Model file to write (.skops).",
)
@click.option(
    "--model",
    "kind",
    type=click.Choice(MODELS),
    default=MODELS[0],
    show_default=True,
    help="An ensemble of kernels with probabilities, or the method of the paper with the best "
    "setting of a grid.",
)
@click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    help="Parameter of KernelEnsembleClassifier or, with --model imcc, of IMCCClassifierCV; may be "
    "repeated.",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="average_precision",
    show_default=True,
    help="Metric by which the best setting is chosen.",
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
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--scale",
    is_flag=True,
    help="Standardise every feature to mean 0 and standard deviation 1; tables always are.",
)
@click.option(
    "--fill-missing",
    is_flag=True,
    help="Replace missing values by the mean of their column; in tables, they always are.",
)
@FORCE
@QUIET
@JSON
def tune(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    columns: dict[str, Any],
    output: str,
    kind: str,
    settings: tuple[tuple[str, Any], ...],
    metric: str,
    calibrate: bool,
    thresholds: str | None,
    folds: int | None,
    seed: int,
    scale: bool,
    fill_missing: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the best model for data, and save it.

    The data are a named data set or a file; - is the standard input (CSV).  A table (CSV, TSV,
    Parquet) may have numbers, categories, text, dates and missing values: the kinds of its columns
    are inferred and shown, and --schema can say others.

    With --model imcc, all settings of a grid of 672 are cross-validated exactly, and the best one
    is fitted on all rows.  --set changes the grid: alphas=1, betas=0.1,1, n_clusters=16,64 or
    grid=paper.
    """
    from sklearn.model_selection import KFold

    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with, innermost, without_search
    from imcc.estimators import IMCCClassifierCV, KernelEnsembleClassifier
    from imcc.persistence import save_model
    from imcc.persistence._card import make_card
    from imcc.persistence._trust import require_skops
    from imcc.tables import TableClassifier
    from imcc.tables._load import table_card

    if calibrate and kind != "imcc":
        raise click.UsageError("--calibrate is for --model imcc: the ensemble is calibrated")
    is_table = are_tables(inputs, reading)
    if is_table:
        for option in changed_options("scale", "fill_missing"):
            raise click.UsageError(
                f"{option} is for data sets of numbers: the columns of a table are always scaled, "
                "and their missing values filled in"
            )
    with problems_reported():
        require_skops()  # without it, the work would be for nothing
        check_output(output, force)
        cv = KFold(folds or 5, shuffle=True, random_state=seed)
        classifier: Any
        if kind == "imcc":
            classifier = IMCCClassifierCV(
                cv=cv, scoring=list(METRICS), refit=metric, random_state=seed
            )
        else:
            classifier = KernelEnsembleClassifier(scoring=metric, random_state=seed)
        classifier.set_params(**dict(settings))
        _check_device(dict(settings).get("device"))
        about: dict[str, Any] = {}
        with working("reading", quiet=quiet):
            if is_table:
                source, known, schema = read_table(inputs, reading, columns, need_labels=True)
                n_labels = len(known.labels)
                about["schema"] = schema.to_dict()
            else:
                dataset = _numbers(inputs, reading, columns, fill_missing)
                n_labels = dataset.n_labels
        if is_table and not (quiet or as_json):
            print_schema(schema, f"{source.name}: {source.table.num_rows:,} rows", known.drop)
        scored: Sequence[str] = METRICS
        if kind == "imcc" and n_labels == 1:
            # Labels of a row cannot be ranked then, and the other metrics are of rankings.
            metric = metric if changed_options("metric") else "hamming_loss"
            scored = [metric]
            classifier.set_params(scoring=scored, refit=metric)
        # The held-out scores of the ensemble of a table are also those for the thresholds, which
        # the table classifier chooses.
        held_out = is_table and kind != "imcc"
        criterion = thresholds or ("f1" if held_out else "none")
        chosen = None if criterion == "none" else criterion
        with working("tuning", quiet=quiet):
            if is_table:
                model: Any = TableClassifier(
                    _wrapped(classifier, calibrate, None if held_out else chosen, cv),
                    thresholds=chosen if held_out else None,
                    random_state=seed,
                    **known.parameters(),
                )
                with source.located():
                    model.fit(source.table, known.target)
            else:
                model = _preprocessed(classifier, dataset.is_sparse, scale, fill_missing)
                model = _wrapped(model, calibrate, chosen, cv).fit(dataset.X, dataset.Y)
        model, search = without_search(model)
        inner, tuned = innermost(model), first_with(model, "thresholds_")
        if kind == "imcc":
            tried, best = len(search.cv_results_["params"]), search.best_index_
            before = ", before calibration" if calibrate else ""
            metrics = {
                f"cross-validated {name}{before}": search.cv_results_[f"mean_test_{name}"][best]
                for name in scored
            }
        else:
            tried = len(inner.search_results_["score"])
            metrics = {f"held-out {inner.scoring_}": inner.held_out_score_}
        metrics |= _of_thresholds(tuned)
        if is_table:
            card = table_card(model, source, metrics)
        else:
            card = make_card(model, dataset, metrics=metrics)
        save_model(model, output, card=card)
    if as_json:
        about = {"file": output, **card.to_dict(), "settings": tried, **about}
        del about["columns"]
        about["thresholds"] = None if tuned is None else tuned.thresholds_
        print_json(to_plain(about))
    elif not quiet:
        title = f"The best of {tried:,} settings, by {metric}"
        if kind != "imcc":
            title = f"An ensemble of {len(inner.members_)} of {tried:,} kernel models"
        print_table(title, [("", "left"), ("", "left")], list(shown_setting(card).items()))
        figures = [(name, f"{value:.4f}") for name, value in card.metrics.items()]
        print_table("How good it is", [("", "left"), ("", "right")], figures)
        say(f"{card.model} on {card.data_name} ({card.n_rows:,} rows) written to {output}")


def _check_device(device: str | None) -> None:
    """Report a device that is not there as an error of the option that named it."""
    import numpy as np

    from imcc._array.device import on_device

    try:
        on_device(np.empty((0, 1)), device)
    except (RuntimeError, ImportError) as error:
        raise click.UsageError(str(error)) from error


def _numbers(
    inputs: tuple[str, ...], reading: dict[str, Any], columns: dict[str, Any], fill_missing: bool
) -> Dataset:
    """Load a data set of numbers, without missing values unless they are filled in."""
    from imcc.datasets import DataFormatError

    refuse_columns(columns)
    dataset = load(inputs, reading)
    if dataset.has_missing and not fill_missing:
        raise DataFormatError(
            "some values are missing; --fill-missing puts the mean of their column there",
            dataset.source or dataset.name,
        )
    return dataset


def _preprocessed(classifier: Any, is_sparse: bool, scale: bool, fill_missing: bool) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    steps: list[tuple[str, Any]] = []
    if fill_missing:
        steps.append(("fill", SimpleImputer(keep_empty_features=True)))
    if scale:
        steps.append(("scale", StandardScaler(with_mean=not is_sparse)))
    return Pipeline([*steps, ("imcc", classifier)]) if steps else classifier


def _wrapped(model: Any, calibrate: bool, criterion: str | None, cv: KFold) -> Any:
    """Return a classifier with its probabilities and thresholds, if they are wanted."""
    from imcc.estimators import MultilabelCalibrator, TunedThresholds

    model = MultilabelCalibrator(model, cv=cv) if calibrate else model
    return model if criterion is None else TunedThresholds(model, criterion=criterion, cv=cv)


def _of_thresholds(tuned: Any) -> dict[str, float]:
    """Return how good thresholds are that were chosen, and those at 0; finite numbers only."""
    from imcc.estimators import TunedThresholds

    if not isinstance(tuned, TunedThresholds):
        return {}
    name = f"{'held-out' if isinstance(tuned.cv, str) else 'cross-validated'} {tuned.criterion}"
    figures = {
        f"{name}, thresholds at 0": tuned.default_score_,
        f"{name}, thresholds chosen": tuned.best_score_,
    }
    # The score is NaN if no label has enough rows.
    return {key: value for key, value in figures.items() if isfinite(value)}
