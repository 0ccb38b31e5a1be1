"""``imcc inspect``: the contents of a model file, and explanations of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import ImccError, InvalidArgumentError, given
from imcc._utils.files import check_target
from imcc.cli import _options as options
from imcc.cli._inputs import fingerprint_of, load_matching, open_saved
from imcc.cli._progress import working
from imcc.cli._show import print_schema, shown_setting
from imcc.cli._terminal import (
    print_json,
    print_table,
    say,
    shorten,
    shown_message,
)

if TYPE_CHECKING:
    from imcc.inspection._clusters import Inspection
    from imcc.inspection._rows import RowExplanation
    from imcc.persistence._card import ModelCard

# Characters of a bar on either side.
_HALF = 10
# Columns of the nearest rows that are shown: those that matter most.
_SHOWN_COLUMNS = 3


def _costs(value: str) -> tuple[str | None, tuple[float, float]]:
    """Return the name of a label, or None for all labels, and two numbers."""
    label, _, numbers = value.rpartition("=")
    try:
        first, second = map(float, numbers.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not of the form 1,5 or label=1,5") from None
    return label or None, (first, second)


@options.command(
    "imcc inspect model.skops",
    "imcc inspect model.skops rows.csv --html page.html",
    "imcc inspect model.skops --html page.html --costs 1,5 --costs refund=20,1",
    "imcc inspect model.skops --data train.csv",
    "imcc inspect model.skops new.csv --row 7 --data train.csv",
    "imcc inspect model.skops train.csv --row T-0041 --label late",
)
@options.MODEL
@click.argument("inputs", metavar="[NAME_OR_FILE]...", type=options.DataPath(), nargs=-1)
@click.option(
    "--data",
    "data_inputs",
    type=options.DataPath(),
    multiple=True,
    metavar="NAME_OR_FILE",
    help="Training data: for label correlations, and for the rows that a row is compared with.",
)
@options.SCHEMA
@click.option(
    "--row",
    help="Explain the scores of this row, counted from 0, or the id of a row of a table; of the "
    "rows given after the model, or of --data.",
)
@click.option(
    "--label",
    help="Label whose score is explained.  [default: the one that exceeds its threshold the most]",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of clusters, pairs of labels and contributions to show.",
)
@options.file_option(
    "--html",
    help="Write a page about the model: its quality, its errors and suspect labels, on the rows "
    "given after the model, or on the held-out probabilities that it keeps.",
)
@click.option(
    "--costs",
    type=_costs,
    metavar="[LABEL=]FP,FN",
    multiple=True,
    help="What a false positive and a false negative cost, for --html: of every label, or of the "
    "one that is named; may be repeated.  The page has the cheapest threshold.",
)
@options.TRUST
@options.FORCE
@options.QUIET
@options.JSON
def inspect(
    model_file: str,
    inputs: tuple[str, ...],
    data_inputs: tuple[str, ...],
    schema: str | None,
    row: str | None,
    label: str | None,
    top: int,
    html: str | None,
    costs: tuple[tuple[str | None, tuple[float, float]], ...],
    trusted: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Inspect a model, or explain the scores of one row.

    Shows the training data and the metrics of the model, its clusters with their soft labels, and
    the label correlations that they carry.  With --row, shows the contribution of each column of
    the table to the score of a label (Shapley values), and the nearest rows.
    """
    from imcc._utils.plain import to_plain

    if html is None:
        options.refuse_options("the page of --html", costs=costs)
    elif row is not None:
        raise click.UsageError("--html is about all rows: leave out --row")
    if row is None and (label is not None or (inputs and html is None)):
        raise click.UsageError("rows and --label are about one row: say which with --row")
    if not (inputs or data_inputs):
        options.refuse_options("reading data, of which none are named", schema=schema)
    if html is not None:
        check_target(html, overwrite=force)
    model, card = open_saved(model_file, trusted)
    about: dict[str, Any] = {"file": model_file, "card": card.to_dict()}

    def matching(names: tuple[str, ...], with_labels: bool = True) -> tuple[Any, Any]:
        if not names:
            return None, None
        return load_matching(model, card, names, schema, with_labels=with_labels, ignore_extra=True)

    if html is not None:
        with working("writing the page", quiet=quiet):
            title = f"{Path(model_file).name}: {card.data_name}".removesuffix(": ")
            X, Y = matching(inputs or data_inputs)
            _write_page(model, card, X, Y, html, title, dict(costs))
        about["page"] = html
        if not quiet:
            say(f"Wrote {html}", err=True)
    else:
        with working("reading the training data", quiet=quiet):
            X, Y = matching(data_inputs)
            if X is not None:
                _check_training_data(X, Y, card, ", ".join(data_inputs))
        if row is None:
            with working("inspecting", quiet=quiet):
                about |= _inspected(model, card, X, Y)
            if not as_json:
                _print_model(model_file, model, card)
                _print_inspected(about, top)
        else:
            with working("explaining", quiet=quiet):
                rows = matching(inputs, with_labels=False)[0] if inputs else X
                is_training = not inputs or inputs == data_inputs
                explanation = _explain(model, card, rows, row, X, Y, is_training)
            about["explanation"] = explanation.to_dict()
            if not as_json:
                path = ", ".join(data_inputs or inputs)
                _print_row(explanation, row, label, top, path, X is not None)
    if as_json:
        print_json(to_plain(about))


