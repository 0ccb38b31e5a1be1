"""Figures of the results.

Each function writes a file, ``.png``, ``.svg`` or ``.pdf``, and returns its path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._utils.errors import InvalidTypeError
from imcc._utils.optional import require
from imcc._utils.validation import check_count
from imcc._utils.wrappers import innermost
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier
from imcc.inspection._bootstrap import Estimate
from imcc.inspection._calibration import CalibrationDiagnostics, LabelCalibration
from imcc.inspection._clusters import Inspection
from imcc.inspection._columns import ColumnAttribution
from imcc.inspection._diagnostics import Diagnostics, ThresholdCurve
from imcc.inspection._ensemble import member_name
from imcc.inspection._explain import Explanation

PathLike = str | os.PathLike[str]

SUFFIXES = (".png", ".svg", ".pdf")
_LONGEST_NAME = 26
# Distinguishable without colour, by line style and lightness.
_PRECISION, _RECALL, _F1 = ("#5b9bd5", "--"), ("#d98b3f", ":"), ("#1f3b66", "-")
_BEFORE = ("#d98b3f", "--")
_MEASURES = {"average_precision": "average precision", "f1": "F1", "auc": "AUC"}
_REAL, _VIRTUAL, _REST = "#5b9bd5", "#1f3b66", "#bbbbbb"
# Contributions that increase and decrease a score; they are also on different sides.
_UP, _DOWN = "#5e3c99", "#e66101"
# Orange for -1, purple for +1: distinguishable for colour-blind readers.
_DIVERGING = "PuOr"
# Views are distinguished by colour and lightness, kernels by hatching.
_HATCHES = {"rbf": "", "laplacian": "///", "linear": "..."}
_COLOURS = {
    "raw": "#1f3b66",
    "standard": "#5b9bd5",
    "ranks": "#e08214",
    "root": "#b2abd2",
    "unit": "#5b9bd5",
    "tfidf": "#e08214",
}


def draw_clusters(
    inspection: Inspection,
    path: PathLike,
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
    labels = _frequent_labels(inspection, max_labels)
    soft = np.array([cluster.soft_labels[labels] for cluster in shown])
    figure = _figure(2.4 + 0.34 * max(len(labels), 8) + 1.4, 1.7 + 0.25 * max(len(shown), 5))
    bars, matrix = figure.subplots(
        1, 2, sharey=True, width_ratios=[1, max(0.34 * max(len(labels), 8) / 1.6, 1)]
    )
    names = [f"cluster {cluster.index}" for cluster in shown]
    _horizontal_bars(bars, names, [cluster.size for cluster in shown], [_REAL] * len(shown))
    bars.set_xlabel("rows", fontsize=8)
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
    _no_frame(matrix)
    return _save(figure, path)


def draw_correlations(inspection: Inspection, path: PathLike, *, max_labels: int = 30) -> Path:
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
    labels = _frequent_labels(inspection, max_labels)
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
    return _save(figure, path)


def draw_explanation(
    found: Explanation | ColumnAttribution,
    path: PathLike,
    *,
    label: int | str | None = None,
    top: int = 12,
) -> Path:
    """Plot the largest contributions to a score, and the sum of the others.

    Parameters
    ----------
    found : Explanation or ColumnAttribution
        Result of :func:`explain` or :func:`explain_columns`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    label : int or str, default=None
        Index or name of a label, for the result of :func:`explain_columns`; by default, the label
        whose score exceeds its threshold the most.
    top : int, default=12
        Number of contributions to show.

    Returns
    -------
    pathlib.Path
        The file.
    """
    errors: list[float] = []
    if isinstance(found, ColumnAttribution):
        j = found.index(label)
        parts = found.parts(j, top)
        bars = [(f"{_short(p.column)} = {_short(p.value)}", p.contribution) for p in parts]
        colours = [_UP if size >= 0 else _DOWN for _, size in bars]
        errors = [part.standard_error for part in parts]
        if others := len(found.columns) - len(parts):
            rest = float(found.contributions[:, j].sum()) - sum(size for _, size in bars)
            bars.append((f"{others} others together", rest))
            errors.append(float("nan"))
        name, score, predicted = found.label_names[j], found.scores[j], found.predicted(j)
        word = found.scale
        scale = (
            f"contribution to the {found.scale} (lines: standard errors), relative to the mean "
            f"{found.baseline[j]:.3f} of {found.n_background} background rows"
        )
    else:
        largest = found.top(top)
        bars = [(_short(part.name), part.contribution) for part in largest]
        bars += found.rest(largest)
        colours = [_VIRTUAL if part.kind == "center" else _REAL for part in largest]
        name, score, predicted = found.label, found.score, found.score >= found.threshold
        word, scale = "score", "contribution to the score"
        if found.by == "evidence":
            totals = found.totals()
            scale += (
                f": real rows {totals['row']:+.3f}, virtual examples {totals['center']:+.3f} (dark)"
            )
    colours += [_REST] * (len(bars) - len(colours))
    figure = _figure(6.8, 1.4 + 0.27 * len(bars))
    axes = figure.subplots()
    sizes = [size for _, size in bars]
    _horizontal_bars(axes, [text for text, _ in bars], sizes, colours)
    if errors:
        axes.errorbar(
            sizes, range(len(bars)), xerr=errors, fmt="none", ecolor="#333333", elinewidth=0.9
        )
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlabel(scale, fontsize=8)
    verdict = "predicted" if predicted else "not predicted"
    axes.set_title(f"{_short(name)}: {word} {score:.3f}, {verdict}", fontsize=10, loc="left")
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    return _save(figure, path)


def draw_members(model: Any, path: PathLike) -> Path:
    """Plot the weights of the members of an ensemble.

    Parameters
    ----------
    model : KernelEnsembleClassifier, or a wrapper around one
        The fitted model.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    pathlib.Path
        The file.
    """
    inside = innermost(model)
    if not isinstance(inside, KernelEnsembleClassifier):
        raise InvalidTypeError(
            "model",
            "must be a KernelEnsembleClassifier, or contain one inside TunedThresholds, a table "
            f"classifier or a pipeline: {type(inside).__name__} has no members",
        )
    check_is_fitted(inside)
    members = inside.members_
    figure = _figure(7.5, 1.2 + 0.32 * max(len(members), 2))
    axes = figure.subplots()
    bars = _horizontal_bars(
        axes,
        [member_name(member) for member in members],
        [member["weight"] for member in members],
        [_COLOURS[member["view"]] for member in members],
    )
    for bar, member in zip(bars, members, strict=True):
        bar.set(edgecolor="white", hatch=_HATCHES[member["kernel"]])
    axes.set_xlim(left=0)
    axes.set_xlabel("weight", fontsize=8)
    title = f"Weights of the {len(members)} members" if members else "No members: base rates only"
    axes.set_title(title, fontsize=10, loc="left")
    return _save(figure, path)


def draw_threshold_curves(
    curves: Sequence[ThresholdCurve],
    path: PathLike,
    *,
    thresholds: Sequence[float] | None = None,
    max_labels: int = 12,
) -> Path:
    """Plot precision, recall and F1 against the threshold, one panel per label.

    Parameters
    ----------
    curves : sequence of ThresholdCurve
        Result of :func:`threshold_curve`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    thresholds : sequence of float, default=None
        The thresholds in use, marked by a line; 0 by default.
    max_labels : int, default=12
        Maximum number of labels; the first ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """
    limits = [0.0] * len(curves) if thresholds is None else list(thresholds)
    if len(limits) != len(curves):
        raise ValueError(
            f"thresholds must have one entry per curve ({len(curves)}), got {len(limits)}"
        )

    def draw(axes: Any, index: int) -> None:
        curve = curves[index]
        for values, (colour, style) in (
            (curve.precision, _PRECISION),
            (curve.recall, _RECALL),
            (curve.f1, _F1),
        ):
            axes.plot(curve.thresholds, values, style, color=colour, linewidth=1.4)
        if np.isfinite(limits[index]):
            axes.axvline(limits[index], color="#999999", linewidth=0.9)
        best = int(curve.f1.argmax())
        if curve.f1[best] > 0:
            axes.plot(curve.thresholds[best], curve.f1[best], "o", color=_F1[0], markersize=4)
        axes.set_title(_short(curve.label), fontsize=8.5, loc="left")
        axes.set_ylim(-0.02, 1.04)

    figure = _grid(len(curves), max_labels, draw, "threshold", "")
    entries = [
        _line("precision", *_PRECISION),
        _line("recall", *_RECALL),
        _line("F1 (dot: the best)", *_F1),
        _line("threshold in use", "#999999", "-"),
    ]
    figure.legend(handles=entries, loc="outside upper left", ncols=4, frameon=False, fontsize=8.5)
    return _save(figure, path)


def draw_diagnostics(
    found: Diagnostics,
    path: PathLike,
    *,
    calibration: CalibrationDiagnostics | None = None,
    max_labels: int = 30,
) -> Path:
    """Plot average precision, F1 and AUC per label, with their intervals.

    Parameters
    ----------
    found : Diagnostics
        Result of :func:`diagnose`; intervals are shown if they were computed.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    calibration : CalibrationDiagnostics, default=None
        Calibration of the same labels; adds a panel with the calibration error.
    max_labels : int, default=30
        Maximum number of labels; the most frequent ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """
    check_count("max_labels", max_labels)
    order = np.argsort([-label.support for label in found.labels], kind="stable")[:max_labels]
    if not len(order):
        raise ValueError("there is nothing to draw: no labels were given")
    panels: list[tuple[str, list[Estimate], float]] = [
        (words, [found.labels[j].estimate(name) for j in order], 1.0)
        for name, words in _MEASURES.items()
    ]
    if calibration is not None:
        errors = [calibration.labels[j].calibration_error for j in order]
        widest = float(np.nanmax([(error.value, error.high) for error in errors]))
        panels.append(("calibration error", errors, max(0.05, 1.1 * widest)))
    figure = _figure(2.0 + 2.1 * len(panels), 1.2 + 0.26 * len(order))
    figure.get_layout_engine().set(wspace=0.08)
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    places = np.arange(len(order))
    for axes, (words, estimates, right) in zip(every, panels, strict=True):
        values = np.array([(e.value, e.low, e.high) for e in estimates])
        axes.hlines(places, values[:, 1], values[:, 2], color=_PRECISION[0], linewidth=2.4)
        axes.plot(values[:, 0], places, "o", color=_F1[0], markersize=4.5)
        axes.set_title(words, fontsize=9, loc="left")
        axes.set_xlim(-0.03 * right, 1.03 * right)
        axes.locator_params(axis="x", nbins=4)
        axes.tick_params(labelsize=8)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        _no_frame(axes)
    names = [f"{_short(found.labels[j].label)} ({found.labels[j].support:,})" for j in order]
    every[0].set_yticks(places, names, fontsize=8)
    every[0].set_ylim(len(order) - 0.5, -0.5)
    title = f"{found.n_rows:,} rows; in brackets: rows with the label"
    if found.n_resamples:
        title += f"; lines: {found.confidence:.0%} intervals"
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return _save(figure, path)


def draw_calibration(
    found: CalibrationDiagnostics, path: PathLike, *, max_labels: int = 12
) -> Path:
    """Plot observed frequencies against probabilities, before and after calibration.

    Parameters
    ----------
    found : CalibrationDiagnostics
        Result of :func:`diagnose_probabilities`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    max_labels : int, default=12
        Maximum number of labels, one panel each; the most frequent ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """
    order = np.argsort([-label.support for label in found.labels], kind="stable")

    def draw(axes: Any, index: int) -> None:
        label = found.labels[order[index]]
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
        lines = f"log loss {label.log_loss.value:.3f}, error {label.calibration_error.value:.3f}"
        if found.before is not None:
            other = found.before.labels[order[index]]
            _draw_points(axes, other, *_BEFORE, "s")
            lines += (
                f"\nbefore {other.log_loss.value:.3f}, error {other.calibration_error.value:.3f}"
            )
        _draw_points(axes, label, _F1[0], "-", "o")
        axes.set_title(f"{_short(label.label)}\n{lines}", fontsize=8, loc="left")
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)

    count = len(found.labels)
    figure = _grid(
        count, max_labels, draw, "estimated probability", "share with the label", height=2.4
    )
    entries = [_line("calibrated (size: number of rows)", _F1[0], "-", "o")]
    if found.before is None:
        entries[0].set_label("observed (size: number of rows)")
    else:
        entries.append(_line("before", *_BEFORE, "s"))
    entries.append(_line("perfectly calibrated", "#bbbbbb", "-"))
    figure.legend(handles=entries, loc="outside upper left", ncols=3, frameon=False, fontsize=8.5)
    return _save(figure, path)


def _draw_points(axes: Any, label: LabelCalibration, colour: str, style: str, marker: str) -> None:
    filled = label.counts > 0
    x, y = label.predicted[filled], label.observed[filled]
    axes.plot(x, y, style, color=colour, linewidth=1.1)
    sizes = 6 + 50 * label.counts[filled] / label.counts.max()
    points = {"marker": marker, "alpha": 0.85, "edgecolor": "white", "linewidth": 0.5}
    axes.scatter(x, y, s=sizes, color=colour, zorder=3, **points)


def _grid(
    count: int,
    max_labels: int,
    draw: Callable[[Any, int], None],
    below: str,
    beside: str,
    height: float = 2.1,
) -> Any:
    """Return a figure with one panel per label, up to four in a row."""
    check_count("max_labels", max_labels)
    shown = min(count, max_labels)
    if shown == 0:
        raise ValueError("there is nothing to draw: no labels were given")
    columns = min(4, shown)
    rows = -(-shown // columns)
    figure = _figure(max(2.4 * columns, 5.5), height * rows + 0.6)
    every = figure.subplots(rows, columns, squeeze=False).ravel()
    for index, axes in enumerate(every):
        if index >= shown:
            axes.set_axis_off()
            continue
        draw(axes, index)
        axes.tick_params(labelsize=7.5)
        axes.grid(color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
        if index % columns == 0 and beside:
            axes.set_ylabel(beside, fontsize=8)
        if index + columns >= shown:
            axes.set_xlabel(below, fontsize=8)
    return figure


def _line(label: str, colour: str, style: str, marker: str = "") -> Any:
    lines = require("matplotlib.lines", "Drawing")
    return lines.Line2D([], [], color=colour, linestyle=style, marker=marker, label=label)


def _horizontal_bars(
    axes: Any, names: Sequence[str], sizes: Sequence[float], colours: Sequence[str]
) -> Any:
    """Draw bars from top to bottom, without a frame, and return them."""
    places = np.arange(len(names))
    bars = axes.barh(places, sizes, color=colours, height=0.75)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    _no_frame(axes)
    return bars


def _frequent_labels(inspection: Inspection, count: int) -> np.ndarray:
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
    names = [_short(inspection.label_names[j]) for j in labels]
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


def _short(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a name for a figure: on one line, shortened, and with dollar signs escaped."""
    name = " ".join(name.split())
    name = name if len(name) <= longest else name[: longest - 1] + "…"
    return name.replace("$", r"\$")


def _save(figure: Any, path: PathLike) -> Path:
    """Save a figure; the same data give the same file."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {target.name!r}")
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else None
    figure.savefig(target, dpi=150, metadata=metadata, bbox_inches="tight", pad_inches=0.1)
    return target
