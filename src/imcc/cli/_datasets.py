"""``imcc datasets``: list, describe, fetch and convert."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

import imcc.datasets as data
from imcc.cli._terminal import print_json, print_table, problems_reported, stderr
from imcc.datasets._encode import NOMINAL
from imcc.datasets._fetch import TIMEOUT
from imcc.datasets._formats import FORMATS
from imcc.datasets._load import DEFAULT
from imcc.datasets._registry import GROUPS
from imcc.datasets._svmlight import INDEX_BASES

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Labels(click.ParamType):
    """An XML file, a number of columns, or names with commas between them."""

    name = "XML|COUNT|NAMES"

    def convert(self, value: Any, _param: Any, _context: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.removeprefix("-").isdecimal():
            return int(value)
        if ".xml" in value.lower() or Path(value).is_file():
            return Path(value)
        return value.split(",")


class _Pair(click.ParamType):
    """Two names with a comma between them."""

    name = "DATA,TARGET"

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        parts = tuple(str(value).split(","))
        if len(parts) != 2:
            self.fail(f"{value!r} is not two names with a comma between them", param, context)
        return parts


# How to read a file: the arguments of imcc.datasets.read, and the options that give them.
_READING = {
    "labels": click.option(
        "--labels",
        type=_Labels(),
        help="Which columns are labels: MULAN's XML file, a number (the first columns; the last "
        "if negative) or names, a,b,c.",
    ),
    "label_prefix": click.option(
        "--label-prefix", help="What the names of the label columns begin with."
    ),
    "format": click.option(
        "--format",
        type=click.Choice(list(FORMATS)),
        help="The format of the input, if its name does not say it.",
    ),
    "nominal": click.option(
        "--nominal",
        type=click.Choice(NOMINAL),
        help="What to do with words that are neither yes nor no.  [default: onehot]",
    ),
    "variables": click.option(
        "--variables",
        type=_Pair(),
        multiple=True,
        help="The feature and the label variable of a .mat or .npz file; may be repeated, the "
        "rows are stacked.",
    ),
    "delimiter": click.option("--delimiter", help="What stands between the values of a CSV file."),
    "header": click.option(
        "--header/--no-header",
        default=None,
        help="Whether a CSV file's first row names the columns.  [default: header]",
    ),
    "n_features": click.option(
        "--n-features", type=int, help="How many features an svmlight file has."
    ),
    "index_base": click.option(
        "--index-base",
        type=click.Choice(INDEX_BASES),
        help="Where the features of an svmlight file are counted from.  [default: auto]",
    ),
    "encoding": click.option("--encoding", help="The encoding of a text file, if not UTF-8."),
    "member": click.option("--member", help="Which file of a .zip archive."),
    "max_bytes": click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        help="The most bytes that a packed file may unpack to.  [default: 1 GiB]",
    ),
}


def _reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to read a file; those that were given come as ``reading``."""

    @functools.wraps(command)
    def collecting(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in _READING}
        given["variables"] = list(given["variables"]) or None
        reading = {name: value for name, value in given.items() if value is not None}
        return command(reading=reading, **arguments)

    for option in reversed(_READING.values()):
        collecting = option(collecting)
    return collecting


def _load(inputs: tuple[str, ...], reading: dict[str, Any]) -> data.Dataset:
    """Return a named data set, or the one in a file or in several that belong together."""
    if len(inputs) == 1 and inputs[0].lower() in data.list_datasets():
        if reading:
            given = ", ".join(f"--{name.replace('_', '-')}" for name in reading)
            raise ValueError(
                f"{inputs[0]} is the name of a data set: {given} is for files (a file "
                f"of that name is ./{inputs[0]})"
            )
        return data.load_dataset(inputs[0])
    for name in inputs:
        if not Path(name).exists():
            if "." not in name:
                data.dataset_info(name)  # its message names the data sets that are meant, perhaps
            raise FileNotFoundError(f"there is no file {name}")
    return data.read(list(inputs), **reading)


@click.group()
def datasets() -> None:
    """Multi-label data sets: named ones and your own files."""


