"""Output of results, warnings and errors on the terminal.

Names of labels, columns and files come from files, and may contain control sequences of terminals.
All output passes through :func:`imcc._utils.text.printable`.
"""

from __future__ import annotations

import functools
import json
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import Argument, ImccError, message_of
from imcc._utils.text import json_text, printable

if TYPE_CHECKING:  # rich is imported where something is shown, so that help does not wait for it
    from rich.console import Console
    from rich.text import Text


def stdout() -> Console:
    """Return a new console for results, because tests and pipes change the stream."""
    from rich.console import Console

    return Console()


def stderr() -> Console:
    """Return the console for everything that is not a result."""
    from rich.console import Console

    return Console(stderr=True)


def say(text: object, *, err: bool = False) -> None:
    """Print a line, or lines, of text that may come from files."""
    click.echo(printable(text, keep="\n"), err=err)


def print_result(text: str) -> None:
    """Print text unchanged, or with control characters escaped on a terminal."""
    text = printable(text, keep="\n\t") if sys.stdout.isatty() else text
    # Without color=True, click would take escape sequences out of what is written to a pipe.
    click.echo(text, nl=False, color=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a result for programs."""
    click.echo(json_text(value, indent))


def named(metric: str) -> str:
    """Return the name of a metric as it is shown: two metrics are called average precision."""
    return metric.replace("average_precision", "average_precision (of labels, per row)")


def print_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table; a column is given by its heading and alignment, "left" or "right"."""
    from rich.table import Table
    from rich.text import Text

    shown = [[_as_text(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, show_header=any(heading for heading, _ in columns))
    for j, (heading, justify) in enumerate(columns):
        # Numbers are never cut; long names are broken over lines.
        left = justify == "left"
        longest = max((len(row[j]) for row in shown), default=1)
        table.add_column(
            _as_text(heading),
            justify="left" if left else "right",
            no_wrap=not left,
            overflow="fold",
            min_width=min(12, longest) if left else None,
        )
    for row in shown:
        table.add_row(*row)
    console = stdout()
    # Not the table's own title, which would be broken at the table's width.
    console.print(Text(printable(title), style="bold"))
    console.print(table)
    console.print()


def _as_text(cell: object) -> Text:
    # Not a plain str, in which a "[" would begin markup.
    from rich.text import Text

    if isinstance(cell, Text):
        harmless = printable(cell.plain)
        return cell if harmless == cell.plain else Text(harmless, style=cell.style)
    return Text(printable(cell))


def print_wide_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table, if needed in several parts that repeat the first column."""
    from rich.cells import cell_len

    widths = [
        max(cell_len(printable(text)) for text in (columns[j][0], *(row[j] for row in rows)))
        for j in range(len(columns))
    ]
    width = stdout().width - widths[0]
    pieces: list[list[int]] = [[]]
    for j in range(1, len(columns)):
        # Columns are two apart.
        if pieces[-1] and sum(widths[k] + 2 for k in [*pieces[-1], j]) > width:
            pieces.append([])
        pieces[-1].append(j)
    for number, piece in enumerate(pieces):
        kept = [0, *piece]
        print_table(
            title if number == 0 else f"{title}, continued",
            [columns[j] for j in kept],
            [[row[j] for j in kept] for row in rows],
        )


# Arguments whose options have other names.
_OPTIONS = {
    "criterion": "thresholds",
    "cv": "folds",
    "n_jobs": "jobs",
    "overwrite": "force",
    "random_state": "seed",
    "refit": "metric",
    "trusted": "trust",
}
# Arguments that a schema file has, and their names in it.
_IN_SCHEMA: dict[str, str] = {
    **{name: name for name in ("delimiter", "encoding", "header", "member", "separator")},
    "missing_words": "missing",
}


def _in_schema(argument: Argument) -> str | None:
    """Return an argument as lines of a schema file, or None if such files do not have it."""
    quoted = functools.partial(json.dumps, ensure_ascii=False)
    name, value = argument.name, argument.value
    if name in _IN_SCHEMA:
        return f"{_IN_SCHEMA[name]} = {'...' if value is None else quoted(value)}"
    formats = {"kinds": "{}", "date_formats": '{{ kind = "date", format = {} }}'}
    if name not in formats or not isinstance(value, dict):
        return None
    lines = [f"{quoted(column)} = {formats[name].format(quoted(x))}" for column, x in value.items()]
    return "[columns] " + ", ".join(lines)


def as_option(argument: Argument) -> str:
    """Return an argument as typed at the command line, or as in Python if that is not possible.

    It is an option of the running command, a line of its schema file, or an option of ``imcc
    datasets convert``.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return str(argument)
    if argument.name == "label_prefix":
        prefix = argument.value or "PREFIX"
        argument = Argument("labels", None, f"'{prefix}*'", argument.is_subject)
    option = _as_flag(argument, context.command)
    if option is not None or argument.is_subject:
        return option or str(argument)
    if any(parameter.name == "schema" for parameter in context.command.params):
        lines = _in_schema(argument)
        if lines is not None:
            return f"{lines} in the file of --schema"
    from imcc.cli._datasets import convert

    option = _as_flag(argument, convert)
    return str(argument) if option is None else f"'imcc datasets convert ... {option}'"


def _as_flag(argument: Argument, command: click.Command) -> str | None:
    """Return an argument as an option of a command; None if it has no such option."""
    names = {argument.name, _OPTIONS.get(argument.name, argument.name)}
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        flags = [*option.opts, *option.secondary_opts]
        if option.name not in names and not any(f"--{n.replace('_', '-')}" in flags for n in names):
            continue
        flag = max(option.opts, key=len)
        if argument.is_subject:
            return flag
        if option.is_flag:
            negative = argument.value is False and option.secondary_opts
            return option.secondary_opts[0] if negative else flag
        if argument.text is not None:
            return f"{flag} {argument.text}"
        value = argument.value
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        return flag if value is None else f"{flag} {shlex.quote(str(value))}"
    return None


def shown_message(error: BaseException) -> str:
    """Return the message of an error or a warning, with options of the command line."""
    text = message_of(error).render(as_option)
    if isinstance(error, MemoryError):
        text = f"There is not enough memory for this. {text}".rstrip()
    return printable(text, keep="\n")


@contextmanager
def problems_reported() -> Iterator[None]:
    """Print warnings as lines, and convert errors for users to messages with an exit code.

    The exit code is 2 for an invalid value, and 1 if something cannot be read, fetched, written or
    imported.  Any other error is a bug in imcc and keeps its traceback.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A model that was fitted on a data frame: its columns have been matched by name.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of a pipe has gone: click ends the program quietly
        except (ImccError, ValueError, OSError, ImportError, MemoryError) as error:
            from imcc.datasets import DatasetError

            context = click.get_current_context(silent=True)
            if context is not None and context.find_root().params.get("debug"):
                say(traceback.format_exc(), err=True)
            # Errors about files may be ValueErrors as well, but then the command was not wrong.
            of_files = isinstance(error, (DatasetError, OSError))
            is_wrong_value = isinstance(error, ValueError) and not of_files
            kind = click.UsageError if is_wrong_value else click.ClickException
            raise kind(shown_message(error)) from error
        finally:
            # A table is looked at twice: to show what its columns are, and to fit.
            texts = [shown_message(w.message) for w in caught if isinstance(w.message, Warning)]
            for text in dict.fromkeys(texts):
                say(f"Warning: {text}", err=True)
