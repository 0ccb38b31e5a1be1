"""Results of tasks: runs with scores, sensitivity studies and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from imcc._utils.validation import check_choice
from imcc.experiment._plan import TaskKey
from imcc.metrics import METRICS

#: The axes of a sensitivity study, in the order of its arrays.
AXES = ("alpha", "beta", "gamma", "n_clusters")
#: ``selection`` of a method without a search, which has only one setting.
UNSEARCHED = "none"


@dataclass(frozen=True)
class Selection:
    """A setting of a method, how it was chosen, and its metrics on the held-out rows.

    Attributes
    ----------
    selection : str
        Metric by which cross-validation chose the setting; ``"none"`` without a search.
    setting : dict
        The chosen parameters; empty without a search.
    cv_score : float or None
        Cross-validated value of that metric; None without a search.
    metrics : dict of str to float
        All metrics on the held-out rows; NaN if undefined.
    by_frequency : dict of str to float
        Mean average precision of the labels (not of the rows) per range of label frequencies, with
        the names in ``LABEL_RANGES``.  Ranges without labels are omitted; empty if it was not
        recorded.
    """

    selection: str
    setting: dict[str, Any]
    cv_score: float | None
    metrics: dict[str, float]
    by_frequency: dict[str, float] = field(default_factory=dict)


def check_selections(names: Sequence[str]) -> None:
    """Raise a ValueError unless a run has one setting, or one that each metric has chosen."""
    if sorted(names) not in ([UNSEARCHED], sorted(METRICS)):
        raise ValueError(f"a result has the selections {', '.join(names)}")


@dataclass(frozen=True)
class Run:
    """The result of a task: one method on one split of one data set.

    Attributes
    ----------
    key : TaskKey
        Kind of task, data set, method and repetition.
    fingerprint : str
        Hash of protocol and method.
    data_fingerprint : str
        Hash of the data.
    seed : int
        Hash of base seed, data set and repetition; determines the split, the folds and the random
        numbers of the method.
    n_train, n_test, n_features, n_labels : int
        Numbers of training rows, test rows, features and labels.
    selections : tuple of Selection
        One entry per metric that chose a setting; a single one without a search.
    fit_seconds : float
        Time of the search and of fitting the setting chosen by the experiment's metric on all
        training rows.
    search_seconds : float
        Time of the search alone.
    predict_seconds : float
        Time of scoring the held-out rows.
    cpu_seconds : float
        Processor time of the whole task, over all threads.
    peak_memory : int or None
        Increase of the peak memory of the process during the task in bytes; None if the system
        does not report it.
    warnings : tuple of str
        Warnings of the method.
    environment : dict
        Versions and hardware.
    finished : str
        Date and time, UTC.
    """

    key: TaskKey
    fingerprint: str
    data_fingerprint: str
    seed: int
    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    selections: tuple[Selection, ...]
    fit_seconds: float
    search_seconds: float
    predict_seconds: float
    cpu_seconds: float
    peak_memory: int | None
    warnings: tuple[str, ...]
    environment: dict[str, Any]
    finished: str

    @property
    def seconds(self) -> float:
        """Time of training and scoring in seconds, for estimates."""
        return self.fit_seconds + self.predict_seconds


@dataclass(frozen=True, eq=False)
class Study:
    """Cross-validated metrics over the whole grid of IMCC's parameters on one data set.

    Attributes
    ----------
    key : TaskKey
        Kind of task, data set, method and repetition.
    axes : dict of str to list
        Values of ``alpha``, ``beta``, ``gamma`` and ``n_clusters``, in the order of the arrays.
    metrics : tuple of str
        Names of the metrics.
    mean, std : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_n_clusters)
        Means and standard deviations over the folds.
    n_rows : int
        Number of rows of the data set.
    fingerprint, data_fingerprint, seed, fit_seconds, cpu_seconds, warnings, environment, finished
        As for :class:`Run`.
    """

    key: TaskKey
    axes: dict[str, list[Any]]
    metrics: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray
    fingerprint: str
    data_fingerprint: str
    seed: int
    n_rows: int
    fit_seconds: float
    cpu_seconds: float
    warnings: tuple[str, ...]
    environment: dict[str, Any]
    finished: str

    @property
    def seconds(self) -> float:
        """Time of the search in seconds, for estimates."""
        return self.fit_seconds

    def best(self, metric: str) -> dict[str, Any]:
        """Return the setting with the best mean of a metric; the first one of ties.

        Parameters
        ----------
        metric : str
            One of ``metrics``.

        Returns
        -------
        dict
        """
        at = self.best_index(metric)
        return {name: values[i] for (name, values), i in zip(self.axes.items(), at, strict=True)}

    def along(self, metric: str, *axes: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a metric along some axes, with the other parameters at their best values.

        Parameters
        ----------
        metric : str
            One of ``metrics``.
        *axes : str
            One or more names of ``axes``.

        Returns
        -------
        mean, std : ndarray
            Means and standard deviations over the folds, with one dimension per axis, in the given
            order.
        """
        for axis in axes:
            check_choice("axes", axis, self.axes)
        names = list(self.axes)
        where = self.best_index(metric)
        index = tuple(
            slice(None) if name in axes else i for name, i in zip(names, where, strict=True)
        )
        kept = [name for name in names if name in axes]
        order = [kept.index(axis) for axis in axes]
        place = self.metrics.index(metric)
        return (
            self.mean[place][index].transpose(order),
            self.std[place][index].transpose(order),
        )

    def best_index(self, metric: str) -> tuple[int, ...]:
        """Return the index of the best mean of a metric in ``mean[i]``; the first one of ties."""
        check_choice("metric", metric, self.metrics)
        values = self.mean[self.metrics.index(metric)]
        best = np.nanargmax(values if METRICS[metric].greater_is_better else -values)
        return tuple(int(i) for i in np.unravel_index(best, values.shape))


@dataclass(frozen=True)
class Failure:
    """A task that raised an error.  It is reported and retried by the next run.

    Attributes
    ----------
    key : TaskKey
        Kind of task, data set, method and repetition.
    error : str
        The error message.
    traceback : str
        The traceback; may be empty.
    seconds : float
        Time until the task failed.
    environment : dict
        Versions and hardware.
    finished : str
        Date and time, UTC.
    """

    key: TaskKey
    error: str
    traceback: str
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)
    finished: str = ""


Outcome = Run | Study | Failure

#: Names and types of the fields of runs and studies in stores and exported files, except keys and
#: scores.
RUN_FIELDS = {f.name: str(f.type) for f in fields(Run) if f.name not in ("key", "selections")}
STUDY_FIELDS = {
    f.name: str(f.type)
    for f in fields(Study)
    if f.name not in ("key", "axes", "metrics", "mean", "std")
}
