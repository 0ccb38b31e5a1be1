"""Options that several commands share, their types, and the examples in help texts.

Nothing here imports the packages that compute, so that help and completion are fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from imcc.cli._choices import FORMATS, INDEX_BASES, NOMINAL, dataset_names
from imcc.cli._terminal import problems_reported

# The standard input where data are read, the standard output where they are written.
STDIN = "-"


def examples(*lines: str) -> str:
    r"""Return the examples of a command, for the end of its help.

    >>> examples("imcc datasets list")
    '\x08\nExamples:\n  imcc datasets list'
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def changed_options(*names: str) -> list[str]:
    """Return those of some options that have another value than their default, as typed.

    An option whose default is spelled out is the same as one that is not given.

    Parameters
    ----------
    *names : str
        Names of arguments of the command that is running; ``as_json``, not ``json``.
    """
    context = click.get_current_context()
    unsaid = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP, None)
    options = {option.name: option for option in context.command.params}
    found = []
    for name in names:
        default = options[name].get_default(context)
        if isinstance(default, (str, int, float)):  # what stands for no default depends on click
            default = options[name].type_cast_value(context, default)
        given = context.get_parameter_source(name) not in unsaid
        if given and context.params[name] != default:
            found.append(max(options[name].opts, key=len))
    return found


def refuse_options(names: Sequence[str], purpose: str) -> None:
    """Raise an error for options that would have no effect.

    Parameters
    ----------
    names : sequence of str
        As for :func:`changed_options`.
    purpose : str
        What they are for: the end of a sentence.
    """
    for flag in changed_options(*names):
        raise click.UsageError(f"{flag} is for {purpose}, and would have no effect here")


