"""The classifiers, as scikit-learn estimators, and wrappers around any multi-label classifier.

:class:`MultilabelCalibrator` adds calibrated probabilities to any multi-label classifier, fitted to
scores of held-out rows.

By default, a label is predicted where its score is at least 0 (Eq. 22 of the paper), or its
probability at least 1/2.  This minimises the share of wrong labels if the scores are good
estimates, but it is a poor choice for the F1 score of a rare label, whose scores rarely reach the
threshold.  :func:`choose_thresholds` finds the optimal threshold per label, and
:class:`TunedThresholds` does so for any classifier, on cross-validated scores.
:class:`GuaranteedThresholds` and :func:`guarantee_thresholds` choose thresholds that promise a
recall or a precision.
"""

from imcc._math.guarantees import NoGuaranteeWarning, guarantee_thresholds
from imcc._math.search.results import EdgeOfGridWarning
from imcc._math.thresholds import choose_thresholds
from imcc.estimators.calibrator import MultilabelCalibrator
from imcc.estimators.cross_fit import cross_fit_scores, label_scores, top_labels
from imcc.estimators.imcc import IMCCClassifier
from imcc.estimators.imcc_cv import IMCCClassifierCV
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier
from imcc.estimators.thresholds import GuaranteedThresholds, TunedThresholds

__all__ = [
    "EdgeOfGridWarning",
    "GuaranteedThresholds",
    "IMCCClassifier",
    "IMCCClassifierCV",
    "KernelEnsembleClassifier",
    "MultilabelCalibrator",
    "NoGuaranteeWarning",
    "TunedThresholds",
    "choose_thresholds",
    "cross_fit_scores",
    "guarantee_thresholds",
    "label_scores",
    "top_labels",
]
