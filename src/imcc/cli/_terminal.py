"""What the commands share: tables, warnings and errors on the terminal."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from imcc.datasets import DatasetError
from imcc.experiment import StoreError


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
    table = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        show_header=any(heading for heading, _ in columns),
    )
    for heading, justify in columns:
        # Numbers are never cut; long names are broken over lines.
        table.add_column(heading, justify=justify, no_wrap=justify == "right", overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))  # Text: a "[" in a name is no markup
    console = stdout()
    console.print(table)
    console.print()


# The readers' messages speak of the arguments of Python: labels=, label_prefix=.
_ARGUMENT = re.compile(
    r"\b(labels|label_prefix|format|nominal|variables|delimiter|header|n_features|index_base"
    r"|encoding|member|max_bytes)=(?=(\S?))"
)


def as_options(message: str) -> str:
    """Return a message about arguments in the words of the command line.

    >>> as_options("say it with labels=-k or label_prefix='...'; allow more with max_bytes=")
    "say it with --labels -k or --label-prefix '...'; allow more with --max-bytes"
    """
    message = message.replace("overwrite=True", "--force")
    return _ARGUMENT.sub(
        lambda match: f"--{match[1].replace('_', '-')}" + (" " if match[2].strip(".,;)") else ""),
        message,
    )


@contextmanager
def problems_reported() -> Iterator[None]:
    """Turn warnings into lines, and errors into messages with an exit code, without tracebacks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (DatasetError, StoreError, OSError, ImportError) as error:
            raise click.ClickException(as_options(str(error))) from error
        except (ValueError, TypeError) as error:
            raise click.UsageError(as_options(str(error))) from error
        finally:
            for warning in caught:
                click.echo(f"Warning: {as_options(str(warning.message))}", err=True)
