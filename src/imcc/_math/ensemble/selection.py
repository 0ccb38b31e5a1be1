"""Criteria of model selection, and the greedy selection of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    astype,
    at_least,
    is_numpy,
    namespace,
    to_numpy,
    transposed,
)
from imcc._array.device import block_entries
from imcc._math.ensemble.members import Labels
from imcc._math.kernels import row_blocks
from imcc.metrics import METRICS, LabelMetrics

#: Names of criteria: the five metrics, and the mean log loss per label.
CRITERIA = (*METRICS, "log_loss")
# Standard errors by which linear models, or trees, must lower the log loss.
_ERRORS = 2.0
# Shares of a further member that are tried.
_SHARES = np.linspace(0.0, 1.0, 21)
# Entries of the blocks of log-odds whose losses are computed; they stay in the cache.
_ENTRIES = 2**16


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
        self._labels: Array | None = None
        self._counted: Array | None = None
        # Rows without known labels do not count.
        self._row_weight = weight
        if known is not None:
            own = np.ones(len(on)) if weight is None else weight
            self._row_weight = np.where(known.any(axis=1), own, 0.0)
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
            rows = to_numpy(self._row_losses(log_odds))
            return -float(np.average(rows, weights=self._row_weight))
        if self._binary:
            log_odds = namespace(log_odds).concat([-log_odds, log_odds], axis=1)
        scores = transposed(log_odds)[:, None, :]
        return self._sign * float(self._metrics.means(scores, [self.name])[0, 0])

    def values(self, candidates: Iterable[Array], like: Array) -> list[float]:
        """Return the values of several log-odds, on their device.

        A device is asked once for the log losses of all of them, not for one after the other.
        """
        if is_numpy(like) or self.name != "log_loss" or self._function is not None:
            return [self(log_odds) for log_odds in candidates]
        rows = to_numpy(namespace(like).stack([self._row_losses(z) for z in candidates]))
        return [-float(np.average(of_rows, weights=self._row_weight)) for of_rows in rows]

    def reported(self, value: float) -> float:
        """Return a value of the metric; losses are not negated."""
        if self._function is None and (self.name == "log_loss" or self._sign < 0):
            return -value
        return value

    def _row_losses(self, z: Array) -> Array:
        """Return the mean log loss of the (known) labels of each row."""
        xp, parts = namespace(z), []
        if self._labels is None or type(self._labels) is not type(z):
            # Moved to a device only once.
            self._labels = asarray(self._on, z)
            self._counted = None if self._known is None else asarray(self._known, z)
        for block in row_blocks(z.shape[0], z.shape[1], block_entries(z) or _ENTRIES):
            own, y = z[block, :], astype(self._labels[block, :], "float64")
            cells = at_least(own, 0.0) - y * own + xp.log1p(xp.exp(-xp.abs(own)))
            if self._counted is None:
                parts.append(xp.mean(cells, axis=1))
            else:
                counted = astype(self._counted[block, :], "float64")
                n_known = at_least(xp.sum(counted, axis=1), 1.0)
                parts.append(xp.sum(cells * counted, axis=1) / n_known)
        return xp.concat(parts)


def weighted_mean(members: Iterable[tuple[Array, float]]) -> Any:
    """Return the sum of log-odds times their shares."""
    total: Any = 0.0
    for log_odds, share in members:
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


def best_share(before: np.ndarray, other: np.ndarray, labels: Labels) -> tuple[float, float]:
    """Return the share of other log-odds in the mean with the lowest log loss, and what it gains.

    The gain is that of a row, summed over its known labels; 0 if it is not clear.
    """

    def mean(share: float) -> np.ndarray:
        return (1 - share) * before + share * other

    losses = [
        float(np.average(log_losses(mean(share), labels), weights=labels.weight))
        for share in _SHARES
    ]
    best = int(np.argmin(losses))
    share = float(_SHARES[best])
    return share, losses[0] - losses[best] if helps(before, mean(share), labels) else 0.0


def helps(before: np.ndarray, after: np.ndarray, labels: Labels) -> bool:
    """Return whether log-odds lower the log loss by more than two standard errors."""
    gain = log_losses(before, labels) - log_losses(after, labels)
    v = np.ones(len(gain)) if labels.weight is None else labels.weight
    mean = float(np.average(gain, weights=v))
    # Of a weighted mean of independent rows.
    error = float(np.sqrt(np.sum(v**2 * (gain - mean) ** 2)) / v.sum())
    return mean > _ERRORS * error


def log_losses(z: np.ndarray, labels: Labels) -> np.ndarray:
    """Return the log loss of each row, summed over its known labels."""
    out = np.empty(len(z))
    for block in row_blocks(*z.shape):
        cells = np.logaddexp(0.0, np.where(labels.signs[block] > 0, -z[block], z[block]))
        cells = cells if labels.known is None else cells * labels.known[block]
        out[block] = cells.sum(axis=1)
    return out
