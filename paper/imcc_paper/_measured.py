"""Measurements that pages show: one row per number in a small CSV file.

A script collects its numbers in :class:`Measurements`, lays them out with the same functions that
the pages use, and writes them with ``--csv FILE``.  ``python -m imcc_paper.reproduce`` reads the
files again and fills the marked blocks of the pages, without measuring anything.

A number belongs to a case (a row of a table) of a part (a table).  A part is replaced as a whole,
so that no table mixes runs.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import multiprocessing
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import imcc
from imcc.datasets import load_dataset

KEYS = ("part", "case", "quantity")
MACHINE = ("processor", "cores", "python", "numpy", "scipy", "scikit-learn", "imcc")
COLUMNS = (*KEYS, "value", "date", "threads", "device", *MACHINE)


class Measurements:
    """Numbers by part, case and quantity, each with where and when it was measured.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a file.
    device : str
        The GPU of the numbers that are added, with the library that computes on it.
    """

    def __init__(self, rows: Iterable[dict[str, str]] = (), device: str = "") -> None:
        self._rows = {(row["part"], row["case"], row["quantity"]): row for row in rows}
        self._device = device

    @classmethod
    def read(cls, path: Path) -> Measurements:
        """Return the rows of a file; none if there is no file."""
        if not path.exists():
            return cls()
        with path.open(newline="", encoding="utf-8") as file:
            return cls(csv.DictReader(file))

    def add(self, part: str, case: object, **values: float) -> None:
        """Add the numbers of a case, measured here and now; they are also printed as progress."""
        threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
        where = {
            **machine(),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "threads": str(threads),
            "device": self._device,
        }
        for quantity, value in values.items():
            key = dict(zip(KEYS, (part, str(case), quantity), strict=True))
            self._rows[part, str(case), quantity] = {**key, "value": _text(value), **where}
        shown = ", ".join(f"{quantity} {value:.4g}" for quantity, value in values.items())
        print(f"{part}, {case}: {shown}", file=sys.stderr, flush=True)

    def parts(self) -> list[str]:
        """Return the names of the parts."""
        return list(dict.fromkeys(part for part, _, _ in self._rows))

    def cases(self, part: str) -> list[str]:
        """Return the names of the cases of a part, in their order; none if it was not measured."""
        return list(dict.fromkeys(case for of, case, _ in self._rows if of == part))

    def of(self, part: str, case: object) -> dict[str, float]:
        """Return the numbers of a case by quantity."""
        found = {
            quantity: float(row["value"])
            for (of, name, quantity), row in self._rows.items()
            if (of, name) == (part, str(case))
        }
        if not found:
            raise KeyError(f"{part!r} has no case {str(case)!r}, only {self.cases(part)}")
        return found

    def where(self, part: str, column: str) -> str:
        """Return what all numbers of a part have in a column, such as the number of threads."""
        found = {row[column] for row in self._rows.values() if row["part"] == part}
        if len(found) != 1 or found == {""}:
            raise ValueError(f"the rows of {part!r} do not have one {column}: {sorted(found)}")
        return found.pop()

    def save(self, path: Path | None) -> None:
        """Write the parts to a file, if there is one; other parts that it has are kept."""
        if path is None:
            return
        kept = Measurements.read(path)._rows
        rows = {key: row for key, row in kept.items() if key[0] not in self.parts()} | self._rows
        order = list(dict.fromkeys(key[0] for key in (*kept, *rows)))
        lines = sorted(rows.values(), key=lambda row: order.index(row["part"]))  # stable
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def machine() -> dict[str, str]:
    """Return the processor and the versions that a measurement depends on."""
    cpu = Path("/proc/cpuinfo")
    names = (
        [line for line in cpu.read_text().splitlines() if line.startswith("model name")]
        if cpu.exists()
        else []
    )
    return {
        "processor": names[0].partition(":")[2].strip() if names else platform.processor(),
        "cores": str(len(os.sched_getaffinity(0))),  # that this process may use
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "imcc": imcc.__version__,
    }


def _text(value: float) -> str:
    """Return a number with six digits; whole numbers with all of theirs."""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def make_parser(doc: str, name: str) -> argparse.ArgumentParser:
    """Return a parser with ``--csv FILE``, described by the first line of a script's docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help=f"write the numbers to this file, such as results/{name}.csv",
    )
    return parser


def dense_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a data set as a dense array, and its labels."""
    data = load_dataset(name)
    X = data.X.toarray() if data.is_sparse else data.X
    return np.ascontiguousarray(X, dtype=np.float64), data.Y


def seconds(call: Callable[[], object]) -> float:
    """Return the time that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def memory(entry: str) -> int:
    """Return the resident size now (VmRSS) or at its largest (VmHWM), in bytes (Linux).

    Mapped parts of files are included.  ``getrusage`` would count the peak of the parent, too.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(entry))


def in_own_process(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a new process, whose peak memory nothing else has raised.

    It is one of the top level of a module.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(call, *arguments).result()


def digest(path: Path) -> str:
    """Return what a figure says of the rows that it was drawn from."""
    return "sha256 of the rows: " + hashlib.sha256(path.read_bytes()).hexdigest()


def table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Return a Markdown table, the first columns left and the others, of numbers, right."""
    marks = ["---"] * n_left + ["---:"] * (len(header) - n_left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, marks, *rows])


def paragraph(text: str, width: int = 116) -> str:
    """Return a text broken into lines, as wide as those of the pages.

    No line begins with a percent sign, which would be a comment in a page.
    """
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.fill(kept, width, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")
