"""Results of a search in the format of scikit-learn's GridSearchCV."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from imcc._math.search.grid import Grid
from imcc._math.search.scorers import greater_is_better
from imcc.metrics import METRICS

# Means with a smaller difference, relative to the largest one, are tied.
TIE = 1e-9


def score_keys(names: Sequence[str], scoring: Any) -> dict[str, str]:
    """Return, for each metric, its part of the column names of ``cv_results_``."""
    single = isinstance(scoring, str) or callable(scoring)
    return {name: "score" if single else name for name in names}


def cv_results(
    grid: Grid, keys: Mapping[str, str], outcomes: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Arrange the values of all settings as ``GridSearchCV.cv_results_``.

    Parameters
    ----------
    grid : Grid
    keys : mapping of str to str
        For each metric, in the order of the values, its part of the column names.
    outcomes : sequence of ndarray of shape (n_scales, n_folds, 3 + n_metrics, *grid.shape)
        The tables of the folds (:func:`imcc._math.search.fold.search_fold`) of each kernel.
    """
    params: list[dict[str, Any]] = []
    blocks = []
    # One grid for kernels with a width, and one for those without.
    for has_width in (True, False):
        members = [k for k, (_, kernel) in enumerate(grid.kernels) if kernel.has_width == has_width]
        if not members:
            continue
        axes = {
            "alpha": grid.alphas.tolist(),
            "beta": grid.betas.tolist(),
            "gamma": grid.gammas.tolist(),
            "kernel": [grid.kernels[k][0] for k in members],
            "n_clusters": grid.n_clusters,
        }
        if has_width:
            axes["width_scale"] = grid.width_scales
        settings = list(ParameterGrid(axes))
        # Axes: kernel, scale, fold, quantity, alpha, beta, gamma, n_clusters.  ParameterGrid sorts
        # the names of the parameters and varies the last one fastest.
        block = np.stack([outcomes[k] for k in members]).transpose(3, 2, 4, 5, 6, 0, 7, 1)
        blocks.append(block.reshape(*block.shape[:2], len(settings)))
        params += settings
    finite, fit_time, score_time, *tables = np.concatenate(blocks, axis=2)
    check_all_finite(params, finite > 0)
    for name, table in zip(keys, tables, strict=True):
        if name not in METRICS:
            check_all_finite(
                params,
                np.isfinite(table),
                f"values of scoring={name!r}",
                "the scorer is undefined there, as 'roc_auc' is for a label that all or none of "
                "the held-out rows have; use other folds or another metric",
            )
    return lay_out(params, keys, fit_time, score_time, tables)


def lay_out(
    params: list[dict[str, Any]],
    keys: Mapping[str, str],
    fit_time: np.ndarray,
    score_time: np.ndarray,
    tables: Sequence[np.ndarray],
) -> dict[str, Any]:
    """Return the columns of ``cv_results_``.

    Parameters
    ----------
    params : list of dict
        The settings.
    keys : mapping of str to str
        For each metric, in the order of the tables, its part of the column names.
    fit_time, score_time : ndarray of shape (n_folds, n_settings)
        Seconds.
    tables : sequence of ndarray of shape (n_folds, n_settings)
        Values of each metric; settings with NaN are ranked last.
    """
    results: dict[str, Any] = {}
    for name, table in (("fit_time", fit_time), ("score_time", score_time)):
        results[f"mean_{name}"], results[f"std_{name}"] = table.mean(axis=0), table.std(axis=0)
    for name in sorted({name for setting in params for name in setting}):
        column = np.ma.MaskedArray(np.empty(len(params), dtype=object), mask=True)
        for i, setting in enumerate(params):
            if name in setting:
                column[i] = setting[name]
        results[f"param_{name}"] = column
    results["params"] = params
    for (metric, key), table in zip(keys.items(), tables, strict=True):
        results |= {f"split{i}_test_{key}": row for i, row in enumerate(table)}
        # Folds on which a metric is undefined for all settings are ignored.
        table = table[~np.isnan(table).all(axis=1)]
        mean = table.mean(axis=0)
        results[f"mean_test_{key}"], results[f"std_test_{key}"] = mean, table.std(axis=0)
        results[f"rank_test_{key}"] = rank_settings(mean, greater_is_better(metric))
    return results


