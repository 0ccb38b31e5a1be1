"""BRsvm: one support vector machine per label (Boutell et al., 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np

from imcc._array.device import one_thread
from imcc._utils.validation import Features, draw_seed
from imcc.baselines._base import BaselineClassifier
from imcc.baselines._svm import KernelRows, check_svm, train_labels


class BinaryRelevanceSVM(BaselineClassifier):
    """Binary relevance: one linear support vector machine (libsvm) per label.

    The labels are trained independently.  For each label, with y_i in {-1, +1}::

        min_{w, b}  1/2 |w|^2 + C sum_i max(0, 1 - y_i (x_i w + b))

    Parameters
    ----------
    C : float, default=1.0
        Weight of the training errors, > 0.
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
        Feature weights.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    The n_samples x n_samples matrix of inner products is computed once for all labels and
    calibration folds, and discarded after training.  If it would exceed 1 GiB (more than 11,585
    rows), or if there are fewer than 32 dense features, each machine computes the entries it needs.
    For many rows this takes much longer.  The scores depend neither on ``n_jobs`` nor on the number
    of threads.

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
        scores: str = "probability",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.scores = scores
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_svm(self.C, self.scores)

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        seed = draw_seed(self.random_state)
        # One thread for matrix products, so that results do not depend on the number of threads.
        with one_thread():
            rows = KernelRows(X, weights)
            machines = train_labels(rows, on, self.C, self.scores, seed, self.n_jobs)
            self.coef_ = rows.coef(machines)
        self.intercept_ = np.array([machine.intercept for machine in machines])

    def _score_rows(self, X: Features) -> np.ndarray:
        return X @ self.coef_.T + self.intercept_
