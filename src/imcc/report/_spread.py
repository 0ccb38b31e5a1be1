"""Figures of the runs: their spread over repetitions, and time against quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from imcc.comparison import Comparison, ScoreTable
from imcc.experiment import Run
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import (
    arrow,
    capital,
    counted,
    direction,
    metric_title,
    number,
    one_line,
    seconds_text,
    shorten,
)

# Seconds, and how they are written; the fine ones where methods are of nearly the same speed.
_COARSE = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)
_FINE = (
    *(f * 10**e for e in range(-4, 1) for f in (1, 2, 5)),
    *(10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 18000, 36000, 72000, 180000),
)
_NAME_LINE = 0.17  # inches between two names


def draw_spread(scores: ScoreTable, dataset: str, *, control: str | None = None) -> Picture:
    """Draw every run of a data set: a line of points for each method.

    Parameters
    ----------
    scores : ScoreTable
        From :meth:`imcc.experiment.Store.scores`.
    dataset : str
        Which of its data sets.
    control : str, optional
        The method to bring out.
    """
    runs = scores.select([dataset]).values[0]
    shown = [j for j in range(len(scores.methods)) if not np.isnan(runs[j]).all()]
    means = {j: float(np.nanmean(runs[j])) for j in shown}
    shown.sort(key=lambda j: -means[j] if scores.greater_is_better else means[j])
    if not shown:
        raise ValueError(f"scores has no runs on {dataset!r}")
    title = metric_title(scores.metric)
    with style():
        names = [shorten(scores.methods[j]) for j in shown]
        edge = max(text_width(name, 9, "bold") for name in names) + 0.2
        height = 0.27 * len(shown)
        figure = new_figure(edge + 4.4, height + 0.62)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((edge / w, 0.48 / h, 4.2 / w, height / h))
        for row, j in enumerate(shown):
            of_method = runs[j][~np.isnan(runs[j])]
            colour = ACCENT if scores.methods[j] == control else MUTED
            axes.plot([of_method.min(), of_method.max()], [row, row], color=colour, lw=1, alpha=0.6)
            axes.plot(of_method, np.full(len(of_method), row), "o", ms=5, color=colour, mfc=PAPER)
            axes.plot([means[j]] * 2, [row - 0.32, row + 0.32], color=INK, lw=2)
        axes.set_yticks(range(len(shown)), names, fontsize=9)
        for j, label in zip(shown, axes.get_yticklabels(), strict=True):
            if scores.methods[j] == control:
                label.set(color=ACCENT, weight="bold")
        axes.set_ylim(len(shown) - 0.5, -0.5)
        _widen(axes)
        axes.xaxis.set_major_locator(_few_ticks())
        axes.grid(axis="x")
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{title} {arrow(scores.greater_is_better)}")
    n = int((~np.isnan(runs)).sum(axis=1).max())
    caption = (
        f"{one_line(dataset)}: {title} ({direction(scores.greater_is_better)}) of every run. "
        f"Each circle is one run ({counted(n, 'random split')}), the upright line a method's mean; "
        "best mean on top."
    )
    texts = [
        f"{one_line(scores.methods[j])} {number(means[j])} "
        f"({number(float(np.nanmin(runs[j])))} to {number(float(np.nanmax(runs[j])))})"
        for j in shown
    ]
    seen = f"{capital(title)}, mean and range, best first: {'; '.join(texts)}."
    return Picture(figure, caption, seen)


def draw_time(comparison: Comparison, runs: Sequence[Run]) -> Picture:
    """Draw quality against training time, a point for each method.

    Parameters
    ----------
    comparison : Comparison
        Gives the quality: the mean rank over data sets, the mean value on a single one.
    runs : sequence of Run
        Give the time: search and fit, the geometric mean over the data sets of the comparison.
    """
    single = len(comparison.datasets) == 1
    times = _times(comparison, runs)
    quality = comparison.means[0] if single else comparison.mean_ranks
    title = metric_title(comparison.metric)
    label = title if single else f"mean rank by {title}"
    up = comparison.greater_is_better if single else False
    with style():
        edge = max(text_width(shorten(m), 8.5, "bold") for m in comparison.methods) + 0.2
        wide, high = 4.4, max(3.2, _NAME_LINE * len(comparison.methods))
        figure = new_figure(0.68 + wide + edge, 0.65 + high)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((0.68 / w, 0.55 / h, wide / w, high / h))
        axes.set_xscale("log")
        _set_limits(axes, times, quality, up)
        colours = [ACCENT if m == comparison.control else INK for m in comparison.methods]
        for x, y, colour, method in zip(times, quality, colours, comparison.methods, strict=True):
            marker = "D" if method == comparison.control else "o"
            axes.plot([x], [y], marker, ms=6.5, color=colour, mfc=colour, zorder=3)
        axes.grid()
        axes.tick_params(length=0, which="both")
        axes.spines[:].set_visible(False)
        axes.set_xlabel("training time, search included (log scale)")
        axes.set_ylabel(f"{label}, best on top")
        _label_points(axes, times, quality, comparison, colours)
    where = (
        f"on {one_line(comparison.datasets[0])}"
        if single
        else f"over {counted(len(comparison.datasets), 'data set')}"
    )
    what = "geometric mean over data sets and splits" if not single else "geometric mean of splits"
    caption = (
        f"Time against quality {where}: left is fast, up is good. Across: seconds to search the "
        f"parameters and fit, {what}; up: {label}."
    )
    if comparison.control is not None:
        caption += f" {one_line(comparison.control)} is the diamond."
    if len(_computed_on(comparison, runs)) > 1:
        caption += (
            " The runs had different devices or numbers of threads: their times cannot be compared "
            "without that."
        )
    texts = [
        f"{one_line(comparison.methods[i])}: {seconds_text(float(times[i]))}, "
        f"{label} {number(float(quality[i]), 3 if single else 2)}"
        for i in comparison.order
    ]
    return Picture(figure, caption, f"Scatter of time and quality. {'; '.join(texts)}.")


def _computed_on(comparison: Comparison, runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Return the devices and numbers of threads of the runs that the times are of."""
    return {
        (str(run.environment.get("device")), str(run.environment.get("threads")))
        for run in runs
        if run.key[1] in comparison.datasets and run.key[2] in comparison.methods
    }


