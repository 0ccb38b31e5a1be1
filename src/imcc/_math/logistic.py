r"""Logistic maps from scores to log-odds, one per label, with slopes shrunk to a common slope.

For label j the log-odds of a row with score f are ``a_j f + c_j`` (Platt 1999), fitted to held-out
scores.  Rare labels do not determine their slope, so the slopes are shrunk towards each other.
In the standardised score ``u = (f - m_j) / s``, where m_j is the mean score of label j and s is one
scale for all labels (the root mean square of the labels' standard deviations), the map
``z = a_j u + c_j`` minimises, over a_j >= 0 and c_j,

    sum_i w_ij [log(1 + exp(z_ij)) - y_ij z_ij]          the log loss of the known cells
    + precision / 2 (a_j - a)^2                          slopes differ from the common slope a ...
    + prior_count [log(1 + exp(c_j)) - c_j / 2]          ... and offsets are those of a base rate

with y in {0, 1}.  The common slope a >= 0 minimises the first and last line, all labels having the
same slope, plus ``precision / 2 a^2``.  Three things follow.

* The result does not depend on the unit of the scores: f and 10 f give the same probabilities.
* Both priors weigh as much as a few rows.  ``precision = 0.2`` says that slopes, per standard
  deviation of the scores, differ by about sqrt(5) between labels.  ``prior_count = 1`` adds half a
  positive and half a negative row at the label's mean score.
* Everything is finite.  A label that never occurs gets ``log(1/2 / (n + 1/2))`` at its mean score,
  the smoothed base rate; perfectly separated labels get a finite slope; scores that point the wrong
  way get slope 0 and the smoothed base rate, never a falling map.

The problem is convex; Newton's method solves it for all labels at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._array.array import Array, asarray, astype, at_least, is_numpy, namespace, to_numpy
from imcc._array.device import block_entries
from imcc._math.kernels import row_blocks

#: Precision of the prior of the slopes, per squared standard deviation of the scores.
PRECISION = 0.2
#: Rows, half of them positive, that are added at a label's mean score.
PRIOR_COUNT = 1.0
# Entries of the blocks that a pass works on: they stay in the cache of a core.
_ENTRIES = 2**16
# Newton's method needs about eight steps; halved steps are rare.
_MAX_STEPS = 100
# The squared Newton step, in the metric of the Hessian, that is the last one: twice the loss above
# the minimum.  Steps converge quadratically, so after it about the square of this is left.
_TOLERANCE = 1e-9
# For comparing kernels.
_COARSE_TOLERANCE = 1e-4
# How much larger, relatively, a loss may seem to get by rounding alone, and the shortest step.
_ROUNDING = 1e-12
_SHORTEST = 1e-6


@dataclass(frozen=True)
class LogisticMaps:
    """One map from scores to log-odds per label.

    Attributes
    ----------
    slope : array of shape (n_labels,)
        Log-odds per unit of the score, at least 0.
    offset : array of shape (n_labels,)
        Log-odds at score 0.
    common_slope : float
        The slope that the others are shrunk towards, per unit of the score.
    scale : float
        s, the common standard deviation of the scores.
    """

    slope: Array
    offset: Array
    common_slope: float
    scale: float

    def log_odds(self, scores: Array) -> Array:
        """Return ``slope * scores + offset`` for scores of shape (n_samples, n_labels)."""
        out = scores * self.slope
        out += self.offset
        return out


def sigmoid(log_odds: Array) -> Array:
    """Return 1 / (1 + exp(-z)), without overflow and exact for large negative z."""
    xp = namespace(log_odds)
    small = xp.exp(-xp.abs(log_odds))
    return xp.where(log_odds >= 0, 1 / (1 + small), small / (1 + small))


def fit_logistic_maps(
    scores: Array,
    on: Array,
    sample_weight: Any = None,
    known: Any = None,
    *,
    same_slope: bool = False,
) -> LogisticMaps:
    """Fit the log-odds of each label to its scores; see the head of this module.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of rows that the model was not trained on (held-out folds or leave-one-out).  They
        determine library and device.
    on : array of bool, shape (n_samples, n_labels)
        The labels.
    sample_weight : array of shape (n_samples,), optional
        How many rows each row counts for, at least 0.
    known : array of bool, shape (n_samples, n_labels), optional
        False where a label is unknown; such entries are ignored.
    same_slope : bool
        Whether all labels have the same slope, and are fitted less exactly, which takes a third of
        the time.

    Returns
    -------
    LogisticMaps
        Of the library and on the device of the scores.
    """
    problem = _Problem.of(scores, on, sample_weight, known)
    # The best offsets for slope 0: the smoothed base rates.
    half, positives = PRIOR_COUNT / 2, problem.positives
    base = np.log(positives + half) - np.log(problem.totals - positives + half)
    tolerance = _COARSE_TOLERANCE if same_slope else _TOLERANCE
    common = _fit_common(problem, np.stack([np.zeros(len(base)), base]), tolerance)
    slopes, offsets = common if same_slope else _fit_each(problem, common)
    slope = slopes / problem.scale
    offset = offsets - slope * problem.centers
    like = problem.moved
    return LogisticMaps(
        asarray(slope, like),
        asarray(offset, like),
        float(common[0, 0] / problem.scale),
        problem.scale,
    )


@dataclass(frozen=True)
class _Problem:
    """Scores, labels and weights, and what does not change between the passes over them.

    Attributes
    ----------
    moved : array of shape (n, q)
        Scores (zero in cells that are not known) minus their centers.
    on : array of bool, shape (n, q)
    weights : array of shape (n, 1) or (n, q), or None
        None if all are 1.
    centers : ndarray of shape (q,)
    scale : float
    positives, totals : ndarray of shape (q,)
        Sums of weights, without those of the prior.
    entries : int
        Of the blocks that a pass works on; a device is asked once, not in every pass.
    """

    moved: Array
    on: Array
    weights: Array | None
    centers: np.ndarray
    scale: float
    positives: np.ndarray
    totals: np.ndarray
    entries: int

    @classmethod
    def of(cls, scores: Array, on: Array, sample_weight: Any, known: Any) -> _Problem:
        scores = astype(scores, "float64")
        xp = namespace(scores)
        n = scores.shape[0]
        weights: Array | None = None
        if sample_weight is not None:
            weights = asarray(sample_weight, scores, "float64")[:, None]
        if known is not None:
            mask = asarray(known, scores, "bool")
            scores = xp.where(mask, scores, xp.zeros_like(scores))
            cells = xp.astype(mask, xp.float64)
            weights = cells if weights is None else weights * cells
        if not bool(xp.all(xp.isfinite(scores))):
            raise ValueError("scores must be finite: some are NaN or infinite")
        labels = asarray(on, scores, "bool")
        q = scores.shape[1]
        totals, positives, sums, squares = (np.zeros(q) for _ in range(4))
        entries = block_entries(scores) or _ENTRIES
        blocks = list(row_blocks(n, q, entries))
        for b in blocks:
            w = xp.ones_like(scores[b, :])
            if weights is not None:
                w = w * weights[b, :]
            totals += to_numpy(xp.sum(w, axis=0))
            positives += to_numpy(xp.sum(w * astype(labels[b, :], "float64"), axis=0))
            sums += to_numpy(xp.sum(w * scores[b, :], axis=0))
        centers = sums / np.maximum(totals, np.finfo(float).tiny)
        moved = scores - asarray(centers, scores)
        for b in blocks:
            apart = moved[b, :] ** 2
            if weights is not None:
                apart = weights[b, :] * apart
            squares += to_numpy(xp.sum(apart, axis=0))
        counted = float(totals.sum())
        scale = float(np.sqrt(squares.sum() / counted)) if counted > 0 else 0.0
        # Scores that are constant up to rounding are not informative: any unit is fine.
        if scale <= 1e-12 * max(1e-300, float(np.abs(centers).max(initial=0.0))):
            scale = 1.0
        return cls(moved, labels, weights, centers, scale, positives, totals, entries)

    def only(self, labels: np.ndarray) -> _Problem:
        """Return the problem of some labels, with the same scale."""
        if len(labels) == len(self.centers):
            return self
        index = asarray(labels, self.moved)
        xp = namespace(self.moved)
        shared = self.weights is None or self.weights.shape[1] == 1
        return _Problem(
            xp.take(self.moved, index, axis=1),
            xp.take(self.on, index, axis=1),
            self.weights if shared else xp.take(self.weights, index, axis=1),
            self.centers[labels],
            self.scale,
            self.positives[labels],
            self.totals[labels],
            self.entries,
        )

    def sums(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the loss, gradient and Hessian of each label at slopes and offsets.

        Parameters
        ----------
        at : ndarray of shape (2, q)
            Slopes and offsets for the standardised scores.

        Returns
        -------
        loss : ndarray of shape (q,)
        gradient : ndarray of shape (2, q)
        hessian : ndarray of shape (3, q)
            The derivatives for (slope, slope), (slope, offset), (offset, offset).
        """
        xp, like, scale = namespace(self.moved), self.moved, self.scale
        # Moved in one piece: each piece on its way to a device costs the same.
        line = asarray(np.stack([at[0] / scale, at[1]]), like)
        slope, offset = line[0, :], line[1, :]
        total: Any = None
        for b in row_blocks(like.shape[0], like.shape[1], self.entries):
            moved = like[b, :]
            z = moved * slope + offset
            # With e = exp(-|z|) and r = 1 / (1 + e): p is r or e r, and p (1 - p) = e r^2.
            small = xp.exp(-xp.abs(z))
            large = 1 / (1 + small)
            other = small * large
            y = astype(self.on[b, :], "float64")
            residual = xp.where(z >= 0, large, other) - y
            curve = other * large
            loss = at_least(z, 0.0) - y * z - xp.log(large)
            if self.weights is not None:
                w = self.weights[b, :]
                residual, curve, loss = w * residual, w * curve, w * loss
            curve_u = curve * moved
            terms = [loss, residual * moved, residual, curve_u * moved, curve_u, curve]
            if is_numpy(like):
                parts = np.stack([np.sum(term, axis=0) for term in terms])
            else:
                # One sum: the time on a device is that of starting each operation.
                parts = xp.sum(xp.stack(terms), axis=1)
            total = parts if total is None else total + parts
        found = np.zeros((6, len(self.centers))) if total is None else np.array(to_numpy(total))
        found /= np.array([1.0, scale, 1.0, scale**2, scale, 1.0])[:, None]
        c, k = at[1], PRIOR_COUNT
        p = to_numpy(sigmoid(c))
        found[0] += k * (np.logaddexp(0, c) - c / 2)
        found[2] += k * (p - 0.5)
        found[5] += k * p * (1 - p)
        return found[0], found[1:3], found[3:]


