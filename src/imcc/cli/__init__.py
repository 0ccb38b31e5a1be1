"""The command line: ``imcc``.

Commands parse their arguments and call other packages.  Exit codes: 0 for success, 1 if data or a
model could not be read, fetched or written (or the command was interrupted), 2 for invalid
arguments.  Results are written to the standard output, everything else to the standard error.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the script ``imcc``."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"imcc: the command line needs the package {error.name!r}: pip install click rich")
    from imcc.cli._app import app

    try:
        app(prog_name="imcc")
    except OSError as error:  # the standard output cannot be written to: a full disk, say
        sys.exit(f"imcc: {error}")
