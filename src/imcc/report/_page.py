"""The HTML page of a report."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from imcc._utils.html import render_page
from imcc.experiment import EACH, Experiment, PublishedComparison, Run, compare_with_published
from imcc.experiment._published import VERDICTS
from imcc.metrics import METRICS
from imcc.report._figures import dataset_figure, draw_figures, panel_figure
from imcc.report._html import FILTERS, inline_figures
from imcc.report._results import OWN, Panel, Results
from imcc.report._tables import paper_table
from imcc.report._verdict import verdict, when_not
from imcc.report._words import TIMES, counted, joined, metric_title, one_line, setting_value

#: The ranges of ``LABEL_RANGES`` in words: the share of the training rows that have the label.
_RANGE_TITLES = {
    "label_ap_to_1": "at most 1 %",
    "label_ap_1_to_5": "1 to 5 %",
    "label_ap_5_to_20": "5 to 20 %",
    "label_ap_above_20": "more than 20 %",
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
    figures = inline_figures(draw_figures(results))
    own = [panel for panel in results.panels if OWN in panel.selections]
    return render_page(
        "imcc.report",
        "report",
        FILTERS,
        title=one_line(title or results.experiment.name),
        results=results,
        finished=max((run.finished for run in results.runs), default=""),
        n_tasks=len(results.experiment.tasks()),
        waiting=_waiting(results),
        about=_about(results.experiment),
        verdicts=[(panel, verdict(panel)) for panel in own],
        when_not=when_not(own[0], own[1:], results.runs) if own else None,
        panels=[
            {
                "metric": panel.metric,
                "greater_is_better": panel.scores.greater_is_better,
                "selections": panel.selections,
                "table": paper_table(panel),
                "comparison": panel.comparison,
                "cd": _existing(
                    figures, panel_figure("cd_control", panel), panel_figure("cd", panel)
                ),
                "time": _existing(figures, panel_figure("time", panel)),
            }
            for panel in results.panels
        ],
        labels=_labels(results),
        datasets=list(_datasets(results, figures)),
        published=_published(results),
        environments=_environments(results),
        warnings=_warnings(results),
        reproduction=reproduction(results.experiment, results.path.name),
    )


def _existing(figures: dict[str, Any], *names: str) -> list[Any]:
    return [figures[name] for name in names if name in figures]


def _waiting(results: Results) -> list[str]:
    """Return the tasks that are neither done nor failed."""
    failed = {failure.key for failure in results.failures}
    return [one_line(str(key)) for key in results.missing if key not in failed]


def _about(experiment: Experiment) -> dict[str, str]:
    """Return the properties of the experiment."""
    protocol = experiment.protocol
    train = 100 - round(100 * protocol.test_size)
    splits = f"{counted(experiment.n_repeats, 'random split')}, {train} % for training"
    return {
        "data sets": str(len(experiment.datasets)),
        "methods": joined(one_line(method.name) for method in experiment.methods) or "none",
        "splits": splits + (", stratified" if protocol.stratified else ""),
        "settings": f"{protocol.cv}-fold cross-validation by {metric_title(protocol.scoring)}",
    }


def _labels(results: Results) -> dict[str, Any]:
    """Return who is best for rare and frequent labels, and the means and ranks of all methods."""
    cells: dict[str, dict[str, tuple[float, float, bool]]] = {}
    for name, panel in results.labels.items():
        assert panel.comparison is not None
        means = panel.comparison.means.mean(axis=0)
        for method, mean, rank in zip(
            panel.comparison.methods, means, panel.comparison.mean_ranks, strict=True
        ):
            cells.setdefault(method, {})[name] = (mean, rank, mean == means.max())
    return {
        "ranges": [
            (_RANGE_TITLES[name], panel.comparison, verdict(panel))
            for name, panel in results.labels.items()
        ],
        "methods": {
            method: [cells[method].get(name) for name in results.labels]
            for method in sorted(cells, key=lambda m: min(rank for _, rank, _ in cells[m].values()))
        },
    }


def _datasets(results: Results, figures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the figure, the facts and the methods of each data set."""
    for number, spec in enumerate(results.experiment.datasets):
        runs = [run for run in results.runs if run.key.dataset == spec.name]
        figure = _existing(figures, dataset_figure("spread", number, spec.name))
        if results.main is None or not figure:
            yield {"name": spec.name, "figure": None}
            continue
        run = runs[0]
        yield {
            "name": spec.name,
            "figure": figure[0],
            "facts": {
                "rows": f"{run.n_train + run.n_test:,}",
                "of them for training": f"{run.n_train:,}",
                "features": f"{run.n_features:,}",
                "labels": f"{run.n_labels:,}",
            },
            "methods": list(_methods(results.main, spec.name, runs, results.scoring)),
        }