def _check_training_data(X: Any, Y: Any, card: ModelCard, path: str) -> None:
    from imcc.datasets import DataFormatError

    if card.fingerprint and (found := fingerprint_of(X, Y, card)) != card.fingerprint:
        raise DataFormatError(
            f"these are not the data that the model was trained on ({card.data_name}, fingerprint "
            f"{card.fingerprint[:12]}...; this is {found[:12]}...): rows, columns or their order "
            "differ",
            path,
        )


def _write_page(
    model: Any,
    card: ModelCard,
    X: Any,
    Y: Any,
    path: str,
    title: str,
    costs: dict[str | None, tuple[float, float]],
) -> None:
    from imcc.inspection import model_page

    # Those of labels that are not named; the page takes all labels by their names.
    prices = dict.fromkeys(card.label_names, costs[None]) if None in costs else {}
    prices |= {name: pair for name, pair in costs.items() if name is not None}
    model_page(
        model,
        X,
        Y,
        path=path,
        title=title,
        costs=prices or None,
        row_names=None if X is None else _ids(model, X),
        label_names=card.label_names or None,
        feature_names=None if X is None or hasattr(X, "columns") else card.feature_names or None,
    )


def _inspected(model: Any, card: ModelCard, X: Any, Y: Any) -> dict[str, Any]:
    """Return the members of an ensemble, or the clusters of a model, or why it has none."""
    from imcc._utils.wrappers import first_with
    from imcc.inspection import inspect_model

    ensemble = first_with(model, "members_")
    if ensemble is not None:
        return {"members": ensemble.members_}
    try:
        return {"inspection": inspect_model(model, X, Y, label_names=card.label_names or None)}
    except ImccError as error:
        return {"inspection": None, "reason": shown_message(error)}


def _explain(
    model: Any, card: ModelCard, rows: Any, row: str, X: Any, Y: Any, is_training: bool
) -> RowExplanation:
    """Explain a row by its columns, compared with the training data X or else with ``rows``."""
    from imcc import inspection
    from imcc.inspection._mixed import take_rows

    if rows is None:
        raise InvalidArgumentError(
            "row",
            "needs the data that it is a row of: name the file after the model, or pass the "
            "training data with " + given("data"),
        )
    number = _find_row(model, rows, row)
    compared = rows if X is None else X
    if compared.shape[0] < 2:
        raise InvalidArgumentError(
            "data", "is needed: there is only one row, and no other row to compare it with"
        )
    return inspection.explain_row(
        model,
        take_rows(rows, [number]),
        compared,
        Y,
        names=_ids(model, compared),
        leave_out=[number] if X is None or is_training else [],
        label_names=card.label_names or None,
        # The names of the columns of an array are in the card.
        feature_names=None if hasattr(rows, "columns") else card.feature_names or None,
    )


def _find_row(model: Any, rows: Any, row: str) -> int:
    """Return the index of a row, given by its index or id."""
    numbers = [i for i, value in enumerate(_ids(model, rows) or []) if str(value) == row]
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        raise InvalidArgumentError(
            "row",
            f"is {row!r}, the id of {len(numbers)} rows: give the number of one of them, counted "
            f"from 0: {', '.join(map(str, numbers[:5]))}",
        )
    if not row.isdecimal() or int(row) >= rows.shape[0]:
        raise InvalidArgumentError(
            "row",
            f"is {row!r}, but there is no row with this id or number: there are {rows.shape[0]} "
            "rows, counted from 0",
        )
    return int(row)


def _ids(model: Any, rows: Any) -> list[Any] | None:
    """Return the ids of the rows of a table, if it has any."""
    from imcc.tables._predict import table_model

    tables = table_model(model)
    names = [] if tables is None else tables.schema_.of_kind("id")
    return next((rows[name].to_pylist() for name in names if name in rows.column_names), None)


def _print_model(model_file: str, model: Any, card: ModelCard) -> None:
    from imcc.tables._predict import table_model

    setting = ", ".join(f"{name} {value}" for name, value in shown_setting(card).items())
    rows = "" if card.n_rows is None else f", {card.n_rows:,} rows"
    facts = {
        "model": card.model,
        "setting": setting,
        "training data": (card.data_name or "not known") + rows,
        "fingerprint": card.fingerprint or "not known",
        "features": f"{len(card.feature_names):,}",
        "labels": f"{len(card.label_names):,}",
        **{name: f"{value:.4f}" for name, value in card.metrics.items()},
        "made": f"{card.created} by imcc {card.imcc_version}",
    }
    print_table(model_file, ("", ""), list(facts.items()))
    if (tables := table_model(model)) is not None:
        print_schema(tables.schema_, "The columns", tuple(tables.drop))


