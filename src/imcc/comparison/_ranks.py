"""Ranks of methods: 1 is best, ties get the mean of their ranks."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from imcc._utils.validation import check_choice, check_count


@dataclass(frozen=True, eq=False)
class Podium:
    """How often each method is first, and how often it is among the best.

    Attributes
    ----------
    first, top : ndarray of float, shape (n_methods,)
        Fractions of the rows.  Tied methods all count as first, so ``first`` may sum to more than
        1.
    n_first, n_top : ndarray of int, shape (n_methods,)
        The same as counts.
    n_rows : int
        Number of rows.
    places : int
        Largest rank that counts as ``top``.
    """

    first: np.ndarray
    top: np.ndarray
    n_first: np.ndarray
    n_top: np.ndarray
    n_rows: int
    places: int


def check_matrix(values: Any, name: str = "values") -> np.ndarray:
    """Return values as a matrix (rows x methods) without missing values."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name} must be a table of rows (data sets) x methods, got shape {matrix.shape}"
        )
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise ValueError(
            f"{name} must not have missing values, but row {row}, method {column} is NaN; drop the "
            "row or the method first"
        )
    return matrix


def check_control(control: int, n_methods: int) -> None:
    """Raise an error if a control is not the index of a method."""
    if not 0 <= control < n_methods:
        raise ValueError(f"control must be an index from 0 to {n_methods - 1}, got {control}")


def check_differences(differences: Any) -> np.ndarray:
    """Return the differences of two methods as a nonempty vector of finite numbers."""
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError("differences must be a list of at least one number, all finite")
    return values


def ahead_of_others(values: Any, control: int, greater_is_better: bool) -> np.ndarray:
    """Return by how much a control is better than every method, per row."""
    matrix = check_matrix(values)
    check_control(control, matrix.shape[1])
    ahead = matrix[:, [control]] - matrix
    return ahead if greater_is_better else -ahead


def round_as_printed(values: np.ndarray, decimals: int) -> np.ndarray:
    """Round correctly, as ``format`` does; ``numpy.round`` may be off by one in the last digit."""
    if not isinstance(decimals, numbers.Integral) or isinstance(decimals, bool) or decimals < 0:
        raise ValueError(f"decimals must be an integer >= 0, got {decimals!r}")
    return np.array([[round(float(v), int(decimals)) for v in row] for row in values])


def rank_methods(
    values: Any, *, greater_is_better: bool, decimals: int | None = None, method: str = "average"
) -> np.ndarray:
    """Rank the methods in each row; 1 is best.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores; a row is a data set, or a run on one.
    greater_is_better : bool
        Whether larger scores are better.
    decimals : int, default=None
        Number of decimals to which the values are rounded first, so that methods are tied if a
        printed table shows them as equal.
    method : {"average", "min"}, default="average"
        Rank of tied methods: the mean of their ranks, as tests require, or the smallest, as in the
        brackets of the paper's tables.

    Returns
    -------
    ndarray of shape (n_rows, n_methods)
        The ranks.

    Examples
    --------
    >>> from imcc.comparison import rank_methods
    >>> rank_methods([[0.81, 0.90, 0.81]], greater_is_better=True)
    array([[2.5, 1. , 2.5]])
    >>> rank_methods([[0.81, 0.90, 0.81]], greater_is_better=True, method="min")
    array([[2., 1., 2.]])
    """
    check_choice("method", method, ("average", "min"))
    matrix = check_matrix(values)
    if decimals is not None:
        matrix = round_as_printed(matrix, decimals)
    towards_best = -matrix if greater_is_better else matrix
    return np.asarray(rankdata(towards_best, method=method, axis=1), dtype=np.float64)


def mean_ranks(ranks: Any) -> np.ndarray:
    """Return the mean ranks of the methods.

    Parameters
    ----------
    ranks : array-like of shape (n_rows, n_methods)
        Ranks per row, of :func:`rank_methods`.

    Returns
    -------
    ndarray of shape (n_methods,)
    """
    return check_matrix(ranks, "ranks").mean(axis=0)


def podium(values: Any, *, greater_is_better: bool, places: int = 3) -> Podium:
    """Count how often each method is first, and how often it is among the best.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        Scores; a row is a data set.
    greater_is_better : bool
        Whether larger scores are better.
    places : int, default=3
        Largest rank that counts as among the best.

    Returns
    -------
    Podium

    See Also
    --------
    join_podiums : Add the counts of several metrics.

    Examples
    --------
    >>> from imcc.comparison import podium
    >>> podium([[0.1, 0.2, 0.1], [0.3, 0.2, 0.4]], greater_is_better=False, places=2).first
    array([0.5, 0.5, 0.5])
    """
    check_count("places", places)
    placed = rank_methods(values, greater_is_better=greater_is_better, method="min")
    return _podium((placed == 1).sum(axis=0), (placed <= places).sum(axis=0), len(placed), places)


def join_podiums(podiums: Sequence[Podium]) -> Podium:
    """Add the counts of several podiums of the same methods, for example one per metric.

    Parameters
    ----------
    podiums : sequence of Podium
        At least one; all with the same methods and ``places``.

    Returns
    -------
    Podium
    """
    if not podiums:
        raise ValueError("podiums must not be empty")
    if len({(len(p.first), p.places) for p in podiums}) > 1:
        raise ValueError("podiums must all have the same methods and the same places")
    return _podium(
        np.sum([p.n_first for p in podiums], axis=0),
        np.sum([p.n_top for p in podiums], axis=0),
        sum(p.n_rows for p in podiums),
        podiums[0].places,
    )


def _podium(n_first: np.ndarray, n_top: np.ndarray, n_rows: int, places: int) -> Podium:
    return Podium(n_first / n_rows, n_top / n_rows, n_first, n_top, n_rows, places)
