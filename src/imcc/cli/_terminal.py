"""What the commands share: tables, warnings and errors on the terminal."""

from __future__ import annotations

import json
import re
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from imcc.datasets import DatasetError
from imcc.experiment import StoreError
from imcc.persistence import ModelFileError


def stdout() -> Console:
    """Return the console for results; made anew, because tests and pipes change the stream."""
    return Console()


def stderr() -> Console:
    """Return the console for everything that is not a result."""
    return Console(stderr=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a result for programs."""
    click.echo(json.dumps(value, indent=indent, ensure_ascii=False))


def print_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table; a column is its heading and where it is aligned, "left" or "right"."""
    table = Table(box=None, pad_edge=False, show_header=any(heading for heading, _ in columns))
    for heading, justify in columns:
        # Numbers are never cut; long names are broken over lines.
        left = justify == "left"
        table.add_column(
            heading,
            justify="left" if left else "right",
            no_wrap=not left,
            overflow="fold",
            min_width=min(12, _longest(rows, len(table.columns))) if left else None,
        )
    for row in rows:
        table.add_row(*(_as_text(cell) for cell in row))
    console = stdout()
    console.print(Text(title, style="bold"))  # not the table's own, which is broken at its width
    console.print(table)
    console.print()


def _as_text(cell: object) -> Text:
    # Not a plain str, in which a "[" would begin markup.
    return cell if isinstance(cell, Text) else Text(str(cell))


def print_wide_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table that may be wider than the terminal: in pieces, the first column in each."""
    widths = [
        max(cell_len(str(text)) for text in (columns[j][0], *(row[j] for row in rows)))
        for j in range(len(columns))
    ]
    room = stdout().width - widths[0]
    pieces: list[list[int]] = [[]]
    for j in range(1, len(columns)):
        # Columns are two apart.
        if pieces[-1] and sum(widths[k] + 2 for k in [*pieces[-1], j]) > room:
            pieces.append([])
        pieces[-1].append(j)
    for number, piece in enumerate(pieces):
        kept = [0, *piece]
        print_table(
            title if number == 0 else f"{title}, continued",
            [columns[j] for j in kept],
            [[row[j] for j in kept] for row in rows],
        )


def _longest(rows: Sequence[Sequence[object]], column: int) -> int:
    return max((len(str(row[column])) for row in rows), default=1)


# The readers' messages speak of the arguments of Python: labels=, label_prefix=.
_ARGUMENT = re.compile(
    r"\b(labels|label_prefix|format|nominal|variables|delimiter|header|n_features|index_base"
    r"|encoding|member|max_bytes|missing|control)=(?=(\S?))"
)


_WORDS = {
    "overwrite=True": "--force",
    "ignore_extra=True": "--ignore-extra",
    "trusted=[...] naming them": "--trust NAME for each of them",
}


def as_options(message: str) -> str:
    """Return a message about arguments in the words of the command line.

    >>> as_options("say it with labels=-k or label_prefix='...'; allow more with max_bytes=")
    "say it with --labels -k or --label-prefix '...'; allow more with --max-bytes"
    """
    for argument, option in _WORDS.items():
        message = message.replace(argument, option)
    return _ARGUMENT.sub(
        lambda match: f"--{match[1].replace('_', '-')}" + (" " if match[2].strip(".,;)") else ""),
        message,
    )


def show_traceback() -> None:
    """Print the traceback of the error that is being handled, if --debug asks for it."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().params.get("debug"):
        click.echo(traceback.format_exc(), err=True)


def _said(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this. {error}".rstrip()
    return str(error)


@contextmanager
def problems_reported() -> Iterator[None]:
    """Turn warnings into lines, and errors into messages with an exit code, without tracebacks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A model that was fitted on a data frame: its columns have been matched by name.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of a pipe has gone: click ends the program quietly
        except (
            DatasetError,
            StoreError,
            ModelFileError,
            OSError,
            ImportError,
            MemoryError,
        ) as error:
            show_traceback()
            raise click.ClickException(as_options(_said(error))) from error
        except (ValueError, TypeError) as error:
            show_traceback()
            raise click.UsageError(as_options(_said(error))) from error
        finally:
            for warning in caught:
                click.echo(f"Warning: {as_options(str(warning.message))}", err=True)
