"""Penalties and couplings of a kernel, calibrated and evaluated when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from imcc._array.array import Array, asarray, namespace, to_numpy
from imcc._array.threads import limited_threads
from imcc._math.ensemble.held_out import Held
from imcc._math.ensemble.model import make_kernel
from imcc._math.ensemble.records import Kernel, Trial
from imcc._math.ensemble.scorers import kernel_scorer
from imcc._math.ensemble.selection import Criterion
from imcc._math.logistic import LogisticMaps, fit_logistic_maps


@dataclass(frozen=True)
class Try:
    """Calibrated held-out scores of a penalty and coupling, and their criterion."""

    value: float
    held_out: Array
    log_odds: Array
    maps: LogisticMaps


class Tries:
    """Held-out scores of a kernel; each penalty and coupling is computed once, when needed.

    Parameters
    ----------
    held_out : callable
        Gives the scores for a penalty and a coupling.
    signs, weight, known
        Of the rows that are scored.
    criterion : Criterion
    penalties : tuple of float
    calibrated : bool
    """

    def __init__(
        self,
        held_out: Callable[[float, float], Array],
        signs: Array,
        weight: np.ndarray | None,
        criterion: Criterion,
        penalties: tuple[float, ...],
        calibrated: bool,
        known: np.ndarray | None = None,
    ) -> None:
        self._held_out, self._signs, self._weight, self._known = held_out, signs, weight, known
        self._criterion, self._penalties, self._calibrated = criterion, penalties, calibrated
        self.found: dict[tuple[int, float], Try] = {}

    def judged(self, scores: Array) -> Try:
        """Calibrate and evaluate held-out scores."""
        maps = calibrate(scores, self._signs, self._weight, self._calibrated, self._known)
        log_odds = maps.log_odds(scores)
        return Try(self._criterion(log_odds), scores, log_odds, maps)

    def value(self, i: int, eta: float = 0.0) -> float:
        """Return the value of the i-th penalty."""
        if (i, eta) not in self.found:
            self.found[i, eta] = self.judged(self._held_out(self._penalties[i], eta))
        return self.found[i, eta].value

    def best_penalty(self, start: int, eta: float = 0.0) -> int:
        """Return the best penalty near a start."""
        return climb(lambda i: self.value(i, eta), start, len(self._penalties))

    def trials(self, stage: str, kernel: Kernel) -> list[Trial]:
        """Return what was tried."""
        n = int(self._signs.shape[0])
        return [
            Trial(stage, n, kernel.setting(self._penalties[i], eta), found.value)
            for (i, eta), found in self.found.items()
        ]


def try_kernel(
    base: Array,
    kernel: Kernel,
    held: Held,
    criterion: Criterion,
    penalties: tuple[float, ...],
    start: int,
    calibrated: bool,
) -> tuple[float, int, list[Trial]]:
    """Return the best value and penalty of a kernel on some rows, and all that was tried."""
    K = make_kernel(kernel.name).finish(namespace(base).asarray(base, copy=True), kernel.width)
    scorer = kernel_scorer(K, held, penalties)
    weight = None if held.labels.weight is None else to_numpy(held.labels.weight)
    signs = held.labels.signs
    tries = Tries(scorer.held_out, signs, weight, criterion, penalties, calibrated, held.known)
    with limited_threads(int(signs.shape[0])):
        best = tries.best_penalty(start)
    return tries.value(best), best, tries.trials("screen", kernel)


def calibrate(
    scores: Array,
    signs: Array,
    weight: np.ndarray | None,
    calibrated: bool,
    known: np.ndarray | None = None,
) -> LogisticMaps:
    """Return the maps from held-out scores to log-odds; the identity if that is requested."""
    if calibrated:
        return fit_logistic_maps(scores, signs > 0, weight, known)
    q = scores.shape[1]
    return LogisticMaps(asarray(np.ones(q), scores), asarray(np.zeros(q), scores), 1.0, 1.0)


def climb(value: Callable[[int], float], start: int, n: int) -> int:
    """Return the place of a local maximum of a function on 0 .. n - 1, near a start."""
    at = min(max(start, 0), n - 1)
    for direction in (1, -1):
        moved = False
        while 0 <= at + direction < n and value(at + direction) > value(at):
            at += direction
            moved = True
        if moved:
            break
    value(at)
    return at
