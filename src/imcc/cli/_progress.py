"""The progress of an experiment: a live display, plain lines, lines of JSON, or silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from imcc._utils.text import printable
from imcc.cli._terminal import print_json, say, stderr

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from rich.live import Live

    from imcc.experiment import Progress

    Show = Callable[[Progress], None]


@contextmanager
def shown_progress(name: str, *, quiet: bool, as_json: bool) -> Iterator[Show]:
    """Give a function that shows the progress of a run, in the way that suits.

    On a terminal a live display; elsewhere a line for each task that ends; with ``as_json`` the
    same as JSON, on standard output; nothing if ``quiet``.
    """
    console = stderr()
    if quiet:
        yield _say_nothing
    elif as_json:
        yield _print_json
    elif console.is_terminal:
        from rich.live import Live

        with Live(console=console, refresh_per_second=4, transient=True) as live:
            yield lambda progress: _update(live, name, progress)
    else:
        yield _print_line


@contextmanager
def counted(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many of how many are done: a bar, on a terminal only."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=1)
        yield lambda done, total: bars.update(task, completed=done, total=total)


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
    return f", about {duration(progress.remaining)} left"


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


def _update(live: Live, name: str, progress: Progress) -> None:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from imcc.experiment import Failure

    if progress.last is not None:
        style = "red" if isinstance(progress.last, Failure) else ""
        live.console.print(Text(printable(outcome_line(progress)), style=style))
    head = Text(f"{printable(name)}: {progress.n_done} of {progress.n_tasks} done", style="bold")
    if progress.n_failed:
        head.append(f", {progress.n_failed} failed", style="red")
    head.append(f", {duration(progress.seconds)} so far{_left(progress)}", style="default")
    bar = Table.grid()  # a bar by itself does not end its line
    bar.add_row(ProgressBar(total=progress.n_tasks, completed=progress.n_done, width=60))
    running = Table.grid(padding=(0, 2))
    for key, seconds in progress.running.items():
        running.add_row(Text("  running"), Text(printable(key)), Text(duration(seconds)))
    live.update(Group(head, bar, running))
