"""Figures of the sensitivity to alpha and gamma, beta, and the number of clusters.

For alpha and gamma, a heat map with its values is shown instead of a surface in perspective, so
that nothing is hidden and every value can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from imcc._utils.validation import check_choice
from imcc.experiment import Study, greater_is_better
from imcc.report._picture import ACCENT, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import (
    capital,
    direction,
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
_NAMES = {"alpha": "alpha", "beta": "beta", "gamma": "gamma", "n_clusters": "number of clusters"}


def draw_surface(study: Study, metric: str) -> Picture:
    """Plot a metric over alpha and gamma as a heat map, with the other parameters at their best.

    Parameters
    ----------
    study : Study
        A sensitivity study.
    metric : str
        Name of a metric of the study.

    Returns
    -------
    Picture
    """
    mean, best = _table(study, metric), study.best_index(metric)
    values = mean[:, best[1], :, best[3]]
    fixed = _setting(study, best, ("beta", "n_clusters"))
    good = greater_is_better(metric)
    with style():
        labels = {name: [setting_value(v) for v in study.axes[name]] for name in ("alpha", "gamma")}
        edge = 0.35 + max(text_width(text, 8.5) for text in labels["alpha"])
        cell = 0.52
        width, height = cell * values.shape[1], 0.36 * values.shape[0]
        figure = new_figure(edge + width + 0.12, height + 0.88)
        axes = figure.add_axes(_inches(figure, edge, 0.52, width, height))
        _draw_cells(axes, values, good)
        axes.add_patch(_frame(best[2], best[0]))
        axes.set_xticks(range(values.shape[1]), labels["gamma"])
        axes.set_yticks(range(values.shape[0]), labels["alpha"])
        axes.set(xlabel="gamma", ylabel="alpha")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        title = f"{shorten(study.key[1], 30)}: {metric_title(metric)}"
        axes.set_title(title, fontsize=9.5, x=0, pad=6)
    low, high = float(values.min()), float(values.max())
    caption = (
        f"{one_line(study.key[1])}: {metric_title(metric)} ({direction(good)}) over alpha and "
        f"gamma, with {fixed}, where it is best. Darker is better; the frame marks the best "
        f"setting. Mean over the folds of a cross-validation on all "
        f"{study.n_rows:,} rows."
    )
    seen = (
        f"Heat map of {len(values)} values of alpha by {values.shape[1]} of gamma. "
        f"{capital(metric_title(metric))} ranges from {number(low)} to {number(high)}; "
        f"best at {_setting(study, best, ('alpha', 'gamma'))}."
    )
    return Picture(figure, caption, seen)


def draw_curve(study: Study, metric: str, parameter: str) -> Picture:
    """Plot a metric over one parameter, with the other parameters at their best.

    Parameters
    ----------
    study : Study
        A sensitivity study.
    metric : str
        Name of a metric of the study.
    parameter : {"alpha", "beta", "gamma", "n_clusters"}
        The parameter on the horizontal axis.

    Returns
    -------
    Picture
    """
    check_choice("parameter", parameter, list(study.axes))
    best = study.best_index(metric)
    axis = list(study.axes).index(parameter)
    line: list[Any] = list(best)
    line[axis] = slice(None)
    mean = _table(study, metric)[tuple(line)]
    std = study.std[study.metrics.index(metric)][tuple(line)]
    others = [name for name in study.axes if name != parameter]
    name, good = _NAMES[parameter], greater_is_better(metric)
    with style():
        figure = new_figure(3.5, 2.65, layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(mean))
        axes.fill_between(places, mean - std, mean + std, color=ACCENT, alpha=0.18, lw=0)
        axes.plot(places, mean, "-o", color=ACCENT, mfc=PAPER, mew=1.4, ms=5.5)
        axes.plot(best[axis], mean[best[axis]], "D", color=ACCENT, ms=7)
        axes.set_xticks(places, [setting_value(v) for v in study.axes[parameter]])
        axes.margins(x=0.06)
        axes.grid(axis="y")
        axes.set(xlabel=name, ylabel=metric_title(metric))
        axes.tick_params(axis="both", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_title(shorten(study.key[1], 30), fontsize=9.5)
    over = f"the {name}" if parameter == "n_clusters" else name
    caption = (
        f"{one_line(study.key[1])}: {metric_title(metric)} ({direction(good)}) over {over}, "
        f"with {_setting(study, best, tuple(others))}. Line: mean over the folds; band: one "
        "standard deviation of the folds to both sides; diamond: best setting."
    )
    texts = [
        f"{setting_value(v)}: {number(float(m))}"
        for v, m in zip(study.axes[parameter], mean, strict=True)
    ]
    seen = f"Curve of {metric_title(metric)} over {over}. {'; '.join(texts)}."
    return Picture(figure, caption, seen)


def _table(study: Study, metric: str) -> np.ndarray:
    check_choice("metric", metric, list(study.metrics))
    return np.asarray(study.mean[study.metrics.index(metric)])


def _setting(study: Study, at: tuple[int, ...], names: tuple[str, ...]) -> str:
    places = dict(zip(study.axes, at, strict=True))
    parts = [f"{_NAMES[n]} {setting_value(study.axes[n][places[n]])}" for n in names]
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def _inches(figure: Any, left: float, bottom: float, width: float, height: float) -> Any:
    w, h = figure.get_size_inches()
    return left / w, bottom / h, width / w, height / h


def _draw_cells(axes: Any, values: np.ndarray, good: bool) -> None:
    """Draw a coloured cell per value, with the value in white or black."""
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("pale to dark", [_PALE, _MIDDLE, _DARK])
    goodness = values if good else -values
    scale = Normalize(float(np.nanmin(goodness)), float(np.nanmax(goodness)))
    edges = [np.arange(n + 1) - 0.5 for n in values.shape]
    axes.pcolormesh(
        *(edges[1], edges[0], goodness),
        cmap=colours,
        norm=scale,
        edgecolors="face",
        linewidth=0.3,
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


def _frame(column: int, row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec="#ff9d2e", lw=2.2, zorder=5)
