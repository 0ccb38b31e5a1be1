"""How a model does on held-out rows, label by label.

:func:`diagnose` judges every label: precision, recall, F1, the area under the ROC curve, average
precision, and the F1 that another threshold would give.  :func:`threshold_curve` shows precision,
recall and F1 against the threshold, :func:`reliability` what scores are worth as probabilities.
All take labels and scores, wherever these come from; ``draw_*`` makes pictures of the records.
"""

from imcc.diagnostics._calibration import Reliability, probabilities, reliability
from imcc.diagnostics._figures import draw_reliability, draw_threshold_curves
from imcc.diagnostics._labels import (
    Diagnostics,
    LabelDiagnosis,
    ThresholdCurve,
    diagnose,
    threshold_curve,
)

__all__ = [
    "Diagnostics",
    "LabelDiagnosis",
    "Reliability",
    "ThresholdCurve",
    "diagnose",
    "draw_reliability",
    "draw_threshold_curves",
    "probabilities",
    "reliability",
    "threshold_curve",
]
