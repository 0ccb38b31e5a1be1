"""Extremely randomised trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from imcc_paper.methods._base import ScoredLabels, draw_seed, is_constant


class ExtraTreesBaseline(ScoredLabels):
    """scikit-learn's extra-trees, one forest for all labels.

    Not part of the paper's comparison.  The score of a label is the forest's estimated probability
    (the mean over the trees of the fraction of positive training rows in the leaf) minus 1/2.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    min_samples_leaf : int, default=1
        Minimum number of training rows in a leaf.
    n_jobs : int or None, default=None
        Number of trees grown in parallel, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees.

    Attributes
    ----------
    forest_ : ExtraTreesClassifier or None
        The fitted forest; None if every label is constant.

    Notes
    -----
    The score of a constant label, which all training rows or none have, is +1/2 or -1/2.

    References
    ----------
    .. [1] P. Geurts, D. Ernst, L. Wehenkel. "Extremely randomized trees." Machine Learning 63,
       2006.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc_paper.methods import ExtraTreesBaseline
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> ExtraTreesBaseline(n_estimators=20, random_state=0).fit(X, Y).predict(X).shape
    (100, 3)
    """

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        min_samples_leaf: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _train(self, X: Any, on: np.ndarray) -> None:
        constant = np.array([is_constant(labels) for labels in on.T])
        self._learned = np.flatnonzero(~constant)
        self._constant_scores = np.where(on[0], 0.5, -0.5)
        self.forest_ = None
        if len(self._learned):
            labels = on[:, self._learned]
            self.forest_ = ExtraTreesClassifier(
                self.n_estimators,
                min_samples_leaf=self.min_samples_leaf,
                n_jobs=self.n_jobs,
                random_state=draw_seed(self.random_state),
            )
            labels = labels.ravel() if labels.shape[1] == 1 else labels
            self.forest_.fit(X, labels)

    def _score_rows(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant_scores, (X.shape[0], 1))
        if self.forest_ is not None:
            votes = self.forest_.predict_proba(X)
            votes = [votes] if len(self._learned) == 1 else votes
            scores[:, self._learned] = np.column_stack([vote[:, 1] for vote in votes]) - 0.5
        return scores
