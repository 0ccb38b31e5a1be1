"""Comparison of new results with published ones, per cell."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.stats import t as student

from imcc._utils.validation import check_choice, check_share
from imcc.comparison import ScoreTable
from imcc.experiment._errors import ExperimentError
from imcc.metrics import METRICS

#: The possible verdicts on a cell.
VERDICTS = ("reproduced", "better", "worse", "missing")

_COLUMNS = ("dataset", "method", "metric", "mean", "std", "n")


@dataclass(frozen=True)
class Cell:
    """New and published result of one method on one data set by one metric.

    Attributes
    ----------
    metric, dataset, method : str
        Names that identify the cell.
    n : int
        Number of new runs.
    mean, std : float or None
        Mean and standard deviation of the new runs; None without runs (``std``: with fewer than
        two).
    published_n : int
        Number of published runs.
    published_mean, published_std : float
        Their mean and standard deviation.
    rounding : float
        Maximum rounding error of the published mean: half a unit of its last decimal.
    difference : float or None
        New mean minus published mean.
    standard_errors : float or None
        The part of the difference that rounding cannot explain, in standard errors, with the sign
        of the difference.
    verdict : {"reproduced", "better", "worse", "missing"}
        Whether the new result is not significantly different, significantly better or worse, or
        missing.
    doubtful : str or None
        Why the published result is doubtful; None if it is not.
    """

    metric: str
    dataset: str
    method: str
    published_n: int
    published_mean: float
    published_std: float
    rounding: float
    doubtful: str | None
    n: int = 0
    mean: float | None = None
    std: float | None = None
    difference: float | None = None
    standard_errors: float | None = None
    verdict: str = "missing"


@dataclass(frozen=True)
class PublishedComparison:
    """Comparison of new results with published ones.

    Attributes
    ----------
    cells : tuple of Cell
        One entry per published result, in their order.
    source : str
        Where they were published: the comment at the top of the file, or its name.
    alpha : float
        Significance level of each verdict.
    """

    cells: tuple[Cell, ...]
    source: str
    alpha: float

    def counts(self, method: str | None = None) -> dict[str, int]:
        """Return the number of cells per verdict.

        Parameters
        ----------
        method : str, default=None
            Name of the method whose cells are counted; all by default.

        Returns
        -------
        dict of str to int
        """
        verdicts = [cell.verdict for cell in self.cells if method in (None, cell.method)]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def compare_with_published(
    scores: Mapping[str, ScoreTable],
    published: str | os.PathLike[str],
    *,
    alpha: float = 0.05,
) -> PublishedComparison:
    r"""Compare results with published ones, with a verdict per cell.

    With the mean, standard deviation and number of the new runs :math:`m_1, s_1, n_1` and those of
    the publication :math:`m_2, s_2, n_2`, a cell is "reproduced" if

    .. math::

        |m_1 - m_2| - r \le t_{1 - \alpha / 2, \nu}\, \sqrt{s_1^2 / n_1 + s_2^2 / n_2},

    Welch's t test with allowance for the rounding of the published mean, r, half a unit of its last
    decimal; :math:`\nu` are Welch's degrees of freedom.  Otherwise the verdict is "better" or
    "worse", depending on the direction of the metric.  A cell without new runs is "missing".

    Parameters
    ----------
    scores : mapping of str to ScoreTable
        The new scores by metric, such as ``{name: store.scores(name) for name in METRICS}``.
        Published results by other metrics are left out.
    published : path-like
        CSV file with one published result per line and the columns ``dataset``, ``method``,
        ``metric`` (one of :data:`imcc.metrics.METRICS`), ``mean``, ``std`` and ``n``, the number of
        runs that mean and standard deviation are of; optionally ``doubtful``, why a result is in
        doubt.  Other columns are ignored.  Lines before the names of the columns that begin with
        ``#`` say where the results are from.  Data sets and methods are matched by name.
    alpha : float, default=0.05
        Significance level of each verdict: of the cells that are truly equal, this fraction is
        "better" or "worse" by chance.

    Returns
    -------
    PublishedComparison
        ``cells``, one :class:`Cell` per published result; ``source``, where they were published;
        and ``counts()``, the number of cells per verdict.

    Raises
    ------
    ExperimentError
        If the file cannot be read; the message names the line.

    Notes
    -----
    A printed standard deviation of .000 may be as large as 0.0005, which is the value used.  For a
    single new run, whose standard deviation is unknown, that of the publication is used.

    The random splits are independent draws from the same table, and those of the publication are
    assumed to be drawn in the same way.  Plain standard errors are therefore appropriate for
    testing whether both compute the same quantity.  They are too small for statements about new
    rows, since the training sets overlap.

    Examples
    --------
    >>> import tempfile
    >>> from imcc.comparison import ScoreTable
    >>> from imcc.experiment import compare_with_published
    >>> runs = [("yeast", "imcc", i, 0.770 + 0.004 * i) for i in range(4)]
    >>> ours = {"average_precision": ScoreTable.from_records(runs, metric="average_precision")}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("dataset,method,metric,mean,std,n\n")
    ...     _ = file.write("yeast,imcc,average_precision,0.777,0.008,10\n")
    ...     file.flush()
    ...     compare_with_published(ours, file.name).counts()
    {'reproduced': 1, 'better': 0, 'worse': 0, 'missing': 0}
    """
    check_share("alpha", alpha)
    for name, table in scores.items():
        check_choice("scores", name, METRICS)
        if table.greater_is_better != METRICS[name].greater_is_better:
            raise ValueError(f"scores has {name!r} with the wrong direction (greater_is_better)")
    title, cells = _read(Path(published))
    compared = [
        _compared(cell, scores[cell.metric], alpha) for cell in cells if cell.metric in scores
    ]
    return PublishedComparison(tuple(compared), title, float(alpha))


def _read(path: Path) -> tuple[str, list[Cell]]:
    """Return where results are from, and the results, as cells without new ones."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"the published results {path} cannot be read: {error}") from error
    head = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    rows = csv.DictReader(lines[head:], strict=True)
    lacking = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
    if lacking:
        raise ExperimentError(
            f"the published results {path} must have the columns {', '.join(_COLUMNS)}; they lack "
            f"{', '.join(lacking)}"
        )
    cells: dict[tuple[str, str, str], Cell] = {}
    try:
        for row in rows:
            cell = _make_cell(row)
            key = cell.dataset, cell.method, cell.metric
            if key in cells:
                raise ValueError(f"{', '.join(key)} for the second time")
            cells[key] = cell
    except (csv.Error, TypeError, ValueError) as error:
        raise ExperimentError(f"{path}, line {head + rows.line_num}: {error}") from error
    if not cells:
        raise ExperimentError(f"the published results {path} have no lines")
    title = " ".join(line.lstrip("# ").rstrip() for line in lines[:head])
    return title or path.name, list(cells.values())


