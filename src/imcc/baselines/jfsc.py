"""JFSC: joint feature selection and classification (Huang et al., 2018)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from imcc._utils.validation import Features
from imcc.baselines._proximal import Problem, Weights
from imcc.baselines._sparse_linear import SparseLinearClassifier


class JFSC(SparseLinearClassifier):
    """LLSF with Fisher's criterion: features that separate a label's classes are favoured.

    ::

        min_W  1/2 |X W - Y|^2 + alpha/2 tr(W R W^T) + beta |W|_1
               + gamma/2 sum_k w_k^T S_k w_k

    with Y, R and the column of ones as for :class:`LLSF`.  S_k is diagonal; for label k with P
    positive and N negative rows and feature i::

        S_k(i, i) = scatter of the positives + (P / N) scatter of the negatives
                    - P (mean of the positives - mean of the negatives)^2

    where a scatter is the sum of squared differences from the mean of the class.  It is negative
    for features that separate the classes, whose weights it lets grow.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the coupling of the labels, >= 0.
    beta : float, default=0.1
        Weight of the l1 norm, >= 0: the larger, the fewer features.
    gamma : float, default=0.01
        Weight of Fisher's criterion, >= 0; with 0 this is LLSF.
    eta : float, default=1.0
        Ridge of the starting point (X^T X + eta I)^-1 X^T Y, > 0.
    unit_rows : bool, default=False
        Whether every row is divided by its Euclidean length first, in ``fit`` and for scores, as
        the authors' program does.
    fit_intercept : bool, default=True
        Whether X has a column of ones; the authors' program has none.
    max_iter : int, default=1000
        Iterations at most; a warning is given when they are used up.
    tol : float, default=1e-4
        Precision to which the conditions of optimality are to hold, relative to ``max |X^T Y|``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
    intercept_ : ndarray of shape (n_labels,)
        Weight of the column of ones, 0 without it; the scores are
        ``X @ coef_.T + intercept_ - 0.5``, with the rows scaled if ``unit_rows``.  A label that
        is on in all training rows or in none has no other weight, and the score +1/2 or -1/2.
    n_iter_ : int
    objectives_ : ndarray of shape (n_steps + 1,)
        The objective at the start and after each iteration; it never rises.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Raises
    ------
    UnboundedError
        A ValueError, from ``fit``: R and S_k have negative curvature, so for a large alpha or gamma
        the objective may fall for ever.  Nothing is returned then.

    See Also
    --------
    JFSCCV : Chooses the parameters by cross-validation.

    Notes
    -----
    The publication measures the errors by the l2,1 norm, ``sum_i |x_i W - y_i|``, which forgives
    single rows.  Here it is the squared norm: the problem without Fisher's term is then LLSF
    itself, what the two gain from each other can be separated, the sums over the rows are made
    once for all settings (the l2,1 norm reweights the rows in every iteration), and labels in
    {0, 1} have no outliers to forgive.

    The authors' program stops after 50 iterations and gives a model also where the objective is
    unbounded below.  On medical (the first of the paper's splits, raw rows, no column of ones,
    alpha = 2^-6, beta = 2^-2, gamma = 2^-3) its steps lead to an average precision of .874 after 50
    iterations, .42 after 500 and .18 after 1000, when the largest weight is 2 10^10: the first
    number is not that of a minimum but of where the steps were stopped.  Here such a setting is an
    ``UnboundedError`` if the objective is seen to fall without end within ``max_iter`` iterations;
    with ``max_iter=50`` there is a model (.874) and a warning.  With ``unit_rows=True`` the
    iterations end in a local minimum, of average precision .877.

    References
    ----------
    .. [1] J. Huang, G. Li, Q. Huang, X. Wu. "Joint feature selection and classification for
       multilabel learning." IEEE Transactions on Cybernetics 48, 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import JFSC
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> JFSC(beta=10.0).fit(X, Y).predict(X).shape
    (100, 3)
    """

    _bounds: ClassVar = {
        **{name: {"at_least": 0} for name in ("alpha", "beta", "gamma")},
        "eta": {"above": 0},
    }

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 0.1,
        gamma: float = 0.01,
        eta: float = 1.0,
        *,
        unit_rows: bool = False,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.eta = eta
        self.unit_rows = unit_rows
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _weights(self) -> Weights:
        return Weights(self._checked("alpha"), self._checked("beta"), self._checked("gamma"))

    def _start_ridge(self) -> float:
        return self._checked("eta")

    @staticmethod
    def problem(
        X: Features,
        on: np.ndarray,
        fit_intercept: bool,
        sample_weight: np.ndarray | None = None,
    ) -> Problem:
        """Return the sums over the rows that all settings share."""
        scatter = fisher_scatter(X, on, sample_weight)
        return Problem.of(X, on, scatter, fit_intercept, sample_weight)


def fisher_scatter(
    X: Features, on: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return S_k(i, i) for every feature i and label k; 0 for a label with a single class.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    on : ndarray of bool, shape (n_samples, q)
    sample_weight : ndarray of shape (n_samples,), optional
        How often each row counts.

    Returns
    -------
    ndarray of shape (n_features, q)
    """
    X = X.astype(np.float64, copy=False)
    if not hasattr(X, "multiply"):
        # The scatters do not change when all rows are moved; near the mean they keep their digits.
        X = X - X.mean(axis=0)
    squares = X.multiply(X).tocsr() if hasattr(X, "multiply") else X * X
    labels, others = on.astype(np.float64), (~on).astype(np.float64)
    if sample_weight is not None:
        labels, others = labels * sample_weight[:, None], others * sample_weight[:, None]
    positives, negatives = labels.sum(axis=0), others.sum(axis=0)
    both = (positives > 0) & (negatives > 0)
    means, scatters = [], []
    for members, count in ((labels, positives), (others, negatives)):
        mean = (X.T @ members) / np.where(count > 0, count, 1.0)
        means.append(mean)
        scatters.append(np.maximum(squares.T @ members - count * mean**2, 0))
    ratio = positives / np.where(negatives > 0, negatives, 1.0)
    scatter = scatters[0] + ratio * scatters[1] - positives * (means[0] - means[1]) ** 2
    return np.where(both, scatter, 0.0)
