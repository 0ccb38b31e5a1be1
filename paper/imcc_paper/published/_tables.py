"""The tables of the paper as data, as printed; :data:`SLIPS` lists their errors.

``published/results.csv`` has Tables 3 and 4, with one line per metric, data set and method as
printed: mean and standard deviation over ten random splits, and the rank; and, from
:data:`SLIPS`, why a result is doubtful.  ``published/datasets.csv`` has Table 2.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imcc.comparison import ScoreTable
from imcc.metrics import METRICS
from imcc_paper.places import PUBLISHED, PUBLISHED_DATASETS

#: Reference of the paper.
CITATION = (
    "S. Shu, F. Lv, Y. Yan, L. Li, S. He and J. He, "
    '"Incorporating multiple cluster centers for multi-label learning", '
    "Information Sciences 590, 2022"
)
#: Number of random 80/20 splits of the published means and standard deviations.
N_REPETITIONS = 10
#: Number of decimals of the published values.
DECIMALS = 3


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """Published results by one metric (Tables 3 and 4).

    Attributes
    ----------
    metric : str
        Name of the metric, one of :data:`imcc.metrics.METRICS`.
    greater_is_better : bool
        Whether larger values are better.
    datasets, methods : tuple of str
        Names in this library of the data sets and methods.
    means, stds : ndarray of shape (n_datasets, n_methods)
        Means and standard deviations over ten repetitions, with three decimals.
    ranks : ndarray of int, shape (n_datasets, n_methods)
        Printed ranks; tied methods have the smallest of their ranks, with the exceptions in
        :data:`SLIPS`.
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    means: np.ndarray
    stds: np.ndarray
    ranks: np.ndarray

    def cell(self, dataset: str, method: str) -> tuple[float, float, int]:
        """Return the published result of a method on a data set.

        Parameters
        ----------
        dataset, method : str
            Names of the data set and the method.

        Returns
        -------
        mean, std : float
            Mean and standard deviation.
        rank : int
            Printed rank.
        """
        at = self.datasets.index(dataset), self.methods.index(method)
        return float(self.means[at]), float(self.stds[at]), int(self.ranks[at])

    def to_scores(self) -> ScoreTable:
        """Return the means as a table with one run per cell, for :func:`imcc.comparison.compare`.

        Returns
        -------
        imcc.comparison.ScoreTable
        """
        return ScoreTable(
            self.metric,
            self.greater_is_better,
            self.datasets,
            self.methods,
            self.means[:, :, np.newaxis],
        )


@dataclass(frozen=True)
class PublishedDataset:
    """A row of Table 2 of the paper.

    Attributes
    ----------
    dataset : str
        Name of the data set in this library.
    n_rows, n_features, n_labels : int
        ``|D|``, ``dim(D)`` and ``L(D)``.
    feature_type : {"numeric", "nominal"}
        F(D).
    cardinality, density : float
        LCard(D) and LDen(D).
    n_label_sets : int
        DL(D).
    label_set_proportion : float
        PDL(D).
    """

    dataset: str
    n_rows: int
    n_features: int
    n_labels: int
    feature_type: str
    cardinality: float
    density: float
    n_label_sets: int
    label_set_proportion: float


@dataclass(frozen=True)
class PublishedFriedman:
    """Published statistical tests (Table 5 and the text), as printed.

    Attributes
    ----------
    f : dict of str to float
        F_F by metric.  Those of one-error and Hamming loss do not follow from the paper's tables,
        whatever the order of the means that are equal in print; see :data:`SLIPS`.
    critical_value : float
        Critical value of F_F at the level ``alpha``.
    q, critical_difference : float
        Quantile and critical difference of Nemenyi's test.
    alpha : float
        Significance level.
    n_methods, n_datasets : int
        k and N.
    """

    f: dict[str, float]
    critical_value: float
    q: float
    critical_difference: float
    alpha: float
    n_methods: int
    n_datasets: int


#: Table 5 and the critical difference given below it.
FRIEDMAN = PublishedFriedman(
    f={
        "one_error": 4.57,
        "hamming_loss": 6.06,
        "ranking_loss": 13.74,
        "coverage": 6.76,
        "average_precision": 11.45,
    },
    critical_value=2.209,
    q=2.949,
    critical_difference=2.3261,
    alpha=0.05,
    n_methods=7,
    n_datasets=15,
)

#: Percentages of IMCC over all metrics, as given in the text: how often it is first (on all data
#: sets, on those of regular and of large scale) and among the first three.
PERCENTAGES = {
    "first": 72.00,
    "top_three": 89.33,
    "first_regular": 88.57,
    "first_large": 55.50,
}


@functools.cache
def table(metric: str) -> PublishedTable:
    """Return the published results by a metric, of seven methods on fifteen data sets.

    Parameters
    ----------
    metric : str
        Name of the metric, one of :data:`imcc.metrics.METRICS`.

    Returns
    -------
    PublishedTable

    Examples
    --------
    >>> from imcc_paper.published import table
    >>> one_error = table("one_error")
    >>> one_error.cell("yeast", "imcc")
    (0.21, 0.015, 1)
    >>> one_error.means.shape, one_error.methods
    ((15, 7), ('imcc', 'brsvm', 'ecc', 'mahr', 'llsf', 'jfsc', 'lift'))
    """
    lines = [line for line in _rows(PUBLISHED) if line["metric"] == metric]
    datasets, methods = (
        tuple(dict.fromkeys(line[name] for line in lines)) for name in ("dataset", "method")
    )
    shape = len(datasets), len(methods)
    means, stds, ranks = (
        np.array([kind(line[name]) for line in lines]).reshape(shape)
        for name, kind in (("mean", float), ("std", float), ("rank", int))
    )
    for array in (means, stds, ranks):
        array.flags.writeable = False  # the table is cached
    up = METRICS[metric].greater_is_better
    return PublishedTable(metric, up, datasets, methods, means, stds, ranks)


@functools.cache
def datasets() -> tuple[PublishedDataset, ...]:
    """Return the rows of Table 2, as printed.

    Returns
    -------
    tuple of PublishedDataset

    Examples
    --------
    >>> from imcc_paper.published import datasets
    >>> datasets()[0].dataset, datasets()[0].n_rows
    ('cal500', 502)
    """
    whole, real = int, float
    kinds = (str, whole, whole, whole, str, real, real, whole, real)
    return tuple(
        PublishedDataset(*(kind(value) for kind, value in zip(kinds, row.values(), strict=True)))
        for row in _rows(PUBLISHED_DATASETS)
    )


def _rows(path: Path) -> list[dict[str, str]]:
    lines = path.read_text("utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
