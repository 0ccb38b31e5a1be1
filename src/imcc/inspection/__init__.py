"""Inspection of fitted models: virtual examples, explanations and diagnostics.

:func:`inspect_model` returns the clusters with their soft labels, the label correlations that they
represent and a two-dimensional map of rows and centres.  :func:`explain` decomposes a score into
contributions that add up to it; :func:`explain_columns` does so by the columns of a table, for any
model.  :func:`diagnose` evaluates scores on held-out rows per label, :func:`threshold_curve`
computes precision, recall and F1 as functions of the threshold, :func:`reliability` compares
probabilities with observed frequencies, and :func:`diagnose_probabilities` evaluates probabilities
before and after calibration, with confidence intervals.  The functions ``draw_*`` plot these
results, and :func:`write_page` writes an HTML page.
"""

from imcc.inspection._bootstrap import Estimate
from imcc.inspection._calibration import (
    CalibrationDiagnostics,
    LabelCalibration,
    diagnose_probabilities,
    probabilities_before_calibration,
    score_probabilities,
)
from imcc.inspection._columns import ColumnAttribution, ColumnPart, explain_columns
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
    draw_diagnostics,
    draw_reliability,
    draw_threshold_curves,
)
from imcc.inspection._ensemble import draw_members
from imcc.inspection._evaluate import Evaluation, evaluate_model
from imcc.inspection._explain import Explainer, Explanation, Part, explain
from imcc.inspection._figures import (
    draw_clusters,
    draw_columns,
    draw_correlations,
    draw_explanation,
    draw_map,
)
from imcc.inspection._inspect import Cluster, Inspection, RowMap, inspect_model
from imcc.inspection._page import page, write_page
from imcc.inspection._reliability import Reliability, probabilities, reliability
from imcc.inspection._rows import (
    GroupDescription,
    GroupFact,
    NearestRows,
    RowReport,
    cluster_of,
    describe_group,
    nearest_rows,
)

__all__ = [
    "CalibrationDiagnostics",
    "Cluster",
    "ColumnAttribution",
    "ColumnPart",
    "Diagnostics",
    "Estimate",
    "Evaluation",
    "Explainer",
    "Explanation",
    "GroupDescription",
    "GroupFact",
    "Inspection",
    "LabelCalibration",
    "LabelCorrelations",
    "LabelDiagnosis",
    "NearestRows",
    "Part",
    "Reliability",
    "RowMap",
    "RowReport",
    "ThresholdCurve",
    "cluster_of",
    "describe_group",
    "diagnose",
    "diagnose_probabilities",
    "draw_calibration",
    "draw_clusters",
    "draw_columns",
    "draw_correlations",
    "draw_diagnostics",
    "draw_explanation",
    "draw_map",
    "draw_members",
    "draw_reliability",
    "draw_threshold_curves",
    "evaluate_model",
    "explain",
    "explain_columns",
    "inspect_model",
    "nearest_rows",
    "page",
    "probabilities",
    "probabilities_before_calibration",
    "reliability",
    "score_probabilities",
    "threshold_curve",
    "write_page",
]
