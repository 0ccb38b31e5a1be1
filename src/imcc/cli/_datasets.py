"""``imcc datasets``: list, describe, fetch and convert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.progress import part
from imcc.cli._choices import DEFAULT_DATASET
from imcc.cli._inputs import are_tables, check_output, load
from imcc.cli._options import (
    FORCE,
    JSON,
    DataPath,
    converting_options,
    data_options,
    examples,
    refuse_options,
)
from imcc.cli._progress import working
from imcc.cli._tables import print_schema, read_table, refuse_columns
from imcc.cli._terminal import print_json, print_table, problems_reported, say, shown_message

if TYPE_CHECKING:
    from imcc.datasets import Dataset, Description
    from imcc.tables import KnownColumns, Schema
    from imcc.tables._load import TableSource


@click.group(
    epilog=examples(
        "imcc datasets list",
        "imcc datasets describe my.arff --labels my.xml",
        "imcc datasets convert my.arff my.npz",
    )
)
def datasets() -> None:
    """List, describe, fetch and convert data sets."""


@datasets.command("list", epilog=examples("imcc datasets list", "imcc datasets list --json"))
@JSON
def list_(as_json: bool) -> None:
    """List the named data sets."""
    from rich.filesize import decimal

    from imcc.datasets import dataset_info, list_datasets
    from imcc.datasets._load import is_available

    with problems_reported():
        infos = [dataset_info(name) for name in list_datasets()]
        rows: list[dict[str, Any]] = [
            {
                "name": info.name,
                "group": info.group,
                "rows": info.n_rows,
                "features": info.n_features,
                "labels": info.n_labels,
                "type": info.feature_type,
                "bytes": info.size,
                "available": is_available(info.name),
            }
            for info in infos
        ]
    if as_json:
        about = [
            {"citation": info.citation, "urls": [file.url for file in info.files]} for info in infos
        ]
        print_json([row | more for row, more in zip(rows, about, strict=True)])
        return
    numbers = ("rows", "features", "labels", "bytes")
    for row in rows:
        row["bytes"] = decimal(row["bytes"])
        row["available"] = "yes" if row["available"] else "to fetch"
    headings = [(name, "right" if name in numbers else "left") for name in rows[0]]
    print_table("Data sets", headings, [list(row.values()) for row in rows])


@datasets.command(
    epilog=examples(
        "imcc datasets describe yeast",
        "imcc datasets describe my.csv --labels happy,sad",
        "imcc datasets describe my.csv --labels happy,sad --schema-to my.toml",
        "cat my.csv | imcc datasets describe - --labels 'is_*'",
    )
)
@click.argument("inputs", metavar="[NAME_OR_FILE]...", type=DataPath(), nargs=-1)
@data_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of labels and pairs of labels to show.",
)
@click.option(
    "--schema-to",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write what the columns of a table are to a TOML file, to edit it and use it as --schema.",
)
@FORCE
@JSON
def describe(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    columns: dict[str, Any],
    top: int,
    schema_to: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Describe a data set: a name, a file, or files to be joined (yeast by default).

    For a table (CSV, TSV, Parquet), show the kinds of its columns and how they are encoded, and its
    labels if they are named.
    """
    import imcc.datasets as data
    from imcc.tables import write_schema

    if schema_to is None:
        refuse_options(["force"], "--schema-to")
    shown: dict[str, Any] = {}
    with problems_reported():
        inputs = inputs or (DEFAULT_DATASET,)
        dataset: data.Dataset | None
        if are_tables(inputs, reading):
            if schema_to is not None:
                check_output(schema_to, force)
            with working("reading"):
                source, known, schema = read_table(inputs, reading, columns, need_labels=False)
            dataset = _labels_only(source, known, schema)
            shown = {"schema": schema.to_dict(), "n_rows": source.table.num_rows}
            if schema_to is not None:
                write_schema(
                    schema,
                    schema_to,
                    tags=known.tags,
                    separator=known.separator,
                    drop=known.drop,
                    unknown_labels=known.unknown_labels,
                    reading=known.reading,
                )
        else:
            if schema_to is not None:
                raise InvalidTypeError("schema_to", "is for tables (CSV, TSV, Parquet)")
            refuse_columns(columns)
            with working("reading"):
                dataset = load(inputs, reading)
        facts = None if dataset is None else data.describe(dataset, n_pairs=top)
    if as_json:
        about = {} if facts is None else facts.to_dict()
        if shown:
            about = {key: value for key, value in about.items() if key not in _KEYS_OF_FEATURES}
        path = source.path if shown else dataset.source if dataset is not None else None
        print_json({**about, **shown, "source": path})
    else:
        if shown:
            title = f"{source.name}: {source.table.num_rows:,} rows"
            print_schema(schema, title, known.drop)
        if facts is not None:
            _print_description(facts, top, table=bool(shown))
    if schema_to is not None:
        say(f"Wrote {schema_to}", err=True)