def _make_cell(row: Mapping[str, str]) -> Cell:
    mean, std, n = float(row["mean"]), float(row["std"]), int(row["n"])
    if not (math.isfinite(mean) and math.isfinite(std) and std >= 0 and n >= 2):
        raise ValueError("mean must be a number, std a number >= 0 and n an integer >= 2")
    decimals = len(row["mean"].strip().partition(".")[2])
    return Cell(
        metric=check_choice("metric", row["metric"], METRICS),
        dataset=row["dataset"],
        method=row["method"],
        published_n=n,
        published_mean=mean,
        published_std=std,
        rounding=0.5 / 10**decimals,
        doubtful=row.get("doubtful") or None,
    )


def _compared(cell: Cell, ours: ScoreTable, alpha: float) -> Cell:
    """Return a cell with the new runs and the verdict, if there are runs."""
    if cell.dataset not in ours.datasets or cell.method not in ours.methods:
        return cell
    at = ours.datasets.index(cell.dataset), ours.methods.index(cell.method)
    n, mean, std = int(ours.counts[at]), float(ours.mean()[at]), float(ours.std()[at])
    if n == 0:
        return cell
    variance = max(cell.published_std, cell.rounding) ** 2
    theirs = variance / cell.published_n
    if n == 1:  # use the standard deviation of the publication
        error, freedom = math.sqrt(variance + theirs), cell.published_n - 1.0
    else:
        own = std**2 / n
        error = math.sqrt(own + theirs)
        freedom = (own + theirs) ** 2 / (own**2 / (n - 1) + theirs**2 / (cell.published_n - 1))
    difference = mean - cell.published_mean
    beyond = max(abs(difference) - cell.rounding, 0.0) / error
    better = (difference > 0) == ours.greater_is_better
    reproduced = beyond <= student.isf(alpha / 2, freedom)
    return replace(
        cell,
        n=n,
        mean=mean,
        std=std if n > 1 else None,
        difference=difference,
        standard_errors=math.copysign(beyond, difference),
        verdict="reproduced" if reproduced else "better" if better else "worse",
    )
