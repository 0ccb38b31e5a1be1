"""The cells in which the ensemble is not first, and why."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from imcc.comparison import Comparison
from imcc_paper.not_first import AT_LEAST, DATA, METHODS
from imcc_paper.places import RESULTS
from imcc_paper.reproduction.per_set import interval
from imcc_paper.reproduction.ranked import behind
from imcc_paper.reproduction.rows import CONTROL, TITLES, WORDS, listed, prose, table
from imcc_paper.reproduction.tests import Tables

FILE = RESULTS / "not_first.csv"
# An interval over fewer splits says nothing.
_FEWEST = 3


def cells(tables: Tables, compared: Mapping[str, Comparison]) -> Iterator[str]:
    """Yield the cells in which another method is first, with the difference and its interval."""
    rows, significant, n, n_in_favour = [], [], 0, 0
    for metric, found in compared.items():
        if CONTROL not in found.methods:
            continue
        for dataset, first in behind(found, CONTROL):
            n += 1
            scores = tables[metric]
            own, other = (
                scores.values[scores.datasets.index(dataset), scores.methods.index(method)]
                for method in (CONTROL, first[0])
            )
            both = np.isfinite(own) & np.isfinite(other)
            gap = (own - other)[both]
            n_in_favour += (gap.mean() > 0) == scores.greater_is_better
            text = f"{gap.mean():+.4f}"
            if len(gap) >= _FEWEST:
                mean, half = interval(gap)
                text += f" ± {half:.4f}"
                if abs(mean) > half:
                    significant.append(f"{dataset} by {WORDS[metric]}")
            rows.append(
                [
                    TITLES[metric],
                    *(dataset, first[0], str(len(gap))),
                    *(f"{own[both].mean():.4f}", f"{other[both].mean():.4f}", text),
                ]
            )
    if not rows:
        yield prose(f"`{CONTROL}` is first, alone or in a tie, everywhere.")
        return
    yield prose(
        f"The {n} cells in which another method of those ranked together is first: means on all "
        "splits that both have, and the mean difference with a 95 % interval that allows for "
        f"splits that share training rows (Nadeau and Bengio's variance; from {_FEWEST} splits "
        "on). "
        + (
            "In none of them is the difference significant."
            if not significant
            else f"The difference is significant on {listed(significant)}, and nowhere else."
        )
        + _most_on_one(rows)
        + _tied(tables, compared)
        + (
            f" Where the difference is in favour of `{CONTROL}`, the other is first only on the "
            "splits that all methods share."
            if n_in_favour
            else ""
        )
    )
    yield table(
        ["metric", "data set", "first", "splits", f"`{CONTROL}`", "the first", "difference"], rows
    )
    yield ""


def _tied(tables: Tables, compared: Mapping[str, Comparison]) -> str:
    """Name the first by one-error that gave all labels the same score on some splits.

    A tie at the top is no one-error if a relevant label is among the tied ones; each pair of tied
    labels is an error of ranking loss, which is then 1.
    """
    if "one_error" not in compared or "ranking_loss" not in tables:
        return ""
    losses, text = tables["ranking_loss"], ""
    for dataset, first in behind(compared["one_error"], CONTROL):
        row = losses.datasets.index(dataset), losses.methods.index(first[0])
        n = int(np.sum(losses.values[row] == 1))
        if n:
            text += (
                f" {first[0]} gives all labels of {dataset} the same score on {n} of its splits, "
                "which one-error counts as no error, and every other metric as a bad one."
            )
    return text


def _most_on_one(rows: list[list[str]]) -> str:
    """Name the data set that has more than half of the cells."""
    dataset, n = Counter(row[1] for row in rows).most_common(1)[0]
    return f" {n} of the {len(rows)} are on {dataset}." if 2 * n > len(rows) else ""


def rare_labels() -> Iterator[str]:
    """Yield what is left of the differences without the labels that few training rows have."""
    with FILE.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    own, other = METHODS
    rows, parts = [], []
    for dataset in DATA:
        for metric in ("ranking_loss", "coverage"):
            line, means = [dataset, TITLES[metric]], []
            for at_least in AT_LEAST:
                kept = [
                    row
                    for row in found
                    if row["dataset"] == dataset and int(row["at_least"]) == at_least
                ]
                values = {
                    method: {
                        r["repetition"]: float(r[metric]) for r in kept if r["method"] == method
                    }
                    for method in METHODS
                }
                splits = [split for split in values[own] if split in values[other]]
                gap = np.array([values[own][s] - values[other][s] for s in splits])
                mean, half = interval(gap)
                means.append(mean)
                line.append(f"{mean:+.4f} ± {half:.4f}")
            rows.append(line)
            share = 1 - means[1] / means[0]
            part = "all of it" if share >= 1 else f"{100 * share:.0f} %"
            parts.append(f"{part} on {dataset} by {WORDS[metric]}")
    yield prose(
        "Why? On genbase and medical, where logistic regression is first, many labels are rare, "
        f"and some have no training row at all. `{own}` minus `{other}` by all labels, and by "
        "those with at least so many training rows, on the same splits and with the same models "
        "(`python -m imcc_paper.not_first`):"
    )
    names = ["all labels", *(f"at least {n}" for n in AT_LEAST[1:])]
    yield table(["data set", "metric", *names], rows)
    yield "\n" + prose(
        "Of the difference, leaving out the labels that no training row has takes away "
        f"{listed(parts)}. Both methods give such a label the log-odds of a smoothed frequency; a "
        "row that has it counts by the other labels that are ranked above it, and with logistic "
        "regression more of these are below."
    )
