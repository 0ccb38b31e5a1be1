"""Progress of a command: bars with the remaining time, plain lines, lines of JSON, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING

from imcc._utils.config import get_config
from imcc._utils.progress import Receiver, progress_reported_to
from imcc._utils.text import printable
from imcc.cli._terminal import say

if TYPE_CHECKING:  # imported where they are used, so that help does not wait for them
    from rich.console import Console

    from imcc.experiment._runner import Progress


# Share of the work after which the rest is estimated.
_FIRST_ESTIMATE = 0.1


@contextmanager
def working(what: str, *, quiet: bool = False, max_time: float | None = None) -> Iterator[Receiver]:
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
    max_time : float, default=None
        Seconds after which the computations stop by themselves.
    """
    shown: AbstractContextManager[Receiver] = nullcontext(lambda _share, _what: None)
    if not quiet:
        estimate = _Estimate(max_time)
        console = _console()
        shown = _lines(what, estimate) if console is None else _bar(what, estimate, console)
    with shown as update, progress_reported_to(update):
        yield update


def _console() -> Console | None:
    """Return the terminal that bars are drawn on, if standard error is one, else None."""
    from rich.console import Console

    console = Console(stderr=True)
    # Whatever FORCE_COLOR says.
    return console if sys.stderr.isatty() and not console.is_dumb_terminal else None


class _Estimate:
    """How much is done and how long the rest takes, from the shares that are reported.

    The share never decreases, and is below 1 until the end: what is left after the last report is
    not known.  The rest is estimated once a tenth is done, from the time until the last report
    rather than from the last steps, whose speed says little about the next ones.  From then on the
    time counts down, but not below a third of the time without a report, which may be a long step.

    Parameters
    ----------
    max_time : float or None
        Seconds after which the work stops by itself.
    """

    def __init__(self, max_time: float | None) -> None:
        self.begin, self.max_time, self._share = perf_counter(), max_time, 0.0
        self._reported = self.begin

    def update(self, share: float) -> None:
        self._share, self._reported = max(share, self._share), perf_counter()

    @property
    def share(self) -> float:
        used = 0.0
        if self.max_time is not None:
            used = (perf_counter() - self.begin) / self.max_time
        return min(max(self._share, used), 0.99)

    @property
    def left(self) -> float | None:
        """Seconds that are left, or None if that cannot be said yet."""
        if self.share < _FIRST_ESTIMATE:
            return None
        silent = perf_counter() - self._reported
        rest = (self._reported - self.begin) * (1 - self.share) / self.share
        return max(rest - silent, silent / 3)


@contextmanager
def _bar(name: str, estimate: _Estimate, console: Console) -> Iterator[Receiver]:
    """Draw a bar with the time; give the function that moves it."""
    from rich import progress as bars
    from rich.table import Column
    from rich.text import Text

    class Remaining(bars.ProgressColumn):
        def render(self, task: bars.Task) -> Text:
            task.completed = estimate.share  # which time moves, too
            left = estimate.left
            return Text("" if left is None else f"about {duration(left)} left")

    columns = (
        bars.TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
        ),
        bars.BarColumn(20),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        Remaining(),
    )
    # Standard output is for results: rich would send it to the bar's stream.
    with bars.Progress(
        *columns, console=console, transient=True, redirect_stdout=False, refresh_per_second=4
    ) as progress:
        task = progress.add_task(_words(name), total=None)

        def update(share: float, what: str) -> None:
            estimate.update(share)
            total = 1.0 if estimate.share else None
            done = estimate.share
            progress.update(task, description=_words(name, what), completed=done, total=total)

        yield update


@contextmanager
def _lines(name: str, estimate: _Estimate) -> Iterator[Receiver]:
    """Print a line now and then, without anything that controls a terminal."""
    after = estimate.begin + get_config().progress_after

    def update(share: float, what: str) -> None:
        nonlocal after
        estimate.update(share)
        present = perf_counter()
        if present >= after:
            after = present + get_config().progress_every
            left = "" if estimate.left is None else f", about {duration(estimate.left)} left"
            say(f"{_words(name, what)}: {estimate.share:.0%} done{left}", err=True)

    yield update
    present = perf_counter()
    if present >= estimate.begin + get_config().progress_after:
        say(f"{name}: 100% done in {duration(present - estimate.begin)}", err=True)


def _words(name: str, what: str = "") -> str:
    return printable(f"{name}: {what}" if what else name)


@contextmanager
def shown_progress(name: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows the progress of a run.

    Each task that ends leaves a line, on a terminal above a bar; nothing if ``quiet``.
    """
    current: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal current
        current = progress
        if progress.last is not None and not quiet:
            say(_ended(progress), err=True)
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

    hidden = quiet or _console() is None
    with working(name, quiet=hidden) as update, progress_reported_to(inside):
        yield show


def _ended(progress: Progress) -> str:
    """Return that the last task has ended."""
    from imcc.experiment import Failure

    last = progress.last
    assert last is not None
    how = f"done in {duration(last.seconds)}"
    if isinstance(last, Failure):
        how = f"failed: {last.error}"
    left = "" if progress.remaining is None else f", about {duration(progress.remaining)} left"
    return f"[{progress.n_done} of {progress.n_tasks}] {last.key} {how}{left}"


def duration(seconds: float) -> str:
    """Return a time as text.

    >>> duration(4.25), duration(75), duration(7320)
    ('4.2 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
