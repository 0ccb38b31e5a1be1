"""Linear logistic models of words: one per label, with held-out scores from folds.

For texts and other rows with thousands of columns, most of them zero, a linear model of the
logistic loss can be more accurate than a kernel, and differs from it.  (liblinear, by
scikit-learn; the penalty is ``1 / (2 C) |w|^2`` with a small C for features of unit length.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold

#: Inverse penalties that are tried.
INVERSE_PENALTIES = (1.0, 3.0, 10.0)
#: Labels that they are first tried on, and folds of the held-out scores.
TRIED_LABELS, N_FOLDS = 8, 5


def fit_linear(
    X: sp.csr_matrix,
    on: np.ndarray,
    known: np.ndarray | None,
    weight: np.ndarray | None,
    C: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit a model per label; return coefficients (n_features, n_labels) and intercepts.

    A label that all rows have, or none, has the log-odds of its smoothed base rate.
    """
    coef, intercept = np.zeros((X.shape[1], on.shape[1])), np.zeros(on.shape[1])
    for j in range(on.shape[1]):
        rows = slice(None) if known is None else np.flatnonzero(known[:, j])
        y = on[rows, j]
        if y.all() or not y.any():
            intercept[j] = np.log((y.sum() + 0.5) / ((~y).sum() + 0.5))
            continue
        model = LogisticRegression(C=C, solver="liblinear", dual=True, random_state=0)
        with warnings.catch_warnings():
            # Of 100 passes; the scores are judged on held-out rows either way.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[rows], y, sample_weight=None if weight is None else weight[rows])
        coef[:, j], intercept[j] = model.coef_[0], model.intercept_[0]
    return coef, intercept


def held_out_linear(
    X: sp.csr_matrix,
    on: np.ndarray,
    known: np.ndarray | None,
    weight: np.ndarray | None,
    groups: np.ndarray | None,
    C: float,
    n_folds: int,
    seed: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each fold, and their log-odds by models of the other folds.

    There are fewer folds if there are fewer rows, or groups.
    """
    n_folds = min(n_folds, len(on) if groups is None else len(np.unique(groups)))
    splitter: KFold | GroupKFold = KFold(n_folds, shuffle=True, random_state=seed)
    if groups is not None:
        splitter = GroupKFold(n_folds)
    for train, test in splitter.split(on, groups=groups):
        seen = None if known is None else known[train]
        counted = None if weight is None else weight[train]
        coef, intercept = fit_linear(X[train], on[train], seen, counted, C)
        yield test, X[test] @ coef + intercept