def check_all_finite(
    params: Sequence[Mapping[str, Any]],
    finite: np.ndarray,
    what: str = "scores",
    why: str = (
        "rows with very large values, or parameters of very different magnitude, overflow; scale "
        "the features, or remove these values from the grid"
    ),
) -> None:
    """Raise an error for settings with scores that are not finite.

    Parameters
    ----------
    params : sequence of mapping
        The settings.
    finite : ndarray of bool of shape (n_folds, n_settings)
    what : str
        What is not finite.
    why : str
        Possible cause and remedy.
    """
    if finite.all():
        return
    fold, setting = np.argwhere(~finite)[0]
    raise ValueError(
        f"{int((~finite).any(axis=0).sum())} of {len(params)} settings have {what} that are not "
        f"finite, first {params[setting]} on fold {fold}: {why}"
    )


def rank_settings(means: np.ndarray, greater_is_better: bool) -> np.ndarray:
    """Return the ranks of settings; 1 is the best, and NaN is last.

    Means that differ by at most ``TIE`` times the largest one are tied and get the smallest of
    their ranks.  The last digits of means over folds depend on the number of threads, but the
    selected setting must not.

    Examples
    --------
    >>> rank_settings(np.array([0.7, 0.9, np.nan, 0.9 + 1e-16]), greater_is_better=True)
    array([3, 1, 4, 1], dtype=int32)
    """
    known = np.flatnonzero(~np.isnan(means))
    values = -means[known] if greater_is_better else means[known]
    order = np.argsort(values, kind="stable")
    tolerance = TIE * np.abs(values).max(initial=0.0)
    ranks = np.full(len(means), len(known) + 1, dtype=np.int32)
    first = 0
    for place, at in enumerate(order):
        if values[at] - values[order[first]] > tolerance:
            first = place
        ranks[known[at]] = first + 1
    return ranks


class EdgeOfGridWarning(UserWarning):
    """Warning that the best setting of a search is at the edge of the grid.

    It has the smallest or largest value of an axis, so that values outside the grid may be better.

    See Also
    --------
    imcc.IMCCClassifierCV : The search that issues the warning.
    """


def edges_of_grid(
    results: Mapping[str, Any],
    key: str,
    axes: Mapping[str, Sequence[Any]],
    bounds: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, str]]:
    """Return the axes on which values outside the grid may be better.

    These are axes with at least three values, where all settings of rank 1 have the smallest value,
    or all have the largest, and this value is not a bound of the parameter.

    Parameters
    ----------
    results : mapping
        ``cv_results_``.
    key : str
        Part of the column names for the selecting metric.
    axes : mapping of str to sequence
        Values of each parameter; parameters that are not numeric are ignored.
    bounds : mapping of str to (float, float)
        Natural bounds of the parameters that have some.

    Returns
    -------
    dict of str to (value, "smallest" or "largest")

    Examples
    --------
    >>> results = {"rank_test_score": [2, 1, 1], "params": [{"beta": b} for b in (10, 1, 0.1)]}
    >>> edges_of_grid(results, "score", {"beta": [10, 1, 0.1]}, {})
    {}
    >>> results["rank_test_score"] = [3, 2, 1]
    >>> edges_of_grid(results, "score", {"beta": [10, 1, 0.1]}, {})
    {'beta': (0.1, 'smallest')}
    """
    ranked = zip(results["params"], results[f"rank_test_{key}"], strict=True)
    first = [params for params, rank in ranked if rank == 1]
    found: dict[str, tuple[float, str]] = {}
    for name, values in axes.items():
        if not all(isinstance(value, numbers.Real) for value in values) or len(set(values)) < 3:
            continue
        chosen = {params.get(name) for params in first}
        low, high = bounds.get(name, (-np.inf, np.inf))
        for value, side in ((min(values), "smallest"), (max(values), "largest")):
            if chosen == {value} and low < value < high:
                found[name] = (value, side)
    return found


def by_rank(results: Mapping[str, Any], key: str) -> list[int]:
    """Return the settings whose mean is not NaN, best first; ties in the order of the grid.

    Parameters
    ----------
    results : mapping
        ``cv_results_``.
    key : str
        Part of the column names for the selecting metric.
    """
    order = np.argsort(results[f"rank_test_{key}"], kind="stable")
    return order[~np.isnan(results[f"mean_test_{key}"][order])].tolist()
