"""``imcc inspect``: the contents of a model file, and explanations of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import ImccError, InvalidArgumentError, given
from imcc._utils.text import printable
from imcc.cli._inputs import (
    check_output,
    fingerprint_of,
    load_matching,
    open_saved,
    shown_setting,
)
from imcc.cli._options import (
    FORCE,
    JSON,
    MODEL,
    QUIET,
    TRUST,
    DataPath,
    examples,
    refuse_options,
    rows_options,
)
from imcc.cli._progress import working
from imcc.cli._tables import print_schema
from imcc.cli._terminal import print_json, print_table, problems_reported, say, shown_message

if TYPE_CHECKING:
    from imcc.inspection._clusters import Inspection
    from imcc.inspection._rows import RowExplanation
    from imcc.persistence._card import ModelCard

# Characters of a bar on either side, and of a cell at most.
_HALF, _LONGEST = 10, 28
# Columns of the nearest rows that are shown: those that matter most.
_SHOWN_COLUMNS = 3


class _Costs(click.ParamType):
    """Two numbers, after the name of a label and an equals sign if they are for it only."""

    name = "[LABEL=]FP,FN"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str | None, tuple[float, float]]:
        label, _, numbers = str(value).rpartition("=")
        try:
            first, second = map(float, numbers.split(","))
        except ValueError:
            self.fail(f"{value!r} is not of the form 1,5 or label=1,5", param, ctx)
        return label or None, (first, second)


@click.command(
    epilog=examples(
        "imcc inspect model.skops",
        "imcc inspect model.skops rows.csv --html page.html",
        "imcc inspect model.skops --html page.html --costs 1,5 --costs refund=20,1",
        "imcc inspect model.skops --data train.csv",
        "imcc inspect model.skops new.csv --row 7 --data train.csv",
        "imcc inspect model.skops train.csv --row T-0041 --label late",
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
    help="Training data: for label correlations, and for the rows that a row is compared with.",
)
@rows_options
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
@click.option(
    "--html",
    metavar="FILE",
    help="Write a page about the model: its quality, its errors and suspect labels, on the rows "
    "given after the model, or on the held-out probabilities that it keeps.",
)
@click.option(
    "--costs",
    type=_Costs(),
    multiple=True,
    help="What a false positive and a false negative cost, for --html: of every label, or of the "
    "one that is named; may be repeated.  The page has the cheapest threshold.",
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
    label: str | None,
    top: int,
    html: str | None,
    costs: tuple[tuple[str | None, tuple[float, float]], ...],
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
    from imcc._utils.plain import to_plain
    from imcc._utils.wrappers import first_with

    if html is not None and row is not None:
        raise click.UsageError("--html is about all rows: leave out --row")
    if costs and html is None:
        raise click.UsageError("--costs is about the page: say where to write it with --html")
    if row is None and (label is not None or (inputs and html is None)):
        raise click.UsageError("rows and --label are about one row: say which with --row")
    if not (inputs or data_inputs):
        refuse_options(["schema"], "reading data, of which none are named")
    with problems_reported():
        if html is not None:
            check_output(html, force)
        model, card = open_saved(model_file, trust)
        about: dict[str, Any] = {"file": model_file, "card": card.to_dict()}
        if html is not None:
            with working("writing the page", quiet=quiet):
                _write_page(
                    model_file, model, card, inputs or data_inputs, reading, html, dict(costs)
                )
            if as_json:
                print_json(to_plain(about | {"page": html}))
            if not quiet:
                say(f"Wrote {html}", err=True)
            return
        with working("reading the training data", quiet=quiet):
            X, Y = _training_data(data_inputs, reading, model, card)
        if row is not None:
            with working("explaining", quiet=quiet):
                rows = X
                if inputs:
                    rows, _ = load_matching(
                        inputs, reading, card, with_labels=False, ignore_extra=True, model=model
                    )
                is_training = not inputs or inputs == data_inputs
                found: Any = _explain(model, card, rows, row, X, Y, is_training)
            about["explanation"] = found.to_dict()
            if not as_json:
                _print_row(found, row, label, top, ", ".join(data_inputs or inputs), X is not None)
        else:
            ensemble = first_with(model, "members_")
            if ensemble is not None:
                found, about["members"] = None, ensemble.members_
            else:
                with working("inspecting", quiet=quiet):
                    found = _clusters(model, card, X, Y)
                about["inspection"] = None if isinstance(found, str) else found.to_dict()
            if not as_json:
                _print_model(model_file, model, card)
                if ensemble is not None:
                    _print_members(ensemble.members_, top)
                elif isinstance(found, str):
                    say(found)
                else:
                    _print_clusters(found, top)
        if as_json:
            print_json(to_plain(about))


def _training_data(
    inputs: tuple[str, ...], reading: dict[str, Any], model: Any, card: ModelCard
) -> tuple[Any, Any]:
    from imcc.datasets import DataFormatError

    if not inputs:
        return None, None
    X, Y = load_matching(inputs, reading, card, with_labels=True, ignore_extra=True, model=model)
    if card.fingerprint and (found := fingerprint_of(X, Y, card)) != card.fingerprint:
        raise DataFormatError(
            f"these are not the data that the model was trained on ({card.data_name}, fingerprint "
            f"{card.fingerprint[:12]}...; this is {found[:12]}...): rows, columns or their order "
            "differ",
            ", ".join(inputs),
        )
    return X, Y


def _write_page(
    model_file: str,
    model: Any,
    card: ModelCard,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    path: str,
    costs: dict[str | None, tuple[float, float]],
) -> None:
    from imcc.inspection import model_page

    # Those of labels that are not named; the page takes all labels by their names.
    prices = dict.fromkeys(card.label_names, costs[None]) if None in costs else {}
    prices |= {name: pair for name, pair in costs.items() if name is not None}
    X = Y = None
    if inputs:
        X, Y = load_matching(
            inputs, reading, card, with_labels=True, ignore_extra=True, model=model
        )
    model_page(
        model,
        X,
        Y,
        path=path,
        title=f"{Path(model_file).name}: {card.data_name}" if card.data_name else model_file,
        costs=prices or None,
        row_names=None if X is None else _ids(model, X),
        label_names=card.label_names or None,
        feature_names=None if X is None or hasattr(X, "columns") else card.feature_names or None,
    )


def _clusters(model: Any, card: ModelCard, X: Any, Y: Any) -> Inspection | str:
    """Return the clusters of a model, or why it has none."""
    from imcc.inspection import inspect_model

    try:
        return inspect_model(model, X, Y, label_names=card.label_names or None)
    except ImccError as error:
        return shown_message(error)


def _explain(
    model: Any,
    card: ModelCard,
    rows: Any,
    row: str,
    X: Any,
    Y: Any,
    is_training: bool,
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
    x = take_rows(rows, [number])
    names = card.label_names or None
    compared = rows if X is None else X
    if compared.shape[0] < 2:
        raise InvalidArgumentError(
            "data", "is needed: there is only one row, and no other row to compare it with"
        )
    return inspection.explain_row(
        model,
        x,
        compared,
        Y,
        names=_ids(model, compared),
        leave_out=[number] if X is None or is_training else [],
        label_names=names,
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
        **({"notes": " ".join(card.notes.splitlines())} if card.notes else {}),
        "made": f"{card.created} by imcc {card.imcc_version}",
    }
    print_table(model_file, [("", "left"), ("", "left")], list(facts.items()))
    if (tables := table_model(model)) is not None:
        print_schema(tables.schema_, "The columns", tuple(tables.drop))


def _print_members(members: list[dict[str, Any]], top: int) -> None:
    columns = {
        "weight": ("weight", "right"),
        "view": ("view", "left"),
        "kernel": ("kernel", "left"),
        "width_scale": ("width", "right"),
        "penalty": ("penalty", "right"),
        "coupling": ("coupling", "right"),
    }
    rows = [
        [f"{one[key]:.3g}" if side == "right" else one[key] for key, (_, side) in columns.items()]
        for one in members[:top]
    ]
    title = f"Members: {len(rows)} of {len(members)}, the heaviest first"
    print_table(title, list(columns.values()), rows)


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
        [("cluster", "right"), ("rows", "right"), ("carry", "left"), ("nearest rows", "left")],
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
    headings = [("label", "left"), ("and", "left"), ("correlation", "right"), ("carried", "right")]
    print_table(title, headings, rows)


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
        [
            *(("column", "left"), ("value", "left"), ("adds", "right"), ("+/-", "right")),
            ("", "left"),  # bars begin with the spaces that put their middles below each other
        ],
        [
            ("background mean", "", f"{columns.baseline[j]:+.3f}", "", ""),
            *(
                # What rounds to zero has a plus, whichever side it is on.
                (
                    _short(name),
                    _short(value),
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
        [("row", "left"), ("feature distance", "right")]
        + ([("labels", "left")] if labels else [])
        + [(name, "left") for name in matter],
        [
            [name, f"{nearest.distances[i]:.3g}", *labels[i : i + 1]]
            + [_short(nearest.values[i][k]) for k in places]
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


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
