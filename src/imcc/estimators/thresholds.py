"""TunedThresholds: a classifier with thresholds per label, selected by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imcc._math.stream.dask import predict_lazily
from imcc._math.stream.sources import is_dask
from imcc._math.thresholds import Criterion, check_criterion, choose_thresholds
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    check_count,
    check_probability_thresholds,
)
from imcc._utils.wrappers import layers
from imcc.estimators.base import HeldOutMixin, ScoringClassifierMixin
from imcc.estimators.cross_fit import (
    DEFAULT_THRESHOLDS,
    CrossFitMixin,
    label_probabilities,
    label_scores,
    scoring_method,
)


def _has_probabilities(tuned: TunedThresholds) -> bool:
    return hasattr(getattr(tuned, "estimator_", tuned.estimator), "predict_proba")


class TunedThresholds(CrossFitMixin, HeldOutMixin, ScoringClassifierMixin, BaseEstimator):
    """Classifier with one threshold per label, selected by cross-validation.

    The classifier is fitted on all rows.  The thresholds are selected on scores of held-out rows,
    where each fold is scored by a model that was fitted without it.  All possible thresholds of
    each label are tried.

    Parameters
    ----------
    estimator : classifier
        Classifier with ``decision_function`` or ``predict_proba``: of imcc, a pipeline, or any
        multi-label or binary classifier of scikit-learn.
    criterion : {"f1", "balanced_accuracy", "accuracy", "micro_f1"} or callable, default="f1"
        Criterion that the thresholds maximise; see :func:`choose_thresholds`.
    cv : int, splitter, iterable of (train, test), "prefit" or "held_out", default=5
        As for :class:`imcc.IMCCClassifierCV`; each row must be held out exactly once.  A search
        runs once, on all rows, and its best setting is fitted in the folds.  With "prefit",
        ``estimator`` must already be fitted, and only the thresholds are selected.  Use other rows
        than those that the estimator was trained on.  "held_out" uses the held-out scores that the
        estimator computes during ``fit``, without further fits; it needs
        :class:`imcc.KernelEnsembleClassifier` or another estimator with ``fit_held_out``.
    min_support : int, default=5
        Labels that fewer training rows have, or do not have, keep the default threshold.  The best
        threshold of very few scores does not generalise.  With ``sample_weight``, the weights of
        the rows are summed instead of counting them.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel.

    Attributes
    ----------
    estimator_ : classifier
        The classifier fitted on all rows, or ``estimator`` itself with ``cv="prefit"``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted if its score is at least its threshold.  Scores are values of
        ``decision_function``, or probabilities if the classifier has only ``predict_proba``.  For a
        calibrated classifier they are log-odds; ``scipy.special.expit`` converts its thresholds to
        probabilities.  Labels with less than ``min_support`` rows keep the default: 0, or 0.5 for
        probabilities.
    cv_results_ : dict of ndarray
        Results per label: ``threshold``, ``value`` and ``default_value`` (the criterion on the
        held-out scores with the selected and the default threshold), ``support`` (number of rows
        with the label, or the sum of their weights, which is compared with ``min_support``) and
        ``tuned`` (False if the default was kept).  The values are slightly optimistic, since the
        thresholds were selected on the same scores.
    best_score_, default_score_ : float
        Mean of ``value`` and ``default_value`` over the tuned labels, or the micro-F1.
    held_out_proba_, held_out_labels_ : ndarray of shape (n_samples, n_labels)
        Those of the classifier inside, if it keeps them; see
        :class:`imcc.KernelEnsembleClassifier`.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    See Also
    --------
    MultilabelCalibrator : Calibrated probabilities.
    choose_thresholds : Selects thresholds on given scores.

    Notes
    -----
    ``decision_function`` returns the scores of the classifier unchanged, since thresholds do not
    change the ranking of the labels.  Hence ``predict`` is not ``decision_function(X) >= 0``.

    A target with more than two classes is not supported, because the class with the highest score
    is predicted there.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.metrics import f1_score
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import TunedThresholds
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=1, random_state=0)
    >>> tuned = TunedThresholds(IMCCClassifier(n_clusters=8, random_state=0)).fit(X[:300], Y[:300])
    >>> tuned.thresholds_.shape
    (6,)
    >>> plain = tuned.predict(X[300:], thresholds=0)
    >>> better = tuned.predict(X[300:])
    >>> f1_score(Y[300:], better, average="macro") > f1_score(Y[300:], plain, average="macro")
    True
    """

    _cv_words = ("prefit", "held_out")
    _multiclass = False

    def __init__(
        self,
        estimator: Any,
        *,
        criterion: str | Criterion = "f1",
        cv: Any = 5,
        min_support: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.cv = cv
        self.min_support = min_support
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> TunedThresholds:
        """Fit the classifier on all rows, and select the thresholds on held-out scores.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; a set or list of labels per row; or a vector
            of at most two classes.  NaN in a dense indicator matrix is an unknown label: the row is
            ignored for the threshold of this label, and the classifier must support it, as
            :class:`imcc.IMCCClassifier` does.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0, passed to the classifier, which must support them, and used in the
            criterion.  Rows of weight 0 are removed.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as for :meth:`imcc.IMCCClassifierCV.fit`; also passed to the
            classifier if it holds out rows itself.  Not allowed with ``cv="prefit"``.

        Returns
        -------
        self : TunedThresholds
            The fitted classifier.
        """
        check_criterion(self.criterion)
        check_count("min_support", self.min_support)
        target, scores, weights = self._fit_estimator(X, y, sample_weight, groups)
        default = DEFAULT_THRESHOLDS[scoring_method(self.estimator_)]
        on = target.signs > 0
        chosen = choose_thresholds(
            on if target.known is None else np.where(target.known, on, np.nan),
            scores,
            self.criterion,
            default=default,
            min_support=self.min_support,
            sample_weight=weights,
        )
        self._remember_target(target)
        self.thresholds_ = chosen.thresholds
        self.best_score_, self.default_score_ = chosen.overall, chosen.default_overall
        self.cv_results_ = {
            "threshold": chosen.thresholds,
            "value": chosen.values,
            "default_value": chosen.default_values,
            "support": on.sum(axis=0) if weights is None else weights @ on,
            "tuned": chosen.tuned,
        }
        return self

    def predict(
        self, X: Any, thresholds: Any = None, *, probability_thresholds: Any = None
    ) -> np.ndarray:
        """Predict the labels of each row with the selected thresholds.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.
        thresholds : float or array-like of shape (n_labels,), default=None
            Thresholds to use instead of ``thresholds_``, on the same scores.  0 is the classifier
            without tuning (0.5 if it has only ``predict_proba``).
        probability_thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose probability is at least the threshold, instead of using
            ``thresholds_``.  Needs a classifier with ``predict_proba``; pass only one of the two.

        Returns
        -------
        ndarray of shape (n_samples, n_labels), or (n_samples,) for a 1-D training target
            1 for predicted labels, otherwise 0; or the predicted classes.
        """
        check_is_fitted(self)
        if probability_thresholds is not None:
            return self._predict_by_probability(X, thresholds, probability_thresholds)
        return super().predict(X, self.thresholds_ if thresholds is None else thresholds)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray
            The result of ``predict_proba`` of ``estimator_``.
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def _predict_by_probability(self, X: Any, thresholds: Any, limits: Any) -> np.ndarray:
        name = "probability_thresholds"
        if thresholds is not None:
            raise InvalidArgumentError(name, "replaces thresholds: pass only one of the two")
        if not _has_probabilities(self):
            raise InvalidArgumentError(
                name,
                f"needs predict_proba, which {type(self.estimator_).__name__} does not have: wrap "
                "the classifier in a MultilabelCalibrator, or pass scores as thresholds",
            )
        if is_dask(X):
            return predict_lazily(self, "predict", X, probability_thresholds=limits)
        count = len(self.thresholds_)
        chances = label_probabilities(self.estimator_, X, count)
        chances = chances[:, 0] if self.target_kind_ == "binary" else chances
        return self._predict_at(chances, check_probability_thresholds(limits, count))

    def _scores(self, X: Any) -> np.ndarray:
        return label_scores(self.estimator_, X, len(self.thresholds_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.classifier_tags.multi_class = False
        return tags


def decision_thresholds(model: Any, n_labels: int) -> np.ndarray:
    """Return the thresholds that a fitted model predicts with, on its scores.

    Parameters
    ----------
    model : fitted classifier
        :class:`TunedThresholds`, a pipeline or search around it, or any other classifier.
    n_labels : int
        Number of labels.

    Returns
    -------
    ndarray of shape (n_labels,)
        ``thresholds_`` if thresholds were tuned; otherwise 0, or 0.5 for classifiers that have only
        ``predict_proba``.

    See Also
    --------
    label_scores : The scores that the thresholds apply to.
    """
    for layer in layers(model):
        if isinstance(layer, TunedThresholds):
            return np.asarray(layer.thresholds_, dtype=np.float64)
        # Other wrappers predict at the default threshold, whatever they contain.
        passes_on = isinstance(layer, Pipeline) or hasattr(layer, "best_estimator_")
        if not passes_on and not getattr(layer, "_predicts_as_inside", False):
            break
    return np.full(n_labels, DEFAULT_THRESHOLDS[scoring_method(model)])
