"""Figures of the runs: scores over repetitions, and quality against training time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from imcc.comparison import Comparison, ScoreTable
from imcc.experiment import Run
from imcc.report._cost import Times, gather_times, ratio
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
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

# Ticks in seconds; the fine ones are used if the methods are of similar speed.
_COARSE = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)
_FINE = (
    *(f * 10**e for e in range(-4, 1) for f in (1, 2, 5)),
    *(10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 18000, 36000, 72000, 180000),
)
_FACTORS = tuple(round(f * 10.0**e, 6) for e in range(-5, 6) for f in (1, 2, 5))
_NAME_LINE = 0.17  # inches between two names


def draw_spread(scores: ScoreTable, dataset: str, *, control: str | None = None) -> Picture:
    """Plot the scores of all runs on a data set, with one row of points per method.

    Parameters
    ----------
    scores : ScoreTable
        Scores, for example of :meth:`imcc.experiment.Store.scores`.
    dataset : str
        Name of the data set.
    control : str, default=None
        Name of a method to highlight.

    Returns
    -------
    Picture
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


@dataclass(frozen=True)
class _Point:
    """Time and quality of a method on CPUs or GPUs.

    Attributes
    ----------
    times : Times
    x : float
        Seconds, or the ratio to the time of the reference.
    y : float
        Quality.
    """

    times: Times
    x: float
    y: float


def draw_time(
    comparison: Comparison, runs: Sequence[Run], *, reference: str | None = None
) -> Picture:
    """Plot quality against training time, with one point per method and kind of device.

    Only runs with the most common number of threads are used.  Times on CPUs and GPUs are separate
    points.  If not all points have all data sets, seconds would not be comparable; the times are
    then divided by those of a reference method on the same data sets.

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
        the most data sets, and only if it is needed.

    Returns
    -------
    Picture
    """
    single = len(comparison.datasets) == 1
    title = metric_title(comparison.metric)
    label = title if single else f"mean rank by {title}"
    up = comparison.greater_is_better if single else False
    threads, points, unit, others = _points(comparison, runs, reference)
    n_sets = len(comparison.datasets)
    places = sorted({point.times.place for point in points})
    names = [_point_name(point, points, n_sets) for point in points]
    x, y = (np.array([getattr(point, axis) for point in points]) for axis in "xy")
    control = [point.times.method == comparison.control for point in points]
    with style():
        edge = max(text_width(name, 8.5, "bold") for name in names) + 0.2
        wide, high = 4.4, max(3.2, _NAME_LINE * len(names))
        figure = new_figure(0.68 + wide + edge, 0.65 + high)
        w, h = figure.get_size_inches()
        axes = figure.add_axes((0.68 / w, 0.55 / h, wide / w, high / h))
        axes.set_xscale("log")
        _set_limits(axes, x, y, up, relative=unit is not None)
        colours = [ACCENT if own else INK for own in control]
        for point, colour, own in zip(points, colours, control, strict=True):
            if len(places) > 1:
                marker = "o" if point.times.place == "CPU" else "s"
            else:
                marker = "D" if own else "o"
            whole = len(point.times.seconds) == n_sets
            fill = colour if whole else PAPER
            axes.plot([point.x], [point.y], marker, ms=6.5, color=colour, mfc=fill, zorder=3)
        axes.grid()
        axes.tick_params(length=0, which="both")
        axes.spines[:].set_visible(False)
        by = "" if unit is None else f", divided by that of {shorten(unit.method)}"
        axes.set_xlabel(f"training time, search included{by} (log scale)")
        axes.set_ylabel(f"{label}, best on top")
        _label_points(axes, x, y, names, colours, control)
    caption = _time_caption(comparison, label, threads, places, points, unit, others)
    texts = [
        f"{one_line(point.times.method)} on a {point.times.place}: "
        + (seconds_text(point.x) if unit is None else f"{point.x:.2g}")
        + f" and {number(point.y, 3 if single else 2)}"
        for point in sorted(points, key=lambda point: (-point.y if up else point.y, point.x))
    ]
    return Picture(figure, caption, f"Scatter of time and {label}. {'; '.join(texts)}.")


def _points(
    comparison: Comparison, runs: Sequence[Run], reference: str | None
) -> tuple[int, list[_Point], Times | None, int]:
    """Return the number of threads, the points, the reference and the number of other runs.

    Other runs are those with another number of threads, which are not used.
    """
    used = [r for r in runs if r.key[1] in comparison.datasets and r.key[2] in comparison.methods]
    threads, times, others = gather_times(used)
    quality = comparison.means[0] if len(comparison.datasets) == 1 else comparison.mean_ranks
    by_method = dict(zip(comparison.methods, quality.tolist(), strict=True))
    unit = None
    if reference is not None or any(len(t.seconds) < len(comparison.datasets) for t in times):
        of = [t for t in times if reference is None or t.method == reference]
        if not of:
            raise ValueError(f"reference must be a method with runs, got {reference!r}")
        # The fastest of those with the most data sets, preferably on a CPU.
        unit = min(of, key=lambda t: (-len(t.seconds), t.place, _mean_seconds(t)))
    points = []
    for t in times:
        x = _mean_seconds(t) if unit is None else ratio(t, unit)
        if x is not None:
            points.append(_Point(t, x, by_method[t.method]))
    return threads, points, unit, others


