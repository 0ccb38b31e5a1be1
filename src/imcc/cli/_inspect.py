"""``imcc inspect``: the contents of a model file, and explanations of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import ImccError, InvalidArgumentError, given
from imcc._utils.progress import progress_reported_to
from imcc.cli._choices import BY
from imcc.cli._evaluate import judge_probabilities, print_probabilities
from imcc.cli._inputs import (
    check_output,
    load,
    load_matching,
    open_saved,
    refuse_classes,
    shown_setting,
)
from imcc.cli._options import (
    FORCE,
    JSON,
    MODEL,
    QUIET,
    READING,
    TRUST,
    DataPath,
    examples,
    reading_options,
    refuse_options,
)
from imcc.cli._progress import working
from imcc.cli._row import find_row, one_row, print_report, read_rows, report_row, training_rows
from imcc.cli._tables import (
    are_tables,
    print_schema,
    table_model,
    table_rows,
    takes_frames,
)
from imcc.cli._terminal import print_json, print_table, problems_reported, say, shown_message

if TYPE_CHECKING:
    from imcc.datasets import Dataset
    from imcc.inspection import CalibrationDiagnostics, Explanation, Inspection, RowReport
    from imcc.persistence import ModelCard


@click.command(
    epilog=examples(
        "imcc inspect model.skops",
        "imcc inspect model.skops --html model.html",
        "imcc inspect model.skops new.csv --row 7 --data train.csv",
        "imcc inspect model.skops train.csv --row T-0041 --label late --html row.html",
        "imcc inspect model.skops new.csv --row 0 --data train.csv --by evidence",
        "imcc inspect calibrated.skops --test test.csv --html model.html",
    )
)
@MODEL
@click.argument("inputs", metavar="[NAME_OR_FILE]...", type=DataPath(), nargs=-1)
@click.option(
    "--data",
    "data_inputs",
    type=DataPath(),
    multiple=True,
    metavar="NAME_OR_FILE",
    help="Training data, for the background and the nearest rows of a row; needed for --by "
    "evidence, and for linear models.",
)
@reading_options
@click.option(
    "--row",
    help="Explain the scores of this row, counted from 0, or the id of a row of a table; of the "
    "rows given after the model, or of --data.",
)
@click.option(
    "--rows",
    "row_inputs",
    type=DataPath(),
    multiple=True,
    metavar="NAME_OR_FILE",
    help="The same as giving the rows after the model.",
)
@click.option(
    "--background",
    "background_inputs",
    type=DataPath(),
    multiple=True,
    metavar="NAME_OR_FILE",
    help="Rows that the row is compared with.  [default: the training data if given, otherwise "
    "the rows that contain it]",
)
@click.option(
    "--test",
    "test_inputs",
    type=DataPath(),
    multiple=True,
    metavar="NAME_OR_FILE",
    help="Rows with labels that the model was not trained on, to evaluate its probabilities; also "
    "on the page (--html).",
)
@click.option(
    "--label",
    "wanted",
    multiple=True,
    help="Label whose score is explained; may be repeated.  [default: the one that exceeds its "
    "threshold the most]",
)
@click.option(
    "--by",
    type=click.Choice(BY),
    default="columns",
    show_default=True,
    help="Explain by the columns of the table (any model), by the labels of training rows and "
    "clusters, by similar rows, by features (linear models), or by members (ensembles).",
)
@click.option(
    "--background-rows",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Maximum number of background rows, for --by columns.",
)
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    default=2**14,
    show_default=True,
    help="Maximum number of mixed rows that are scored, for --by columns; with more, the values "
    "are exact for more columns.",
)
@click.option(
    "--columns",
    "max_columns",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    help="If there are more columns, the least important ones form one group.",
)
@click.option(
    "--nearest",
    "n_nearest",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of nearest rows to show.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for --by columns and for the intervals of --test.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of clusters, pairs of labels and contributions to show.",
)
@click.option("--html", type=click.Path(), metavar="FILE", help="Write everything to an HTML page.")
@click.option("--draw-clusters", "clusters_file", metavar="FILE", help="Plot the soft labels.")
@click.option("--draw-correlations", "pairs_file", metavar="FILE", help="Plot label correlations.")
@click.option("--draw-map", "map_file", metavar="FILE", help="Plot rows and centres in a plane.")
@click.option(
    "--draw-columns", "columns_file", metavar="FILE", help="Plot the contributions of the columns."
)
@TRUST
@FORCE
@QUIET
@JSON
def inspect(
    model_file: str,
    inputs: tuple[str, ...],
    data_inputs: tuple[str, ...],
    reading: dict[str, Any],
    row: str | None,
    row_inputs: tuple[str, ...],
    background_inputs: tuple[str, ...],
    test_inputs: tuple[str, ...],
    wanted: tuple[str, ...],
    by: str,
    background_rows: int,
    evaluations: int,
    max_columns: int,
    n_nearest: int,
    seed: int,
    top: int,
    html: str | None,
    clusters_file: str | None,
    pairs_file: str | None,
    map_file: str | None,
    columns_file: str | None,
    trust: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Inspect a model, or explain the scores of one row.

    Shows the training data and the metrics of the model, its clusters with their soft labels, and
    the label correlations that they carry.  With --row, shows the contribution of each column of
    the table to the score of a label (Shapley values), and the nearest rows.
    """
    from imcc import inspection
    from imcc._utils.plain import to_plain

    if inputs and row_inputs:
        raise click.UsageError("name the rows after the model, or with --rows: not both")
    row_inputs = inputs or row_inputs
    asked = row_inputs or background_inputs or wanted or columns_file or by != "columns"
    if row is None and asked:
        raise click.UsageError(
            "rows, --background, --label, --by and --draw-columns are about one row: say which "
            "with --row"
        )
    if by != "columns" and (background_inputs or columns_file):
        raise click.UsageError("--background and --draw-columns are for --by columns")
    if row is None or by != "columns":
        refuse_options(
            ["n_nearest", "background_rows", "evaluations", "max_columns"],
            "what the columns of one row add (--row, by columns)",
        )
        if not test_inputs:
            refuse_options(["seed"], "what the columns of one row add (--row), and --test")
    if not (row_inputs or data_inputs or background_inputs or test_inputs):
        refuse_options(list(READING), "reading data, of which none are named")
    drawn = [
        file
        for file in (html, clusters_file, pairs_file, map_file, columns_file)
        if file is not None
    ]
    with problems_reported():
        for file in drawn:
            check_output(file, force)
        model, card = open_saved(model_file, trust)
        with working("reading the training data", quiet=quiet):
            training = _training(data_inputs, reading, model, card)
        found: Inspection | None = None
        remark = ""
        try:
            with working("inspecting", quiet=quiet):
                found = _inspection(model, card, training)
        except ImccError as error:  # a model without virtual examples: only its card is shown
            draws_them = clusters_file or pairs_file or map_file
            needs_them = draws_them or (by != "columns" and not _has_members(model))
            if needs_them or (html is not None and row is None):
                raise
            remark = shown_message(error)
        explained: list[Explanation] = []
        report = None
        if row is not None and by == "columns":
            report = _report(
                model,
                card,
                training,
                (data_inputs, row_inputs, background_inputs),
                reading,
                row,
                labels=wanted,
                n_nearest=n_nearest,
                has_clusters=found is not None,
                sizes={
                    "n_background": background_rows,
                    "max_evaluations": evaluations,
                    "max_columns": max_columns,
                    "random_state": seed,
                },
                quiet=quiet,
            )
        elif row is not None:
            with working("explaining", quiet=quiet):
                explained = _explanations(
                    model, card, training, row_inputs, reading, row, wanted, by
                )
        judged = None
        if test_inputs:
            with working("judging probabilities", quiet=quiet):
                judged = _judged(model, card, test_inputs, reading, seed)
        if found is not None:
            if clusters_file is not None:
                inspection.draw_clusters(found, clusters_file)
            if pairs_file is not None:
                inspection.draw_correlations(found, pairs_file)
            if map_file is not None:
                inspection.draw_map(found, map_file)
        if report is not None and columns_file is not None:
            inspection.draw_columns(report.attribution, columns_file, top=top)
        if html is not None:
            inspection.write_page(
                html,
                found,
                title=f"{card.model} on {card.data_name or 'unnamed data'}",
                facts={"file": model_file, **_facts(card)},
                explanations=[(f"row {row}", one) for one in explained],
                rows=[] if report is None else [(report, wanted)],
                calibration=judged,
            )
    if as_json:
        about = card.to_dict()
        del about["label_pairs"]
        print_json(
            to_plain(
                {
                    "file": model_file,
                    "card": about,
                    "inspection": None if found is None else found.to_dict(),
                    "explanations": [one.to_dict(top) for one in explained],
                    **({} if report is None else {"row": report.to_dict()}),
                    **({} if judged is None else {"probabilities": judged.to_dict()}),
                    **({"members": _members(model)} if _has_members(model) else {}),
                }
            )
        )
    else:
        if report is None:
            _print_model(model_file, model, card)
        if report is None and _has_members(model):
            _print_members(model, top)
        elif found is None and report is None:
            say(remark)
        elif found is not None and report is None:
            _print_clusters(found, top)
            _print_correlations(found, top)
        if judged is not None:
            order = sorted(range(len(judged.labels)), key=lambda j: -judged.labels[j].support)
            print_probabilities(judged, order[:top])
        for one in explained:
            _print_explanation(one, row, top)
        if report is not None:
            print_report(report, wanted, top)
    for file in drawn if not quiet else ():
        say(f"Wrote {file}", err=True)


