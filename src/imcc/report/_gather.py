"""All that a report needs to know, out of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imcc.experiment import (
    ALL_METRICS,
    EACH,
    UNSEARCHED,
    Experiment,
    Failure,
    Run,
    Store,
    Study,
    TaskKey,
)
from imcc.metrics import METRICS
from imcc.report._compared import Compared, compare_what_is_there

#: The method that others are compared with, where an experiment has it and nobody says otherwise.
DEFAULT_CONTROL = "imcc"
#: A selection: all metrics with the setting that the experiment's metric chose.
OWN = "own"


@dataclass(frozen=True, eq=False)
class Panel:
    """One metric with the settings chosen in one way.

    Attributes
    ----------
    metric : str
    selections : tuple of str
        ``"own"``, ``"each"``, or both where they are the same.
    compared : Compared
        The scores and their comparison.
    """

    metric: str
    selections: tuple[str, ...]
    compared: Compared


@dataclass(frozen=True, eq=False)
class Results:
    """What a store holds, read once.

    Attributes
    ----------
    path : Path
        The store.
    experiment : Experiment
    runs, studies, failures : list
        Its records.
    missing : list of keys
        Tasks that are not done.
    control : str or None
        The method that the others are compared with.
    alpha : float
        The level of significance.
    panels : list of Panel
        For each metric that has values, one for each way of selecting settings.
    """

    path: Path
    experiment: Experiment
    runs: list[Run]
    studies: list[Study]
    failures: list[Failure]
    missing: list[TaskKey]
    control: str | None
    alpha: float
    panels: list[Panel]

    @property
    def scoring(self) -> str:
        """The metric that chooses the settings."""
        return self.experiment.protocol.scoring

    @property
    def records(self) -> list[Run | Study]:
        """The runs and the studies."""
        return [*self.runs, *self.studies]

    @property
    def selections(self) -> tuple[str, ...]:
        """The ways of selecting that there are: one only if no method searches."""
        return tuple(dict.fromkeys(s for panel in self.panels for s in panel.selections))

    def panel(self, metric: str, selection: str = OWN) -> Panel | None:
        """Return a panel; None if the metric has no values."""
        for panel in self.panels:
            if panel.metric == metric and selection in panel.selections:
                return panel
        return None

    @property
    def main(self) -> Panel | None:
        """The panel of the experiment's own metric, or of the first that has values."""
        return self.panel(self.scoring) or (self.panels[0] if self.panels else None)


@contextmanager
def opened(store: Store | str | Path) -> Iterator[Store]:
    """Open a store to read, unless it is open already."""
    if isinstance(store, Store):
        yield store
        return
    with Store(store, read_only=True) as found:
        yield found


def gather(
    store: Store | str | Path, *, control: str | None = None, alpha: float = 0.05
) -> Results:
    """Read a store and compare what is in it.

    Parameters
    ----------
    store : Store or path
        The results.
    control : str, optional
        The method that the others are compared with; ``imcc`` by default, if the experiment has a
        method of that name.
    alpha : float
        The level of significance.
    """
    with opened(store) as source:
        experiment = source.experiment
        methods = [method.name for method in experiment.methods]
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
            experiment=experiment,
            runs=runs,
            studies=source.studies(),
            failures=source.failures(),
            missing=source.missing(),
            control=control,
            alpha=alpha,
            panels=list(_panels(source, runs, control, alpha)),
        )


def _panels(source: Store, runs: list[Run], control: str | None, alpha: float) -> Iterator[Panel]:
    protocol = source.experiment.protocol
    searched = any(s.selection != UNSEARCHED for run in runs for s in run.selections)
    for metric in (protocol.scoring, *(m for m in ALL_METRICS if m != protocol.scoring)):
        # A search chooses by the five metrics; the other ones come with its main choice.
        differ = searched and metric in METRICS and metric != protocol.scoring
        both = (OWN, EACH) if searched else (OWN,)
        for selections in ((OWN,), (EACH,)) if differ else (both,):
            scores = source.scores(metric, None if OWN in selections else EACH)
            if np.isnan(scores.values).all():
                continue
            compared = compare_what_is_there(
                scores, control=control, alpha=alpha, test_size=protocol.test_size
            )
            yield Panel(metric, selections, compared)
