"""Evaluation of a fitted model: its metrics, its labels and its probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from imcc._utils.progress import part
from imcc._utils.validation import label_matrix
from imcc.estimators.cross_fit import deciding_method, label_scores
from imcc.estimators.thresholds import decision_thresholds
from imcc.inspection._calibration import CalibrationDiagnostics, diagnose_probabilities
from imcc.inspection._diagnostics import Diagnostics, diagnose
from imcc.metrics import evaluate


class Evaluation(NamedTuple):
    """Evaluation of a model on rows with known labels.

    Attributes
    ----------
    metrics : dict of str to float
        The five metrics of :data:`imcc.metrics.METRICS`.
    labels : Diagnostics
        Average precision, F1 and AUC per label, with intervals.
    probabilities : CalibrationDiagnostics or None
        Log loss, Brier score and calibration error per label, also before calibration; None for a
        model without probabilities.
    """

    metrics: dict[str, float]
    labels: Diagnostics
    probabilities: CalibrationDiagnostics | None


def evaluate_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    label_names: Sequence[str] | None = None,
    n_resamples: int = 500,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate a fitted classifier on rows with known labels.

    Parameters
    ----------
    model : classifier
        A fitted multi-label classifier of imcc or scikit-learn.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows that the model was not trained on.
    y : array-like or sparse matrix of shape (n_samples, n_labels)
        Their labels, coded {0, 1}, {-1, +1} or boolean.
    label_names : sequence of str, default=None
        Names of the labels; ``label0, label1, ...`` by default.
    n_resamples : int, default=500
        Number of bootstrap resamples for the intervals; 0 gives no intervals.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Evaluation
        ``metrics``, ``labels`` and ``probabilities``.

    See Also
    --------
    diagnose : The numbers per label, for scores.
    diagnose_probabilities : The same for probabilities.

    Examples
    --------
    >>> from imcc import IMCCClassifier
    >>> from imcc.datasets import load_dataset
    >>> yeast = load_dataset("yeast")
    >>> model = IMCCClassifier(n_clusters=16, random_state=0).fit(yeast.X[:500], yeast.Y[:500])
    >>> found = evaluate_model(model, yeast.X[500:800], yeast.Y[500:800], n_resamples=20)
    >>> 0.7 < found.metrics["average_precision"] < 0.8
    True
    >>> found.labels.n_rows, found.probabilities is None
    (300, True)
    """
    n_labels = label_matrix(y, "y").shape[1]
    options: dict[str, Any] = {
        "label_names": label_names,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    # Scoring rows takes most of the time.
    has_probabilities = hasattr(model, "predict_proba")
    shares = (2, 1, 1) if has_probabilities else (2, 1)
    with part(0, shares, "scoring rows"):
        scores = label_scores(model, X, n_labels, method=deciding_method(model))
    thresholds = decision_thresholds(model, n_labels)
    metrics = evaluate(y, scores)
    # The ranking metrics depend on the scores, the Hamming loss on the decisions.
    metrics |= evaluate(y, np.where(scores >= thresholds, 1.0, -1.0), ["hamming_loss"])
    with part(1, shares, "resampling"):
        labels = diagnose(y, scores, thresholds=thresholds, **options)
    if not has_probabilities:
        return Evaluation(metrics, labels, None)
    with part(2, shares, "resampling probabilities"):
        judged = diagnose_probabilities(y, scores, **options)
    return Evaluation(metrics, labels, judged)
