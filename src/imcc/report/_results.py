"""The data of a report: the results of a store, their comparisons and the published results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from imcc._utils.progress import report_progress
from imcc.comparison import ROPE, Comparison, ScoreTable, compare
from imcc.datasets import dataset_info, list_datasets
from imcc.experiment import (
    ALL_METRICS,
    EACH,
    LABEL_RANGES,
    UNSEARCHED,
    Experiment,
    Failure,
    Run,
    Store,
    Study,
    TaskKey,
)
from imcc.metrics import METRICS
from imcc.published import PublishedComparison, compare_with_published
from imcc.published import datasets as published_datasets
from imcc.published import table as published_table
from imcc.report._ranked import (
    PartialRank,
    Split,
    calibrated,
    rank_among,
    shared,
    split_methods,
)
from imcc.report._words import counted, joined, one_line, rank_text

#: Default control, if the experiment has a method of this name.
DEFAULT_CONTROL = "imcc"
#: Value of ``selection``: settings chosen by the metric of the experiment.
OWN = "own"


@dataclass(frozen=True, eq=False)
class Panel:
    """One metric for one way of choosing settings.

    Attributes
    ----------
    metric : str
    selections : tuple of str
        ``"own"``, ``"each"``, or both if they are the same.
    compared : Compared
        The scores and their comparison.
    """

    metric: str
    selections: tuple[str, ...]
    compared: Compared


@dataclass(frozen=True, eq=False)
class Results:
    """The contents of a store and their comparisons.

    Attributes
    ----------
    path : Path
        The store.
    experiment : Experiment
    runs, studies, failures : list
        Results and failures.
    missing : list of TaskKey
        Tasks that are not done.
    control : str or None
        The method that the others are compared with.
    alpha : float
        Significance level.
    panels : list of Panel
        One entry per metric with values and way of choosing settings.
    labels : dict of str to Compared
        Comparisons by label frequency, if the runs have this record.
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
    labels: dict[str, Compared] = field(default_factory=dict)

    @property
    def scoring(self) -> str:
        """The metric by which the experiment chooses settings."""
        return self.experiment.protocol.scoring

    @property
    def records(self) -> list[Run | Study]:
        """The runs and the studies."""
        return [*self.runs, *self.studies]

    @property
    def selections(self) -> tuple[str, ...]:
        """The ways of choosing settings; a single one if no method has a search."""
        return tuple(dict.fromkeys(s for panel in self.panels for s in panel.selections))

    def panel(self, metric: str, selection: str = OWN) -> Panel | None:
        """Return a panel; None if the metric has no values."""
        for panel in self.panels:
            if panel.metric == metric and selection in panel.selections:
                return panel
        return None

    @property
    def main(self) -> Panel | None:
        """The panel of the experiment's metric, or of the first metric with values."""
        return self.panel(self.scoring) or (self.panels[0] if self.panels else None)


@contextmanager
def opened(store: Store | str | Path) -> Iterator[Store]:
    """Open a store for reading, unless it is already open."""
    if isinstance(store, Store):
        yield store
        return
    with Store(store, read_only=True) as found:
        yield found


