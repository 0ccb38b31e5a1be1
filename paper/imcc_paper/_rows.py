"""Studies whose runs are added to a CSV file as they finish: a stopped study continues.

A study has runs (a named tuple each), a function ``measure(run)`` that returns the rows of a run,
and a file.  What is in the file is not computed again; a row that was cut off, since the
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
from concurrent.futures import ProcessPoolExecutor, as_completed
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
    rows: Iterable[Mapping[str, Any]],
    run_of: Callable[..., Hashable],
    column: str,
    values_of: Callable[[Any], Iterable[Any]],
) -> set[Any]:
    """Return the runs that have a row for each value of a column that they should have."""
    found: dict[Hashable, set[Any]] = {}
    for row in rows:
        found.setdefault(run_of(row), set()).add(row[column])
    return {run for run, values in found.items() if values == set(values_of(run))}


def run_all(
    measure: Callable[[Any], list[Row]],
    runs: Sequence[Any],
    keep: Callable[[list[Row]], None],
    *,
    name: Callable[[Any], str],
    outcome: Callable[[list[Row]], str],
    jobs: int = 1,
    seconds: float = math.inf,
) -> int:
    """Compute runs and keep their rows; a run that fails is reported, and the others go on.

    Parameters
    ----------
    measure : callable
        Of the top level of a module, since processes import it.
    runs : sequence
    keep : callable
        Called with the rows of a run as soon as it is finished.
    name, outcome : callable
        The run in words, and its rows in a few words, for the line that is printed.
    jobs : int
        How many are computed at the same time; 1 is this process.
    seconds : float
        No run is begun later than this; what has begun is finished.

    Returns
    -------
    int
        How many runs failed.
    """
    end = time.time() + seconds
    failures = count = 0
    for run, rows, error in _attempts(measure, runs, jobs, end):
        if rows is None and not error:
            continue  # the time was over
        count += 1
        if rows is not None:
            keep(rows)
        failures += bool(error)
        text = outcome(rows) if rows is not None else f"failed\n{error}"
        print(f"[{count}/{len(runs)}] {name(run)}: {text}", file=sys.stderr, flush=True)
    if count < len(runs):
        left = len(runs) - count
        print(f"the time is over: {left} runs are left; start again to continue", file=sys.stderr)
    return failures


def _attempts(
    measure: Callable[[Any], list[Row]], runs: Sequence[Any], jobs: int, end: float
) -> Iterator[tuple[Any, list[Row] | None, str]]:
    """Yield the results as they come."""
    if jobs == 1:
        yield from (_attempt(measure, run, end) for run in runs)
        return
    # Started afresh, not forked: a fork of a process with threads or a device may hang.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(_attempt, measure, run, end) for run in runs]
        yield from (future.result() for future in as_completed(waiting))


def _attempt(
    measure: Callable[[Any], list[Row]], run: Any, end: float
) -> tuple[Any, list[Row] | None, str]:
    """Return a run with its rows or its error; with neither after the end."""
    if time.time() >= end:
        return run, None, ""
    try:
        return run, measure(run), ""
    except Exception:
        return run, None, traceback.format_exc()
