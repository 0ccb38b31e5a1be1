"""Calibrated probabilities and tuned thresholds for multi-label classifiers.

:class:`MultilabelCalibrator` adds calibrated probabilities to any multi-label classifier, fitted to
scores of held-out rows.

By default, a label is predicted where its score is at least 0 (Eq. 22 of the paper), or its
probability at least 1/2.  This minimises the share of wrong labels if the scores are good
estimates, but it is a poor choice for the F1 score of a rare label, whose scores rarely reach the
threshold.  :func:`choose_thresholds` finds the optimal threshold per label, and
:class:`TunedThresholds` does so for any classifier, on cross-validated scores.
"""

from imcc.calibration._calibrator import MultilabelCalibrator, cross_fit_probabilities
from imcc.calibration._cross_fit import (
    cross_fit_scores,
    label_probabilities,
    label_scores,
    scoring_method,
)
from imcc.calibration._cuts import CRITERIA, Cuts, ThresholdChoice, choose_thresholds, cuts
from imcc.calibration._tuned import TunedThresholds, decision_thresholds

__all__ = [
    "CRITERIA",
    "Cuts",
    "MultilabelCalibrator",
    "ThresholdChoice",
    "TunedThresholds",
    "choose_thresholds",
    "cross_fit_probabilities",
    "cross_fit_scores",
    "cuts",
    "decision_thresholds",
    "label_probabilities",
    "label_scores",
    "scoring_method",
]
