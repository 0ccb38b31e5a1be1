"""Critical-difference diagrams (Demšar 2006, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from imcc.comparison import Comparison, cliques
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import counted, joined, metric_title, one_line, p_text, shorten

_AXIS = 4.0  # inches
_LINE = 0.235  # between two names
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
    if comparison.nemenyi is None:
        raise ValueError(f"comparison has no tests of ranks: {comparison.reasons['nemenyi']}")
    with_control = control and comparison.control_ranks is not None
    with style():
        return _Drawing(comparison, with_control).picture()


class _Drawing:
    """The parts of a diagram, in inches from the top left corner."""

    def __init__(self, comparison: Comparison, with_control: bool) -> None:
        self.comparison = comparison
        self.ranks = comparison.mean_ranks
        self.k = len(self.ranks)
        self.control = comparison.control_ranks if with_control else None
        assert comparison.nemenyi is not None
        if self.control is not None:
            self.critical = self.control.bonferroni_dunn_critical_difference
            self.groups: tuple[tuple[int, ...], ...] = ()
        else:
            self.critical = comparison.nemenyi.critical_difference
            self.groups = cliques(comparison.nemenyi.significant, self.ranks, contiguous=True)
        self.names = [shorten(name) for name in comparison.methods]
        # The names of the better half are on the left, from top to bottom; the others on the right.
        half = (self.k + 1) // 2
        self.left, self.right = comparison.order[:half], comparison.order[half:]
        # The ruler's text may be longer than the names on the right.
        self.edge = self._widest(self.left)
        self.right_edge = max(self._widest(self.right), 0.95)
        self.axis_y = 0.62
        self.bars_y = self.axis_y + (0.2 if self.groups else 0.1)
        self.first_y = self.bars_y + 0.11 * len(self.groups) + 0.2
        self.width = self.edge + _AXIS + self.right_edge
        self.height = self.first_y + _LINE * (half - 1) + 0.18

    def _widest(self, methods: Sequence[int]) -> float:
        return max(text_width(self._label(i), _SIZE, "bold") for i in methods) + 0.25

    def _label(self, method: int) -> str:
        return f"{self.names[method]}  {self.ranks[method]:.2f}"

    def _x(self, rank: float) -> float:
        return self.edge + (rank - 1) / (self.k - 1) * _AXIS

    def picture(self) -> Picture:
        figure = new_figure(self.width, self.height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        self._draw_axis(axes)
        self._draw_ruler(axes)
        if self.control is not None:
            self._draw_interval(axes)
        for row, group in enumerate(self.groups):
            self._draw_bar(axes, group, self.bars_y + 0.11 * row)
        for side, methods in (("left", self.left), ("right", self.right[::-1])):
            for row, method in enumerate(methods):
                self._draw_method(axes, method, side, self.first_y + _LINE * row)
        return Picture(figure, self._caption(), self._seen())

    def _draw_axis(self, axes: Any) -> None:
        axes.plot([self._x(1), self._x(self.k)], [self.axis_y] * 2, color=INK, lw=1)
        for rank in range(1, self.k + 1):
            axes.plot([self._x(rank)] * 2, [self.axis_y - 0.06, self.axis_y], color=INK, lw=0.8)
            axes.text(
                self._x(rank), self.axis_y - 0.09, str(rank), ha="center", va="bottom", fontsize=8
            )

    def _draw_ruler(self, axes: Any) -> None:
        text = f"CD = {self.critical:.2f}"
        start, length = self._x(1), self._x(1 + self.critical) - self._x(1)
        y = 0.2
        if start + length + text_width(text, 8.5) + 0.1 > self.width:
            axes.text(
                start, y, text + " (longer than the axis)", fontsize=8.5, color=MUTED, va="center"
            )
            return
        axes.plot([start, start + length], [y, y], color=MUTED, lw=1.4)
        for x in (start, start + length):
            axes.plot([x, x], [y - 0.05, y + 0.05], color=MUTED, lw=1.4)
        axes.text(start + length + 0.08, y, text, fontsize=8.5, color=MUTED, va="center")

    def _draw_interval(self, axes: Any) -> None:
        assert self.control is not None
        middle = float(self.ranks[self.control.control])
        low, high = max(middle - self.critical, 1.0), min(middle + self.critical, self.k)
        ends = [self._x(low), self._x(high)]
        axes.fill_between(
            ends, self.axis_y - 0.055, self.axis_y + 0.055, color=ACCENT, alpha=0.28, lw=0
        )
        for rank, x in zip((low, high), ends, strict=True):
            if 1 < rank < self.k:  # an end of the interval, not of the axis
                axes.plot([x, x], [self.axis_y - 0.055, self.axis_y + 0.055], color=ACCENT, lw=2)

    def _draw_bar(self, axes: Any, group: tuple[int, ...], y: float) -> None:
        ranks = self.ranks[list(group)]
        ends = [self._x(ranks.min()) - 0.05, self._x(ranks.max()) + 0.05]
        axes.plot(ends, [y, y], color=INK, lw=3.2, solid_capstyle="round")

    def _draw_method(self, axes: Any, method: int, side: str, y: float) -> None:
        x, left = self._x(self.ranks[method]), side == "left"
        end = self.edge - 0.08 if left else self.width - self.right_edge + 0.08
        is_control = self.control is not None and method == self.control.control
        differs = self.control is not None and self.control.bonferroni_dunn_significant[method]
        colour = ACCENT if is_control else INK
        axes.plot([x, x, end], [self.axis_y, y, y], color=colour if is_control else MUTED, lw=0.9)
        marker, inside = ("D" if is_control else "o"), (colour if differs or is_control else PAPER)
        axes.plot(
            *([x], [self.axis_y], marker),
            ms=6.5 if is_control else 6,
            color=colour,
            mfc=inside,
            mew=1.3,
            zorder=5 if is_control else 4,
        )
        axes.text(
            end - 0.07 if left else end + 0.07,
            y,
            self._label(method),
            ha="right" if left else "left",
            va="center",
            fontsize=_SIZE,
            color=colour,
            weight="bold" if is_control else "normal",
        )

    def _caption(self) -> str:
        caption = self._reading()
        if self.k == 2:
            caption += (
                " With two methods Wilcoxon's test is preferable: it uses the size of the "
                "differences, ranks do not."
            )
        return caption

    def _reading(self) -> str:
        comparison = self.comparison
        head = (
            f"Mean ranks by {metric_title(comparison.metric)} over "
            f"{counted(len(comparison.rows), 'data set')}; 1 is best, on the left. "
        )
        level = f"level {comparison.alpha:g}"
        if self.control is None:
            return (
                head + "Methods joined by a thick bar are not significantly different: their mean "
                f"ranks are closer than the critical difference CD = {self.critical:.2f} "
                f"(Nemenyi's test of all pairs, {level})."
            )
        name = one_line(comparison.methods[self.control.control])
        return (
            head + f"The shaded interval is the critical difference CD = {self.critical:.2f} to "
            f"both sides of {name} (diamond). Methods outside (full circles) differ from it, those "
            f"inside (open circles) do not significantly (Bonferroni and Dunn's test, {level}; "
            f"Nemenyi's, made for all pairs, would have "
            f"CD = {self.control.nemenyi_critical_difference:.2f})."
        )

    def _seen(self) -> str:
        comparison = self.comparison
        order = "; ".join(
            f"{one_line(comparison.methods[i])} {self.ranks[i]:.2f}" for i in comparison.order
        )
        parts = [
            f"Critical-difference diagram, {metric_title(comparison.metric)}. "
            f"Mean ranks, best first: {order}."
        ]
        if comparison.friedman is not None:
            parts.append(f"Friedman's test: {p_text(float(comparison.friedman.f_p))}.")
        if self.control is not None:
            different = np.flatnonzero(self.control.bonferroni_dunn_significant)
            names = joined(one_line(comparison.methods[i]) for i in different) or "no method"
            name = one_line(comparison.methods[self.control.control])
            parts.append(f"Different from {name}: {names}.")
        else:
            groups = [joined(one_line(comparison.methods[i]) for i in g) for g in self.groups]
            parts.append(
                "Groups without significant differences: " + ("; ".join(groups) or "none") + "."
            )
        return " ".join(parts)
