"""Scores and predictions of any multi-label classifier, in one shape; and metrics of both."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import f1_score, roc_auc_score

from imcc.metrics import METRICS, evaluate

#: Metrics that are reported besides the paper's five; of all of them more is better.
MORE_METRICS = ("micro_f1", "macro_f1", "subset_accuracy", "macro_auc")
ALL_METRICS = (*METRICS, *MORE_METRICS)


def greater_is_better(metric: str) -> bool:
    """Return the direction of a metric.

    >>> greater_is_better("coverage"), greater_is_better("macro_f1")
    (False, True)
    """
    return metric in MORE_METRICS or METRICS[metric].greater_is_better


def label_scores(estimator: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return the scores of all labels, 0 being the threshold, shape (n_rows, n_labels).

    Takes ``decision_function``, else ``predict_proba`` less 1/2.  scikit-learn's classifiers give
    the latter as a matrix of one column a label or as a list of one matrix a label, whose columns
    are the classes that occurred in training: both are understood.
    """
    name = type(estimator).__name__
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    elif hasattr(estimator, "predict_proba"):
        scores = _positive(estimator.predict_proba(X), getattr(estimator, "classes_", None)) - 0.5
    else:
        raise TypeError(f"{name} has neither decision_function nor predict_proba: nothing to rank")
    scores = np.asarray(scores.toarray() if sp.issparse(scores) else scores, dtype=np.float64)
    if scores.ndim == 1 and n_labels == 1:
        scores = scores[:, np.newaxis]
    if scores.shape != (X.shape[0], n_labels):
        raise ValueError(
            f"{name} scored {scores.shape} where {(X.shape[0], n_labels)} rows and labels were "
            "expected: is it a multi-label classifier?"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} gave scores that are not finite")
    return scores


def _positive(probabilities: Any, classes: Any) -> np.ndarray:
    """Return the probabilities of the labels being on."""
    if not isinstance(probabilities, list):
        probabilities = np.asarray(probabilities)
        # Of a single label, scikit-learn gives the probabilities of off and on.
        binary = classes is not None and len(classes) == 2 and np.isscalar(classes[0])
        if binary and probabilities.shape[1] == 2 and list(classes) == [0, 1]:
            return probabilities[:, 1:]
        return probabilities
    columns = []
    for label, of_label in enumerate(probabilities):
        of_label = np.asarray(of_label)
        if of_label.shape[1] == 2:
            columns.append(of_label[:, 1])
        else:  # a label that was on in all training rows, or in none
            always = classes is not None and classes[label][0] == 1
            columns.append(np.full(len(of_label), float(always)))
    return np.column_stack(columns)


def predictions(estimator: Any, X: Any, scores: np.ndarray) -> np.ndarray:
    """Return what the method itself predicts; where its scores are at least 0 if it cannot."""
    if not hasattr(estimator, "predict"):
        return scores >= 0
    predicted = estimator.predict(X)
    predicted = np.asarray(predicted.toarray() if sp.issparse(predicted) else predicted)
    if predicted.ndim == 1:
        predicted = predicted[:, np.newaxis]
    if predicted.shape != scores.shape:
        raise ValueError(
            f"{type(estimator).__name__} predicted {predicted.shape} where {scores.shape} was "
            "expected"
        )
    return predicted > 0


def all_metrics(Y: np.ndarray, scores: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the five metrics and the others; NaN where one is undefined.

    Hamming loss, F1 and subset accuracy judge the predictions, the others the scores.  The area
    under the ROC curve is averaged over the labels that are on in some rows and off in others.
    """
    on = Y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # NaN says it
        metrics = evaluate(Y, scores)
    metrics["hamming_loss"] = float((predicted != on).mean())
    metrics["micro_f1"] = float(f1_score(on, predicted, average="micro", zero_division=0.0))
    metrics["macro_f1"] = float(f1_score(on, predicted, average="macro", zero_division=0.0))
    metrics["subset_accuracy"] = float((predicted == on).all(axis=1).mean())
    both = on.any(axis=0) & ~on.all(axis=0)
    areas = [roc_auc_score(on[:, j], scores[:, j]) for j in np.flatnonzero(both)]
    metrics["macro_auc"] = float(np.mean(areas)) if areas else float("nan")
    return metrics
