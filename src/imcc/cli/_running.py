"""Running an experiment in the terminal, shared by several commands."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from imcc.cli._progress import shown_progress
from imcc.cli._terminal import problems_reported, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Experiment, Summary

INTERRUPTED = 130  # the exit code that shells give to what Ctrl-C has ended
OUT_OF_TIME = 75  # the one that means "try again later"


class Duration(click.ParamType):
    """A time such as 90, 90s, 30min, 2h or 1h30m, in seconds."""

    name = "TIME"
    _UNITS: ClassVar = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}

    def convert(self, value: Any, param: Any, context: Any) -> float:
        """Return the seconds."""
        if not isinstance(value, str):
            return float(value)
        text = value.replace(" ", "")
        parts = re.findall(r"(\d+(?:\.\d+)?)(min|[smhd])?", text)
        if not parts or "".join(map("".join, parts)) != text:
            self.fail(f"{value!r} is not a time such as 90s, 30min, 2h or 1h30m", param, context)
        return float(sum(float(number) * self._UNITS[unit] for number, unit in parts))


_RUNNING = (
    click.option(
        "-j",
        "--jobs",
        type=int,
        default=1,
        show_default=True,
        help="Number of tasks computed in parallel, in processes; -1 means one per core.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Number of threads per task.  [default: 1 for data sets with less than a million "
        "entries, otherwise the cores divided by the number of processes]",
    ),
    click.option(
        "--allow",
        metavar="PACKAGE",
        multiple=True,
        help="Also allow methods from this package; may be repeated.  Running an "
        "experiment runs the code that it names: classes with fit, from imcc, scikit-learn and "
        "the packages allowed here or by the file that is run.",
    ),
    click.option(
        "--timeout",
        type=Duration(),
        help="Stop a task that takes longer, such as 30min; it counts as failed.",
    ),
    click.option(
        "--for",
        "budget",
        type=Duration(),
        help="Stop after this time, such as 2h.  The same command continues; the exit code is "
        f"{OUT_OF_TIME}.",
    ),
    click.option(
        "--device",
        metavar="NAME",
        help="Device for methods that support it, such as cuda.  [default: NumPy on the CPU]",
    ),
    click.option("--quiet", is_flag=True, help="Print nothing until the end."),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print a line of JSON per task, and at the end.",
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
    quiet: bool,
    as_json: bool = False,
    threads: int | None = None,
    device: str | None = None,
    allow: tuple[str, ...] = (),
    timeout: float | None = None,
    budget: float | None = None,
) -> Summary:
    """Run an experiment and show its progress; Ctrl-C ends it and shows how to continue."""
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
                threads=threads,
                device=device,
                allow=allow,
                timeout=timeout,
                budget=budget,
                progress=progress,
            )
    except KeyboardInterrupt:
        say(f"Stopped. Go on with: imcc experiment run {path}", err=True)
        raise SystemExit(INTERRUPTED) from None


def stopped_in_time(summary: Summary, path: Path) -> None:
    """End the command if the time was over before all was done."""
    if summary.n_out_of_time:
        say(
            f"The time is over; {summary.n_out_of_time} tasks are left. Go on with: imcc "
            f"experiment run {path}",
            err=True,
        )
        raise SystemExit(OUT_OF_TIME)


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
