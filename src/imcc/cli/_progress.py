"""Progress of a command: bars with the remaining time, plain lines, lines of JSON, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from imcc._utils.config import get_config
from imcc._utils.progress import Receiver, progress_reported_to
from imcc._utils.text import printable
from imcc.cli._terminal import print_json, say, stderr

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Progress

    Show = Callable[[Progress], None]
    Report = Callable[..., None]


@contextmanager
def working(what: str, *, quiet: bool = False, beside: bool = True) -> Iterator[Report]:
    """Show the progress of the computations inside, and the estimated remaining time.

    They report it with :func:`imcc._utils.progress.report_progress`, or by calling the returned
    function as ``report(done, total, what)``; in that case, discard the reports of others with
    ``progress_reported_to(None)``.  On a
    terminal, a bar is shown, which is removed at the end; otherwise a line from time to time, if
    it takes long.  All output is on standard error.

    Parameters
    ----------
    what : str
        What the command does.
    quiet : bool
        Show nothing.
    beside : bool
        Whether a bar can be drawn; not if results are printed on the same terminal meanwhile.
    """
    if quiet or (has_bars() and not beside):
        with progress_reported_to(None):
            yield lambda _done, _total, _what="": None
        return
    shown = _bar(what) if has_bars() else nullcontext(_Lines(what).update)
    with shown as update, progress_reported_to(update):
        yield lambda done, total, now="": update(done / total if total else 0.0, now)


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
            left = f", about {_rounded(max(rest - (present - self.since), 0.0))} left"
        say(f"{_words(self.name, what)}: {self.share:.0%} done{left}", err=True)


def _words(name: str, what: str = "") -> str:
    return printable(f"{name}: {what}" if what else name)


@contextmanager
def shown_progress(name: str, *, quiet: bool, as_json: bool) -> Iterator[Show]:
    """Give a function that shows the progress of a run.

    Each task that ends leaves a line, on a terminal above a bar; with ``as_json`` a line of JSON on
    standard output; nothing if ``quiet``.
    """
    if quiet or as_json:
        yield _print_json if as_json and not quiet else lambda _: None
        return
    if not has_bars():
        yield _print_line
        return
    with working(name) as report:
        now = {"done": 0, "tasks": 1, "running": 0}

        def show(progress: Progress) -> None:
            if progress.last is not None:
                say(outcome_line(progress), err=True)
            running = ", ".join(map(str, progress.running))
            now.update(done=progress.n_done, tasks=progress.n_tasks, running=len(progress.running))
            counts = f"{progress.n_done} of {progress.n_tasks} done"
            counts += f", {progress.n_failed} failed" if progress.n_failed else ""
            report(progress.n_done, progress.n_tasks, f"{counts}; {running}".removesuffix("; "))

        def inside(share: float, what: str) -> None:
            # What a task says of itself, if it is computed in this process.
            if now["running"] == 1:
                counts = f"{now['done']} of {now['tasks']} done"
                report(now["done"] + share, now["tasks"], f"{counts}; {what}")

        with progress_reported_to(inside):
            yield show


def duration(seconds: float | None) -> str:
    """Return a time as text.

    >>> duration(4.25), duration(75), duration(7320), duration(None)
    ('4.2 s', '1 min 15 s', '2 h 2 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _rounded(seconds: float) -> str:
    """Return an estimate as text: no more digits than it is worth.

    >>> _rounded(4.25), _rounded(75), _rounded(7320)
    ('4 s', '1 min 15 s', '2 h 2 min')
    """
    return f"{round(seconds)} s" if round(seconds) < 60 else duration(seconds)


def outcome_line(progress: Progress) -> str:
    """Return the line for a task that has ended."""
    from imcc.experiment import Failure

    last = progress.last
    assert last is not None
    what = str(last.key)
    if isinstance(last, Failure):
        return f"{what} failed: {last.error}"
    return f"{what} done in {duration(last.seconds)}"


def _left(progress: Progress) -> str:
    if progress.remaining is None:
        return ""
    return f", about {_rounded(progress.remaining)} left"


def _print_line(progress: Progress) -> None:
    if progress.last is not None:
        count = f"[{progress.n_done} of {progress.n_tasks}]"
        say(f"{count} {outcome_line(progress)}{_left(progress)}", err=True)


def _print_json(progress: Progress) -> None:
    from imcc.experiment import Failure

    last = progress.last
    if last is None:
        return
    dataset, method, repetition = last.key
    event = {
        "event": "failed" if isinstance(last, Failure) else "done",
        "dataset": dataset,
        "method": method,
        "repetition": repetition,
        "seconds": last.seconds,
        "done": progress.n_done,
        "failed": progress.n_failed,
        "total": progress.n_tasks,
        "remaining_seconds": progress.remaining,
    }
    if isinstance(last, Failure):
        event["error"] = last.error
    print_json(event, indent=None)
    sys.stdout.flush()  # who reads this wants it now