@datasets.command("list")
@click.option(
    "--group",
    type=click.Choice(GROUPS),
    default="all",
    show_default=True,
    help="Which: the paper's fifteen, those of regular or large scale, or others.",
)
@_JSON
def list_(group: str, as_json: bool) -> None:
    """List the data sets that have names."""
    with problems_reported():
        infos = [data.dataset_info(name) for name in data.list_datasets(group)]
        here = {info.name: data.is_available(info.name) for info in infos}
    if as_json:
        print_json(
            [
                {
                    "name": info.name,
                    "group": info.group,
                    "rows": info.n_rows,
                    "features": info.n_features,
                    "labels": info.n_labels,
                    "type": info.feature_type,
                    "bytes": info.size,
                    "available": here[info.name],
                    "citation": info.citation,
                    "urls": [file.url for file in info.files],
                }
                for info in infos
            ]
        )
        return
    rows = [
        (
            info.name,
            info.group,
            info.n_rows,
            info.n_features,
            info.n_labels,
            info.feature_type,
            _size(info.size),
            "yes" if here[info.name] else "to fetch",
        )
        for info in infos
    ]
    headings = [
        ("name", "left"),
        ("group", "left"),
        ("rows", "right"),
        ("features", "right"),
        ("labels", "right"),
        ("type", "left"),
        ("size", "right"),
        ("here", "left"),
    ]
    print_table("Data sets", headings, rows)


@datasets.command()
@click.argument("inputs", metavar="[NAME_OR_FILE]...", nargs=-1)
@_reading_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many labels and pairs of labels to show.",
)
@click.option(
    "--draw",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Draw the label frequencies and co-occurrences into a PNG, SVG or PDF file.",
)
@click.option(
    "--draw-labels",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="How many labels to draw at most.",
)
@_JSON
def describe(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    top: int,
    draw: str | None,
    draw_labels: int,
    as_json: bool,
) -> None:
    """Say what is in a data set: a name, a file, or files to be joined (yeast if none)."""
    with problems_reported():
        dataset = _load(inputs or (DEFAULT,), reading)
        facts = data.describe(dataset, n_pairs=top)
        if draw is not None:
            data.draw_labels(dataset, draw, max_labels=draw_labels)
    if as_json:
        print_json({**facts.to_dict(), "source": dataset.source})
    else:
        _print_description(facts, top)
    if draw is not None:
        click.echo(f"Drew the labels into {draw}", err=True)


def _print_description(facts: data.Description, top: int) -> None:
    print_table(facts.name, [("", "left"), ("", "left")], facts.facts())
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
            "Labels that go together",
            [("label", "left"), ("and", "left"), ("rows", "right"), ("Jaccard", "right")],
            pairs,
        )


@datasets.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="The paper's fifteen.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    help="Seconds to wait for a server that says nothing.",
)
@_JSON
def fetch(names: tuple[str, ...], everything: bool, timeout: float, as_json: bool) -> None:
    """Get the files of named data sets, so that they are here without a network later."""
    if bool(names) == everything:
        raise click.UsageError("Give the names of data sets, or --all for the paper's fifteen.")
    with problems_reported():
        wanted = [data.dataset_info(name).name for name in names or data.list_datasets("paper")]
    fetched, failed = _fetch_each(wanted, timeout)
    if as_json:
        files = {name: [str(path) for path in paths] for name, paths in fetched.items()}
        print_json({"fetched": files, "failed": failed})
    else:
        for name, paths in fetched.items():
            for path in paths:
                click.echo(f"{name}: {path}")  # no table: a path is copied, so it is not broken
    if failed:
        reasons = "\n".join(f"{name}: {reason}" for name, reason in failed.items())
        raise click.ClickException(f"{len(failed)} of {len(wanted)} could not be got.\n{reasons}")


def _fetch_each(wanted: list[str], timeout: float) -> tuple[dict[str, list[Path]], dict[str, str]]:
    """Fetch one data set after the other; what fails does not keep the others from coming."""
    fetched: dict[str, list[Path]] = {}
    failed: dict[str, str] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=stderr()) as bars:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done, total=total)

        for name in wanted:
            try:
                fetched |= data.fetch_datasets(name, progress=show, timeout=timeout)
            except (data.DatasetError, OSError, ImportError) as error:
                failed[name] = str(error)
    return fetched, failed


@datasets.command()
@click.argument("inputs", metavar="IN...", nargs=-1, required=True)
@click.argument("output", metavar="OUT", type=click.Path(dir_okay=False))
@_reading_options
@click.option(
    "--to",
    type=click.Choice([f.name for f in FORMATS.values() if f.writer]),
    help="The format of the output, if its name does not say it (or meka for .arff).",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
@_JSON
def convert(
    inputs: tuple[str, ...],
    output: str,
    reading: dict[str, Any],
    to: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a data set (a name, a file, or files to be joined) in another format."""
    with problems_reported():
        dataset = _load(inputs, reading)
        written = data.write(dataset, output, format=to, overwrite=force)
    files = [str(path) for path in (written if isinstance(written, tuple) else (written,))]
    if as_json:
        print_json(
            {
                "files": files,
                "rows": dataset.n_rows,
                "features": dataset.n_features,
                "labels": dataset.n_labels,
            }
        )
    else:
        click.echo(f"{dataset!r}\nwritten to {' and '.join(files)}")


def _size(size: float) -> str:
    for unit in ("B", "kB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} MB"
