"""How well methods rank rare and frequent labels, from the records of the runs."""

from __future__ import annotations

from typing import Any

from imcc.comparison import Comparison
from imcc.report._ranked import not_different
from imcc.report._results import Compared
from imcc.report._words import DASH, joined, number, one_line, p_text, rank_text, shorten

#: The ranges of ``LABEL_RANGES`` in words: the share of the training rows that have the label.
RANGE_TITLES = {
    "label_ap_to_1": "at most 1 %",
    "label_ap_1_to_5": "1 to 5 %",
    "label_ap_5_to_20": "5 to 20 %",
    "label_ap_above_20": "more than 20 %",
}


def frequency_section(compared: dict[str, Compared]) -> dict[str, Any] | None:
    """Return the table of the report: who is best in each range, and all methods; None without."""
    results = {
        name: found.comparison for name, found in compared.items() if found.comparison is not None
    }
    if not results:
        return None
    methods = dict.fromkeys(m for result in results.values() for m in result.methods)
    order = sorted(
        methods,
        key=lambda m: min(
            float(r.mean_ranks[r.methods.index(m)]) for r in results.values() if m in r.methods
        ),
    )
    return {
        "ranges": [
            {"title": RANGE_TITLES[name], "n": len(result.datasets), **_winner(result)}
            for name, result in results.items()
        ],
        "methods": [
            {"name": one_line(m), "cells": [_cell(result, m) for result in results.values()]}
            for m in order
        ],
    }


def _winner(result: Comparison) -> dict[str, str]:
    best = [
        result.methods[i]
        for i in result.order
        if result.mean_ranks[i] <= result.mean_ranks.min() + 1e-9
    ]
    test, alike = DASH, DASH
    friedman = result.friedman
    if friedman is not None and result.nemenyi is not None:
        test = f"Friedman, {p_text(float(friedman.f_p))}"
        others = [m for m in result.methods if m not in best]
        same = not_different(result, best[0]) if friedman.significant else others
        alike = joined(shorten(m, 40) for m in same if m not in best) or DASH
    return {"best": joined(shorten(m, 40) for m in best), "test": test, "alike": alike}


def _cell(result: Comparison, method: str) -> dict[str, Any] | None:
    if method not in result.methods:
        return None
    j = result.methods.index(method)
    means = result.means.mean(axis=0)
    return {
        "value": f"{means[j]:.6g}",
        "mean": number(float(means[j])),
        "rank": rank_text(float(result.mean_ranks[j])),
        "best": bool(means[j] == means.max()),
    }
