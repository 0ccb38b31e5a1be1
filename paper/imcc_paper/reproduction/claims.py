"""What README says of the ensemble beside other methods, one sentence per claim."""

from __future__ import annotations

import numpy as np

from imcc.comparison import ScoreTable, bayesian_signed_rank, effect_size
from imcc_paper.reproduction.ranked import differences
from imcc_paper.reproduction.rows import CONTROL, ROPES, items

METRIC = "average_precision"
#: The methods that most people use, and the one that is nearest.
USED = {"lightgbm": "LightGBM", "logistic": "Logistic regression"}
NEAREST = "kernel_ridge_calibrated"
#: Probability from which on methods are called practically equivalent.
SURE = 0.95


def claims(scores: ScoreTable, outside: ScoreTable, rivals: str) -> str:
    """Return the claims as a list.

    Parameters
    ----------
    scores, outside : ScoreTable
        Average precision on the paper's data sets, and on those that nothing was chosen on, where
        the other methods were tuned.
    rivals : str
        What is claimed beside rivals that were tuned.
    """
    lines = []
    for method, name in USED.items():
        own, other = (differences(of, CONTROL, method) for of in (scores, outside))
        low, high = effect_size(other).mean_interval
        lines.append(
            f"**{name}**: {_gap(own)} on the paper's data sets, which the ensemble was developed "
            f"on; {_gap(other)}, with tuned settings, on others, which nothing was chosen on"
            + (", where zero is in the interval." if low < 0 < high else ".")
        )
    gap = differences(scores, CONTROL, NEAREST)
    rope = ROPES[METRIC]
    equivalent = bayesian_signed_rank(gap, rope=rope).equivalent
    near = "practically equivalent" if equivalent >= SURE else "the nearest"
    lines.append(
        f"**Kernel ridge regression**, with a tuned width and calibrated scores, is {near}: "
        f"{_gap(gap)}, at most {rope:g} with probability {equivalent:.2f}."
    )
    return items([*lines, rivals])


def _gap(values: np.ndarray) -> str:
    mean, (_, high) = effect_size(values)
    return f"{mean:+.4f} ± {high - mean:.4f} (better on {(values > 0).sum()} of {len(values)})"
