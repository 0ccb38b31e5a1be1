"""HTML pages that are single files: templates, styles, figures, and one script.

Everything that a template shows is escaped.  A page loads nothing and runs no other script, which
its content security policy ensures even if a name from a data file were included as markup by
mistake.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable
from importlib import resources
from typing import Any

import imcc
from imcc._utils.optional import require
from imcc.report import _words as words
from imcc.report._picture import Picture

#: Mark of pages written by this module, which may be overwritten.
MARK = '<meta name="generator" content="imcc report'
# Functions of _words that the templates use.
_FILTERS = (
    *("arrow", "bytes_text", "capital", "counted", "direction", "metric_title", "number"),
    *("one_line", "p_text", "rank_text", "seconds_text", "shorten", "signed"),
)


def render_page(template: str, **values: Any) -> str:
    """Return the page of a template.

    Parameters
    ----------
    template : str
        Name of a file in the folder ``templates``.  Besides the values, it gets ``version``,
        ``css``, ``script`` and the hash ``script_hash`` for the content security policy.
    **values : object
        What the template shows.
    """
    jinja2 = require("jinja2", "Writing a report")
    markup = require("markupsafe", "Writing a report").Markup
    folder = resources.files("imcc.report") / "templates"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.is_file()}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {name: getattr(words, name) for name in _FILTERS}
    environment.filters["sort_key"] = lambda value: "" if math.isnan(value) else f"{value:.6g}"
    script = texts["report.js"].strip()
    digest = hashlib.sha256(script.encode()).digest()
    page: str = environment.get_template(template).render(
        version=imcc.__version__,
        css=markup(texts["report.css"].strip()),
        script=markup(script),
        script_hash=base64.b64encode(digest).decode(),
        **values,
    )
    return page


def inline_figures(pictures: Iterable[tuple[str, Picture]]) -> dict[str, dict[str, Any]]:
    """Return figures by name for the macro ``figure`` of the templates."""
    markup = require("markupsafe", "Writing a report").Markup
    return {
        name: {
            "svg": markup(picture.inline(f"f{number}")),
            "caption": picture.caption,
            "width": round(72 * float(picture.figure.get_size_inches()[0])),
        }
        for number, (name, picture) in enumerate(pictures, 1)
    }