def _mean_seconds(times: Times) -> float:
    logs = [np.log(max(seconds, 1e-6)) for seconds in times.seconds.values()]
    return float(np.exp(np.mean(logs)))


def _point_name(point: _Point, points: Sequence[_Point], n_sets: int) -> str:
    """Return the name of a method, with device and number of data sets if needed."""
    name = shorten(point.times.method)
    if len({other.times.place for other in points}) > 1:
        name += f", {point.times.place}"
    n = len(point.times.seconds)
    return name if n == n_sets else f"{name} ({counted(n, 'set')})"


def _time_caption(
    comparison: Comparison,
    label: str,
    threads: int,
    places: Sequence[str],
    points: Sequence[_Point],
    unit: Times | None,
    others: int,
) -> str:
    n_sets = len(comparison.datasets)
    single = n_sets == 1
    where = f"on {one_line(comparison.datasets[0])}" if single else f"over {n_sets} data sets"
    if unit is None and single:
        what = "seconds to search the parameters and fit, median of the splits"
    elif unit is None:
        what = (
            "seconds to search the parameters and fit, geometric mean over data sets of the "
            "medians over splits"
        )
    else:
        what = (
            f"time to search the parameters and fit divided by that of "
            f"{one_line(unit.method)} on a {unit.place}, geometric mean over the data "
            "sets that both have there"
        )
    caption = (
        f"Time against quality {where}: left is fast, up is good. Across: {what}; up: {label}."
    )
    caption += (
        f" All with {counted(threads, 'thread')}" if threads else " The threads are not known"
    )
    if others:
        caption += f" ({counted(others, 'run')} with another number left out)"
    caption += "."
    if len(places) > 1:
        caption += " Circles are times on a CPU, squares on a GPU."
    if any(len(point.times.seconds) < n_sets for point in points):
        caption += " Open ones are over fewer data sets, whose number is given."
    if comparison.control is not None:
        shown = "the diamond" if len(places) == 1 else "in bold"
        caption += f" {one_line(comparison.control)} is {shown}."
    if any(
        len({m for p in points if p.times.place == at for m in p.times.machines}) > 1
        for at in places
    ):
        caption += (
            " The runs were computed on different machines: small differences between their times "
            "mean nothing."
        )
    missing = [m for m in comparison.methods if m not in {p.times.method for p in points}]
    if missing:
        caption += f" Without comparable times: {joined(one_line(m) for m in missing)}."
    return caption


def _widen(axes: Any) -> None:
    """Show at least a range of 0.01, so that ticks have few decimals."""
    low, high = axes.get_xlim()
    if high - low < 0.01:
        middle = (low + high) / 2
        axes.set_xlim(middle - 0.005, middle + 0.005)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, min_n_ticks=2)


def _set_limits(
    axes: Any, times: np.ndarray, quality: np.ndarray, up: bool, *, relative: bool
) -> None:
    from matplotlib.ticker import NullLocator

    low, high = times.min() / 2.5, times.max() * 2.5
    axes.set_xlim(low, high)
    coarse, fine = ([at for at in ticks if low <= at <= high] for ticks in (_COARSE, _FINE))
    ticks = coarse if len(coarse) >= 3 else fine
    if relative:
        fine = [at for at in _FACTORS if low <= at <= high]
        coarse = [at for at in fine if at in _FACTORS[::3]]
        ticks = coarse if len(coarse) >= 3 else fine
    axes.set_xticks(ticks, [f"{at:g}" if relative else seconds_text(at) for at in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.12 * float(np.ptp(quality)) or 0.05 * abs(float(quality[0])) or 0.05
    bottom, top = quality.min() - margin, quality.max() + margin
    axes.set_ylim((bottom, top) if up else (top, bottom))
    axes.yaxis.set_major_locator(_few_ticks())


def _label_points(
    axes: Any,
    times: np.ndarray,
    quality: np.ndarray,
    names: Sequence[str],
    colours: Sequence[str],
    bold: Sequence[bool],
) -> None:
    """Write the names in a column on the right, each connected to its point by a thin line.

    They are in the order of the points and at least a line apart, so that names never overlap.
    """
    # As a fraction of the height of the axes, from the bottom.
    heights = axes.transAxes.inverted().transform(
        axes.transData.transform(np.column_stack([times, quality]))
    )[:, 1]
    line = _NAME_LINE / (axes.get_window_extent().height / axes.figure.dpi)
    for i, y in zip(np.argsort(heights), spread_out(np.sort(heights), line), strict=True):
        axes.annotate(
            names[i],
            (times[i], quality[i]),
            (1.04, y),
            textcoords="axes fraction",
            fontsize=8.5,
            va="center",
            color=colours[i],
            weight="bold" if bold[i] else "normal",
            arrowprops={"arrowstyle": "-", "color": MUTED, "lw": 0.5, "relpos": (0, 0.5)},
        )


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
