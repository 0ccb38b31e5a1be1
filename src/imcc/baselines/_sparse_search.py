"""The search behind LLSFCV and JFSCCV: settings on paths, folds one after the other.

For each fold the sums over its rows are made once (X^T X, X^T Y, R, scatters and the largest
eigenvalues).  Settings that differ in beta only form a path: it begins at the ridge solution with
the largest beta, and each following setting begins where the one before it ended.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from imcc._search.fold import Fold
from imcc._utils.validation import Features
from imcc.baselines._proximal import Problem, UnboundedError, Weights, solve
from imcc.baselines._sparse_linear import linear_scores
from imcc.metrics import METRICS, Judge

# Settings that stay in the race however few there are.
FINALISTS = 3


@dataclass(frozen=True)
class Candidate:
    """A setting as the solver knows it: the weights, and the ridge of the starting point."""

    weights: Weights
    ridge: float


@dataclass(frozen=True)
class Outcome:
    """What the search found; arrays of shape (n_folds, n_settings).

    Attributes
    ----------
    values : ndarray of shape (n_metrics, n_folds, n_settings)
        NaN where a setting was not tried or is unbounded.
    bounded : ndarray of bool
        False where a setting was found to be unbounded.
    tried : ndarray of bool
    fit_seconds, score_seconds : ndarray
    """

    values: np.ndarray
    bounded: np.ndarray
    tried: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray

    @classmethod
    def empty(cls, n_metrics: int, n_folds: int, n_settings: int) -> Outcome:
        """Return room for the results."""
        shape = (n_folds, n_settings)
        return cls(
            np.full((n_metrics, *shape), np.nan),
            np.ones(shape, dtype=bool),
            np.zeros(shape, dtype=bool),
            np.zeros(shape),
            np.zeros(shape),
        )


def search_settings(
    make_problem: Callable[[Features, np.ndarray], Problem],
    X: Features,
    on: np.ndarray,
    judged: np.ndarray,
    folds: Sequence[Fold],
    candidates: Sequence[Candidate],
    metrics: Sequence[str],
    *,
    decides: int,
    halving: bool,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
) -> Outcome:
    """Judge settings on the folds.

    Parameters
    ----------
    make_problem : callable
        From rows and labels to the sums that all settings share.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    on : ndarray of bool, shape (n_rows, q)
    judged : ndarray of bool, shape (n_rows, q or 2)
        The label sets that scores are judged by.
    folds : sequence of Fold
    candidates : sequence of Candidate
    metrics : sequence of str
    decides : int
        Which of the metrics halving goes by.
    halving : bool
        Whether only the better half of the settings goes on to the next fold.
    max_iter, tol
        Of :func:`imcc.baselines._proximal.solve`.
    n_jobs : int or None
        Paths computed at the same time.
    """
    outcome = Outcome.empty(len(metrics), len(folds), len(candidates))
    racing = np.arange(len(candidates))
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    for i, fold in enumerate(folds):
        problem = make_problem(X[fold.train], on[fold.train])
        starts = {r: problem.ridge(r) for r in {candidates[int(k)].ridge for k in racing}}
        held_out, judge = X[fold.test], Judge(judged[fold.test])
        # Each path writes its own columns.
        parallel(
            delayed(_follow)(
                path,
                i,
                problem,
                starts,
                candidates,
                held_out,
                judge,
                metrics,
                max_iter,
                tol,
                outcome,
            )
            for path in paths(candidates, racing)
        )
        if halving and i + 1 < len(folds):
            racing = _better_half(outcome, racing, metrics[decides], decides)
    return outcome


def paths(candidates: Sequence[Candidate], members: np.ndarray) -> list[list[int]]:
    """Group settings that differ in beta only, the largest beta first."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for k in members:
        candidate = candidates[k]
        groups[candidate.ridge, candidate.weights.alpha, candidate.weights.gamma].append(int(k))
    return [sorted(group, key=lambda k: -candidates[k].weights.beta) for group in groups.values()]


def _follow(
    path: list[int],
    i: int,
    problem: Problem,
    starts: dict[float, np.ndarray],
    candidates: Sequence[Candidate],
    held_out: Features,
    judge: Judge,
    metrics: Sequence[str],
    max_iter: int,
    tol: float,
    outcome: Outcome,
) -> None:
    """Solve and judge the settings of a path on fold i."""
    fresh = starts[candidates[path[0]].ridge]
    W = fresh
    for k in path:
        begin = time.perf_counter()
        outcome.tried[i, k] = True
        try:
            W = solve(problem, candidates[k].weights, W, max_iter, tol).W
        except UnboundedError:
            outcome.bounded[i, k] = False
            W = fresh
        solved = time.perf_counter()
        outcome.fit_seconds[i, k] = solved - begin
        if outcome.bounded[i, k]:
            scores = linear_scores(held_out, W).T
            if len(scores) < judge.n_labels:  # a binary 1-D target: the ranking of its two classes
                scores = np.concatenate([-scores, scores])
            outcome.values[:, i, k] = judge.means(scores[:, np.newaxis], metrics)[:, 0]
        outcome.score_seconds[i, k] = time.perf_counter() - solved


def _better_half(outcome: Outcome, racing: np.ndarray, metric: str, index: int) -> np.ndarray:
    """Return the settings with the better means over the folds so far, unbounded ones left out."""
    values = outcome.values[index][:, racing]
    defined = ~np.isnan(values).all(axis=1)
    means = values[defined].mean(axis=0) if defined.any() else np.zeros(len(racing))
    if METRICS[metric].greater_is_better:
        means = -means
    alive = racing[np.argsort(means, kind="stable")]  # NaN is last
    n_alive = int(np.count_nonzero(~np.isnan(means)))
    return alive[: max(min(FINALISTS, n_alive), -(-n_alive // 2))]
