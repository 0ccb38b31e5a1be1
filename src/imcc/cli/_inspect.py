"""``imcc inspect``: the contents of a model file, and a page about the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import ImccError
from imcc._utils.files import check_target
from imcc.cli import _options as options
from imcc.cli._inputs import load_matching, open_saved
from imcc.cli._progress import working
from imcc.cli._show import print_schema, shown_setting
from imcc.cli._terminal import print_json, print_table, say, shown_message

if TYPE_CHECKING:
    from imcc.persistence._card import ModelCard

# Members of an ensemble, or clusters, that are shown.
_TOP = 10


@options.command(
    "imcc inspect model.skops",
    "imcc inspect model.skops --html page.html",
    "imcc inspect model.skops rows.csv --html page.html",
)
@options.MODEL
@click.argument("inputs", metavar="[NAME_OR_FILE]...", type=click.Path(), nargs=-1)
@options.SCHEMA
@options.file_option(
    "--html",
    help="Write a page about the model: its quality, its errors and suspect labels, on the rows "
    "given after the model, or on the held-out probabilities that it keeps.",
)
@options.TRUST
@options.FORCE
@options.QUIET
@options.JSON
def inspect(
    model_file: str,
    inputs: tuple[str, ...],
    schema: str | None,
    html: str | None,
    trusted: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show what a model file contains, or write a page about the model.

    Shows the training data and the metrics of the model, the columns of its table, and its clusters
    with their most frequent labels, or the members of an ensemble.
    """
    from imcc._utils.plain import to_plain

    if html is not None:
        check_target(html, overwrite=force)
    elif inputs:
        raise click.UsageError("rows are for the page about a model: name its file with --html")
    if not inputs:
        options.refuse_options("reading rows, of which none are named", schema=schema)
    model, card = open_saved(model_file, trusted)
    about: dict[str, Any] = {"file": model_file, "card": card.to_dict()}
    if html is not None:
        with working("writing the page", quiet=quiet):
            _write_page(model, card, inputs, schema, html, model_file)
        about["page"] = html
        if not quiet:
            say(f"Wrote {html}", err=True)
    else:
        about |= _inspected(model, card)
        if not as_json:
            _print_model(model_file, model, card)
            _print_inspected(about)
    if as_json:
        print_json(to_plain(about))


def _write_page(
    model: Any,
    card: ModelCard,
    inputs: tuple[str, ...],
    schema: str | None,
    path: str,
    model_file: str,
) -> None:
    from imcc.inspection import model_page

    X = Y = None
    if inputs:
        X, Y = load_matching(model, card, inputs, schema, with_labels=True, ignore_extra=True)
    model_page(
        model,
        X,
        Y,
        path=path,
        title=f"{Path(model_file).name}: {card.data_name}".removesuffix(": "),
        row_names=None if X is None else _ids(model, X),
        label_names=card.label_names or None,
        feature_names=None if X is None or hasattr(X, "columns") else card.feature_names or None,
    )


def _inspected(model: Any, card: ModelCard) -> dict[str, Any]:
    """Return the members of an ensemble, or the clusters of a model, or why it has none."""
    from imcc._utils.wrappers import first_with
    from imcc.inspection import inspect_model

    ensemble = first_with(model, "members_")
    if ensemble is not None:
        return {"members": ensemble.members_}
    try:
        return {"inspection": inspect_model(model, label_names=card.label_names or None)}
    except ImccError as error:
        return {"inspection": None, "reason": shown_message(error)}


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


def _print_inspected(about: dict[str, Any]) -> None:
    """Print members or clusters, or why there are none."""
    if "members" in about:
        members = about["members"]
        print_table(
            f"Members: {min(_TOP, len(members))} of {len(members)}, the heaviest first",
            (">weight", "view", "kernel", ">width", ">penalty", ">coupling"),
            [
                (
                    f"{one['weight']:.3g}",
                    one["view"],
                    one["kernel"],
                    *(f"{one[name]:.3g}" for name in ("width_scale", "penalty", "coupling")),
                )
                for one in members[:_TOP]
            ],
        )
    elif about["inspection"] is None:
        say(about["reason"])
    else:
        found = about["inspection"]
        largest = found.largest(_TOP)
        print_table(
            f"Virtual examples: {len(largest)} of {len(found.sizes)} clusters, the largest first",
            (">cluster", ">rows", "carry"),
            [(k, found.sizes[k], found.frequent_labels(k, 4)) for k in largest],
        )
