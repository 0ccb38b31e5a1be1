"""Inspection of fitted models: virtual examples, explanations and diagnostics.

:func:`model_page` writes a page about a model, and :func:`find_label_issues` lists labels that look
wrong.  :func:`inspect_model` returns the clusters with their soft labels, the label correlations
that they represent.  :func:`explain` decomposes a score into contributions that add up to it;
:func:`explain_columns` does so by the columns of a table, for any model, :func:`nearest_rows` finds
similar training rows, and :func:`explain_row` does both.  :func:`diagnose` evaluates scores on
held-out rows per label, :func:`threshold_curve` computes precision, recall and F1 as functions of
the threshold, and :func:`diagnose_probabilities` compares probabilities with observed frequencies,
before and after calibration, with confidence intervals.  The functions ``draw_*`` plot these
results.
"""

from imcc.inspection._calibration import (
    diagnose_probabilities,
    probabilities_before_calibration,
    score_probabilities,
)
from imcc.inspection._clusters import inspect_model
from imcc.inspection._columns import explain_columns
from imcc.inspection._diagnostics import diagnose, threshold_curve
from imcc.inspection._evaluate import evaluate_model
from imcc.inspection._explain import Explainer, explain
from imcc.inspection._figures import (
    draw_calibration,
    draw_clusters,
    draw_correlations,
    draw_diagnostics,
    draw_explanation,
    draw_members,
    draw_threshold_curves,
)
from imcc.inspection._label_issues import find_label_issues
from imcc.inspection._page import model_page
from imcc.inspection._rows import explain_row, nearest_rows

__all__ = [
    "Explainer",
    "diagnose",
    "diagnose_probabilities",
    "draw_calibration",
    "draw_clusters",
    "draw_correlations",
    "draw_diagnostics",
    "draw_explanation",
    "draw_members",
    "draw_threshold_curves",
    "evaluate_model",
    "explain",
    "explain_columns",
    "explain_row",
    "find_label_issues",
    "inspect_model",
    "model_page",
    "nearest_rows",
    "probabilities_before_calibration",
    "score_probabilities",
    "threshold_curve",
]
