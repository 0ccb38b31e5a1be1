"""Criteria of model selection, and the greedy selection of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    at_least,
    is_numpy,
    namespace,
    to_numpy,
    transposed,
)
from imcc.metrics import METRICS, LabelMetrics

#: Names of criteria: the five metrics, and the mean log loss per label.
CRITERIA = (*METRICS, "log_loss")


class Criterion:
    """Criterion of held-out log-odds of some rows; greater is better.

    Parameters
    ----------
    on : ndarray of bool, shape (n_samples, n_outputs)
        The labels.
    scoring : str or callable
        One of CRITERIA, or a function of labels (bool) and log-odds, both ndarrays of shape
        (n_samples, n_outputs), of which a greater value is better.
    binary : bool
        Whether the single output represents the two classes of a 1-D target; metrics then use the
        ranking of the two.
    weight : ndarray of shape (n_samples,), optional
    like : array, optional
        Determines library and device of the log-odds.
    known : ndarray of bool, shape (n_samples, n_outputs), optional
        Which labels are known; unknown labels, and rows without known labels, are ignored.  Not
        supported for callables.

    Attributes
    ----------
    name : str
        Name of the criterion: "log_loss" instead of a metric that is undefined for all rows.
    """

    def __init__(
        self,
        on: np.ndarray,
        scoring: str | Callable[..., float],
        binary: bool = False,
        weight: np.ndarray | None = None,
        like: Array | None = None,
        known: np.ndarray | None = None,
    ) -> None:
        self._on, self._binary, self._weight, self._known = on, binary, weight, known
        self._function: Callable[..., float] | None = None
        self._numbers: Array | None = None
        judged = np.hstack([~on, on]) if binary else on
        if callable(scoring):
            self.name, self._function = getattr(scoring, "__name__", "scoring"), scoring
            return
        self.name = scoring
        if scoring != "log_loss" and METRICS[scoring].ranked_rows_only:
            n_on = judged.sum(axis=1)
            ranked = (n_on > 0) & (n_on < (judged.shape[1] if known is None else known.sum(axis=1)))
            if weight is not None:
                ranked &= weight > 0
            if not ranked.any():
                self.name = "log_loss"
        if self.name == "log_loss":
            return
        self._sign = 1.0 if METRICS[self.name].greater_is_better else -1.0
        self._metrics = LabelMetrics(judged, known, weight, like)

    def __call__(self, log_odds: Array) -> float:
        """Return the value of log-odds of shape (n_samples, n_outputs)."""
        if self._function is not None:
            return float(self._function(self._on, to_numpy(log_odds)))
        if self.name == "log_loss":
            return -self._log_loss(log_odds)
        if self._binary:
            log_odds = namespace(log_odds).concat([-log_odds, log_odds], axis=1)
        scores = transposed(log_odds)[:, None, :]
        return self._sign * float(self._metrics.means(scores, [self.name])[0, 0])

    def values(self, candidates: Iterable[Array], like: Array) -> list[float]:
        """Return the values of several log-odds, on their device.

        A device is asked once for the log losses of all of them, not for one after the other.
        """
        one_by_one = is_numpy(like) or self._function is not None or self._known is not None
        if one_by_one or self.name != "log_loss":
            return [self(log_odds) for log_odds in candidates]
        xp = namespace(like)
        rows = to_numpy(xp.stack([xp.mean(self._cells(z), axis=1) for z in candidates]))
        return [-float(np.average(of_rows, weights=self._weight)) for of_rows in rows]

    def reported(self, value: float) -> float:
        """Return a value of the metric; losses are not negated."""
        if self._function is None and (self.name == "log_loss" or self._sign < 0):
            return -value
        return value

    def _cells(self, z: Array) -> Array:
        """Return the log loss of each label of each row."""
        xp, y = namespace(z), self._labels(z)
        return at_least(z, 0.0) - y * z + xp.log1p(xp.exp(-xp.abs(z)))

    def _log_loss(self, z: Array) -> float:
        cells = self._cells(z)
        if self._known is not None:
            return self._known_log_loss(to_numpy(cells))
        rows = to_numpy(namespace(z).mean(cells, axis=1))
        return float(np.average(rows, weights=self._weight))

    def _known_log_loss(self, cells: np.ndarray) -> float:
        known = self._known
        assert known is not None
        n_known = known.sum(axis=1)
        some = n_known > 0
        rows = np.where(known, cells, 0.0).sum(axis=1)[some] / n_known[some]
        return float(np.average(rows, weights=None if self._weight is None else self._weight[some]))

    def _labels(self, like: Array) -> Array:
        """Return the labels as numbers on the device of log-odds; they are moved only once."""
        if self._numbers is None or type(self._numbers) is not type(like):
            self._numbers = asarray(self._on, like, "float64")
        return self._numbers


def weighted_mean(members: Iterable[tuple[Array, float]]) -> Any:
    """Return the sum of log-odds times their shares."""
    total: Any = 0.0
    for log_odds, share in members:
        if share > 0:
            total = total + log_odds * share
    return total


def choose_greedily(
    members: Sequence[Array], criterion: Criterion, rounds: int
) -> tuple[np.ndarray, float]:
    """Select members with replacement, in each round the one that improves the mean most.

    The mean may get worse in a round; the best mean of all rounds is returned [1]_.

    Parameters
    ----------
    members : sequence of array of shape (n_samples, n_outputs)
        Log-odds.
    criterion : Criterion
        Greater is better.
    rounds : int

    Returns
    -------
    weights : ndarray of shape (n_members,)
        Summing to one.
    value : float
        The criterion of the weighted mean.

    References
    ----------
    .. [1] R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes. "Ensemble selection from libraries of
       models." ICML 2004.
    """
    counts = np.zeros(len(members), dtype=int)
    best_counts, best = counts, -np.inf
    total: Any = None
    for size in range(1, rounds + 1):
        means = (member if total is None else (total + member) / size for member in members)
        values = criterion.values(means, members[0])
        first = int(np.argmax(values))
        counts[first] += 1
        total = members[first] if total is None else total + members[first]
        if values[first] > best:
            best_counts, best = counts.copy(), values[first]
    return best_counts / best_counts.sum(), float(best)
