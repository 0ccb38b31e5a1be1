"""What each part of the ensemble adds, from one kernel to the whole.

    python -m imcc_paper.ablation -o rows.csv --jobs 16                      all of it
    python -m imcc_paper.ablation -o rows.csv --jobs 14 --device cuda --for 300
    python -m imcc_paper.ablation -o rows.csv --data cal500 yeast --splits 1
    python -m imcc_paper.ablation -o rows.csv --print                        the tables only
    python -m imcc_paper.ablation -o results/ablation.csv --print --page docs/ensemble.md

Eight steps, each :class:`imcc.KernelEnsembleClassifier` with one more option at its default:

1. *one kernel*: rbf on the rows as they are, of the mean distance's width, not calibrated;
2. *+ widths*: four widths; 3. *+ kernels*: also the laplacian kernel; 4. *+ views*: all views of
   the rows.  Of what is tried, the best by average precision of the exact leave-one-out scores is
   taken;
5. *+ calibration*: scores become log-odds, per label, before they are compared;
6. *+ coupling*: labels may be coupled through their correlations;
7. *+ ensemble*: a weighted mean of up to 12 in place of the best one, chosen by log loss;
8. *+ virtual examples*: models with virtual examples may join.  This is the default.

The penalty is searched in every step.  Data: the seven of the paper's sets with at most 2500 rows,
and arts and bibtex.  Splits: the first three of the reported ones
(:func:`imcc.datasets.paper_splits`), with the seeds of the experiments, so that the last step
repeats rows of ``kernel_ensemble`` in ``results/paper.csv``.  Nothing is chosen from these numbers:
the recipe was fixed before.

A finished run is added to the file at once; what is in the file is not run again, so a stopped
program goes on where it was.  Runs are processes of one thread each.  With ``--device`` the sets of
more than 2500 rows are computed there, one after the other, beside the others: about five minutes
with 16 cores and one GPU, against half an hour of the GPU for everything.  With ``--for`` no run is
begun after so many seconds.  The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded;
see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import textwrap
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from imcc import KernelEnsembleClassifier
from imcc.datasets import dataset_info, list_datasets, load_dataset, paper_splits, split_seed
from imcc.metrics import METRICS, evaluate
from imcc_paper import _rows

DATA = ("cal500", "genbase", "medical", "enron", "image", "scene", "yeast", "arts", "bibtex")
#: Sets of more rows are for the device.
SMALL = 2500
_BARE: dict[str, Any] = {
    "views": ("raw",),
    "kernels": ("rbf",),
    "width_scales": (1.0,),
    "calibration": None,
    "coupling": (0.0,),
    "n_members": 1,
    "weights": "scoring",
    "virtual_examples": False,
}
#: The options that a step sets to their defaults.
ADDED: dict[str, tuple[str, ...]] = {
    "one kernel": (),
    "+ widths": ("width_scales",),
    "+ kernels": ("kernels",),
    "+ views": ("views",),
    "+ calibration": ("calibration",),
    "+ coupling": ("coupling",),
    "+ ensemble": ("n_members", "weights"),
    "+ virtual examples": ("virtual_examples",),
}
STEPS = tuple(ADDED)
#: Around what is made from the rows in a page.
BEGIN, END = "<!-- ablation: begin -->", "<!-- ablation: end -->"
COLUMNS = ("data", "split", "step", "device", "seconds", "n_members", "virtual_weight", *METRICS)
WORDS = ("data", "step", "device")
WHOLE = ("split", "n_members")


class Run(NamedTuple):
    """One step on one split of one data set."""

    data: str
    split: int
    step: str


def options_of(step: str) -> dict[str, Any]:
    """Return the parameters that are not at their defaults in a step."""
    options = dict(_BARE)
    for name in STEPS[: STEPS.index(step) + 1]:
        for added in ADDED[name]:
            del options[added]
    return options


def measure(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Fit a step on the training rows of a split; return the row of the file, in a list."""
    data = load_dataset(run.data)
    train, test = paper_splits(data, run.split + 1)[run.split]
    seed = split_seed(0, data.name, data.n_rows, run.split)
    model = KernelEnsembleClassifier(**options_of(run.step), random_state=seed, device=device)
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # clusters of few rows
        model.fit(data.X[train], data.Y[train])
        seconds = time.perf_counter() - start
        scores = model.decision_function(data.X[test])
    row = {
        **run._asdict(),
        "device": device or "cpu",
        "seconds": round(seconds, 2),
        "n_members": len(model.members_),
        "virtual_weight": model.virtual_weight_,
        **evaluate(data.Y[test], scores),
    }
    return [row]


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, WORDS, WHOLE)


