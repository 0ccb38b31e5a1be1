"""Comparison of new results with published ones, per cell."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scipy.stats import t as student

from imcc._utils.plain import to_plain
from imcc._utils.validation import check_choice, check_share
from imcc.comparison import ScoreTable
from imcc.experiment._errors import ExperimentError
from imcc.metrics import METRICS

#: The possible verdicts on a cell.
VERDICTS = ("reproduced", "better", "worse", "missing")

_COLUMNS = ("dataset", "method", "metric", "mean", "std", "n")


class HasScores(Protocol):
    """Protocol of a store of results."""

    def scores(self, metric: str, selection: str | None = None) -> ScoreTable:
        """Return the scores by a metric, for settings selected by the metric ``selection``."""


class _Published(NamedTuple):
    dataset: str
    method: str
    metric: str
    mean: float
    std: float
    n: int
    rounding: float
    doubtful: str | None


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
    published_mean, published_std : float
        Published mean and standard deviation.
    published_n : int
        Number of runs that these are of.
    rounding : float
        Maximum rounding error of the published mean: half a unit of its last decimal.
    difference : float or None
        New mean minus published mean.
    standard_error : float or None
        Standard error of the difference.
    standard_errors : float or None
        The part of the difference that rounding cannot explain, in standard errors, with the sign
        of the difference.
    threshold : float or None
        Number of standard errors up to which a difference is not significant.
    p : float or None
        Two-sided p of Welch's test of the part that rounding cannot explain, not adjusted for the
        number of cells (:func:`imcc.comparison.holm` does that).
    verdict : {"reproduced", "better", "worse", "missing"}
        Whether the new result is not significantly different, significantly better or worse, or
        missing.
    doubtful : str or None
        Why the published result is doubtful; None if it is not.
    """

    metric: str
    dataset: str
    method: str
    n: int
    mean: float | None
    std: float | None
    published_mean: float
    published_std: float
    published_n: int
    rounding: float
    difference: float | None
    standard_error: float | None
    standard_errors: float | None
    threshold: float | None
    p: float | None
    verdict: str
    doubtful: str | None


