"""Access to the IMCCClassifier inside pipelines, searches and wrappers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import moved_record, to_numpy
from imcc._math.clustering import virtual_examples
from imcc._math.kernels import KernelModel
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.validation import Features, check_features, encode_target
from imcc._utils.wrappers import innermost, transformers
from imcc.estimators.imcc import IMCCClassifier
from imcc.inspection._results import names_of_labels

# Tolerance for centres (relative to the largest entry) and soft labels when checking that given
# data are the training data: far above rounding errors in float32.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Unwrapped:
    """A fitted IMCCClassifier and the wrappers around it.

    Attributes
    ----------
    classifier : IMCCClassifier
    transform : callable
        Maps rows of the user to the input of the classifier.
    """

    classifier: IMCCClassifier
    transform: Callable[[Any], Features]

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.assignment)

    @property
    def assignment(self) -> np.ndarray:
        """The clusters of each training row, (n_samples, n_clusterings)."""
        if not hasattr(self.classifier, "assignment_"):
            raise InvalidArgumentError(
                "model",
                "does not store the cluster of each training row, because it was fitted with "
                "approximation='nystroem' or on a stream: its clusters cannot be inspected",
            )
        found = self.classifier.assignment_
        return found.reshape(len(found), -1)

    def refuse_weights(self) -> None:
        """Raise an error for a model with sample weights, which it does not store."""
        if self.classifier.cluster_sizes_.dtype.kind == "f":
            raise InvalidArgumentError(
                "model",
                "was trained with sample_weight, which it does not store: training rows "
                "and labels cannot be used with it; omit X and Y",
            )

    def names_of_labels(self, given: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return one name per column of the scores."""
        return names_of_labels(self.classifier, self.classifier.soft_labels_.shape[1], given)

    def training_rows(self, X: Any = None) -> Features | None:
        """Return the training rows as passed to the classifier.

        These are the given rows, checked against the centres, or those stored by a kernel model;
        None if there are neither.
        """
        model = self.classifier._model
        if X is not None:
            rows = self.transform(X)
            self._check_rows(rows)
            return rows
        if isinstance(model, KernelModel):
            rows = model.rows
            return rows if model.origin is None else rows + model.origin.astype(rows.dtype)
        return None

    def _check_rows(self, rows: Features) -> None:
        if rows.shape[0] != self.n_rows:
            raise InvalidArgumentError(
                "X",
                f"must be the training rows: the model was fitted on {self.n_rows} rows, but X has "
                f"{rows.shape[0]}",
            )
        self.refuse_weights()
        again = virtual_examples(rows, np.zeros((self.n_rows, 1)), self.assignment).centers
        centers = self.classifier.cluster_centers_
        if np.abs(again - centers).max() > _TOLERANCE * max(float(np.abs(centers).max()), 1e-300):
            raise InvalidArgumentError(
                "X",
                "must be the training rows in their original order: their means per cluster differ "
                "from the centres of the model",
            )

    def training_signs(self, Y: Any) -> np.ndarray:
        """Return the training labels as -1 and +1, checked against the soft labels."""
        n_rows = self.n_rows
        self.refuse_weights()
        target = encode_target(Y, n_rows, "inspect_model", unknown=True)
        if target.known is not None:
            raise InvalidArgumentError(
                "Y",
                "has unknown labels (NaN): a model that was trained with them can be inspected "
                "without Y",
            )
        signs = target.signs
        soft = self.classifier.soft_labels_
        if signs.shape[1] != soft.shape[1]:
            raise InvalidArgumentError(
                "Y",
                f"must be the training labels: the model has {soft.shape[1]} labels, but Y has "
                f"{signs.shape[1]} columns",
            )
        again = virtual_examples(np.zeros((n_rows, 1)), signs, self.assignment).soft_labels
        if np.abs(again - soft).max() > _TOLERANCE:
            raise InvalidArgumentError(
                "Y",
                "must be the training labels in their original order: their means per cluster "
                "differ from the soft labels of the model",
            )
        return signs


def unwrap(model: Any) -> Unwrapped:
    """Find the IMCCClassifier in a fitted model.

    Parameters
    ----------
    model : IMCCClassifier or a wrapper
        IMCCClassifierCV, GridSearchCV, TunedThresholds, MultilabelCalibrator or Pipeline, possibly
        nested, or the kernel ridge baseline, which contains an IMCCClassifier.
    """
    classifier = innermost(model)
    check_is_fitted(classifier)
    if not isinstance(classifier, IMCCClassifier):
        raise InvalidTypeError(
            "model",
            "must be an IMCCClassifier, or contain one inside IMCCClassifierCV, TunedThresholds, a "
            f"search or a pipeline: {type(classifier).__name__} has no virtual examples",
        )
    classifier = _on_host(classifier)
    return Unwrapped(classifier, _row_transform(model, classifier))


def _on_host(classifier: IMCCClassifier) -> IMCCClassifier:
    """Return a classifier whose fitted arrays are in NumPy."""
    found = copy.copy(classifier)
    for name, value in vars(classifier).items():
        setattr(found, name, to_numpy(value))
    found._model = moved_record(found._model, np.empty(0))
    return found


def _row_transform(model: Any, classifier: Any) -> Callable[[Any], Features]:
    """Return a function that maps rows of the user to the input of the inner classifier."""
    before = transformers(model)

    def transform(X: Any) -> Features:
        for step in before:
            X = step.transform(X)
        return to_numpy(check_features(classifier, X, reset=False))

    return transform
