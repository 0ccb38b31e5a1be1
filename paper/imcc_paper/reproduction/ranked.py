"""Which methods are ranked together, and differences between two methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from imcc.comparison import Comparison, ScoreTable, compare

#: Minimum number of data sets for tests: with fewer, Wilcoxon's test cannot be significant.
FEWEST = 6
#: Minimum number of data sets for an interval.
FEW = 3
#: Decimals of differences between means.
DECIMALS = 12
#: Methods with calibrated scores, and the same methods without: two nearly equal methods change the
#: ranks of all others, so ranks are given with and without them.
CALIBRATED = {
    f"{name}_calibrated": name for name in ("imcc", "kernel_ridge", "llsf", "jfsc", "mahr")
}
#: Data sets that are parts of one collection, and no independent evidence.
YAHOO = ("arts", "computer", "education", "health", "social", "society")


def plain_methods(scores: ScoreTable) -> list[str]:
    """Return the methods that are not the calibrated form of another one."""
    return [m for m in scores.methods if CALIBRATED.get(m) not in scores.methods]


def complete_methods(scores: ScoreTable, n_splits: int = 1) -> list[str]:
    """Return the methods with at least so many splits of every data set."""
    enough = (scores.counts >= n_splits).all(axis=0)
    return [m for m, all_ in zip(scores.methods, enough, strict=True) if all_]


def compare_on_shared(
    tables: Mapping[str, ScoreTable], methods: Sequence[str]
) -> dict[str, Comparison]:
    """Compare methods by each metric, on the splits that all of them have."""
    return {
        metric: compare(scores.common_runs(tuple(methods))) for metric, scores in tables.items()
    }


def differences(scores: ScoreTable, control: str, method: str) -> np.ndarray:
    """Return the mean difference of control and method per data set, over common splits."""
    means = scores.common_runs((control, method)).mean()
    return np.asarray(means[:, 0] - means[:, 1])


def family_differences(scores: ScoreTable, control: str, method: str) -> np.ndarray:
    """Return the same with the data sets from Yahoo as one: the mean of their differences."""
    datasets = scores.common_runs((control, method)).datasets
    gap = differences(scores, control, method)
    yahoo = np.isin(datasets, YAHOO)
    return np.append(gap[~yahoo], gap[yahoo].mean()) if yahoo.any() else gap


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
