"""The figures of a report, each with a unique name."""

from __future__ import annotations

from collections.abc import Iterator

from imcc.metrics import METRICS
from imcc.published import PublishedComparison
from imcc.report._against_paper import draw_against_paper
from imcc.report._cd_diagram import draw_critical_difference
from imcc.report._picture import Picture
from imcc.report._results import Panel, Results
from imcc.report._sensitivity import draw_curve, draw_surface
from imcc.report._spread import draw_spread, draw_time


def critical_differences(panel: Panel) -> Iterator[tuple[str, Picture]]:
    """Yield the critical-difference diagrams, with the control (if any) and of all pairs."""
    comparison = panel.compared.comparison
    if comparison is None or comparison.nemenyi is None:
        return
    name = f"cd_{panel.metric}_{panel.selections[0]}"
    if comparison.control_ranks is not None:
        yield f"{name}_control", draw_critical_difference(comparison)
    yield name, draw_critical_difference(comparison, control=False)


def time_against_quality(results: Results, panel: Panel) -> Iterator[tuple[str, Picture]]:
    """Yield the plot of quality against training time, if two methods can be compared."""
    comparison = panel.compared.comparison
    if comparison is not None and len(comparison.methods) > 1:
        yield f"time_{panel.metric}_{panel.selections[0]}", draw_time(comparison, results.runs)


def sensitivities(results: Results, metric: str) -> Iterator[tuple[str, list[Picture]]]:
    """Yield the heat map and the curves of a metric per study."""
    for study in results.studies:
        if metric in study.metrics:
            yield (
                study.key[1],
                [
                    draw_surface(study, metric),
                    draw_curve(study, metric, "beta"),
                    draw_curve(study, metric, "n_clusters"),
                ],
            )


def spread(results: Results, panel: Panel, dataset: str) -> Picture | None:
    """Return the plot of all runs on a data set; None if there are none."""
    scores = panel.compared.scores
    if dataset not in scores.datasets or not scores.select([dataset]).counts.any():
        return None
    return draw_spread(scores, dataset, control=results.control)


def against_paper(
    beside: PublishedComparison, selection: str
) -> Iterator[tuple[str, str, Picture]]:
    """Yield metric, name and figure of the comparisons with the paper."""
    for metric in METRICS:
        if any(cell.metric == metric and cell.mean is not None for cell in beside.cells):
            yield metric, f"paper_{metric}_{selection}", draw_against_paper(beside, metric)
