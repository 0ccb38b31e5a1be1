"""Reports on the results of an experiment: tables, figures and an HTML page.

They are created from the results in a store (:class:`imcc.experiment.Store`), complete or not,
without running anything.
"""

from imcc.report._against_paper import draw_against_paper
from imcc.report._cd_diagram import draw_critical_difference
from imcc.report._picture import Picture
from imcc.report._sensitivity import draw_curve, draw_surface
from imcc.report._spread import draw_spread, draw_time
from imcc.report._tables import PaperTable, TableCell, paper_table, to_html, to_latex, to_markdown
from imcc.report._write import (
    build_report,
    format_tables,
    tables,
    write_figures,
    write_report,
    write_tables,
)

__all__ = [
    "PaperTable",
    "Picture",
    "TableCell",
    "build_report",
    "draw_against_paper",
    "draw_critical_difference",
    "draw_curve",
    "draw_spread",
    "draw_surface",
    "draw_time",
    "format_tables",
    "paper_table",
    "tables",
    "to_html",
    "to_latex",
    "to_markdown",
    "write_figures",
    "write_report",
    "write_tables",
]