def _print_model(model_file: str, model: Any, card: ModelCard) -> None:
    print_table(model_file, [("", "left"), ("", "left")], list(_facts(card).items()))
    if (tables := table_model(model)) is not None:
        print_schema(tables.schema_, "The columns", tuple(tables.drop))


def _report(
    model: Any,
    card: ModelCard,
    training: Dataset | _Training | None,
    files: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    reading: dict[str, Any],
    row: str,
    **options: Any,
) -> RowReport:
    """Explain a row by its columns; the files are training data, rows and background."""
    data_inputs, row_inputs, background_inputs = files
    known = training_rows(training, data_inputs)
    if row_inputs:
        rows = read_rows(model, card, row_inputs, reading)
    elif known is not None:
        rows = known
    else:
        raise _no_rows()
    if known is None and rows.is_training:
        known = rows
    background = None
    if background_inputs:
        background = read_rows(model, card, background_inputs, reading)
    return report_row(model, card, rows, known, background, row, **options)


def _no_rows() -> InvalidArgumentError:
    return InvalidArgumentError(
        "row",
        "is a row of which data? Name the file after the model (or with "
        + given("rows")
        + "), or pass the training data with "
        + given("data"),
    )


def _judged(
    model: Any, card: ModelCard, inputs: tuple[str, ...], reading: dict[str, Any], seed: int
) -> CalibrationDiagnostics:
    refuse_classes(model, "judge")
    with progress_reported_to(None):
        X, Y = load_matching(
            inputs, reading, card, with_labels=True, ignore_extra=True, model=model
        )
    found = judge_probabilities(model, X, Y, card.label_names, seed=seed)
    if found is None:
        raise InvalidArgumentError(
            "test",
            "is for models with probabilities, and this one has scores only: train it with "
            "--calibrate, wrap it in MultilabelCalibrator(model, cv='prefit') in Python, or "
            "evaluate its scores with imcc evaluate",
        )
    return found


