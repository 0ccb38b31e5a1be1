"""Critical-difference diagrams (Demšar 2006, figure 1)."""

from __future__ import annotations

import numpy as np

from imcc.comparison import Comparison
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import counted, joined, metric_title, one_line, p_text, shorten

_AXIS = 4.0  # inches
_AXIS_Y = 0.62  # inches from the top
_LINE = 0.235  # inches between two names
_BAR = 0.11  # inches between two bars
_SIZE = 9.0  # of the names, in points


def draw_critical_difference(comparison: Comparison, *, control: bool = True) -> Picture:
    """Plot a critical-difference diagram: mean ranks, and methods that do not differ significantly.

    With a control, an interval of Bonferroni and Dunn's critical difference on both sides of it is
    shown; methods outside differ significantly from the control.  Otherwise, bars join groups of
    methods that do not differ significantly by Nemenyi's test.

    Parameters
    ----------
    comparison : Comparison
        Comparison of at least two methods on at least two data sets.
    control : bool, default=True
        Whether to compare with the control of the comparison, if it has one.

    Returns
    -------
    Picture

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine
    Learning Research 7, 2006.
    """
    if comparison.nemenyi is None or comparison.friedman is None:
        raise ValueError(f"comparison has no tests of ranks: {comparison.reasons['nemenyi']}")
    against = comparison.against_control if control else None
    if against is None:
        critical, groups = comparison.nemenyi.critical_difference, comparison.nemenyi.cliques
    else:
        critical, groups = against.critical_difference, ()
    ranks, k = comparison.mean_ranks, len(comparison.methods)
    labels = [
        f"{shorten(name)}  {rank:.2f}" for name, rank in zip(comparison.methods, ranks, strict=True)
    ]
    # The names of the better half are on the left, from top to bottom; the others on the right.
    half = (k + 1) // 2
    left, right = comparison.order[:half], comparison.order[half:]
    bars_y = _AXIS_Y + (0.2 if groups else 0.1)
    names_y = bars_y + _BAR * len(groups) + 0.2
    with style():
        widths = [text_width(label, _SIZE, "bold") + 0.25 for label in labels]
        left_edge = max(widths[i] for i in left)
        # The ruler's text may be longer than the names on the right.
        right_edge = max(0.95, *(widths[i] for i in right))
        width = left_edge + _AXIS + right_edge
        height = names_y + _LINE * (half - 1) + 0.18
        figure = new_figure(width, height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))  # inches from the top left corner
        axes.axis("off")

        def place(rank: float) -> float:
            return left_edge + (rank - 1) / (k - 1) * _AXIS

        # The axis.
        axes.plot([place(1), place(k)], [_AXIS_Y] * 2, color=INK, lw=1)
        for rank in range(1, k + 1):
            x = place(rank)
            axes.plot([x, x], [_AXIS_Y - 0.06, _AXIS_Y], color=INK, lw=0.8)
            axes.text(x, _AXIS_Y - 0.09, str(rank), ha="center", va="bottom", fontsize=8)
        # The critical difference as a ruler.
        text, start, end, y = f"CD = {critical:.2f}", place(1), place(1 + critical), 0.2
        if end + text_width(text, 8.5) + 0.1 > width:
            text, end = f"{text} (longer than the axis)", start - 0.08
        else:
            axes.plot([start, end], [y, y], color=MUTED, lw=1.4)
            for x in (start, end):
                axes.plot([x, x], [y - 0.05, y + 0.05], color=MUTED, lw=1.4)
        axes.text(end + 0.08, y, text, fontsize=8.5, color=MUTED, va="center")
        # The interval around the control, with ends inside of the axis.
        if against is not None:
            low, high = (ranks[against.control] + sign * critical for sign in (-1, 1))
            ends = [place(max(low, 1)), place(min(high, k))]
            heights = _AXIS_Y - 0.055, _AXIS_Y + 0.055
            axes.fill_between(ends, *heights, color=ACCENT, alpha=0.28, lw=0)
            for rank in (low, high):
                if 1 < rank < k:
                    axes.plot([place(rank)] * 2, heights, color=ACCENT, lw=2)
        for row, group in enumerate(groups):
            among = ranks[list(group)]
            ends = [place(among.min()) - 0.05, place(among.max()) + 0.05]
            y = bars_y + _BAR * row
            axes.plot(ends, [y, y], color=INK, lw=3.2, solid_capstyle="round")
        for side, methods in (("right", left), ("left", right[::-1])):  # the ends of the names
            for row, method in enumerate(methods):
                is_control = against is not None and method == against.control
                differs = against is not None and against.ranks_differ[method]
                colour = ACCENT if is_control else INK
                x, y = place(ranks[method]), names_y + _LINE * row
                end = left_edge - 0.08 if side == "right" else width - right_edge + 0.08
                axes.plot(
                    [x, x, end], [_AXIS_Y, y, y], color=ACCENT if is_control else MUTED, lw=0.9
                )
                axes.plot(
                    *([x], [_AXIS_Y], "D" if is_control else "o"),
                    ms=6.5 if is_control else 6,
                    color=colour,
                    mfc=colour if differs or is_control else PAPER,
                    mew=1.3,
                    zorder=5 if is_control else 4,
                )
                axes.text(
                    end - 0.07 if side == "right" else end + 0.07,
                    y,
                    labels[method],
                    ha=side,
                    va="center",
                    fontsize=_SIZE,
                    color=colour,
                    weight="bold" if is_control else "normal",
                )
    names = [one_line(name) for name in comparison.methods]
    title = metric_title(comparison.metric)
    order = "; ".join(f"{names[i]} {ranks[i]:.2f}" for i in comparison.order)
    caption = (
        f"Mean ranks by {title} over {counted(len(comparison.datasets), 'data set')}; 1 is best, "
        "on the left. "
    )
    if against is not None:
        own = names[against.control]
        different = joined(names[i] for i in np.flatnonzero(against.ranks_differ))
        caption += (
            f"The shaded interval is the critical difference CD = {critical:.2f} to both sides of "
            f"{own} (diamond). Methods outside (full circles) differ from it, those inside "
            "(open circles) do not significantly (Bonferroni and Dunn's test, level "
            f"{comparison.alpha:g})."
        )
        groups_text = f"Different from {own}: {different or 'no method'}."
    else:
        together = "; ".join(joined(names[i] for i in group) for group in groups)
        caption += (
            "Methods joined by a thick bar are not significantly different: their mean ranks are "
            f"closer than the critical difference CD = {critical:.2f} (Nemenyi's test of all "
            f"pairs, level {comparison.alpha:g})."
        )
        groups_text = f"Groups without significant differences: {together or 'none'}."
    description = (
        f"Critical-difference diagram, {title}. Mean ranks, best first: {order}. Friedman's test: "
        f"{p_text(comparison.friedman.f_p)}. {groups_text}"
    )
    return Picture(figure, caption, description)
