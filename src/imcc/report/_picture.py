"""A figure with caption and description, as a file or as a part of a page.

In a page, the text of a figure is searchable text in the font of the page.  Figures are laid out
with DejaVu Sans, which is wider than the fonts of browsers, so that texts do not overlap.  Colours
are replaced by CSS variables, for light and dark pages.
"""

from __future__ import annotations

import html
import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imcc._utils.files import save
from imcc._utils.optional import require
from imcc.report._words import one_line

# Few colours; shapes and fillings always carry the same information.  They are distinguishable for
# colour-blind readers and in grey, and have a contrast of at least 4.5 : 1 on white.
INK = "#1b2128"
MUTED = "#59636f"
GRID = "#d9dde3"
ACCENT = "#0b62b0"
PAPER = "#fefefe"
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    ACCENT: "var(--accent)",
    PAPER: "var(--paper)",
}
# What files of each format contain besides the figure: no date, so that they can be compared.
_METADATA = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": None}

_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a name is a dollar sign
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": GRID,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "imcc",
    "pdf.fonttype": 42,
}


@contextmanager
def style(*, all_letters: bool = False) -> Iterator[Any]:
    """Use the style of the reports; a context manager that returns the module ``matplotlib``.

    Parameters
    ----------
    all_letters : bool, default=False
        Whether to warn of glyphs missing in the font; not needed for SVG, where the viewer chooses
        the font.
    """
    matplotlib = require("matplotlib", "Drawing figures")
    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        if not all_letters:
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield matplotlib


def new_figure(width: float, height: float, **options: Any) -> Any:
    """Return a new figure with a size in inches, without a display or global state."""
    figure = require("matplotlib.figure", "Drawing figures")
    return figure.Figure(figsize=(width, height), **options)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in inches."""
    textpath = require("matplotlib.textpath", "Drawing figures")
    fonts = require("matplotlib.font_manager", "Drawing figures")
    font = fonts.FontProperties(family="DejaVu Sans", size=size, weight=weight)
    measure = textpath.TextToPath().get_text_width_height_descent
    return float(measure(text, font, ismath=False)[0]) / 72


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its caption and description.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    caption : str
        Caption.
    description : str
        Text alternative for readers who cannot see the figure.
    """

    figure: Any
    caption: str
    description: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the figure as an SVG, PDF or PNG file with white background.

        Parameters
        ----------
        path : path-like
            File to write; its suffix determines the format.  A PNG file has 200 dots per inch.

        Returns
        -------
        pathlib.Path
            The file.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in _METADATA:
            raise ValueError(f"path must end in {', '.join(_METADATA)}, got {target.name!r}")
        buffer = io.BytesIO()
        options = {"format": suffix[1:], "metadata": _METADATA[suffix]}
        with style(all_letters=suffix != ".svg"):
            self.figure.savefig(buffer, dpi=200, facecolor="white", **options)
        return save(target, buffer.getvalue())

    def inline(self, prefix: str) -> str:
        """Return the figure as an ``<svg>`` element for a page.

        Parameters
        ----------
        prefix : str
            Prefix of all ids, unique for each figure of a page.

        Returns
        -------
        str
        """
        buffer = io.StringIO()
        for artist in self.figure.findobj():
            artist.set_clip_on(False)  # clipping is not needed, and is a third of the text
        with style():
            self.figure.savefig(buffer, format="svg", metadata=_METADATA[".svg"])
        return _for_page(buffer.getvalue(), prefix, html.escape(one_line(self.description)))


_DROPPED = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.S
)
_OPEN = re.compile(r"<svg[^>]*>")
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_REFERENCE = re.compile(r'(?:xlink:href="#|url\(#)([^")]+)')
_ID = re.compile(r' id="([^"]+)"')
_FAMILY = re.compile(r"'DejaVu Sans'(?:, ?(?:'[^']*'|[\w-]+))*")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_DECIMALS = re.compile(r"(\d+\.\d\d)\d+")


def _for_page(svg: str, prefix: str, label: str) -> str:
    """Adapt Matplotlib's SVG to a page: unique ids, CSS colours and font, two decimals.

    Only tags are changed, not the (escaped) text between them.
    """
    svg = _DROPPED.sub("", svg).strip()
    opening = _OPEN.search(svg)
    size = None if opening is None else _SIZE.search(opening[0])
    if opening is None or size is None:  # pragma: no cover
        raise RuntimeError("the SVG written by Matplotlib has an unexpected form")
    used = set(_REFERENCE.findall(svg))

    def in_tag(match: re.Match[str]) -> str:
        tag = _ID.sub(lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", match[0])
        tag = tag.replace('xlink:href="#', f'href="#{prefix}-').replace("url(#", f"url(#{prefix}-")
        tag = _FAMILY.sub("var(--sans)", tag)
        tag = _COLOUR.sub(lambda m: _VARIABLES.get(m[0], m[0]), tag)
        tag = _DECIMALS.sub(r"\1", tag).replace(": ", ":").replace("; ", ";")
        return tag.replace("font-family:var(--sans);", "")  # as the whole figure has it

    body = re.sub(r"<[^>]+>", in_tag, svg[opening.end() :])
    body = re.sub(r">\s+<", "><", body)
    width, height = float(size[1]), float(size[2])
    # Matplotlib's style sheet would apply to the whole page; this only applies to the figure.
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:g} {height:g}" '
        f'style="font-family:var(--sans)" stroke-linejoin="round" stroke-linecap="butt">{body}'
    )
