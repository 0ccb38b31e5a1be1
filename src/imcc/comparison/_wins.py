"""Wins, ties and losses of all pairs of methods."""

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
    """Wins, ties and losses of all pairs of methods.

    Attributes
    ----------
    wins, ties, losses : ndarray of int, shape (n_methods, n_methods)
        ``wins[i, j]`` is the number of rows (data sets) on which method i is better than j.
    test : {None, "paired t", "corrected paired t"}
        Test by which a difference must be significant to count; None if every difference counts.
    alpha : float or None
        Significance level of that test.
    """

    wins: np.ndarray
    ties: np.ndarray
    losses: np.ndarray
    test: str | None = None
    alpha: float | None = None


def win_tie_loss(values: Any, *, greater_is_better: bool) -> WinTieLoss:
    """Count wins, ties and losses of all pairs of methods.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores; a row is a data set.
    greater_is_better : bool
        Whether larger scores are better.

    Returns
    -------
    WinTieLoss

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
    """Count wins and losses that are significant by a paired t test over the repetitions.

    On each data set, two methods are compared on their common repetitions by a two-sided paired t
    test.  The tests are not adjusted for their number.

    Parameters
    ----------
    table : ScoreTable
        Scores with at least two common repetitions per pair of methods and data set.
    alpha : float, default=0.05
        Significance level of each test.
    test_size : float, default=None
        Fraction of the rows in each test set.  The random splits of a data set overlap, so the
        plain test finds too many differences.  If given, Nadeau and Bengio's corrected variance of
        the mean, ``(1/n + r) s^2`` with the ratio r of test to training rows, is used instead of
        ``s^2 / n``.

    Returns
    -------
    WinTieLoss

    Raises
    ------
    ValueError
        If two methods have fewer than two common repetitions on a data set.

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
                        f"a t test needs at least two common repetitions of {table.methods[i]!r} "
                        f"and {table.methods[j]!r} on {dataset!r}, got {len(differences)}"
                    )
                outcomes[row, i, j] = _outcome(differences, alpha, overlap, noise)
                outcomes[row, j, i] = -outcomes[row, i, j]
    return _counted(
        outcomes, "paired t" if test_size is None else "corrected paired t", float(alpha)
    )


def _outcome(differences: np.ndarray, alpha: float, overlap: float, noise: float) -> float:
    n, mean = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1)) * math.sqrt(1 / n + overlap)
    # Values that only differ in their last bits are equal.
    significant = abs(mean) > max(error * _critical(alpha, n - 1), noise)
    return math.copysign(1.0, mean) if significant else 0.0


@lru_cache(maxsize=128)  # SciPy takes longer for this than the rest of a comparison
def _critical(alpha: float, freedom: int) -> float:
    return float(student.isf(alpha / 2, freedom))


def _counted(
    outcomes: np.ndarray, test: str | None = None, alpha: float | None = None
) -> WinTieLoss:
    """Count the signs in an array of shape (n_rows, n_methods, n_methods)."""
    wins, losses = (outcomes > 0).sum(axis=0), (outcomes < 0).sum(axis=0)
    return WinTieLoss(wins, len(outcomes) - wins - losses, losses, test, alpha)
