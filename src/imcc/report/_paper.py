"""The section of a report that compares its results with those of the paper."""

from __future__ import annotations

from typing import Any

from imcc.datasets import dataset_info, list_datasets
from imcc.experiment import EACH
from imcc.metrics import METRICS
from imcc.published import CITATION, VERDICTS, PublishedComparison, compare_with_published
from imcc.published import table as published_table
from imcc.report._results import OWN, Results


def paper_section(results: Results) -> dict[str, Any] | None:
    """Return the values of the template; None if there is nothing to compare."""
    compared = {
        selection: comparison
        for selection in results.selections
        if (comparison := compare_with_paper(results, selection)) is not None
    }
    if not compared:
        return None
    blocks = []
    for selection, comparison in compared.items():
        cells = [cell for cell in comparison.cells if cell.mean is not None]
        for metric in dict.fromkeys(cell.metric for cell in cells):
            selections: tuple[str, ...] = (selection,)
            if metric == results.scoring and len(results.selections) > 1:
                if selection != OWN:
                    continue  # the same numbers
                selections = (OWN, EACH)
            of_metric = [cell for cell in cells if cell.metric == metric]
            blocks.append(
                {
                    "metric": metric,
                    "selections": selections,
                    "greater_is_better": METRICS[metric].greater_is_better,
                    "methods": list(dict.fromkeys(cell.method for cell in of_metric)),
                    "datasets": list(dict.fromkeys(cell.dataset for cell in of_metric)),
                    "cells": {(cell.dataset, cell.method): cell for cell in of_metric},
                }
            )
    return {"citation": CITATION, "verdicts": VERDICTS, "compared": compared, "blocks": blocks}


def compare_with_paper(results: Results, selection: str) -> PublishedComparison | None:
    """Compare the results with those of the paper; None if there is nothing to compare.

    Names are not sufficient: the data must be those of the paper, and a method must be the named
    method with its parameters.

    Parameters
    ----------
    results : Results
    selection : {"own", "each"}
        How settings were chosen.
    """
    paper = published_table("average_precision")
    fingerprints: dict[str, set[str]] = {}
    for run in results.runs:
        fingerprints.setdefault(run.key[1], set()).add(run.data_fingerprint)
    datasets = [
        name
        for name in paper.datasets
        if name in list_datasets() and fingerprints.get(name) == {dataset_info(name).fingerprint}
    ]
    methods = [m.name for m in results.experiment.methods if m.name in paper.methods and m.is_named]
    tables = {
        panel.metric: panel.scores.select(datasets, methods)
        for panel in results.panels
        if panel.metric in METRICS and selection in panel.selections
    }
    if not tables or not datasets or not methods:
        return None
    result = compare_with_published(tables, alpha=results.alpha)
    return result if any(cell.mean is not None for cell in result.cells) else None
