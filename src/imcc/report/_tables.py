"""Tables of mean, standard deviation and rank, as LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._results import Panel, compare_runs
from imcc.report._words import (
    DASH,
    capital,
    counted,
    direction,
    metric_title,
    number,
    one_line,
    rank_text,
)

#: Comment at the beginning of files written by this module, which may be overwritten.
WRITTEN = "written by imcc report"

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # A bracket at the start of a line would be an argument of the preceding line break.
        "[": "{[}",
        DASH: "--",
        "±": r"$\pm$",
        **{c: f"\\{c}" for c in "&%$#_{}"},
    }
)


class TableCell(NamedTuple):
    """Result of a method on a data set; NaN where there is none."""

    mean: float
    std: float
    rank: float
    best: bool

    def text(self, between: str) -> str:
        """Return mean, standard deviation and rank; a dash without runs."""
        std = "" if np.isnan(self.std) else between + number(self.std)
        rank = "" if np.isnan(self.rank) else f" ({rank_text(self.rank)})"
        return number(self.mean) + std + rank


@dataclass(frozen=True)
class PaperTable:
    """A table as in the paper: data sets down, methods across, average ranks below.

    Attributes
    ----------
    scores : ScoreTable
        All scores; their names are those of the rows and columns.
    cells : list of list of TableCell
        One row per data set: mean and standard deviation over the runs, the rank among the methods
        that are ranked together (1 is best, ties get the mean rank), and whether that is the best.
    mean_ranks : list of (str, bool)
        Average rank of each method as text, and whether it is the best; empty if nothing is ranked.
    notes : tuple of str
        What is left out, and why.
    caption : str
        How the values were obtained.
    """

    scores: ScoreTable
    cells: list[list[TableCell]]
    mean_ranks: list[tuple[str, bool]]
    notes: tuple[str, ...]
    caption: str

    def rows(self, between: str) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return the rows, average ranks last; a cell is a text and whether it is best.

        Parameters
        ----------
        between : str
            Text between mean and standard deviation.
        """
        names = [one_line(dataset) for dataset in self.scores.datasets]
        texts = [[(cell.text(between), cell.best) for cell in cells] for cells in self.cells]
        if self.mean_ranks:
            names, texts = [*names, "average rank"], [*texts, self.mean_ranks]
        return list(zip(names, texts, strict=True))


def paper_table(scores: ScoreTable | Panel, *, caption: str = "") -> PaperTable:
    """Return a table of scores as in the paper.

    Ranks are those of :func:`imcc.comparison.compare`, of unrounded means with mean ranks for ties.
    If methods have different repetitions of a data set, all values of its row are over their common
    repetitions; a row without common repetitions has the means of all runs, but no ranks.

    Parameters
    ----------
    scores : ScoreTable
        Scores, for example of :meth:`imcc.experiment.Store.scores`.
    caption : str, default=""
        How the values were obtained.

    Returns
    -------
    PaperTable
        :func:`to_latex` writes it; ``rows(" ± ")`` has its texts.
    """
    panel = scores if isinstance(scores, Panel) else compare_runs(scores)
    scores, comparison = panel.scores, panel.comparison
    counts, means, stds = scores.counts.copy(), scores.mean(), scores.std()
    ranks = np.full(means.shape, np.nan)
    mean_ranks: list[tuple[str, bool]] = []
    if comparison is not None and len(comparison.methods) > 1:
        columns = [scores.methods.index(name) for name in comparison.methods]
        part = np.ix_([scores.datasets.index(name) for name in comparison.datasets], columns)
        counts[part], means[part] = comparison.counts, comparison.means
        stds[part], ranks[part] = comparison.stds, comparison.ranks
        by_column = np.full(len(scores.methods), np.nan)
        by_column[columns] = comparison.mean_ranks
        best_rank = comparison.mean_ranks.min()
        mean_ranks = [(number(rank, 2), bool(rank == best_rank)) for rank in by_column]
    best = ranks == np.fmin.reduce(ranks, axis=1, keepdims=True)
    columns_of = (values.tolist() for values in (means, stds, ranks, best))
    cells = [list(map(TableCell, *row)) for row in zip(*columns_of, strict=True)]
    full = scores.values.shape[2]
    notes = []
    for n in np.unique(counts[(counts > 0) & (counts < full)]):
        rows = np.flatnonzero((counts == n).any(axis=1))
        names = ", ".join(one_line(scores.datasets[i]) for i in rows)
        notes.append(f"over {counted(int(n), 'repetition')} instead of {full}: {names}")
    return PaperTable(scores, cells, mean_ranks, (*notes, *panel.left_out), caption)


def to_latex(tables: Iterable[PaperTable]) -> str:
    r"""Return tables as LaTeX, one ``table`` each, to be ``\input`` into a document.

    The packages booktabs and, for wide tables, graphicx are needed; for names in other scripts than
    Latin, an engine with such fonts.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table`.

    Returns
    -------
    str
    """
    parts = [f"% {WRITTEN}\n" + r"% \usepackage{booktabs,graphicx}"]
    for table in tables:
        scores = table.scores
        about = f"{capital(metric_title(scores.metric))} ({direction(scores.greater_is_better)}). "
        # A resized box is as wide as the text, however many methods there are.
        wide = len(scores.methods) > 4
        names = ["data set", *(one_line(method).translate(_LATEX) for method in scores.methods)]
        rows = []
        for name, row in table.rows(r"$\pm$"):
            texts = (rf"\textbf{{{text}}}" if best else text for text, best in row)
            rows.append(_line([name.translate(_LATEX), *texts]))
        if table.mean_ranks:
            rows.insert(-1, r"\midrule")
        notes = capital("; ".join(table.notes)).translate(_LATEX)
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{(about + table.caption).strip().translate(_LATEX)}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{l{'c' * len(scores.methods)}}}",
            r"\toprule",
            _line(names),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}" + ("}" if wide else ""),
            *([rf"\par\smallskip{{\footnotesize {notes}.}}"] if notes else []),
            r"\end{table}",
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _line(cells: list[str]) -> str:
    return " & ".join(cells).replace(DASH, "--") + r" \\"