@dataclass(frozen=True)
class _Training:
    """The training data of a model that takes tables."""

    X: Any
    Y: Any


def _training(
    inputs: tuple[str, ...], reading: dict[str, Any], model: Any, card: ModelCard
) -> Dataset | _Training | None:
    if not inputs:
        return None
    from imcc.tables._read import table_fingerprint

    is_table = are_tables(inputs, reading)
    if is_table and (table_model(model) is not None or takes_frames(model, card)):
        X, Y, source = table_rows(model, card, inputs, reading, with_labels=True, ignore_extra=True)
        _check_fingerprint(card, table_fingerprint(source.table), source.path)
        return _Training(X, Y)
    if "labels" not in reading and "label_prefix" not in reading and len(inputs) == 1:
        reading = _with_labels(inputs[0], reading, card)
    dataset = load(inputs, reading)
    if card.fingerprint:
        _check_fingerprint(card, dataset.fingerprint(), dataset.source or dataset.name)
    return dataset


def _check_fingerprint(card: ModelCard, found: str, path: str) -> None:
    from imcc.datasets import DataFormatError

    if card.fingerprint and found != card.fingerprint:
        raise DataFormatError(
            f"these are not the data that the model was trained on ({card.data_name}, fingerprint "
            f"{card.fingerprint[:12]}...; this is {found[:12]}...): rows, columns or their order "
            "differ",
            path,
        )


def _with_labels(name: str, reading: dict[str, Any], card: ModelCard) -> dict[str, Any]:
    """Add the label names of the card to the reading options of a table."""
    if name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")) or name == "-":
        return {**reading, "labels": list(card.label_names)}
    return reading


def _inspection(model: Any, card: ModelCard, training: Dataset | _Training | None) -> Inspection:
    from imcc.inspection import inspect_model

    if training is not None:
        return inspect_model(model, training.X, training.Y, label_names=card.label_names)
    names = card.label_names or None
    return inspect_model(model, label_names=names, together=card.together())


def _explanations(
    model: Any,
    card: ModelCard,
    training: Dataset | _Training | None,
    row_inputs: tuple[str, ...],
    reading: dict[str, Any],
    row: str,
    labels: tuple[str, ...],
    by: str,
) -> list[Explanation]:
    import numpy as np

    from imcc.inspection import Explainer

    if row_inputs:
        X, _ = load_matching(
            row_inputs, reading, card, with_labels=False, ignore_extra=True, model=model
        )
    elif training is not None:
        X = training.X
    else:
        raise _no_rows()
    x = one_row(X, find_row(model, X, row))
    data = (None, None) if training is None else (training.X, training.Y)
    explainer = Explainer(model, *data, label_names=card.label_names)
    scores = np.atleast_2d(model.decision_function(x))[0]
    wanted: list[Any] = list(labels) or [int(np.argmax(scores))]
    return [explainer.explain(x, label, by) for label in wanted]


