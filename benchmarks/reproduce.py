"""Rebuild the page docs/reproduction.md from the committed rows: ``make reproduce``.

    python -m benchmarks.reproduce            write the page
    python -m benchmarks.reproduce --check    fail if the page is not what the rows give

Nothing is trained: every number comes from ``results/*.csv``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from benchmarks import clustering_page
from imcc.comparison import ScoreTable, compare
from imcc.experiment import Store, load_experiment, merge
from imcc.metrics import METRICS
from imcc.published import compare_with_published

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "reproduction.md"
TITLES = {
    "one_error": "One-error",
    "hamming_loss": "Hamming loss",
    "ranking_loss": "Ranking loss",
    "coverage": "Coverage",
    "average_precision": "Average precision",
}
CONTROL = "kernel_ensemble"
# Methods with fewer data sets are not ranked: a rank needs all methods on a data set.
MOST = 12
PAPER = ("imcc", "brsvm", "ecc", "mahr", "llsf", "jfsc", "lift")

Rows = Sequence[Sequence[str]]


def table(header: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table, the first column left and the others right."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def present(scores: ScoreTable) -> ScoreTable:
    """Return the methods and repetitions that have any run."""
    has = np.isfinite(scores.values)
    methods = [m for j, m in enumerate(scores.methods) if has[:, j].any()]
    methods.sort(key=lambda method: method != CONTROL)  # first, the others in their order
    picked = scores.select(methods=methods)
    repetitions = np.isfinite(picked.values).any(axis=(0, 1))
    return ScoreTable(
        picked.metric,
        picked.greater_is_better,
        picked.datasets,
        picked.methods,
        picked.values[:, :, repetitions],
    )


def first_runs(scores: ScoreTable, n: int) -> ScoreTable:
    """Return the first repetitions only, so that all methods are judged on the same splits."""
    values = scores.values[:, :, :n]
    return ScoreTable(
        scores.metric, scores.greater_is_better, scores.datasets, scores.methods, values
    )


def means_table(scores: ScoreTable) -> str:
    """Return the means of all methods, the best of each data set in bold.

    Means over fewer splits than others have are followed by their number, and never in bold.
    """
    has = np.isfinite(scores.values).any(axis=(1, 2))
    scores = scores.select(datasets=[d for d, h in zip(scores.datasets, has, strict=True) if h])
    means = scores.mean()
    n_splits = np.isfinite(scores.values).sum(axis=2)
    rows = []
    for i, name in enumerate(scores.datasets):
        whole = n_splits[i] == n_splits[i].max()
        best = (np.max if scores.greater_is_better else np.min)(means[i, whole])
        cells = []
        for value, n in zip(means[i], n_splits[i], strict=True):
            text = "not run" if n == 0 else f"{value:.3f}"
            if 0 < n < n_splits[i].max():
                text += f" ({n})"
            cells.append(f"**{text}**" if text == f"{best:.3f}" else text)
        rows.append([name, *cells])
    return table(["", *scores.methods], rows)


def interval(differences: np.ndarray) -> str:
    """Return the mean over data sets with its 95 % interval (Student's t)."""
    n = len(differences)
    half = student.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return f"{differences.mean():+.4f} ± {half:.4f}"


def compare_methods(tables: dict[str, ScoreTable]) -> Iterator[str]:
    """Yield ranks and tests of the methods that have run on most of the data sets."""
    some = next(iter(tables.values()))
    n_sets = np.isfinite(some.values).any(axis=2).sum(axis=0)
    methods = [m for m, n in zip(some.methods, n_sets, strict=True) if n >= MOST]
    left_out = [m for m in some.methods if m not in methods]
    yield (
        "Ranks of the means above, on the data sets that all methods in the table have"
        + (f" ({', '.join(left_out)} has too few to be ranked)." if left_out else ".")
        + "\n"
    )
    ranks: dict[str, list[str]] = {}
    tests, order = [], {}
    for metric, scores in tables.items():
        means = ScoreTable(
            metric,
            scores.greater_is_better,
            scores.datasets,
            tuple(methods),
            scores.select(methods=methods).mean()[:, :, None],
        )
        found = compare(means, control=CONTROL, missing="drop_datasets")
        for j, method in enumerate(found.methods):
            ranks.setdefault(method, []).append(f"{found.mean_ranks[j]:.2f}")
            order.setdefault(method, []).append(float(found.mean_ranks[j]))
        tests.append(
            [
                TITLES[metric],
                f"{found.friedman.f:.2f}",
                f"{found.friedman.f_critical:.2f}",
                f"{found.nemenyi.critical_difference:.2f}",
                str(len(found.datasets)),
            ]
        )
    sorted_methods = sorted(ranks, key=lambda method: np.mean(order[method]))
    yield table(
        ["average rank", *(TITLES[m] for m in tables)],
        [[method, *ranks[method]] for method in sorted_methods],
    )
    yield "\nFriedman's test (the methods differ where F_F is above the critical value at 5 %) and"
    yield "Nemenyi's critical difference of average ranks:\n"
    yield table(["", "F_F", "critical value", "critical difference", "data sets"], tests)


def against_control(tables: dict[str, ScoreTable]) -> Iterator[str]:
    """Yield the differences between the control and each other method, data set by data set."""
    yield (
        f"Mean over the data sets of `{CONTROL}` minus the other method, with a 95 %\n"
        "interval (Student's t over data sets), and the number of data sets on which it is\n"
        "better, on the splits that both have. Of average precision more is better, of the\n"
        "others less.\n"
    )
    methods = [m for m in next(iter(tables.values())).methods if m != CONTROL]
    rows = []
    for method in methods:
        cells = []
        for scores in tables.values():
            ours, theirs = scores.select(methods=[CONTROL, method]).values.transpose(1, 0, 2)
            gaps = ours - theirs  # of the splits that both have
            gap = np.array([row[np.isfinite(row)].mean() for row in gaps if np.isfinite(row).any()])
            if len(gap) < 2:
                cells.append("not run")
                continue
            wins = (gap > 0).sum() if scores.greater_is_better else (gap < 0).sum()
            cells.append(f"{interval(gap)} ({wins} of {len(gap)})")
        rows.append([method, *cells])
    yield table(["against", *(TITLES[m] for m in tables)], rows)


def beside_the_paper(store: Store) -> Iterator[str]:
    """Yield how many of the paper's numbers are reproduced."""
    rows = []
    for selection, words in (
        ("average_precision", "average precision"),
        ("each", "each metric itself"),
    ):
        found = compare_with_published(store, selection)
        for method in PAPER:
            counts = found.counts(method=method)
            if counts.get("missing", 0) == 75:
                continue
            rows.append(
                [
                    method,
                    words if method in ("imcc", "llsf", "jfsc") else "(no search)",
                    *(str(counts.get(k, 0)) for k in ("reproduced", "better", "worse", "missing")),
                ]
            )
    seen = set()
    kept = [row for row in rows if not ((key := (row[0], row[1])) in seen or seen.add(key))]
    yield table(["method", "settings chosen by", "reproduced", "better", "worse", "not run"], kept)


def origins(store: Store, methods: Sequence[str]) -> str:
    """Return how many runs each method has, by where they were computed."""
    found: dict[tuple[str, str], int] = {}
    for run in store.runs():
        key = (run.key.method, "GPU" if run.environment.get("device") else "CPU")
        found[key] = found.get(key, 0) + 1
    rows = [
        [method, *(str(found.get((method, where), 0)) for where in ("CPU", "GPU"))]
        for method in methods
    ]
    return table(["method", "runs on a CPU", "runs on a GPU"], rows)


def opened(folder: Path, experiment: str, files: Sequence[Path]) -> Store:
    store = Store.create(folder / f"{experiment}.sqlite", load_experiment(experiment))
    merge(store, list(files))
    return store


def section(store: Store, n: int) -> Iterator[str]:
    """Yield the tables of one experiment, on the first ``n`` splits of each data set."""
    tables = {m: first_runs(present(store.scores(m)), n) for m in METRICS}
    for metric, scores in tables.items():
        better = "larger" if scores.greater_is_better else "smaller"
        yield f"### {TITLES[metric]} ({better} is better)\n"
        yield means_table(scores) + "\n"
    yield "### Ranks and tests\n"
    yield from compare_methods(tables)
    yield f"\n### `{CONTROL}` against each\n"
    yield from against_control(tables)


def page() -> str:
    """Return the whole page."""
    parts = [
        "# Reproduction\n",
        "<!-- Written by benchmarks/reproduce.py (make reproduce); do not edit. -->\n",
        "Every number on this page is computed from the rows in `results/` by `make reproduce`,\n"
        "in about a minute and without training anything. `imcc experiment run paper` computes\n"
        "rows.\n",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = opened(folder, "paper", sorted(RESULTS.glob("paper*.csv")))
        parts.append("## The paper's fifteen data sets, first three splits\n")
        parts.append(
            "Means over three random 80/20 splits; a number in brackets says that fewer were\n"
            "run. Settings of methods that search are chosen by average precision, in five folds\n"
            "of the training rows.\n"
        )
        parts += list(section(store, 3))
        store_outside = opened(folder, "outside", [RESULTS / "outside.csv"])
        parts.append("\n## Five data sets outside of the paper\n")
        parts.append(
            "Nothing was chosen on these. Means over the splits that were run, up to five; most\n"
            "cells are still to be computed (`imcc experiment run outside`).\n"
        )
        for metric in ("average_precision", "ranking_loss"):
            parts.append(f"### {TITLES[metric]}\n")
            parts.append(means_table(present(store_outside.scores(metric))) + "\n")
        store_outside.close()
        parts.append("\n## Beside the paper's numbers\n")
        parts.append(
            "All runs of each cell against the paper's mean and standard deviation over ten\n"
            "splits: reproduced means not significantly different (Welch's t, 5 %, less the\n"
            "rounding of the print).\n"
        )
        parts += list(beside_the_paper(store))
        parts.append("\n## Where the rows come from\n")
        parts.append(
            "All runs of the paper's fifteen data sets, further splits included. Each row names\n"
            "the processor, the device and the versions. Several ran at the same time on one\n"
            "machine, so their times are not times to compare methods by:\n"
            "`python -m benchmarks.baselines` and `python -m benchmarks.ensemble` measure those.\n"
        )
        parts.append(origins(store, present(store.scores("average_precision")).methods))
        store.close()
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = page()
    if parser.parse_args().check:
        if PAGE.read_text("utf-8") != text:
            sys.exit(f"{PAGE} is not what the rows give: run make reproduce")
        return
    PAGE.write_text(text, "utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
    clustering_page.main(["--check"] if "--check" in sys.argv else [])
