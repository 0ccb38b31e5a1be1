"""Logistic regression per label, with the penalty chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from imcc_paper.methods._base import LogOddsLabels, draw_seed, is_constant, prior_log_odds

# If at most this fraction of the entries is nonzero, columns are divided by their largest absolute
# entry: dividing by the standard deviation would make the rarest words the largest.
_SPARSE_SHARE = 0.1
_MAX_ITER = 200


class LogisticRegressionBaseline(LogOddsLabels):
    """scikit-learn's logistic regression, one model per label.

    Not part of the paper's comparison.  For each label, with y_i in {-1, +1}::

        min_{w, b}  1/2 |w|^2 + C sum_i log(1 + exp(-y_i (x_i w + b)))

    on scaled columns.  Columns are divided by their standard deviations or, if at most 10 % of the
    entries of X are nonzero, by their largest absolute entries.  C is chosen per label by the
    cross-validated log loss: values are tried in increasing order until the loss no longer
    decreases.

    Parameters
    ----------
    Cs : float or sequence of float, default=(0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
        Values of C to try, > 0; a single value is used without cross-validation.
    cv : int, default=3
        Number of folds, >= 2, stratified by the label; fewer if a label has fewer rows of either
        class.
    n_jobs : int or None, default=None
        Number of labels trained in parallel by joblib, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights for the original, unscaled columns.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    C_ : ndarray of shape (n_labels,)
        The chosen values of C; NaN for a constant label.

    Notes
    -----
    The score of a constant label, which all training rows or none have, is the log-odds of its
    smoothed relative frequency.  A label with a single row of one class cannot be cross-validated;
    its C is the median of those of the other labels or, if there are none, the middle of ``Cs``.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc_paper.methods import LogisticRegressionBaseline
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> LogisticRegressionBaseline(random_state=0).fit(X, Y).predict_proba(X).shape
    (100, 3)
    """

    def __init__(
        self,
        Cs: Sequence[float] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0),
        *,
        cv: int = 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _train(self, X: Any, on: np.ndarray) -> None:
        Cs = sorted(np.atleast_1d(self.Cs).tolist())
        seed = draw_seed(self.random_state)
        scale = _column_scales(X)
        scaled = X.multiply(1 / scale).tocsr() if sp.issparse(X) else X / scale
        learned = [j for j in range(on.shape[1]) if not is_constant(on[:, j])]
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        found = np.full(on.shape[1], np.nan)
        coef = np.zeros((on.shape[1], X.shape[1]))
        intercept = prior_log_odds(on)
        # One thread for matrix products, so that results do not depend on the number of threads.
        with threadpool_limits(1):
            if learned:
                found[learned] = parallel(
                    delayed(_choose)(scaled, on[:, j], Cs, self.cv, seed) for j in learned
                )
            usual = np.nanmedian(found) if np.isfinite(found).any() else Cs[len(Cs) // 2]
            found[[j for j in learned if np.isnan(found[j])]] = usual
            models = parallel(delayed(_fit)(scaled, on[:, j], found[j]) for j in learned)
        for j, model in zip(learned, models, strict=True):
            coef[j], intercept[j] = model[:-1] / scale, model[-1]
        self.C_ = found
        self.coef_ = coef
        self.intercept_ = intercept

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_.T) + self.intercept_


def _column_scales(X: Any) -> np.ndarray:
    """Return the divisor of each column; 1 for a constant or zero column."""
    n_filled = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    if n_filled <= _SPARSE_SHARE * X.shape[0] * X.shape[1]:
        largest = abs(X).max(axis=0)
        scale = largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest).ravel()
    else:
        share = np.full(X.shape[0], 1 / X.shape[0])
        mean = np.asarray(share @ X).ravel()
        squares = X.multiply(X).tocsr() if sp.issparse(X) else X * X
        variance = np.asarray(share @ squares).ravel() - mean**2
        # Due to rounding, a constant column has a variance of about eps times its squared mean.
        variance = np.where(variance > 1e-12 * mean**2, variance, 0.0)
        scale = np.sqrt(np.maximum(variance, 0))
    return np.where(scale > 0, scale, 1.0)


def _choose(X: Any, on: np.ndarray, Cs: list[float], cv: int, seed: int) -> float:
    """Return the C with the lowest log loss on held-out rows; NaN if folds are not possible."""
    if len(Cs) == 1:
        return Cs[0]
    n_folds = min(cv, int(on.sum()), int((~on).sum()))
    if n_folds < 2:
        return np.nan
    rng = np.random.default_rng(seed)
    fold = np.empty(len(on), dtype=int)
    for kind in (True, False):
        of_kind = np.flatnonzero(on == kind)
        fold[of_kind] = rng.permutation(np.arange(len(of_kind)) % n_folds)
    signs = np.where(on, 1.0, -1.0)
    parts = []
    for k in range(n_folds):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        parts.append((X[inside], X[outside], inside, outside))
    starts: list[np.ndarray | None] = [None] * n_folds
    best, best_loss = Cs[0], np.inf
    for C in Cs:
        loss = 0.0
        for k, (X_in, X_out, inside, outside) in enumerate(parts):
            starts[k] = model = _fit(X_in, on[inside], C, starts[k])
            margins = signs[outside] * (np.asarray(X_out @ model[:-1]).ravel() + model[-1])
            loss += float(np.logaddexp(0, -margins).sum())
        if loss >= best_loss:
            break
        best, best_loss = C, loss
    return best


def _fit(X: Any, on: np.ndarray, C: float, start: np.ndarray | None = None) -> np.ndarray:
    """Return the weights, followed by the intercept."""
    model = LogisticRegression(C=float(C), max_iter=_MAX_ITER, warm_start=True)
    if start is not None:
        model.coef_, model.intercept_ = start[np.newaxis, :-1].copy(), start[-1:].copy()
    with warnings.catch_warnings():
        # With a weak penalty, full convergence of the weights does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, on)
    return np.append(model.coef_.ravel(), model.intercept_)
