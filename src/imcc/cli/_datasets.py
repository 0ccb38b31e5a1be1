"""``imcc datasets``: list, describe, convert, and an example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.files import check_target
from imcc._utils.progress import part
from imcc.cli import _options as options
from imcc.cli._inputs import (
    are_tables,
    load,
    load_numbers,
    read_table,
    reading_of,
)
from imcc.cli._progress import working
from imcc.cli._show import print_schema
from imcc.cli._terminal import print_json, print_table, say

if TYPE_CHECKING:
    from imcc.datasets import Dataset, Description
    from imcc.tables import KnownColumns, Schema
    from imcc.tables._load import TableSource

# Labels that are shown.
_TOP = 10
# Parameters of imcc.datasets.read that are not for --read.
_NOT_READ = ("path", "inputs", "labels", "label_prefix", "schema", "drop")


@click.group()
def datasets() -> None:
    """List, describe and convert data sets."""


@options.command("imcc datasets list", "imcc datasets list --json", name="list", group=datasets)
@options.JSON
def list_(as_json: bool) -> None:
    """List the named data sets."""
    from rich.filesize import decimal

    from imcc._utils.plain import to_plain
    from imcc.datasets import dataset_info, list_datasets
    from imcc.datasets._load import is_available

    infos = [dataset_info(name) for name in list_datasets()]
    if as_json:
        print_json([to_plain(info) | {"available": is_available(info.name)} for info in infos])
        return
    print_table(
        "Data sets",
        ("name", "group", ">rows", ">features", ">labels", "type", ">bytes", "available"),
        [
            (
                *(info.name, info.group, info.n_rows, info.n_features, info.n_labels),
                *(info.feature_type, decimal(info.size)),
                "yes" if is_available(info.name) else "to fetch",
            )
            for info in infos
        ],
    )


@options.command(
    "imcc datasets describe yeast",
    "imcc datasets describe my.csv --labels happy,sad",
    "imcc datasets describe my.csv --labels happy,sad --schema-to my.toml",
    "cat my.csv | imcc datasets describe - --labels 'is_*'",
    group=datasets,
)
@options.INPUTS
@options.data_options
@options.file_option(
    "--schema-to",
    help="Write what the columns of a table are to a TOML file, to edit it and use it as --schema.",
)
@options.FORCE
@options.JSON
def describe(
    inputs: tuple[str, ...],
    labels: dict[str, Any] | None,
    schema_to: str | None,
    force: bool,
    as_json: bool,
    **columns: Any,
) -> None:
    """Describe a data set: a name, a file, or files to be joined.

    For a table (CSV, TSV, Parquet), show the kinds of its columns and how they are encoded, and its
    labels if they are named.
    """
    import imcc.datasets as data
    from imcc.tables import write_schema

    if schema_to is None:
        options.refuse_options("--schema-to", force=force)
    about: dict[str, Any] = {}
    is_table = are_tables(inputs, reading_of(columns["schema"]))
    if schema_to is not None:
        if not is_table:
            raise InvalidTypeError("schema_to", "is for tables (CSV, TSV, Parquet)")
        check_target(schema_to, overwrite=force)
    with working("reading"):
        if is_table:
            source, known = read_table(inputs, labels, columns)
            schema = source.schema(known)
            dataset = _labels_only(source, known, schema)
            about = {"schema": schema.to_dict(), "n_rows": source.table.num_rows}
            about["source"] = source.path
        else:
            dataset = load_numbers(inputs, labels, columns)
            about["source"] = dataset.source
    facts = None if dataset is None else data.describe(dataset)
    if schema_to is not None:
        write_schema(schema, schema_to, known)
    if as_json:
        facts_of = {} if facts is None else facts.to_dict()
        if is_table:
            facts_of = {key: x for key, x in facts_of.items() if key not in _KEYS_OF_FEATURES}
        print_json({**facts_of, **about})
    else:
        if is_table:
            print_schema(schema, f"{source.name}: {source.table.num_rows:,} rows", known.drop)
        if facts is not None:
            _print_description(facts, is_table)
    if schema_to is not None:
        say(f"Wrote {schema_to}", err=True)


@options.command(
    "imcc datasets example customers.csv",
    "imcc tune customers.csv --labels complaint,refund,upgrade,senior,remote,praise -o m.skops",
    group=datasets,
)
@click.argument("output", metavar="FILE", type=click.Path(dir_okay=False))
@click.option(
    "--rows", type=click.IntRange(min=20), default=800, show_default=True, help="Number of rows."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
)
@options.FORCE
def example(output: str, rows: int, seed: int, force: bool) -> None:
    """Write a synthetic example table as CSV.

    Messages of customers to a company: an id, six numbers, two categories and a text, with 6 % of
    the cells missing, and six labels as columns of 0 and 1.  The same seed gives the same file.
    """
    from imcc.tables import example_table
    from imcc.tables._example import write_example

    check_target(output, overwrite=force)
    if Path(output).suffix.lower() != ".csv":
        raise InvalidArgumentError("output", f"is {output}, and a .csv file is written")
    write_example(output, rows, seed)
    labels = list(example_table(rows, seed)[1].columns)
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


def _print_description(facts: Description, is_table: bool) -> None:
    left_out = _OF_FEATURES if is_table else ()
    print_table(facts.name, ("", ""), [row for row in facts.facts() if row[0] not in left_out])
    counts = sorted(facts.label_counts.items(), key=lambda item: -item[1])[:_TOP]
    if counts:
        most = max(counts[0][1], 1)
        print_table(
            f"The {len(counts)} most frequent of {facts.n_labels} labels",
            ("label", ">rows", ">share", ""),
            [
                (name, count, f"{count / facts.n_rows:.3f}", "█" * round(24 * count / most))
                for name, count in counts
            ],
        )


@options.command(
    "imcc datasets convert my.arff my.npz",
    "imcc datasets convert train.svm test.svm all.npz",
    "imcc datasets convert yeast yeast.csv",
    "imcc datasets convert my.mat my.npz --read variables=data,target",
    group=datasets,
)
@click.argument("inputs", metavar="IN...", type=click.Path(), nargs=-1, required=True)
@click.argument("output", metavar="OUT", type=click.Path(dir_okay=False))
@options.LABELS
@options.SCHEMA
@options.DROP
@options.settings(
    "--read",
    "How to read the input: a parameter of imcc.datasets.read, such as format=svmlight, "
    "index_base=one, n_features=300, nominal=ordinal, variables=data,target, encoding=latin-1 or "
    "max_bytes=4000000000; may be repeated.",
)
@options.FORCE
def convert(
    inputs: tuple[str, ...],
    output: str,
    labels: dict[str, Any] | None,
    schema: str | None,
    drop: tuple[str, ...],
    settings: tuple[tuple[str, Any], ...],
    force: bool,
) -> None:
    """Write a data set (a name, a file, or files to be joined) as .npz or CSV.

    Words of a table become numbers.  The options say what the files do not say themselves.
    """
    from imcc.datasets import write

    for name, _ in settings:
        if name in _NOT_READ:
            raise click.UsageError(f"--read {name}: it is an argument or an option of its own")
    reading: dict[str, Any] = {**(labels or {}), **dict(settings)}
    pairs = [value for name, value in settings if name == "variables"]
    with working("converting"):
        with part(0, (1, 1), "reading"):
            reading |= reading_of(schema)
            reading |= {"schema": schema} if schema is not None else {}
            reading |= {"drop": drop} if drop else {}
            reading |= {"variables": pairs} if len(pairs) > 1 else {}
            dataset = load(inputs, reading)
        with part(1, (1, 1), "writing"):
            write(dataset, output, overwrite=force)
    say(f"{dataset!r}\nwritten to {output}")
