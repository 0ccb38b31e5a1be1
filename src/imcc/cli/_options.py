"""Options that several commands share, and their types: lists of numbers and words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from imcc.calibration import CRITERIA
from imcc.cli._reading import DataPath

KERNELS = ("rbf", "laplacian", "chi2", "linear", "cosine")


class Numbers(click.ParamType):
    """Numbers with commas between them."""

    name = "A,B,..."

    def __init__(self, kind: Callable[[str], Any] = float) -> None:
        self.kind = kind

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not numbers with commas between them", param, context)


class Words(click.ParamType):
    """Some of a few words, with commas between them."""

    name = "A,B,..."

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if not isinstance(value, str):
            return value
        words = tuple(value.split(","))
        if wrong := [word for word in words if word not in self.choices]:
            self.fail(f"{wrong[0]!r} is not one of {', '.join(self.choices)}", param, context)
        return words


INPUTS = click.argument(
    "inputs", metavar="NAME_OR_FILE...", type=DataPath(), nargs=-1, required=True
)
OUTPUT = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Where to write the model (.skops).",
)
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of clusterings and folds."
)
SCALE = click.option(
    "--scale", is_flag=True, help="Bring every feature to mean 0 and deviation 1 first."
)
FILL = click.option(
    "--fill-missing", is_flag=True, help="Put the mean of its column in place of a missing value."
)
THRESHOLDS = click.option(
    "--thresholds",
    type=click.Choice(list(CRITERIA)),
    help="Choose each label's threshold by cross-validation, to be best for this.  [default: all "
    "thresholds are 0]",
)
FOLDS = click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="How many parts the rows are divided into for cross-validation.",
)

# Of the commands that compare methods.
CONTROL = click.option(
    "--control", help="The method that the others are compared with.  [default: imcc]"
)
ALPHA = click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The level of significance.",
)
