"""Suspect labels: how many of those that are listed were flipped, beside cleanlab.

    python -m imcc_paper.label_issues --csv results/label_issues.csv

Flips are drawn with a probability of 5 %: of all labels, of those that a row has ("forgotten"), or
of those that it lacks ("added").  Both methods are given the same held-out probabilities, those of
an ensemble that was trained on the flipped labels.  cleanlab must be installed (it is no dependency
of imcc or of this project); its list is that of ``find_multilabel_issues_per_class`` with its
defaults.  It does not compare labels with each other; entries are ranked by the probability of the
given label, those on its list first.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np

from imcc import KernelEnsembleClassifier
from imcc.datasets import load_dataset
from imcc.inspection import find_label_issues
from imcc_paper import _measured
from imcc_paper._measured import Measurements

# How labels are ranked was chosen on the first ones.
DATA = {"flips": ("emotions", "image", "yeast"), "unseen": ("birds", "medical", "enron")}
KINDS = {"both": "both kinds", "missing": "forgotten", "added": "added"}
RATE, N_REPEATS = 0.05, 3


def flipped(Y: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Return where labels are flipped."""
    drawn = np.random.default_rng(seed).random(Y.shape) < RATE
    return drawn & {"both": np.ones_like(Y), "missing": Y, "added": ~Y}[kind]


def cleanlab_order(given: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, int]:
    """Return all entries, the most suspicious first, and how many cleanlab lists."""
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    sets = [np.flatnonzero(row).tolist() for row in given]
    lists, _, _ = find_multilabel_issues_per_class(
        sets, chances, return_indices_ranked_by="self_confidence", n_jobs=1
    )
    rank = 1 - np.where(given, chances, 1 - chances)
    for j, rows in enumerate(lists):
        rank[rows, j] += 1
    return np.argsort(-rank, axis=None, kind="stable"), sum(map(len, lists))


def precisions(name: str, kind: str, seed: int) -> dict[str, float]:
    """Return the precision of both lists and their lengths."""
    data = load_dataset(name)
    Y: Any = data.Y.toarray() if hasattr(data.Y, "toarray") else data.Y
    Y = np.asarray(Y) > 0
    flips = flipped(Y, kind, seed)
    given = Y ^ flips
    model = KernelEnsembleClassifier(random_state=0).fit(data.X, given.astype(int))
    chances = np.asarray(model.held_out_proba_, dtype=np.float64)
    listed = find_label_issues(model)
    order, n_cleanlab = cleanlab_order(given, chances)
    other = flips.ravel()[order]
    return {
        "flips": int(flips.sum()),
        "listed": len(listed),
        "precision": flips[listed.rows, listed.label_indices].mean(),
        "cleanlab_listed": n_cleanlab,
        "cleanlab_precision": other[:n_cleanlab].mean(),
        "cleanlab_at_same_length": other[: len(listed)].mean(),
    }


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked block of the page."""
    header = ["data", "flips", "list", "cleanlab's list", "as many of cleanlab's"]
    rows = []
    cases = [(part, case) for part in DATA for case in found.cases(part)]
    for part, case in cases:
        name, _, kind = case.partition(" ")
        v = found.of(part, case)
        rows.append(
            [
                f"{name}, {KINDS[kind]}",
                f"{v['flips']:,.0f}",
                f"{v['precision']:.0%} of {v['listed']:,.0f}",
                f"{v['cleanlab_precision']:.0%} of {v['cleanlab_listed']:,.0f}",
                f"{v['cleanlab_at_same_length']:.0%}",
            ]
        )
    return {"label-issues": _measured.table(header, rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=DATA, help="one of the parts only")
    _measured.add_csv_option(parser, "label_issues")
    options = parser.parse_args()
    found = Measurements()
    for part in [options.part] if options.part else DATA:
        for name, kind in itertools.product(DATA[part], KINDS):
            each = [precisions(name, kind, seed) for seed in range(N_REPEATS)]
            means = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
            found.add(part, f"{name} {kind}", **means)
    print(blocks(found)["label-issues"])
    if options.csv:
        found.save(options.csv)


if __name__ == "__main__":
    main()
