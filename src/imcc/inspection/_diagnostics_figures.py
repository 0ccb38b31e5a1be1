"""Figures of the diagnostics, with one panel per label."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc._utils.validation import check_count
from imcc.inspection._bootstrap import Estimate
from imcc.inspection._calibration import CalibrationDiagnostics
from imcc.inspection._diagnostics import Diagnostics, ThresholdCurve
from imcc.inspection._reliability import Reliability

SUFFIXES = (".png", ".svg", ".pdf")
# Distinguishable without colour, by line style and lightness.
_PRECISION, _RECALL, _F1 = ("#5b9bd5", "--"), ("#d98b3f", ":"), ("#1f3b66", "-")
_BEFORE = ("#d98b3f", "--")
_LONGEST_NAME = 26
_MEASURES = {"average_precision": "average precision", "f1": "F1", "auc": "AUC"}


def short_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a name for a figure: on one line, shortened, and with dollar signs escaped."""
    name = " ".join(name.split())
    name = name if len(name) <= longest else name[: longest - 1] + "…"
    return name.replace("$", r"\$")


def save_figure(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Save a figure; the same data give the same file."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {target.name!r}")
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else None
    figure.savefig(target, dpi=150, metadata=metadata, bbox_inches="tight", pad_inches=0.1)
    return target


def draw_threshold_curves(
    curves: Sequence[ThresholdCurve],
    path: str | os.PathLike[str],
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
        axes.set_title(short_name(curve.label), fontsize=8.5, loc="left")
        axes.set_ylim(-0.02, 1.04)

    figure = _grid(len(curves), max_labels, draw, "threshold", "")
    entries = [
        _line("precision", *_PRECISION),
        _line("recall", *_RECALL),
        _line("F1 (dot: the best)", *_F1),
        _line("threshold in use", "#999999", "-"),
    ]
    figure.legend(handles=entries, loc="outside upper left", ncols=4, frameon=False, fontsize=8.5)
    return save_figure(figure, path)


def draw_diagnostics(
    found: Diagnostics,
    path: str | os.PathLike[str],
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
    module = require("matplotlib.figure", "Drawing")
    figure = module.Figure(
        figsize=(2.0 + 2.1 * len(panels), 1.2 + 0.26 * len(order)), layout="constrained"
    )
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
        for edge in axes.spines.values():
            edge.set_visible(False)
    names = [f"{short_name(found.labels[j].label)} ({found.labels[j].support:,})" for j in order]
    every[0].set_yticks(places, names, fontsize=8)
    every[0].set_ylim(len(order) - 0.5, -0.5)
    title = f"{found.n_rows:,} rows; in brackets: rows with the label"
    if found.n_resamples:
        title += f"; lines: {found.confidence:.0%} intervals"
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return save_figure(figure, path)


def draw_reliability(
    labels: Sequence[Reliability], path: str | os.PathLike[str], *, max_labels: int = 12
) -> Path:
    """Plot observed frequencies against probabilities, one panel per label.

    Parameters
    ----------
    labels : sequence of Reliability
        Result of :func:`reliability`.
    path : path-like
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    max_labels : int, default=12
        Maximum number of labels; the first ones are shown.

    Returns
    -------
    pathlib.Path
        The file.
    """

    def draw(axes: Any, index: int) -> None:
        label = labels[index]
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
        filled = label.counts > 0
        x, y = label.predicted[filled], label.observed[filled]
        axes.plot(x, y, "-", color=_F1[0], linewidth=1.2)
        sizes = 8 + 70 * label.counts[filled] / label.counts.max()
        axes.scatter(x, y, s=sizes, color=_PRECISION[0], edgecolor=_F1[0], zorder=3, linewidth=0.8)
        axes.set_title(
            f"{short_name(label.label)}\nBrier {label.brier:.3f}, error "
            f"{label.calibration_error:.3f}",
            fontsize=8.5,
            loc="left",
        )
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)

    figure = _grid(len(labels), max_labels, draw, "estimated probability", "share with the label")
    entries = [
        _line("observed (size: number of rows)", _F1[0], "-"),
        _line("perfectly calibrated", "#bbbbbb", "-"),
    ]
    figure.legend(handles=entries, loc="outside upper left", ncols=2, frameon=False, fontsize=8.5)
    return save_figure(figure, path)


def draw_calibration(
    found: CalibrationDiagnostics, path: str | os.PathLike[str], *, max_labels: int = 12
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
            _draw_points(axes, other.reliability, *_BEFORE, "s")
            lines += (
                f"\nbefore {other.log_loss.value:.3f}, error {other.calibration_error.value:.3f}"
            )
        _draw_points(axes, label.reliability, _F1[0], "-", "o")
        axes.set_title(f"{short_name(label.label)}\n{lines}", fontsize=8, loc="left")
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
    return save_figure(figure, path)


def _draw_points(axes: Any, record: Reliability, colour: str, style: str, marker: str) -> None:
    filled = record.counts > 0
    x, y = record.predicted[filled], record.observed[filled]
    axes.plot(x, y, style, color=colour, linewidth=1.1)
    sizes = 6 + 50 * record.counts[filled] / record.counts.max()
    axes.scatter(
        x,
        y,
        s=sizes,
        color=colour,
        marker=marker,
        zorder=3,
        alpha=0.85,
        edgecolor="white",
        linewidth=0.5,
    )


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
    module = require("matplotlib.figure", "Drawing")
    columns = min(4, shown)
    rows = -(-shown // columns)
    # A new Figure, not pyplot: no global state is changed, and no display is needed.
    figure = module.Figure(
        figsize=(max(2.4 * columns, 5.5), height * rows + 0.6), layout="constrained"
    )
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
