"""Scores and predictions of any multi-label classifier in a common form, and their metrics."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from imcc.estimators.cross_fit import label_scores, scoring_method
from imcc.metrics import METRICS, evaluate, macro_average_precision, macro_f1, micro_f1

#: Metrics that are reported in addition to the paper's five; larger values are better.
MORE_METRICS = ("micro_f1", "macro_f1", "subset_accuracy", "macro_auc")
#: All metrics of a result: the paper's five, then the others.
ALL_METRICS = (*METRICS, *MORE_METRICS)

#: Ranges of label frequencies, as fractions of the training rows, lower bound excluded and upper
#: bound included; the keys name the columns with the average precision of the labels in a range.
LABEL_RANGES: dict[str, tuple[float, float]] = {
    "label_ap_to_1": (0.0, 0.01),
    "label_ap_1_to_5": (0.01, 0.05),
    "label_ap_5_to_20": (0.05, 0.2),
    "label_ap_above_20": (0.2, 1.0),
}


def greater_is_better(metric: str) -> bool:
    """Return whether larger values of a metric are better.

    Parameters
    ----------
    metric : str
        One of :data:`ALL_METRICS`.

    Examples
    --------
    >>> greater_is_better("coverage"), greater_is_better("macro_f1")
    (False, True)
    """
    return metric in (*MORE_METRICS, *LABEL_RANGES) or METRICS[metric].greater_is_better


def centred_scores(estimator: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return the scores of all labels with threshold 0, shape (n_samples, n_labels).

    Uses ``decision_function`` or, if there is none, ``predict_proba`` minus 1/2.
    """
    scores = label_scores(estimator, X, n_labels).astype(np.float64)
    if scoring_method(estimator) == "predict_proba":
        scores -= 0.5
    name = type(estimator).__name__
    if scores.shape != (X.shape[0], n_labels):
        raise ValueError(
            f"the scores of {name} have shape {scores.shape}, expected {(X.shape[0], n_labels)}: "
            "is it a multi-label classifier?"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"the scores of {name} are not finite")
    return scores


def predictions(estimator: Any, X: Any, scores: np.ndarray) -> np.ndarray:
    """Return the predictions of an estimator; ``scores >= 0`` if it has no ``predict``."""
    if not hasattr(estimator, "predict"):
        return scores >= 0
    predicted = estimator.predict(X)
    predicted = np.asarray(predicted.toarray() if sp.issparse(predicted) else predicted)
    if predicted.ndim == 1:
        predicted = predicted[:, np.newaxis]
    if predicted.shape != scores.shape:
        raise ValueError(
            f"the predictions of {type(estimator).__name__} have shape {predicted.shape}, expected "
            f"{scores.shape}"
        )
    return predicted > 0


def all_metrics(Y: np.ndarray, scores: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return all metrics; NaN if undefined.

    Hamming loss, F1 and subset accuracy are computed from the predictions, the others from the
    scores.  The area under the ROC curve is averaged over the labels that some rows have and some
    do not.
    """
    on = Y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # they are NaN
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
    """Return the mean average precision of the labels per range of label frequencies.

    The average precision of a label is computed over the held-out rows (scikit-learn's
    ``average_precision_score``).  Labels that no held-out row or no training row has are ignored.

    Parameters
    ----------
    Y_train : ndarray of shape (n_train, n_labels)
        Labels of the training rows, which determine the label frequencies.
    Y, scores : ndarray of shape (n_samples, n_labels)
        Labels and scores of the held-out rows.

    Returns
    -------
    dict of str to float
        Keys are names of ``LABEL_RANGES``; ranges without labels are omitted.
    """
    share, on = (Y_train > 0).mean(axis=0), Y > 0
    found = {}
    for name, (low, high) in LABEL_RANGES.items():
        labels = np.flatnonzero((share > low) & (share <= high) & on.any(axis=0))
        if len(labels):
            found[name] = macro_average_precision(on[:, labels], scores[:, labels])
    return found
