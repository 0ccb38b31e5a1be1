"""Which methods are ranked together if runs are missing, and differences between two methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imcc.comparison import Comparison, ScoreTable, compare, effect_size

#: Minimum number of data sets for tests: with fewer, Wilcoxon's test cannot be significant.
FEWEST = 6
#: Minimum number of data sets for an interval.
FEW = 3
#: Decimals of differences between means.
DECIMALS = 12
#: Methods with calibrated scores, and the same methods without.  They are ranked by themselves:
#: two nearly equal methods change the ranks of all others.
CALIBRATED = {
    f"{name}_calibrated": name for name in ("imcc", "kernel_ridge", "llsf", "jfsc", "mahr")
}


def plain_methods(scores: ScoreTable) -> list[str]:
    """Return the methods that are not the calibrated form of another one."""
    return [m for m in scores.methods if CALIBRATED.get(m) not in scores.methods]


def ranked_together(scores: ScoreTable) -> list[str]:
    """Return the plain methods with rows on every data set."""
    whole = (scores.counts > 0).all(axis=0)
    has_all = {m for m, all_ in zip(scores.methods, whole, strict=True) if all_}
    return [m for m in plain_methods(scores) if m in has_all]


def rank_among(
    scores: ScoreTable, complete: Sequence[str], method: str
) -> tuple[int, dict[str, float]]:
    """Rank a method among the complete ones on its data sets.

    Returns
    -------
    n_datasets : int
    ranks : dict of str to float
        Mean ranks of all of these methods; empty with fewer than two data sets.
    """
    runs = scores.common_runs((*complete, method))
    if len(runs.datasets) < 2:
        return len(runs.datasets), {}
    ranks = compare(runs).mean_ranks.tolist()
    return len(runs.datasets), dict(zip(runs.methods, ranks, strict=True))


def differences(scores: ScoreTable, control: str, method: str) -> np.ndarray:
    """Return the mean difference of control and method per data set, over common splits."""
    means = scores.common_runs((control, method)).mean()
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
    mean, half : float
        Mean difference, and half the width of its interval.
    """

    method: str
    values: np.ndarray
    mean: float
    half: float


def gaps(scores: ScoreTable, method: str) -> list[Gap]:
    """Return the differences between a method and each other one, by increasing mean.

    Methods with fewer than ``FEWEST`` common data sets are left out.
    """
    found = []
    for other in (m for m in scores.methods if m != method):
        values = scores.differences(method, other)
        if len(values) >= FEWEST:
            mean, (_, high) = effect_size(values)
            found.append(Gap(other, values, mean, high - mean))
    return sorted(found, key=lambda gap: gap.mean)


def behind(comparison: Comparison, method: str) -> list[tuple[str, list[str]]]:
    """Return the data sets on which a method is not first, each with the methods that are."""
    found = []
    own = comparison.methods.index(method)
    for dataset, ranks in zip(comparison.datasets, comparison.ranks, strict=True):
        if ranks[own] > ranks.min():
            first = [m for m, r in zip(comparison.methods, ranks, strict=True) if r == ranks.min()]
            found.append((dataset, first))
    return found


def not_different(comparison: Comparison, method: str) -> list[str]:
    """Return the methods that do not differ significantly from one by Nemenyi's test, by rank."""
    assert comparison.nemenyi is not None
    significant = comparison.nemenyi.significant[comparison.methods.index(method)]
    return [
        comparison.methods[j]
        for j in comparison.order
        if comparison.methods[j] != method and not significant[j]
    ]
