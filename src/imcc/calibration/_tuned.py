"""TunedThresholds: any classifier, with its labels' thresholds chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imcc._stream.dask import predict_lazily
from imcc._stream.sources import is_dask
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    check_choice,
    check_count,
    check_probability_thresholds,
)
from imcc._utils.wrappers import layers
from imcc.calibration._cross_fit import (
    DEFAULT_THRESHOLDS,
    Given,
    check_known_classes,
    fit_and_cross_fit,
    label_probabilities,
    label_scores,
    scoring_method,
)
from imcc.calibration._cuts import Criterion, check_criterion, choose_thresholds
from imcc.estimators.base import ScoringClassifierMixin

# What cv may be in words.
TEXTS = ("prefit", "held_out")


def _has_probabilities(tuned: TunedThresholds) -> bool:
    return hasattr(getattr(tuned, "estimator_", tuned.estimator), "predict_proba")


class TunedThresholds(ScoringClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose labels have thresholds of their own, chosen by cross-validation.

    The model is fitted on all rows.  Its thresholds are chosen on scores of held-out rows: each
    fold is scored by a model fitted without it.  For each label, every possible cut is tried.

    Parameters
    ----------
    estimator : classifier
        With ``decision_function`` or ``predict_proba``: ours, a pipeline that ends in one, or any
        multi-label or binary classifier of scikit-learn's.
    criterion : {"f1", "balanced_accuracy", "accuracy", "micro_f1"} or callable, default="f1"
        What the thresholds make as large as possible; see :func:`choose_thresholds`.
    cv : int, splitter, iterable of (train, test), "prefit" or "held_out", default=5
        As for :class:`imcc.IMCCClassifierCV`; each row is held out exactly once.  "prefit" takes
        ``estimator`` as it is, already fitted, and chooses only the thresholds, on the rows given:
        these must be other rows than those it was trained on.  "held_out" takes the held-out scores
        that the estimator computes while it is fitted, so that nothing is fitted twice: for
        :class:`imcc.KernelEnsembleClassifier`, or another one with ``fit_held_out``.
    min_support : int, default=5
        Labels that fewer training rows have, or lack, keep the default threshold.  The best cut of
        a handful of scores says little about the next ones, and may well be to predict a label
        everywhere.
    nested : bool, default=False
        For an estimator that searches its parameters (``IMCCClassifierCV``, ``GridSearchCV``, or a
        pipeline that ends in one): False searches once, on all rows, and scores the folds with the
        setting found; True searches again in every fold, which takes as many times as long.  The
        rows of a fold then have no say in the setting that scores them; a threshold is one number
        per label, and it hardly moves.
    n_jobs : int or None, default=None
        Folds computed at the same time.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all rows (or the one given, for cv="prefit").
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its score is at least this: the value of ``decision_function``,
        or the probability if the classifier has only ``predict_proba``.  Scores of a calibrated
        classifier are log-odds, and so are its thresholds; ``scipy.special.expit`` turns them into
        probabilities.  Labels with too little support, those that never or always occur among
        them, keep the default: 0, or 0.5 for probabilities.
    cv_results_ : dict of ndarray
        For each label: ``threshold``, ``value`` and ``default_value`` (the criterion on the
        held-out scores with the threshold and with the default one), ``support`` (rows with the
        label), ``tuned`` (False where the default was kept).  The values are a little optimistic:
        the thresholds were chosen on the same scores.
    best_score_, default_score_ : float
        The mean of ``value`` and ``default_value`` over the tuned labels, or the micro-F1.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    ``decision_function`` gives the scores of the model, unchanged: thresholds move decisions, not
    the ranking of the labels.  So ``predict`` is not where these scores are at least 0.

    A vector of more than two classes is refused: there the best-scored class wins.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.metrics import f1_score
    >>> from imcc import IMCCClassifier
    >>> from imcc.calibration import TunedThresholds
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=1, random_state=0)
    >>> tuned = TunedThresholds(IMCCClassifier(n_clusters=8, random_state=0)).fit(X[:300], Y[:300])
    >>> tuned.thresholds_.shape
    (6,)
    >>> plain = tuned.predict(X[300:], thresholds=0)
    >>> better = tuned.predict(X[300:])
    >>> f1_score(Y[300:], better, average="macro") > f1_score(Y[300:], plain, average="macro")
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        criterion: str | Criterion = "f1",
        cv: Any = 5,
        min_support: int = 5,
        nested: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.cv = cv
        self.min_support = min_support
        self.nested = nested
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> TunedThresholds:
        """Fit the model on all rows, and choose the thresholds on held-out scores.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or a vector of at most two classes.  NaN in a
            dense label matrix is a label that is not known: its threshold is chosen without the
            row, and the classifier must take it (:class:`imcc.IMCCClassifier` does).
        groups : array-like of shape (n_samples,), optional
            Passed on to the splitter.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each row counts for, >= 0: passed on to the classifier, which must take
            it, and used in the criterion.  Rows of weight 0 are left out.

        Returns
        -------
        self : TunedThresholds
        """
        check_criterion(self.criterion)
        check_count("min_support", self.min_support)
        if not isinstance(self.nested, (bool, np.bool_)):
            raise ValueError(f"nested must be True or False, got {self.nested!r}")
        name = type(self).__name__
        given = Given.of(X, y, sample_weight, groups, self.cv, name, unknown=True)
        X, y, target, weights = given.X, given.y, given.target, given.sample_weight
        if target.kind == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                "for a vector of more than two classes the best-scored one wins, and thresholds "
                "have no meaning; pass a label matrix, or a vector of two classes"
            )
        if isinstance(self.cv, str) and check_choice("cv", self.cv, TEXTS) == "held_out":
            if not hasattr(self.estimator, "fit_held_out"):
                raise InvalidArgumentError(
                    "cv",
                    f"'held_out' needs a classifier with fit_held_out, which "
                    f"{type(self.estimator).__name__} does not have: give a number of folds",
                )
            self.estimator_ = clone(self.estimator)
            more = {} if weights is None else {"sample_weight": weights}
            more |= {} if given.groups is None else {"groups": given.groups}
            scores = self.estimator_.fit_held_out(X, y, **more)
        elif isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            check_known_classes(self.estimator_, target)
            scores = label_scores(self.estimator_, X, target.signs.shape[1])
        else:
            self.estimator_, scores = fit_and_cross_fit(
                self.estimator, given, nested=self.nested, n_jobs=self.n_jobs
            )
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
            "support": on.sum(axis=0),
            "tuned": chosen.tuned,
        }
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(
        self, X: Any, thresholds: Any = None, *, probability_thresholds: Any = None
    ) -> np.ndarray:
        """Predict the labels of every row, with the tuned thresholds.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        thresholds : float or array-like of shape (n_labels,), optional
            Others, for once, on the scores that ``thresholds_`` are on; 0 is the classifier
            without tuning (0.5 for one with ``predict_proba`` only).
        probability_thresholds : float or array-like of shape (n_labels,), optional
            Others, for once, as probabilities: a label is predicted where ``predict_proba`` gives
            at least this.  For classifiers that have it.

        Returns
        -------
        ndarray of shape (n_samples, n_labels), or (n_samples,) for a vector of classes
        """
        check_is_fitted(self)
        if probability_thresholds is not None:
            return self._predict_by_probability(X, thresholds, probability_thresholds)
        return super().predict(X, self.thresholds_ if thresholds is None else thresholds)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the model's own probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def _predict_by_probability(self, X: Any, thresholds: Any, limits: Any) -> np.ndarray:
        name = "probability_thresholds"
        if thresholds is not None:
            raise InvalidArgumentError(name, "is in place of thresholds: give one of the two")
        if not _has_probabilities(self):
            raise InvalidArgumentError(
                name,
                f"needs predict_proba, which {type(self.estimator_).__name__} does not have: put "
                "the classifier into a MultilabelCalibrator, or give scores as thresholds",
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
    """Return the thresholds by which a fitted model predicts, on its scores (``label_scores``).

    Parameters
    ----------
    model : fitted classifier
        With thresholds, also inside of pipelines and searches, or without.
    n_labels : int

    Returns
    -------
    ndarray of shape (n_labels,)
        0, or 0.5 for classifiers with probabilities only, where nothing was tuned.
    """
    for layer in layers(model):
        if isinstance(layer, TunedThresholds):
            return np.asarray(layer.thresholds_, dtype=np.float64)
        # What else decides does so at the default, whatever is inside of it.
        passes_on = isinstance(layer, Pipeline) or hasattr(layer, "best_estimator_")
        if not passes_on and not getattr(layer, "_predicts_as_inside", False):
            break
    return np.full(n_labels, DEFAULT_THRESHOLDS[scoring_method(model)])
