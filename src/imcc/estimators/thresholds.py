"""Classifiers with a threshold per label: the best ones, or those that promise something."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imcc._math.guarantees import check_promise, guarantee_thresholds
from imcc._math.thresholds import Criterion, check_criterion, choose_thresholds
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Target, check_count, check_share
from imcc._utils.wrappers import fit_with, layers
from imcc.estimators.base import HeldOutMixin, ScoringClassifierMixin
from imcc.estimators.cross_fit import (
    DEFAULT_THRESHOLDS,
    CrossFitMixin,
    check_same_classes,
    copy_features,
    deciding_method,
    label_scores,
    scoring_method,
    training_rows,
)


def _has_probabilities(tuned: ThresholdsMixin) -> bool:
    return hasattr(getattr(tuned, "estimator_", tuned.estimator), "predict_proba")


class ThresholdsMixin(ScoringClassifierMixin):
    """Mixin for classifiers that predict with another one, ``estimator_``, and ``thresholds_``."""

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, as_frame: bool = False) -> Any:
        """Return the probabilities of the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.
        as_frame : bool, default=False
            Whether to return a pandas data frame with the names of the labels.

        Returns
        -------
        ndarray
            The result of ``predict_proba`` of ``estimator_``.
        """
        check_is_fitted(self)
        if as_frame and self.target_kind_ == "multilabel":
            return self._in_frame(self._label_chances(X), X)
        found = self.estimator_.predict_proba(X)
        return self._in_frame(found, X) if as_frame else found

    def _label_chances(self, X: Any) -> np.ndarray:
        n_labels = len(self.thresholds_)
        chances = label_scores(self.estimator_, X, n_labels, method="predict_proba")
        return chances[:, 0] if self.target_kind_ == "binary" else chances

    def _scores(self, X: Any) -> np.ndarray:
        return label_scores(self.estimator_, X, len(self.thresholds_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.classifier_tags.multi_class = False
        return tags

    # Defined by subclasses.
    estimator: Any
    estimator_: Any
    thresholds_: np.ndarray


class TunedThresholds(CrossFitMixin, HeldOutMixin, ThresholdsMixin, BaseEstimator):
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
        A label is predicted if its probability is at least its threshold; for a classifier without
        ``predict_proba``, its score.  Labels with less than ``min_support`` rows keep the default:
        a probability of 0.5, or a score of 0.
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
    GuaranteedThresholds : Thresholds that promise a recall or precision.

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
        method = deciding_method(self.estimator)
        target, scores, weights = self._fit_estimator(X, y, sample_weight, groups, method)
        on = target.signs > 0
        chosen = choose_thresholds(
            _truth(target),
            scores,
            self.criterion,
            default=DEFAULT_THRESHOLDS[method],
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


def _truth(target: Target) -> np.ndarray:
    """Return an indicator matrix with NaN where a label is unknown."""
    on = target.signs > 0
    return on if target.known is None else np.where(target.known, on, np.nan)


class GuaranteedThresholds(ThresholdsMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier with thresholds that promise a recall or a precision on new rows.

    "At least 90 % of the true labels are found", or "at least 90 % of the predicted labels are
    right", with a confidence of 90 %.  A part of the rows is held out and chooses the thresholds by
    statistical tests, and nothing else; the classifier is fitted to the other rows.

    Parameters
    ----------
    estimator : classifier
        Classifier with ``decision_function`` or ``predict_proba``: of imcc, a pipeline, or any
        multi-label or binary classifier of scikit-learn.
    recall, precision, per, confidence
        What is promised, as for :func:`guarantee_thresholds`; pass either a recall or a precision.
    calibration : float or "prefit", default=0.3
        Share of the rows to hold out for the thresholds.  With "prefit", ``estimator`` must already
        be fitted, to other rows, and all rows choose the thresholds.
    random_state : int, RandomState instance or None, default=None
        Draws the rows to hold out.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, or ``estimator`` itself with ``calibration="prefit"``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted if its probability is at least its threshold; for a classifier without
        ``predict_proba``, its score.  Where no threshold can promise a recall, the label is always
        predicted (-inf); where none can promise a precision, never (inf).
    guaranteed_ : ndarray of bool of shape (n_labels,)
        False where no threshold could promise it.
    n_calibration_ : int
        Number of rows that chose the thresholds.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Warns
    -----
    NoGuaranteeWarning
        If no threshold can promise it for some label, or for all of them.

    See Also
    --------
    guarantee_thresholds : Chooses such thresholds on given scores; says what is assumed.
    TunedThresholds : Selects the best thresholds, without a promise.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.metrics import recall_score
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import GuaranteedThresholds
    >>> X, Y = make_multilabel_classification(900, n_classes=4, n_labels=1, random_state=0)
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0)
    >>> careful = GuaranteedThresholds(clf, recall=0.9, random_state=0).fit(X[:600], Y[:600])
    >>> recall_score(Y[600:], careful.predict(X[600:]), average="micro") > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        recall: float | None = None,
        precision: float | None = None,
        per: str = "label",
        confidence: float = 0.9,
        calibration: float | str = 0.3,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recall = recall
        self.precision = precision
        self.per = per
        self.confidence = confidence
        self.calibration = calibration
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> GuaranteedThresholds:
        """Fit the classifier to a part of the rows, and choose the thresholds on the others.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows, which must be independent and distributed like those to predict.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels, as for :meth:`TunedThresholds.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights of the classifier, which must support them.  The rows that choose the
            thresholds all count the same, except that those of weight 0 are removed.
        groups : None
            Not allowed: rows of a group are not independent.

        Returns
        -------
        self : GuaranteedThresholds
            The fitted classifier.
        """
        promise = {name: getattr(self, name) for name in ("recall", "precision", "per")}
        check_promise(**promise, confidence=self.confidence)
        self._refuse_groups(groups)
        X, y, target, weights, _ = training_rows(
            X, y, sample_weight, type(self).__name__, multiclass=False
        )
        rows = np.arange(len(target.signs))
        if self.calibration == "prefit":
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            share = check_share("calibration", self.calibration)
            order = check_random_state(self.random_state).permutation(rows)
            n_held_out = round(share * len(rows))
            if not 0 < n_held_out < len(rows):
                raise InvalidArgumentError(
                    "calibration", f"of {share} leaves no rows on one side of {len(rows)}"
                )
            rows, train = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
            self.estimator_ = fit_with(
                clone(self.estimator),
                _safe_indexing(X, train),
                _safe_indexing(y, train),
                sample_weight=None if weights is None else weights[train],
            )
        check_same_classes(self.estimator_, target)
        method = deciding_method(self.estimator_)
        truth = _truth(target)[rows]
        self.thresholds_ = guarantee_thresholds(
            truth,
            label_scores(self.estimator_, _safe_indexing(X, rows), truth.shape[1], method=method),
            **promise,
            confidence=self.confidence,
            label_names=target.label_names,
        )
        self.guaranteed_ = np.isfinite(self.thresholds_)
        self.n_calibration_ = len(rows)
        self._remember_target(target)
        copy_features(self.estimator_, self)
        return self


def decision_thresholds(model: Any, n_labels: int) -> np.ndarray:
    """Return the thresholds that a fitted model predicts with, on its probabilities or scores.

    Parameters
    ----------
    model : fitted classifier
        :class:`TunedThresholds`, a pipeline or search around it, or any other classifier.
    n_labels : int
        Number of labels.

    Returns
    -------
    ndarray of shape (n_labels,)
        ``thresholds_`` if the model has them; otherwise a probability of 0.5, or a score of 0 for
        classifiers without ``predict_proba``.
    """
    for layer in layers(model):
        if isinstance(layer, ThresholdsMixin):
            return np.asarray(layer.thresholds_, dtype=np.float64)
        # Other wrappers predict at the default threshold, whatever they contain.
        passes_on = isinstance(layer, Pipeline) or hasattr(layer, "best_estimator_")
        if not passes_on and not getattr(layer, "_predicts_as_inside", False):
            break
    return np.full(n_labels, DEFAULT_THRESHOLDS[deciding_method(model)])


def score_thresholds(model: Any, n_labels: int) -> np.ndarray:
    """Return the thresholds that a fitted model predicts with, on its scores.

    Parameters
    ----------
    model, n_labels
        As for :func:`decision_thresholds`.

    Returns
    -------
    ndarray of shape (n_labels,)
        Thresholds for :func:`label_scores`.  Those of probabilities are converted to log-odds if
        the classifier has a ``decision_function`` too.
    """
    thresholds = decision_thresholds(model, n_labels)
    if deciding_method(model) == scoring_method(model):
        return thresholds
    chances = np.clip(thresholds, 0.0, 1.0)
    odds = logit(chances)
    # A row may be exactly at its threshold: rounding must not put it below.
    inside = np.isfinite(odds)
    rounding = 4 * np.finfo(float).eps * (1 / (1 - chances[inside]) + np.abs(odds[inside]))
    odds[inside] -= rounding
    return odds