@datasets.command(
    epilog=examples(
        "imcc datasets example customers.csv",
        "imcc tune customers.csv --labels complaint,refund,upgrade,senior,remote,praise -o m.skops",
    )
)
@click.argument("output", metavar="FILE", type=click.Path(dir_okay=False))
@click.option(
    "--rows", type=click.IntRange(min=20), default=800, show_default=True, help="Number of rows."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
)
@FORCE
@JSON
def example(output: str, rows: int, seed: int, force: bool, as_json: bool) -> None:
    """Write a synthetic example table as CSV.

    Messages of customers to a company: an id, six numbers, two categories and a text, with 6 % of
    the cells missing, and six labels as columns of 0 and 1.  The same seed gives the same file.
    """
    from imcc.tables import example_table
    from imcc.tables._example import write_example

    with problems_reported():
        check_output(output, force)
        if Path(output).suffix.lower() != ".csv":
            raise InvalidArgumentError("output", f"is {output}, and a .csv file is written")
        write_example(output, rows, seed)
        labels = list(example_table(rows, seed)[1].columns)
    if as_json:
        print_json({"file": output, "rows": rows, "labels": labels})
    else:
        say(f"{rows:,} rows written to {output}; the labels are {', '.join(labels)}")


def _labels_only(source: TableSource, known: KnownColumns, schema: Schema) -> Dataset | None:
    """Return a data set with the labels of a table and empty features."""
    import scipy.sparse as sp

    from imcc.datasets import Dataset

    if not known.label_columns:
        return None
    Y, names = source.labels(known)
    features = schema.features or ["none"]
    X = sp.csr_array((source.table.num_rows, len(features)))
    return Dataset(X, Y == 1, tuple(features), tuple(names), source.name, source=source.path)


# Facts about the features of a data set, as text and in JSON; not shown for tables.
_OF_FEATURES = ("features", "duplicate rows", "all-zero rows", "missing values")
_KEYS_OF_FEATURES = (
    *("feature_type", "duplicate_rows", "conflicting_rows", "all_zero_rows"),
    "missing_values",
)


def _print_description(facts: Description, top: int, table: bool = False) -> None:
    about = facts.facts()
    if table:
        about = [row for row in about if row[0] not in _OF_FEATURES]
    print_table(facts.name, [("", "left"), ("", "left")], about)
    counts = sorted(facts.label_counts.items(), key=lambda item: -item[1])[:top]
    if counts:
        most = max(counts[0][1], 1)
        rows = [
            (name, count, f"{count / facts.n_rows:.3f}", "█" * round(24 * count / most))
            for name, count in counts
        ]
        title = f"The {len(rows)} most frequent of {facts.n_labels} labels"
        print_table(
            title, [("label", "left"), ("rows", "right"), ("share", "right"), ("", "left")], rows
        )
    if facts.co_occurrences:
        pairs = [(p.first, p.second, p.count, f"{p.jaccard:.3f}") for p in facts.co_occurrences]
        print_table(
            "Labels that occur together",
            [("label", "left"), ("and", "left"), ("rows", "right"), ("Jaccard", "right")],
            pairs,
        )


@datasets.command(epilog=examples("imcc datasets fetch scene enron", "imcc datasets fetch --all"))
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Fetch the paper's fifteen data sets.")
@JSON
def fetch(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Download named data sets, so that they can be loaded without a network."""
    if bool(names) == everything:
        raise click.UsageError("Give the names of data sets, or --all for the paper's fifteen.")
    from imcc.datasets import DatasetError, dataset_info, fetch_datasets, list_datasets

    with problems_reported():
        wanted = [dataset_info(name).name for name in names or list_datasets("paper")]
    fetched: dict[str, list[Path]] = {}
    failed: dict[str, str] = {}
    with working("fetching"):
        for number, name in enumerate(wanted):
            try:
                with part(number, [1.0] * len(wanted), name):
                    fetched |= fetch_datasets(name)
            except (DatasetError, OSError, ImportError) as error:  # the others are fetched
                failed[name] = shown_message(error)
    if as_json:
        files = {name: [str(path) for path in paths] for name, paths in fetched.items()}
        print_json({"fetched": files, "failed": failed})
    else:
        for name, paths in fetched.items():
            for path in paths:
                say(f"{name}: {path}")  # no table: a path is copied, so it is not broken
    if failed:
        reasons = "\n".join(f"{name}: {reason}" for name, reason in failed.items())
        raise click.ClickException(
            f"{len(failed)} of {len(wanted)} could not be fetched.\n{reasons}"
        )


@datasets.command(
    epilog=examples(
        "imcc datasets convert my.arff my.npz",
        "imcc datasets convert train.svm test.svm all.npz",
        "imcc datasets convert yeast yeast.csv",
    )
)
@click.argument("inputs", metavar="IN...", type=DataPath(), nargs=-1, required=True)
@click.argument("output", metavar="OUT", type=click.Path(dir_okay=False))
@converting_options
@FORCE
@JSON
def convert(
    inputs: tuple[str, ...],
    output: str,
    reading: dict[str, Any],
    force: bool,
    as_json: bool,
) -> None:
    """Write a data set (a name, a file, or files to be joined) as .npz or CSV.

    Words of a table become numbers.  The options say how files are written that do not say it
    themselves.
    """
    from imcc.datasets import write

    with problems_reported(), working("converting"):
        with part(0, (1, 1), "reading"):
            dataset = load(inputs, reading)
        with part(1, (1, 1), "writing"):
            write(dataset, output, overwrite=force)
    if as_json:
        print_json(
            {
                "file": output,
                "rows": dataset.n_rows,
                "features": dataset.n_features,
                "labels": dataset.n_labels,
            }
        )
    else:
        say(f"{dataset!r}\nwritten to {output}")
