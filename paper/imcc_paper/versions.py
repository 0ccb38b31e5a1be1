"""Is this version as fast as another one?  Both take turns on the same rows.

    git worktree add --detach ../before v0.1.0
    python -m imcc_paper.versions ../before/src
    python -m imcc_paper.versions ../before/src --jobs linear nystroem --rounds 15

Real data (arts, 4000 training rows) when ``IMCC_DATA_MIRROR`` names a folder with the paper's
files, otherwise made-up data of the same shape.  Wall and CPU seconds, the median and the least of
the rounds, and the median of the ratios of the rounds: on a machine that does other work too, the
least wall time and the CPU seconds say most.
"""

from __future__ import annotations

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Rounds of the jobs that take long.
FEW = {"search": 3}


def jobs(X: np.ndarray, Y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by name; it must run in old versions too."""
    from imcc import IMCCClassifier, IMCCClassifierCV
    from imcc.metrics import evaluate

    # Before it had a name, the paper's grid was the only one.
    named = "grid" in inspect.signature(IMCCClassifierCV).parameters
    paper = {"grid": "paper"} if named else {}
    part = slice(0, min(1000, len(X)))
    fitted: list[Any] = []

    def score() -> Any:
        if not fitted:
            fitted.append(IMCCClassifier(64, random_state=0).fit(X, Y))
        return fitted[0].decision_function(X[part] + 0.01)

    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1000, 374))
    truth = rng.random(scores.shape) < 0.1
    return {
        "linear": lambda: IMCCClassifier(64, kernel="linear", random_state=0).fit(X, Y),
        "rbf": lambda: IMCCClassifier(64, random_state=0).fit(X, Y),
        "nystroem": lambda: IMCCClassifier(64, approximation="nystroem", random_state=0).fit(X, Y),
        "score": score,
        "search": lambda: IMCCClassifierCV(cv=5, random_state=0, **paper).fit(X[part], Y[part]),
        "metrics": lambda: evaluate(truth, scores),
    }


def work(file: Path) -> None:
    """Run the jobs whose names come in, and answer with wall and CPU seconds."""
    warnings.simplefilter("ignore")
    with np.load(file) as data:
        known = jobs(data["X"], data["Y"])
    for line in sys.stdin:
        job = known[line.strip()]
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


class Version:
    """A process with one version of the package."""

    def __init__(self, source: Path, file: Path, threads: int) -> None:
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--work", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits, "PYTHONPATH": str(source.resolve())},
        )

    def run(self, job: str) -> tuple[float, float]:
        """Return the wall and CPU seconds of a job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(job + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise SystemExit(f"{job} failed; the error stands above")
        return float(answer[0]), float(answer[1])

    def end(self) -> None:
        """Wait until the process has ended."""
        self.process.communicate()


def compare(job: str, before: Version, after: Version, rounds: int) -> str:
    """Return a line of the table, from runs that take turns."""
    before.run(job), after.run(job)  # imports, caches, pools of threads
    times: dict[Version, list[tuple[float, float]]] = {before: [], after: []}
    for k in range(rounds):
        for version in (before, after) if k % 2 == 0 else (after, before):
            times[version].append(version.run(job))
    cells = []
    for kind in (0, 1):
        old, new = ([seconds[kind] for seconds in times[v]] for v in (before, after))
        paired = statistics.median(b / a for a, b in zip(old, new, strict=True))
        cells += [
            f"{statistics.median(old):.3f} ({min(old):.3f})",
            f"{statistics.median(new):.3f} ({min(new):.3f})",
            f"{paired:.2f} ({min(new) / min(old):.2f})",
        ]
    return f"| {job} | " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="folder with the other version's package imcc")
    parser.add_argument("--jobs", nargs="+", help="(default: all)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if not (options.source / "imcc" / "__init__.py").is_file():
        parser.error(f"there is no package imcc in {options.source}")

    from imcc_paper.classifier import load
    from imcc_paper.places import ROOT

    name, X, Y = load(options.rows)
    known = list(jobs(X, Y))
    unknown = set(options.jobs or ()) - set(known)
    if unknown:
        parser.error(f"no job named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    print(f"{name}: {X.shape[0]} rows, {X.shape[1]} features; {options.threads} threads")
    print("seconds: median (least) of rounds; ratio: median of rounds (of the least)\n")
    print("| job | wall before | after | ratio | CPU before | after | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, X=X, Y=Y)
        versions = [Version(s, file, options.threads) for s in (options.source, ROOT / "src")]
        try:
            for job in options.jobs or known:
                rounds = min(options.rounds, FEW.get(job, options.rounds))
                print(compare(job, versions[0], versions[1], rounds), flush=True)
        finally:
            for version in versions:
                version.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]))
    else:
        main()
