"""Looking into a fitted model: its virtual examples, and why a row has its scores.

:func:`inspect_model` shows the clusters with their soft labels, the label correlations they carry
and a map of rows and centres; :func:`explain` takes one score apart into contributions that add up
to it.  ``draw_*`` makes pictures of these records and :func:`write_page` one HTML page.
"""

from imcc.inspection._correlations import LabelCorrelations
from imcc.inspection._explain import Explainer, Explanation, Part, explain
from imcc.inspection._figures import (
    draw_clusters,
    draw_correlations,
    draw_explanation,
    draw_map,
)
from imcc.inspection._inspect import Cluster, Inspection, RowMap, inspect_model
from imcc.inspection._page import page, write_page

__all__ = [
    "Cluster",
    "Explainer",
    "Explanation",
    "Inspection",
    "LabelCorrelations",
    "Part",
    "RowMap",
    "draw_clusters",
    "draw_correlations",
    "draw_explanation",
    "draw_map",
    "explain",
    "inspect_model",
    "page",
    "write_page",
]
