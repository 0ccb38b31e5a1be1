"""Looking into a fitted model: its virtual examples, and why a row has its scores.

:func:`inspect_model` shows the clusters with their soft labels, the label correlations they carry
and a map of rows and centres; :func:`explain` takes one score apart into contributions that add up
to it.  :func:`diagnose` judges scores on held-out rows per label, :func:`threshold_curve` shows
precision, recall and F1 against the threshold, and :func:`reliability` what scores are worth as
probabilities; :func:`diagnose_probabilities` judges probabilities, before and after calibration,
with intervals.  ``draw_*`` makes pictures of these records and :func:`write_page` one HTML page.
"""

from imcc.inspection._calibration import (
    CalibrationDiagnostics,
    Estimate,
    LabelCalibration,
    diagnose_probabilities,
    probabilities_before_calibration,
    score_probabilities,
)
from imcc.inspection._correlations import LabelCorrelations
from imcc.inspection._diagnostics import (
    Diagnostics,
    LabelDiagnosis,
    ThresholdCurve,
    diagnose,
    threshold_curve,
)
from imcc.inspection._diagnostics_figures import (
    draw_calibration,
    draw_reliability,
    draw_threshold_curves,
)
from imcc.inspection._ensemble import draw_members
from imcc.inspection._explain import Explainer, Explanation, Part, explain
from imcc.inspection._figures import (
    draw_clusters,
    draw_correlations,
    draw_explanation,
    draw_map,
)
from imcc.inspection._inspect import Cluster, Inspection, RowMap, inspect_model
from imcc.inspection._page import page, write_page
from imcc.inspection._reliability import Reliability, probabilities, reliability

__all__ = [
    "CalibrationDiagnostics",
    "Cluster",
    "Diagnostics",
    "Estimate",
    "Explainer",
    "Explanation",
    "Inspection",
    "LabelCalibration",
    "LabelCorrelations",
    "LabelDiagnosis",
    "Part",
    "Reliability",
    "RowMap",
    "ThresholdCurve",
    "diagnose",
    "diagnose_probabilities",
    "draw_calibration",
    "draw_clusters",
    "draw_correlations",
    "draw_explanation",
    "draw_map",
    "draw_members",
    "draw_reliability",
    "draw_threshold_curves",
    "explain",
    "inspect_model",
    "page",
    "probabilities",
    "probabilities_before_calibration",
    "reliability",
    "score_probabilities",
    "threshold_curve",
    "write_page",
]
