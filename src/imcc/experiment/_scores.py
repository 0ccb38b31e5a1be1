"""Scores and predictions of any multi-label classifier, in one shape; and metrics of both."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score, roc_auc_score

from imcc.calibration import label_scores, scoring_method
from imcc.metrics import METRICS, evaluate, macro_f1, micro_f1

#: Metrics that are reported besides the paper's five; of all of them more is better.
MORE_METRICS = ("micro_f1", "macro_f1", "subset_accuracy", "macro_auc")
#: All metrics of a row: the paper's five, then the others.
ALL_METRICS = (*METRICS, *MORE_METRICS)

#: Ranges of the share of the training rows that have a label, from (exclusive) and to (inclusive),
#: by the names of the columns for the average precision of the labels in them.
LABEL_RANGES: dict[str, tuple[float, float]] = {
    "label_ap_to_1": (0.0, 0.01),
    "label_ap_1_to_5": (0.01, 0.05),
    "label_ap_5_to_20": (0.05, 0.2),
    "label_ap_above_20": (0.2, 1.0),
}


def greater_is_better(metric: str) -> bool:
    """Return the direction of a metric.

    >>> greater_is_better("coverage"), greater_is_better("macro_f1")
    (False, True)
    """
    return metric in (*MORE_METRICS, *LABEL_RANGES) or METRICS[metric].greater_is_better


def centred_scores(estimator: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return the scores of all labels with 0 as the threshold, shape (n_samples, n_labels).

    Takes ``decision_function``, else ``predict_proba`` less 1/2.
    """
    scores = label_scores(estimator, X, n_labels).astype(np.float64)
    if scoring_method(estimator) == "predict_proba":
        scores -= 0.5
    name = type(estimator).__name__
    if scores.shape != (X.shape[0], n_labels):
        raise ValueError(
            f"{name} scored {scores.shape} where {(X.shape[0], n_labels)} rows and labels were "
            "expected: is it a multi-label classifier?"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} gave scores that are not finite")
    return scores


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
    metrics["micro_f1"] = micro_f1(on, predicted)
    metrics["macro_f1"] = macro_f1(on, predicted)
    metrics["subset_accuracy"] = float((predicted == on).all(axis=1).mean())
    both = on.any(axis=0) & ~on.all(axis=0)
    areas = [roc_auc_score(on[:, j], scores[:, j]) for j in np.flatnonzero(both)]
    metrics["macro_auc"] = float(np.mean(areas)) if areas else float("nan")
    return metrics


def precision_by_frequency(
    Y_train: np.ndarray, Y: np.ndarray, scores: np.ndarray
) -> dict[str, float]:
    """Return the mean average precision of the labels in each range of frequencies.

    The average precision of a label is that of the ranking of the held-out rows by its score
    (scikit-learn's ``average_precision_score``); labels that no held-out row has are left out, and
    so are those that no training row has.

    Parameters
    ----------
    Y_train : ndarray of shape (n_train, n_labels)
        Labels of the training rows, which say how frequent a label is.
    Y, scores : ndarray of shape (n_samples, n_labels)
        Labels and scores of the held-out rows.

    Returns
    -------
    dict of str to float
        By the names in ``LABEL_RANGES``, of the ranges that have a label.
    """
    share, on = (Y_train > 0).mean(axis=0), Y > 0
    found = {}
    for name, (low, high) in LABEL_RANGES.items():
        labels = np.flatnonzero((share > low) & (share <= high) & on.any(axis=0))
        if len(labels):
            values = [average_precision_score(on[:, j], scores[:, j]) for j in labels]
            found[name] = float(np.mean(values))
    return found