def _print_inspected(about: dict[str, Any], top: int) -> None:
    """Print members or clusters, or why there are none."""
    if "members" in about:
        members = about["members"]
        print_table(
            f"Members: {min(top, len(members))} of {len(members)}, the heaviest first",
            (">weight", "view", "kernel", ">width", ">penalty", ">coupling"),
            [
                (
                    f"{one['weight']:.3g}",
                    one["view"],
                    one["kernel"],
                    *(f"{one[name]:.3g}" for name in ("width_scale", "penalty", "coupling")),
                )
                for one in members[:top]
            ],
        )
    elif about["inspection"] is None:
        say(about["reason"])
    else:
        _print_clusters(about["inspection"], top)


def _print_clusters(found: Inspection, top: int) -> None:
    clusters = [
        (
            cluster.index,
            cluster.size,
            found.frequent_labels(cluster, 4),
            ", ".join(str(number) for number, _ in cluster.nearest) or "not known",
        )
        for cluster in found.largest(top)
    ]
    print_table(
        f"Virtual examples: {len(clusters)} of {len(found.clusters)} clusters, the largest first",
        (">cluster", ">rows", "carry", "nearest rows"),
        clusters,
    )
    correlations = found.correlations
    known = correlations.total is not None
    title = "Label correlations, and the part that the virtual examples carry"
    if known:
        title += f": {correlations.share:.0%} (clusters at random: {correlations.by_chance:.1%})"
    rows = [
        (first, second, f"{total:+.3f}" if known else "-", f"{carried:+.3f}")
        for first, second, total, carried in correlations.strongest(top)
    ]
    print_table(title, ("label", "and", ">correlation", ">carried"), rows)


def _print_row(
    found: RowExplanation, row: str, label: str | None, top: int, path: str, is_training: bool
) -> None:
    """Print the explanation of a row by its columns, and the nearest rows."""
    columns, nearest = found.columns, found.nearest
    j = columns.index(label)
    parts = columns.parts(j, top)
    lines = [(p.column, p.value, p.contribution, f"{p.standard_error:.3f}") for p in parts]
    if others := len(columns.columns) - len(parts):
        rest = float(columns.contributions[:, j].sum()) - sum(p.contribution for p in parts)
        lines.append((f"{others} others together", "", rest, ""))
    reach = max((abs(size) for _, _, size, _ in lines), default=0.0)
    print_table(
        f"Row {row}, {columns.label_names[j]}: {columns.decision(j)}; what adds to the "
        f"{columns.scale}:",
        # Bars begin with the spaces that put their middles below each other.
        ("column", "value", ">adds", ">+/-", ""),
        [
            ("background mean", "", f"{columns.baseline[j]:+.3f}", "", ""),
            *(
                # What rounds to zero has a plus, whichever side it is on.
                (
                    shorten(name),
                    shorten(value),
                    f"{round(size, 3) + 0.0:+.3f}",
                    error,
                    _signed_bar(size, reach),
                )
                for name, value, size, error in lines
            ),
            (f"the {columns.scale}", "", f"{columns.scores[j]:+.3f}", "", ""),
        ],
    )
    source = f"{path}, {'' if is_training else 'not known to be '}the training data"
    how = "all sets of columns"
    if columns.n_pairs:
        how = f"{columns.n_pairs} pairs of opposite orders of the columns per background row"
    say(
        f"Background: {columns.n_background:,} of {columns.n_rows:,} rows of {source}\nShapley "
        f"values from {how}, {columns.n_evaluations:,} mixed rows; +/-: one standard error\n"
    )
    matter = [p.column for p in columns.parts(j) if p.column in nearest.columns][:_SHOWN_COLUMNS]
    places = [nearest.columns.index(name) for name in matter]
    labels = [", ".join(names) or "none" for names in nearest.labels or ()]
    print_table(
        f"The nearest rows of {source}",
        (
            "row",
            ">feature distance",
            *(("labels",) if labels else ()),
            *(f"<{name}" for name in matter),
        ),
        [
            (
                name,
                f"{nearest.distances[i]:.3g}",
                *labels[i : i + 1],
                *(shorten(nearest.values[i][k]) for k in places),
            )
            for i, name in enumerate(nearest.names)
        ],
    )
    if left_out := len(nearest.columns) - len(places):
        say(f"{left_out} more column(s) of these rows: --json")


def _signed_bar(value: float, reach: float) -> str:
    """Return a bar from the middle: to the left if negative, to the right if positive.

    >>> _signed_bar(-0.5, 1.0), _signed_bar(0.4, 1.0)
    ('     -----|          ', '          |++++      ')
    """
    size = round(_HALF * abs(value) / reach) if reach > 0 else 0
    left, right = ("-" * size, "") if value < 0 else ("", "+" * size)
    return f"{left.rjust(_HALF)}|{right.ljust(_HALF)}"
