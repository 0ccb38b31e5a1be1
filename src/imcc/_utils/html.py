"""HTML pages that are single files: a template, styles and one script.

Everything that a template shows is escaped.  A page loads nothing and runs no other script, which
its content security policy ensures even if a name from a data file were included as markup by
mistake.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import imcc
from imcc._utils.optional import require


def render_page(
    package: str, template: str, filters: Mapping[str, Callable[..., Any]], **values: Any
) -> str:
    """Return the page of a template.

    Parameters
    ----------
    package : str
        Package with a folder ``templates``.  NAME.html fills the blocks of ``page.html``, which is
        the frame of all pages.  The files NAME.css and NAME.js beside it, if there are any, follow
        the styles and the script of all pages.
    template : str
        Name of the template, without its suffix.  Besides the values, it gets ``version``, ``css``,
        ``script`` and the hash ``script_hash`` for the content security policy.
    filters : mapping of str to callable
        Functions that the template uses.
    **values : object
        What the template shows.
    """
    jinja2 = require("jinja2", "Writing a page")
    markup = require("markupsafe", "Writing a page").Markup
    shared, own = _texts("imcc._utils"), _texts(package)
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(shared | own),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= filters
    environment.filters["sort_key"] = lambda value: "" if math.isnan(value) else f"{value:.6g}"
    script, css = (
        (shared[f"page.{kind}"] + own.get(f"{template}.{kind}", "")).strip()
        for kind in ("js", "css")
    )
    digest = hashlib.sha256(script.encode()).digest()
    page: str = environment.get_template(f"{template}.html").render(
        version=imcc.__version__,
        css=markup(css),
        script=markup(script),
        script_hash=base64.b64encode(digest).decode(),
        **values,
    )
    return page


def _texts(package: str) -> dict[str, str]:
    folder = resources.files(package) / "templates"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.is_file()}


def embedded_json(value: Any) -> Any:
    """Return JSON for the inside of a script element, which no text in it can end."""
    markup = require("markupsafe", "Writing a page").Markup
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
