"""What all classifiers here share: from scores to predictions, on the host, a device or Dask."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from imcc._backend.array import asarray, namespace, to_numpy
from imcc._core.logistic import sigmoid
from imcc._stream.dask import predict_lazily
from imcc._stream.sources import is_dask
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    Target,
    binarize_sets,
    check_probability_thresholds,
    check_thresholds,
    label_matrix,
    label_sets,
)

Method = TypeVar("Method", bound=Callable[..., Any])


def restore_on_failure(method: Method) -> Method:
    """Decorate a method that trains: when it raises, the estimator is as it was before the call.

    All attributes come back, those that validation sets (``n_features_in_``,
    ``feature_names_in_``) among them.  The methods ``fit`` and ``partial_fit`` of classes that
    derive from :class:`ScoringClassifierMixin` are decorated by themselves.
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


class ScoringClassifierMixin(ClassifierMixin):
    """Predictions, tags and accuracy for classifiers that score every label or class.

    A class that uses it has ``target_kind_``, ``classes_`` and ``_scores(X)``.  A ``fit`` or
    ``partial_fit`` of it that fails leaves the estimator as it was.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit"):
            method = cls.__dict__.get(name)
            # What is no plain function (available_if) is decorated where it is written.
            if inspect.isfunction(method):
                setattr(cls, name, restore_on_failure(method))

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every label of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            For a Dask collection the result is a Dask array, computed on request.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Real-valued scores; at or above 0 a label is predicted.  For a 1-D training target:
            shape (n_samples, n_classes), or (n_samples,) for at most two classes.  For rows of
            torch or CuPy, an array of that library, on the device of the rows.
        """
        check_is_fitted(self)
        if is_dask(X):
            return predict_lazily(self, "decision_function", X)
        scores = self._scores(X)
        return scores[:, 0] if self.target_kind_ == "binary" else scores

    def predict(self, X: Any, thresholds: Any = None) -> np.ndarray:
        """Predict the labels of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            For a Dask collection the result is a Dask array, computed on request.
        thresholds : float or array-like of shape (n_labels,), optional
            The score from which on a label is predicted, one for all labels or one for each;
            0 unless given.  :class:`imcc.calibration.TunedThresholds` chooses them.  Not for a
            1-D training target of more than two classes, where the best-scored class wins.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 where the score is at least 0 (Eq. 22), otherwise 0; always a dense integer array,
            whatever the labels were coded as.  For a 1-D training target: shape (n_samples,), the
            best-scored class.  For rows of torch or CuPy, an array of that library, on the device
            of the rows, except where classes are no numbers.
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
        """Predict where values, of all labels or of one of two classes, are at least the limits."""
        xp = namespace(values)
        if self.target_kind_ == "multilabel":
            return xp.astype(values >= asarray(limits, values), xp.int64)
        on = to_numpy(values) >= limits[0]
        return self._of_classes(np.where(on, len(self.classes_) - 1, 0), values)

    def _of_classes(self, numbers: np.ndarray, like: Any) -> np.ndarray:
        """Return classes by their numbers; of the library of another array, if they can be."""
        classes = self.classes_[numbers]
        return asarray(classes, like) if classes.dtype.kind in "biuf" else classes

    def score(self, X: Any, y: Any) -> float:
        """Return the share of rows of which all labels are predicted right.

        That is scikit-learn's score of a classifier.  It is a harsh measure for many labels; see
        :mod:`imcc.metrics` for better ones.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like
            True labels, coded as for ``fit``.
        """
        predicted, y = to_numpy(self.predict(X)), to_numpy(y)
        if predicted.ndim == 2 and (sets := label_sets(y)) is not None:
            y = binarize_sets(sets, self.label_names_)[0]
        return float(accuracy_score(label_matrix(y) if predicted.ndim == 2 else y, predicted))

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

    # Given by the class that uses this one.
    target_kind_: str
    classes_: np.ndarray
    label_names_: np.ndarray | None
    _scores: Callable[[Any], np.ndarray]


class LogOddsClassifierMixin(ScoringClassifierMixin):
    """Probabilities for classifiers whose scores are log-odds, log(p / (1 - p)), per label.

    ``decision_function`` gives the log-odds, ``predict`` is p >= 1/2.
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every label of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            For a 1-D training target: shape (n_samples, n_classes), rows summing to one (for more
            than two classes, the probabilities of the classes against the rest, divided by their
            sum).  For rows of torch or CuPy, an array of that library, on the device of the rows.
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
        """Predict the labels of every row: those with a probability of at least 1/2.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        thresholds : float or array-like of shape (n_labels,), optional
            The log-odds from which on a label is predicted; 0 (a probability of 1/2) unless given.
        probability_thresholds : float or array-like of shape (n_labels,), optional
            In place of ``thresholds``, the probability from which on a label is predicted: where
            ``predict_proba`` gives at least this.  Neither is for a 1-D training target of more
            than two classes.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            For a 1-D training target: shape (n_samples,), the most probable class, the first one if
            several are.
        """
        check_is_fitted(self)
        if probability_thresholds is not None:
            return predict_by_probability(self, X, thresholds, probability_thresholds)
        if thresholds is None and self.target_kind_ == "binary":
            thresholds = np.nextafter(0.0, 1.0)  # at 1/2 the first class is predicted
        return super().predict(X, thresholds)


def predict_by_probability(
    estimator: ScoringClassifierMixin, X: Any, thresholds: Any, probability_thresholds: Any
) -> np.ndarray:
    """Predict the labels whose probability is at least a limit; see ``predict`` of the above."""
    if thresholds is not None:
        raise InvalidArgumentError(
            "probability_thresholds", "is in place of thresholds: give one of the two"
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
        "has no meaning for a target of several classes, one per row: the best-scored class is "
        "predicted; leave it out",
    )
