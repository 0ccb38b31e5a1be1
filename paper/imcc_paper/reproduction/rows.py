"""The committed rows, and which of them are compared."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from imcc.comparison import Comparison, ScoreTable
from imcc.experiment import Experiment, Store, load_experiment
from imcc.metrics import METRICS
from imcc_paper.places import EXPERIMENTS, RESULTS
from imcc_paper.reproduction.ranked import plain_methods

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


def plan(name: str) -> Experiment:
    """Return an experiment with the values of all parameters of its methods."""
    return load_experiment(EXPERIMENTS / f"{name}.toml").resolve()


def rows_of(experiment: str) -> Path:
    """Return the file with the committed rows of an experiment."""
    return RESULTS / f"{experiment}.csv"


def opened(folder: Path, experiment: str) -> Store:
    """Return a new store with the committed rows of an experiment."""
    store = Store.create(folder / f"{experiment}.sqlite", plan(experiment))
    store.merge(rows_of(experiment))
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
    plain = [scores.methods.index(method) for method in plain_methods(scores)]
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
