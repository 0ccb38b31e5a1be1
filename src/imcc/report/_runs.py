"""Figures of the runs: scores over repetitions, and quality against training time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from imcc.comparison import Comparison, ScoreTable
from imcc.experiment import Run
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
from imcc.report._times import Times, gather_times
from imcc.report._words import (
    arrow,
    capital,
    counted,
    direction,
    joined,
    metric_title,
    number,
    one_line,
    seconds_text,
    shorten,
)

# Ticks of ratios of times; every third is used if these are enough.
_FACTORS = tuple(round(f * 10.0**e, 6) for e in range(-5, 6) for f in (1, 2, 5))
_NAME_LINE = 0.17  # inches between two names


def draw_spread(scores: ScoreTable, dataset: str, control: str | None = None) -> Picture:
    """Plot the scores of all runs on a data set, with one row of points per method.

    Parameters
    ----------
    scores : ScoreTable
        Scores with at least one run on the data set.
    dataset : str
        Name of the data set.
    control : str, default=None
        Name of a method to highlight.
    """
    all_runs = dict(zip(scores.methods, scores.select([dataset]).values[0], strict=True))
    runs = {m: v[~np.isnan(v)] for m, v in all_runs.items() if not np.isnan(v).all()}
    sign = -1 if scores.greater_is_better else 1
    runs = dict(sorted(runs.items(), key=lambda item: sign * item[1].mean()))
    title = metric_title(scores.metric)
    with style():
        names = [shorten(method) for method in runs]
        edge = max(text_width(name, 9, "bold") for name in names) + 0.2
        height = 0.27 * len(runs)
        figure = new_figure(edge + 4.4, height + 0.62)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((edge / w, 0.48 / h, 4.2 / w, height / h))
        axes.set_yticks(range(len(runs)), names, fontsize=9)
        for row, (method, values) in enumerate(runs.items()):
            colour = ACCENT if method == control else MUTED
            axes.plot([values.min(), values.max()], [row, row], color=colour, lw=1, alpha=0.6)
            axes.plot(values, np.full(len(values), row), "o", ms=5, color=colour, mfc=PAPER)
            axes.plot([values.mean()] * 2, [row - 0.32, row + 0.32], color=INK, lw=2)
            if method == control:
                axes.get_yticklabels()[row].set(color=ACCENT, weight="bold")
        axes.set_ylim(len(runs) - 0.5, -0.5)
        low, high = axes.get_xlim()
        if high - low < 0.01:  # so that ticks have few decimals
            axes.set_xlim((low + high) / 2 - 0.005, (low + high) / 2 + 0.005)
        axes.xaxis.set_major_locator(_few_ticks())
        axes.grid(axis="x")
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{title} {arrow(scores.greater_is_better)}")
    n_splits = counted(max(len(values) for values in runs.values()), "random split")
    caption = (
        f"{one_line(dataset)}: {title} ({direction(scores.greater_is_better)}) of every run. "
        f"Each circle is one run ({n_splits}), the upright line a method's mean; best mean on top."
    )
    texts = [
        f"{one_line(m)} {number(v.mean())} ({number(v.min())} to {number(v.max())})"
        for m, v in runs.items()
    ]
    description = f"{capital(title)}, mean and range, best first: {'; '.join(texts)}."
    return Picture(figure, caption, description)


def draw_time(
    comparison: Comparison, runs: Sequence[Run], *, reference: str | None = None
) -> Picture:
    """Plot quality against training time, with one point per method and kind of device.

    Only runs with the most common number of threads are used.  Times on CPUs and GPUs are separate
    points.  Times are divided by those of a reference method on the same data sets, so that methods
    with runs on different data sets can be compared.

    Parameters
    ----------
    comparison : Comparison
        Determines the quality: the mean rank over the data sets, or the mean score if there is only
        one.
    runs : sequence of Run
        Determine the time of search and fit: the median over the splits of a data set, and the
        geometric mean over the data sets of the comparison.
    reference : str, default=None
        The method by whose times the others are divided; by default the fastest of the methods with
        the most data sets.

    Returns
    -------
    Picture
    """
    n_sets = len(comparison.datasets)
    title = metric_title(comparison.metric)
    label = title if n_sets == 1 else f"mean rank by {title}"
    up = comparison.greater_is_better if n_sets == 1 else False
    quality = comparison.means[0] if n_sets == 1 else comparison.mean_ranks
    by_method = dict(zip(comparison.methods, quality.tolist(), strict=True))
    cells = {(d, m) for d in comparison.datasets for m in comparison.methods}
    used = [run for run in runs if run.key[:2] in cells]
    threads, all_times, n_others = gather_times(used)
    candidates = [t for t in all_times if reference in (None, t.method)]
    if not candidates:
        raise ValueError(f"reference must be a method with runs, got {reference!r}")
    unit = min(candidates, key=lambda t: (-len(t.seconds), t.place, t.mean))
    times = [t for t in all_times if t.seconds.keys() & unit.seconds.keys()]
    x = np.array([t.ratio(unit) for t in times])
    y = np.array([by_method[t.method] for t in times])
    several_places = len({t.place for t in times}) > 1
    with style():
        names = [_point_name(t, n_sets, several_places) for t in times]
        edge = max(text_width(name, 8.5, "bold") for name in names) + 0.2
        wide, high = 4.4, max(3.2, _NAME_LINE * len(names))
        figure = new_figure(0.68 + wide + edge, 0.65 + high)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((0.68 / w, 0.55 / h, wide / w, high / h))
        _set_limits(axes, x, y, up)
        # The names in a column on the right, in the order of the points, each connected to its
        # point by a thin line.
        heights = axes.transAxes.inverted().transform(
            axes.transData.transform(np.column_stack([x, y]))
        )[:, 1]
        column = spread_out(np.sort(heights), _NAME_LINE / high)
        for i, height in zip(np.argsort(heights), column, strict=True):
            is_control = times[i].method == comparison.control
            colour = ACCENT if is_control else INK
            marker = "D" if is_control else "o"
            if several_places:
                marker = "o" if times[i].place == "CPU" else "s"
            fill = colour if len(times[i].seconds) == n_sets else PAPER
            axes.plot([x[i]], [y[i]], marker, ms=6.5, color=colour, mfc=fill, zorder=3)
            axes.annotate(
                names[i],
                (x[i], y[i]),
                (1.04, height),
                textcoords="axes fraction",
                fontsize=8.5,
                va="center",
                color=colour,
                weight="bold" if is_control else "normal",
                arrowprops={"arrowstyle": "-", "color": MUTED, "lw": 0.5, "relpos": (0, 0.5)},
            )
        axes.grid()
        axes.tick_params(length=0, which="both")
        axes.spines[:].set_visible(False)
        axes.set_xlabel(
            f"training time, search included, divided by that of {shorten(unit.method)} (log scale)"
        )
        axes.set_ylabel(f"{label}, best on top")
    caption = _time_caption(comparison, label, threads, times, unit, n_others)
    order = np.lexsort((x, -y if up else y))
    texts = [
        f"{one_line(times[i].method)} on a {times[i].place}: {x[i]:.2g} and "
        f"{number(y[i], 3 if n_sets == 1 else 2)}"
        for i in order
    ]
    return Picture(figure, caption, f"Scatter of time and {label}. {'; '.join(texts)}.")


def _point_name(times: Times, n_sets: int, several_places: bool) -> str:
    """Return the name of a method, with device and number of data sets if needed."""
    name = shorten(times.method)
    if several_places:
        name += f", {times.place}"
    n = len(times.seconds)
    return name if n == n_sets else f"{name} ({counted(n, 'set')})"


def _time_caption(
    comparison: Comparison,
    label: str,
    threads: int,
    times: Sequence[Times],
    unit: Times,
    n_others: int,
) -> str:
    n_sets = len(comparison.datasets)
    where = f"on {one_line(comparison.datasets[0])}" if n_sets == 1 else f"over {n_sets} data sets"
    caption = (
        f"Time against quality {where}: left is fast, up is good. Across: time to search the "
        f"parameters and fit divided by that of {one_line(unit.method)} on a {unit.place} "
        f"({seconds_text(unit.mean)}), geometric mean over the data sets that both have there of "
        f"the medians over splits; up: {label}."
        + (f" All with {counted(threads, 'thread')}" if threads else " The threads are not known")
        + (f" ({counted(n_others, 'run')} with another number left out)." if n_others else ".")
    )
    places = {t.place for t in times}
    if len(places) > 1:
        caption += " Circles are times on a CPU, squares on a GPU."
    if any(len(t.seconds) < n_sets for t in times):
        caption += " Open ones are over fewer data sets, whose number is given."
    if comparison.control is not None:
        shown = "the diamond" if len(places) == 1 else "in bold"
        caption += f" {one_line(comparison.control)} is {shown}."
    if any(len({t.machines for t in times if t.place == place}) > 1 for place in places):
        caption += (
            " The runs were computed on different machines: small differences between their times "
            "mean nothing."
        )
    missing = [m for m in comparison.methods if m not in {t.method for t in times}]
    if missing:
        caption += f" Without comparable times: {joined(one_line(m) for m in missing)}."
    return caption


def _set_limits(axes: Any, factors: np.ndarray, quality: np.ndarray, up: bool) -> None:
    from matplotlib.ticker import NullLocator

    low, high = factors.min() / 2.5, factors.max() * 2.5
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    fine = [at for at in _FACTORS if low <= at <= high]
    coarse = [at for at in fine if at in _FACTORS[::3]]
    ticks = coarse if len(coarse) >= 3 else fine
    axes.set_xticks(ticks, [f"{at:g}" for at in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.12 * float(np.ptp(quality)) or 0.05 * abs(float(quality[0])) or 0.05
    bottom, top = quality.min() - margin, quality.max() + margin
    axes.set_ylim((bottom, top) if up else (top, bottom))
    axes.yaxis.set_major_locator(_few_ticks())


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, min_n_ticks=2)


def spread_out(heights: np.ndarray, gap: float) -> np.ndarray:
    """Return the heights in [0, 1], at least ``gap`` apart, nearest in least squares to given ones.

    Such heights are an increasing sequence plus ``i * gap``, so this is an isotonic regression.

    >>> spread_out(np.array([0.5, 0.5]), 0.2)
    array([0.4, 0.6])
    """
    steps = gap * np.arange(len(heights))
    top = max(1 - steps[-1], 0.0)
    return np.asarray(
        IsotonicRegression(y_min=0.0, y_max=top).fit_transform(steps, heights - steps) + steps
    )
