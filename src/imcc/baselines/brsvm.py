"""BRsvm: one support vector machine for each label (Boutell et al., 2004)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from imcc._core.kernels import row_blocks
from imcc._utils.validation import Features, check_choice, check_number, draw_seed
from imcc.baselines._base import BaselineClassifier, is_constant
from imcc.baselines._platt import Sigmoid
from imcc.baselines._svm import cache_megabytes, calibration, check_svm, train_scored

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
        across labels, or the margins as they are.  Log-odds cost five more machines a label.
        ``predict`` follows the scores: where log-odds are used it cuts at probability 1/2.
    n_jobs : int or None, default=None
        Labels trained at the same time, through joblib.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds behind the probabilities.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights (linear kernel).
    dual_coef_ : ndarray of shape (n_rows, n_labels)
        Weights of the training rows (rbf kernel).
    intercept_ : ndarray of shape (n_labels,)
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    A label that is on in all training rows or in none gets the same score everywhere: the margin
    +1 or -1, or the log-odds of its smoothed share.

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

    def _train(self, X: Features, on: np.ndarray) -> None:
        for name in ("coef_", "dual_coef_", "_rows", "_gamma"):
            self.__dict__.pop(name, None)
        seed = draw_seed(self.random_state)
        # libsvm releases the interpreter's lock: threads share X, processes would copy it.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        if self.kernel == "linear":
            machines = parallel(
                delayed(train_scored)(X, labels, self.C, self.scores, seed) for labels in on.T
            )
            self.coef_ = np.array([machine.weights for machine in machines])
            self.intercept_ = np.array([machine.intercept for machine in machines])
            return
        self._rows, self._gamma = X, _rbf_gamma(self.gamma, X)
        duals = parallel(
            delayed(_train_rbf)(X, labels, self.C, self._gamma, self.scores, seed)
            for labels in on.T
        )
        self.dual_coef_ = np.column_stack([dual for dual, _ in duals])
        self.intercept_ = np.array([intercept for _, intercept in duals])

    def _score_rows(self, X: Features) -> np.ndarray:
        if hasattr(self, "coef_"):
            return X @ self.coef_.T + self.intercept_
        scores = np.tile(self.intercept_, (X.shape[0], 1))
        for block in row_blocks(X.shape[0], self._rows.shape[0]):
            scores[block] += rbf_kernel(X[block], self._rows, self._gamma) @ self.dual_coef_
        return scores


def _rbf_gamma(gamma: str | float, X: Features) -> float:
    """Return scikit-learn's "scale": 1 / (n_features * variance), or 1 where nothing varies."""
    if not isinstance(gamma, str):
        return float(gamma)
    mean_of_squares = float(X.multiply(X).mean() if hasattr(X, "multiply") else (X * X).mean())
    variance = mean_of_squares - float(X.mean()) ** 2
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


def _train_rbf(
    X: Features, on: np.ndarray, C: float, gamma: float, scores: str, seed: int
) -> tuple[np.ndarray, float]:
    """Return the weights of the training rows and the intercept of one label."""
    dual = np.zeros(X.shape[0])
    intercept = 1.0 if on[0] else -1.0
    if not is_constant(on):
        machine = SVC(C=C, gamma=gamma, cache_size=cache_megabytes(X)).fit(X, on)
        weights = machine.dual_coef_
        dual[machine.support_] = np.ravel(
            weights.toarray() if hasattr(weights, "toarray") else weights
        )
        intercept = float(machine.intercept_[0])
    if scores == "margin":
        return dual, intercept

    def train(rows: Features, labels: np.ndarray) -> Callable[[Features], np.ndarray]:
        return (
            SVC(C=C, gamma=gamma, cache_size=cache_megabytes(rows))
            .fit(rows, labels)
            .decision_function
        )

    sigmoid: Sigmoid = calibration(train, X, on, seed)
    return sigmoid.slope * dual, sigmoid.slope * intercept + sigmoid.offset
