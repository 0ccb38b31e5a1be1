"""Studies whose runs are added to a CSV file as they finish: a stopped study continues.

A study has runs (a named tuple each), a function ``measure(run, device)`` that returns the rows of
a run, and a file.  What is in the file is not computed again; a row that was cut off, since the
program was killed while it wrote, counts as none.
"""

from __future__ import annotations

import csv
import io
import math
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_rows(path: Path, words: Iterable[str] = (), whole: Iterable[str] = ()) -> list[Row]:
    """Return the complete rows of a file; none if there is no file.

    Parameters
    ----------
    path : Path
    words : iterable of str
        The columns of text.
    whole : iterable of str
        Those of whole numbers.  All others are numbers.
    """
    if not path.is_file():
        return []
    kinds: dict[str, Callable[[str], Any]] = dict.fromkeys(words, str) | dict.fromkeys(whole, int)
    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in file if line.endswith("\n")]
    return [
        {name: kinds.get(name, float)(text) for name, text in cells.items()}
        for cells in csv.DictReader(lines)
        if None not in cells and None not in cells.values()
    ]


def add_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a file in one write; begin it with the names of the columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    content = path.read_bytes() if path.is_file() else b""
    complete = content.rfind(b"\n") + 1
    if not complete:
        writer.writeheader()
    writer.writerows(rows)
    with path.open("r+b" if content else "wb") as file:
        # What was cut off is taken away: with an end of line behind it, half a number would be one.
        file.truncate(complete)
        file.seek(complete)
        file.write(text.getvalue().encode())


def finished(
    rows: Iterable[Mapping[str, Any]], run_of: Callable[..., Hashable], column: str, all_of: Any
) -> set[Any]:
    """Return the runs that have a row for each value of a column."""
    found: dict[Hashable, set[Any]] = {}
    for row in rows:
        found.setdefault(run_of(row), set()).add(row[column])
    return {run for run, values in found.items() if values == set(all_of)}


@dataclass
class Queue:
    """Runs that are computed at one place, in this order.

    Attributes
    ----------
    runs : sequence
    jobs : int
        How many at the same time.
    device : str or None
        The second argument of ``measure``.
    """

    runs: Sequence[Any]
    jobs: int = 1
    device: str | None = None


def computed(
    measure: Callable[[Any, str | None], list[Row]], queues: Sequence[Queue], end: float = math.inf
) -> Iterator[tuple[Any, Future[list[Row]]]]:
    """Yield runs and their results as they finish.

    Parameters
    ----------
    measure : callable
        Of the top level of a module, since processes import it.
    queues : sequence of Queue
        They are worked on side by side.  A single one with one job is computed in this process.
    end : float
        No run is begun after it (``time.monotonic()``); what has begun is finished.
    """
    queues = [queue for queue in queues if queue.runs]
    if len(queues) == 1 and queues[0].jobs == 1:
        yield from _here(measure, queues[0], end)
        return
    # Started afresh, not forked: a fork of a process with threads or a device may hang.
    fresh = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(queue.jobs, mp_context=fresh))
            for queue in queues
        ]
        left = [list(queue.runs) for queue in queues]
        waiting: dict[Future[list[Row]], tuple[Any, int]] = {}
        while True:
            for k, (pool, queue) in enumerate(zip(pools, queues, strict=True)):
                # No more at a time than can be computed at once, so that the end is kept.
                busy = sum(place == k for _, place in waiting.values())
                while left[k] and busy < queue.jobs and time.monotonic() < end:
                    run = left[k].pop(0)
                    waiting[pool.submit(measure, run, queue.device)] = run, k
                    busy += 1
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future)[0], future


def _here(
    measure: Callable[[Any, str | None], list[Row]], queue: Queue, end: float
) -> Iterator[tuple[Any, Future[list[Row]]]]:
    for run in queue.runs:
        if time.monotonic() >= end:
            return
        future: Future[list[Row]] = Future()
        try:
            future.set_result(measure(run, queue.device))
        except Exception as error:  # for whoever asks for the result, as from a process
            future.set_exception(error)
        yield run, future


def run_all(
    measure: Callable[[Any, str | None], list[Row]],
    queues: Sequence[Queue],
    keep: Callable[[list[Row]], None],
    *,
    name: Callable[[Any], str],
    outcome: Callable[[list[Row]], str],
    seconds: float = math.inf,
) -> int:
    """Compute runs and keep their rows; a run that fails is reported, and the others go on.

    Parameters
    ----------
    measure, queues : see :func:`computed`
    keep : callable
        Called with the rows of a run as soon as it is finished.
    name, outcome : callable
        The run in words, and its rows in a few words, for the line that is printed.
    seconds : float
        No run is begun later than this.

    Returns
    -------
    int
        How many runs failed.
    """
    total = sum(len(queue.runs) for queue in queues)
    failures = count = 0
    for run, future in computed(measure, queues, time.monotonic() + seconds):
        count += 1
        try:
            rows = future.result()
        except Exception:
            failures += 1
            traceback.print_exc()
            text = "failed"
        else:
            keep(rows)
            text = outcome(rows)
        print(f"[{count}/{total}] {name(run)}: {text}", file=sys.stderr, flush=True)
    if count < total:
        print(
            f"the time is over: {total - count} runs are left; start again to continue",
            file=sys.stderr,
        )
    return failures
