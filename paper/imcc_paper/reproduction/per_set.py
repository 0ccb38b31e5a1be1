"""Differences on each data set, with intervals over its splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import stats

from imcc.comparison import ScoreTable
from imcc_paper.reproduction.rows import TITLES, prose, table

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


def by_data_set(
    tables: Mapping[str, ScoreTable], control: str, others: Sequence[str]
) -> Iterator[str]:
    """Yield a table of a control minus other methods on each data set, for some metrics."""
    header, columns = ["data set"], []
    for metric, scores in tables.items():
        for other in others:
            if other in scores.methods and control in scores.methods:
                pair = [scores.values[:, scores.methods.index(m), :] for m in (control, other)]
                header.append(f"{TITLES[metric]}, {other}")
                columns.append([_cell(gap) for gap in pair[0] - pair[1]])
    if not columns:
        return
    yield prose(
        f"`{control}` minus the other method on each data set: mean over the splits that both "
        "have, with a 95 % interval and the number of splits. The interval allows for splits that "
        "share training rows (Nadeau and Bengio's variance); it needs three splits."
    )
    names = next(iter(tables.values())).datasets
    yield table(header, [[name, *cells] for name, *cells in zip(names, *columns, strict=True)])


def _cell(gap: np.ndarray) -> str:
    gap = gap[np.isfinite(gap)]
    if len(gap) == 0:
        return "not run"
    if len(gap) < 3:
        return f"{gap.mean():+.4f} ({len(gap)})"
    mean, half = interval(gap)
    return f"{mean:+.4f} ± {half:.4f} ({len(gap)})"
