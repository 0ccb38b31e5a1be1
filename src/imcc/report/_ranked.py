"""Which methods are ranked together where runs are missing, and on what.

The report of a store and the page of the committed rows follow the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from imcc.comparison import Comparison, EffectSize, ScoreTable, compare, effect_size

#: Fewer data sets than this are not tested: Wilcoxon's test could find nothing.
FEWEST = 6
#: Fewer than this have no interval that would say anything.
FEW = 3
#: Of differences between means of scores with 12 digits.
DECIMALS = 12
_CALIBRATED = "_calibrated"


@dataclass(frozen=True)
class Split:
    """Which methods are ranked together, and which by themselves.

    Attributes
    ----------
    complete : tuple of str
        The methods with a run on every data set: they are ranked and tested together.  Not those
        that are another method with calibrated scores, since two methods that are nearly the same
        change the ranks of all others.
    partial : tuple of str
        The others with enough data sets: each is ranked among the complete ones on the data sets
        that it has.
    few : tuple of str
        The rest, which are only in the tables.
    fewest : int
        How many data sets are enough.
    """

    complete: tuple[str, ...]
    partial: tuple[str, ...]
    few: tuple[str, ...]
    fewest: int


def calibrated(method: str, methods: Sequence[str]) -> bool:
    """Return whether a method is another one of the methods with calibrated scores.

    >>> calibrated("llsf_calibrated", ["llsf", "llsf_calibrated"])
    True
    """
    return method.endswith(_CALIBRATED) and method.removesuffix(_CALIBRATED) in methods


def split_methods(scores: ScoreTable) -> Split:
    """Return which methods have runs on all data sets, on most, and on few.

    A method that lacks data sets takes none away from the others.  Only where no two methods have
    all data sets, those that half of the methods or more lack are left out, with which a running
    experiment has just begun; and if that is not enough, all methods are ranked on what they share.

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN where a run is missing.
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
    """Return the runs of the splits that all of some methods have; data sets without are left out.

    All means are then over the same splits.

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN where a run is missing.
    methods : sequence of str
        Which of its methods.
    """
    picked = scores.select(methods=methods)
    common = np.isfinite(picked.values).all(axis=1)
    values = np.where(common[:, np.newaxis, :], picked.values, np.nan)
    kept = [d for d, any_ in zip(picked.datasets, common.any(axis=1), strict=True) if any_]
    return replace(picked, values=values).select(datasets=kept)


@dataclass(frozen=True)
class PartialRank:
    """A method that is ranked among the complete ones on the data sets that it has.

    Attributes
    ----------
    method : str
    datasets : tuple of str
        Those on which all of them share a split.
    ranks : dict of str to float
        The mean ranks there of all of them; empty with fewer than two data sets.
    """

    method: str
    datasets: tuple[str, ...]
    ranks: dict[str, float]


def rank_among(scores: ScoreTable, complete: Sequence[str], method: str) -> PartialRank:
    """Rank a method among the complete ones on the data sets that it has.

    Parameters
    ----------
    scores : ScoreTable
        The scores.
    complete : sequence of str
        The methods that are ranked together.
    method : str
        Another one.
    """
    runs = shared(scores, (*complete, method))
    if len(runs.datasets) < 2:
        return PartialRank(method, runs.datasets, {})
    found = compare(runs)
    ranks = dict(zip(found.methods, found.mean_ranks.tolist(), strict=True))
    return PartialRank(method, runs.datasets, ranks)


def differences(scores: ScoreTable, control: str, method: str) -> np.ndarray:
    """Return control minus method, a mean for each data set, over the splits that both have."""
    means = shared(scores, (control, method)).mean()
    return np.asarray(means[:, 0] - means[:, 1])


@dataclass(frozen=True)
class Gap:
    """By how much a method is better than another one, on the data sets and splits that both have.

    Attributes
    ----------
    method : str
        The other method.
    values : ndarray of shape (n_datasets,)
        The differences, positive where the first method is better.
    size : EffectSize
        Of these.
    n_better, n_equal : int
        On how many data sets the first method is better, and equal.
    """

    method: str
    values: np.ndarray
    size: EffectSize
    n_better: int
    n_equal: int

    @property
    def n(self) -> int:
        """The number of data sets."""
        return len(self.values)

    @property
    def half(self) -> float | None:
        """Half of the interval of the mean; None where there are too few data sets for one."""
        return self.size.mean_interval[1] - self.size.mean if self.n >= FEW else None


def gaps(scores: ScoreTable, method: str) -> list[Gap]:
    """Return by how much a method is better than each other one, the nearest first.

    Methods with too few data sets in common (fewer than half of those of the method, or than
    ``FEWEST`` where it has more) are left out.

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
    """Return the data sets on which a method is not first, each with those that are.

    Parameters
    ----------
    comparison : Comparison
        From :func:`imcc.comparison.compare`.
    method : str
        One of its methods.
    """
    found = []
    own = comparison.methods.index(method)
    for dataset, ranks in zip(comparison.datasets, comparison.ranks, strict=True):
        if ranks[own] > ranks.min():
            first = [m for m, r in zip(comparison.methods, ranks, strict=True) if r == ranks.min()]
            found.append((dataset, first))
    return found


def not_different(comparison: Comparison, method: str) -> list[str]:
    """Return the methods that do not differ from one by Nemenyi's test, by mean rank.

    Parameters
    ----------
    comparison : Comparison
        Of at least three methods on at least two data sets.
    method : str
        One of its methods.
    """
    assert comparison.nemenyi is not None
    significant = comparison.nemenyi.significant[comparison.methods.index(method)]
    return [
        comparison.methods[j]
        for j in comparison.order
        if comparison.methods[j] != method and not significant[j]
    ]
