"""``imcc tune`` and ``imcc fit``: from a data file to a model file."""

from __future__ import annotations

import csv
import io
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.files import save
from imcc._utils.text import defused
from imcc.cli._choices import GRIDS, KERNELS, METHODS, METRICS
from imcc.cli._inputs import check_output, load, shown_setting
from imcc.cli._options import (
    CALIBRATE,
    FILL,
    FOLDS,
    FORCE,
    INPUTS,
    JSON,
    OUTPUT,
    QUIET,
    RAW_CSV,
    SCALE,
    SEED,
    THRESHOLDS,
    Numbers,
    Words,
    changed_options,
    examples,
    reading_options,
    refuse_options,
)
from imcc.cli._progress import working
from imcc.cli._tables import (
    are_tables,
    fit_table,
    known_columns,
    make_classifier,
    print_schema,
    read_input,
    refuse_columns,
    schema_of,
    table_card,
    table_options,
)
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import KFold

    from imcc.datasets import Dataset
    from imcc.persistence import ModelCard

# Options of the search of --method imcc.
_OF_THE_SEARCH = (
    *("grid", "alphas", "betas", "gammas", "clusters", "kernels", "width_scales"),
    *("kernel_search", "calibrate", "results"),
)


@click.command(
    epilog=examples(
        "imcc tune train.csv --labels happy,sad -o model.skops",
        "imcc tune films.csv --tags genres --text plot --drop url -o model.skops",
        "imcc tune my.arff --labels my.xml -o model.skops --method imcc --kernel-search --scale",
        "imcc tune train.csv --labels happy,sad -o model.skops --method imcc --calibrate",
        "imcc tune yeast -o yeast.skops --method imcc --clusters 16,64 --betas 0.1,1,10",
        "cat train.csv | imcc tune - --labels -2 -o model.skops --json",
    )
)
@INPUTS
@reading_options
@table_options
@OUTPUT
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="kernel_ensemble",
    show_default=True,
    help="Method: an ensemble of kernels with probabilities, or the method of the paper with the "
    "best setting.",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="average_precision",
    show_default=True,
    help="Metric by which the best setting is chosen.",
)
@click.option(
    "--grid",
    type=click.Choice(GRIDS),
    default="default",
    show_default=True,
    help="Default values to try: 672 settings with four kernel widths, or the paper's 2058 "
    "settings with one width.",
)
@click.option("--alphas", type=Numbers(), help="Weights of the centres.  [default: by --grid]")
@click.option("--betas", type=Numbers(), help="Penalties on complexity.  [default: by --grid]")
@click.option("--gammas", type=Numbers(), help="Pulls to the centres.  [default: by --grid]")
@click.option("--clusters", type=Numbers(int), help="Numbers of clusters.  [default: by --grid]")
@click.option(
    "--kernels", type=Words(KERNELS), default="rbf", show_default=True, help="Kernels to try."
)
@click.option(
    "--width-scales", type=Numbers(), help="Factors on the kernel width.  [default: by --grid]"
)
@click.option(
    "--kernel-search",
    is_flag=True,
    help="Try the rbf and the laplacian kernel with four widths each; takes twice the time of the "
    "default grid, or eight times that of the paper's grid.",
)
@CALIBRATE
@THRESHOLDS
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    help="Number of cross-validation folds.  [default: 5, but leave-one-out for the ensemble]",
)
@SEED
@SCALE
@FILL
@click.option("--results", metavar="FILE", help="Also write all settings and metrics as CSV.")
@RAW_CSV
@click.option("--jobs", type=int, help="Number of folds and widths computed in parallel.")
@FORCE
@QUIET
@JSON
def tune(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    columns: dict[str, Any],
    output: str,
    method: str,
    metric: str,
    grid: str,
    alphas: tuple[float, ...] | None,
    betas: tuple[float, ...] | None,
    gammas: tuple[float, ...] | None,
    clusters: tuple[int, ...] | None,
    kernels: tuple[str, ...],
    width_scales: tuple[float, ...] | None,
    kernel_search: bool,
    calibrate: bool,
    thresholds: str | None,
    folds: int | None,
    seed: int,
    scale: bool,
    fill_missing: bool,
    results: str | None,
    raw_csv: bool,
    jobs: int | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the best model for data, and save it.

    The data are a named data set or a file; - is the standard input.  A table (CSV, TSV, Parquet)
    may have numbers, categories, text, dates and missing values: the types of its columns are
    inferred and shown, and can be overridden (--text, --category, ..., --schema).

    With --method imcc, all settings of a grid are cross-validated exactly; the grid is that of
    --grid unless it is changed by --alphas, --betas, --gammas, --clusters, --kernels or
    --width-scales.  The best setting is fitted on all rows.
    """
    from sklearn.model_selection import KFold

    from imcc._utils.wrappers import innermost, without_search
    from imcc.estimators import KERNEL_SEARCH, IMCCClassifierCV, KernelEnsembleClassifier
    from imcc.persistence import require_skops

    if kernel_search and changed_options("kernels", "width_scales"):
        raise click.UsageError("--kernel-search sets --kernels and --width-scales: not both")
    if method != "imcc" and (others := changed_options(*_OF_THE_SEARCH)):
        raise click.UsageError(f"{others[0]} is an option of --method imcc")
    if results is None:
        refuse_options(["raw_csv"], "--results")
    with problems_reported():
        require_skops()  # without it, the work would be for nothing
        for file in (output, results):
            if file is not None:
                check_output(file, force)
        with working("reading", quiet=quiet):
            data = _Data(inputs, reading, columns, scale, fill_missing)
        data.show(quiet or as_json)
        axes: dict[str, Any] = {"kernels": kernels, "width_scales": width_scales}
        shuffled = KFold(5 if folds is None else folds, shuffle=True, random_state=seed)
        # On a table, the held-out scores of the ensemble are also those for the thresholds.
        held_out = data.is_table and method != "imcc"
        criterion = _criterion(thresholds, "f1" if held_out else None)
        classifier: Any
        if method == "imcc":
            classifier = IMCCClassifierCV(
                alphas,
                betas,
                gammas,
                clusters,
                grid=grid,
                **(KERNEL_SEARCH if kernel_search else axes),
                cv=shuffled,
                scoring=list(METRICS),
                refit=metric,
                n_jobs=jobs,
                random_state=seed,
            )
        else:
            classifier = KernelEnsembleClassifier(
                scoring=metric,
                cv=shuffled if folds is not None and (held_out or not criterion) else "loo",
                n_jobs=jobs,
                random_state=seed,
            )
        with working("tuning", quiet=quiet):
            model = data.fit(classifier, calibrate, criterion, shuffled, seed)
        model, found = without_search(model)
        inner = innermost(model)
        if method == "imcc":
            tried = len(found.cv_results_["params"])
            metrics = {
                f"cross-validated {name}{', before calibration' if calibrate else ''}": (
                    found.cv_results_[f"mean_test_{name}"][found.best_index_]
                )
                for name in METRICS
            }
        else:
            tried = len(inner.search_results_["score"])
            metrics = {f"cross-fitted {inner.scoring_}": inner.cross_fitted_score_}
        card = _save(model, output, data, metrics)
        if results is not None:
            save(results, _table_of(found.cv_results_, raw_csv).encode())
    if as_json:
        print_json({**_result(card, model, output), "settings": tried, **data.schema_dict()})
    elif not quiet:
        if method != "imcc":
            _print_members(inner, tried)
            say(_in_words(model, inner, len(card.label_names)) + "\n")
        title = f"The best of {tried:,} settings, by {metric}" if method == "imcc" else "The model"
        _print(card, output, title)


@click.command(
    epilog=examples(
        "imcc fit train.csv --labels happy,sad -o model.skops",
        "imcc fit yeast -o yeast.skops --clusters 64 --beta 0.1 --kernel laplacian",
        "imcc fit my.arff --labels my.xml -o model.skops --thresholds f1 --scale",
    )
)
@INPUTS
@reading_options
@table_options
@OUTPUT
@click.option(
    "--clusters",
    type=Numbers(int),
    default="32",
    show_default=True,
    help="Number of clusters; several numbers give several clusterings.",
)
@click.option("--alpha", type=float, default=1.0, show_default=True, help="Weight of the centres.")
@click.option("--beta", type=float, default=1.0, show_default=True, help="Penalty on complexity.")
@click.option("--gamma", type=float, default=0.1, show_default=True, help="Pull to the centres.")
@click.option(
    "--kernel", type=click.Choice(KERNELS), default="rbf", show_default=True, help="The kernel."
)
@click.option("--width", type=float, help="Kernel width.  [default: mean distance of the rows]")
@click.option(
    "--width-scale", type=float, default=1.0, show_default=True, help="Factor on the width."
)
@CALIBRATE
@THRESHOLDS
@FOLDS
@SEED
@SCALE
@FILL
@FORCE
@QUIET
@JSON
def fit(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    columns: dict[str, Any],
    output: str,
    clusters: tuple[int, ...],
    alpha: float,
    beta: float,
    gamma: float,
    kernel: str,
    width: float | None,
    width_scale: float,
    calibrate: bool,
    thresholds: str | None,
    folds: int,
    seed: int,
    scale: bool,
    fill_missing: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit a model with given parameters, and save it.

    To search for good parameters, use "imcc tune".  --folds is for --calibrate and --thresholds.
    """
    from sklearn.model_selection import KFold

    from imcc.estimators import IMCCClassifier
    from imcc.persistence import require_skops

    criterion = _criterion(thresholds)
    if not calibrate and criterion is None:
        refuse_options(["folds"], "--calibrate and --thresholds")
    with problems_reported():
        require_skops()
        check_output(output, force)
        with working("reading", quiet=quiet):
            data = _Data(inputs, reading, columns, scale, fill_missing)
        data.show(quiet or as_json)
        classifier = IMCCClassifier(
            clusters if len(clusters) > 1 else clusters[0],
            alpha,
            beta,
            gamma,
            kernel=kernel,
            width="mean_distance" if width is None else width,
            width_scale=width_scale,
            random_state=seed,
        )
        shuffled = KFold(folds, shuffle=True, random_state=seed)
        with working("fitting", quiet=quiet):
            model = data.fit(classifier, calibrate, criterion, shuffled, seed)
        card = _save(model, output, data, {})
    if as_json:
        print_json({**_result(card, model, output), **data.schema_dict()})
    elif not quiet:
        _print(card, output, "The setting")


def _criterion(thresholds: str | None, default: str | None = None) -> str | None:
    """Return the criterion of the thresholds; None if they are not chosen."""
    chosen = default if thresholds is None else thresholds
    return None if chosen == "none" else chosen


class _Data:
    """Training data: a table or a numeric data set."""

    def __init__(
        self,
        inputs: tuple[str, ...],
        reading: dict[str, Any],
        columns: dict[str, Any],
        scale: bool,
        fill_missing: bool,
    ) -> None:
        self.is_table = are_tables(inputs, reading)
        self.scale, self.fill_missing = scale, fill_missing
        if self.is_table:
            for option in changed_options("scale", "fill_missing"):
                raise click.UsageError(
                    f"{option} is for data sets of numbers: the columns of a table are always "
                    "scaled, and their missing values filled in"
                )
            self.source = read_input(inputs, reading)
            self.known = known_columns(self.source.table, reading, columns, need_labels=True)
            self.schema = schema_of(self.source, self.known)
        else:
            refuse_columns(columns)
            self.dataset = _training_data(inputs, reading, fill_missing)

    def show(self, quiet: bool) -> None:
        """Print what the columns of a table are."""
        if self.is_table and not quiet:
            title = f"{self.source.name}: {self.source.table.num_rows:,} rows"
            print_schema(self.schema, title, self.known.drop)

    def fit(
        self, classifier: Any, calibrate: bool, criterion: str | None, cv: KFold, seed: int
    ) -> Any:
        """Return the fitted classifier with its preprocessing and wrappers."""
        from imcc.calibration import MultilabelCalibrator, TunedThresholds

        if not self.is_table:
            wanted = self.scale, self.fill_missing, calibrate, criterion, cv
            model = _wrapped(classifier, self.dataset, *wanted)
            return model.fit(self.dataset.X, self.dataset.Y)
        if calibrate:
            classifier = MultilabelCalibrator(classifier, cv=cv)
        if criterion is not None and not hasattr(classifier, "fit_held_out"):
            classifier, criterion = TunedThresholds(classifier, criterion=criterion, cv=cv), None
        # With held-out scores, the table classifier has trees to add before the thresholds.
        model = make_classifier(classifier, self.known, seed, criterion)
        return fit_table(model, self.source, self.known)

    def card(self, model: Any, metrics: dict[str, float]) -> ModelCard:
        """Return the card of a model of these data."""
        from imcc.persistence import make_card

        if self.is_table:
            return table_card(model, self.source, metrics)
        return make_card(model, self.dataset, metrics=metrics)

    def schema_dict(self) -> dict[str, Any]:
        """Return the schema of a table, for JSON."""
        return {"schema": self.schema.to_dict()} if self.is_table else {}


def _training_data(inputs: tuple[str, ...], reading: dict[str, Any], filled: bool) -> Dataset:
    from imcc.datasets import DataFormatError

    dataset = load(inputs, reading)
    if dataset.has_missing and not filled:
        raise DataFormatError(
            "some values are missing; --fill-missing puts the mean of their column there",
            dataset.source or dataset.name,
        )
    return dataset


def _wrapped(
    classifier: BaseEstimator,
    dataset: Dataset,
    scale: bool,
    fill_missing: bool,
    calibrate: bool,
    criterion: str | None,
    cv: KFold,
) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from imcc.calibration import MultilabelCalibrator, TunedThresholds

    steps: list[tuple[str, Any]] = []
    if fill_missing:
        steps.append(("fill", SimpleImputer(keep_empty_features=True)))
    if scale:
        steps.append(("scale", StandardScaler(with_mean=not dataset.is_sparse)))
    model = Pipeline([*steps, ("imcc", classifier)]) if steps else classifier
    model = MultilabelCalibrator(model, cv=cv) if calibrate else model
    return TunedThresholds(model, criterion=criterion, cv=cv) if criterion else model


def _table_of(results: dict[str, Any], raw: bool) -> str:
    """Return the settings and their cross-validated metrics as CSV."""
    params: list[dict[str, Any]] = results["params"]
    axes = sorted({name for setting in params for name in setting})
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*axes, *METRICS])
    columns = [results[f"mean_test_{name}"] for name in METRICS]
    for i, setting in enumerate(params):
        cells = [*(setting.get(axis, "") for axis in axes), *(c[i] for c in columns)]
        writer.writerow(cells if raw else map(defused, cells))
    return buffer.getvalue()


