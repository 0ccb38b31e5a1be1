"""The section of a report that compares its results with published ones."""

from __future__ import annotations

from typing import Any

from imcc.experiment import EACH, PublishedComparison, compare_with_published
from imcc.experiment._published import VERDICTS
from imcc.metrics import METRICS
from imcc.report._results import OWN, Results


def published_section(results: Results) -> dict[str, Any] | None:
    """Return the values of the template; None if there is nothing to compare."""
    compared = {
        selection: comparison
        for selection in results.selections
        if (comparison := _compare(results, selection)) is not None
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
    source = next(iter(compared.values())).source
    return {"source": source, "verdicts": VERDICTS, "compared": compared, "blocks": blocks}


def _compare(results: Results, selection: str) -> PublishedComparison | None:
    """Compare the results with published ones; None if there are none of the same names."""
    if results.published is None:
        return None
    tables = {
        panel.metric: panel.scores
        for panel in results.panels
        if panel.metric in METRICS and selection in panel.selections
    }
    result = compare_with_published(tables, results.published, alpha=results.alpha)
    return result if any(cell.mean is not None for cell in result.cells) else None