def _times(comparison: Comparison, runs: Sequence[Run]) -> np.ndarray:
    logs: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        _, dataset, method, _ = run.key
        if dataset in comparison.datasets and method in comparison.methods:
            of_method = logs.setdefault(method, {}).setdefault(dataset, [])
            of_method.append(np.log(max(run.fit_seconds, 1e-6)))
    return np.array(
        [
            np.exp(np.mean([np.mean(values) for values in logs[method].values()]))
            for method in comparison.methods
        ]
    )


def _widen(axes: Any) -> None:
    """Show at least a range of 0.01, so that ticks have few decimals."""
    low, high = axes.get_xlim()
    if high - low < 0.01:
        middle = (low + high) / 2
        axes.set_xlim(middle - 0.005, middle + 0.005)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, min_n_ticks=2)


def _set_limits(axes: Any, times: np.ndarray, quality: np.ndarray, up: bool) -> None:
    from matplotlib.ticker import NullLocator

    low, high = times.min() / 2.5, times.max() * 2.5
    axes.set_xlim(low, high)
    coarse, fine = ([at for at in ticks if low <= at <= high] for ticks in (_COARSE, _FINE))
    ticks = coarse if len(coarse) >= 3 else fine
    axes.set_xticks(ticks, [seconds_text(at) for at in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.12 * float(np.ptp(quality)) or 0.05 * abs(float(quality[0])) or 0.05
    bottom, top = quality.min() - margin, quality.max() + margin
    axes.set_ylim((bottom, top) if up else (top, bottom))
    axes.yaxis.set_major_locator(_few_ticks())


def _label_points(
    axes: Any, times: np.ndarray, quality: np.ndarray, comparison: Comparison, colours: list[str]
) -> None:
    """Write the names in a column on the right, each joined to its point by a thin line.

    In the order of the points and at least a line apart, so that no name covers another one
    however close the points are.
    """
    names = [shorten(name) for name in comparison.methods]
    # As a fraction of the height of the axes, from the bottom.
    heights = axes.transAxes.inverted().transform(
        axes.transData.transform(np.column_stack([times, quality]))
    )[:, 1]
    line = _NAME_LINE / (axes.get_window_extent().height / axes.figure.dpi)
    for i, y in zip(np.argsort(heights), spread_out(np.sort(heights), line), strict=True):
        bold = comparison.methods[i] == comparison.control
        axes.annotate(
            names[i],
            (times[i], quality[i]),
            (1.04, y),
            textcoords="axes fraction",
            fontsize=8.5,
            va="center",
            color=colours[i],
            weight="bold" if bold else "normal",
            arrowprops={"arrowstyle": "-", "color": MUTED, "lw": 0.5, "relpos": (0, 0.5)},
        )


def spread_out(heights: np.ndarray, gap: float) -> np.ndarray:
    """Return the heights nearest to sorted ones, by squares, that are a gap apart within [0, 1].

    Heights a gap apart are an increasing sequence plus ``i * gap``, so the nearest ones are an
    isotonic regression.

    >>> spread_out(np.array([0.5, 0.5]), 0.2)
    array([0.4, 0.6])
    """
    steps = gap * np.arange(len(heights))
    top = max(1 - steps[-1], 0.0)
    return np.asarray(
        IsotonicRegression(y_min=0.0, y_max=top).fit_transform(steps, heights - steps) + steps
    )
