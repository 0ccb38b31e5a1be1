"""Our numbers compared with the paper's, cell by cell."""

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

# A printed number may be off by this much.
_ROUNDING = 0.5 * 10**-DECIMALS


class HasScores(Protocol):
    """What a store of results must have."""

    def scores(self, metric: str, selection: str) -> ScoreTable:
        """Return the scores of a metric, of the settings chosen by ``selection``."""


@dataclass(frozen=True)
class Cell:
    """One method on one data set by one metric: ours and the paper's.

    Attributes
    ----------
    metric, dataset, method : str
        The cell.
    n : int
        The number of our runs.
    mean, std : float or None
        Over our runs; None without runs (``std``: with fewer than two).
    published_mean, published_std : float
        As printed, over ten runs.
    difference : float or None
        Our mean minus the paper's.
    standard_error : float or None
        Of the difference.
    standard_errors : float or None
        The part of the difference that rounding cannot explain, in standard errors.
    threshold : float or None
        How many standard errors are within chance.
    verdict : {"reproduced", "better", "worse", "missing"}
        Within chance, or outside in the metric's good or bad direction.
    doubtful : str or None
        Why the paper's cell itself is in doubt, where it is.
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
    verdict: str
    doubtful: str | None


@dataclass(frozen=True)
class PublishedComparison:
    """All cells, ours and the paper's.

    Attributes
    ----------
    cells : tuple of Cell
        One for each metric, data set and method that the paper has, in its order.
    selection : str or None
        How the settings were chosen, if the scores came from a store.
    alpha : float
        The level of each single verdict.
    test_size : float or None
        If given, the correction for overlapping splits that was made.
    not_published : dict of str to tuple of str
        Our data sets and methods that the paper does not have.
    """

    cells: tuple[Cell, ...]
    selection: str | None
    alpha: float
    test_size: float | None
    not_published: dict[str, tuple[str, ...]]

    def summary(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return, for each method and metric, how many cells have which verdict."""
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
        """Return how many cells have which verdict.

        Parameters
        ----------
        **where : str
            ``metric``, ``dataset`` or ``method``: count only the cells with this one.
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
        """Return everything, with the summary, as plain Python objects, ready for JSON."""
        return {**to_plain(self), "counts": self.counts(), "summary": self.summary()}


def compare_with_published(
    source: HasScores | Mapping[str, ScoreTable],
    selection: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = 0.05,
    test_size: float | None = None,
) -> PublishedComparison:
    r"""Compare our numbers with the paper's, with a verdict for each cell.

    With our mean, standard deviation and number of runs :math:`m_1, s_1, n_1` and the paper's
    :math:`m_2, s_2, n_2 = 10`, a cell is "reproduced" if

    .. math::

        |m_1 - m_2| - 0.0005 \le t_{1 - \alpha / 2, \nu}\, \sqrt{s_1^2 / n_1 + s_2^2 / n_2},

    Welch's t test, less what rounding to three decimals can do to the paper's mean; :math:`\nu`
    are Welch's degrees of freedom.  Otherwise it is "better" or "worse", by the direction of the
    metric.  A cell without runs of ours is "missing".

    Parameters
    ----------
    source : store or mapping of str to ScoreTable
        Our scores: something with ``scores(metric, selection)``, or the tables by metric.
    selection : str, optional
        For a store: the metric by which settings were selected; "average_precision" by default.
    metrics : sequence of str, optional
        Which metrics; all five by default (of a mapping: those that it has).
    alpha : float
        The level of each single verdict: of cells that are truly equal, this share is called
        better or worse by chance.
    test_size : float, optional
        The share of the rows in each test part.  If given, the variances of the means are those of
        Nadeau and Bengio, :math:`(1/n + r) s^2` with the ratio r of test to training rows.

    Returns
    -------
    PublishedComparison

    Notes
    -----
    A printed standard deviation of .000 may be as large as 0.0005, and is taken to be.  Of a single
    run of ours no standard deviation is known; it is taken to be the paper's.

    Random splits are independent draws of parts of one and the same table, and the paper's are
    drawn like ours.  For the question whether both compute the same quantity, plain standard errors
    are right.  For the question how a method does on new rows they are too small, since the
    training parts overlap; ``test_size`` makes up for that (C. Nadeau and Y. Bengio, "Inference for
    the generalization error", Machine Learning 52, 2003), and calls fewer cells different.

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
            "source must be a store of results (with a method scores) or a mapping of metrics to "
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
            "selection is for stores; a mapping holds scores that are selected already"
        )
    else:
        lacking = [name for name in names if name not in source]
        if lacking:
            raise ValueError(f"metrics names {lacking[0]!r}, which source does not have")
        tables = {name: source[name] for name in names}
    for name, scores in tables.items():
        if not isinstance(scores, ScoreTable):
            raise TypeError(f"source has no ScoreTable for {name!r}, got {type(scores).__name__}")
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
    difference = error = apart = threshold = None
    verdict = "missing"
    if mean is not None:
        difference = mean - published_mean
        error, freedom = _welch(n, std, max(published_std, _ROUNDING), overlap)
        beyond = max(abs(difference) - _ROUNDING, 0.0)
        apart = math.copysign(beyond / error, difference)
        threshold = float(student.isf(alpha / 2, freedom))
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
        verdict=verdict,
        doubtful=doubtful(dataset, method),
    )


def _welch(n: int, std: float | None, published_std: float, overlap: float) -> tuple[float, float]:
    """Return the standard error of the difference of the means, and its degrees of freedom."""
    theirs = published_std**2 * (1 / N_REPETITIONS + overlap)
    if std is None:  # One run: its spread is taken to be the paper's.
        ours = published_std**2 * (1 / n + overlap)
        return math.sqrt(ours + theirs), N_REPETITIONS - 1.0
    ours = std**2 * (1 / n + overlap)
    freedom = (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (N_REPETITIONS - 1))
    return math.sqrt(ours + theirs), freedom
