"""``imcc serve``: a model behind an address."""

from __future__ import annotations

from typing import Any

import click

from imcc.cli import _options as options


@options.command(
    "imcc serve model.skops",
    "imcc serve model.skops --port 9000 --workers 2",
    "curl -H 'content-type: application/json' -d @rows.json http://127.0.0.1:8000/predict",
)
@options.MODEL
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; 0.0.0.0 lets other machines ask.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes, each with a copy of the model.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=2**20,
    show_default=True,
    help="Maximum size of the body of a request.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Maximum number of rows in a request.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds after which a request is answered with an error.",
)
@options.IGNORE
@options.TRUST
def serve(model_file: str, host: str, port: int, workers: int, **limits: Any) -> None:
    """Answer requests over HTTP with the predictions of a model.

    POST /predict takes a row or a list of rows as JSON, and returns their labels with
    probabilities, until the command is interrupted.  In a browser, / is a form to try a row,
    /model describes the model, and /docs the requests (/openapi.json for programs).  /health says
    that the server is there.  Nothing is written, and no code from the file is run.
    """
    from imcc.serve._app import run

    run(model_file, host, port, workers, **limits)
