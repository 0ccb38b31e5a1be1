"""Looking into a fitted model: its virtual examples, and why a row has its scores.

:func:`inspect_model` shows the clusters with their soft labels, the label correlations they carry
and a map of rows and centres; :func:`explain` takes one score apart into contributions that add up
to it.  :func:`diagnose` judges scores on held-out rows per label, :func:`threshold_curve` shows
precision, recall and F1 against the threshold, and :func:`reliability` what scores are worth as
probabilities.  ``draw_*`` makes pictures of these records and :func:`write_page` one HTML page.
"""

from imcc.inspection._correlations import LabelCorrelations
from imcc.inspection._diagnostics import (
    Diagnostics,
    LabelDiagnosis,
    ThresholdCurve,
    diagnose,
    threshold_curve,
)
from imcc.inspection._diagnostics_figures import draw_reliability, draw_threshold_curves
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
    "Cluster",
    "Diagnostics",
    "Explainer",
    "Explanation",
    "Inspection",
    "LabelCorrelations",
    "LabelDiagnosis",
    "Part",
    "Reliability",
    "RowMap",
    "ThresholdCurve",
    "diagnose",
    "draw_clusters",
    "draw_correlations",
    "draw_explanation",
    "draw_map",
    "draw_reliability",
    "draw_threshold_curves",
    "explain",
    "inspect_model",
    "page",
    "probabilities",
    "reliability",
    "threshold_curve",
    "write_page",
]
