"""Comparison of new results with those of the paper, per cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scipy.stats import t as student

from imcc._utils.plain import to_plain
from imcc._utils.validation import check_choice, check_share
from imcc.comparison import ScoreTable
from imcc.metrics import METRICS
from imcc.published._slips import doubtful
from imcc.published._tables import DECIMALS, N_REPETITIONS, PublishedTable, table

#: The possible verdicts on a cell.
VERDICTS = ("reproduced", "better", "worse", "missing")

# Maximum rounding error of a printed value.
_ROUNDING = 0.5 * 10**-DECIMALS


class HasScores(Protocol):
    """Protocol of a store of results."""

    def scores(self, metric: str, selection: str) -> ScoreTable:
        """Return the scores by a metric, for settings selected by the metric ``selection``."""


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
        Printed mean and standard deviation over ten runs.
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
    difference: float | None
    standard_error: float | None
    standard_errors: float | None
    threshold: float | None
    p: float | None
    verdict: str
    doubtful: str | None


@dataclass(frozen=True)
class PublishedComparison:
    """Comparison of new results with all published results.

    Attributes
    ----------
    cells : tuple of Cell
        One entry per metric, data set and method of the paper, in its order.
    selection : str or None
        Metric by which settings were selected, if the scores come from a store.
    alpha : float
        Significance level of each verdict.
    test_size : float or None
        Fraction of the rows in each test set, if the correction for overlapping splits was used.
    not_published : dict of str to tuple of str
        ``datasets`` and ``methods`` of the new results that are not in the paper.
    """

    cells: tuple[Cell, ...]
    selection: str | None
    alpha: float
    test_size: float | None
    not_published: dict[str, tuple[str, ...]]

    def summary(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the number of cells per method, metric and verdict.

        Returns
        -------
        dict of str to dict of str to dict of str to int
            Keys are method, metric and verdict.
        """
        found = Counter((cell.method, cell.metric, cell.verdict) for cell in self.cells)
        methods = dict.fromkeys(cell.method for cell in self.cells)
        metrics = dict.fromkeys(cell.metric for cell in self.cells)
        return {
            method: {
                metric: {verdict: found[method, metric, verdict] for verdict in VERDICTS}
                for metric in metrics
            }
            for method in methods
        }

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
        found = Counter(
            cell.verdict
            for cell in self.cells
            if all(getattr(cell, name) == value for name, value in where.items())
        )
        return {verdict: found[verdict] for verdict in VERDICTS}

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with counts and summary."""
        return {**to_plain(self), "counts": self.counts(), "summary": self.summary()}


def compare_with_published(
    source: HasScores | Mapping[str, ScoreTable],
    selection: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = 0.05,
    test_size: float | None = None,
) -> PublishedComparison:
    r"""Compare results with those of the paper, with a verdict per cell.

    With the mean, standard deviation and number of the new runs :math:`m_1, s_1, n_1` and those of
    the paper :math:`m_2, s_2, n_2 = 10`, a cell is "reproduced" if

    .. math::

        |m_1 - m_2| - 0.0005 \le t_{1 - \alpha / 2, \nu}\, \sqrt{s_1^2 / n_1 + s_2^2 / n_2},

    Welch's t test with allowance for the rounding of the published mean to three decimals;
    :math:`\nu` are Welch's degrees of freedom.  Otherwise the verdict is "better" or "worse",
    depending on the direction of the metric.  A cell without new runs is "missing".

    Parameters
    ----------
    source : store or mapping of str to ScoreTable
        The new scores: an object with a method ``scores(metric, selection)``, or tables by metric.
    selection : str, default=None
        For a store, the metric by which settings were selected; "average_precision" by default.
        Must be None for a mapping.
    metrics : sequence of str, default=None
        Metrics to compare; by default all five, or those of the mapping.
    alpha : float, default=0.05
        Significance level of each verdict: of the cells that are truly equal, this fraction is
        "better" or "worse" by chance.
    test_size : float, default=None
        Fraction of the rows in each test set.  If given, the variances of the means are those of
        Nadeau and Bengio, :math:`(1/n + r) s^2` with the ratio r of test to training rows.

    Returns
    -------
    PublishedComparison

    Notes
    -----
    A printed standard deviation of .000 may be as large as 0.0005, which is the value used.  For a
    single new run, whose standard deviation is unknown, that of the paper is used.

    The random splits are independent draws from the same table, and those of the paper are drawn in
    the same way.  Plain standard errors are therefore appropriate for testing whether both compute
    the same quantity.  They are too small for statements about new rows, since the training sets
    overlap; ``test_size`` corrects for that [1]_, and fewer cells differ significantly.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio. "Inference for the generalization error." Machine Learning 52,
       2003.

    Examples
    --------
    >>> from imcc.comparison import ScoreTable
    >>> from imcc.published import compare_with_published
    >>> runs = [("yeast", "imcc", i, 0.770 + 0.004 * i) for i in range(4)]
    >>> ours = {"average_precision": ScoreTable.from_records(runs, metric="average_precision")}
    >>> result = compare_with_published(ours)
    >>> result.counts()
    {'reproduced': 1, 'better': 0, 'worse': 0, 'missing': 104}
    """
    check_share("alpha", alpha)
    overlap = 0.0 if test_size is None else check_share("test_size", test_size) / (1 - test_size)
    tables, selection = _tables(source, selection, metrics)
    cells: list[Cell] = []
    extra: dict[str, dict[str, None]] = {"datasets": {}, "methods": {}}
    for metric, ours in tables.items():
        paper = table(metric)
        cells += _cells(ours, paper, alpha, overlap)
        extra["datasets"].update(dict.fromkeys(d for d in ours.datasets if d not in paper.datasets))
        extra["methods"].update(dict.fromkeys(m for m in ours.methods if m not in paper.methods))
    not_published = {name: tuple(found) for name, found in extra.items()}
    return PublishedComparison(tuple(cells), selection, float(alpha), test_size, not_published)


def _tables(
    source: Any, selection: str | None, metrics: Sequence[str] | None
) -> tuple[dict[str, ScoreTable], str | None]:
    is_mapping = isinstance(source, Mapping)
    if not is_mapping and not hasattr(source, "scores"):
        raise TypeError(
            "source must be a store of results (with a method 'scores') or a mapping of metrics to "
            f"ScoreTables, got {type(source).__name__}"
        )
    names = list(metrics) if metrics is not None else list(source if is_mapping else METRICS)
    for name in names:
        check_choice("metrics", name, METRICS)
    if not is_mapping:
        selection = "average_precision" if selection is None else selection
        tables = {name: source.scores(name, selection=selection) for name in names}
    elif selection is not None:
        raise ValueError(
            "selection can only be used with a store; the scores of a mapping are already selected"
        )
    else:
        lacking = [name for name in names if name not in source]
        if lacking:
            raise ValueError(f"metrics has {lacking[0]!r}, which is not in source")
        tables = {name: source[name] for name in names}
    for name, scores in tables.items():
        if not isinstance(scores, ScoreTable):
            raise TypeError(
                f"source must have a ScoreTable for {name!r}, got {type(scores).__name__}"
            )
        if scores.greater_is_better != METRICS[name].greater_is_better:
            raise ValueError(f"source has {name!r} with the wrong direction (greater_is_better)")
    return tables, selection


def _cells(ours: ScoreTable, paper: PublishedTable, alpha: float, overlap: float) -> list[Cell]:
    counts, means, stds = ours.counts, ours.mean(), ours.std()
    cells = []
    for dataset in paper.datasets:
        for method in paper.methods:
            known = dataset in ours.datasets and method in ours.methods
            at = (ours.datasets.index(dataset), ours.methods.index(method)) if known else None
            n = 0 if at is None else int(counts[at])
            mean = None if at is None or n == 0 else float(means[at])
            std = None if at is None or n < 2 else float(stds[at])
            cells.append(_cell(paper, dataset, method, n, mean, std, alpha, overlap))
    return cells


def _cell(
    paper: PublishedTable,
    dataset: str,
    method: str,
    n: int,
    mean: float | None,
    std: float | None,
    alpha: float,
    overlap: float,
) -> Cell:
    published_mean, published_std, _ = paper.cell(dataset, method)
    difference = error = apart = threshold = p = None
    verdict = "missing"
    if mean is not None:
        difference = mean - published_mean
        error, freedom = _welch(n, std, max(published_std, _ROUNDING), overlap)
        beyond = max(abs(difference) - _ROUNDING, 0.0)
        apart = math.copysign(beyond / error, difference)
        threshold = float(student.isf(alpha / 2, freedom))
        p = float(2 * student.sf(abs(apart), freedom))
        if beyond <= threshold * error:
            verdict = "reproduced"
        else:
            verdict = "better" if (difference > 0) == paper.greater_is_better else "worse"
    return Cell(
        metric=paper.metric,
        dataset=dataset,
        method=method,
        n=n,
        mean=mean,
        std=std,
        published_mean=published_mean,
        published_std=published_std,
        difference=difference,
        standard_error=error,
        standard_errors=apart,
        threshold=threshold,
        p=p,
        verdict=verdict,
        doubtful=doubtful(dataset, method),
    )


def _welch(n: int, std: float | None, published_std: float, overlap: float) -> tuple[float, float]:
    """Return the standard error of the difference of the means, and its degrees of freedom."""
    theirs = published_std**2 * (1 / N_REPETITIONS + overlap)
    if std is None:  # a single run: use the standard deviation of the paper
        ours = published_std**2 * (1 / n + overlap)
        return math.sqrt(ours + theirs), N_REPETITIONS - 1.0
    ours = std**2 * (1 / n + overlap)
    freedom = (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (N_REPETITIONS - 1))
    return math.sqrt(ours + theirs), freedom