def _save(model: Any, output: str, data: _Data, metrics: dict[str, float]) -> ModelCard:
    """Write the model, and return its card."""
    from imcc._utils.wrappers import first_with
    from imcc.calibration import TunedThresholds
    from imcc.persistence import save_model

    tuned = first_with(model, "thresholds_")
    if isinstance(tuned, TunedThresholds):
        word = "held-out" if isinstance(tuned.cv, str) else "cross-validated"
        name = f"{word} {tuned.criterion}"
        figures = {
            f"{name}, thresholds at 0": tuned.default_score_,
            f"{name}, thresholds chosen": tuned.best_score_,
        }
        # The score is NaN if no label has enough rows.
        metrics = metrics | {key: value for key, value in figures.items() if isfinite(value)}
    card = data.card(model, metrics)
    save_model(model, output, card=card)
    return card


def _result(card: ModelCard, model: Any, output: str) -> dict[str, Any]:
    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with

    about = card.to_dict()
    del about["label_pairs"], about["columns"]
    tuned = first_with(model, "thresholds_")
    chosen = None if tuned is None else tuned.thresholds_
    return to_plain({"file": output, **about, "thresholds": chosen})


def _print_members(ensemble: Any, tried: int) -> None:
    """Print the members of the ensemble."""
    rows = [
        (
            f"{member['weight']:.3f}",
            member["view"],
            member["kernel"],
            f"{member['width_scale']:g}",
            f"{member['penalty']:.3g}",
            member["n_clusters"] or "-",
        )
        for member in ensemble.members_
    ]
    print_table(
        f"The ensemble: {len(rows)} of {tried:,} kernels and penalties that were tried",
        [
            ("weight", "right"),
            ("features", "left"),
            ("kernel", "left"),
            ("width", "right"),
            ("penalty", "right"),
            ("clusters", "right"),
        ],
        rows,
    )


