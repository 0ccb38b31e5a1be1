"""Output of results, warnings and errors on the terminal.

Names of labels, columns and files come from files, and may contain control sequences of terminals.
All output passes through :func:`imcc._utils.text.printable`.
"""

from __future__ import annotations

import json
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.errors import Argument, ImccError, message_of
from imcc._utils.text import json_text, printable

if TYPE_CHECKING:  # rich is imported where something is shown, so that help does not wait for it
    from rich.table import Table
    from rich.text import Text


# What the running command was warned of, and what of it was printed.
_warned: ContextVar[tuple[list[warnings.WarningMessage], set[str]]] = ContextVar("warned")


def say(text: object, *, err: bool = False) -> None:
    """Print a line, or lines, of text that may come from files."""
    print_warnings()
    click.echo(printable(text, keep="\n"), err=err)


def print_result(text: str) -> None:
    """Print text unchanged, or with control characters escaped on a terminal."""
    print_warnings()
    text = printable(text, keep="\n\t") if sys.stdout.isatty() else text
    # Without color=True, click would take escape sequences out of what is written to a pipe.
    click.echo(text, nl=False, color=True)


def print_json(value: Any) -> None:
    """Print a result for programs."""
    print_warnings()
    click.echo(json_text(value))


def named(metric: str) -> str:
    """Return the name of a metric as it is shown: two metrics are called average precision."""
    return metric.replace("average_precision", "average_precision (of labels, per row)")


def shorten(text: str, length: int = 28) -> str:
    """Return text on one line, with its end left out if it is too long."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= length else text[: length - 3] + "..."


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table.

    Numbers are never cut: a table of numbers that is too wide is printed in several parts, which
    repeat the first column.  Long names are broken over lines.

    Parameters
    ----------
    title : str
        The title.
    headings : sequence of str
        Headings of the columns.  A column is aligned to the right if its heading begins with
        ``>``, and to the left if it begins with ``<`` or neither; a name from a file needs one.
    rows : sequence of sequences
        The cells; texts of rich keep their style.
    """
    from rich.console import Console

    print_warnings()
    console = Console()  # a new one, because tests and pipes change the stream
    shown = [[_as_text(cell) for cell in row] for row in rows]
    columns = range(1, len(headings))
    parts = [list(columns)]
    if all(headings[j].startswith(">") for j in columns):
        widths = [
            max(cell.cell_len for cell in (_heading(heading), *column))
            for heading, *column in zip(headings, *shown, strict=True)
        ]
        room, parts = console.width - widths[0], [[]]
        for j in columns:
            # Columns are two apart.
            if parts[-1] and sum(widths[k] + 2 for k in (*parts[-1], j)) > room:
                parts.append([])
            parts[-1].append(j)
    for number, part in enumerate(parts):
        # Not the table's own title, which would be broken at the table's width.
        console.print(_as_text(title + ", continued" * (number > 0)), style="bold")
        kept = [0, *part]
        cells = [[row[j] for j in kept] for row in shown]
        console.print(_table([headings[j] for j in kept], cells))
        console.print()