def _facts(card: ModelCard) -> dict[str, str]:
    setting = ", ".join(f"{name} {value}" for name, value in shown_setting(card).items())
    data = card.data_name or "not known"
    if card.n_rows is not None:
        data += f", {card.n_rows:,} rows"
    return {
        "model": card.model,
        "setting": setting,
        "training data": data,
        "fingerprint": card.fingerprint or "not known",
        "features": f"{len(card.feature_names):,}",
        "labels": f"{len(card.label_names):,}",
        **{name: f"{value:.4f}" for name, value in card.metrics.items()},
        **({"notes": " ".join(card.notes.splitlines())} if card.notes else {}),
        "made": f"{card.created} by imcc {card.imcc_version}",
    }


def _has_members(model: Any) -> bool:
    """Return whether a model is an ensemble, with members instead of virtual examples."""
    from imcc._utils.wrappers import first_with

    return first_with(model, "members_") is not None


def _members(model: Any) -> list[dict[str, Any]]:
    from imcc._utils.wrappers import first_with

    layer: Any = first_with(model, "members_")
    return list(layer.members_)


def _print_members(model: Any, top: int) -> None:
    members = _members(model)
    rows = [
        (
            f"{member['weight']:.3f}",
            member["view"],
            member["kernel"],
            f"{member['width_scale']:g}",
            f"{member['penalty']:.3g}",
            f"{member['eta']:g}",
            member["n_clusters"],
        )
        for member in members[:top]
    ]
    print_table(
        f"Members: {len(rows)} of {len(members)}, the heaviest first",
        [
            ("weight", "right"),
            ("view", "left"),
            ("kernel", "left"),
            ("width", "right"),
            ("penalty", "right"),
            ("coupling", "right"),
            ("virtual examples", "right"),
        ],
        rows,
    )


def _print_clusters(found: Inspection, top: int) -> None:
    import numpy as np

    shown = found.largest(top)
    rows = []
    for cluster in shown:
        shares = cluster.shares
        order = [j for j in np.argsort(-shares, kind="stable")[:4] if shares[j] > 0]
        most = ", ".join(f"{found.label_names[j]} {shares[j]:.0%}" for j in order)
        nearest = ", ".join(str(number) for number, _ in cluster.nearest)
        rows.append((cluster.index, cluster.size, most or "no label", nearest or "not known"))
    print_table(
        f"Virtual examples: {len(shown)} of {len(found.clusters)} clusters, the largest first",
        [("cluster", "right"), ("rows", "right"), ("carry", "left"), ("nearest rows", "left")],
        rows,
    )


def _print_correlations(found: Inspection, top: int) -> None:
    import numpy as np

    pairs = found.correlations.strongest(top)
    if not pairs:
        return
    title = "Label correlations, and the part that the virtual examples carry"
    if not np.isnan(found.correlations.share):
        title += (
            f": {found.correlations.share:.0%} "
            f"(clusters at random: {found.correlations.by_chance:.1%})"
        )
    rows = [
        (a, b, "-" if np.isnan(total) else f"{total:+.3f}", f"{carried:+.3f}")
        for a, b, total, carried in pairs
    ]
    print_table(
        title,
        [("label", "left"), ("and", "left"), ("correlation", "right"), ("carried", "right")],
        rows,
    )


def _print_explanation(one: Explanation, row: str | None, top: int) -> None:
    verdict = "predicted" if one.score >= one.threshold else "not predicted"
    parts = one.top(top)
    rows = [
        (p.name, f"{p.weight:+.4f}", f"{p.value:+.4f}", f"{p.contribution:+.4f}") for p in parts
    ]
    count = sum(len(weights) for weights in one.weights.values()) - len(parts)
    rest = sum(one.totals().values()) - one.constant - sum(p.contribution for p in parts)
    if count:
        rows.append((f"{count} others", "", "", f"{rest:+.4f}"))
    constants = {"support": "intercept", "features": "the mean row"}
    if one.by in constants:
        rows.append((constants[one.by], "", "", f"{one.constant:+.4f}"))
    elif one.by == "evidence":
        totals = one.totals()
        rows.append(("real rows together", "", "", f"{totals['row']:+.4f}"))
        rows.append(("virtual examples together", "", "", f"{totals['center']:+.4f}"))
    print_table(
        f"Row {row}, {one.label}: score {one.score:+.4f}, {verdict} (from {one.threshold:+.4f} on)"
        f"; by {one.by}",
        [("part", "left"), ("weight", "right"), ("value", "right"), ("contribution", "right")],
        rows,
    )
