"""A fold of the exact search if some labels are unknown.

As in :func:`imcc._core.fitting.fit_arrays`, each label is fitted on the training rows in which it
is known; width, clusters and feature map are computed from all training rows of the fold.  Labels
that are known in the same rows share an eigenbasis.  For one pair of beta and gamma and one
clustering at a time, the scores of all patterns are combined and evaluated on the known labels of
the held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from imcc._backend.array import Array, namespace, to_numpy, zeros
from imcc._search.grid import EigenProblem, Grid, score_grid
from imcc._search.labels import DistinctLabels
from imcc._search.scorers import ScorerJudge
from imcc.metrics import Judge


@dataclass(frozen=True)
class Pattern:
    """Labels that are known in the same training rows.

    Attributes
    ----------
    labels : ndarray of int
        Indices of the labels.
    rows : ndarray of int
        Indices of the rows among the training rows of the fold.
    """

    labels: np.ndarray
    rows: np.ndarray


def patterns_of(known: np.ndarray) -> list[Pattern]:
    """Group the columns of a boolean matrix that are equal."""
    found, inverse = np.unique(known, axis=1, return_inverse=True)
    if not found.any(axis=0).all():
        label = int(np.flatnonzero(~known.any(axis=0))[0])
        raise ValueError(
            f"label {label} (counted from 0) is unknown in all training rows of a fold: use other "
            "folds, or remove the label"
        )
    return [
        Pattern(np.flatnonzero(inverse.ravel() == p), np.flatnonzero(found[:, p]))
        for p in range(found.shape[1])
    ]


@dataclass
class Collector:
    """Replacement of a judge that stores the scores."""

    n_labels: int
    parts: list[Array] = field(default_factory=list)

    def means(self, scores: Array, names: Sequence[str]) -> Array:
        """Store scores of shape (n_labels, n_settings, n_rows); return no metrics."""
        self.parts.append(scores)
        return zeros((0, scores.shape[1]), scores)

    def scores(self) -> np.ndarray:
        """Return the stored scores on the host."""
        return to_numpy(namespace(self.parts[0]).concat(self.parts, axis=1))


def score_known(
    solved: Sequence[tuple[Pattern, EigenProblem, DistinctLabels]],
    judge: Judge | ScorerJudge,
    grid: Grid,
    metrics: Sequence[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Solve and evaluate all settings of a grid, as :func:`imcc._search.grid.score_grid`.

    Parameters
    ----------
    solved : sequence of (Pattern, EigenProblem, DistinctLabels)
        The problem of the rows and labels of each pattern.
    judge : Judge or ScorerJudge
        Metrics of all known labels.
    grid : Grid
    metrics : sequence of str

    Returns
    -------
    values : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
    finite : ndarray of bool, shape (n_alphas, n_betas, n_gammas, n_clusterings)
    """
    values = np.empty((len(metrics), *grid.shape))
    finite = np.empty(grid.shape, dtype=bool)
    _, n_betas, n_gammas, n_clusterings = grid.shape
    scores = np.empty((judge.n_labels, len(grid.alphas), judge.n_rows))
    for k in range(n_clusterings):
        for i in range(n_betas):
            for j in range(n_gammas):
                one = Grid(grid.alphas, grid.betas[[i]], grid.gammas[[j]], [grid.n_clusters[k]])
                for pattern, problem, distinct in solved:
                    collector = Collector(len(pattern.labels))
                    part = replace(problem, problems=[problem.problems[k]])
                    score_grid(part, collector, one, [], distinct)
                    scores[pattern.labels] = collector.scores()
                finite[:, i, j, k] = np.isfinite(scores).all(axis=(0, 2))
                with np.errstate(invalid="ignore", over="ignore"):
                    values[:, :, i, j, k] = judge.means(scores, metrics)
    return values, finite
