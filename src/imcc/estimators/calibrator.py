"""MultilabelCalibrator: calibrated probabilities for any multi-label classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from imcc._math.score_maps import METHODS, fit_score_maps
from imcc._utils.validation import check_choice, check_count
from imcc.estimators.base import LogOddsClassifierMixin
from imcc.estimators.cross_fit import CrossFitMixin, label_scores, scoring_method

# Probabilities are clipped to this distance from 0 and 1 before their log-odds are calibrated;
# about the resolution of float32, in which many classifiers compute.
_CLIP = 1e-7


class MultilabelCalibrator(CrossFitMixin, LogOddsClassifierMixin, BaseEstimator):
    r"""Calibrated probabilities for any multi-label classifier.

    Each row is scored by a model that was fitted without it (cross-fitting).  For each label j, a
    map from its score f to log-odds is fitted to these scores::

        log(p / (1 - p)) = a_j f + c_j,   a_j >= 0          (method="logistic")

    The slopes a_j are shrunk towards a common slope and the offsets c_j have a weak prior, so that
    rare, constant and perfectly separated labels have finite, plausible probabilities
    (:mod:`imcc._math.logistic`).  With ``method="isotonic"``, labels with enough rows get a
    non-decreasing, piecewise linear map instead.  The classifier is then fitted on all rows.

    Unlike scikit-learn's ``CalibratedClassifierCV``, it supports indicator matrices.

    Parameters
    ----------
    estimator : classifier
        Classifier with ``decision_function`` or ``predict_proba``: of imcc, a pipeline, or any
        multi-label, binary or multiclass classifier of scikit-learn.
    method : {"logistic", "isotonic"}, default="logistic"
        Type of the maps.  With "isotonic", labels that fewer than ``min_support`` rows have, or do
        not have, still get the logistic map; see ``methods_``.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        As for :class:`imcc.IMCCClassifierCV`; each row must be held out exactly once.  A search
        runs once, on all rows, and its best setting is fitted in the folds.  With "prefit",
        ``estimator`` must already be fitted, and only the maps are fitted.  Use other rows than
        those that the estimator was trained on.
    min_support : int, default=100
        Minimum number of rows with and without a label (or sum of their weights) for an isotonic
        map.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel.
    keep_held_out : bool, default=True
        Whether to keep ``held_out_proba_`` and ``held_out_labels_``, as for
        :class:`imcc.KernelEnsembleClassifier`.

    Attributes
    ----------
    estimator_ : classifier
        The classifier fitted on all rows, or ``estimator`` itself with ``cv="prefit"``.
    maps_ : ScoreMaps
        The maps from scores to log-odds.
    slopes_, offsets_ : ndarray of shape (n_labels,)
        a and c of the logistic maps.
    methods_ : ndarray of str of shape (n_labels,)
        Type of the map per label, "logistic" or "isotonic".
    held_out_proba_ : ndarray of float32, shape (n_samples, n_labels)
        The calibrated probabilities of the scores that the maps were fitted to; NaN in rows of
        weight 0.  Slightly optimistic, since the maps have seen them.  Only with ``keep_held_out``.
    held_out_labels_ : ndarray of int8, shape (n_samples, n_labels)
        The labels of these rows: 1, 0, or -1 where unknown.  Only with ``keep_held_out``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    See Also
    --------
    TunedThresholds : Selects a threshold per label.
    imcc.inspection.diagnose_probabilities : Evaluates probabilities.

    Notes
    -----
    Calibration can also improve the ranking of the labels of a row, which needs scores that are
    comparable between labels.  Log-odds are, whereas least-squares scores of rare labels are all
    close to -1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import MultilabelCalibrator
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = MultilabelCalibrator(IMCCClassifier(n_clusters=8, random_state=0))
    >>> clf.fit(X[:150], Y[:150]).predict_proba(X[150:152]).round(2)
    array([[0.23, 0.33, 0.13, 0.96],
           [0.89, 0.62, 0.7 , 0.18]])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "logistic",
        cv: Any = 5,
        min_support: int = 100,
        n_jobs: int | None = None,
        keep_held_out: bool = True,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.min_support = min_support
        self.n_jobs = n_jobs
        self.keep_held_out = keep_held_out

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> MultilabelCalibrator:
        """Fit the classifier on all rows, and the maps to scores of held-out rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels) or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; a set or list of labels per row; or one class
            per row.  NaN in a dense indicator matrix is an unknown label: the maps ignore it, and
            the classifier must support it, as :class:`imcc.IMCCClassifier` does.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0, passed to the classifier, which must support them, and used for the
            maps.  Rows of weight 0 are removed.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as for :meth:`imcc.IMCCClassifierCV.fit`; also passed to the
            classifier if it holds out rows itself.  Not allowed with ``cv="prefit"``.

        Returns
        -------
        self : MultilabelCalibrator
            The fitted classifier.
        """
        check_choice("method", self.method, METHODS)
        check_count("min_support", self.min_support)
        target, scores, weights = self._fit_estimator(X, y, sample_weight, groups)
        scores = _comparable(self.estimator_, scores)
        maps = fit_score_maps(
            scores,
            target.signs > 0,
            self.method,
            min_support=self.min_support,
            sample_weight=weights,
            known=target.known,
        )
        self.maps_ = maps
        self.slopes_ = np.asarray(maps.logistic.slope)
        self.offsets_ = np.asarray(maps.logistic.offset)
        self.methods_ = np.array(
            ["isotonic" if j in maps.isotonic else "logistic" for j in range(target.signs.shape[1])]
        )
        self._remember_target(target)
        self._keep_held_out(maps.log_odds(scores), target, self.keep_held_out)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        scores = label_scores(self.estimator_, X, len(self.slopes_))
        return self.maps_.log_odds(_comparable(self.estimator_, scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _comparable(estimator: Any, scores: np.ndarray) -> np.ndarray:
    """Return unbounded scores: log-odds for probabilities, other scores unchanged."""
    if scoring_method(estimator) == "predict_proba":
        return logit(np.clip(scores, _CLIP, 1 - _CLIP))
    return scores
