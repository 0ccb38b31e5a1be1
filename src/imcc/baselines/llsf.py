"""LLSF: learning label-specific features (Huang et al., ICDM 2015 and TKDE 2016)."""

from __future__ import annotations

from typing import ClassVar

from imcc.baselines._sparse_linear import SparseLinearClassifier


class LLSF(SparseLinearClassifier):
    """Sparse linear model in which labels that occur together share features.

    LLSF minimises ::

        min_W  1/2 |X W - Y|^2 + alpha/2 tr(W R W^T) + beta |W|_1

    with Y in {0, 1}, R_jk = 1 - cosine(Y_j, Y_k), and a column of ones in X unless
    ``fit_intercept=False``.  The features specific to a label are those with a nonzero weight.  A
    label is predicted if x W is at least 1/2.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the coupling of the labels, >= 0.
    beta : float, default=0.1
        Weight of the l1 norm, >= 0; larger values select fewer features.
    gamma : float, default=1.0
        Ridge penalty of the starting point (X^T X + gamma I)^-1 X^T Y, > 0.  If the problem has a
        single minimum, it only affects the number of iterations.
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
        By ``fit``: R is not positive semidefinite, so for a large alpha the objective may be
        unbounded below and have no minimum.  A subclass of ``ValueError``.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If ``tol`` is not reached within ``max_iter`` iterations.

    See Also
    --------
    LLSFCV : LLSF with its parameters chosen by cross-validation.
    JFSC : LLSF with Fisher's criterion.

    Notes
    -----
    The solver is an accelerated proximal gradient method whose objective never increases; see
    :mod:`imcc.baselines._proximal`.

    References
    ----------
    .. [1] J. Huang, G. Li, Q. Huang, X. Wu. "Learning label-specific features and class-dependent
       labels for multi-label classification." IEEE Transactions on Knowledge and Data Engineering
       28, 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import LLSF
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> sparse = LLSF(beta=100.0).fit(X, Y)
    >>> int((sparse.coef_ == 0).sum()), int((LLSF(beta=0.0).fit(X, Y).coef_ == 0).sum())
    (51, 0)
    """

    _fisher = False
    _bounds: ClassVar = {"alpha": {"at_least": 0}, "beta": {"at_least": 0}, "gamma": {"above": 0}}

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 0.1,
        gamma: float = 1.0,
        *,
        unit_rows: bool = False,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.unit_rows = unit_rows
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
