"""The words and figures of the templates of reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from imcc._utils.optional import require
from imcc.report import _words as words
from imcc.report._picture import Picture

#: Mark of pages written by this package, which may be overwritten.
MARK = '<meta name="generator" content="imcc report'
#: Functions of _words that the templates use.
FILTERS = {
    name: getattr(words, name)
    for name in (
        *("arrow", "bytes_text", "capital", "counted", "direction", "metric_title", "number"),
        *("one_line", "p_text", "rank_text", "seconds_text", "shorten", "signed"),
    )
}


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
