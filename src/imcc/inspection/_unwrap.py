"""The IMCCClassifier inside whatever a user has fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._core.clustering import VirtualExamples, virtual_examples
from imcc._core.models import KernelModel
from imcc._utils.errors import InvalidTypeError
from imcc._utils.validation import Features, check_features, encode_target
from imcc._utils.wrappers import innermost, layers, transformers
from imcc.calibration import MultilabelCalibrator, decision_thresholds
from imcc.estimators.imcc import IMCCClassifier
from imcc.inspection._names import names_of_features, names_of_labels

# How far a centre, relative to the spread of all, or a soft label may be from what the training
# data give, so that these count as the training data: far more than rounding in float32.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Unwrapped:
    """A fitted IMCCClassifier and the wrappers around it.

    Attributes
    ----------
    classifier : IMCCClassifier
    transform : callable
        From the rows that the user has to those that the classifier sees.
    thresholds : ndarray of shape (n_labels,)
        On the scores of the classifier, calibrated or not.
    """

    classifier: IMCCClassifier
    transform: Callable[[Any], Features]
    thresholds: np.ndarray

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.classifier.assignment_)

    @property
    def assignment(self) -> np.ndarray:
        """The clusters of each training row, (n_samples, n_clusterings)."""
        return self.classifier.assignment_.reshape(self.n_rows, -1)

    def refuse_weights(self) -> None:
        """Say so where a model cannot be compared with its training data: it keeps no weights."""
        if self.classifier.cluster_sizes_.dtype.kind == "f":
            raise ValueError(
                "the model was trained with sample_weight, which it does not keep: training rows, "
                "labels and explanations by='evidence' cannot be used with it; leave X and Y out, "
                "or use by='support' or 'features'"
            )

    @property
    def virtual(self) -> VirtualExamples:
        """The virtual examples, as the solver saw them."""
        self.refuse_weights()
        clf = self.classifier
        return VirtualExamples(
            clf.cluster_centers_,
            clf.soft_labels_,
            clf.cluster_sizes_.astype(float),
            self.assignment,
        )

    def names_of_labels(self, given: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a name for each column of the scores."""
        return names_of_labels(self.classifier, self.classifier.soft_labels_.shape[1], given)

    def names_of_features(self) -> tuple[str, ...]:
        """Return a name for each feature that the classifier sees."""
        return names_of_features(self.classifier, self.classifier.n_features_in_)

    def training_rows(self, X: Any = None) -> Features | None:
        """Return the training rows as the classifier saw them.

        A kernel model has kept them.  Otherwise they are those given, checked against the centres;
        None if nothing is given.
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
            raise ValueError(
                f"X must be the training rows: the model was fitted on {self.n_rows} rows, X has "
                f"{rows.shape[0]}"
            )
        self.refuse_weights()
        again = virtual_examples(rows, np.zeros((self.n_rows, 1)), self.assignment).centers
        centers = self.classifier.cluster_centers_
        if np.abs(again - centers).max() > _TOLERANCE * max(float(np.abs(centers).max()), 1e-300):
            raise ValueError(
                "X must be the training rows, in their order: their means over the model's "
                "clusters are not the model's centres"
            )

    def training_signs(self, Y: Any) -> np.ndarray:
        """Return the training labels as -1 and +1, checked against the soft labels."""
        if Y is None:
            raise ValueError("Y is needed: a model does not keep its training labels")
        self.refuse_weights()
        signs = encode_target(Y, self.n_rows, "explain").signs
        soft = self.classifier.soft_labels_
        if signs.shape[1] != soft.shape[1]:
            raise ValueError(
                f"Y must be the training labels: the model has {soft.shape[1]} of them, Y has "
                f"{signs.shape[1]} columns"
            )
        again = virtual_examples(np.zeros((self.n_rows, 1)), signs, self.assignment).soft_labels
        if np.abs(again - soft).max() > _TOLERANCE:
            raise ValueError(
                "Y must be the training labels, in their order: their means over the model's "
                "clusters are not its soft labels"
            )
        return signs


def unwrap(model: Any) -> Unwrapped:
    """Find the IMCCClassifier in a fitted model.

    Parameters
    ----------
    model : IMCCClassifier or a wrapper
        IMCCClassifierCV, GridSearchCV, TunedThresholds, MultilabelCalibrator or Pipeline; or any
        of these around each other; and the kernel ridge baseline, which is one inside.
    """
    classifier = innermost(model)
    check_is_fitted(classifier)
    if not isinstance(classifier, IMCCClassifier):
        raise InvalidTypeError(
            "model",
            f"has no virtual examples in a {type(classifier).__name__}: only IMCCClassifier has "
            "them, also inside IMCCClassifierCV, TunedThresholds, a search or a pipeline",
        )
    thresholds = score_thresholds(model, classifier.soft_labels_.shape[1])
    return Unwrapped(classifier, row_transform(model, classifier), thresholds)


def row_transform(model: Any, classifier: Any) -> Callable[[Any], Features]:
    """Return what turns the rows that a user has into those that the classifier inside sees."""
    before = transformers(model)

    def transform(X: Any) -> Features:
        for step in before:
            X = step.transform(X)
        return check_features(classifier, X, reset=False)

    return transform


def score_thresholds(model: Any, count: int) -> np.ndarray:
    """Return the thresholds on the scores of the classifier inside, calibrated or not."""
    thresholds = decision_thresholds(model, count)
    for layer in layers(model):
        if isinstance(layer, MultilabelCalibrator):
            thresholds = layer.maps_.scores_at(thresholds)
        elif hasattr(layer, "calibration_"):  # a calibrated search
            thresholds = layer.calibration_.scores_at(thresholds)
    return thresholds