class DataPath(click.ParamType):
    """The name of a data set, or a file; a shell completes both."""

    name = "NAME_OR_FILE"

    def shell_complete(self, context: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        names = [name for name in dataset_names() if name.startswith(incomplete)]
        files = CompletionItem(incomplete, type="file")
        return [files, *(CompletionItem(name) for name in names)]


class _Labels(click.ParamType):
    """Names with commas between them, a prefix with a star, a number of columns, or an XML file."""

    name = "NAMES|PREFIX*|COUNT|XML"

    def convert(self, value: Any, _param: Any, _context: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.removeprefix("-").isdecimal():
            return int(value)
        if value.endswith("*"):
            return value
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


_LABELS = click.option(
    "--labels",
    type=_Labels(),
    help="Label columns: names (a,b,c), a prefix of names (is_*), a number (the first columns; the "
    "last if negative) or an XML file of MULAN.",
)
_SCHEMA = click.option(
    "--schema",
    type=click.Path(),
    metavar="FILE",
    help="File about a table, as written by 'imcc datasets describe --schema-to': kinds of the "
    "columns, forms of dates, missing values, delimiter, encoding.",
)

# How to read a file: the arguments of imcc.datasets.read, and the options that give them.
CONVERTING: dict[str, Callable[..., Any]] = {
    "labels": _LABELS,
    "format": click.option(
        "--format",
        type=click.Choice(FORMATS),
        help="Format of the input, if the file name does not determine it.",
    ),
    "nominal": click.option(
        "--nominal",
        type=click.Choice(NOMINAL),
        default="onehot",
        show_default=True,
        help="How to encode words of ARFF files that are neither yes nor no.",
    ),
    "variables": click.option(
        "--variables",
        type=_Pair(),
        multiple=True,
        help="Feature and label variable of a .mat or .npz file; may be repeated, the rows are "
        "stacked.",
    ),
    "transpose_labels": click.option(
        "--transpose-labels/--no-transpose-labels",
        default=None,
        help="Whether the label variable of a .mat or .npz file is labels x rows.  [default: "
        "determined by the shapes]",
    ),
    "delimiter": click.option("--delimiter", help="Delimiter of a CSV file."),
    "header": click.option(
        "--header/--no-header",
        default=True,
        show_default=True,
        help="Whether the first row of a CSV file has the column names.",
    ),
    "n_features": click.option(
        "--n-features", type=int, help="Number of features of an svmlight file."
    ),
    "index_base": click.option(
        "--index-base",
        type=click.Choice(INDEX_BASES),
        default="auto",
        show_default=True,
        help="Whether the feature indices of an svmlight file start at 0 or 1.",
    ),
    "encoding": click.option("--encoding", help="Encoding of a text file, if not UTF-8."),
    "member": click.option("--member", help="File in a .zip archive."),
    "max_bytes": click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        help="Maximum unpacked size of a compressed or Parquet file in bytes.  [default: 1 GiB, "
        "less for small files]",
    ),
}

# What neither a file nor a model can say about data: in commands that begin with them.
_COLUMNS: dict[str, Callable[..., Any]] = {
    "tags": click.option(
        "--tags",
        metavar="COLUMN",
        help="Column of a table that lists the labels of a row: news|sport, or a JSON list.",
    ),
    "schema": _SCHEMA,
    "drop": click.option(
        "--drop",
        multiple=True,
        metavar="COLUMN",
        help="Do not use this column of a table; may be repeated.",
    ),
    "unknown_labels": click.option(
        "--unknown-labels",
        is_flag=True,
        default=None,
        help="Empty cells in label columns are labels that are not known, not an error.",
    ),
}


def _with_options(
    command: Callable[..., Any], options: dict[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """Add options to a command; those that are changed are passed as ``reading``.

    Those of columns are passed as ``columns``, if the command has them all.
    """

    @functools.wraps(command)
    def collecting(**arguments: Any) -> Any:
        every = {name: arguments.pop(name) for name in options}
        reading = {name: value for name, value in every.items() if changed_options(name)}
        about_columns = options.keys() >= _COLUMNS.keys()
        if about_columns:
            arguments["columns"] = {name: reading[name] for name in _COLUMNS if name in reading}
        if "variables" in reading:
            reading["variables"] = list(reading["variables"])
        if isinstance(reading.get("labels"), str):
            reading["label_prefix"] = reading.pop("labels").removesuffix("*")
        rest = {n: v for n, v in reading.items() if not (about_columns and n in _COLUMNS)}
        if "schema" in reading:  # which may also say how to read the file
            from imcc.tables import read_schema

            with problems_reported():
                rest |= read_schema(reading["schema"]).reading
        return command(reading=rest, **arguments)

    for option in reversed(options.values()):
        collecting = option(collecting)
    return collecting


def converting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options for reading files, passed as ``reading``."""
    return _with_options(command, {**CONVERTING, "schema": _SCHEMA, "drop": _COLUMNS["drop"]})


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that begin with data, passed as ``reading`` and ``columns``."""
    return _with_options(command, {"labels": _LABELS, **_COLUMNS})


def rows_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option of commands that read rows for a model, passed as ``reading``."""
    return _with_options(command, {"schema": _SCHEMA})


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor remarks.")
FORCE = click.option("--force", is_flag=True, help="Overwrite a file that already exists.")

# Of the commands that read data.
INPUTS = click.argument(
    "inputs", metavar="NAME_OR_FILE...", type=DataPath(), nargs=-1, required=True
)

# Of the commands that use models.
MODEL = click.argument("model_file", metavar="MODEL", type=click.Path())
TRUST = click.option(
    "--trust",
    multiple=True,
    metavar="TYPE",
    help="Trust parts of this type, which is not from imcc, scikit-learn or NumPy; may be "
    "repeated.",
)
IGNORE = click.option(
    "--ignore-extra", is_flag=True, help="Ignore columns that the model does not use."
)

# Of the commands that compute tasks, and those that compare methods.
JOBS = click.option(
    "-j",
    "--jobs",
    "n_jobs",
    type=int,
    default=1,
    show_default=True,
    help="Number of tasks computed in parallel, in processes; -1 means one per core.",
)
CONTROL = click.option(
    "--control",
    help="Method that the others are compared with.  [default: imcc, if it is among them]",
)
