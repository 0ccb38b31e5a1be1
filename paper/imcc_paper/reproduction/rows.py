"""The committed rows, and which of them are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from imcc.comparison import ScoreTable
from imcc.experiment import Experiment, Store, load_experiment
from imcc.metrics import METRICS
from imcc_paper._measured import paragraph, table
from imcc_paper.places import EXPERIMENTS, RESULTS

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
#: The methods as tables and figures name them.
NAMES = {
    "kernel_ensemble": "ensemble",
    "imcc": "IMCC",
    "brsvm": "BRsvm",
    "ecc": "ECC",
    "mahr": "MAHR",
    "llsf": "LLSF",
    "jfsc": "JFSC",
    "lift": "LIFT",
    "kernel_ridge": "kernel ridge",
    "extra_trees": "extra-trees",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "logistic": "logistic regression",
}
NAMES |= {
    f"{name}_calibrated": f"calibrated {NAMES[name]}"
    for name in ("imcc", "kernel_ridge", "llsf", "jfsc", "mahr")
}
#: Differences up to this size do not matter: one point of a hundred; of Hamming loss, where most
#: labels of a row are absent and all methods agree on them, one label of a thousand.
ROPES = dict.fromkeys(METRICS, 0.01) | {"hamming_loss": 0.001}


def named(method: str) -> str:
    """Return a method as tables and figures name it."""
    return NAMES.get(method, method)


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


def prose(text: str) -> str:
    """Return a paragraph, broken into lines and followed by an empty one."""
    return paragraph(text, 99) + "\n"


def items(texts: Iterable[str]) -> str:
    """Return texts as the items of a list."""
    return "\n".join("* " + paragraph(text, 99).replace("\n", "\n  ") for text in texts)


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


def means_table(scores: ScoreTable) -> str:
    """Return the means of all methods over all their splits, data sets down.

    The column "splits" is the most frequent number of a row; a mean over another number is
    followed by it.
    """
    rows: list[list[str]] = []
    for name, row, n in zip(scores.datasets, scores.mean(), scores.counts, strict=True):
        usual = max(Counter(n[n > 0].tolist()).items(), key=lambda item: (item[1], item[0]))[0]
        cells = [
            "not run" if k == 0 else f"{value:.3f}" + (f" ({k})" if k != usual else "")
            for value, k in zip(row, n, strict=True)
        ]
        rows.append([name, str(usual), *cells])
    return table(["", "splits", *map(named, scores.methods)], rows)
