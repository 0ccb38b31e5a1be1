"""Progress of a command: bars with the remaining time, plain lines, lines of JSON, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from imcc._utils.config import get_config
from imcc._utils.progress import Receiver, progress_reported_to
from imcc._utils.text import printable
from imcc.cli._terminal import print_json, say, stderr

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from rich.console import Console, ConsoleOptions
    from rich.live import Live

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
    state = _State(what)
    if not has_bars():
        lines = _Lines(state)
        with progress_reported_to(lines.update):
            yield _counting(lines.update)
        return
    from rich.live import Live

    # Standard output is for results: rich would send it to the bar's stream.
    with Live(
        _Bar(state), console=stderr(), refresh_per_second=4, transient=True, **_REDIRECT
    ) as live:
        update = _drawn_at_once(state, live)
        with progress_reported_to(update):
            yield _counting(update)


def _drawn_at_once(state: _State, live: Live) -> Receiver:
    """Return a function that updates the state, and draws a new stage without waiting."""
    drawn = 0.0

    def update(share: float, what: str) -> None:
        nonlocal drawn
        new = what != state.what
        state.update(share, what)
        # Not all of many short stages, which would take longer to draw than to compute.
        if new and time.perf_counter() - drawn > _BETWEEN_STAGES:
            live.refresh()
            drawn = time.perf_counter()

    return update


def _counting(update: Receiver) -> Report:
    """Return a function that takes the completed and the total number; None if unknown."""
    return lambda done, total, what="": update(done / total if total else 0.0, what)


# Seconds between two stages that are drawn at once.
_BETWEEN_STAGES = 0.002
_REDIRECT: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": True}


def has_bars() -> bool:
    """Whether bars can be drawn: standard error is a terminal, whatever FORCE_COLOR says."""
    return sys.stderr.isatty() and not stderr().is_dumb_terminal


class _State:
    """How far a computation is, as it says itself."""

    def __init__(self, name: str) -> None:
        self.name, self.what = name, ""
        self.share, self.begin = 0.0, time.perf_counter()
        self.since = self.begin

    def update(self, share: float, what: str) -> None:
        """Update the completed fraction, which never decreases."""
        self.what = what
        if share > self.share:
            self.share, self.since = share, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self.begin

    def left(self) -> float | None:
        """Return about how many seconds are left; None as long as nothing is known."""
        used = self.since - self.begin
        if self.share <= 0 or used <= 0:
            return None
        # What is done took so long; since then, time has gone on.
        rest = used * (1 - self.share) / self.share
        return max(rest - (time.perf_counter() - self.since), 0.0)

    def words(self) -> str:
        """Return what is done now."""
        return printable(f"{self.name}: {self.what}" if self.what else self.name)

    def time_left(self) -> str:
        """Return the estimate as words that end a line."""
        left = self.left()
        return "" if left is None else f", about {_rounded(left)} left"


class _Lines:
    """A line now and then, without anything that controls a terminal."""

    def __init__(self, state: _State) -> None:
        self.state = state
        self.after = state.begin + get_config().progress_after

    def update(self, share: float, what: str) -> None:
        """Print a line if it is time for one."""
        state = self.state
        state.update(share, what)
        present = time.perf_counter()
        if present >= self.after:
            self.after = present + get_config().progress_every
            say(f"{state.words()}: {state.share:.0%} done{state.time_left()}", err=True)


class _Bar:
    """A bar that is redrawn several times per second, to update the time."""

    def __init__(self, state: _State) -> None:
        self.state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        state = self.state
        known = state.share > 0
        row = Table.grid(padding=(0, 1))
        row.add_row(
            Text(state.words(), overflow="ellipsis", no_wrap=True),
            ProgressBar(total=1.0, completed=state.share, width=20, pulse=not known),
            Text(f"{state.share:.0%}" if known else "", no_wrap=True),
            Text(f"{duration(state.seconds)}{state.time_left()}", no_wrap=True),
        )
        yield row


@contextmanager
def shown_progress(name: str, *, quiet: bool, as_json: bool) -> Iterator[Show]:
    """Give a function that shows the progress of a run, in the way that suits.

    On a terminal a live display; elsewhere a line for each task that ends; with ``as_json`` the
    same as JSON, on standard output; nothing if ``quiet``.
    """
    if quiet:
        yield _say_nothing
    elif as_json:
        yield _print_json
    elif has_bars():
        from rich.live import Live

        view = _Tasks(name)
        with (
            Live(view, console=stderr(), refresh_per_second=4, transient=True, **_REDIRECT) as live,
            progress_reported_to(view.update),
        ):
            yield lambda progress: view.show(live, progress)
    else:
        yield _print_line


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


def _say_nothing(_: Progress) -> None:
    """Show no progress."""


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
    kind, dataset, method, repetition = last.key
    event = {
        "event": "failed" if isinstance(last, Failure) else "done",
        "kind": kind,
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


class _Tasks:
    """The tasks of a run; those that are computed now go on from report to report."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.progress: Progress | None = None
        self.since = time.perf_counter()
        # What a task that is computed in this process says of itself.
        self.task = _State("")

    def update(self, share: float, what: str) -> None:
        """Update the progress of the computation inside the task."""
        if share < self.task.share and share == 0:
            self.task = _State("")
        self.task.update(share, what)

    def show(self, live: Live, progress: Progress) -> None:
        """Show another state of the run; a task that has ended leaves a line."""
        from rich.text import Text

        from imcc.experiment import Failure

        self.progress, self.since = progress, time.perf_counter()
        if progress.last is not None:
            style = "red" if isinstance(progress.last, Failure) else ""
            live.console.print(Text(printable(outcome_line(progress)), style=style))
        if progress.last is not None or len(progress.running) != 1:
            self.task = _State("")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        progress = self.progress
        if progress is None:
            yield Text(printable(self.name), style="bold")
            return
        later = time.perf_counter() - self.since
        head = f"{printable(self.name)}: {progress.n_done} of {progress.n_tasks} done"
        line = Text(head, style="bold")
        if progress.n_failed:
            line.append(f", {progress.n_failed} failed", style="red")
        spent, left = progress.seconds + later, progress.remaining
        line.append(f", {duration(spent)} so far", style="default")
        if left is not None:
            line.append(f", about {_rounded(max(left - later, 0.0))} left", style="default")
        yield line
        done = float(progress.n_done)
        if len(progress.running) == 1:
            done += self.task.share
        # A bar by itself does not end its line.
        bar = Table.grid()
        bar.add_row(ProgressBar(total=progress.n_tasks, completed=done, width=60))
        yield bar
        running = Table.grid(padding=(0, 2))
        for key, seconds in progress.running.items():
            inside = ""
            if len(progress.running) == 1 and self.task.what:
                inside = f"{printable(self.task.what)}, {self.task.share:.0%}"
            running.add_row(
                Text("  running"), Text(printable(key)), Text(duration(seconds + later)), inside
            )
        yield running
