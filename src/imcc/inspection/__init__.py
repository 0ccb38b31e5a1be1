"""Inspection of fitted models: virtual examples, explanations and diagnostics.

:func:`model_page` writes a page about a model, and :func:`find_label_issues` lists labels that look
wrong.  :func:`inspect_model` returns the clusters with their soft labels and the label correlations
that they represent.  :func:`explain_columns` decomposes scores into contributions of the columns of
a table, for any model, :func:`nearest_rows` finds similar training rows, and :func:`explain_row`
does both.  :func:`diagnose` evaluates scores on
held-out rows per label, and :func:`diagnose_probabilities` compares probabilities with observed
frequencies, with confidence intervals.
"""

from imcc.inspection._calibration import diagnose_probabilities, score_probabilities
from imcc.inspection._clusters import inspect_model
from imcc.inspection._columns import explain_columns
from imcc.inspection._diagnostics import diagnose
from imcc.inspection._evaluate import evaluate_model
from imcc.inspection._label_issues import find_label_issues
from imcc.inspection._page import model_page
from imcc.inspection._rows import explain_row, nearest_rows

__all__ = [
    "diagnose",
    "diagnose_probabilities",
    "evaluate_model",
    "explain_columns",
    "explain_row",
    "find_label_issues",
    "inspect_model",
    "model_page",
    "nearest_rows",
    "score_probabilities",
]
