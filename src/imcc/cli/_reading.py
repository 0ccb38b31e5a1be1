"""Data from the command line: the options that say how to read a file, and what they give."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import imcc.datasets as data
from imcc.datasets import FORMATS, INDEX_BASES, NOMINAL, Content

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
# The standard input where data are read, the standard output where they are written.
STDIN = "-"


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


class DataPath(click.ParamType):
    """The name of a data set, or a file; a shell completes both."""

    name = "NAME_OR_FILE"

    def shell_complete(
        self,
        context: Any,
        param: Any,
        incomplete: str,
    ) -> list[CompletionItem]:
        names = [name for name in data.list_datasets() if name.startswith(incomplete)]
        files = CompletionItem(incomplete, type="file")
        return [files, *(CompletionItem(name) for name in names)]


class _Pair(click.ParamType):
    """Two names with a comma between them."""

    name = "DATA,TARGET"

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        parts = tuple(str(value).split(","))
        if len(parts) != 2:
            self.fail(f"{value!r} is not two names with a comma between them", param, context)
        return parts


# How to read a file: the arguments of imcc.datasets.read, and the options that give them.
READING: dict[str, Callable[..., Any]] = {
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
    "transpose_labels": click.option(
        "--transpose-labels/--no-transpose-labels",
        default=None,
        help="Whether the label variable of a .mat or .npz file is labels x rows.  [default: by "
        "the shapes]",
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
        help="The most bytes that a packed file may unpack to.  [default: 1 GiB, and less for "
        "small files]",
    ),
}


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to read a file; those that were given come as ``reading``."""

    @functools.wraps(command)
    def collecting(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in READING}
        given["variables"] = list(given["variables"]) or None
        reading = {name: value for name, value in given.items() if value is not None}
        return command(reading=reading, **arguments)

    for option in reversed(READING.values()):
        collecting = option(collecting)
    return collecting


def load(inputs: tuple[str, ...], reading: dict[str, Any]) -> data.Dataset:
    """Return a named data set, or the one in a file or in several that belong together."""
    if len(inputs) == 1 and inputs[0].lower() in data.list_datasets():
        if reading:
            given = ", ".join(f"--{name.replace('_', '-')}" for name in reading)
            raise ValueError(
                f"{inputs[0]} is the name of a data set: {given} is for files (a file "
                f"of that name is ./{inputs[0]})"
            )
        return data.load_dataset(inputs[0])
    return data.read(sources(inputs, reading), **reading)


def load_matching(
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    card: Any,
    *,
    with_labels: bool,
    ignore_extra: bool,
) -> tuple[Any, Any]:
    """Return rows with the columns of a model, and its labels if asked for."""
    wanted: dict[str, Any] = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    if len(inputs) == 1 and inputs[0].lower() in data.list_datasets():
        return data.match_dataset(
            load(inputs, reading), card.feature_names, card.label_names, **wanted
        )
    coding = data.Coding.from_dict(card.columns) if card.columns else None
    found = sources(inputs, reading)
    return data.read_matching(
        found, card.feature_names, card.label_names, coding=coding, **wanted, **reading
    )


def sources(inputs: tuple[str, ...], reading: dict[str, Any]) -> list[Any]:
    """Return the files that are named, which must be there; ``-`` is the standard input."""
    found: list[Any] = []
    for name in inputs:
        if name == STDIN:
            found.append(_standard_input(reading))
        elif not Path(name).exists():
            if "." not in name:
                data.dataset_info(name)  # its message names the data sets that are meant, perhaps
            raise FileNotFoundError(f"there is no file {name}")
        else:
            found.append(name)
    return found


def _standard_input(reading: dict[str, Any]) -> Content:
    # Without a name to tell the format from, it is CSV unless --format says otherwise.
    suffix = FORMATS[reading.get("format", "csv")].suffixes[0]
    content = sys.stdin.buffer.read()
    limit = reading.get("max_bytes")
    return Content(content, f"stdin{suffix}", "the standard input", Path(f"stdin{suffix}"), limit)
