"""Figures of the sensitivity to alpha and gamma, beta, and the number of clusters.

For alpha and gamma, a heat map with its values is shown instead of a surface in perspective, so
that nothing is hidden and every value can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from imcc.experiment import Study, greater_is_better
from imcc.report._picture import ACCENT, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import (
    capital,
    direction,
    joined,
    metric_title,
    number,
    one_line,
    setting_value,
    shorten,
)

# From light to dark, also in grey.
_PALE, _MIDDLE, _DARK = "#eef4fa", "#4292c6", "#08306b"
# Colours of this luminance have the same contrast to white and to black.
_TURN = 0.179


def draw_surface(study: Study, metric: str) -> Picture:
    """Plot a metric over alpha and gamma as a heat map, with the other parameters at their best."""
    from matplotlib.patches import Rectangle

    values, _ = study.along(metric, "alpha", "gamma")
    row, column = (_best_index(study, metric, name) for name in ("alpha", "gamma"))
    good = greater_is_better(metric)
    title = metric_title(metric)
    with style():
        labels = {name: [setting_value(v) for v in study.axes[name]] for name in ("alpha", "gamma")}
        edge = 0.35 + max(text_width(text, 8.5) for text in labels["alpha"])
        width, height = 0.52 * values.shape[1], 0.36 * values.shape[0]
        figure = new_figure(edge + width + 0.12, height + 0.88)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((edge / w, 0.52 / h, width / w, height / h))
        _draw_cells(axes, values, good)
        corner = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec="#ff9d2e", lw=2.2, zorder=5))
        axes.set_xticks(range(values.shape[1]), labels["gamma"])
        axes.set_yticks(range(values.shape[0]), labels["alpha"])
        axes.set(xlabel="gamma", ylabel="alpha")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(f"{shorten(study.key[1], 30)}: {title}", fontsize=9.5, x=0, pad=6)
    caption = (
        f"{one_line(study.key[1])}: {title} ({direction(good)}) over alpha and gamma, with "
        f"{_setting(study, metric, 'beta', 'n_clusters')}, where it is best. Darker is better; the "
        "frame marks the best setting. Mean over the folds of a cross-validation on all "
        f"{study.n_rows:,} rows."
    )
    description = (
        f"Heat map of {len(values)} values of alpha by {values.shape[1]} of gamma. "
        f"{capital(title)} ranges from {number(values.min())} to {number(values.max())}; best at "
        f"{_setting(study, metric, 'alpha', 'gamma')}."
    )
    return Picture(figure, caption, description)


def draw_curve(study: Study, metric: str, parameter: str) -> Picture:
    """Plot a metric over one parameter, with the other parameters at their best."""
    mean, std = study.along(metric, parameter)
    best = _best_index(study, metric, parameter)
    others = [name for name in study.axes if name != parameter]
    values = [setting_value(v) for v in study.axes[parameter]]
    name, title = _parameter_title(parameter), metric_title(metric)
    with style():
        figure = new_figure(3.5, 2.65, layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(mean))
        axes.fill_between(places, mean - std, mean + std, color=ACCENT, alpha=0.18, lw=0)
        axes.plot(places, mean, "-o", color=ACCENT, mfc=PAPER, mew=1.4, ms=5.5)
        axes.plot(best, mean[best], "D", color=ACCENT, ms=7)
        axes.set_xticks(places, values)
        axes.margins(x=0.06)
        axes.grid(axis="y")
        axes.set(xlabel=name, ylabel=title)
        axes.tick_params(axis="both", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_title(shorten(study.key[1], 30), fontsize=9.5)
    over = f"the {name}" if parameter == "n_clusters" else name
    caption = (
        f"{one_line(study.key[1])}: {title} ({direction(greater_is_better(metric))}) over {over}, "
        f"with {_setting(study, metric, *others)}. Line: mean over the folds; band: one standard "
        "deviation of the folds to both sides; diamond: best setting."
    )
    texts = [f"{value}: {number(m)}" for value, m in zip(values, mean, strict=True)]
    return Picture(figure, caption, f"Curve of {title} over {over}. {'; '.join(texts)}.")


def _parameter_title(name: str) -> str:
    return "number of clusters" if name == "n_clusters" else name


def _best_index(study: Study, metric: str, parameter: str) -> int:
    return study.axes[parameter].index(study.best(metric)[parameter])


def _setting(study: Study, metric: str, *names: str) -> str:
    """Return the best values of some parameters in words."""
    best = study.best(metric)
    return joined(f"{_parameter_title(name)} {setting_value(best[name])}" for name in names)


def _draw_cells(axes: Any, values: np.ndarray, good: bool) -> None:
    """Draw a coloured cell per value, with the value in white or black."""
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("pale to dark", [_PALE, _MIDDLE, _DARK])
    goodness = values if good else -values
    scale = Normalize(float(np.nanmin(goodness)), float(np.nanmax(goodness)))
    edges = [np.arange(n + 1) - 0.5 for n in values.shape]
    axes.pcolormesh(
        *(edges[1], edges[0], goodness), cmap=colours, norm=scale, edgecolors="face", linewidth=0.3
    )
    for (row, column), value in np.ndenumerate(values):
        dark = luminance(colours(scale(goodness[row, column]))[:3]) < _TURN
        axes.text(
            *(column, row, number(float(value))),
            ha="center",
            va="center",
            fontsize=7.5,
            color="#ffffff" if dark else "#10161d",
        )
    axes.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(-0.5, values.shape[0] - 0.5))


def luminance(colour: Sequence[float]) -> float:
    """Return the relative luminance of a colour in sRGB, as WCAG 2 defines it.

    >>> luminance((1.0, 1.0, 1.0))
    1.0
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))
