"""Figures of inspections and explanations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc._utils.validation import check_count
from imcc.inspection._columns import ColumnAttribution
from imcc.inspection._diagnostics_figures import save_figure, short_name
from imcc.inspection._explain import Explanation
from imcc.inspection._inspect import Inspection

# Distinguishable by lightness as well as by colour.
_REAL, _VIRTUAL, _REST = "#5b9bd5", "#1f3b66", "#bbbbbb"
# Contributions that increase and decrease a score; they are also on different sides.
_UP, _DOWN = "#5e3c99", "#e66101"
# Orange for -1, purple for +1: distinguishable for colour-blind readers.
_DIVERGING = "PuOr"


def draw_clusters(
    inspection: Inspection,
    path: str | os.PathLike[str],
    *,
    max_clusters: int = 30,
    max_labels: int = 30,
) -> Path:
    """Plot the sizes and the soft labels of the largest clusters.

    Parameters
    ----------
    inspection : Inspection
        Result of :func:`inspect_model`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    max_clusters : int, default=30
        Maximum number of clusters; the largest ones are shown.
    max_labels : int, default=30
        Maximum number of labels; the most frequent ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """
    shown = inspection.largest(max_clusters)
    labels = frequent_labels(inspection, max_labels)
    soft = np.array([cluster.soft_labels[labels] for cluster in shown])
    figure = _figure(2.4 + 0.34 * max(len(labels), 8) + 1.4, 1.7 + 0.25 * max(len(shown), 5))
    bars, matrix = figure.subplots(
        1, 2, sharey=True, width_ratios=[1, max(0.34 * max(len(labels), 8) / 1.6, 1)]
    )
    places = np.arange(len(shown))
    bars.barh(places, [cluster.size for cluster in shown], color=_REAL, height=0.75)
    bars.set_yticks(places, [f"cluster {cluster.index}" for cluster in shown], fontsize=8)
    bars.set_ylim(len(shown) - 0.5, -0.5)
    bars.set_xlabel("rows", fontsize=8)
    bars.tick_params(axis="x", labelsize=8)
    bars.tick_params(axis="y", length=0)
    image = matrix.imshow(soft, cmap=_DIVERGING, vmin=-1, vmax=1, aspect="auto")
    _label_ticks(matrix.set_xticks, inspection, labels)
    matrix.tick_params(length=0)
    which = f"the {len(shown)} largest of {len(inspection.clusters)} clusters"
    if len(shown) == len(inspection.clusters):
        which = f"all {len(shown)} clusters"
    figure.suptitle(
        f"Virtual examples: {which} and their soft labels", fontsize=10, x=0.01, ha="left"
    )
    _colour_bar(figure, image, matrix, "soft label: -1 no row has the label, +1 every row has it")
    _no_frame(bars, matrix)
    return save_figure(figure, path)


def draw_correlations(
    inspection: Inspection, path: str | os.PathLike[str], *, max_labels: int = 30
) -> Path:
    """Plot the correlations of the training labels and the part that the clusters carry.

    Parameters
    ----------
    inspection : Inspection
        Result of :func:`inspect_model`.  If it was computed without the training labels, only the
        carried part is shown.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    max_labels : int, default=30
        Maximum number of labels; the most frequent ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """
    found = inspection.correlations
    labels = frequent_labels(inspection, max_labels)
    panels = [("carried by the virtual examples", found.carried)]
    if found.total is not None:
        panels.insert(0, ("of the training labels", found.total))
    side = 0.27 * max(len(labels), 10) + 1.2
    figure = _figure(side * len(panels) + 1.0, side + 0.5)
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    matrices = [matrix[np.ix_(labels, labels)].copy() for _, matrix in panels]
    for matrix in matrices:
        np.fill_diagonal(matrix, np.nan)
    largest = max(0.1, max(float(np.nanmax(np.abs(m), initial=0.0)) for m in matrices))
    for axes, (title, _), matrix in zip(every, panels, matrices, strict=True):
        image = axes.imshow(matrix, cmap=_DIVERGING, vmin=-largest, vmax=largest)
        axes.set_facecolor("#eeeeee")
        axes.set_title(title, fontsize=9, loc="left")
        _label_ticks(axes.set_xticks, inspection, labels)
        if axes is every[0]:
            _label_ticks(axes.set_yticks, inspection, labels, rotation=0)
        else:
            axes.set_yticks([])
        axes.tick_params(length=0)
    _colour_bar(figure, image, list(every), "correlation")
    title = "Label correlations"
    if not np.isnan(found.share):
        title += f": the virtual examples carry {found.share:.0%}"
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    _no_frame(*every)
    return save_figure(figure, path)


def draw_map(
    inspection: Inspection, path: str | os.PathLike[str], *, label: str | None = None
) -> Path:
    """Plot rows and centres in the plane of the first two principal components of the rows.

    Parameters
    ----------
    inspection : Inspection
        Result of :func:`inspect_model` with known training rows.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    label : str, default=None
        Name of a label; the centres are coloured by its soft label.

    Returns
    -------
    pathlib.Path
        The file.
    """
    if inspection.map is None:
        raise ValueError("the training rows are not known: pass X to inspect_model")
    if label is not None and label not in inspection.label_names:
        raise ValueError(f"label {label!r} is not a label of the model")
    places = inspection.map
    figure = _figure(7.2, 5.4)
    axes = figure.subplots()
    axes.scatter(*places.rows.T, s=9, color="#c9c9c9", linewidth=0, label="training rows")
    sizes = np.array([cluster.size for cluster in inspection.clusters])
    areas = 25 + 260 * sizes / sizes.max()
    style = {"edgecolor": "#222222", "linewidth": 0.8, "zorder": 3}
    if label is None:
        axes.scatter(*places.centers.T, s=areas, color=_REAL, label="centres", alpha=0.9, **style)
    else:
        j = inspection.label_names.index(label)
        soft = np.array([cluster.soft_labels[j] for cluster in inspection.clusters])
        image = axes.scatter(
            *places.centers.T,
            s=areas,
            c=soft,
            cmap=_DIVERGING,
            vmin=-1,
            vmax=1,
            label="centres",
            **style,
        )
        _colour_bar(figure, image, axes, f"soft label {short_name(label)}")
    first, second = places.explained
    axes.set_xlabel(f"first principal component ({first:.0%} of the variance)", fontsize=8.5)
    axes.set_ylabel(f"second principal component ({second:.0%})", fontsize=8.5)
    axes.tick_params(labelsize=8)
    axes.set_title("Rows and virtual examples (size: number of rows)", fontsize=10, loc="left")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    return save_figure(figure, path)


def draw_explanation(
    explanation: Explanation, path: str | os.PathLike[str], *, top: int = 12
) -> Path:
    """Plot the largest contributions to a score, and the sum of the others.

    Parameters
    ----------
    explanation : Explanation
        Result of :func:`explain`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    top : int, default=12
        Number of contributions to show.

    Returns
    -------
    pathlib.Path
        The file.
    """
    parts = explanation.top(top)
    names = [short_name(part.name) for part in parts]
    sizes = [part.contribution for part in parts]
    colours = [_VIRTUAL if part.kind == "center" else _REAL for part in parts]
    totals = explanation.totals()
    rest = sum(totals.values()) - totals["constant"] - sum(sizes)
    count = sum(len(weights) for weights in explanation.weights.values()) - len(parts)
    if count:
        names.append(f"{count} others together")
        sizes.append(rest)
        colours.append(_REST)
    if explanation.by in ("support", "features"):  # the others have no constant part
        names.append("intercept" if explanation.by == "support" else "the mean row")
        sizes.append(explanation.constant)
        colours.append(_REST)
    figure = _figure(6.4, 1.3 + 0.27 * len(names))
    axes = figure.subplots()
    places = np.arange(len(names))
    axes.barh(places, sizes, color=colours, height=0.72)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("contribution to the score", fontsize=8.5)
    verdict = "predicted" if explanation.score >= explanation.threshold else "not predicted"
    axes.set_title(
        f"{short_name(explanation.label)}: score {explanation.score:.3f}, {verdict}",
        fontsize=10,
        loc="left",
    )
    if explanation.by == "evidence":
        sums = f"real rows {totals['row']:+.3f}, virtual examples {totals['center']:+.3f} (dark)"
        axes.text(0, 1.01, sums, transform=axes.transAxes, fontsize=8, color="#444444", va="bottom")
        axes.set_title(axes.get_title(loc="left"), fontsize=10, loc="left", pad=18)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    _no_frame(axes)
    return save_figure(figure, path)


def draw_columns(
    found: ColumnAttribution,
    path: str | os.PathLike[str],
    *,
    label: int | str | None = None,
    top: int = 12,
) -> Path:
    """Plot the contributions of the columns to a score, with standard errors.

    Parameters
    ----------
    found : ColumnAttribution
        Result of :func:`explain_columns`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    label : int or str, default=None
        Index or name; by default, the label whose score exceeds its threshold the most.
    top : int, default=12
        Number of columns to show; the others are summed in one bar.

    Returns
    -------
    pathlib.Path
        The file.
    """
    j = found.index(label)
    parts = found.parts(j, top)
    names = [f"{short_name(p.column)} = {short_name(p.value)}" for p in parts]
    sizes = [part.contribution for part in parts]
    errors = [part.standard_error for part in parts]
    colours = [_UP if size >= 0 else _DOWN for size in sizes]
    if others := len(found.columns) - len(parts):
        names.append(f"{others} others together")
        sizes.append(float(found.contributions[:, j].sum()) - sum(sizes))
        errors.append(float("nan"))
        colours.append(_REST)
    figure = _figure(6.8, 1.4 + 0.27 * len(names))
    axes = figure.subplots()
    places = np.arange(len(names))
    axes.barh(places, sizes, color=colours, height=0.72)
    axes.errorbar(
        sizes, places, xerr=errors, fmt="none", ecolor="#333333", elinewidth=0.9, capsize=2
    )
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(
        f"contribution to the {found.scale} (lines: standard errors), relative to the mean "
        f"{found.baseline[j]:.3f} of {found.n_background} background rows",
        fontsize=8,
    )
    verdict = "predicted" if found.predicted(j) else "not predicted"
    axes.set_title(
        f"{short_name(found.label_names[j])}: {found.scale} {found.scores[j]:.3f}, {verdict}",
        fontsize=10,
        loc="left",
    )
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    _no_frame(axes)
    return save_figure(figure, path)


def frequent_labels(inspection: Inspection, count: int) -> np.ndarray:
    """Return the indices of the most frequent labels, in increasing order."""
    check_count("max_labels", count)
    sizes = np.array([cluster.size for cluster in inspection.clusters], dtype=np.float64)
    shares = sizes @ np.array([cluster.shares for cluster in inspection.clusters])
    return np.sort(np.argsort(-shares, kind="stable")[:count])


def _figure(width: float, height: float) -> Any:
    # A new Figure, not pyplot: no global state is changed, and no display is needed.
    module = require("matplotlib.figure", "Drawing")
    return module.Figure(figsize=(width, height), layout="constrained")


def _label_ticks(
    setter: Any, inspection: Inspection, labels: np.ndarray, rotation: int = 90
) -> None:
    names = [short_name(inspection.label_names[j]) for j in labels]
    setter(np.arange(len(labels)), names, fontsize=8, rotation=rotation)


def _colour_bar(figure: Any, image: Any, axes: Any, label: str) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _no_frame(*every: Any) -> None:
    for axes in every:
        for edge in axes.spines.values():
            edge.set_visible(False)
