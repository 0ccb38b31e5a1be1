"""Probabilities and thresholds: from scores to decisions.

:class:`MultilabelCalibrator` gives any multi-label classifier probabilities, from scores of rows
that its models have not seen.

Without tuning a label is predicted where its score is at least 0 (Eq. 22 of the paper), or its
probability at least 1/2.  That is the right place for the share of wrong labels when scores are
good estimates, and a poor one for the F1 of a rare label, whose scores seldom get there.
:func:`choose_thresholds` finds the best cut of every label exactly; :class:`TunedThresholds` does
so on cross-validated scores, for any classifier; those of a calibrated one are log-odds.
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
