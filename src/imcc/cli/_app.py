"""The root of the commands; each group is added here."""

from __future__ import annotations

import click

from imcc.cli._datasets import datasets
from imcc.cli._report import report


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="imcc")
def app() -> None:
    """Multi-label learning with cluster centres as virtual examples."""


app.add_command(datasets)
app.add_command(report)
