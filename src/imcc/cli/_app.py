"""The main command and the list of its subcommands.

The module of a command is imported when the command is used, so that help and completion are fast;
the modules import the packages that compute inside their functions.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import click

import imcc
from imcc._utils.text import printable
from imcc.cli._options import examples

# The commands under headings: the module and the name in it, and the text for `imcc --help`.
CONTENTS: dict[str, dict[str, tuple[str, str]]] = {
    "Models": {
        "tune": ("_tune:tune", "Find the best model for data, and save it."),
        "inspect": (
            "_inspect:inspect",
            "Inspect a model, or explain the scores of one row.",
        ),
        "predict": ("_predict:predict", "Predict the labels of new rows with a model."),
        "evaluate": ("_evaluate:evaluate", "Evaluate a model on rows with known labels."),
        "serve": ("_serve:serve", "Answer requests over HTTP with the predictions of a model."),
    },
    "Data": {
        "datasets": ("_datasets:datasets", "List, describe, fetch and convert data sets."),
    },
    "Science": {
        "experiment": (
            "_experiment:experiment",
            "Compare methods on data sets: run, stop, continue.",
        ),
        "compare": (
            "_compare:compare_",
            "Compare the results of methods, with tests of significance.",
        ),
        "report": ("_report:report", "Write a report on the results of a store as HTML."),
    },
    "More": {
        "demo": ("_demo:demo", "Compare five methods on yeast, and write a report."),
    },
}

# Commands as other programs call them.
_ELSEWHERE = {"fit": ["tune"], "train": ["tune"]}


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and lists them under headings."""

    def __init__(
        self, *args: Any, contents: Mapping[str, Mapping[str, tuple[str, str]]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.contents = contents
        self.places = {name: place for part in contents.values() for name, place in part.items()}

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.places)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name in self.places and name not in self.commands:
            module, _, attribute = self.places[name][0].partition(":")
            found = getattr(importlib.import_module(f"imcc.cli.{module}"), attribute)
            self.add_command(found, name)
        return super().get_command(context, name)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest similar names for an unknown one."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            near = _ELSEWHERE.get(args[0]) or difflib.get_close_matches(args[0], self.places)
            if near and not args[0].startswith("-"):
                guess = f" Did you mean {' or '.join(map(repr, near))}?"
                vars(error)["message"] = error.message + guess
            raise

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing them."""
        # The width of the longest name, so that the columns of all headings are aligned.
        width = max(map(len, self.places))
        for heading, part in self.contents.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in part.items()])

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
    cls=LazyGroup,
    contents=CONTENTS,
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
