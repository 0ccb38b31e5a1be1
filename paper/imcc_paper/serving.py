"""How many requests `imcc serve` answers, how fast, and with how much memory.

    python -m imcc_paper.serving                          all of it, about a quarter of an hour
    python -m imcc_paper.serving --requests 2000 --flood 0      the latencies only
    python -m imcc_paper.serving --csv results/serving.csv      also write the numbers

The model is the default one of the example table.  The load comes from the program ``hey`` (a
package of Debian), on the same machine and to the loopback address only: a fixed number of requests
at a fixed rate, and then as many as are answered, to see whether the memory grows.  Each run ends
after ``--seconds`` at the latest, and the server with this program.

``python -m imcc_paper.reproduce`` shows the numbers on docs/saving_and_serving.md.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from imcc import TableClassifier, save_model
from imcc.tables import example_table
from imcc_paper import _measured
from imcc_paper._measured import Measurements

# Connections of the load generator; each sends its share of the rate.
CONNECTIONS = 10
# Requests before anything is measured, and before the memory is looked at for the first time.
WARM_UP, SETTLED = 200, 2000
TICKS = 100  # of Linux, per second
PAGE = 4096


def records(n: int) -> list[dict[str, Any]]:
    """Return rows that the model was not fitted to."""
    table, _ = example_table(n, seed=1)
    return table.astype(object).where(table.notna(), None).to_dict("records")


def row_milliseconds(model: Any, rows: Sequence[dict[str, Any]]) -> float:
    """Return the CPU time of the probabilities of one record, the median of several rounds."""
    times = []
    for _ in range(7):
        start = time.process_time()
        for row in rows:
            model.predict_proba([row])
        times.append((time.process_time() - start) / len(rows))
    return 1000 * statistics.median(times)


@contextmanager
def server(file: Path, workers: int) -> Iterator[tuple[str, int]]:
    """Run a server on this machine; give its address and its process."""
    command = [sys.executable, "-m", "imcc", "serve", str(file), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            found = re.search(r"running on (http://127\.0\.0\.1:\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("the server did not start: " + "".join(said))
        if workers > 1:  # which start one after the other
            ready = sum("startup complete" in line for line in said)
            for line in process.stderr:
                ready += "startup complete" in line
                if ready == workers:
                    break
        # What it says later must be read, or it would wait for that.
        Thread(target=process.stderr.read, daemon=True).start()
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def processes(pid: int) -> list[int]:
    """Return a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *map(int, children)]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children."""
    ticks = 0
    for each in processes(pid):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def megabytes(pid: int) -> float:
    """Return the memory of a process and its children."""
    pages = (Path(f"/proc/{each}/statm").read_text(encoding="ascii") for each in processes(pid))
    return sum(int(line.split()[1]) for line in pages) * PAGE / 2**20


def load(
    url: str, body: Path, requests: int, rate: float | None, seconds: float
) -> list[tuple[float, int]]:
    """Send requests with hey; return the seconds and the status of each answer."""
    options = ["-n", str(requests), "-c", str(CONNECTIONS), "-m", "POST", "-o", "csv"]
    if rate is not None:
        options += ["-q", str(rate / CONNECTIONS)]
    command = ["hey", *options, "-T", "application/json", "-D", str(body), f"{url}/predict"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return [(float(row["response-time"]), int(row["status-code"])) for row in rows]


def measure(asked: argparse.Namespace, found: Measurements) -> None:
    """Measure the model alone, and servers with different numbers of processes."""
    table, labels = example_table()
    model = TableClassifier(random_state=0).fit(table, labels)
    rows = records(200)
    with tempfile.TemporaryDirectory() as folder:
        file = save_model(model, Path(folder, "model.skops"))
        body = Path(folder, "row.json")
        body.write_text(json.dumps(rows[0]), encoding="utf-8")
        found.add("row", "predict_proba", milliseconds=row_milliseconds(model, rows))
        for workers in asked.workers:
            with server(file, workers) as (url, pid):
                load(url, body, WARM_UP, None, asked.seconds)
                before, start = cpu_seconds(pid), time.perf_counter()
                answers = load(url, body, asked.requests, asked.rate, asked.seconds)
                wall = time.perf_counter() - start
                times = sorted(1000 * duration for duration, _ in answers)
                found.add(
                    "rate",
                    workers,
                    wanted=asked.rate,
                    requests=len(answers),
                    failed=asked.requests - sum(status == 200 for _, status in answers),
                    per_second=len(answers) / wall,
                    median=times[len(times) // 2],
                    p99=times[int(0.99 * len(times))],
                    longest=times[-1],
                    cpu=1000 * (cpu_seconds(pid) - before) / len(answers),
                )
                if asked.flood:
                    load(url, body, SETTLED, None, asked.seconds)
                    small, start = megabytes(pid), time.perf_counter()
                    answers = load(url, body, asked.flood, None, asked.seconds)
                    found.add(
                        "flood",
                        workers,
                        requests=len(answers),
                        failed=asked.flood - sum(status == 200 for _, status in answers),
                        per_second=len(answers) / (time.perf_counter() - start),
                        megabytes_before=small,
                        megabytes_after=megabytes(pid),
                    )


def rate_table(found: Measurements) -> str:
    """Return the table of the latencies at a fixed rate."""
    lines = []
    for workers in found.cases("rate"):
        of = found.of("rate", workers)
        times = [f"{of[name]:.0f} ms" for name in ("median", "p99", "longest")]
        rate = f"{of['per_second']:.0f} of {of['wanted']:.0f}"
        lines.append([workers, rate, f"{of['failed']:.0f}", *times, f"{of['cpu']:.1f} ms"])
    headings = ["processes", "requests per second", "failed", "median", "99 %", "longest", "CPU"]
    return _measured.table([*headings[:-1], "CPU per request"], lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/saving_and_serving.md."""
    cores = found.where("rate", "cores")
    first = found.of("rate", found.cases("rate")[0])
    text = _measured.paragraph(
        f"One row takes {found.of('row', 'predict_proba')['milliseconds']:.1f} ms of CPU time. "
        f"{first['requests']:,.0f} requests with one row each, sent by a load generator on the "
        f"same {cores} cores:"
    )
    text += "\n\n" + rate_table(found)
    for workers in found.cases("flood"):
        of = found.of("flood", workers)
        where = f"{found.where('flood', 'cores')} cores of {found.where('flood', 'processor')}"
        processes = "one process" if workers == "1" else f"{workers} processes"
        text += "\n\n" + _measured.paragraph(
            f"With {processes} and as many requests as are answered ({where}): "
            f"{of['per_second']:.0f} per second; {of['megabytes_before']:.0f} MiB of memory after "
            f"{SETTLED:,} requests, and {of['megabytes_after']:.0f} MiB after "
            f"{of['requests'] + SETTLED:,.0f}."
        )
    return {"serving": text}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print the numbers."""
    parser = _measured.make_parser(__doc__, "serving")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes to try")
    parser.add_argument("--rate", type=float, default=210, help="requests per second")
    parser.add_argument("--requests", type=int, default=12_600, help="requests at that rate")
    parser.add_argument(
        "--flood", type=int, default=100_000, help="requests to see the memory; 0: none"
    )
    parser.add_argument("--seconds", type=float, default=1800, help="the longest time of a run")
    asked = parser.parse_args(arguments)
    if shutil.which("hey") is None:
        parser.error("the load generator hey is not installed: apt-get install hey")
    found = Measurements()
    measure(asked, found)
    print(blocks(found)["serving"])
    found.save(asked.csv)


if __name__ == "__main__":
    main()
