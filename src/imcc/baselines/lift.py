"""LIFT: label-specific features from clusters (Zhang and Wu, TPAMI 2015)."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from imcc._array.device import one_thread
from imcc._utils.validation import Features, check_number, draw_seed
from imcc.baselines._base import BaselineClassifier, is_constant
from imcc.baselines._svm import KernelRows, LinearScore, check_svm, train_labels

# Number of clusters of a constant label, as in the authors' program.
ONE_CLASS_CLUSTERS = 50
# A dense X with at most this fraction of nonzero entries is clustered as a sparse matrix.
MAX_DENSITY = 0.1


class LIFT(BaselineClassifier):
    """Multi-label learning with label-specific features.

    For label k with P_k positive and N_k negative rows, k-means clusters both groups into ::

        m_k = ceil(ratio * min(P_k, N_k))

    clusters each.  The features of label k are the Euclidean distances of a row to the 2 m_k
    centres, on which a linear support vector machine is trained.

    Parameters
    ----------
    ratio : float, default=0.1
        Number of clusters per row of the rarer class, in (0, 1].
    C : float, default=1.0
        Weight of the machines' training errors, > 0.
    scores : {"probability", "margin"}, default="probability"
        What ``decision_function`` returns: the log-odds of Platt's probabilities, which are
        comparable across labels (the original ranks by the probabilities, which gives the same
        order), or the margins.
    n_jobs : int or None, default=None
        Number of labels trained in parallel by joblib.
    random_state : int, RandomState instance or None, default=None
        Seed for the clusterings and the calibration folds.

    Attributes
    ----------
    cluster_centers_ : list of ndarray of shape (2 m_k, n_features)
        Per label, the centres of its positive rows, followed by those of its negative rows.
    machines_ : list of LinearScore
        Per label, the weights of the distances and the intercept.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    A dense X with at most 10 % nonzero entries is clustered as a sparse matrix, which is much
    faster.  The scores depend neither on ``n_jobs`` nor on the number of threads.

    If a group has fewer distinct rows than m_k, it has one cluster per distinct row.  For a
    constant label, which all training rows or none have, all rows are clustered into at most 50
    clusters, as in the authors' program; its score is the same for all rows.

    References
    ----------
    .. [1] M.-L. Zhang, L. Wu. "LIFT: Multi-label learning with label-specific features." IEEE
       Transactions on Pattern Analysis and Machine Intelligence 37, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import LIFT
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> lift = LIFT(random_state=0).fit(X, Y)
    >>> Y.sum(axis=0), [len(centers) for centers in lift.cluster_centers_]
    (array([52, 68, 53]), [10, 8, 10])
    """

    def __init__(
        self,
        ratio: float = 0.1,
        *,
        C: float = 1.0,
        scores: str = "probability",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.ratio = ratio
        self.C = C
        self.scores = scores
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("ratio", self.ratio, above=0, at_most=1)
        check_svm(self.C, self.scores)

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        seed = draw_seed(self.random_state)
        identity = row_identities(X)
        if not sp.issparse(X) and np.count_nonzero(X) <= MAX_DENSITY * X.size:
            X = sp.csr_matrix(X)  # on which k-means is faster
        trained = Parallel(n_jobs=self.n_jobs)(
            delayed(_train_label)(
                X, labels, identity, self.ratio, self.C, self.scores, seed + k, weights
            )
            for k, labels in enumerate(on.T)
        )
        self.cluster_centers_ = [centers for centers, _ in trained]
        self.machines_ = [machine for _, machine in trained]

    def _score_rows(self, X: Features) -> np.ndarray:
        scores = [
            machine(euclidean_distances(X, centers))
            for centers, machine in zip(self.cluster_centers_, self.machines_, strict=True)
        ]
        return np.column_stack(scores)


def _train_label(
    X: Features,
    on: np.ndarray,
    identity: np.ndarray,
    ratio: float,
    C: float,
    scores: str,
    seed: int,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, LinearScore]:
    # One thread for sums, so that results do not depend on the number of threads.
    with one_thread():
        centers = label_centers(X, on, identity, ratio, seed, weights)
        rows = KernelRows(euclidean_distances(X, centers), weights=weights)
        machines = train_labels(rows, on[:, np.newaxis], C, scores, seed)
        return centers, LinearScore(rows.coef(machines)[0], machines[0].intercept)


def label_centers(
    X: Features,
    on: np.ndarray,
    identity: np.ndarray,
    ratio: float,
    seed: int,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the centres of a label's positive rows and of its negative rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    on : ndarray of bool, shape (n_samples,)
    identity : ndarray of shape (n_samples,)
        Result of :func:`row_identities`.
    ratio : float
    seed : int
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, used by k-means and for the number of clusters.
    """
    each = np.ones(len(on)) if weights is None else weights
    if is_constant(on):
        groups, count = [np.ones(len(on), dtype=bool)], min(ONE_CLASS_CLUSTERS, len(on))
    else:
        groups = [on, ~on]
        # Rounded first: 0.1 * 30 is slightly above 3 and must not give a fourth cluster.
        count = max(1, ceil(round(ratio * min(each[on].sum(), each[~on].sum()), 9)))
    centers = []
    for rows in groups:
        # No more clusters than distinct rows.
        model = KMeans(min(count, len(np.unique(identity[rows]))), n_init=1, random_state=seed)
        of_rows = None if weights is None else weights[rows]
        centers.append(model.fit(X[rows], sample_weight=of_rows).cluster_centers_)
    return np.vstack(centers)


def row_identities(X: Features) -> np.ndarray:
    """Return a number per row, the same for equal rows."""
    if sp.issparse(X):
        X = X.sorted_indices()
        X.eliminate_zeros()
        parts = [slice(*X.indptr[i : i + 2]) for i in range(X.shape[0])]
        keys = [(X.indices[p].tobytes(), X.data[p].tobytes()) for p in parts]
    else:
        keys = [(row + 0.0).tobytes() for row in X]  # -0.0 is 0.0
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])
