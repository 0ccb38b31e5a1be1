"""A self-contained HTML page about a model, without external scripts, images or fonts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.files import save
from imcc._utils.optional import require
from imcc._utils.validation import check_count
from imcc.inspection._calibration import CalibrationDiagnostics
from imcc.inspection._columns import ColumnAttribution
from imcc.inspection._explain import Explanation
from imcc.inspection._figures import frequent_labels
from imcc.inspection._inspect import Inspection
from imcc.inspection._reliability import Reliability
from imcc.inspection._rows import RowReport

# More circles than this make a page slow; beyond it, only every n-th row is drawn.
_MOST_ROWS = 1500
_MAP_SIZE = (720, 480)
_PLOT_SIZE = 360
_SMALL_PLOT = 150
_MOST_PLOTS = 12
_MOST_COLUMNS = 15


def page(
    inspection: Inspection | None,
    *,
    title: str = "A model",
    facts: Mapping[str, Any] | None = None,
    explanations: Sequence[tuple[str, Explanation]] = (),
    rows: Sequence[tuple[RowReport, Sequence[int | str]]] = (),
    calibration: CalibrationDiagnostics | None = None,
    max_clusters: int = 40,
    max_labels: int = 40,
) -> str:
    """Return an HTML page about a model.

    Parameters
    ----------
    inspection : Inspection or None
        Result of :func:`inspect_model`; None for a model without virtual examples.
    title : str, default="A model"
        Title of the page.
    facts : mapping of str to value, default=None
        Facts shown at the top, before those of the inspection, such as the origin or the accuracy
        of the model.
    explanations : sequence of (str, Explanation), default=()
        Explanations of scores, each with a name of the row.
    rows : sequence of (RowReport, sequence of int or str), default=()
        Rows explained by their columns, each with the labels to show; if these are empty, the label
        whose score exceeds its threshold the most.
    calibration : CalibrationDiagnostics, default=None
        Quality of the model's probabilities on held-out rows, the result of
        :func:`diagnose_probabilities`.
    max_clusters : int, default=40
        Maximum number of clusters; the largest ones are shown.
    max_labels : int, default=40
        Maximum number of labels; the most frequent ones are shown.

    Returns
    -------
    str
        The HTML text.

    See Also
    --------
    write_page : Write the page to a file.

    Notes
    -----
    All names are escaped.  The page supports light and dark mode and small screens, and figures
    have text alternatives.
    """
    check_count("max_clusters", max_clusters)
    jinja2 = require("jinja2", "Making a page")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    source = resources.files("imcc.inspection").joinpath("page.html").read_text("utf-8")
    shared = {
        "title": title,
        "explanations": [_explanation(name, found) for name, found in explanations],
        "rows": [_row(report, labels) for report, labels in rows],
        "calibration": None if calibration is None else _calibration(calibration, max_labels),
    }
    template = environment.from_string(source)
    if inspection is None:
        return template.render(inspection=None, map=None, facts=facts or {}, **shared)
    labels = frequent_labels(inspection, max_labels)
    shown = inspection.largest(max_clusters)
    return template.render(
        **shared,
        facts={**(facts or {}), **_own_facts(inspection)},
        inspection=inspection,
        names=[inspection.label_names[j] for j in labels],
        clusters=[_cluster(cluster, inspection, labels) for cluster in shown],
        largest=shown[0].size,
        pairs=inspection.correlations.strongest(12),
        share=_known(inspection.correlations.share),
        by_chance=inspection.correlations.by_chance,
        scatter=_scatter(inspection),
        map=_map(inspection, labels),
    )


def write_page(path: str | os.PathLike[str], inspection: Inspection | None, **options: Any) -> Path:
    """Write an HTML page about a model to a file.

    Parameters
    ----------
    path : path-like
        File to write; it is replaced atomically.
    inspection : Inspection or None
        Result of :func:`inspect_model`; None for a model without virtual examples.
    **options
        Further arguments of :func:`page`.

    Returns
    -------
    pathlib.Path
        The file.
    """
    return save(path, page(inspection, **options).encode("utf-8", "replace"))


def _own_facts(inspection: Inspection) -> dict[str, Any]:
    facts = inspection.facts
    kernel = facts["kernel"]
    if facts["width"] is not None:
        kernel += f", width {facts['width']:.4g}"
    return {
        "kernel": kernel,
        "weights": f"alpha {facts['alpha']:g}, beta {facts['beta']:g}, gamma {facts['gamma']:g}",
        "trained on": f"{facts['rows']:,} rows, {facts['features']:,} features, "
        f"{facts['labels']:,} labels",
        "virtual examples": f"{facts['clusters']:,}"
        + (f" from {facts['clusterings']} clusterings" if facts["clusterings"] > 1 else ""),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _cluster(cluster: Any, inspection: Inspection, labels: np.ndarray) -> dict[str, Any]:
    order = np.argsort(-cluster.shares, kind="stable")[:5]
    return {
        "index": cluster.index,
        "size": cluster.size,
        "labels": [
            (inspection.label_names[j], float(cluster.shares[j]))
            for j in order
            if cluster.shares[j] > 0
        ],
        "nearest": [row for row, _ in cluster.nearest],
        "soft": [float(cluster.soft_labels[j]) for j in labels],
    }


def _scatter(inspection: Inspection) -> dict[str, Any] | None:
    """Return one point per pair of labels: correlation (x) and carried part (y)."""
    found = inspection.correlations
    if found.total is None:
        return None
    rows, columns = np.triu_indices(len(found.label_names), 1)
    total, carried = found.total[rows, columns], found.carried[rows, columns]
    known = np.flatnonzero(~np.isnan(total))
    known = known[np.argsort(-np.abs(total[known]), kind="stable")][:2000]
    reach = max(0.1, float(np.abs(total[known]).max(initial=0.0)))
    half = _PLOT_SIZE / 2

    def place(value: float) -> float:
        return round(half + 0.92 * half * value / reach, 1)

    return {
        "size": _PLOT_SIZE,
        "reach": reach,
        "points": [
            {
                "x": place(total[k]),
                "y": round(_PLOT_SIZE - place(carried[k]), 1),
                "name": f"{found.label_names[rows[k]]} and {found.label_names[columns[k]]}: "
                f"{total[k]:.2f}, of which carried {carried[k]:.2f}",
            }
            for k in known
        ],
    }


def _calibration(found: CalibrationDiagnostics, max_labels: int) -> dict[str, Any]:
    """Return a table of the labels and reliability plots of the most frequent ones."""
    order = np.argsort([-label.support for label in found.labels], kind="stable")[:max_labels]
    before = found.before
    rows = [(found.labels[j], None if before is None else before.labels[j]) for j in order]
    return {
        "found": found,
        "rows": rows,
        "size": _SMALL_PLOT,
        "plots": [
            {
                "label": label.label,
                "after": _points(label.reliability),
                "before": [] if other is None else _points(other.reliability),
            }
            for label, other in rows[:_MOST_PLOTS]
        ],
    }


def _points(record: Reliability) -> list[tuple[float, float, float, str]]:
    """Return position, size and description of each bin in a reliability plot."""
    inside = _SMALL_PLOT - 16
    return [
        (
            round(8 + inside * float(predicted), 1),
            round(8 + inside * (1 - float(observed)), 1),
            round(1.5 + 3 * float(np.sqrt(count / record.counts.max())), 1),
            f"{count} rows at {predicted:.2f}: {observed:.2f} have the label",
        )
        for count, predicted, observed in zip(
            record.counts.tolist(), record.predicted, record.observed, strict=True
        )
        if count
    ]


def _map(inspection: Inspection, labels: np.ndarray) -> dict[str, Any] | None:
    if inspection.map is None:
        return None
    rows, centers = inspection.map.rows, inspection.map.centers
    step = -(-len(rows) // _MOST_ROWS)
    low, high = rows.min(axis=0), rows.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    size = np.array(_MAP_SIZE)

    def places(points: np.ndarray) -> list[list[float]]:
        inside = 20 + (points - low) / span * (size - 40)
        inside[:, 1] = size[1] - inside[:, 1]  # in SVG, y points down
        return inside.round(1).tolist()

    sizes = np.array([cluster.size for cluster in inspection.clusters])
    soft = np.array([cluster.soft_labels for cluster in inspection.clusters])[:, labels]
    return {
        "width": _MAP_SIZE[0],
        "height": _MAP_SIZE[1],
        "rows": places(rows[::step]),
        "step": step,
        "n_rows": len(rows),
        "centers": [
            {"x": x, "y": y, "r": round(float(4 + 9 * np.sqrt(s / sizes.max())), 1), "index": j}
            for j, ((x, y), s) in enumerate(zip(places(centers), sizes, strict=True))
        ],
        "soft": soft.round(3).T.tolist(),
        "explained": inspection.map.explained.tolist(),
    }


def _explanation(name: str, found: Explanation) -> dict[str, Any]:
    parts = found.top(12)
    totals = found.totals()
    rest = sum(totals.values()) - totals["constant"] - sum(part.contribution for part in parts)
    reach = max([abs(part.contribution) for part in parts], default=1.0) or 1.0
    rows = [
        (
            part.name,
            "virtual" if part.kind == "center" else part.kind,
            part.weight,
            part.value,
            part.contribution,
            *_bar(part.contribution, reach),
        )
        for part in parts
    ]
    constant = {"support": "intercept", "features": "the mean row"}.get(found.by)
    return {
        "name": name,
        "found": found,
        "rows": rows,
        "rest": rest,
        "n_others": sum(len(w) for w in found.weights.values()) - len(parts),
        "constant": constant,
        "totals": totals,
    }


def _row(report: RowReport, labels: Sequence[int | str]) -> dict[str, Any]:
    found = report.attribution
    return {
        "report": report,
        "found": found,
        "labels": [_row_label(found, found.index(label)) for label in labels or (None,)],
        "nearest": report.nearest,
    }


def _row_label(found: ColumnAttribution, j: int) -> dict[str, Any]:
    """Return the contributions to a label as bars, with position and length in percent."""
    parts = found.parts(j, _MOST_COLUMNS)
    lines: list[tuple[str, str, float, float | None]] = [
        (p.column, p.value, p.contribution, p.standard_error) for p in parts
    ]
    if others := len(found.columns) - len(parts):
        rest = float(found.contributions[:, j].sum()) - sum(part.contribution for part in parts)
        lines.append((f"{others} others together", "", rest, None))
    reach = max((abs(size) for _, _, size, _ in lines), default=0.0) or 1.0
    return {
        "label": found.label_names[j],
        "score": found.scores[j],
        "threshold": found.thresholds[j],
        "predicted": found.predicted(j),
        "baseline": found.baseline[j],
        "lines": [(*line, *_bar(line[2], reach)) for line in lines],
    }


def _bar(value: float, reach: float) -> tuple[float, float]:
    """Return the left end and the length of a bar in percent of its cell; 50 is zero."""
    size = 50 * abs(value) / reach
    return round(50 - size if value < 0 else 50.0, 2), round(size, 2)
