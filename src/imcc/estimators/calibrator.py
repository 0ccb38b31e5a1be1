"""MultilabelCalibrator: calibrated probabilities for any multi-label classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from imcc._math.score_maps import METHODS, fit_score_maps
from imcc._math.search.folds import make_folds
from imcc._utils.validation import check_choice, check_count, encode_target
from imcc.estimators.base import LogOddsClassifierMixin
from imcc.estimators.cross_fit import (
    Given,
    check_each_once,
    check_known_classes,
    fit_and_cross_fit,
    label_scores,
    scoring_method,
)

# Probabilities are clipped to this distance from 0 and 1 before their log-odds are calibrated;
# about the resolution of float32, in which many classifiers compute.
_CLIP = 1e-7


class MultilabelCalibrator(LogOddsClassifierMixin, MetaEstimatorMixin, BaseEstimator):
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
        As for :class:`imcc.IMCCClassifierCV`; each row must be held out exactly once.  With
        "prefit", ``estimator`` must already be fitted, and only the maps are fitted.  Use other
        rows than those that the estimator was trained on.
    min_support : int, default=100
        Minimum number of rows with and without a label (or sum of their weights) for an isotonic
        map.
    nested : bool, default=False
        For an estimator that searches its parameters.  False searches once, on all rows, and scores
        the folds with the selected setting; True searches again in each fold.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel.

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
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    See Also
    --------
    TunedThresholds : Selects a threshold per label.
    cross_fit_probabilities : Probabilities of held-out rows, to evaluate the calibration.

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

    _uses_groups = True

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "logistic",
        cv: Any = 5,
        min_support: int = 100,
        nested: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.min_support = min_support
        self.nested = nested
        self.n_jobs = n_jobs

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
        if not isinstance(self.nested, (bool, np.bool_)):
            raise ValueError(f"nested must be True or False, got {self.nested!r}")
        name = type(self).__name__
        given = Given.of(X, y, sample_weight, groups, self.cv, name, unknown=True)
        X, y, target, weights = given.X, given.y, given.target, given.sample_weight
        n_labels = target.signs.shape[1]
        if isinstance(self.cv, str):
            check_choice("cv", self.cv, ("prefit",))
            check_is_fitted(self.estimator)
            fitted = self.estimator
            check_known_classes(fitted, target)
            scores = label_scores(fitted, X, n_labels)
        else:
            fitted, scores = fit_and_cross_fit(
                self.estimator, given, nested=self.nested, n_jobs=self.n_jobs
            )
        maps = fit_score_maps(
            comparable(fitted, scores),
            target.signs > 0,
            self.method,
            min_support=self.min_support,
            sample_weight=weights,
            known=target.known,
        )
        self.estimator_ = fitted
        self.maps_ = maps
        self.slopes_ = np.asarray(maps.logistic.slope)
        self.offsets_ = np.asarray(maps.logistic.offset)
        self.methods_ = np.array(
            ["isotonic" if j in maps.isotonic else "logistic" for j in range(n_labels)]
        )
        self._remember_target(target)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self

    def _scores(self, X: Any) -> np.ndarray:
        scores = label_scores(self.estimator_, X, len(self.slopes_))
        return self.maps_.log_odds(comparable(self.estimator_, scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def cross_fit_probabilities(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    method: str = "logistic",
    min_support: int = 100,
    cv: Any = 5,
    groups: Any = None,
) -> np.ndarray:
    """Compute cross-fitted probabilities of a fitted model, to evaluate its calibration.

    The rows are scored once.  The maps from the scores of a fold to probabilities are fitted to the
    scores of the other folds.  The result is as good as that of
    ``MultilabelCalibrator(estimator, cv="prefit")`` on new rows, or slightly worse, since the maps
    are fitted to fewer rows.

    Parameters
    ----------
    estimator : fitted classifier
        Multi-label classifier that was not trained on these rows.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to predict.
    y : array-like of shape (n_samples, n_labels)
        Their labels.  NaN in a dense matrix is an unknown label, which the maps ignore.
    method : {"logistic", "isotonic"}, default="logistic"
        As for :class:`MultilabelCalibrator`.
    min_support : int, default=100
        As for :class:`MultilabelCalibrator`.
    cv : int, splitter or iterable of (train, test), default=5
        Each row must be held out exactly once.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, passed to the splitter.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Probability of each label.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import cross_fit_probabilities
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0).fit(X[:150], Y[:150])
    >>> cross_fit_probabilities(clf, X[150:], Y[150:]).shape
    (50, 4)
    """
    check_choice("method", method, METHODS)
    check_count("min_support", min_support)
    check_is_fitted(estimator)
    target = encode_target(y, _num_samples(X), "cross_fit_probabilities", unknown=True)
    on, known = target.signs > 0, target.known
    scores = comparable(estimator, label_scores(estimator, X, on.shape[1]))
    folds = make_folds(cv, X, target, groups)
    check_each_once(folds, len(on))
    found = np.empty(on.shape)
    for fold in folds:
        train = fold.train
        maps = fit_score_maps(
            scores[train],
            on[train],
            method,
            min_support=min_support,
            known=None if known is None else known[train],
        )
        found[fold.test] = expit(maps.log_odds(scores[fold.test]))
    return found


def comparable(estimator: Any, scores: np.ndarray) -> np.ndarray:
    """Return unbounded scores: log-odds for probabilities, other scores unchanged."""
    if scoring_method(estimator) == "predict_proba":
        return logit(np.clip(scores, _CLIP, 1 - _CLIP))
    return scores
