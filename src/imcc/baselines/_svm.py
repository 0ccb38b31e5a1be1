"""Support vector machines, one per label, and scores computed from their margins.

scikit-learn's SVC stores the support vectors of every machine, almost a copy of X per label.  A
linear machine only needs its vector of weights, so only that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed

from imcc._math.platt import Sigmoid, calibration_folds, fit_sigmoid, prior_log_odds
from imcc._utils.validation import Features, check_choice, check_number
from imcc.baselines._kernel_rows import Dual, KernelRows

SCORES = ("probability", "margin")
# Labels per batch; the margins of a batch's calibration folds are computed in one product.
_LABELS_AT_ONCE = 32


@dataclass(frozen=True)
class LinearScore:
    """The linear score x . weights + intercept of one label."""

    weights: np.ndarray
    intercept: float

    def __call__(self, X: Features) -> np.ndarray:
        """Return the scores of rows, shape (n_samples,)."""
        return X @ self.weights + self.intercept


def check_svm(C: Any, scores: Any) -> None:
    """Check the parameters that all SVM baselines share."""
    check_number("C", C, above=0)
    check_choice("scores", scores, SCORES)


def train_labels(
    rows: KernelRows,
    on: np.ndarray,
    C: float,
    scores: str,
    seed: int,
    parallel: Callable[[Iterable[Any]], list[Dual]],
) -> list[Dual]:
    """Train one machine per label, whose outputs are margins or Platt's log-odds.

    The machines of all labels and all calibration folds share the kernel matrix of ``rows``.  With
    ``scores="probability"``, slope and offset of Platt's sigmoid are folded into the weights and
    intercepts.  The log-odds of a constant label, or of one with a single row in the rarer class,
    are those of its prior.

    Parameters
    ----------
    rows : KernelRows
    on : ndarray of bool, shape (n_samples, q)
    C : float
    scores : {"probability", "margin"}
    seed : int
        Seed for shuffling the folds.
    parallel : callable
        Runs an iterable of delayed calls, as :class:`joblib.Parallel` does.

    Returns
    -------
    list of Dual
    """
    machines: list[Dual] = []
    for start in range(0, on.shape[1], _LABELS_AT_ONCE):
        labels = on[:, start : start + _LABELS_AT_ONCE].T
        trained = parallel(delayed(rows.train)(label, C) for label in labels)
        if scores == "probability":
            sigmoids = _calibrate(rows, labels, C, seed, parallel)
            trained = [
                rescaled(machine, sigmoid)
                for machine, sigmoid in zip(trained, sigmoids, strict=True)
            ]
        machines += trained
    return machines


def run_here(calls: Iterable[Any]) -> list[Any]:
    """Run delayed calls one after the other, without the cost of :class:`joblib.Parallel`."""
    return [function(*args, **kwargs) for function, args, kwargs in calls]


def rescaled(machine: Dual, sigmoid: Sigmoid) -> Dual:
    """Return a machine whose margins are the calibrated log-odds of another machine."""
    return Dual(
        machine.support,
        sigmoid.slope * machine.coef,
        sigmoid.slope * machine.intercept + sigmoid.offset,
    )


def _calibrate(
    rows: KernelRows,
    labels: np.ndarray,
    C: float,
    seed: int,
    parallel: Callable[[Iterable[Any]], list[Dual]],
) -> list[Sigmoid]:
    """Return Platt's sigmoid per label (a row of ``labels``), fitted to held-out margins."""
    folds = [calibration_folds(label, seed) for label in labels]
    machines = parallel(
        delayed(rows.train)(label, C, inside)
        for label, parts in zip(labels, folds, strict=True)
        for inside, _ in parts
    )
    margins = rows.margins(machines) if machines else np.empty((labels.shape[1], 0))
    sigmoids, column = [], 0
    for label, parts in zip(labels, folds, strict=True):
        if not parts:
            sigmoids.append(Sigmoid(0.0, prior_log_odds(label, rows.weights)))
            continue
        held_out = np.empty(len(label))
        for _, outside in parts:
            held_out[outside] = margins[outside, column]
            column += 1
        sigmoids.append(fit_sigmoid(held_out, label, rows.weights))
    return sigmoids
