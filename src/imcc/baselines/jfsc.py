"""JFSC: joint feature selection and classification (Huang et al., 2018)."""

from __future__ import annotations

from typing import ClassVar

from imcc.baselines._sparse_linear import SparseLinearClassifier


class JFSC(SparseLinearClassifier):
    """Joint feature selection and classification: LLSF with Fisher's criterion.

    Features that separate the two classes of a label are favoured::

        min_W  1/2 |X W - Y|^2 + alpha/2 tr(W R W^T) + beta |W|_1
               + gamma/2 sum_k w_k^T S_k w_k

    with Y, R and the column of ones as for :class:`LLSF`.  S_k is diagonal; for label k with P
    positive and N negative rows and feature i::

        S_k(i, i) = scatter of the positives + (P / N) scatter of the negatives
                    - P (mean of the positives - mean of the negatives)^2

    where the scatter is the sum of squared differences from the class mean.  S_k(i, i) is negative
    for features that separate the classes well, so their weights are not penalised.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the coupling of the labels, >= 0.
    beta : float, default=0.1
        Weight of the l1 norm, >= 0; larger values select fewer features.
    gamma : float, default=0.01
        Weight of Fisher's criterion, >= 0; with ``gamma=0``, the model is LLSF.
    eta : float, default=1.0
        Ridge penalty of the starting point (X^T X + eta I)^-1 X^T Y, > 0.
    unit_rows : bool, default=False
        Whether to divide every row by its Euclidean norm, in ``fit`` and when scoring, as the
        authors' program does.
    fit_intercept : bool, default=True
        Whether to append a column of ones to X; the authors' program does not.
    max_iter : int, default=1000
        Maximum number of iterations; a warning is given if they do not suffice.
    tol : float, default=1e-4
        Tolerance of the optimality conditions, relative to ``max |X^T Y|``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (n_labels,)
        Weight of the column of ones; 0 if ``fit_intercept=False``.  The scores are
        ``X @ coef_.T + intercept_ - 0.5``, for rows of unit norm if ``unit_rows=True``.  A constant
        label, which all training rows or none have, has ``coef_`` 0, ``intercept_`` 1 or 0 and thus
        the score +1/2 or -1/2.
    n_iter_ : int
        Number of iterations.
    objectives_ : ndarray of shape (n_iterations + 1,)
        The objective at the starting point and after each iteration; it never increases.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Raises
    ------
    UnboundedError
        By ``fit``: R and S_k have negative curvature, so for a large alpha or gamma the objective
        may be unbounded below and have no minimum.  A subclass of ``ValueError``.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If ``tol`` is not reached within ``max_iter`` iterations.

    See Also
    --------
    JFSCCV : JFSC with its parameters chosen by cross-validation.
    LLSF : The same without Fisher's criterion.

    Notes
    -----
    The publication uses the l2,1 norm of the errors, ``sum_i |x_i W - y_i|``, which is robust to
    outlying rows.  Here the squared norm is used: the problem without Fisher's term is then exactly
    LLSF, so the effect of that term can be isolated; the sums over the rows are computed once for
    all settings, whereas the l2,1 norm reweights the rows in every iteration; and labels in {0, 1}
    have no outliers.

    The authors' program stops after 50 iterations and returns a model even if the objective is
    unbounded below.  On medical (the first of the paper's splits, raw rows, no column of ones,
    alpha = 2^-6, beta = 2^-2, gamma = 2^-3), its average precision is .874 after 50
    iterations, .42 after 500 and .18 after 1000, when the largest weight is 2e10: the first value
    is not that of a minimum, but depends on the number of iterations.  Here, such a setting raises
    an ``UnboundedError`` if the objective is found to be unbounded within ``max_iter`` iterations;
    with ``max_iter=50``, a model (.874) is returned with a warning.  With ``unit_rows=True``, the
    iterations converge to a local minimum, with an average precision of .877.

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

    _fisher = True
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
