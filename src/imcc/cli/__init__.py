"""The command line: ``imcc``.

Arguments in, calls out, no logic.  Exit codes: 0 when all went well, 1 when data or a model could
not be read, fetched or written (or the work was interrupted), 2 when the command was not
understood.  Results are written to the standard output, everything else to the standard error.
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
        sys.exit(
            f"imcc: the command line needs the package {error.name!r}: pip install 'imcc[cli]'"
        )
    from imcc.cli._app import app

    try:
        app(prog_name="imcc")
    except OSError as error:  # the standard output cannot be written to: a full disk, say
        sys.exit(f"imcc: {error}")
