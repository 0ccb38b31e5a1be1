"""Maps from scores to log-odds, one per label: logistic, or isotonic for labels with enough rows.

Both are fitted to scores of held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression

from imcc._math.logistic import LogisticMaps, fit_logistic_maps

METHODS = ("logistic", "isotonic")


@dataclass(frozen=True)
class IsotonicMap:
    """A non-decreasing map from the scores of one label to its log-odds.

    Attributes
    ----------
    scores : ndarray of shape (n_knots,)
        Scores of the knots, increasing.
    probabilities : ndarray of shape (n_knots,)
        Probabilities at the knots, non-decreasing and strictly between 0 and 1.  They are
        interpolated linearly between the knots and constant beyond them.
    """

    scores: np.ndarray
    probabilities: np.ndarray

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of scores of shape (n_samples,)."""
        return logit(np.interp(scores, self.scores, self.probabilities))


@dataclass(frozen=True)
class ScoreMaps:
    """Maps of all labels.

    Attributes
    ----------
    logistic : LogisticMaps
        Logistic maps of all labels.
    isotonic : dict of int to IsotonicMap
        Isotonic maps by label index, which replace the logistic ones.
    """

    logistic: LogisticMaps
    isotonic: dict[int, IsotonicMap]

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of scores of shape (n_samples, n_labels)."""
        scores = np.asarray(scores, dtype=np.float64)
        found = self.logistic.log_odds(scores)
        for label, steps in self.isotonic.items():
            found[:, label] = steps.log_odds(scores[:, label])
        return found


def fit_score_maps(
    scores: np.ndarray,
    on: np.ndarray,
    method: str,
    *,
    min_support: int,
    sample_weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> ScoreMaps:
    """Fit one map per label.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of rows that the model was not trained on.
    on : ndarray of bool of shape (n_samples, n_labels)
        Labels of the rows.
    method : {"logistic", "isotonic"}
    min_support : int
        Minimum number of rows (or sum of weights) with and without a label for an isotonic map,
        which has up to one free value per row; other labels get the logistic map.
    sample_weight : ndarray of shape (n_samples,), default=None
    known : ndarray of bool of shape (n_samples, n_labels), default=None
        Which labels are known; the others are ignored.

    Returns
    -------
    ScoreMaps
    """
    logistic = fit_logistic_maps(scores, on, sample_weight=sample_weight, known=known)
    isotonic: dict[int, IsotonicMap] = {}
    if method == "isotonic":
        positive = np.ones(len(on), dtype=bool) if sample_weight is None else sample_weight > 0
        for j in range(on.shape[1]):
            used = positive if known is None else positive & known[:, j]
            weights = None if sample_weight is None else sample_weight[used]
            labels, values = on[used, j], scores[used, j]
            counted = np.ones(len(labels)) if weights is None else weights
            if min(counted[labels].sum(), counted[~labels].sum()) >= min_support:
                isotonic[j] = _fit_isotonic(values, labels, weights)
    return ScoreMaps(logistic, isotonic)


def _fit_isotonic(
    scores: np.ndarray, on: np.ndarray, sample_weight: np.ndarray | None
) -> IsotonicMap:
    # Probabilities stay away from 0 and 1, as if there were one more row of either kind, so that
    # log-odds are finite.
    total = len(on) if sample_weight is None else float(sample_weight.sum())
    margin = 1.0 / (total + 2.0)
    fitted = IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip").fit(
        scores, on.astype(np.float64), sample_weight
    )
    knots = np.asarray(fitted.X_thresholds_, dtype=np.float64)
    return IsotonicMap(knots, np.asarray(fitted.y_thresholds_, dtype=np.float64))
