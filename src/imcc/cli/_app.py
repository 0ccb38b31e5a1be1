"""The main command and its subcommands.

The modules of the commands import the packages that compute inside their functions, so that help
and completion are fast.
"""

from __future__ import annotations

from typing import Any

import click

import imcc
from imcc._utils.text import printable
from imcc.cli._compare import compare_
from imcc.cli._datasets import datasets
from imcc.cli._evaluate import evaluate
from imcc.cli._experiment import experiment
from imcc.cli._inspect import inspect
from imcc.cli._options import examples
from imcc.cli._predict import predict
from imcc.cli._report import report
from imcc.cli._serve import serve
from imcc.cli._tune import tune

# The commands under the headings of the help.
_HEADINGS: dict[str, tuple[click.Command, ...]] = {
    "Models": (tune, inspect, predict, evaluate, serve),
    "Data": (datasets,),
    "Science": (experiment, compare_, report),
}


class _Commands(click.Group):
    """A group that lists its commands under headings, and shows messages without control codes."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in _HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    # As long as the longest name, so that the columns of all headings are aligned.
                    [(f"{c.name:10}", c.get_short_help_str(limit=80)) for c in commands]
                )

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest ours for the words of other programs."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            if args[0] in ("fit", "train"):
                vars(error)["message"] += " Did you mean 'tune'?"
            raise

    def invoke(self, context: click.Context) -> Any:
        """Run a command; control characters in messages of click are escaped."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(130) from None  # as shells report it
        except click.ClickException as error:
            vars(error)["message"] = printable(error.message, keep="\n")
            raise


@click.group(
    cls=_Commands,
    commands=[command for commands in _HEADINGS.values() for command in commands],
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "imcc tune train.csv --labels happy,sad -o model.skops",
        "imcc inspect model.skops",
        "imcc predict model.skops new.csv -o labels.csv",
        "imcc evaluate model.skops test.csv",
    ),
)
@click.version_option(imcc.__version__)
@click.option("--debug", is_flag=True, envvar="IMCC_DEBUG", help="Show the traceback of an error.")
def app(debug: bool) -> None:
    """Multi-label learning with cluster centres as virtual examples."""
