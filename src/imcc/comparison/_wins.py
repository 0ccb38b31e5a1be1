"""Wins, ties and losses of each method against each other one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import t as student

from imcc._utils.validation import check_share
from imcc.comparison._ranks import check_matrix
from imcc.comparison._table import ScoreTable


@dataclass(frozen=True, eq=False)
class WinTieLoss:
    """How often each method is better than each other one.

    Attributes
    ----------
    wins, ties, losses : ndarray of int, shape (n_methods, n_methods)
        ``wins[i, j]`` is the number of rows (data sets) on which method i is better than j.
    test : {None, "paired t", "corrected paired t"}
        What a difference has to pass to count; None if any difference does.
    alpha : float or None
        The level of that test.
    """

    wins: np.ndarray
    ties: np.ndarray
    losses: np.ndarray
    test: str | None = None
    alpha: float | None = None


def win_tie_loss(values: Any, *, greater_is_better: bool) -> WinTieLoss:
    """Count wins, ties and losses of each method against each other one.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        A row is a data set.
    greater_is_better : bool
        The direction.

    Examples
    --------
    >>> from imcc.comparison import win_tie_loss
    >>> counts = win_tie_loss([[0.1, 0.2], [0.3, 0.3], [0.2, 0.5]], greater_is_better=False)
    >>> counts.wins.tolist(), counts.ties.tolist()
    ([[0, 2], [0, 0]], [[3, 1], [1, 3]])
    """
    matrix = check_matrix(values)
    better = matrix if greater_is_better else -matrix
    return _counted(np.sign(better[:, :, np.newaxis] - better[:, np.newaxis, :]))


def significant_win_tie_loss(
    table: ScoreTable, *, alpha: float = 0.05, test_size: float | None = None
) -> WinTieLoss:
    """Count as a win or loss only what a t test over the paired repetitions confirms.

    On each data set, two methods are compared over the repetitions that both have: the mean of
    their differences, in standard errors, against the two-sided quantile of Student's t.  There is
    no adjustment for the number of tests.

    Parameters
    ----------
    table : ScoreTable
        With at least two common repetitions for each pair of methods on each data set.
    alpha : float
        The level of each single test.
    test_size : float, optional
        The share of the rows in each test part.  The random splits of a data set overlap, so the
        plain test finds too many differences.  With the share r of test to training rows known,
        Nadeau and Bengio's correction takes ``(1/n + r) s^2`` for the variance of the mean instead
        of ``s^2 / n``.

    References
    ----------
    C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
    """
    check_share("alpha", alpha)
    overlap = 0.0 if test_size is None else check_share("test_size", test_size) / (1 - test_size)
    k = len(table.methods)
    outcomes = np.zeros((len(table.datasets), k, k))
    for row, dataset in enumerate(table.datasets):
        runs = table.values[row] if table.greater_is_better else -table.values[row]
        noise = 1e-12 * float(np.nanmax(np.abs(runs), initial=0.0))
        for i in range(k):
            for j in range(i):
                differences = runs[i] - runs[j]
                differences = differences[~np.isnan(differences)]
                if len(differences) < 2:
                    raise ValueError(
                        f"a t test needs two repetitions that {table.methods[i]!r} and "
                        f"{table.methods[j]!r} both have on {dataset!r}, got {len(differences)}"
                    )
                outcomes[row, i, j] = _outcome(differences, alpha, overlap, noise)
                outcomes[row, j, i] = -outcomes[row, i, j]
    return _counted(
        outcomes, "paired t" if test_size is None else "corrected paired t", float(alpha)
    )


def _outcome(differences: np.ndarray, alpha: float, overlap: float, noise: float) -> float:
    n, mean = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1)) * math.sqrt(1 / n + overlap)
    # Values that differ in their last bits only are equal.
    significant = abs(mean) > max(error * _critical(alpha, n - 1), noise)
    return math.copysign(1.0, mean) if significant else 0.0


@lru_cache(maxsize=128)  # SciPy takes longer for this than for all the rest of a pair
def _critical(alpha: float, freedom: int) -> float:
    return float(student.isf(alpha / 2, freedom))


def _counted(
    outcomes: np.ndarray, test: str | None = None, alpha: float | None = None
) -> WinTieLoss:
    """Count the signs in (n_rows, n_methods, n_methods)."""
    wins, losses = (outcomes > 0).sum(axis=0), (outcomes < 0).sum(axis=0)
    return WinTieLoss(wins, len(outcomes) - wins - losses, losses, test, alpha)
