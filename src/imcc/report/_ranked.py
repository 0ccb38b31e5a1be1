"""Choice of the methods that are ranked together if runs are missing.

The report of a store and the page of the committed results use the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from imcc.comparison import Comparison, EffectSize, ScoreTable, compare, effect_size

#: Minimum number of data sets for tests: with fewer, Wilcoxon's test cannot be significant.
FEWEST = 6
#: Minimum number of data sets for an interval.
FEW = 3
#: Decimals of differences between means.
DECIMALS = 12
_CALIBRATED = "_calibrated"


@dataclass(frozen=True)
class Split:
    """Which methods are ranked together, and which separately.

    Attributes
    ----------
    complete : tuple of str
        Methods with a run on every data set, which are ranked and tested together.  Calibrated
        variants of other methods are excluded, since two nearly equal methods change the ranks of
        all others.
    partial : tuple of str
        Other methods with enough data sets; each is ranked among the complete ones on its data
        sets.
    few : tuple of str
        The remaining methods, which are only in the tables.
    fewest : int
        Minimum number of data sets of ``partial``.
    """

    complete: tuple[str, ...]
    partial: tuple[str, ...]
    few: tuple[str, ...]
    fewest: int


def calibrated(method: str, methods: Sequence[str]) -> bool:
    """Return whether a method is the calibrated variant of another one of the methods.

    >>> calibrated("llsf_calibrated", ["llsf", "llsf_calibrated"])
    True
    """
    return method.endswith(_CALIBRATED) and method.removesuffix(_CALIBRATED) in methods


def split_methods(scores: ScoreTable) -> Split:
    """Return which methods have runs on all data sets, on most, and on few.

    Missing runs of a method do not remove data sets for the others.  Only if no two methods have
    all data sets, the data sets that at least half of the methods lack are left out, which an
    unfinished experiment has just started; if that is not enough, all methods are ranked on their
    common data sets.

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN for missing runs.
    """
    have = scores.counts > 0
    begun = have.any(axis=1)
    column = {method: have[:, j] for j, method in enumerate(scores.methods)}
    fewest = max(1, min(FEWEST, math.ceil(int(begun.sum()) / 2)))
    enough = [m for m in scores.methods if column[m].sum() >= fewest]
    plain = [m for m in enough if not calibrated(m, scores.methods)]
    if len(plain) < 2:
        plain = enough
    complete = [m for m in plain if column[m][begun].all()]
    if len(complete) < 2 <= len(plain):  # without the data sets that have just begun
        kept = begun & (np.mean([column[m] for m in plain], axis=0) > 0.5)
        complete = [m for m in plain if column[m][kept].all()]
    if len(complete) < 2 <= len(plain):  # all of them, on the data sets that they share
        complete = plain
    return Split(
        tuple(complete),
        tuple(m for m in enough if m not in complete),
        tuple(m for m in scores.methods if m not in enough),
        fewest,
    )


def shared(scores: ScoreTable, methods: Sequence[str]) -> ScoreTable:
    """Return the runs on the splits that all given methods have.

    All means are then over the same splits; data sets without common splits are left out.

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN for missing runs.
    methods : sequence of str
        Names of methods.
    """
    picked = scores.select(methods=methods)
    common = np.isfinite(picked.values).all(axis=1)
    values = np.where(common[:, np.newaxis, :], picked.values, np.nan)
    kept = [d for d, any_ in zip(picked.datasets, common.any(axis=1), strict=True) if any_]
    return replace(picked, values=values).select(datasets=kept)


@dataclass(frozen=True)
class PartialRank:
    """Rank of a method among the complete ones on its data sets.

    Attributes
    ----------
    method : str
    datasets : tuple of str
        Data sets with a split that all of these methods have.
    ranks : dict of str to float
        Mean ranks of all of these methods; empty with fewer than two data sets.
    """

    method: str
    datasets: tuple[str, ...]
    ranks: dict[str, float]


def rank_among(scores: ScoreTable, complete: Sequence[str], method: str) -> PartialRank:
    """Rank a method among the complete ones on its data sets.

    Parameters
    ----------
    scores : ScoreTable
        The scores.
    complete : sequence of str
        The methods that are ranked together.
    method : str
        Another method.
    """
    runs = shared(scores, (*complete, method))
    if len(runs.datasets) < 2:
        return PartialRank(method, runs.datasets, {})
    found = compare(runs)
    ranks = dict(zip(found.methods, found.mean_ranks.tolist(), strict=True))
    return PartialRank(method, runs.datasets, ranks)


def differences(scores: ScoreTable, control: str, method: str) -> np.ndarray:
    """Return the mean difference of control and method per data set, over common splits."""
    means = shared(scores, (control, method)).mean()
    return np.asarray(means[:, 0] - means[:, 1])


@dataclass(frozen=True)
class Gap:
    """Differences between two methods on their common data sets and splits.

    Attributes
    ----------
    method : str
        The other method.
    values : ndarray of shape (n_datasets,)
        The differences, positive if the first method is better.
    size : EffectSize
        Effect sizes of the differences.
    n_better, n_equal : int
        Number of data sets on which the first method is better, or equal.
    """

    method: str
    values: np.ndarray
    size: EffectSize
    n_better: int
    n_equal: int

    @property
    def n(self) -> int:
        """Number of data sets."""
        return len(self.values)

    @property
    def half(self) -> float | None:
        """Half the width of the interval of the mean; None with too few data sets."""
        return self.size.mean_interval[1] - self.size.mean if self.n >= FEW else None


def gaps(scores: ScoreTable, method: str) -> list[Gap]:
    """Return the differences between a method and each other one, by increasing mean.

    Methods with too few common data sets (fewer than half of those of the method, or fewer than
    ``FEWEST`` if that is less) are left out.

    Parameters
    ----------
    scores : ScoreTable
        The scores.
    method : str
        One of its methods.
    """
    sign = 1 if scores.greater_is_better else -1
    own = int((scores.counts[:, scores.methods.index(method)] > 0).sum())
    fewest = max(1, min(FEWEST, math.ceil(own / 2)))
    found = []
    for other in scores.methods:
        if other == method:
            continue
        values = sign * differences(scores, method, other)
        if len(values) >= fewest:
            rounded = np.round(values, DECIMALS)
            better, equal = int((rounded > 0).sum()), int((rounded == 0).sum())
            size = effect_size(values, decimals=DECIMALS)
            found.append(Gap(other, values, size, better, equal))
    return sorted(found, key=lambda gap: gap.size.mean)


def behind(comparison: Comparison, method: str) -> list[tuple[str, list[str]]]:
    """Return the data sets on which a method is not first, each with the methods that are.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`imcc.comparison.compare`.
    method : str
        Name of a method.
    """
    found = []
    own = comparison.methods.index(method)
    for dataset, ranks in zip(comparison.datasets, comparison.ranks, strict=True):
        if ranks[own] > ranks.min():
            first = [m for m, r in zip(comparison.methods, ranks, strict=True) if r == ranks.min()]
            found.append((dataset, first))
    return found


def not_different(comparison: Comparison, method: str) -> list[str]:
    """Return the methods that do not differ significantly from one by Nemenyi's test, by mean rank.

    Parameters
    ----------
    comparison : Comparison
        Comparison of at least three methods on at least two data sets.
    method : str
        Name of a method.
    """
    assert comparison.nemenyi is not None
    significant = comparison.nemenyi.significant[comparison.methods.index(method)]
    return [
        comparison.methods[j]
        for j in comparison.order
        if comparison.methods[j] != method and not significant[j]
    ]
