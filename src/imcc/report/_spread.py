"""Figures of the runs on a data set."""

from __future__ import annotations

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._picture import ACCENT, INK, MUTED, PAPER, Picture, new_figure, style, text_width
from imcc.report._words import (
    arrow,
    capital,
    counted,
    direction,
    metric_title,
    number,
    one_line,
    shorten,
)


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
        axes.locator_params(axis="x", nbins=5, min_n_ticks=2)
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
