"""The HTML page of a report."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from imcc._utils.html import render_page
from imcc._utils.optional import require
from imcc._utils.progress import report_progress
from imcc.comparison import ScoreTable
from imcc.experiment import Experiment, Run, Store, compare_with_published
from imcc.experiment._published import VERDICTS
from imcc.metrics import METRICS
from imcc.report import _words as words
from imcc.report._cd_diagram import draw_critical_difference
from imcc.report._picture import Picture
from imcc.report._results import Panel
from imcc.report._tables import paper_table
from imcc.report._times import gather_times
from imcc.report._verdict import verdict, when_not
from imcc.report._words import TIMES, counted, joined, metric_title, one_line, setting_value

#: The templates use the functions of _words.
FILTERS = {name: value for name, value in vars(words).items() if callable(value)}


def render(
    store: Store,
    panels: Sequence[Panel],
    *,
    title: str | None = None,
    published: str | os.PathLike[str] | None = None,
) -> str:
    """Return the page.

    Parameters
    ----------
    store : Store
        The results.
    panels : sequence of Panel
        Their comparisons (:func:`imcc.report._results.make_panels`).
    title, published
        As for :func:`imcc.report.write_report`.
    """
    experiment, runs = store.experiment, store.runs()
    failures, missing = store.failures(), store.missing()
    failed = {failure.key for failure in failures}
    figures = []
    for number, panel in enumerate(panels):
        report_progress(number, len(panels))
        figures.append(_critical_differences(panel, f"f{number}"))
    return render_page(
        "imcc.report",
        "report",
        FILTERS,
        title=one_line(title or experiment.name),
        scoring=experiment.protocol.scoring,
        finished=max((run.finished for run in runs), default=""),
        n_tasks=len(experiment.tasks()),
        n_missing=len(missing),
        failures=failures,
        waiting=[one_line(str(key)) for key in missing if key not in failed],
        about=_about(experiment),
        verdicts=[(panel, verdict(panel)) for panel in panels],
        when_not=when_not(panels[0], panels[1:], runs) if panels else None,
        panels=panels,
        tables=[paper_table(panel) for panel in panels],
        figures=figures,
        datasets=list(_datasets(experiment, runs, panels)),
        times=_times(runs),
        published=None if published is None else _published(panels, published),
        verdict_names=VERDICTS,
        environments=_environments(runs),
        warnings=_warnings(runs),
        reproduction=reproduction(experiment, store.path.name),
    )


def _critical_differences(panel: Panel, prefix: str) -> list[dict[str, Any]]:
    """Return the diagrams of a panel, which compare with the control, if any, and all pairs."""
    comparison = panel.comparison
    if comparison is None or comparison.nemenyi is None:
        return []
    pictures = [draw_critical_difference(comparison, control=False)]
    if comparison.against_control is not None:
        pictures.insert(0, draw_critical_difference(comparison))
    return [_inline(picture, f"{prefix}-{i}") for i, picture in enumerate(pictures)]


def _inline(picture: Picture, prefix: str) -> dict[str, Any]:
    """Return a figure for the macro ``figure`` of the templates."""
    markup = require("markupsafe", "Writing a report").Markup
    return {
        "svg": markup(picture.inline(prefix)),
        "caption": picture.caption,
        "width": round(72 * float(picture.figure.get_size_inches()[0])),
    }


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


def _datasets(
    experiment: Experiment, runs: list[Run], panels: Sequence[Panel]
) -> Iterator[dict[str, Any]]:
    """Yield the facts and the methods of each data set."""
    for spec in experiment.datasets:
        own = [run for run in runs if run.key.dataset == spec.name]
        if not panels or not panels[0].scores.select([spec.name]).counts.any():
            yield {"name": spec.name, "methods": []}
            continue
        scores, run = panels[0].scores.select([spec.name]), own[0]
        yield {
            "name": spec.name,
            "facts": {
                "rows": f"{run.n_train + run.n_test:,}",
                "of them for training": f"{run.n_train:,}",
                "features": f"{run.n_features:,}",
                "labels": f"{run.n_labels:,}",
            },
            "methods": list(_methods(scores, own, experiment.protocol.scoring)),
        }


def _methods(scores: ScoreTable, runs: list[Run], scoring: str) -> Iterator[dict[str, Any]]:
    """Yield score, time, memory and chosen settings of each method with runs on a data set."""
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


def _times(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return the training times of the methods, relative to a fast one with many data sets."""
    if not runs:
        return None
    threads, times, n_others = gather_times(runs)
    unit = min(times, key=lambda t: (-len(t.seconds), t.place, t.mean))
    shared = [t for t in times if t.shared(unit)]
    return {
        "unit": unit,
        "threads": threads,
        "n_others": n_others,
        "rows": sorted(((t, t.ratio(unit)) for t in shared), key=lambda row: row[1]),
        "machines": len({machine for t in shared for machine in t.machines}),
    }


def _published(panels: Sequence[Panel], published: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the values of the template; None if there is nothing to compare."""
    scores = {panel.metric: panel.scores for panel in panels if panel.metric in METRICS}
    comparison = compare_with_published(scores, published)
    cells = [cell for cell in comparison.cells if cell.mean is not None]
    blocks = []
    for panel in panels:
        by_place = {(c.dataset, c.method): c for c in cells if c.metric == panel.metric}
        if by_place:
            rows, columns = (list(dict.fromkeys(names)) for names in zip(*by_place, strict=True))
            blocks.append((panel, rows, columns, by_place))
    methods = dict.fromkeys(cell.method for cell in cells)
    counts = {method: comparison.counts(method) for method in methods}
    return {"source": comparison.source, "counts": counts, "blocks": blocks} if blocks else None


def _environments(runs: Sequence[Run]) -> list[tuple[int, dict[str, Any]]]:
    """Return the distinct environments of the results with their counts, the most common first."""
    counts = Counter(json.dumps(run.environment, sort_keys=True) for run in runs)
    return [
        (n, {k.replace("_gib", " (GiB)"): v for k, v in json.loads(text).items()})
        for text, n in counts.most_common()
    ]


def _warnings(runs: Sequence[Run]) -> dict[str, str]:
    """Return the distinct warnings with the methods that gave them."""
    methods: dict[str, Counter[str]] = {}
    for run in runs:
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
        "description": json.dumps(experiment.to_dict(), indent=2, ensure_ascii=False),
        "in_memory": [spec.name for spec in experiment.datasets if spec.in_memory],
        "commands": [
            shlex.join(["imcc", "experiment", "run", file, *allowed, "-o", store]),
            shlex.join(["imcc", "report", store, "-o", "report.html"]),
        ],
    }
