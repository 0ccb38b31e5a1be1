"""Options that several commands share, their types, and the examples in help texts.

Nothing here imports the packages that compute, so that help and completion are fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from imcc.cli._terminal import problems_reported

# The standard input where data are read, the standard output where they are written.
STDIN = "-"


def examples(*lines: str) -> str:
    r"""Return the examples of a command, for the end of its help.

    >>> examples("imcc datasets list")
    '\x08\nExamples:\n  imcc datasets list'
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def command(
    *lines: str, name: str | None = None, group: click.Group | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function.

    Its warnings and its errors for users are printed as messages.

    Parameters
    ----------
    *lines : str
        Examples, for the end of its help.
    name : str, default=None
        Its name; None means that of the function.
    group : Group, default=None
        The group that it belongs to, if not the main one.
    """
    make = click.command if group is None else group.command
    made = make(name, epilog=examples(*lines))
    return lambda function: made(problems_reported()(function))


def refuse_options(purpose: str, **given: Any) -> None:
    """Raise an error for options that would have no effect, by their names in Python.

    Parameters
    ----------
    purpose : str
        What they are for: the end of a sentence.
    **given : object
        The values of the options; those that are not given are empty.
    """
    for name, value in given.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} is for {purpose}, and would have no effect here")


def _labels(value: str) -> dict[str, Any]:
    """Return an argument of the library, ``labels`` or ``label_prefix``, with its value.

    It is names with commas between them, a prefix with a star, a number of columns or an XML file.
    """
    if value.endswith("*"):
        return {"label_prefix": value.removesuffix("*")}
    if value.removeprefix("-").isdecimal():
        return {"labels": int(value)}
    is_file = ".xml" in value.lower() or Path(value).is_file()
    return {"labels": Path(value) if is_file else value.split(",")}


def _setting(value: str) -> tuple[str, Any]:
    """Return the name of a parameter and its value; several values have commas between them.

    Numbers, None, True and False become what they are.
    """
    name, _, text = value.partition("=")
    if not name or not text or "__" in name:
        raise click.BadParameter(f"{value!r} is not a name and a value, such as betas=0.1,1")
    if len(text) == 1:
        return name, _value(text)  # a comma may be a delimiter
    values = tuple(_value(word.strip()) for word in text.removesuffix(",").split(","))
    return name, values if "," in text else values[0]


def settings(flag: str, purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return an option that takes parameters with their values."""
    return click.option(
        flag, "settings", type=_setting, metavar="NAME=VALUE", multiple=True, help=purpose
    )


def _value(word: str) -> Any:
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(word.lower(), word)


# An option that takes a file.
file_option = functools.partial(click.option, type=click.Path(), metavar="FILE")

# What neither a file nor a model can say about data.
LABELS = click.option(
    "--labels",
    type=_labels,
    metavar="NAMES|PREFIX*|COUNT|XML",
    help="Label columns: names (a,b,c), a prefix of names (is_*), a number (the first columns; the "
    "last if negative) or an XML file of MULAN.",
)
TAGS = click.option(
    "--tags",
    metavar="COLUMN",
    help="Column of a table that lists the labels of a row: news|sport, or a JSON list.",
)
SCHEMA = file_option(
    "--schema",
    help="File about a table, as written by 'imcc datasets describe --schema-to': kinds of the "
    "columns, forms of dates, missing values, delimiter, encoding.",
)
DROP = click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Do not use this column of a table; may be repeated.",
)
UNKNOWN_LABELS = click.option(
    "--unknown-labels",
    is_flag=True,
    default=None,
    help="Empty cells in label columns are labels that are not known, not an error.",
)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that begin with data."""
    for option in (UNKNOWN_LABELS, DROP, SCHEMA, TAGS, LABELS):
        command = option(command)
    return command


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor remarks.")
FORCE = click.option("--force", is_flag=True, help="Overwrite a file that already exists.")

# Of the commands that read data.
INPUTS = click.argument(
    "inputs", metavar="NAME_OR_FILE...", type=click.Path(), nargs=-1, required=True
)

# Of the commands that use models.
MODEL = click.argument("model_file", metavar="MODEL", type=click.Path())
TRUST = click.option(
    "--trust",
    "trusted",
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
