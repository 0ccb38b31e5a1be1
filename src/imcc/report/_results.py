"""The data of a report: the results of a store and their comparisons."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from imcc._utils.progress import report_progress
from imcc.comparison import Comparison, ScoreTable, compare
from imcc.comparison._table import drop_missing
from imcc.experiment import (
    ALL_METRICS,
    EACH,
    LABEL_RANGES,
    Experiment,
    Failure,
    Run,
    Store,
    TaskKey,
)
from imcc.experiment._results import UNSEARCHED
from imcc.metrics import METRICS
from imcc.report._words import one_line

#: Default control, if the experiment has a method of this name.
DEFAULT_CONTROL = "imcc"
#: Settings are chosen by the metric of the experiment.
OWN = "own"


@dataclass(frozen=True, eq=False)
class Panel:
    """The scores by one metric, and the comparison of their comparable part.

    Attributes
    ----------
    scores : ScoreTable
        All scores.
    comparison : Comparison or None
        Comparison of the methods that are ranked together, on their common data sets and
        repetitions; None if they have no repetition in common.
    left_out : tuple of str
        What is not ranked with the others, and why.
    selections : tuple of str
        How settings were chosen: ``"own"``, ``"each"``, or both if they are the same.
    """

    scores: ScoreTable
    comparison: Comparison | None
    left_out: tuple[str, ...] = ()
    selections: tuple[str, ...] = (OWN,)

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.scores.metric


@dataclass(frozen=True, eq=False)
class Results:
    """The contents of a store and their comparisons.

    Attributes
    ----------
    path : Path
        The store.
    experiment : Experiment
    runs, failures : list
        Results and failures.
    missing : list of TaskKey
        Tasks that are not done.
    control : str or None
        The method that the others are compared with.
    panels : list of Panel
        One per metric with values and way of choosing settings.
    labels : dict of str to Panel
        Average precision of labels by their frequency, per range of it that can be compared.
    published : path-like or None
        File of published results that are shown beside these.
    """

    path: Path
    experiment: Experiment
    runs: list[Run]
    failures: list[Failure]
    missing: list[TaskKey]
    control: str | None
    panels: list[Panel]
    labels: dict[str, Panel]
    published: str | os.PathLike[str] | None = None

    @property
    def scoring(self) -> str:
        """The metric by which the experiment chooses settings."""
        return self.experiment.protocol.scoring

    @property
    def selections(self) -> tuple[str, ...]:
        """The ways of choosing settings; a single one if no method has a search."""
        return tuple(dict.fromkeys(s for panel in self.panels for s in panel.selections))

    @property
    def main(self) -> Panel | None:
        """The panel of the experiment's metric, or of the first metric with values."""
        return self.panels[0] if self.panels else None


def gather(
    store: Store | str | os.PathLike[str],
    *,
    control: str | None = None,
    published: str | os.PathLike[str] | None = None,
) -> Results:
    """Read a store and compare its results; the arguments are those of ``write_report``."""
    opened = nullcontext(store) if isinstance(store, Store) else Store(Path(store), read_only=True)
    with opened as source:
        methods = [method.name for method in source.experiment.methods]
        if control is not None and control not in methods:
            raise ValueError(
                f"control must be one of the experiment's methods ({', '.join(methods)}), got "
                f"{control!r}"
            )
        if control is None and DEFAULT_CONTROL in methods:
            control = DEFAULT_CONTROL
        runs = source.runs()
        return Results(
            path=source.path,
            experiment=source.experiment,
            runs=runs,
            failures=source.failures(),
            missing=source.missing(),
            control=control,
            panels=list(_panels(source, runs, control)),
            labels=_compare_by_frequency(source),
            published=published,
        )


def _panels(source: Store, runs: list[Run], control: str | None) -> Iterator[Panel]:
    protocol = source.experiment.protocol
    searched = any(s.selection != UNSEARCHED for run in runs for s in run.selections)
    metrics = (protocol.scoring, *(m for m in ALL_METRICS if m != protocol.scoring))
    for number, metric in enumerate(metrics):
        report_progress(number, len(metrics), f"comparing by {metric}")
        # Searches choose by the five metrics; others are reported for the main choice.
        differ = searched and metric in METRICS and metric != protocol.scoring
        both = (OWN, EACH) if searched else (OWN,)
        for selections in ((OWN,), (EACH,)) if differ else (both,):
            scores = source.scores(metric, None if OWN in selections else EACH)
            if scores.counts.any():
                panel = compare_runs(scores, control=control, test_size=protocol.test_size)
                yield replace(panel, selections=selections)


def compare_runs(
    scores: ScoreTable, *, control: str | None = None, test_size: float | None = None
) -> Panel:
    """Compare the methods that can be ranked together.

    Parameters
    ----------
    scores : ScoreTable
        The scores, with at least one run.
    control : str, default=None
        The method that the others are compared with; ignored if it is left out.
    test_size : float, default=None
        As for :func:`imcc.comparison.compare`.
    """
    part, left_out = drop_missing(scores)
    comparison = None
    if part.datasets and part.methods:
        known = control if control in part.methods else None
        comparison = compare(part, control=known, test_size=test_size)
    return Panel(scores, comparison, tuple(f"{one_line(name)}: {why}" for name, why in left_out))


def _compare_by_frequency(store: Store) -> dict[str, Panel]:
    """Compare the methods by the average precision of labels, in each range that has records."""
    panels = {}
    for name in LABEL_RANGES:
        scores = store.scores(name)
        methods = [m for m, n in zip(scores.methods, scores.counts.sum(axis=0), strict=True) if n]
        if methods:
            panel = compare_runs(scores.select(methods=methods))
            if panel.comparison is not None and len(panel.comparison.methods) > 1:
                panels[name] = panel
    return panels


def leaders(comparison: Comparison) -> list[int]:
    """Return the methods with the best mean rank; more than one if they tie."""
    best = comparison.mean_ranks.min()
    return [i for i in comparison.order if np.isclose(comparison.mean_ranks[i], best)]
