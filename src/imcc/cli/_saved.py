"""Model files at the command line: asking before anything foreign is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from imcc.estimators.imcc import IMCCClassifier
from imcc.persistence import (
    ModelCard,
    UntrustedModelError,
    load_model,
    read_card,
)

MODEL = click.argument("model_file", metavar="MODEL", type=click.Path())
TRUST = click.option(
    "--trust",
    multiple=True,
    metavar="TYPE",
    help="Load parts of this type though it is not imcc's, scikit-learn's or NumPy's; may be "
    "repeated.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print no progress and no remarks.")
FORCE = click.option("--force", is_flag=True, help="Write over a file that is there.")


# What a setting is, whether or not it is the default.
_ALWAYS = ("n_clusters", "alpha", "beta", "gamma", "kernel", "width_scale")


def shown_setting(card: ModelCard) -> dict[str, str]:
    """Return the parameters of a model that are worth a word: not those left at their defaults."""
    defaults = IMCCClassifier().get_params()
    return {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in card.params.items()
        if value is not None
        and (name in _ALWAYS or name not in defaults or value != defaults[name])
    }


def open_saved(path: str, trust: tuple[str, ...]) -> tuple[Any, ModelCard]:
    """Load a model and its card; foreign types are asked for at a terminal."""
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}")
    card = read_card(path)
    try:
        return load_model(path, trusted=trust), card
    except UntrustedModelError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        named = "\n".join(f"  {name}" for name in error.types)
        click.echo(
            f"{path} has parts of types that are not known to be harmless:\n{named}\n"
            "Loading them may run code of theirs.",
            err=True,
        )
        if not click.confirm("Load them?", default=False, err=True):
            raise
        return load_model(path, trusted=[*trust, *error.types]), card


def check_output(path: str, force: bool) -> Path:
    """Say before the work, not after it, that a file cannot be written."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give a file to write to")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} into")
    if target.is_file() and not force:
        raise FileExistsError(f"{target} is there already; write over it with --force")
    return target
