"""Base classes of the classifiers: predictions from scores, on the host, a device or Dask."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import asarray, namespace, to_numpy
from imcc._math.logistic import sigmoid
from imcc._math.stream.dask import predict_lazily
from imcc._math.stream.sources import is_dask
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    Target,
    binarize_sets,
    check_probability_thresholds,
    check_sample_weight,
    check_thresholds,
    label_matrix,
    label_sets,
)
from imcc._utils.wrappers import first_with

# Held-out probabilities that are kept, 100 MB with their labels.
_MOST_KEPT = 20_000_000

Method = TypeVar("Method", bound=Callable[..., Any])


def restore_on_failure(method: Method) -> Method:
    """Decorate a training method to restore the estimator's attributes if it raises.

    This includes the attributes that validation sets (``n_features_in_``, ``feature_names_in_``).
    ``fit`` and ``partial_fit`` of subclasses of :class:`FitScoreMixin` are decorated automatically.
    """
    if getattr(method, "_restores_on_failure", False):
        return method

    @functools.wraps(method)
    def restoring(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    restoring._restores_on_failure = True  # type: ignore[attr-defined]
    return cast(Method, restoring)


class FitScoreMixin(ClassifierMixin):
    """Mixin with what ``fit`` and ``score`` of all classifiers have in common.

    The signature is ``fit(X, y, *, sample_weight=None, groups=None)``: weights and groups have the
    same shape, so that they are only accepted by name.  A classifier that does not hold out rows
    refuses groups.  If ``fit`` or ``partial_fit`` fails, the estimator remains unchanged.
    """

    #: Whether ``fit`` holds out rows, and uses ``groups`` for that.
    _uses_groups: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit"):
            method = cls.__dict__.get(name)
            # Descriptors (available_if) are decorated where they are defined.
            if inspect.isfunction(method):
                setattr(cls, name, restore_on_failure(method))

    def _refuse_groups(self, groups: Any) -> None:
        """Raise an error for groups that ``fit`` would not use."""
        if groups is not None:
            raise InvalidArgumentError(
                "groups",
                f"would have no effect: {type(self).__name__} does not use them to hold out rows; "
                "leave them out, or pass them to a search, a calibrator or TunedThresholds around "
                "it",
            )

    def score(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Compute the share of rows whose labels are all predicted correctly.

        This is the subset accuracy, as in scikit-learn.  It is a harsh metric for many labels; see
        :mod:`imcc.metrics` for others.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.
        y : array-like
            True labels, in one of the forms that ``fit`` accepts.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0.  None means weight 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted, y = to_numpy(self.predict(X)), to_numpy(y)
        if predicted.ndim == 2 and (sets := label_sets(y)) is not None:
            y = binarize_sets(sets, self.label_names_)[0]
        truth = label_matrix(y) if predicted.ndim == 2 else y
        weights = check_sample_weight(sample_weight, len(predicted))
        return float(accuracy_score(truth, predicted, sample_weight=weights))

    # Defined by subclasses.
    predict: Callable[..., np.ndarray]
    label_names_: Any


class ScoringClassifierMixin(FitScoreMixin):
    """Mixin with predictions and tags for classifiers that score each label or class.

    Subclasses define ``target_kind_``, ``classes_``, ``label_names_`` and ``_scores(X)``.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the score of each label per row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to score.  For a Dask collection, the result is a lazy Dask array.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Real-valued scores; a label is predicted where its score is at least 0.  For a 1-D
            training target, the shape is (n_samples, n_classes), or (n_samples,) for at most two
            classes.  For torch and CuPy input, an array of that library on the same device.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predict_lazily(self, "decision_function", X)
        scores = self._scores(X)
        return scores[:, 0] if self.target_kind_ == "binary" else scores

    def predict(self, X: Any, thresholds: Any = None) -> np.ndarray:
        """Predict the labels of each row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.  For a Dask collection, the result is a lazy Dask array.
        thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose score is at least the threshold: one number for all labels, or one
            per label.  None means 0.  :class:`imcc.estimators.TunedThresholds` chooses thresholds
            from data.  Not allowed for a 1-D training target with more than two classes, where the
            class with the highest score is predicted.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 where the score is at least the threshold (Eq. 22 of the paper for 0), otherwise 0;
            always a dense integer array, regardless of the coding of the training labels.  For a
            1-D training target, an array of shape (n_samples,) with the predicted classes.  For
            torch and CuPy input, an array of that library on the same device, unless the classes
            are not numeric.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predict_lazily(self, "predict", X, thresholds=thresholds)
        scores = self.decision_function(X)
        if self.target_kind_ == "multiclass":
            if thresholds is not None:
                _refuse_thresholds("thresholds")
            return self._of_classes(to_numpy(namespace(scores).argmax(scores, axis=1)), scores)
        n_outputs = 1 if self.target_kind_ == "binary" else scores.shape[1]
        return self._predict_at(scores, check_thresholds(thresholds, n_outputs))

    def _predict_at(self, values: Any, limits: np.ndarray) -> np.ndarray:
        """Predict from values of all labels, or of one of two classes: on where >= limits."""
        xp = namespace(values)
        if self.target_kind_ == "multilabel":
            return xp.astype(values >= asarray(limits, values), xp.int64)
        on = to_numpy(values) >= limits[0]
        return self._of_classes(np.where(on, len(self.classes_) - 1, 0), values)

    def _of_classes(self, numbers: np.ndarray, like: Any) -> np.ndarray:
        """Return classes by index, in the array library of ``like`` if they are numeric."""
        classes = self.classes_[numbers]
        return asarray(classes, like) if classes.dtype.kind in "biuf" else classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _remember_target(self, target: Target) -> None:
        self.target_kind_ = target.kind
        self.classes_ = target.classes
        self.label_names_ = target.label_names

    # Defined by subclasses.
    target_kind_: str
    classes_: np.ndarray
    label_names_: np.ndarray | None
    _scores: Callable[[Any], np.ndarray]


class LogOddsClassifierMixin(ScoringClassifierMixin):
    """Mixin for classifiers whose scores are log-odds per label, log(p / (1 - p)).

    ``decision_function`` returns the log-odds, ``predict_proba`` the probabilities p, and
    ``predict`` the labels with p >= 1/2.
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each label per row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.  For a Dask collection, the result is a lazy Dask array.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probability of each label.  For a 1-D training target, the shape is
            (n_samples, n_classes) and rows sum to 1 (with more than two classes, one-vs-rest
            probabilities divided by their sum).  For torch and CuPy input, an array of that library
            on the same device.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predict_lazily(self, "predict_proba", X)
        chances = sigmoid(self._scores(X))
        xp = namespace(chances)
        if self.target_kind_ == "multilabel":
            return chances
        if self.target_kind_ == "multiclass":
            return chances / xp.sum(chances, axis=1, keepdims=True)
        if len(self.classes_) == 1:
            return xp.ones_like(chances)
        return xp.concat([1 - chances, chances], axis=1)

    def predict(
        self, X: Any, thresholds: Any = None, *, probability_thresholds: Any = None
    ) -> np.ndarray:
        """Predict the labels of each row: by default those with a probability of at least 1/2.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.  For a Dask collection, the result is a lazy Dask array.
        thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose log-odds are at least the threshold: one number for all labels, or
            one per label.  None means 0, a probability of 1/2.
        probability_thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose probability is at least the threshold.  Replaces ``thresholds``;
            pass only one of the two.  Neither is allowed for a 1-D training target with more than
            two classes.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 for predicted labels, otherwise 0.  For a 1-D training target, an array of shape
            (n_samples,) with the most probable classes (the first one in case of a tie).
        """
        check_is_fitted(self)
        if probability_thresholds is not None:
            return predict_by_probability(self, X, thresholds, probability_thresholds)
        if thresholds is None and self.target_kind_ == "binary":
            thresholds = np.nextafter(0.0, 1.0)  # at 1/2 the first class is predicted
        return super().predict(X, thresholds)

    # The rows of positive weight, of how many; None if none were removed.
    _used: tuple[np.ndarray, int] | None = None

    def _keep_held_out(self, log_odds: Any, target: Target, keep: bool) -> None:
        """Keep held-out probabilities and their labels, if wanted and not too many."""
        for name in ("held_out_proba_", "held_out_labels_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if keep and log_odds.size <= _MOST_KEPT:
            labels = (target.signs > 0).astype(np.int8)
            labels = labels if target.known is None else np.where(target.known, labels, np.int8(-1))
            self.held_out_proba_ = spread(sigmoid(log_odds).astype(np.float32), self._used)
            self.held_out_labels_ = spread(labels, self._used)


def spread(values: np.ndarray, used: tuple[np.ndarray, int] | None) -> np.ndarray:
    """Return values of used rows as values of all rows: NaN, or -1 for labels, elsewhere."""
    if used is None:
        return values
    rows, count = used
    everything = np.full((count, *values.shape[1:]), np.nan if values.dtype.kind == "f" else -1)
    everything = everything.astype(values.dtype)
    everything[rows] = values
    return everything


class HeldOutMixin:
    """Mixin for wrappers whose probabilities are those of the classifier inside."""

    @property
    def held_out_proba_(self) -> np.ndarray:
        """Held-out probabilities of the training rows, if the classifier inside has them.

        See :class:`imcc.KernelEnsembleClassifier`; NaN in rows of weight 0.
        """
        return self._held_out("held_out_proba_")

    @property
    def held_out_labels_(self) -> np.ndarray:
        """Labels of the training rows: 1, 0, or -1 if unknown, as for ``held_out_proba_``."""
        return self._held_out("held_out_labels_")

    def _held_out(self, name: str) -> np.ndarray:
        inside = first_with(getattr(self, "estimator_", None), name)
        if inside is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: the classifier inside keeps none"
            )
        return spread(getattr(inside, name), self._used)

    _used: tuple[np.ndarray, int] | None = None


def predict_by_probability(
    estimator: ScoringClassifierMixin, X: Any, thresholds: Any, probability_thresholds: Any
) -> np.ndarray:
    """Predict labels by their probability; see :meth:`LogOddsClassifierMixin.predict`."""
    if thresholds is not None:
        raise InvalidArgumentError(
            "probability_thresholds", "replaces thresholds: pass only one of the two"
        )
    if estimator.target_kind_ == "multiclass":
        _refuse_thresholds("probability_thresholds")
    if is_dask(X):
        return predict_lazily(
            estimator, "predict", X, probability_thresholds=probability_thresholds
        )
    chances = estimator.predict_proba(X)
    if estimator.target_kind_ == "binary":
        chances = chances[:, -1]  # of the second class, or of the only one
    n_outputs = 1 if chances.ndim == 1 else chances.shape[1]
    return estimator._predict_at(
        chances, check_probability_thresholds(probability_thresholds, n_outputs)
    )


def _refuse_thresholds(name: str) -> None:
    raise InvalidArgumentError(
        name,
        "is not allowed for a multiclass target, where the class with the highest score is "
        "predicted",
    )
