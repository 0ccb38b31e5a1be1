"""The sections of the page as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc.datasets import dataset_info
from imcc.experiment import Run
from imcc.report._results import OWN, Panel, Results, cardinality, is_known
from imcc.report._verdict import Answer, verdict, when_not
from imcc.report._words import (
    DASH,
    TIMES,
    arrow,
    bytes_text,
    counted,
    joined,
    metric_title,
    number,
    one_line,
    p_text,
    seconds_text,
    setting_value,
    shorten,
    signed,
)


@dataclass(frozen=True)
class MethodOnDataset:
    """A row of the table of a data set.

    Attributes
    ----------
    method, score, settings, fit, predict, memory : str
        Texts of the columns.
    values : tuple of float
        Sort keys of the columns score, fit, predict and memory; NaN is last.
    """

    method: str
    score: str
    settings: tuple[str, ...]
    fit: str
    predict: str
    memory: str
    values: tuple[float, ...]


def overview(results: Results) -> list[dict[str, Any]]:
    """Return one row per metric: the winner, its lead, and the methods that do not differ."""
    lines = []
    for panel in results.panels:
        if OWN not in panel.selections:
            continue
        found = verdict(panel.compared)
        lines.append(
            {
                "metric": metric_title(panel.metric),
                "arrow": arrow(panel.compared.scores.greater_is_better),
                "winner": found.winner.short,
                "lead": found.lead.short,
                "significant": found.significant.short,
                "test": found.test or DASH,
                "alike": joined(shorten(name, 40) for name in found.not_different) or DASH,
            }
        )
    return lines


def against_control(panel: Panel) -> dict[str, Any] | None:
    """Return the comparison of the control with each other method; None without a control."""
    found = panel.compared.comparison
    if found is None or found.effects is None or found.bayesian is None:
        return None
    assert found.wilcoxon_control is not None
    effects, bayesian, i = found.effects, found.bayesian, found.effects.control
    lines = []
    for j in found.order:
        if j == i:
            continue
        probabilities = (bayesian.better[j], bayesian.equivalent[j], bayesian.worse[j])
        lines.append(
            {
                "method": one_line(found.methods[j]),
                "won": f"{found.wins.wins[i, j]} / {found.wins.ties[i, j]} / "
                f"{found.wins.losses[i, j]}",
                "won_value": int(found.wins.wins[i, j]),
                "mean": signed(effects.mean[j]),
                "mean_value": f"{effects.mean[j]:.6g}",
                "interval": _between(effects.mean_interval[j]),
                "median": signed(effects.median[j]),
                "median_value": f"{effects.median[j]:.6g}",
                "median_interval": _between(effects.median_interval[j]),
                "rank_biserial": signed(effects.rank_biserial[j], 2),
                "rank_biserial_value": f"{effects.rank_biserial[j]:.6g}",
                "p": p_text(float(found.wilcoxon_control.holm_p[j]))
                .removeprefix("p = ")
                .removeprefix("p "),
                "p_value": f"{found.wilcoxon_control.holm_p[j]:.6g}",
                "probabilities": [number(float(p), 2) for p in probabilities],
            }
        )
    return {
        "control": one_line(found.methods[i]),
        "n": len(found.rows),
        "level": f"{effects.level:.0%}".replace("%", " %"),
        "rope": f"{bayesian.rope:g}",
        "lines": lines,
    }


def _between(ends: np.ndarray) -> str:
    if not np.isfinite(ends).all():
        return "too few data sets"
    return f"{signed(ends[0])} to {signed(ends[1])}"


def headline(results: Results) -> list[tuple[str, Answer]]:
    """Return questions and answers by the experiment's metric; empty without runs."""
    main = results.main
    if main is None:
        return []
    found = verdict(main.compared)
    others = [
        panel.compared
        for panel in results.panels
        if OWN in panel.selections and panel.metric != main.metric
    ]
    return [
        ("Who wins?", found.winner),
        ("By how much?", found.lead),
        ("Is it significant?", found.significant),
        ("When not to use it?", when_not(main.compared, others, results.runs)),
    ]


def progress(results: Results) -> dict[str, Any]:
    """Return the progress of the experiment."""
    n_tasks = len(results.experiment.tasks())
    failed = {failure.key for failure in results.failures}
    waiting = [key for key in results.missing if key not in failed]
    return {
        "n_tasks": n_tasks,
        "n_done": n_tasks - len(results.missing),
        "n_failed": len(failed),
        "n_waiting": len(waiting),
        "waiting": [one_line(str(key)) for key in waiting[:20]],
        "n_more": max(len(waiting) - 20, 0),
    }


