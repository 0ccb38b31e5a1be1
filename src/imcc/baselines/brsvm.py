"""BRsvm: one support vector machine per label (Boutell et al., 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel

from imcc._array.threads import one_thread
from imcc._utils.validation import Features, check_choice, check_number, draw_seed
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._kernel_rows import KernelRows, rbf_margins
from imcc.baselines._svm import check_svm, train_labels

KERNELS = ("linear", "rbf")


class BinaryRelevanceSVM(BaselineClassifier):
    """Binary relevance: one support vector machine (libsvm) per label.

    The labels are trained independently.  For each label, with y_i in {-1, +1}::

        min_{w, b}  1/2 |w|^2 + C sum_i max(0, 1 - y_i (phi(x_i) w + b))

    Parameters
    ----------
    C : float, default=1.0
        Weight of the training errors, > 0.
    kernel : {"linear", "rbf"}, default="linear"
        Kernel of the machines.
    gamma : "scale" or float, default="scale"
        The rbf kernel is ``exp(-gamma |x - x'|^2)``; "scale" is 1 / (n_features * variance of X).
        Must be "scale" for the linear kernel.
    scores : {"probability", "margin"}, default="probability"
        What ``decision_function`` returns: the log-odds of Platt's probabilities, which are
        comparable across labels, or the margins.  Log-odds require up to five additional machines
        per label.  ``predict`` thresholds these scores at 0; for log-odds, this is a probability of
        1/2.
    n_jobs : int or None, default=None
        Number of machines trained in parallel by joblib, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed for the calibration folds.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Feature weights; only for the linear kernel.
    dual_coef_ : ndarray of shape (n_samples, n_labels)
        Coefficients of the training rows; only for the rbf kernel.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    The n_samples x n_samples kernel matrix is computed once for all labels and calibration folds,
    and discarded after training.  If it would exceed 1 GiB (more than 11,585 rows), or if a linear
    kernel is used on fewer than 32 dense features, each machine computes the entries it needs.  For
    many rows this takes much longer.  The scores depend neither on ``n_jobs`` nor on the number of
    threads.

    The score of a constant label, which all training rows or none have, is the same for all rows:
    a margin of +1 or -1, or the log-odds of its smoothed relative frequency.

    Sample weights multiply C and are used when fitting Platt's sigmoid.

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
        # libsvm releases the GIL: threads share the rows, processes would copy them.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        gamma = _rbf_gamma(self.gamma, X, weights) if self.kernel == "rbf" else None
        # One thread for matrix products, so that results do not depend on the number of threads.
        with one_thread():
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
    """Return gamma; "scale" is 1 / (n_features * variance of X), or 1 if X is constant."""
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
