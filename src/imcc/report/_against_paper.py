"""Figure of the differences between new and published results, with intervals."""

from __future__ import annotations

import math
from typing import Any

from imcc._utils.validation import check_choice
from imcc.metrics import METRICS
from imcc.published import Cell, PublishedComparison
from imcc.report._picture import (
    BAD,
    GOOD,
    GRID,
    INK,
    MUTED,
    PAPER,
    Picture,
    new_figure,
    style,
    text_width,
)
from imcc.report._words import (
    MINUS,
    capital,
    counted,
    direction,
    joined,
    metric_title,
    one_line,
    shorten,
)

# Verdict: colour and marker.  Up is better than the paper, down is worse.
_LOOKS = {"reproduced": (MUTED, "o"), "better": (GOOD, "^"), "worse": (BAD, "v")}


def draw_against_paper(result: PublishedComparison, metric: str) -> Picture:
    """Plot new means minus those of the paper, with one panel per method and one row per data set.

    Parameters
    ----------
    result : PublishedComparison
        Result of :func:`imcc.published.compare_with_published`.
    metric : str
        Name of a metric of the comparison.

    Returns
    -------
    Picture
    """
    check_choice("metric", metric, list(dict.fromkeys(cell.metric for cell in result.cells)))
    cells = [c for c in result.cells if c.metric == metric and c.mean is not None]
    if not cells:
        raise ValueError(f"result has no cell with runs by {metric!r}")
    methods = list(dict.fromkeys(cell.method for cell in cells))
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    greater = METRICS[metric].greater_is_better
    title = metric_title(metric)
    with style():
        edge = max(text_width(shorten(name), 9) for name in datasets) + 0.2
        wide = 3.6 if len(methods) == 1 else max(1.45, 3.6 / len(methods) + 0.9)
        height = 0.24 * len(datasets)
        figure = new_figure(edge + (wide + 0.22) * len(methods), height + 0.85)
        w, h = figure.get_size_inches()
        for column, method in enumerate(methods):
            left = edge + (wide + 0.22) * column
            axes = figure.add_axes((left / w, 0.5 / h, wide / w, height / h))
            of_method = [cell for cell in cells if cell.method == method]
            _draw_panel(axes, of_method, datasets, column == 0)
            axes.set_title(shorten(method, 16), fontsize=9.5, loc="center", pad=5)
        figure.text(
            (edge + 0.1) / w, 0.07 / h, f"our {title} minus the paper's", fontsize=9, color=MUTED
        )
    caption = (
        f"{capital(title)} ({direction(greater)}): our mean minus the paper's, which is the "
        "upright line at 0. The bars are what chance can do: where a bar reaches 0, the paper's "
        "number is reproduced (circle); a triangle up is better than the paper beyond chance, "
        "down is worse. Open markers: the paper's own number is in doubt (failed runs)."
    )
    return Picture(figure, caption, _seen(title, cells, methods))


def _draw_panel(axes: Any, cells: list[Cell], datasets: list[str], names: bool) -> None:
    axes.axvline(0, color=INK, lw=1)
    # All cells with the same marker in one line: a third of the size in a page.
    for look in dict.fromkeys((cell.verdict, cell.doubtful is not None) for cell in cells):
        alike = [cell for cell in cells if (cell.verdict, cell.doubtful is not None) == look]
        (colour, marker), inside = _LOOKS[look[0]], PAPER if look[1] else None
        rows = [datasets.index(cell.dataset) for cell in alike]
        middles = [float(cell.difference or 0) for cell in alike]
        bars = [
            (m - _reach(cell), m + _reach(cell), math.nan)
            for m, cell in zip(middles, alike, strict=True)
        ]
        heights = [(row, row, math.nan) for row in rows]
        axes.plot(sum(bars, ()), sum(heights, ()), color=colour, lw=1.4)
        axes.plot(middles, rows, marker, ms=6, color=colour, mfc=inside or colour, mew=1.2)
    far = max(abs(float(cell.difference or 0)) + _reach(cell) for cell in cells) * 1.08
    tick = _nice(far)
    axes.set(xlim=(-far, far), ylim=(len(datasets) - 0.5, -0.5))
    axes.set_xticks([-tick, 0, tick], [f"{MINUS}{tick:g}", "0", f"+{tick:g}"])
    lines = [((-far, far, math.nan), (row, row, math.nan)) for row in range(len(datasets))]
    axes.plot(
        *(sum((line[i] for line in lines), ()) for i in (0, 1)), color=GRID, lw=0.7, zorder=0.5
    )
    axes.set_yticks([], [])
    if names:
        axes.set_yticks(range(len(datasets)), [shorten(d) for d in datasets], fontsize=9)
    axes.grid(axis="x")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _reach(cell: Cell) -> float:
    return float((cell.threshold or 0) * (cell.standard_error or 0)) + 0.0005


def _nice(far: float) -> float:
    """Return a round number of at most 80 % of a length, for the ticks."""
    power = 10.0 ** math.floor(math.log10(far))
    fitting = [f * p for p in (power / 10, power) for f in (1, 2, 5) if f * p <= 0.8 * far]
    return float(f"{max(fitting):.3g}")


def _seen(title: str, cells: list[Cell], methods: list[str]) -> str:
    parts = []
    for method in methods:
        of_method = [cell for cell in cells if cell.method == method]
        counts = []
        for verdict in _LOOKS:
            names = [one_line(c.dataset) for c in of_method if c.verdict == verdict]
            if names and verdict == "reproduced":
                counts.append(f"{verdict} on {counted(len(names), 'data set')}")
            elif names:
                counts.append(f"{verdict} on {joined(names)}")
        parts.append(f"{one_line(method)}: {', '.join(counts)}")
    return f"Differences of {title} to the paper. {'; '.join(parts)}."
