"""What a task gives: a run with its scores, a sensitivity study, or a failure."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from imcc._utils.validation import check_choice
from imcc.experiment._plan import TaskKey
from imcc.metrics import METRICS

#: The axes of a sensitivity study, in the order of its arrays.
AXES = ("alpha", "beta", "gamma", "n_clusters")
#: Where a method searches nothing: there is only one setting to report.
UNSEARCHED = "none"


@dataclass(frozen=True)
class Selection:
    """A method's setting, the way it was chosen, and how good it was on the held-out rows.

    Attributes
    ----------
    selection : str
        The metric by which cross-validation chose the setting; ``"none"`` without a search.
    setting : dict
        The chosen parameters; empty without a search.
    cv_score : float or None
        The cross-validated value of the deciding metric.
    metrics : dict of str to float
        All metrics on the held-out rows; NaN where one is undefined.
    by_frequency : dict of str to float
        The mean over the labels of a range of frequencies of the average precision of the label
        (not of a row), by the names of the ranges in ``LABEL_RANGES``; without the ranges that have
        no label, and empty for rows that were computed before there was such a record.
    """

    selection: str
    setting: dict[str, Any]
    cv_score: float | None
    metrics: dict[str, float]
    by_frequency: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """The result of one task: a row of the experiment.

    Attributes
    ----------
    key : tuple
        Kind of task, data set, method, repetition.
    fingerprint : str
        Hash of protocol and method.
    data_fingerprint : str
        Hash of the data.
    seed : int
        Hash of base seed, data set and repetition; gives the split, the folds and the method's
        random numbers.
    n_train, n_test, n_features, n_labels : int
    selections : tuple of Selection
        One for each metric that chose a setting.
    fit_seconds : float
        Search, and fit of the setting chosen by the experiment's metric, on all training rows.
    search_seconds : float
        Of these, the search.
    predict_seconds : float
        Scoring the held-out rows.
    cpu_seconds : float
        Processor time of the whole task, all threads.
    peak_memory : int or None
        Most bytes that the process held during the task, above what it held before; None where
        the system does not tell.
    warnings : tuple of str
        What the method warned of.
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
        """Training and scoring time, for estimates."""
        return self.fit_seconds + self.predict_seconds


@dataclass(frozen=True, eq=False)
class Study:
    """Cross-validated metrics over the whole grid of IMCC's parameters on one data set.

    Attributes
    ----------
    key : tuple
    axes : dict of str to list
        The values of ``alpha``, ``beta``, ``gamma``, ``n_clusters``, in the order of the axes.
    metrics : tuple of str
    mean, std : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_n_clusters)
        Over the folds.
    fingerprint, data_fingerprint, seed, n_rows, fit_seconds, cpu_seconds, environment, finished
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
        """The time of the search, for estimates."""
        return self.fit_seconds

    def best(self, metric: str) -> dict[str, Any]:
        """Return the setting with the best mean of a metric; of equals, the first."""
        at = self.best_index(metric)
        return {name: values[i] for (name, values), i in zip(self.axes.items(), at, strict=True)}

    def along(self, metric: str, *axes: str) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and spread of a metric along some axes, the others at their best.

        Parameters
        ----------
        metric : str
        *axes : str
            One or more of the names in ``axes``.

        Returns
        -------
        mean, std : ndarray
            One dimension for each axis, in the order given.
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
        """Return where in the arrays the best mean of a metric is; of equals, the first."""
        check_choice("metric", metric, self.metrics)
        values = self.mean[self.metrics.index(metric)]
        best = np.nanargmax(values if METRICS[metric].greater_is_better else -values)
        return tuple(int(i) for i in np.unravel_index(best, values.shape))


@dataclass(frozen=True)
class Failure:
    """A task that raised an error.  It is shown and tried again, and is never a result."""

    key: TaskKey
    error: str
    traceback: str
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)
    finished: str = ""


Outcome = Run | Study | Failure

#: What stores and exported files keep of a run and of a study besides its key and its scores: the
#: name of each field and its type, as the classes above have them.
RUN_FIELDS = {f.name: str(f.type) for f in fields(Run) if f.name not in ("key", "selections")}
STUDY_FIELDS = {
    f.name: str(f.type)
    for f in fields(Study)
    if f.name not in ("key", "axes", "metrics", "mean", "std")
}
