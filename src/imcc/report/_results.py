"""The comparisons of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc._utils.progress import report_progress
from imcc._utils.validation import check_choice
from imcc.comparison import Comparison, ScoreTable, compare
from imcc.comparison._table import drop_missing
from imcc.experiment import ALL_METRICS, Store
from imcc.report._words import one_line

#: Default control, if the experiment has a method of this name.
DEFAULT_CONTROL = "imcc"


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
    """

    scores: ScoreTable
    comparison: Comparison | None
    left_out: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.scores.metric


def make_panels(store: Store, control: str | None) -> list[Panel]:
    """Compare the results of a store by each metric that has values, that of the experiment first.

    Settings are those chosen by the metric of the experiment.
    """
    protocol = store.experiment.protocol
    metrics = (protocol.scoring, *(m for m in ALL_METRICS if m != protocol.scoring))
    panels = []
    for number, metric in enumerate(metrics):
        report_progress(number, len(metrics), f"comparing by {metric}")
        scores = store.scores(metric)
        if scores.counts.any():
            panels.append(compare_runs(scores, control=control, test_size=protocol.test_size))
    return panels


def find_control(store: Store, control: str | None) -> str | None:
    """Return the method that the others are compared with, ``imcc`` by default, if there is one."""
    methods = [method.name for method in store.experiment.methods]
    if control is None:
        return DEFAULT_CONTROL if DEFAULT_CONTROL in methods else None
    return check_choice("control", control, methods)


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


def leaders(comparison: Comparison) -> list[int]:
    """Return the methods with the best mean rank; more than one if they tie."""
    best = comparison.mean_ranks.min()
    return [i for i in comparison.order if np.isclose(comparison.mean_ranks[i], best)]
