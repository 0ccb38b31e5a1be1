"""The weights of a stack: non-negative, on log-odds, of the lowest log loss."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def stack_weights(scores: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return the weights w >= 0 that minimise the log loss of sum_k w_k scores_k.

    They are the same for all labels and need not add up to 1, so that a stack may be surer than
    its members.  The problem is convex.

    Parameters
    ----------
    scores : ndarray of shape (n_members, n_rows, n_labels)
        Out-of-fold log-odds.
    on : ndarray of bool of shape (n_rows, n_labels)
        True labels.

    Examples
    --------
    >>> on = np.array([[True], [False], [True], [True]])
    >>> right, wrong = np.where(on, 1.0, -1.0), np.where(on, -1.0, 1.0)
    >>> right[0] = -1.0
    >>> stack_weights(np.array([right, wrong]), on).round(3).tolist()
    [1.099, 0.0]
    """
    columns = scores.reshape(len(scores), -1).astype(float)
    target = on.ravel().astype(float)

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = w @ columns
        loss = (np.logaddexp(0.0, z) - target * z).mean()
        return float(loss), columns @ (expit(z) - target) / len(target)

    start = np.full(len(columns), 1 / len(columns))
    bounds = [(0.0, None)] * len(columns)
    options = {"ftol": 1e-12, "gtol": 1e-8, "maxiter": 500}
    return minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
