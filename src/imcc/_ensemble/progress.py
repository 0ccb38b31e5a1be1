"""How far a search is: the time that is left, in units of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Time left, and progress in units of work."""

    max_seconds: float | None
    say: Callable[[str], None] | None
    begin: float = field(default_factory=time.perf_counter)
    done: float = 0.0
    total: float = 0.0

    def is_up(self) -> bool:
        """Whether the time that was allowed is used up."""
        return self.max_seconds is not None and time.perf_counter() - self.begin > self.max_seconds

    def worked(self, units: float, what: str) -> None:
        """Count work that is done, and say so."""
        self.done += units
        if self.say is not None:
            used = time.perf_counter() - self.begin
            left = used * max(self.total - self.done, 0.0) / self.done
            share = min(100 * self.done / max(self.total, self.done), 100)
            self.say(f"{share:3.0f} % done, about {left:.0f} s left: {what}")