@dataclass(frozen=True)
class PublishedComparison:
    """Comparison of new results with published ones.

    Attributes
    ----------
    cells : tuple of Cell
        One entry per published result, in their order.
    source : str
        Where they were published: the comment at the top of the file, or its name.
    selection : str or None
        Metric by which settings were selected, if the scores come from a store.
    alpha : float
        Significance level of each verdict.
    test_size : float or None
        Fraction of the rows in each test set, if the correction for overlapping splits was used.
    """

    cells: tuple[Cell, ...]
    source: str
    selection: str | None
    alpha: float
    test_size: float | None

    def counts(self, **where: str) -> dict[str, int]:
        """Return the number of cells per verdict.

        Parameters
        ----------
        **where : str
            ``metric``, ``dataset`` or ``method``; only the cells with these values are counted.

        Returns
        -------
        dict of str to int
        """
        for name in where:
            check_choice("where", name, ("metric", "dataset", "method"))
        verdicts = Counter(
            cell.verdict
            for cell in self.cells
            if all(getattr(cell, name) == value for name, value in where.items())
        )
        return {verdict: verdicts[verdict] for verdict in VERDICTS}

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with the counts of all cells."""
        return {**to_plain(self), "counts": self.counts()}


def compare_with_published(
    source: HasScores | Mapping[str, ScoreTable],
    published: str | os.PathLike[str],
    selection: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = 0.05,
    test_size: float | None = None,
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
    source : store or mapping of str to ScoreTable
        The new scores: an object with a method ``scores(metric, selection)``, or tables by metric.
    published : path-like
        CSV file with one published result per line and the columns ``dataset``, ``method``,
        ``metric`` (one of :data:`imcc.metrics.METRICS`), ``mean``, ``std`` and ``n``, the number of
        runs that mean and standard deviation are of; optionally ``doubtful``, why a result is in
        doubt.  Other columns are ignored.  Lines before the names of the columns that begin with
        ``#`` say where the results are from.  Data sets and methods are matched by name.
    selection : str, default=None
        For a store, the metric by which settings were selected, or "each" for each metric itself;
        that of the experiment by default.  Must be None for a mapping.
    metrics : sequence of str, default=None
        Metrics to compare; by default all that are published (and, for a mapping, that it has).
    alpha : float, default=0.05
        Significance level of each verdict: of the cells that are truly equal, this fraction is
        "better" or "worse" by chance.
    test_size : float, default=None
        Fraction of the rows in each test set.  If given, the variances of the means are those of
        Nadeau and Bengio, :math:`(1/n + r) s^2` with the ratio r of test to training rows.

    Returns
    -------
    PublishedComparison

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
    rows, since the training sets overlap; ``test_size`` corrects for that [1]_, and fewer cells
    differ significantly.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio. "Inference for the generalization error." Machine Learning 52,
       2003.

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
    overlap = 0.0 if test_size is None else check_share("test_size", test_size) / (1 - test_size)
    title, results = _read(Path(published))
    wanted = list(dict.fromkeys(result.metric for result in results))
    if metrics is not None:
        wanted = [check_choice("metrics", name, METRICS) for name in metrics]
    tables = _tables(source, selection, wanted, asked=metrics is not None)
    cells = [
        _cell(result, tables[result.metric], alpha, overlap)
        for result in results
        if result.metric in tables
    ]
    return PublishedComparison(tuple(cells), title, selection, float(alpha), test_size)


def _read(path: Path) -> tuple[str, list[_Published]]:
    """Return where results are from, and the results."""
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
    results: dict[tuple[str, str, str], _Published] = {}
    try:
        for row in rows:
            result = _result(row)
            if result[:3] in results:
                raise ValueError(f"{', '.join(result[:3])} for the second time")
            results[result[:3]] = result
    except (csv.Error, TypeError, ValueError) as error:
        raise ExperimentError(f"{path}, line {head + rows.line_num}: {error}") from error
    if not results:
        raise ExperimentError(f"the published results {path} have no lines")
    title = " ".join(line.lstrip("# ").rstrip() for line in lines[:head])
    return title or path.name, list(results.values())


def _result(row: Mapping[str, str]) -> _Published:
    metric = check_choice("metric", row["metric"], METRICS)
    mean, std, n = float(row["mean"]), float(row["std"]), int(row["n"])
    if not (math.isfinite(mean) and math.isfinite(std) and std >= 0 and n >= 2):
        raise ValueError("mean must be a number, std a number >= 0 and n an integer >= 2")
    decimals = len(row["mean"].strip().partition(".")[2])
    why = row.get("doubtful") or None
    return _Published(row["dataset"], row["method"], metric, mean, std, n, 0.5 / 10**decimals, why)


def _tables(
    source: Any, selection: str | None, metrics: list[str], *, asked: bool
) -> dict[str, ScoreTable]:
    if isinstance(source, Mapping):
        if selection is not None:
            raise ValueError(
                "selection can only be used with a store; the scores of a mapping are already "
                "selected"
            )
        lacking = [name for name in metrics if name not in source]
        if asked and lacking:
            raise ValueError(f"metrics has {lacking[0]!r}, which is not in source")
        tables = {name: source[name] for name in metrics if name in source}
    elif hasattr(source, "scores"):
        tables = {name: source.scores(name, selection) for name in metrics}
    else:
        raise TypeError(
            "source must be a store of results (with a method 'scores') or a mapping of metrics to "
            f"ScoreTables, got {type(source).__name__}"
        )
    for name, scores in tables.items():
        if not isinstance(scores, ScoreTable):
            raise TypeError(
                f"source must have a ScoreTable for {name!r}, got {type(scores).__name__}"
            )
        if scores.greater_is_better != METRICS[name].greater_is_better:
            raise ValueError(f"source has {name!r} with the wrong direction (greater_is_better)")
    return tables


def _cell(published: _Published, ours: ScoreTable, alpha: float, overlap: float) -> Cell:
    n, mean, std = _new(ours, published.dataset, published.method)
    difference = error = apart = threshold = p = None
    verdict = "missing"
    if mean is not None:
        difference = mean - published.mean
        error, freedom = _welch(n, std, published, overlap)
        beyond = max(abs(difference) - published.rounding, 0.0)
        apart = math.copysign(beyond / error, difference)
        threshold = float(student.isf(alpha / 2, freedom))
        p = float(2 * student.sf(abs(apart), freedom))
        if beyond <= threshold * error:
            verdict = "reproduced"
        else:
            verdict = "better" if (difference > 0) == ours.greater_is_better else "worse"
    return Cell(
        metric=published.metric,
        dataset=published.dataset,
        method=published.method,
        n=n,
        mean=mean,
        std=std,
        published_mean=published.mean,
        published_std=published.std,
        published_n=published.n,
        rounding=published.rounding,
        difference=difference,
        standard_error=error,
        standard_errors=apart,
        threshold=threshold,
        p=p,
        verdict=verdict,
        doubtful=published.doubtful,
    )


def _new(ours: ScoreTable, dataset: str, method: str) -> tuple[int, float | None, float | None]:
    """Return number, mean and standard deviation of the new runs of a cell."""
    if dataset not in ours.datasets or method not in ours.methods:
        return 0, None, None
    at = ours.datasets.index(dataset), ours.methods.index(method)
    n = int(ours.counts[at])
    return n, float(ours.mean()[at]) if n else None, float(ours.std()[at]) if n > 1 else None


def _welch(n: int, std: float | None, published: _Published, overlap: float) -> tuple[float, float]:
    """Return the standard error of the difference of the means, and its degrees of freedom."""
    variance = max(published.std, published.rounding) ** 2
    theirs = variance * (1 / published.n + overlap)
    if std is None:  # a single run: use the standard deviation of the publication
        ours = variance * (1 / n + overlap)
        return math.sqrt(ours + theirs), published.n - 1.0
    ours = std**2 * (1 / n + overlap)
    freedom = (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (published.n - 1))
    return math.sqrt(ours + theirs), freedom
