"""BRsvm: one support vector machine for each label (Boutell et al., 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel
from threadpoolctl import threadpool_limits

from imcc._utils.validation import Features, check_choice, check_number, draw_seed
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._kernel_rows import KernelRows, rbf_margins
from imcc.baselines._svm import check_svm, train_labels

KERNELS = ("linear", "rbf")


class BinaryRelevanceSVM(BaselineClassifier):
    """One binary support vector machine (libsvm) for each label, each on its own.

    For label k, with y_i in {-1, +1}::

        min_{w, b}  1/2 |w|^2 + C sum_i max(0, 1 - y_i (phi(x_i) w + b))

    Parameters
    ----------
    C : float, default=1.0
        Weight of the training errors, > 0.
    kernel : {"linear", "rbf"}, default="linear"
    gamma : "scale" or float, default="scale"
        The rbf kernel is ``exp(-gamma |x - x'|^2)``; "scale" is 1 / (n_features * variance of X).
    scores : {"probability", "margin"}, default="probability"
        What ``decision_function`` gives: the log-odds of Platt's probability, which can be compared
        across labels, or the margins as they are.  Log-odds cost five more machines per label.
        ``predict`` follows the scores: where log-odds are used it cuts at probability 1/2.
    n_jobs : int or None, default=None
        Machines trained at the same time, through joblib.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds behind the probabilities.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights (linear kernel).
    dual_coef_ : ndarray of shape (n_samples, n_labels)
        Weights of the training rows (rbf kernel).
    intercept_ : ndarray of shape (n_labels,)
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    All machines read from one kernel matrix, n_samples x n_samples, which is computed once for
    all labels and calibration folds; it is not kept.  Where it would have more than 1 GiB (11,585
    rows), each machine computes what it needs, which takes many times as long.  The scores do not
    depend on ``n_jobs`` nor on the number of threads.

    A label that is on in all training rows or in none gets the same score everywhere: the margin
    +1 or -1, or the log-odds of its smoothed share.

    Weights of rows multiply C, and count in Platt's sigmoid; a weight of 2 is two rows, for given
    folds.

    References
    ----------
    .. [1] M. Boutell, J. Luo, X. Shen, C. Brown. "Learning multi-label scene classification."
       Pattern Recognition 37, 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import BinaryRelevanceSVM
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> BinaryRelevanceSVM(random_state=0).fit(X, Y).decision_function(X).shape
    (100, 3)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: str | float = "scale",
        scores: str = "probability",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.scores = scores
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_svm(self.C, self.scores)
        check_choice("kernel", self.kernel, KERNELS)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ["scale"])
        else:
            check_number("gamma", self.gamma, above=0)
        if self.kernel == "linear" and self.gamma != "scale":
            raise ValueError(
                f"kernel='linear' has no gamma: leave gamma='scale', got {self.gamma!r}"
            )

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        seed = draw_seed(self.random_state)
        # libsvm releases the interpreter's lock: threads share the rows, processes would copy them.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        gamma = _rbf_gamma(self.gamma, X, weights) if self.kernel == "rbf" else None
        # With one thread for products, the last digits do not depend on how many there could be.
        with threadpool_limits(1):
            rows = KernelRows(X, gamma, weights)
            machines = train_labels(rows, on, self.C, self.scores, seed, parallel)
            intercept = np.array([machine.intercept for machine in machines])
            coef = rows.coef(machines) if gamma is None else rows.dense(machines)
        for name in ("coef_", "dual_coef_", "_rows", "_gamma"):
            self.__dict__.pop(name, None)
        self.intercept_ = intercept
        if gamma is None:
            self.coef_ = coef
        else:
            self.dual_coef_, self._rows, self._gamma = coef, X, gamma

    def _score_rows(self, X: Features) -> np.ndarray:
        if hasattr(self, "coef_"):
            return X @ self.coef_.T + self.intercept_
        return rbf_margins(X, self._rows, self._gamma, self.dual_coef_) + self.intercept_


def _rbf_gamma(gamma: str | float, X: Features, weights: np.ndarray | None = None) -> float:
    """Return scikit-learn's "scale": 1 / (n_features * variance), or 1 where nothing varies."""
    if not isinstance(gamma, str):
        return float(gamma)
    if weights is not None:
        squares = X.multiply(X).tocsr() if hasattr(X, "multiply") else X * X
        total = weights.sum() * X.shape[1]
        variance = float((weights @ squares).sum() / total - ((weights @ X).sum() / total) ** 2)
        return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
    mean_of_squares = float(X.multiply(X).mean() if hasattr(X, "multiply") else (X * X).mean())
    variance = mean_of_squares - float(X.mean()) ** 2
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