def gather(
    store: Store | str | Path,
    *,
    control: str | None = None,
    alpha: float = 0.05,
    rope: float = ROPE,
) -> Results:
    """Read a store and compare its results.

    Parameters
    ----------
    store : Store or path
        The results.
    control : str, default=None
        The method that the others are compared with; ``imcc`` by default, if the experiment has a
        method of that name.
    alpha : float, default=0.05
        Significance level.
    rope : float, default=0.01
        As for :func:`imcc.comparison.compare`.
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
            panels=list(_panels(source, runs, control, alpha, rope)),
            labels=compare_by_frequency(source, alpha),
        )


def _panels(
    source: Store, runs: list[Run], control: str | None, alpha: float, rope: float
) -> Iterator[Panel]:
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
            if np.isnan(scores.values).all():
                continue
            compared = compare_common_runs(
                scores, control=control, alpha=alpha, test_size=protocol.test_size, rope=rope
            )
            yield Panel(metric, selections, compared)


@dataclass(frozen=True, eq=False)
class Compared:
    """A table of scores, and the comparison of its comparable part.

    Attributes
    ----------
    scores : ScoreTable
        The whole table.
    comparison : Comparison or None
        Comparison of the methods that are ranked together, on their common data sets and
        repetitions.
    reason : str or None
        Why there is no comparison.
    left_out : tuple of str
        Descriptions of what is not compared because of missing runs.
    partial : tuple of PartialRank
        Methods that lack data sets, each ranked among the others on its data sets.
    """

    scores: ScoreTable
    comparison: Comparison | None
    reason: str | None
    left_out: tuple[str, ...]
    partial: tuple[PartialRank, ...] = ()


def compare_common_runs(
    scores: ScoreTable,
    *,
    control: str | None = None,
    alpha: float = 0.05,
    test_size: float | None = None,
    rope: float = ROPE,
) -> Compared:
    """Compare methods on their common runs.

    The methods with runs on all data sets are ranked and tested together, on the repetitions that
    all of them have.  A method that lacks data sets does not remove them for the others: it is
    ranked among them on its data sets (see :func:`imcc.report._ranked.split_methods`).

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN for missing runs.
    control : str, default=None
        The method that the others are compared with; ignored if it is left out.
    alpha : float, default=0.05
        Significance level.
    test_size, rope
        As for :func:`imcc.comparison.compare`.
    """
    if np.isnan(scores.values).all():
        return Compared(scores, None, "there are no runs yet", ())
    split = split_methods(scores)
    part = shared(scores, split.complete)
    partial = tuple(rank_among(scores, split.complete, method) for method in split.partial)
    left_out = [*_methods_left_out(scores, split, partial), *_datasets_left_out(scores, part)]
    if not part.datasets:
        reason = "there is no data set on which all methods have a repetition in common"
        return Compared(scores, None, reason, tuple(left_out), partial)
    comparison = compare(
        part,
        control=control if control in part.methods else None,
        alpha=alpha,
        missing="drop_repetitions",
        test_size=test_size,
        rope=rope,
    )
    # All runs of the ranked methods, before those of other repetitions were left out.
    n_all = int(scores.select(part.datasets, part.methods).counts.sum())
    lost = n_all - int(part.counts.sum())
    if lost:
        left_out.append(
            f"{counted(lost, 'run')} of repetitions that not all of the ranked methods have"
        )
    return Compared(scores, comparison, None, tuple(left_out), partial)


def compare_by_frequency(store: Store, alpha: float) -> dict[str, Compared]:
    """Compare the methods by the average precision of labels, in each range that has records.

    Parameters
    ----------
    store : Store
        Rows of earlier versions have no record.
    alpha : float
        The level of significance.

    Returns
    -------
    dict of str to Compared
        By the names of the ranges; without those in which nothing can be compared.
    """
    found = {}
    for name in LABEL_RANGES:
        scores = store.scores(name)
        if not scores.counts.any():
            continue
        n_runs = scores.counts.sum(axis=0)
        methods = [m for m, n in zip(scores.methods, n_runs, strict=True) if n]
        compared = compare_common_runs(scores.select(methods=methods), alpha=alpha)
        if compared.comparison is not None and len(compared.comparison.methods) > 1:
            found[name] = compared
    return found


def _methods_left_out(
    scores: ScoreTable, split: Split, partial: tuple[PartialRank, ...]
) -> Iterator[str]:
    """Yield which methods are not ranked with the others, why, and their separate ranks."""
    n_sets = dict(zip(scores.methods, (scores.counts > 0).sum(axis=0).tolist(), strict=True))
    total = int((scores.counts > 0).any(axis=1).sum())
    for found in partial:
        name = one_line(found.method)
        if n_sets[found.method] < total:
            text = f"{name}: runs on {n_sets[found.method]} of {total} data sets"
        elif calibrated(found.method, scores.methods):
            text = f"{name}: another of the methods with calibrated scores"
        else:  # the others lack data sets
            text = f"{name}: runs on all {total} data sets, but only some are ranked"
        if found.ranks:
            rank = rank_text(found.ranks[found.method])
            where = counted(len(found.datasets), "data set")
            best = min(split.complete, key=lambda m: found.ranks[m])
            text += (
                f"; ranked among the others on {where} its mean rank is {rank} of "
                f"{len(found.ranks)} ({one_line(best)}: {rank_text(found.ranks[best])})"
            )
        yield text
    few = [one_line(m) for m in split.few if n_sets[m]]
    if few:
        less = counted(split.fewest, "data set")
        yield f"{joined(few)}: runs on fewer than {less} of {total}"
    none = [one_line(m) for m in split.few if not n_sets[m]]
    if none:
        yield f"{joined(none)}: no runs"


def _datasets_left_out(scores: ScoreTable, part: ScoreTable) -> Iterator[str]:
    names = [one_line(d) for d in scores.datasets if d not in part.datasets]
    if names:
        yield f"{joined(names)}: no repetition that all of the ranked methods have"


def is_known(results: Results, dataset: str) -> bool:
    """Return whether a data set is the one of that name in this library."""
    if dataset not in list_datasets():
        return False
    known = dataset_info(dataset).fingerprint
    found = {run.data_fingerprint for run in results.runs if run.key[1] == dataset}
    return found == {known}


def compare_with_paper(results: Results, selection: str) -> PublishedComparison | None:
    """Compare the results with those of the paper; None if there is nothing to compare.

    Names are not sufficient: the data must be those of the paper, and a method must be the named
    method with its parameters.

    Parameters
    ----------
    results : Results
    selection : {"own", "each"}
        How settings were chosen.
    """
    paper = published_table("average_precision")
    datasets = [
        spec.name
        for spec in results.experiment.datasets
        if spec.name in paper.datasets and is_known(results, spec.name)
    ]
    methods = [
        method.name
        for method in results.experiment.methods
        if method.name in paper.methods and method.is_named
    ]
    tables = {}
    for metric in METRICS:
        panel = results.panel(metric, selection)
        if panel is not None and datasets and methods:
            tables[metric] = panel.compared.scores.select(datasets, methods)
    if not tables:
        return None
    result = compare_with_published(tables, alpha=results.alpha)
    return result if any(cell.mean is not None for cell in result.cells) else None


def cardinality(dataset: str) -> tuple[float, int] | None:
    """Return labels per row and number of distinct label sets of Table 2 of the paper."""
    for line in published_datasets():
        if line.dataset == dataset:
            return line.cardinality, line.n_label_sets
    return None
