"""Base classes of the classifiers: predictions from scores, on the host or a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import asarray, namespace, to_numpy
from imcc._math.kernels import row_blocks
from imcc._math.logistic import sigmoid
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
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
    ``fit`` of subclasses of :class:`FitScoreMixin` is decorated automatically.
    """

    @functools.wraps(method)
    def restoring(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return cast(Method, restoring)


class FitScoreMixin(ClassifierMixin):
    """Mixin with what ``fit`` and ``score`` of all classifiers have in common.

    The signature is ``fit(X, y, *, sample_weight=None, groups=None)``: weights and groups have the
    same shape, so that they are only accepted by name.  A classifier that does not hold out rows
    refuses groups.  If ``fit`` fails, the estimator remains unchanged.
    """

    #: Whether ``fit`` holds out rows, and uses ``groups`` for that.
    _uses_groups: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            cls.fit = restore_on_failure(cls.__dict__["fit"])

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
    fit: Callable[..., Any]
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
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Real-valued scores; a label is predicted where its score is at least 0.  For a 1-D
            training target, the shape is (n_samples, n_classes), or (n_samples,) for at most two
            classes.  For torch and CuPy input, an array of that library on the same device.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 0] if self.target_kind_ == "binary" else scores

    def predict(self, X: Any, thresholds: Any = None, *, as_frame: bool = False) -> Any:
        """Predict the labels of each row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.
        thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose probability is at least the threshold: one number for all labels,
            or one per label.  For a classifier without ``predict_proba``, thresholds are compared
            with the scores of ``decision_function``.  None means ``thresholds_`` of a classifier
            that has them, and otherwise a probability of 1/2 or a score of 0.  Not allowed for a
            1-D training target with more than two classes, where the class with the highest score
            is predicted.
        as_frame : bool, default=False
            Whether to return a pandas data frame with the names of the labels and the index of
            ``X``; a series for a 1-D training target.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 for predicted labels (Eq. 22 of the paper for scores of at least 0), otherwise 0;
            always a dense integer array, regardless of the coding of the training labels.  For a
            1-D training target, an array of shape (n_samples,) with the predicted classes.  For
            torch and CuPy input, an array of that library on the same device, unless the classes
            are not numeric.
        """
        check_is_fitted(self)
        if as_frame:
            return self._in_frame(self.predict(X, thresholds), X)
        if self.target_kind_ == "multiclass":
            if thresholds is not None:
                raise InvalidArgumentError(
                    "thresholds",
                    "is not allowed for a multiclass target, where the class with the highest "
                    "score is predicted",
                )
            scores = self.decision_function(X)
            return self._of_classes(to_numpy(namespace(scores).argmax(scores, axis=1)), scores)
        has_chances = hasattr(self, "predict_proba")
        limits: Any = getattr(self, "thresholds_", None)
        if thresholds is None and limits is None:
            # Of two classes with equal probabilities, the first one is predicted.
            is_binary = has_chances and self.target_kind_ == "binary"
            limits = np.array([np.nextafter(0.0, 1.0) if is_binary else 0.0])
            return self._predict_at(self.decision_function(X), limits)
        values = self._label_chances(X) if has_chances else self.decision_function(X)
        if thresholds is not None:
            check = check_probability_thresholds if has_chances else check_thresholds
            limits = check(thresholds, 1 if values.ndim == 1 else values.shape[1])
        return self._predict_at(values, limits)

    def _predict_at(self, values: Any, limits: np.ndarray) -> np.ndarray:
        """Predict from values of all labels, or of one of two classes: on where >= limits."""
        xp = namespace(values)
        if self.target_kind_ == "multilabel":
            return xp.astype(values >= asarray(limits, values), xp.int64)
        on = to_numpy(values) >= limits[0]
        return self._of_classes(np.where(on, len(self.classes_) - 1, 0), values)

    def _label_chances(self, X: Any) -> Any:
        """Return the probabilities of all labels, or of the last of two classes."""
        chances = self.predict_proba(X)
        return chances[:, -1] if self.target_kind_ == "binary" else chances

    def _in_frame(self, values: Any, X: Any) -> Any:
        """Return predictions of rows as a pandas data frame or series."""
        is_multilabel = self.target_kind_ == "multilabel"
        return labelled_frame(values, self.label_names_ if is_multilabel else self.classes_, X)

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
    predict_proba: Callable[..., Any]


class LogOddsClassifierMixin(ScoringClassifierMixin):
    """Mixin for classifiers whose scores are log-odds per label, log(p / (1 - p)).

    ``decision_function`` returns the log-odds, ``predict_proba`` the probabilities p, and
    ``predict`` the labels with p >= 1/2.
    """

    def predict_proba(self, X: Any, *, as_frame: bool = False) -> Any:
        """Predict the probability of each label per row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict.
        as_frame : bool, default=False
            Whether to return a pandas data frame with the names of the labels (or classes) and the
            index of ``X``.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probability of each label.  For a 1-D training target, the shape is
            (n_samples, n_classes) and rows sum to 1 (with more than two classes, one-vs-rest
            probabilities divided by their sum).  For torch and CuPy input, an array of that library
            on the same device.
        """
        check_is_fitted(self)
        if as_frame:
            return self._in_frame(self.predict_proba(X), X)
        chances = sigmoid(self._scores(X))
        xp = namespace(chances)
        if self.target_kind_ == "multilabel":
            return chances
        if self.target_kind_ == "multiclass":
            return chances / xp.sum(chances, axis=1, keepdims=True)
        if len(self.classes_) == 1:
            return xp.ones_like(chances)
        return xp.concat([1 - chances, chances], axis=1)

    # The rows of positive weight, of how many; None if none were removed.
    _used: tuple[np.ndarray, int] | None = None

    def _keep_held_out(self, log_odds: Any, target: Target, keep: bool) -> None:
        """Keep held-out probabilities and their labels, if wanted and not too many."""
        for name in ("held_out_proba_", "held_out_labels_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if keep and log_odds.size <= _MOST_KEPT:
            labels = (target.signs > 0).astype(np.int8)
            labels = labels if target.known is None else np.where(target.known, labels, np.int8(-1))
            chances = np.empty(log_odds.shape, dtype=np.float32)
            for block in row_blocks(*log_odds.shape):
                chances[block] = sigmoid(log_odds[block])
            self.held_out_proba_ = spread(chances, self._used)
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


def labelled_frame(values: Any, names: Any, X: Any) -> Any:
    """Return predictions as a pandas data frame with names, or classes as a series.

    Parameters
    ----------
    values : array of shape (n_samples, n_labels) or (n_samples,)
    names : sequence of str or None
        Names of the labels; None means label0, label1, ...
    X : array-like or data frame
        The rows; those of a data frame have an index.
    """
    pandas = require("pandas", "as_frame=True")
    index, values = getattr(X, "index", None), to_numpy(values)
    if values.ndim == 1:
        return pandas.Series(values, index=index)
    if names is None:
        names = [f"label{j}" for j in range(values.shape[1])]
    return pandas.DataFrame(values, index=index, columns=list(names))
