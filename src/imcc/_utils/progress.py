"""Progress of a computation, for callers that want to show it.

A computation reports how much of its own work is done with :func:`report_progress`.  A computation
that consists of several parts gives the share of each with :func:`part`, so that their reports add
up.  A caller, such as the command line, receives the reports with :func:`progress_reported_to`.
Without a receiver nothing happens; results never depend on it.

>>> with progress_reported_to(lambda share, what: print(f"{share:.2f} {what}")):
...     with part(0, [1, 3], "scaling"):
...         report_progress(1, 2)
...     with part(1, [1, 3], "fitting"):
...         report_progress(1, 2, "fitting trees")
0.00 scaling
0.12 scaling
0.25 scaling
0.25 fitting
0.62 fitting trees
1.00 fitting

A receiver gets the reports of its own thread and process only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

#: Called with the share that is done, from 0 to 1, and what is being done, which may be empty.
Receiver = Callable[[float, str], None]


@dataclass(frozen=True)
class _Place:
    """The place of a computation in the whole: the shares done at its beginning and at its end."""

    receiver: Receiver
    begin: float = 0.0
    end: float = 1.0
    what: str = ""


_place: ContextVar[_Place | None] = ContextVar("imcc_progress", default=None)


def is_watched() -> bool:
    """Return whether progress is reported to anything."""
    return _place.get() is not None


def report_progress(done: float, total: float = 1.0, what: str = "") -> None:
    """Report how much of the current computation is done, and what is being done.

    Parameters
    ----------
    done, total : float
        Amounts of work, in any unit.
    what : str
        A few words; by default those of the part.
    """
    place = _place.get()
    if place is None:
        return
    share = min(max(done / total, 0.0), 1.0) if total > 0 else 1.0
    place.receiver(place.begin + share * (place.end - place.begin), what or place.what)


@contextmanager
def progress_reported_to(receiver: Receiver | None) -> Iterator[None]:
    """Send the reports of the computations inside to a function; None discards them."""
    token = _place.set(None if receiver is None else _Place(receiver))
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def part(index: int, weights: Sequence[float], what: str = "") -> Iterator[None]:
    """Treat the computation inside as one of several parts of the current one.

    Parameters
    ----------
    index : int
        Index of the part.
    weights : sequence of float
        Expected durations of the parts; only their proportions matter.
    what : str
        What the part does; by default what the current computation does.
    """
    place = _place.get()
    if place is None:
        yield
        return
    total, size = sum(weights), place.end - place.begin
    begin = place.begin + size * sum(weights[:index]) / total
    end = begin + size * weights[index] / total
    token = _place.set(replace(place, begin=begin, end=end, what=what or place.what))
    try:
        report_progress(0.0)
        yield
        report_progress(1.0)
    finally:
        _place.reset(token)