def _fit_common(problem: _Problem, start: np.ndarray, tolerance: float) -> np.ndarray:
    """Return slopes (all the same, at least 0) and offsets, shape (2, q)."""
    found, step, size, best = start, np.zeros_like(start), 1.0, np.inf
    for _ in range(_MAX_STEPS):
        at = found + size * step
        loss, (of_slope, of_offset), (ss, so, oo) = problem.sums(at)
        slope = float(at[0, 0])
        value = float(loss.sum()) + PRECISION / 2 * slope**2
        if value > best + _ROUNDING * abs(best) and size > _SHORTEST:
            size /= 2  # too far: the same direction, half as long
            continue
        found, best, size = at, value, 1.0
        # The Hessian is an arrow: eliminate the offsets.
        curve = ss.sum() + PRECISION - np.sum(so**2 / oo)
        pull = of_slope.sum() + PRECISION * slope - np.sum(so * of_offset / oo)
        # A step may end at slope 0, not beyond.
        move = max(-pull / curve, -slope)
        shift = -(of_offset + so * move) / oo
        step = np.stack([np.full_like(shift, move), shift])
        decrement = curve * move**2 + np.sum(oo * (shift + so / oo * move) ** 2)
        if decrement <= tolerance:
            return found + step
    return found


def _fit_each(problem: _Problem, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes and offsets of all labels, from those with the common slope."""
    result = common.copy()
    labels = np.arange(len(problem.centers))  # those that are still worked on
    target, found = common[0], common
    step, size, best = np.zeros_like(common), np.ones(len(labels)), np.full(len(labels), np.inf)
    some = problem
    for _ in range(_MAX_STEPS):
        at = found + size * step
        loss, (of_slope, of_offset), (ss, so, oo) = some.sums(at)
        value = loss + PRECISION / 2 * (at[0] - target) ** 2
        too_far = (value > best + _ROUNDING * np.abs(best)) & (size > _SHORTEST)
        of_slope, ss = of_slope + PRECISION * (at[0] - target), ss + PRECISION
        determinant = ss * oo - so**2
        move = (so * of_offset - oo * of_slope) / determinant
        # Where a step would make the slope negative it ends at 0, with the best offset there.
        move = np.maximum(move, -at[0])
        shift = -(of_offset + so * move) / oo
        decrement = ss * move**2 + 2 * so * move * shift + oo * shift**2
        done = ~too_far & (decrement <= _TOLERANCE)
        # Too far: the same direction from the same place, half as long.
        found = np.where(too_far, found, at)
        best = np.where(too_far, best, value)
        step = np.where(too_far, step, np.stack([move, shift]))
        size = np.where(too_far, size / 2, 1.0)
        # The last step of the labels that are done; they wait for the others there.
        found = np.where(done, found + step, found)
        step = np.where(done, 0.0, step)
        result[:, labels] = found
        if done.all():
            break
        if 2 * np.count_nonzero(~done) <= len(labels):
            left = np.flatnonzero(~done)
            some, labels, target = some.only(left), labels[left], target[left]
            found, step, size, best = found[:, left], step[:, left], size[left], best[left]
    return result[0], result[1]
