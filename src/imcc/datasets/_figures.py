"""Figure of the label frequencies and co-occurrences."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc._utils.validation import check_count
from imcc.datasets._dataset import Dataset
from imcc.datasets._describe import co_occurrence_counts

_SUFFIXES = (".png", ".svg", ".pdf")
_LONGEST_NAME = 24


def draw_labels(dataset: Dataset, path: str | os.PathLike[str], *, max_labels: int = 30) -> Path:
    """Plot the label frequencies and the co-occurrence matrix to a file.

    The left panel has a bar per label, most frequent label first.  Entry (i, j) of the matrix in
    the right panel is the share of the rows with label i that also have label j.

    Parameters
    ----------
    dataset : Dataset
        The data.
    path : str or path-like
        The file, with the suffix ``.png``, ``.svg`` or ``.pdf``.
    max_labels : int, default=30
        Maximum number of labels; the most frequent ones are shown.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import draw_labels, load_dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> draw_labels(load_dataset("yeast"), pathlib.Path(folder.name, "yeast.svg")).name
    'yeast.svg'
    >>> folder.cleanup()
    """
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"path must end in {', '.join(_SUFFIXES)}, got {target.name!r}")
    check_count("max_labels", max_labels)
    figure = require("matplotlib.figure", "Drawing")
    counts = dataset.Y.sum(axis=0)
    shown = np.argsort(-counts, kind="stable")[:max_labels]
    names = [_short(dataset.label_names[i]) for i in shown]
    side = 1.6 + 0.24 * max(len(shown), 10)
    # A Figure without pyplot changes no global state and needs no display.
    canvas = figure.Figure(figsize=(2.1 * side + 1.2, side + 0.5), layout="constrained")
    bars, matrix = canvas.subplots(1, 2, width_ratios=[1, 1.15])
    canvas.suptitle(_title(dataset, len(shown)), fontsize=12, x=0.01, ha="left")
    _draw_frequencies(bars, counts[shown], names, dataset.n_rows)
    _draw_matrix(canvas, matrix, co_occurrence_counts(dataset)[np.ix_(shown, shown)], names)
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else None
    canvas.savefig(target, dpi=150, metadata=metadata)
    return target


def _short(name: str) -> str:
    # Dollar signs would start mathematical text.
    name = name.replace("$", r"\$")
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _title(dataset: Dataset, shown: int) -> str:
    which = f"{dataset.n_labels} labels"
    if shown < dataset.n_labels:
        which = f"the {shown} most frequent of {dataset.n_labels} labels"
    return f"{_short(dataset.name)}: {dataset.n_rows:,} rows, {which}"


def _draw_frequencies(axes: Any, counts: np.ndarray, names: list[str], n_rows: int) -> None:
    positions = np.arange(len(counts))
    axes.barh(positions, counts / n_rows, color="#3b6ea5", height=0.78)
    for position, count in zip(positions, counts.tolist(), strict=True):
        axes.annotate(
            f"{count:,}",
            (count / n_rows, position),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color="#444444",
        )
    axes.set_yticks(positions, names, fontsize=8)
    axes.set_ylim(len(counts) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel("share of rows (number of rows next to the bar)", fontsize=9)
    axes.set_title("Label frequencies", fontsize=10, loc="left")
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for edge in ("top", "right", "left"):
        axes.spines[edge].set_visible(False)


def _draw_matrix(canvas: Any, axes: Any, together: np.ndarray, names: list[str]) -> None:
    own = np.diag(together)
    shares = np.divide(
        together, own[:, np.newaxis], out=np.zeros(together.shape), where=own[:, np.newaxis] > 0
    )
    np.fill_diagonal(shares, np.nan)  # always 1, which would dominate the scale
    # The scale ends at the maximum; otherwise data sets with few labels per row would look blank.
    top = max(0.2, np.ceil(10 * np.nanmax(shares, initial=0.0)) / 10)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=top, aspect="equal")
    axes.set_facecolor("#eeeeee")
    positions = np.arange(len(names))
    axes.set_xticks(positions, names, fontsize=8, rotation=90)
    axes.set_yticks(positions, names, fontsize=8)
    axes.tick_params(length=0)
    axes.set_title("Labels that occur together", fontsize=10, loc="left")
    if len(names) <= 15:
        _write_shares(axes, shares, top)
    bar = canvas.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("share of the rows with the left label\nthat also have the label below")
    bar.ax.yaxis.label.set_size(8)
    bar.outline.set_visible(False)
    for edge in axes.spines.values():
        edge.set_visible(False)


def _write_shares(axes: Any, shares: np.ndarray, top: float) -> None:
    for (row, column), share in np.ndenumerate(shares):
        if share >= 0.005:
            axes.text(
                column,
                row,
                f"{share:.2f}".lstrip("0"),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if share > 0.6 * top else "#222222",
            )
