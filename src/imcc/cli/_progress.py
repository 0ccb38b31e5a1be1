"""Progress of a command: bars with the remaining time, plain lines, lines of JSON, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from imcc._utils.config import get_config
from imcc._utils.progress import Receiver, progress_reported_to
from imcc._utils.text import printable
from imcc.cli._terminal import print_json, say, stderr

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Progress


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[Receiver]:
    """Show the progress of the computations inside, and the estimated remaining time.

    They report it with :func:`imcc._utils.progress.report_progress`; the function that gets their
    reports is returned.  On a terminal, a bar is shown, which is removed at the end; otherwise a
    line from time to time, if it takes long.  All output is on standard error.

    Parameters
    ----------
    what : str
        What the command does.
    quiet : bool
        Show nothing.
    """
    shown: AbstractContextManager[Receiver] = nullcontext(lambda _share, _what: None)
    if not quiet:
        shown = _bar(what) if has_bars() else nullcontext(_Lines(what).update)
    with shown as update, progress_reported_to(update):
        yield update


def has_bars() -> bool:
    """Whether bars can be drawn: standard error is a terminal, whatever FORCE_COLOR says."""
    return sys.stderr.isatty() and not stderr().is_dumb_terminal


@contextmanager
def _bar(name: str) -> Iterator[Receiver]:
    """Draw a bar with the time; give the function that moves it, which is never back."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
        BarColumn(20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Standard output is for results: rich would send it to the bar's stream.
    with Progress(
        *columns, console=stderr(), transient=True, redirect_stdout=False, refresh_per_second=4
    ) as progress:
        task = progress.add_task(_words(name), total=None)
        shown = 0.0

        def update(share: float, what: str) -> None:
            nonlocal shown
            shown = max(share, shown)
            total = 1.0 if shown else None
            progress.update(task, description=_words(name, what), completed=shown, total=total)

        yield update


class _Lines:
    """A line now and then, without anything that controls a terminal."""

    def __init__(self, name: str) -> None:
        self.name, self.share = name, 0.0
        self.begin = self.since = time.perf_counter()
        self.after = self.begin + get_config().progress_after

    def update(self, share: float, what: str) -> None:
        """Print a line if it is time for one; the completed fraction never decreases."""
        present = time.perf_counter()
        if share > self.share:
            self.share, self.since = share, present
        if present < self.after:
            return
        self.after = present + get_config().progress_every
        left = ""
        if self.share > 0:
            # What is done took so long; since then, time has gone on.
            rest = (self.since - self.begin) * (1 - self.share) / self.share
            left = f", about {duration(max(rest - (present - self.since), 0.0))} left"
        say(f"{_words(self.name, what)}: {self.share:.0%} done{left}", err=True)


def _words(name: str, what: str = "") -> str:
    return printable(f"{name}: {what}" if what else name)


@contextmanager
def shown_progress(
    name: str, *, quiet: bool, as_json: bool
) -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows the progress of a run.

    Each task that ends leaves a line, on a terminal above a bar; with ``as_json`` a line of JSON on
    standard output; nothing if ``quiet``.
    """
    current: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal current
        current = progress
        if progress.last is not None and not quiet:
            print_event(progress, as_json)
        move(progress, 0.0, ", ".join(map(str, progress.running)))

    def move(progress: Progress, share: float, what: str) -> None:
        counts = f"{progress.n_done} of {progress.n_tasks} done"
        counts += f", {progress.n_failed} failed" if progress.n_failed else ""
        share = (progress.n_done + share) / max(progress.n_tasks, 1)
        update(share, f"{counts}; {what}".removesuffix("; "))

    def inside(share: float, what: str) -> None:
        # What a task says of itself, if it is computed in this process.
        if current is not None and len(current.running) == 1:
            move(current, share, what)

    hidden = quiet or as_json or not has_bars()
    with working(name, quiet=hidden) as update, progress_reported_to(inside):
        yield show


def print_event(progress: Progress, as_json: bool) -> None:
    """Print that a task has ended, as a line or as JSON."""
    from imcc.experiment import Failure

    last = progress.last
    assert last is not None
    error = last.error if isinstance(last, Failure) else None
    if not as_json:
        what = f"done in {duration(last.seconds)}" if error is None else f"failed: {error}"
        left = "" if progress.remaining is None else f", about {duration(progress.remaining)} left"
        say(f"[{progress.n_done} of {progress.n_tasks}] {last.key} {what}{left}", err=True)
        return
    dataset, method, repetition = last.key
    event = {
        "event": "done" if error is None else "failed",
        "dataset": dataset,
        "method": method,
        "repetition": repetition,
        "seconds": last.seconds,
        "done": progress.n_done,
        "failed": progress.n_failed,
        "total": progress.n_tasks,
        "remaining_seconds": progress.remaining,
        **({} if error is None else {"error": error}),
    }
    print_json(event, indent=None)
    sys.stdout.flush()  # who reads this wants it now


def duration(seconds: float) -> str:
    """Return a time as text.

    >>> duration(4.25), duration(75), duration(7320)
    ('4.2 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