def _in_words(model: Any, ensemble: Any, n_labels: int) -> str:
    """Return a description of the ensemble."""
    from scipy.special import expit

    from imcc._utils.wrappers import first_with
    from imcc.calibration import decision_thresholds

    if not ensemble.members_:
        return "No kernel helps: every row gets the share of rows that have the label."
    best = ensemble.members_[0]
    shares: dict[str, float] = {}
    for member in ensemble.members_:
        shares[member["kernel"]] = shares.get(member["kernel"], 0.0) + member["weight"]
    kinds = " and ".join(f"{share:.0%} {name}" for name, share in shares.items())
    said = [
        f"In words: {len(ensemble.members_)} kernel models are averaged ({kinds} by weight); the "
        f"heaviest ({best['weight']:.0%}) has the kernel {best['kernel']}, of a width of "
        f"{best['width_scale']:g} times the mean distance of the rows, on {best['view']} features."
    ]
    if ensemble.virtual_weight_ > 0:
        said.append(f"Models with virtual examples have {ensemble.virtual_weight_:.0%}.")
    corrected = first_with(model, "log_losses_")
    if corrected is not None and corrected.weight_ > 0:
        before, after = corrected.log_losses_
        said.append(
            "Boosted trees of the columns that are not text correct their log-odds: the log loss "
            f"of held-out rows decreases from {before:.3f} to {after:.3f}."
        )
    limits = expit(decision_thresholds(model, n_labels))
    if (limits != 0.5).any():
        said.append(
            "Each label has its own threshold, and is predicted where its probability is at least "
            f"that: {limits.min():.2f} to {limits.max():.2f}."
        )
    return " ".join(said)


def _print(card: ModelCard, output: str, title: str) -> None:
    print_table(title, [("", "left"), ("", "left")], list(shown_setting(card).items()))
    if card.metrics:
        figures = [(name, f"{value:.4f}") for name, value in card.metrics.items()]
        print_table("How good it is", [("", "left"), ("", "right")], figures)
    say(f"{card.model} on {card.data_name} ({card.n_rows:,} rows) written to {output}")
