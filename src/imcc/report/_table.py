"""The paper's table of a metric: data sets x methods, mean ± std, rank in brackets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._compared import Compared, compare_what_is_there
from imcc.report._words import (
    DASH,
    arrow,
    capital,
    counted,
    metric_title,
    number,
    one_line,
    rank_text,
)

AVERAGE_RANK = "average rank"


@dataclass(frozen=True)
class TableCell:
    """A method on a data set.

    Attributes
    ----------
    n : int
        The number of runs that mean and standard deviation are of.
    mean, std : float or None
        Over them; None without runs (``std``: with fewer than two).
    rank : float or None
        Among the methods on this data set, 1 is best, ties shared; None where runs are missing.
    best : bool
        Whether no method is better.
    """

    n: int
    mean: float | None
    std: float | None
    rank: float | None
    best: bool

    def text(self, decimals: int = 3, between: str = "±") -> str:
        """Return "mean±std (rank)"; a dash without runs."""
        if self.mean is None:
            return DASH
        text = number(self.mean, decimals)
        if self.std is not None:
            text += between + number(self.std, decimals)
        return text if self.rank is None else f"{text} ({rank_text(self.rank)})"


@dataclass(frozen=True)
class PaperTable:
    """One block of the paper's Tables 3 and 4.

    Attributes
    ----------
    metric : str
        What was measured.
    greater_is_better : bool
        Its direction.
    datasets, methods : tuple of str
        Rows and columns, as the experiment names them.
    cells : tuple of tuple of TableCell
        A row a data set.
    mean_ranks : tuple of (float or None)
        Of the methods, over the ranked data sets; empty if nothing could be ranked.
    notes : tuple of str
        What is missing.
    decimals : int
        Of means and standard deviations.
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    cells: tuple[tuple[TableCell, ...], ...]
    mean_ranks: tuple[float | None, ...]
    notes: tuple[str, ...]
    decimals: int = 3

    @property
    def title(self) -> str:
        """The metric and its direction."""
        return f"{capital(metric_title(self.metric))} {arrow(self.greater_is_better)}"

    def headings(self) -> list[str]:
        """Return the texts of the first line."""
        return ["data set", *(one_line(method) for method in self.methods)]

    def rows(self, between: str = "±") -> list[list[tuple[str, bool]]]:
        """Return the other lines, average ranks last: each cell's text, and whether it is best.

        Parameters
        ----------
        between : str
            What stands between mean and standard deviation.
        """
        lines = [
            [
                (one_line(dataset), False),
                *((cell.text(self.decimals, between), cell.best) for cell in row),
            ]
            for dataset, row in zip(self.datasets, self.cells, strict=True)
        ]
        if self.mean_ranks:
            best = min(rank for rank in self.mean_ranks if rank is not None)
            ranks = [
                (DASH, False) if r is None else (f"{r:.2f}", r == best) for r in self.mean_ranks
            ]
            lines.append([(AVERAGE_RANK, False), *ranks])
        return lines


def paper_table(scores: ScoreTable | Compared, *, decimals: int = 3) -> PaperTable:
    """Arrange scores as the paper does.

    Ranks are those of :func:`imcc.comparison.compare`: of unrounded means, ties shared.  Where
    methods have different repetitions of a data set, all numbers of its row are over those that
    they have in common; a row without such repetitions shows what there is, without ranks.

    Parameters
    ----------
    scores : ScoreTable
        From :meth:`imcc.experiment.Store.scores`.
    decimals : int
        Of means and standard deviations.

    Examples
    --------
    >>> from imcc.published import table
    >>> from imcc.report import paper_table
    >>> block = paper_table(table("one_error").to_scores())
    >>> block.title, block.headings()[:3]
    ('One-error ↓', ['data set', 'imcc', 'brsvm'])
    >>> block.rows()[0][:3]
    [('cal500', False), ('0.116 (1)', True), ('0.119 (3.5)', False)]
    """
    if isinstance(decimals, bool) or not isinstance(decimals, int) or decimals < 0:
        raise ValueError(f"decimals must be a whole number >= 0, got {decimals!r}")
    compared = scores if isinstance(scores, Compared) else compare_what_is_there(scores)
    scores, comparison = compared.scores, compared.comparison
    counts, means, stds = scores.counts.copy(), scores.mean(), scores.std()
    ranks = np.full(means.shape, np.nan)
    mean_ranks: tuple[float | None, ...] = ()
    if comparison is not None and len(comparison.methods) > 1:
        rows = [scores.datasets.index(name) for name in comparison.datasets]
        columns = [scores.methods.index(name) for name in comparison.methods]
        part = np.ix_(rows, columns)
        counts[part], means[part] = comparison.counts, comparison.means
        stds[part], ranks[part] = comparison.stds, comparison.ranks
        by_column = dict(zip(columns, comparison.mean_ranks.tolist(), strict=True))
        mean_ranks = tuple(by_column.get(j) for j in range(len(scores.methods)))
    cells = tuple(
        tuple(
            _cell(int(counts[i, j]), means[i, j], stds[i, j], ranks[i, j], ranks[i])
            for j in range(len(scores.methods))
        )
        for i in range(len(scores.datasets))
    )
    return PaperTable(
        scores.metric,
        scores.greater_is_better,
        scores.datasets,
        scores.methods,
        cells,
        mean_ranks,
        (*_few_runs(counts, scores), *compared.left_out),
        decimals,
    )


def _cell(n: int, mean: float, std: float, rank: float, of_row: np.ndarray) -> TableCell:
    ranked = not np.isnan(rank)
    return TableCell(
        n,
        float(mean) if n else None,
        float(std) if n > 1 else None,
        float(rank) if ranked else None,
        bool(ranked and rank == np.nanmin(of_row)),
    )


def _few_runs(counts: np.ndarray, scores: ScoreTable) -> list[str]:
    """Say where the numbers are of fewer repetitions than the experiment has."""
    full = scores.values.shape[2]
    few: dict[int, list[str]] = {}
    for dataset, row in zip(scores.datasets, counts, strict=True):
        for n in sorted({int(n) for n in row if 0 < n < full}):
            few.setdefault(n, []).append(one_line(dataset))
    return [
        f"over {counted(n, 'repetition')} instead of {full}: {', '.join(names)}"
        for n, names in sorted(few.items())
    ]
