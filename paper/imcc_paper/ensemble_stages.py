"""Where the time of the ensemble goes: seconds by stage of the search and by kind of work.

    python -m benchmarks.ensemble --stages --device cuda --data arts bibtex

A fit to warm up, one that is timed as a whole, and one that is timed part by part, waiting for the
device before and after each part.  The waiting makes the last fit slower than the one before.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks._measured import Measurements
from imcc import KernelEnsembleClassifier
from imcc._backend.device import on_device, synchronize
from imcc._core.kernels import WidthKernel
from imcc._ensemble import competition, members, screening, search, spectrum, tries, virtual
from imcc._ensemble.held_out import Ridge
from imcc._ensemble.members import MemberMaker
from imcc._ensemble.rows import Rows
from imcc._ensemble.selection import Criterion

OTHER = "other"


class Stopwatch:
    """Seconds by (stage, part): what a part calls counts for the part that is called.

    Parameters
    ----------
    wait : callable
        Waits until the device has done what it was told to.
    """

    def __init__(self, wait: Callable[[], None]) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self._wait = wait
        self._inside = [(OTHER, OTHER)]
        self._since = time.perf_counter()

    @contextmanager
    def measure(self, stage: str | None, part: str | None) -> Iterator[None]:
        """Count the time for a stage and a part; None is that of whoever called."""
        self._count()
        above = self._inside[-1]
        self._inside.append((stage or above[0], part or above[1]))
        try:
            yield
        finally:
            self._count()
            self._inside.pop()

    def _count(self) -> None:
        self._wait()
        now = time.perf_counter()
        where = self._inside[-1]
        self.seconds[where] = self.seconds.get(where, 0.0) + now - self._since
        self._since = now

    def watched(self, function: Any, stage: Any = None, part: str | None = None) -> Any:
        """Return a function whose time is counted; ``stage`` may follow from its arguments."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            named = stage(*args) if callable(stage) else stage
            with self.measure(named, part):
                return function(*args, **kwargs)

        return call

    def table(self) -> str:
        """Return the seconds, stages as lines and parts as columns, those of most time first."""
        stages = self._sums(0)
        parts = self._sums(1)
        wide = max(map(len, stages)) + 1
        lines = [" " * wide + "    total " + " ".join(f"{part:>12s}" for part in parts)]
        for stage, total in stages.items():
            cells = (self.seconds.get((stage, part), 0.0) for part in parts)
            lines.append(f"{stage:{wide}s}{total:9.2f} " + " ".join(f"{c:12.2f}" for c in cells))
        total = sum(self.seconds.values())
        lines.append(
            f"{'sum':{wide}s}{total:9.2f} " + " ".join(f"{c:12.2f}" for c in parts.values())
        )
        return "\n".join(lines)

    def _sums(self, key: int) -> dict[str, float]:
        sums: dict[str, float] = {}
        for where, seconds in self.seconds.items():
            sums[where[key]] = sums.get(where[key], 0.0) + seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _screening(_: Any, part: np.ndarray, *_rest: Any) -> str:
    return f"screening, {len(part)} rows"


#: Where a function is looked up, its name there, and the stage and part that it is.
WATCHED: list[tuple[Any, str, Any, str | None]] = [
    (screening, "screen_part", _screening, None),
    (search, "compete", "virtual examples, folds", None),
    (MemberMaker, "make", "members, all rows", None),
    (search, "cross_fit", "cross-fitted score", None),
    (search, "fit_virtual", "virtual member, refit", None),
    (Rows, "rows", None, "views"),
    (search, "choose_greedily", None, "selection"),
    (competition, "choose_greedily", None, "selection"),
    (search, "calibrate", None, "calibration"),
    (tries, "calibrate", None, "calibration"),
    (competition, "calibrate", None, "calibration"),
    (screening, "distances", None, "distances"),
    (members, "distances", None, "distances"),
    (competition, "distances", None, "distances"),
    (virtual, "distances", None, "distances"),
    (virtual, "cluster", None, "clustering"),
    (virtual, "solve_spectral", None, "IMCC's solver"),
    (virtual, "solve_dual", None, "IMCC's solver"),
    (spectrum, "eigh", None, "eigenvectors"),
    (WidthKernel, "finish", None, "kernel"),
    (Ridge, "leave_one_out", None, "leave-one-out"),
    (Ridge, "coefficients", None, "coefficients"),
    (Criterion, "__call__", None, "criterion"),
]


def watched_fit(model: Any, X: Any, Y: Any) -> Stopwatch:
    """Fit a model, and return what was spent on what."""
    like = on_device(np.empty((0, 1)), model.device)
    watch = Stopwatch(lambda: synchronize(like))
    with ExitStack() as stack:
        for owner, name, stage, part in WATCHED:
            function = watch.watched(getattr(owner, name), stage, part)
            stack.enter_context(patch.object(owner, name, function))
        with watch.measure(OTHER, OTHER):
            model.fit(X, Y)
    return watch


def report_stages(name: str, X: Any, Y: Any, device: str | None, measured: Measurements) -> None:
    """Print the time of a fit as a whole and part by part."""
    model = KernelEnsembleClassifier(random_state=0, device=device)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        model.fit(X, Y)
        seconds.append(time.perf_counter() - start)
    print(
        f"{name}: {X.shape[0]} rows x {X.shape[1]}, {Y.shape[1]} labels, {device or 'host'}: "
        f"{seconds[1]:.2f} s (the first fit {seconds[0]:.2f} s), "
        f"{len(model.search_results_['score'])} settings tried"
    )
    size = {"rows": X.shape[0], "features": X.shape[1], "labels": Y.shape[1]}
    part = f"stages, {device or 'host'}"
    measured.add(part, name, **size, seconds=seconds[1], first_seconds=seconds[0])
    print(watched_fit(model, X, Y).table() + "\n", flush=True)
