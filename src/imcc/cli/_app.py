"""The root of the commands; each is added here."""

from __future__ import annotations

import click

from imcc.cli._compare import compare_
from imcc.cli._completion import completion
from imcc.cli._datasets import datasets
from imcc.cli._demo import demo
from imcc.cli._evaluate import evaluate
from imcc.cli._experiment import experiment
from imcc.cli._help import Contents, examples
from imcc.cli._inspect import inspect
from imcc.cli._predict import predict
from imcc.cli._report import report
from imcc.cli._sensitivity import sensitivity
from imcc.cli._train import fit, tune


@click.group(
    cls=Contents,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "imcc tune train.csv --labels happy,sad -o model.skops",
        "imcc inspect model.skops",
        "imcc predict model.skops new.csv -o labels.csv",
        "imcc evaluate model.skops test.csv",
    ),
)
@click.version_option(package_name="imcc")
@click.option(
    "--debug", is_flag=True, envvar="IMCC_DEBUG", help="Show where in the program an error arose."
)
def app(debug: bool) -> None:
    """Multi-label learning with cluster centres as virtual examples."""


_COMMANDS = (
    *(tune, fit, inspect, predict, evaluate, datasets),
    *(experiment, sensitivity, compare_, report, demo, completion),
)
for _command in _COMMANDS:
    app.add_command(_command)
