"""The committed rows, and which of them are compared."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from imcc.comparison import Comparison, ScoreTable
from imcc.experiment import Store, load_experiment, merge
from imcc.metrics import METRICS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
TITLES = {
    "one_error": "One-error",
    "hamming_loss": "Hamming loss",
    "ranking_loss": "Ranking loss",
    "coverage": "Coverage",
    "average_precision": "Average precision",
}
#: The same inside of a sentence.
WORDS = {m: t if t.startswith("Hamming") else t.lower() for m, t in TITLES.items()}
#: The method that the others are compared with.
CONTROL = "kernel_ensemble"
#: Differences up to this size do not matter: one point of a hundred; of Hamming loss, where most
#: labels of a row are absent and all methods agree on them, one label of a thousand.
ROPES = dict.fromkeys(METRICS, 0.01) | {"hamming_loss": 0.001}
#: Fewer data sets than this are not tested: Wilcoxon's test could find nothing.
FEWEST = 6
#: Fewer than this have no interval that would say anything.
FEW = 3


def files(experiment: str) -> list[Path]:
    """Return the committed files of an experiment."""
    return sorted([*RESULTS.glob(f"{experiment}.csv"), *RESULTS.glob(f"{experiment}.*.csv")])


def opened(folder: Path, experiment: str) -> Store:
    """Return a new store with the committed rows of an experiment."""
    store = Store.create(folder / f"{experiment}.sqlite", load_experiment(experiment))
    merge(store, files(experiment))
    return store


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, the first column left and the others right."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def prose(text: str) -> str:
    """Return a paragraph, broken into lines and followed by an empty one."""
    return textwrap.fill(text, 99, break_long_words=False, break_on_hyphens=False) + "\n"


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence."""
    names = list(names)
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def present(scores: ScoreTable) -> ScoreTable:
    """Return the methods that have any run, the control first."""
    has = scores.counts.sum(axis=0) > 0
    methods = [m for m, any_ in zip(scores.methods, has, strict=True) if any_]
    methods.sort(key=lambda method: method != CONTROL)  # the others in their order
    return scores.select(methods=methods)


@dataclass(frozen=True)
class Split:
    """Which methods are ranked together, and which by themselves.

    Attributes
    ----------
    complete : tuple of str
        The methods with a run on every data set: they are ranked and tested together.  Not those
        with calibrated scores, since two methods that are nearly the same change the ranks of all
        others.
    partial : tuple of str
        The others that have at least ``FEWEST`` data sets: each is ranked among the complete
        ones on the data sets that it has.
    few : tuple of str
        The rest, which are only in the tables.
    """

    complete: tuple[str, ...]
    partial: tuple[str, ...]
    few: tuple[str, ...]


def split_methods(scores: ScoreTable) -> Split:
    """Return which methods have runs on all data sets, on most, and on few."""
    n_sets = dict(zip(scores.methods, (scores.counts > 0).sum(axis=0), strict=True))
    total = len(scores.datasets)
    complete = tuple(m for m, n in n_sets.items() if n == total and not calibrated(m))
    few = tuple(m for m, n in n_sets.items() if n < min(FEWEST, total))
    partial = tuple(m for m in n_sets if m not in complete and m not in few)
    return Split(complete, partial, few)


def calibrated(method: str) -> bool:
    """Return whether a method is another one with calibrated scores."""
    return method.endswith("_calibrated")


def shared(scores: ScoreTable, methods: Sequence[str]) -> ScoreTable:
    """Return the runs of the splits that all of some methods have; data sets without are left out.

    All means are then over the same splits.
    """
    picked = scores.select(methods=methods)
    common = np.isfinite(picked.values).all(axis=1)
    values = np.where(common[:, np.newaxis, :], picked.values, np.nan)
    kept = [d for d, any_ in zip(picked.datasets, common.any(axis=1), strict=True) if any_]
    return replace(picked, values=values).select(datasets=kept)


def splits_text(scores: ScoreTable) -> str:
    """Return how many splits each data set of a table of shared runs has, in a few words."""
    n = scores.counts[:, 0]
    usual = Counter(n.tolist()).most_common(1)[0][0]
    others = [f"{d} {k}" for d, k in zip(scores.datasets, n, strict=True) if k != usual]
    text = f"{usual} {'split' if usual == 1 else 'splits'} each"
    return text + (f" ({', '.join(others)})" if others else "")


def means_table(scores: ScoreTable, compared: Comparison | None) -> str:
    """Return the means of all methods over all their splits.

    The column "splits" is the most frequent number of a row; a mean over another number is
    followed by it.  Means over different splits cannot be compared, so in bold are those that are
    first among the methods that are ranked together, on the splits that these share.  Methods with
    calibrated scores are in a second table, since one would be too wide.
    """
    first = set()
    if compared is not None:
        first = {
            (compared.datasets[i], compared.methods[j])
            for i, j in np.argwhere(compared.ranks == compared.ranks.min(axis=1, keepdims=True))
        }
    rows: list[list[str]] = []
    for name, row, n in zip(scores.datasets, scores.mean(), scores.counts, strict=True):
        usual = max(Counter(n[n > 0].tolist()).items(), key=lambda item: (item[1], item[0]))[0]
        cells = []
        for method, value, k in zip(scores.methods, row, n, strict=True):
            text = "not run" if k == 0 else f"{value:.3f}"
            text = f"**{text}**" if (name, method) in first else text
            cells.append(text + (f" ({k})" if k not in (0, usual) else ""))
        rows.append([name, str(usual), *cells])
    plain = [j for j, m in enumerate(scores.methods) if not calibrated(m)]
    others = [j for j in range(len(scores.methods)) if j not in plain]
    blocks = [
        table(
            ["", "splits", *(scores.methods[j] for j in columns)],
            [[row[0], row[1], *(row[2 + j] for j in columns)] for row in rows],
        )
        for columns in (plain, others)
        if columns
    ]
    return "\n\n".join(blocks)
