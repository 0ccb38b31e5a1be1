"""Maps from scores to log-odds, one per label: logistic, or isotonic where a label has enough rows.

Both are fitted to scores of rows that the model was not trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from imcc._core.logistic import LogisticMaps, fit_logistic_maps

METHODS = ("logistic", "isotonic")


@dataclass(frozen=True)
class IsotonicMap:
    """A non-decreasing map from the scores of one label to its log-odds.

    Attributes
    ----------
    scores : ndarray of shape (n_knots,)
        Increasing.
    probabilities : ndarray of shape (n_knots,)
        Non-decreasing, strictly between 0 and 1; linear between the knots, constant beyond them.
    """

    scores: np.ndarray
    probabilities: np.ndarray

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of scores of shape (n_samples,)."""
        return logit(np.interp(scores, self.scores, self.probabilities))

    def score_at(self, log_odds: float) -> float:
        """Return the smallest score with at least these log-odds: -inf if all have them."""
        wanted, chances = float(expit(log_odds)), self.probabilities
        k = int(np.searchsorted(chances, wanted))  # the first knot with at least the probability
        if k == 0:
            return -np.inf
        if k == len(chances):
            return np.inf
        part = (wanted - chances[k - 1]) / (chances[k] - chances[k - 1])
        return float(self.scores[k - 1] + part * (self.scores[k] - self.scores[k - 1]))


@dataclass(frozen=True)
class ScoreMaps:
    """The maps of all labels.

    Attributes
    ----------
    logistic : LogisticMaps
        For every label.
    isotonic : dict of int to IsotonicMap
        For the labels with an isotonic map, which is then used instead.
    """

    logistic: LogisticMaps
    isotonic: dict[int, IsotonicMap]

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of scores of shape (n_samples, n_labels)."""
        scores = np.asarray(scores, dtype=np.float64)
        found = np.asarray(self.logistic.log_odds(scores), dtype=np.float64)
        if self.isotonic:
            found = found.copy()
        for label, steps in self.isotonic.items():
            found[:, label] = steps.log_odds(scores[:, label])
        return found

    def scores_at(self, log_odds: np.ndarray) -> np.ndarray:
        """Return the smallest score of each label with at least these log-odds.

        Parameters
        ----------
        log_odds : ndarray of shape (n_labels,)

        Returns
        -------
        ndarray of shape (n_labels,)
            -inf where all scores have them, inf where none has.
        """
        found = self.logistic.scores_at(log_odds)
        for label, steps in self.isotonic.items():
            found[label] = steps.score_at(float(log_odds[label]))
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
    on : boolean ndarray of shape (n_samples, n_labels)
        Their labels.
    method : {"logistic", "isotonic"}
    min_support : int
        Labels with fewer rows than this among those with, or among those without the label get the
        logistic map: an isotonic one has as many free values as there are rows.
    sample_weight : ndarray of shape (n_samples,), optional
    known : boolean ndarray of shape (n_samples, n_labels), optional
        Which labels are known; the others are left out.
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
    # Away from 0 and 1 by what one more row of the other kind would bring, so that log-odds are
    # finite: a score beyond all others is no proof.
    total = len(on) if sample_weight is None else float(sample_weight.sum())
    margin = 1.0 / (total + 2.0)
    fitted = IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip").fit(
        scores, on.astype(np.float64), sample_weight
    )
    knots = np.asarray(fitted.X_thresholds_, dtype=np.float64)
    return IsotonicMap(knots, np.asarray(fitted.y_thresholds_, dtype=np.float64))