def finished(rows: Iterable[dict[str, Any]]) -> set[Run]:
    """Return the runs that have their row."""
    return {Run(row["data"], row["split"], row["step"]) for row in rows}


def run_all(
    runs: Sequence[Run], path: Path, jobs: int, device: str | None, seconds: float = np.inf
) -> int:
    """Compute what is not in the file yet; return how many runs failed."""
    done = finished(stored_rows(path))
    # The first split of all sets first; of those the longest, so that none is left for the end.
    left = sorted(
        (run for run in runs if run not in done),
        key=lambda run: (run.split, -dataset_info(run.data).n_rows, -STEPS.index(run.step)),
    )
    there = [r for r in left if device is not None and dataset_info(r.data).n_rows > SMALL]
    return _rows.run_all(
        measure,
        [
            _rows.Queue([run for run in left if run not in there], jobs),
            _rows.Queue(there, 1, device),
        ],
        lambda rows: _rows.add_rows(path, COLUMNS, rows),
        name=lambda run: f"{run.step} on {run.data}, split {run.split}",
        outcome=lambda rows: (
            f"average precision {rows[0]['average_precision']:.4f} in {rows[0]['seconds']:.1f} s"
        ),
        seconds=seconds,
    )


def complete(rows: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return, by data set, the metrics of all steps: the means over the splits that have all steps.

    Each array is of shape (n_steps, n_metrics).
    """
    cells: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        values = [row[name] for name in METRICS]
        cells.setdefault((row["data"], row["split"]), {})[row["step"]] = values
    gathered: dict[str, list[list[list[float]]]] = {}
    for (data, _), steps in sorted(cells.items()):
        if set(steps) >= set(STEPS):
            gathered.setdefault(data, []).append([steps[step] for step in STEPS])
    return {data: np.mean(values, axis=0) for data, values in gathered.items()}


def mean_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the means over data sets, as Markdown; with the change by each step.

    Behind it the numbers of sets that are better and worse.
    """
    found = complete(rows)
    if not found:
        return "no split of any data set has all steps yet"
    signs = np.array([1.0 if METRICS[name].greater_is_better else -1.0 for name in METRICS])
    values = np.stack(list(found.values()))  # (n_sets, n_steps, n_metrics)
    means = values.mean(axis=0)
    lines = [
        f"| {len(found)} sets | " + " | ".join(name.replace("_", " ") for name in METRICS) + " |",
        "| --- |" + " --- |" * len(METRICS),
    ]
    for i, step in enumerate(STEPS):
        cells = []
        for k in range(len(METRICS)):
            cell = f"{means[i, k]:.4f}"
            if i > 0:
                change = values[:, i, k] - values[:, i - 1, k]
                better = int(np.sum(signs[k] * change > 0))
                worse = int(np.sum(signs[k] * change < 0))
                cell += f" ({change.mean():+.4f}; {better} : {worse})"
            cells.append(cell)
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def changes(rows: Sequence[dict[str, Any]], metric: str) -> dict[str, np.ndarray]:
    """Return how much better each step is than the one before it, by data set."""
    k, found = list(METRICS).index(metric), complete(rows)
    sign = 1.0 if METRICS[metric].greater_is_better else -1.0
    values = sign * np.stack(list(found.values()))[:, :, k]
    return {step: values[:, i] - values[:, i - 1] for i, step in enumerate(STEPS) if i > 0}


def interval_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the gain by each step with a 95 % interval over data sets, as Markdown."""
    lines = [
        "| gain, with 95 % intervals over sets | "
        + " | ".join(name.replace("_", " ") for name in METRICS)
        + " |",
        "| --- |" + " --- |" * len(METRICS),
    ]
    for step in STEPS[1:]:
        cells = []
        for name in METRICS:
            mean, half = _interval(changes(rows, name)[step])
            text = f"{mean:+.4f} ± {half:.4f}"
            cells.append(f"**{text}**" if abs(mean) > half else text)
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _interval(gain: np.ndarray) -> tuple[float, float]:
    """Return a mean and half of its 95 % interval (Student's t)."""
    n = len(gain)
    if n < 3:
        return float(gain.mean()), float("inf")
    half = student.ppf(0.975, n - 1) * gain.std(ddof=1) / np.sqrt(n)
    return float(gain.mean()), float(half)


def what_helps(rows: Sequence[dict[str, Any]]) -> str:
    """Return in words which steps gain or lose by some metric, as far as the intervals tell."""
    better: dict[str, list[str]] = {}
    worse: dict[str, list[str]] = {}
    for step in STEPS[1:]:
        for name in METRICS:
            mean, half = _interval(changes(rows, name)[step])
            if abs(mean) > half:
                (better if mean > 0 else worse).setdefault(step, []).append(name.replace("_", " "))
    rest = [step for step in STEPS[1:] if step not in better and step not in worse]
    parts = [
        f"*{step}* is {word} by {', '.join(names)}"
        for word, found in (("better", better), ("worse", worse))
        for step, names in found.items()
    ]
    text = "Positive is better; bold where the interval is without zero. By that, "
    text += ("; ".join(parts) or "no step makes a difference") + "."
    if rest and parts:
        text += f" Of {', '.join(f'*{step}*' for step in rest)} that cannot be said."
    return "\n".join(textwrap.wrap(text, 110, break_on_hyphens=False))


def data_table(rows: Sequence[dict[str, Any]], metric: str) -> str:
    """Return one metric of all data sets and steps, as Markdown."""
    k, found = list(METRICS).index(metric), complete(rows)
    lines = [
        f"| {metric.replace('_', ' ')} | " + " | ".join(STEPS) + " |",
        "| --- |" + " --- |" * len(STEPS),
    ]
    lines += [
        f"| {name} | " + " | ".join(f"{value:.4f}" for value in found[name][:, k]) + " |"
        for name in list_datasets("all")
        if name in found
    ]
    return "\n".join(lines)


def page_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the part of the page that is made from the rows: how many there are, two tables."""
    found = complete(rows)
    splits = {name: set[int]() for name in found}
    for row in rows:
        if row["data"] in splits:
            splits[row["data"]].add(row["split"])
    most = max((len(of_data) for of_data in splits.values()), default=0)
    return "\n\n".join(
        [
            f"Means over the {len(found)} sets of which all steps were run, up to {most} "
            f"split{'s' if most > 1 else ''} each.\nIn brackets: the change by the step, and the "
            "numbers of sets on which it is better and worse.",
            mean_table(rows),
            *((interval_table(rows), what_helps(rows)) if found else ()),
            data_table(rows, "average_precision"),
        ]
    )


def with_rows(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a page with the part between the two marks made from the rows."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"the page must have the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{page_text(rows)}\n\n{END}{after}"


def update_page(rows: Path, page: Path, check: bool = False) -> None:
    """Write the part of a page that is made from rows, or fail if it is another one."""
    old = page.read_text("utf-8")
    new = with_rows(old, stored_rows(rows))
    if check and new != old:
        raise SystemExit(f"{page.name} is not what {rows.name} gives: run make -C paper")
    if new != old:
        page.write_text(new, "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, compute what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", default=list(DATA), help=f"data sets ({DATA})")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument("--device", help=f"where sets of more than {SMALL} rows are computed: cuda")
    parser.add_argument(
        "--for", dest="seconds", type=float, default=np.inf, help="begin no run after this"
    )
    parser.add_argument("--print", action="store_true", help="compute nothing")
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    parser.add_argument("--by-data", nargs="*", choices=list(METRICS), help="tables by data set")
    asked = parser.parse_args(arguments)
    failures = 0
    if not asked.print:
        runs = [
            Run(data, split, step)
            for data in asked.data
            for split in range(asked.splits)
            for step in asked.steps
        ]
        failures = run_all(runs, asked.output, asked.jobs, asked.device, asked.seconds)
    rows = stored_rows(asked.output)
    if asked.page is not None:
        update_page(asked.output, asked.page)
    print(mean_table(rows))
    for name in asked.by_data or ():
        print("\n" + data_table(rows, name))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
