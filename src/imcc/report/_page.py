"""The HTML page of a report."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import imcc
from imcc._utils.optional import require
from imcc._utils.progress import report_progress
from imcc.experiment import EACH
from imcc.metrics import METRICS
from imcc.published import CITATION, VERDICTS, PublishedComparison
from imcc.report import _figures as figures
from imcc.report import _sections as sections
from imcc.report._labels import frequency_section
from imcc.report._picture import Picture
from imcc.report._reproduce import reproduction
from imcc.report._results import OWN, Results, compare_with_paper
from imcc.report._tables import paper_table, table_values, templates
from imcc.report._words import capital, direction, metric_title, one_line

#: Mark of pages written by this module, which may be overwritten.
MARK = '<meta name="generator" content="imcc report'

PAPER_TEST_SIZE = 0.2
_SYMBOLS = {"reproduced": "≈", "better": "▲", "worse": "▼"}


# How much of the time the figures of metrics, and of data sets, take.
_PANELS, _DATASETS = 0.5, 0.25


class _Page:
    """Computes the values of the template and numbers the figures."""

    def __init__(self, results: Results, markup: Any) -> None:
        self.results = results
        self._markup = markup
        self._numbers = itertools.count(1)

    def figure(self, picture: Picture) -> dict[str, Any]:
        return {
            "svg": self._markup(picture.inline(f"f{next(self._numbers)}")),
            "caption": picture.caption,
            "width": round(72 * float(picture.figure.get_size_inches()[0])),
        }

    def panels(self) -> Iterator[dict[str, Any]]:
        for number, panel in enumerate(self.results.panels):
            report_progress(_PANELS * number / len(self.results.panels))
            about = self._about(panel.metric, panel.selections)
            yield {
                **_switch(panel.metric, panel.selections),
                **table_values(paper_table(panel.compared), about),
                "cd": [self.figure(p) for _, p in figures.critical_differences(panel)],
                "no_cd": _no_diagram(panel.compared),
                "against": sections.against_control(panel),
                "time": [
                    self.figure(p) for _, p in figures.time_against_quality(self.results, panel)
                ],
            }

    def _about(self, metric: str, selections: tuple[str, ...]) -> str:
        scoring = metric_title(self.results.scoring)
        if len(self.results.selections) < 2:
            return ""
        if OWN in selections:
            return f"Settings chosen by {scoring}"
        return f"Settings chosen by {metric_title(metric)} itself"

    def sensitivity(self) -> Iterator[dict[str, Any]]:
        for metric in METRICS:
            studies = [
                {"dataset": one_line(dataset), "figures": [self.figure(p) for p in pictures]}
                for dataset, pictures in figures.sensitivities(self.results, metric)
            ]
            if studies:
                yield {
                    **_switch(metric, (OWN, EACH)),
                    "title": capital(metric_title(metric)),
                    "studies": studies,
                }

    def datasets(self) -> Iterator[dict[str, Any]]:
        main = self.results.main
        specs = self.results.experiment.datasets
        for number, spec in enumerate(specs):
            report_progress(_PANELS + _DATASETS * number / len(specs))
            picture = None if main is None else figures.spread(self.results, main, spec.name)
            if main is None or picture is None:
                yield {"name": one_line(spec.name), "facts": (), "methods": (), "figure": None}
                continue
            yield {
                "name": one_line(spec.name),
                "facts": sections.dataset_facts(self.results, spec.name),
                "methods": sections.dataset_methods(self.results, spec.name, main),
                "best": "max" if main.compared.scores.greater_is_better else "min",
                "figure": self.figure(picture),
            }

    def paper(self) -> dict[str, Any] | None:
        report_progress(_PANELS + _DATASETS)
        by_selection = {
            selection: beside
            for selection in self.results.selections
            if (beside := compare_with_paper(self.results, selection)) is not None
        }
        if not by_selection:
            return None
        blocks = []
        for selection, beside in by_selection.items():
            for metric, _, picture in figures.against_paper(beside, selection):
                both = metric == self.results.scoring and len(self.results.selections) > 1
                if both and selection != OWN:
                    continue  # the same numbers
                selections = (OWN, EACH) if both else (selection,)
                blocks.append(
                    {
                        **_switch(metric, selections),
                        "title": f"{capital(metric_title(metric))}",
                        "about": self._about(metric, selections),
                        "figure": self.figure(picture),
                        **_beside(beside, metric),
                    }
                )
        return {
            "citation": CITATION,
            "test_size": _other_share(self.results.experiment.protocol.test_size),
            "summary": list(_summary(by_selection, self.results.scoring)),
            "blocks": blocks,
        }


def _other_share(test_size: float) -> str:
    """Return the test size in percent, or "" if it is that of the paper."""
    return "" if test_size == PAPER_TEST_SIZE else f"{100 * test_size:g} %"


def _no_diagram(compared: Any) -> str:
    """Return why there is no critical-difference diagram."""
    if compared.comparison is None:
        return f"Nothing can be compared: {compared.reason}."
    return capital(compared.comparison.reasons.get("nemenyi", "")) + "."


def _switch(metric: str, selections: tuple[str, ...]) -> dict[str, str]:
    return {"metric": metric, "selections": " ".join(selections)}


def _beside(beside: PublishedComparison, metric: str) -> dict[str, Any]:
    """Return the table of new and published results."""
    cells = [cell for cell in beside.cells if cell.metric == metric]
    methods = [
        m
        for m in dict.fromkeys(cell.method for cell in cells)
        if any(cell.method == m and cell.mean is not None for cell in cells)
    ]
    datasets = [
        d
        for d in dict.fromkeys(cell.dataset for cell in cells)
        if any(cell.dataset == d and cell.mean is not None for cell in cells)
    ]
    found = {(cell.dataset, cell.method): cell for cell in cells}
    rows = []
    for dataset in datasets:
        shown: list[dict[str, str] | None] = []
        for method in methods:
            cell = found[dataset, method]
            if cell.mean is None:
                shown.append(None)
                continue
            shown.append(
                {
                    "value": f"{cell.difference:.6g}",
                    "ours": f"{cell.mean:.3f}",
                    "paper": f"{cell.published_mean:.3f}",
                    "verdict": cell.verdict,
                    "symbol": _SYMBOLS[cell.verdict],
                    "doubtful": cell.doubtful or "",
                }
            )
        rows.append({"name": dataset, "cells": shown})
    best = "max" if METRICS[metric].greater_is_better else "min"
    return {"methods": methods, "rows": rows, "best": best, "n": len(datasets)}


def _summary(
    by_selection: dict[str, PublishedComparison], scoring: str
) -> Iterator[dict[str, Any]]:
    """Yield the number of cells per verdict for each method and selection."""
    for selection, beside in by_selection.items():
        chosen = metric_title(scoring) if selection == OWN else "each metric itself"
        methods = dict.fromkeys(cell.method for cell in beside.cells if cell.mean is not None)
        for method in methods:
            counts = beside.counts(method=method)
            yield {
                "method": method,
                "chosen": chosen,
                "counts": [counts[name] for name in VERDICTS],
            }


def render(results: Results, title: str | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    results : Results
        Result of :func:`imcc.report._results.gather`.
    title : str, default=None
        Title; the name of the experiment by default.
    """
    environment, texts = templates()
    markup = require("markupsafe", "Writing a report").Markup
    page = _Page(results, markup)
    scoring, main = results.scoring, results.main
    script = texts["report.js"].strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    panels = list(page.panels())
    return environment.get_template("report.html").render(
        title=one_line(title or results.experiment.name),
        version=imcc.__version__,
        css=markup(texts["report.css"].strip()),
        script=markup(script),
        # Only this script may run, and nothing may be fetched, even if a name from a data file
        # were included as markup by mistake.
        script_hash=digest,
        scoring=metric_title(scoring),
        # The metric of the experiment, unless it is undefined on all data sets.
        main="" if main is None else metric_title(main.metric),
        main_direction="" if main is None else direction(main.compared.scores.greater_is_better),
        main_is_own=main is not None and main.metric == scoring,
        finished=sections.last_finished(results),
        about=sections.about(results),
        progress=sections.progress(results),
        headline=sections.headline(results),
        overview=sections.overview(results),
        left_out=() if main is None else main.compared.left_out,
        alpha=f"{results.alpha:g}",
        metrics=_options(panels),
        several=len(results.selections) > 1,
        panels=panels,
        sensitivity=list(page.sensitivity()),
        labels=frequency_section(results.labels),
        datasets=list(page.datasets()),
        paper=page.paper(),
        verdicts=VERDICTS,
        failures=[
            {
                "task": one_line(str(failure.key)),
                "error": failure.error,
                "traceback": failure.traceback,
                "finished": failure.finished,
            }
            for failure in results.failures
        ],
        warnings=sections.warnings_seen(results),
        environments=sections.environments(results),
        reproduction=reproduction(results.experiment, results.path.name),
    )


def _options(panels: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the metrics that can be selected."""
    return list({panel["metric"]: (panel["metric"], panel["title"]) for panel in panels}.values())
