"""All figures of a report, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from imcc._utils.progress import report_progress
from imcc.report._cd_diagram import draw_critical_difference
from imcc.report._picture import Picture
from imcc.report._results import Panel, Results
from imcc.report._runs import draw_spread, draw_time


def draw_figures(results: Results) -> Iterator[tuple[str, Picture]]:
    """Yield name and figure of each figure of a report."""
    n_steps = len(results.panels) + len(results.experiment.datasets)
    for number, panel in enumerate(results.panels):
        report_progress(number, n_steps)
        comparison = panel.comparison
        if comparison is not None and comparison.nemenyi is not None:
            if comparison.against_control is not None:
                yield panel_figure("cd_control", panel), draw_critical_difference(comparison)
            yield panel_figure("cd", panel), draw_critical_difference(comparison, control=False)
        if comparison is not None and len(comparison.methods) > 1:
            yield panel_figure("time", panel), draw_time(comparison, results.runs)
    if results.main is None:
        return
    scores = results.main.scores
    for number, dataset in enumerate(scores.datasets):
        report_progress(n_steps - len(scores.datasets) + number, n_steps)
        if scores.counts[number].any():
            picture = draw_spread(scores, dataset, results.control)
            yield dataset_figure("spread", number, dataset), picture


def panel_figure(kind: str, panel: Panel) -> str:
    """Return the name of a figure of a panel."""
    return f"{kind}_{panel.metric}_{panel.selections[0]}"


def dataset_figure(kind: str, number: int, dataset: str) -> str:
    """Return the name of a figure of a data set, which is valid on any file system.

    >>> dataset_figure("spread", 3, "a/b: c")
    'spread_4_a-b-c'
    """
    short = re.sub(r"[^A-Za-z0-9]+", "-", dataset).strip("-")[:40] or "data"
    return f"{kind}_{number + 1}_{short}"
