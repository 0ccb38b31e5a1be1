"""MultilabelCalibrator: probabilities for any multi-label classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from imcc._search.folds import make_folds
from imcc._utils.validation import check_choice, check_count, encode_target
from imcc.calibration._cross_fit import (
    Given,
    check_each_once,
    check_known_classes,
    fit_and_cross_fit,
    label_scores,
    scoring_method,
)
from imcc.calibration._maps import METHODS, fit_score_maps
from imcc.estimators.base import LogOddsClassifierMixin

# Probabilities closer to 0 or 1 than this are taken to be this far from it before their log-odds
# are calibrated; one step of float32, in which many classifiers compute.
_CLIP = 1e-7


class MultilabelCalibrator(LogOddsClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Probabilities for any multi-label classifier that scores labels.

    The rows are scored by models that have not seen them (cross-fitting).  For each label j, a map
    from its score f to log-odds is fitted to these scores::

        log(p / (1 - p)) = a_j f + c_j,   a_j >= 0          (method="logistic")

    with the slopes a_j shrunk towards the slope that is common to all labels, and offsets with a
    weak prior, so that rare, constant and perfectly separated labels have finite, sensible
    probabilities (:mod:`imcc._core.logistic`); or a non-decreasing step function
    (method="isotonic") for labels with enough rows.  The classifier is then fitted on all rows.

    scikit-learn's ``CalibratedClassifierCV`` refuses label matrices.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function`` or ``predict_proba``: ours, a pipeline, or any multi-label,
        binary or multi-class classifier of scikit-learn.
    method : {"logistic", "isotonic"}, default="logistic"
        "isotonic" uses the logistic map for labels with fewer than ``min_support`` rows with or
        without the label; ``methods_`` says which label has which.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        As for :class:`imcc.IMCCClassifierCV`; each row is held out exactly once.  "prefit" takes
        ``estimator`` as it is, already fitted, and fits only the maps, to the rows given: these
        must be other rows than those it was trained on.
    min_support : int, default=100
        For method="isotonic"; see there.
    nested : bool, default=False
        For an estimator that searches its parameters: False searches once, on all rows, and scores
        the folds with the setting found; True searches again in every fold.
    n_jobs : int or None, default=None
        Folds computed at the same time.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all rows (or the one given, for cv="prefit").
    maps_ : ScoreMaps
        The maps from scores to log-odds.
    slopes_, offsets_ : ndarray of shape (n_labels,)
        a and c of the logistic maps.
    methods_ : ndarray of str of shape (n_labels,)
        "logistic" or "isotonic".
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    Calibration is not only about probabilities.  Least-squares scores of rare labels are squeezed
    together near -1; ranking the labels of a row needs scores that can be compared between labels,
    which log-odds can.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.calibration import MultilabelCalibrator
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
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> MultilabelCalibrator:
        """Fit the classifier on all rows, and the maps to scores of held-out rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels) or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.  NaN in a dense label
            matrix is a label that is not known: the maps leave it out, and the classifier must
            take it (:class:`imcc.IMCCClassifier` does).
        sample_weight : array-like of shape (n_samples,), optional
            Passed on to the classifier, which must take it, and used for the maps.  Rows of weight
            0 are left out.
        groups : array-like of shape (n_samples,), optional
            Passed on to the splitter.

        Returns
        -------
        self : MultilabelCalibrator
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
    """Return probabilities of rows for a model that is fitted already, to judge its calibration.

    The rows are scored once.  The maps that turn a fold's scores into probabilities are fitted to
    the scores of the other folds: what ``MultilabelCalibrator(estimator, cv="prefit")`` would give
    for rows that it has not seen, or a little worse.

    Parameters
    ----------
    estimator : fitted classifier
        Multi-label, not trained on these rows.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples, n_labels)
        NaN in a dense matrix is a label that is not known: the maps leave it out.
    method, min_support
        As for :class:`MultilabelCalibrator`.
    cv : int, splitter or iterable of (train, test), default=5
        Each row is held out exactly once.
    groups : array-like of shape (n_samples,), optional
        Passed on to the splitter.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.calibration import cross_fit_probabilities
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
    """Return scores on the whole line: probabilities become log-odds, others stay as they are."""
    if scoring_method(estimator) == "predict_proba":
        return logit(np.clip(scores, _CLIP, 1 - _CLIP))
    return scores
