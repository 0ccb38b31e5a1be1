"""Differences on each data set, with intervals over its splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from imcc.comparison import ScoreTable
from imcc_paper.reproduction.ranked import FEW

#: Test rows as a part of the training rows: the experiments hold out a fifth.
TEST_TO_TRAINING = 0.2 / 0.8


def interval(differences: np.ndarray, ratio: float = TEST_TO_TRAINING) -> tuple[float, float]:
    """Return the mean of differences over random splits, and half of its 95 % interval.

    The splits share training rows, so that the differences are not independent.  As C. Nadeau and
    Y. Bengio ("Inference for the generalization error", Machine Learning 52, 2003) propose, the
    variance of the mean of J differences is taken to be::

        (1 / J + n_test / n_train) s^2

    with s^2 the variance of the differences, and Student's t with J - 1 degrees of freedom.

    >>> mean, half = interval(np.array([0.01, 0.02, 0.03]))
    >>> print(f"{mean:.3f} {half:.4f}")
    0.020 0.0329
    """
    n = len(differences)
    spread = np.std(differences, ddof=1) * np.sqrt(1 / n + ratio)
    return float(np.mean(differences)), float(stats.t.ppf(0.975, n - 1) * spread)


class Difference(NamedTuple):
    """A control minus another method on one data set, over the splits that both have.

    ``half`` is half of the 95 % interval; NaN with fewer than three splits.
    """

    dataset: str
    mean: float
    half: float
    n_splits: int


def by_data_set(scores: ScoreTable, control: str, other: str) -> list[Difference]:
    """Return the differences of two methods on the data sets that both have."""
    own, others = (scores.values[:, scores.methods.index(m), :] for m in (control, other))
    found = []
    for name, gap in zip(scores.datasets, own - others, strict=True):
        gap = gap[np.isfinite(gap)]
        if len(gap) >= FEW:
            found.append(Difference(name, *interval(gap), len(gap)))
        elif len(gap):
            found.append(Difference(name, float(gap.mean()), np.nan, len(gap)))
    return found