def _table(headings: list[str], rows: list[list[Text]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=any(h.strip("<>") for h in headings))
    for j, heading in enumerate(headings):
        is_right = heading.startswith(">")
        longest = max((len(row[j]) for row in rows), default=1)
        table.add_column(
            _heading(heading),
            justify="right" if is_right else "left",
            no_wrap=is_right,
            overflow="fold",
            min_width=None if is_right else min(12, longest),
        )
    for row in rows:
        table.add_row(*row)
    return table


def _heading(heading: str) -> Text:
    return _as_text(heading[1:] if heading[:1] in ("<", ">") else heading)


def _as_text(cell: object) -> Text:
    # Not a plain str, in which a "[" would begin markup.
    from rich.text import Text

    style = cell.style if isinstance(cell, Text) else ""
    return Text(printable(cell), style=style)


# Arguments whose options have other names.
_OPTIONS = {
    "criterion": "thresholds",
    "cv": "folds",
    "n_jobs": "jobs",
    "overwrite": "force",
    "random_state": "seed",
    "refit": "metric",
    "scoring": "metric",
    "trusted": "trust",
}
# Arguments that a schema file has, and how it says them.
_IN_SCHEMA = {
    **{name: f"{name} = {{}}" for name in ("delimiter", "encoding", "header", "member")},
    "separator": "separator = {}",
    "missing_words": "missing = {}",
    "kinds": "[columns] {} = {}",
    "date_formats": '[columns] {} = {{ kind = "date", format = {} }}',
}
# Arguments of imcc.datasets.read, which 'imcc datasets convert --read' takes.
_READING = (
    *("delimiter", "encoding", "format", "header", "index_base", "max_bytes", "member"),
    *("n_features", "nominal", "transpose_labels", "variables"),
)


def as_option(argument: Argument) -> str:
    """Return an argument as typed at the command line, or as in Python if that is not possible.

    It is an option of the running command, a line of its schema file, or an option of ``imcc
    datasets convert``.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return str(argument)
    name, value = argument.name, argument.value
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    text = argument.text or ("" if value is None else shlex.quote(text))
    if name == "label_prefix":
        name, text = "labels", f"'{value or 'PREFIX'}*'"
    wanted = {f"--{word.replace('_', '-')}" for word in (name, _OPTIONS.get(name, name))}
    options = {flag: option for option in context.command.params for flag in option.opts}
    if flags := wanted & {*options}:
        flag = flags.pop()
        is_flag = getattr(options[flag], "is_flag", False)
        return flag if argument.is_subject or is_flag else f"{flag} {text}".rstrip()
    if "--read" in options and name in _READING:
        return f"--read {name}" if argument.is_subject else f"--read {name}={text or '...'}"
    if argument.is_subject:
        return str(argument)
    if "--schema" in options and name in _IN_SCHEMA:
        words = next(iter(value.items())) if isinstance(value, dict) else (value,)
        quoted = ("..." if x is None else json.dumps(x, ensure_ascii=False) for x in words)
        return f"{_IN_SCHEMA[name].format(*quoted)} in the file of --schema"
    if name in _READING:
        return f"'imcc datasets convert ... --read {name}={text or '...'}'"
    return str(argument)


def shown_message(error: BaseException) -> str:
    """Return the message of an error or a warning, with options of the command line."""
    text = message_of(error).render(as_option)
    if isinstance(error, MemoryError):
        text = f"There is not enough memory for this. {text}".rstrip()
    return printable(text, keep="\n")


@contextmanager
def problems_reported() -> Iterator[None]:
    """Print warnings as lines, and convert errors for users to messages with an exit code.

    Warnings are printed before the next output of the command, and not across a progress bar.

    The exit code is 2 for an invalid value, and 1 if something cannot be read, fetched, written or
    imported.  Any other error is a bug in imcc and keeps its traceback.
    """
    with warnings.catch_warnings(record=True) as caught:
        warned = _warned.set((caught, set()))
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
            of_files = isinstance(error, (DatasetError, OSError, UnicodeEncodeError))
            is_wrong_value = isinstance(error, ValueError) and not of_files
            kind = click.UsageError if is_wrong_value else click.ClickException
            raise kind(shown_message(error)) from error
        finally:
            print_warnings()
            _warned.reset(warned)


def print_warnings() -> None:
    """Print what the running command was warned of, before anything else that it prints.

    Each text is printed once: a table is looked at twice, to show what its columns are, and to fit.
    """
    caught, printed = _warned.get(([], set()))
    while caught:
        message = caught.pop(0).message
        text = shown_message(message) if isinstance(message, Warning) else str(message)
        if text not in printed:
            printed.add(text)
            click.echo(printable(f"Warning: {text}", keep="\n"), err=True)
