"""Templates, and the tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from imcc._utils.optional import require
from imcc.report._table import PaperTable
from imcc.report._words import one_line, rank_text

_TEMPLATES = ("report.html", "macros.html", "report.css", "report.js")


def templates() -> tuple[Any, dict[str, str]]:
    """Return a Jinja environment that escapes everything, and the texts of the templates."""
    jinja2 = require("jinja2", "report", "Writing a report")
    folder = resources.files("imcc.report") / "templates"
    texts = {name: (folder / name).read_text("utf-8") for name in _TEMPLATES}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment, texts


def table_values(table: PaperTable, about: str = "") -> dict[str, Any]:
    """Return what the template needs for a table.

    Parameters
    ----------
    table : PaperTable
    about : str
        To stand beside its title.
    """
    rows = [
        {
            "name": one_line(dataset),
            "cells": [
                {
                    "value": "" if cell.mean is None else f"{cell.mean:.6g}",
                    "mean": "" if cell.mean is None else f"{cell.mean:.{table.decimals}f}",
                    "std": "" if cell.std is None else f"{cell.std:.{table.decimals}f}",
                    "rank": "" if cell.rank is None else rank_text(cell.rank),
                    "best": cell.best,
                }
                for cell in cells
            ],
        }
        for dataset, cells in zip(table.datasets, table.cells, strict=True)
    ]
    return {
        "title": table.title,
        "about": about,
        "best": "max" if table.greater_is_better else "min",
        "headings": table.headings()[1:],
        "rows": rows,
        "average": table.rows()[-1][1:] if table.mean_ranks else (),
        "notes": table.notes,
    }


def to_html(tables: Iterable[PaperTable]) -> str:
    """Return tables as HTML, one after the other, without any style.

    Parameters
    ----------
    tables : iterable of PaperTable
        From :func:`paper_table` or :func:`tables`.
    """
    macros = templates()[0].get_template("macros.html").module
    return "\n".join(str(macros.scores(table_values(table), sortable=False)) for table in tables)
