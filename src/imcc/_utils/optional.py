"""Import of optional packages, with a message if they are missing.

This module imports no other module of imcc, so that all of them can use it.
"""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, purpose: str) -> Any:
    """Import an optional module, or raise an ImportError that tells how to install it.

    Parameters
    ----------
    module : str
        The module to import.
    purpose : str
        What it is needed for, as the subject of a sentence.

    Examples
    --------
    >>> require("json", "Reading JSON").__name__
    'json'
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise  # The package is installed, but one of its requirements is missing.
        name = package.replace("_", "-")
        raise ImportError(
            f"{purpose} needs the package {name!r}, which is not installed: pip install {name}",
            name=package,
        ) from error
