"""The figure of the page: differences on each data set, with intervals over its splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from imcc.comparison import ScoreTable, effect_size
from imcc.report import Picture
from imcc_paper.reproduction.per_set import by_data_set
from imcc_paper.reproduction.ranked import YAHOO, differences, family_differences
from imcc_paper.reproduction.rows import CONTROL, named

#: The methods that the ensemble is compared with, each with colour and marker.
RIVALS = {
    "kernel_ridge_calibrated": ("#0b62b0", "o"),
    "lightgbm": ("#b93815", "s"),
    "logistic": ("#00755c", "D"),
}
_INK, _MUTED, _BAND = "#1b2128", "#59636f", "#eceef1"
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": _MUTED,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _INK,
    "ytick.left": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "imcc",
}
# A line of the figure: a name, and for each rival mean and half of the interval.
Line = tuple[str, list[tuple[float, float]]]


def draw(developed: ScoreTable, outside: ScoreTable) -> Picture:
    """Draw the ensemble minus each rival, for the data sets of the paper and for those outside.

    A table need not have all rivals.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    panels = [
        ("Developed on other splits of these", _lines(developed)),
        ("Nothing was chosen on these", _lines(outside)),
    ]
    with mpl.rc_context(_STYLE):
        n_rows = max(len(lines) for _, lines in panels)
        figure = Figure(figsize=(10.0, 0.8 + 0.24 * n_rows), layout="constrained")
        for ax, (title, lines) in zip(figure.subplots(1, 2), panels, strict=True):
            _panel(ax, lines, n_rows)
            ax.set_title(title)
            ax.set_xlabel("average precision: ensemble minus the other")
        handles = [
            Line2D([], [], color=colour, marker=mark, markersize=4.5, label=named(rival))
            for rival, (colour, mark) in RIVALS.items()
        ]
        ax.legend(handles=handles, loc="lower right", title="The other:", alignment="left")
    return Picture(figure, "", _description(panels))


def _lines(scores: ScoreTable) -> list[Line]:
    """Return the data sets, those of Yahoo together, and the means over all of them."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for rival in (name for name in RIVALS if name in scores.methods):
        for dataset, mean, half, _ in by_data_set(scores, CONTROL, rival):
            found.setdefault(dataset, {})[rival] = mean, half
    order = sorted(found, key=lambda name: name in YAHOO)  # the others in their order
    absent = (np.nan, np.nan)
    lines = [
        (f"{name} (Yahoo)" if name in YAHOO else name,
         [found[name].get(rival, absent) for rival in RIVALS])
        for name in order
    ]  # fmt: skip

    def means(gaps: Callable[[ScoreTable, str, str], np.ndarray]) -> list[tuple[float, float]]:
        there = [rival in scores.methods for rival in RIVALS]
        return [
            _mean(gaps(scores, CONTROL, rival)) if has else absent
            for rival, has in zip(RIVALS, there, strict=True)
        ]

    lines.append(("mean", means(differences)))
    if set(YAHOO) & set(order):
        lines.append(("mean, Yahoo as one", means(family_differences)))
    return lines


def _mean(gap: np.ndarray) -> tuple[float, float]:
    mean, (_, high) = effect_size(gap)
    return mean, high - mean


def _panel(ax: Any, lines: list[Line], n_rows: int) -> None:
    from matplotlib.ticker import MaxNLocator

    for row, (name, line) in enumerate(lines):
        if name.startswith("mean"):
            ax.axhspan(row - 0.5, row + 0.5, color=_BAND, zorder=0, linewidth=0)
        for k, ((mean, half), (colour, mark)) in enumerate(zip(line, RIVALS.values(), strict=True)):
            sure = np.isfinite(half)
            ax.errorbar(
                mean,
                row + 0.25 * (k - 1),
                xerr=half if sure else None,
                color=colour,
                marker=mark,
                markersize=4.5,
                markerfacecolor=colour if sure else "none",
                linewidth=1.3,
            )
    ax.axvline(0, color=_MUTED, linewidth=0.9, zorder=1)
    ax.set_yticks(range(len(lines)), labels=[name for name, _ in lines])
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(axis="x", color="#d9dde3", linewidth=0.7)
    ax.set_axisbelow(True)


def _description(panels: list[tuple[str, list[Line]]]) -> str:
    """Return the figure in words, for readers who cannot see it."""
    parts = []
    for title, lines in panels:
        name, line = next(found for found in lines if found[0] == "mean")
        means = ", ".join(
            f"{mean:+.4f} ± {half:.4f} against {named(rival)}"
            for (mean, half), rival in zip(line, RIVALS, strict=True)
            if np.isfinite(mean)
        )
        parts.append(f"{title}: {name} {means}")
    return "Average precision of the ensemble minus that of others by data set. " + ". ".join(parts)
