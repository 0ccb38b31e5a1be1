"""Reports on the results of an experiment: tables, figures and an HTML page.

They are created from the results in a store (:class:`imcc.experiment.Store`), complete or not,
without running anything.
"""

from imcc.report._cd_diagram import draw_critical_difference
from imcc.report._picture import Picture
from imcc.report._tables import paper_table, to_latex
from imcc.report._write import write_report, write_tables

__all__ = [
    "Picture",
    "draw_critical_difference",
    "paper_table",
    "to_latex",
    "write_report",
    "write_tables",
]
