"""Optional packages: imported where they are used, with a message when they are missing.

This module imports nothing of imcc, so that every package may use it.
"""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str | None, purpose: str) -> Any:
    """Import an optional module, or say which extra brings it.

    Parameters
    ----------
    module : str
        What to import.
    extra : str or None
        The extra of this package that installs it; None for a package that users install by itself.
    purpose : str
        What it is needed for, as the subject of a sentence.

    Examples
    --------
    >>> require("json", "data", "Reading JSON").__name__
    'json'
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise  # The package is installed, but one of its own requirements is missing.
        name = package.replace("_", "-")  # as pip spells it
        what = name if extra is None else f"'imcc[{extra}]'"
        raise ImportError(
            f"{purpose} needs the package {name!r}, which is not installed: pip install {what}",
            name=package,
        ) from error