def _methods(panel: Panel, dataset: str, runs: list[Run], scoring: str) -> Iterator[dict[str, Any]]:
    """Yield score, time, memory and chosen settings of each method with runs on a data set."""
    scores = panel.scores.select([dataset])
    for method, mean, std in zip(scores.methods, scores.mean()[0], scores.std()[0], strict=True):
        own = [run for run in runs if run.key.method == method]
        if own:
            memory = [run.peak_memory for run in own if run.peak_memory is not None]
            yield {
                "name": method,
                "mean": mean,
                "std": std,
                "fit": float(np.mean([run.fit_seconds for run in own])),
                "predict": float(np.mean([run.predict_seconds for run in own])),
                "memory": max(memory, default=math.nan),
                "settings": "; ".join(_settings(own, scoring)) or "no search",
            }


def _settings(runs: list[Run], scoring: str) -> Iterator[str]:
    """Yield the chosen values of each parameter with their counts."""
    chosen: dict[str, Counter[str]] = {}
    for run in runs:
        for selection in run.selections:
            if selection.selection == scoring:
                for name, value in selection.setting.items():
                    chosen.setdefault(name, Counter())[setting_value(value)] += 1
    for name, values in chosen.items():
        texts = values if len(runs) == 1 else _with_counts(values)
        yield f"{one_line(name)}: {', '.join(texts)}"


def _with_counts(values: Counter[str]) -> list[str]:
    return [f"{one_line(value)} ({n}{TIMES})" for value, n in values.most_common()]


def _published(results: Results) -> dict[str, Any] | None:
    """Return the values of the template; None if there is nothing to compare."""
    compared = {
        selection: comparison
        for selection in results.selections
        if (comparison := _compare_published(results, selection)) is not None
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


def _compare_published(results: Results, selection: str) -> PublishedComparison | None:
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


def _environments(results: Results) -> list[tuple[int, dict[str, Any]]]:
    """Return the distinct environments of the results with their counts, the most common first."""
    environments = {repr(sorted(r.environment.items())): r.environment for r in results.runs}
    counts = Counter(repr(sorted(r.environment.items())) for r in results.runs)
    return [
        (
            n,
            {
                k.replace("_gib", " (GiB)").replace("_", " "): v
                for k, v in environments[text].items()
            },
        )
        for text, n in counts.most_common()
    ]


def _warnings(results: Results) -> dict[str, str]:
    """Return the distinct warnings with the methods that gave them."""
    methods: dict[str, Counter[str]] = {}
    for run in results.runs:
        for text in run.warnings:
            methods.setdefault(text, Counter())[run.key.method] += 1
    return {text: ", ".join(_with_counts(counts)) for text, counts in methods.items()}


def reproduction(experiment: Experiment, store: str) -> dict[str, Any]:
    """Return how to rerun an experiment into a store of the given name.

    Returns
    -------
    dict
        ``description``, the experiment as JSON; ``commands`` to run with it as ``file``; and
        ``in_memory``, the names of data sets that the description does not contain.
    """
    file = "experiment.json"
    # Allowed packages are part of the command, where they are visible, not of the file.
    allowed = [word for package in experiment.packages() for word in ("--allow", package)]
    return {
        "file": file,
        "description": json.dumps(
            _without_defaults(experiment.to_dict()), indent=2, ensure_ascii=False
        ),
        "in_memory": [spec.name for spec in experiment.datasets if spec.in_memory],
        "commands": [
            shlex.join(["imcc", "experiment", "run", file, *allowed, "-o", store]),
            shlex.join(["imcc", "report", store, "-o", "report.html"]),
        ],
    }


def _without_defaults(value: Any) -> Any:
    """Return a description of an experiment with the parameters that were given only."""
    if isinstance(value, dict):
        is_method = "estimator" in value
        return {
            k: _without_defaults(v) for k, v in value.items() if not (is_method and k == "defaults")
        }
    return [_without_defaults(item) for item in value] if isinstance(value, list) else value
