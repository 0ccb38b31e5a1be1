"""How far a computation is, for who has asked to know.

What computes says how much of its own work is done (:func:`tell`).  A computation that consists of
others says which share of it each of them is (:func:`part`), so that what they say adds up.  Who
wants to know (the command line) listens (:func:`told_to`).  Without a listener nothing happens,
and results are never changed.

>>> with told_to(lambda share, what: print(f"{share:.2f} {what}")):
...     with part(0, [1, 3], "scaling"):
...         tell(1, 2)
...     with part(1, [1, 3], "fitting"):
...         tell(1, 2, "fitting trees")
0.00 scaling
0.12 scaling
0.25 scaling
0.25 fitting
0.62 fitting trees
1.00 fitting

A listener hears what is told in its own thread and process only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

#: Called with the share that is done, from 0 to 1, and what is being done, which may be empty.
Listener = Callable[[float, str], None]


@dataclass(frozen=True)
class _Place:
    """Where in the whole a computation is: the share at its beginning and at its end."""

    listener: Listener
    begin: float = 0.0
    end: float = 1.0
    what: str = ""


_place: ContextVar[_Place | None] = ContextVar("imcc_progress", default=None)


def is_heard() -> bool:
    """Whether anybody listens."""
    return _place.get() is not None


def tell(done: float, total: float = 1.0, what: str = "") -> None:
    """Say how much of the present computation is done, and what is being done.

    Parameters
    ----------
    done, total : float
        In whichever unit.
    what : str
        In a few words; nothing for those of the part.
    """
    place = _place.get()
    if place is None:
        return
    share = min(max(done / total, 0.0), 1.0) if total > 0 else 1.0
    place.listener(place.begin + share * (place.end - place.begin), what or place.what)


@contextmanager
def told_to(listener: Listener | None) -> Iterator[None]:
    """Let a function hear what the computations inside say; None: nobody."""
    token = _place.set(None if listener is None else _Place(listener))
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def part(index: int, weights: Sequence[float], what: str = "") -> Iterator[None]:
    """Let the computation inside be one of several parts of the present one.

    Parameters
    ----------
    index : int
        Which.
    weights : sequence of float
        How long the parts take; only their proportions count.
    what : str
        What the part does; nothing for what the present one does.
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
        tell(0.0)
        yield
        tell(1.0)
    finally:
        _place.reset(token)
