"""Running an experiment in the terminal: what the commands that compute share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc.cli._progress import shown_progress
from imcc.cli._terminal import problems_reported

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Experiment, Summary

INTERRUPTED = 130  # the exit code that shells give to what Ctrl-C has ended

_RUNNING = (
    click.option(
        "-j",
        "--jobs",
        type=int,
        default=1,
        show_default=True,
        help="Tasks computed at the same time, in processes; -1 is one for each core.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Threads inside a task.  [default: the cores, shared out over the processes]",
    ),
    click.option(
        "--device",
        metavar="NAME",
        help="Where methods that know of devices work, such as cuda.  [default: the processor]",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help='Compute on a Dask cluster: the address of its scheduler, or "local".',
    ),
    click.option("--quiet", is_flag=True, help="Say nothing until the end."),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print a line of JSON for each task, and at the end.",
    ),
)


def running_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where and how to compute: the arguments of :func:`run_shown`."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


def run_shown(
    wanted: Experiment,
    path: Path,
    *,
    jobs: int,
    threads: int | None,
    dask: str | None,
    device: str | None,
    quiet: bool,
    as_json: bool,
) -> Summary:
    """Run an experiment with its progress shown; Ctrl-C ends it with a word on how to go on."""
    from imcc.experiment import run

    try:
        with (
            problems_reported(),
            _terminated_like_interrupted(),
            shown_progress(wanted.name, quiet=quiet, as_json=as_json) as progress,
        ):
            return run(
                wanted,
                path,
                n_jobs=jobs,
                dask=dask,
                threads=threads,
                device=device,
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo(f"Stopped. Go on with: imcc experiment resume {path}", err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let a batch system's SIGTERM stop a run as cleanly as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
