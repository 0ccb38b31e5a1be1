"""The pictures of the gallery: each one drawn for a light and for a dark page."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Patch
from matplotlib.text import Text

from imcc.report import Picture

INK, PAPER = "#1f2933", "#ffffff"
DARK_INK, DARK_PAPER = "#e5e9ee", "#14181e"
COLOURS = ["#2f7fc1", "#e0812f", "#2f9e6b", "#c44e79", "#8b6fd1", "#8c8c8c", "#b59b18"]


def use_style(gallery_conf: Any, fname: Any) -> None:
    """Set the style of all pictures, before each example."""
    mpl.use("agg")
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 4.0),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": mpl.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "axes.labelsize": 9.5,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "svg.hashsalt": "imcc",
        }
    )


def light_and_dark(block: Any, block_vars: dict[str, Any], gallery_conf: Any) -> str:
    """Save every figure twice, and return the reStructuredText that shows the fitting one."""
    parts = []
    figures = [plt.figure(number) for number in plt.get_fignums()]
    figures += _new_pictures(block_vars)
    for figure, path in zip(figures, block_vars["image_path_iterator"], strict=False):
        light = Path(path)
        dark = light.with_name(f"{light.stem}_dark.png")
        figure.savefig(light, facecolor=PAPER)
        darken(figure)
        figure.savefig(dark, facecolor=DARK_PAPER)
        title = " ".join(_title(figure).split())
        for file, name in ((light, "only-light"), (dark, "only-dark")):
            where = PurePosixPath("/", file.relative_to(gallery_conf["src_dir"]).as_posix())
            # Not image-sg: it writes the first class only, and both pictures would be seen.
            parts.append(
                f"\n.. image:: {where}\n   :alt: {title}\n   :class: sphx-glr-single-img {name}\n"
            )
    plt.close("all")
    return "".join(parts)


def _new_pictures(block_vars: dict[str, Any]) -> list[Any]:
    """Return the figures of imcc.report that an example has made since the last block."""
    names = block_vars["example_globals"]
    seen = names.setdefault("__seen_pictures__", set())
    found = [value for value in names.values() if isinstance(value, Picture)]
    new = [value for value in found if id(value) not in seen]
    seen.update(id(value) for value in new)
    for value in new:  # their parts have fixed places
        value.figure.set_layout_engine("none")
    return [value.figure for value in new]


def _title(figure: Any) -> str:
    titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    return ", ".join(title for title in titles if title) or "Figure"


def darken(figure: Any) -> None:
    """Exchange dark ink and light paper in a figure; other colours stay as they are."""
    figure.set_facecolor(DARK_PAPER)
    for artist in figure.findobj():
        if isinstance(artist, Text):
            if artist.get_bbox_patch() is None and _is_ink(artist.get_color()):
                artist.set_color(DARK_INK)
        elif isinstance(artist, Patch):
            if _is_paper(artist.get_facecolor()):
                artist.set_facecolor(DARK_PAPER)
            if _is_ink(artist.get_edgecolor()):
                artist.set_edgecolor(DARK_INK)
            elif _is_paper(artist.get_edgecolor()):
                artist.set_edgecolor(DARK_PAPER)
        elif hasattr(artist, "get_color") and hasattr(artist, "set_color"):
            _exchange(artist, "color")
        elif hasattr(artist, "set_edgecolors"):
            _exchange(artist, "edgecolor")


def _exchange(artist: Any, what: str) -> None:
    colours = getattr(artist, f"get_{what}")()
    try:
        single = to_rgb(colours if isinstance(colours, str) else colours[0])
    except (ValueError, TypeError, IndexError):
        return
    if not isinstance(colours, str) and len(colours) > 1 and not isinstance(colours[0], float):
        return
    if _is_ink(single):
        getattr(artist, f"set_{what}")(DARK_INK)
    elif _is_paper(single):
        getattr(artist, f"set_{what}")(DARK_PAPER)


def _is_ink(colour: Any) -> bool:
    return _visible(colour) and max(to_rgb(colour)) < 0.3


def _is_paper(colour: Any) -> bool:
    return _visible(colour) and to_hex(to_rgb(colour)) == PAPER


def _visible(colour: Any) -> bool:
    if isinstance(colour, str):
        return colour != "none"
    return len(colour) < 4 or colour[3] > 0