def about(results: Results) -> list[tuple[str, str]]:
    """Return the properties of the experiment."""
    experiment, protocol = results.experiment, results.experiment.protocol
    train = 100 - round(100 * protocol.test_size)
    split = f"{counted(experiment.n_repeats, 'random split')}, {train} % for training"
    lines = [
        ("data sets", str(len(experiment.datasets))),
        ("methods", joined(one_line(method.name) for method in experiment.methods) or "none"),
        ("splits", split + (", stratified" if protocol.stratified else "")),
        ("settings", f"{protocol.cv}-fold cross-validation by {metric_title(protocol.scoring)}"),
    ]
    if experiment.studied_datasets:
        names = joined(one_line(spec.name) for spec in experiment.studied_datasets)
        lines.append(("sensitivity", names))
    return lines


def dataset_facts(results: Results, dataset: str) -> list[tuple[str, str]]:
    """Return the properties of a data set."""
    run = next((run for run in results.runs if run.key[1] == dataset), None)
    if run is None:
        return []
    facts = [
        ("rows", f"{run.n_train + run.n_test:,}"),
        ("of them for training", f"{run.n_train:,}"),
        ("features", f"{run.n_features:,}"),
        ("labels", f"{run.n_labels:,}"),
    ]
    if is_known(results, dataset):
        info = dataset_info(dataset)
        if (known := cardinality(dataset)) is not None:
            facts.append(("labels per row", f"{known[0]:.3f}"))
            facts.append(("label density", f"{known[0] / run.n_labels:.3f}"))
            facts.append(("different label sets", f"{known[1]:,}"))
        facts.append(("features are", info.feature_type))
    return facts


def dataset_methods(results: Results, dataset: str, panel: Panel) -> list[MethodOnDataset]:
    """Return one row per method with runs on a data set: score, settings, time and memory."""
    scores = panel.compared.scores.select([dataset])
    lines = []
    for j, method in enumerate(scores.methods):
        runs = [run for run in results.runs if run.key[1:3] == (dataset, method)]
        if not runs:
            continue
        mean, std = float(scores.mean()[0, j]), float(scores.std()[0, j])
        fit = float(np.mean([run.fit_seconds for run in runs]))
        predict = float(np.mean([run.predict_seconds for run in runs]))
        held = [run.peak_memory for run in runs if run.peak_memory is not None]
        memory = float(np.max(held)) if held else float("nan")
        score = number(mean) + ("" if np.isnan(std) else f" ± {number(std)}")
        lines.append(
            MethodOnDataset(
                one_line(method),
                score,
                _settings(runs, results.scoring),
                seconds_text(fit),
                seconds_text(predict),
                bytes_text(memory) if held else number(memory),
                (mean, fit, predict, memory),
            )
        )
    return lines


def _settings(runs: list[Run], scoring: str) -> tuple[str, ...]:
    """Return the chosen values of each parameter with their counts."""
    chosen: dict[str, Counter[str]] = {}
    for run in runs:
        for selection in run.selections:
            if selection.selection == scoring:
                for name, value in selection.setting.items():
                    chosen.setdefault(name, Counter())[setting_value(value)] += 1
    return tuple(
        f"{one_line(name)}: "
        + ", ".join(
            value if len(runs) == 1 else _times(value, n) for value, n in values.most_common()
        )
        for name, values in chosen.items()
    )


def _times(text: str, n: int) -> str:
    return f"{text} ({n}{TIMES})"


def environments(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the distinct environments of the results with their counts."""
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for record in results.records:
        name = repr(sorted(record.environment.items()))
        found[name] = (record.environment, found.get(name, ({}, 0))[1] + 1)
    return [
        (
            counted(n, "result"),
            [(_label(str(k)), one_line(str(v))) for k, v in content.items()],
        )
        for content, n in sorted(found.values(), key=lambda entry: -entry[1])
    ]


def _label(name: str) -> str:
    return "memory (GiB)" if name == "memory_gib" else one_line(name).replace("_", " ")


def warnings_seen(results: Results) -> list[tuple[str, str]]:
    """Return the distinct warnings and the methods that gave them."""
    where: dict[str, Counter[str]] = {}
    for record in results.records:
        for text in record.warnings:
            where.setdefault(text, Counter())[one_line(record.key[2])] += 1
    return [
        (one_line(text), ", ".join(_times(m, n) for m, n in methods.most_common()))
        for text, methods in where.items()
    ]


def last_finished(results: Results) -> str:
    """Return when the latest result was written; "" without results."""
    times = [record.finished for record in results.records]
    return max(times, default="").replace("T", " ").replace("+00:00", " UTC")
