"""Tables of mean, standard deviation and rank, as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._results import Panel, compare_runs
from imcc.report._words import (
    DASH,
    arrow,
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

_MARKDOWN = str.maketrans({c: f"\\{c}" for c in r"\`*_{}[]()<>#+!|~$&"})
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


@dataclass(frozen=True)
class TableCell:
    """Result of a method on a data set; NaN where there is none.

    Attributes
    ----------
    mean, std : float
        Mean and standard deviation over the runs.
    rank : float
        Rank among the methods that are ranked together; 1 is best, ties get the mean rank.
    best : bool
        Whether no other method is better.
    """

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
    """A table of results by one metric, the result of :func:`paper_table`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    greater_is_better : bool
        Whether larger values are better.
    datasets, methods : tuple of str
        Names of the rows and columns.
    cells : tuple of tuple of TableCell
        One row per data set.
    mean_ranks : tuple of (str, bool)
        Mean ranks of the methods, and whether it is the best; empty if nothing is ranked.
    notes : tuple of str
        Notes on missing runs.
    caption : str
        How the values were obtained.
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    cells: tuple[tuple[TableCell, ...], ...]
    mean_ranks: tuple[tuple[str, bool], ...]
    notes: tuple[str, ...]
    caption: str

    def rows(self, between: str) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return the rows, average ranks last; a cell is a text and if it is best.

        Parameters
        ----------
        between : str
            Text between mean and standard deviation.
        """
        lines = [
            (one_line(dataset), [(cell.text(between), cell.best) for cell in cells])
            for dataset, cells in zip(self.datasets, self.cells, strict=True)
        ]
        return [*lines, ("average rank", list(self.mean_ranks))] if self.mean_ranks else lines


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
        Its text is given by :func:`to_markdown` and :func:`to_latex`.
    """
    panel = scores if isinstance(scores, Panel) else compare_runs(scores)
    scores, comparison = panel.scores, panel.comparison
    counts, means, stds = scores.counts.copy(), scores.mean(), scores.std()
    ranks = np.full(means.shape, np.nan)
    mean_ranks: tuple[tuple[str, bool], ...] = ()
    if comparison is not None and len(comparison.methods) > 1:
        rows = [scores.datasets.index(name) for name in comparison.datasets]
        columns = [scores.methods.index(name) for name in comparison.methods]
        part = np.ix_(rows, columns)
        counts[part], means[part] = comparison.counts, comparison.means
        stds[part], ranks[part] = comparison.stds, comparison.ranks
        by_column = np.full(len(scores.methods), np.nan)
        by_column[columns] = comparison.mean_ranks
        best_rank = comparison.mean_ranks.min()
        mean_ranks = tuple((number(rank, 2), bool(rank == best_rank)) for rank in by_column)
    best = ranks == np.fmin.reduce(ranks, axis=1, keepdims=True)
    cells = tuple(
        tuple(TableCell(*cell) for cell in zip(*row, strict=True))
        for row in zip(means.tolist(), stds.tolist(), ranks.tolist(), best.tolist(), strict=True)
    )
    full = scores.values.shape[2]
    few: dict[int, list[str]] = {}
    for dataset, row in zip(scores.datasets, counts, strict=True):
        for n in sorted({int(n) for n in row if 0 < n < full}):
            few.setdefault(n, []).append(one_line(dataset))
    notes = [
        f"over {counted(n, 'repetition')} instead of {full}: {', '.join(names)}"
        for n, names in sorted(few.items())
    ]
    return PaperTable(
        scores.metric,
        scores.greater_is_better,
        scores.datasets,
        scores.methods,
        cells,
        mean_ranks,
        (*notes, *panel.left_out),
        caption,
    )


def to_markdown(tables: Iterable[PaperTable]) -> str:
    """Return tables as Markdown, with the best of each row in bold.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table` or :func:`tables`.

    Returns
    -------
    str
    """
    parts = [f"<!-- {WRITTEN} -->"]
    for table in tables:
        title = f"### {capital(metric_title(table.metric))} {arrow(table.greater_is_better)}"
        parts += [title, table.caption.translate(_MARKDOWN)] if table.caption else [title]
        headings = ["data set", *(one_line(m).translate(_MARKDOWN) for m in table.methods)]
        lines = [headings, ["---", *["--:"] * len(table.methods)]]
        for name, cells in table.rows(" ± "):
            # The brackets of numbers are not links; only names need escaping.
            texts = [f"**{text}**" if best else text for text, best in cells]
            lines.append([name.translate(_MARKDOWN), *texts])
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        parts += [f"*{note.translate(_MARKDOWN)}*" for note in table.notes]
    return "\n\n".join(parts) + "\n"


def to_latex(tables: Iterable[PaperTable]) -> str:
    r"""Return tables as LaTeX, one ``table`` each, to be ``\input`` into a document.

    The packages booktabs and, for wide tables, graphicx are needed; for names in other scripts than
    Latin, an engine with such fonts.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table` or :func:`tables`.

    Returns
    -------
    str
    """
    parts = [f"% {WRITTEN}\n" + r"% \usepackage{booktabs,graphicx}"]
    for table in tables:
        about = f"{capital(metric_title(table.metric))} ({direction(table.greater_is_better)}). "
        # A resized box is as wide as the text, however many methods there are.
        wide = len(table.methods) > 4
        rows = []
        for name, cells in table.rows("±"):
            texts = [text.translate(_LATEX) for text, _ in cells]
            bold = [
                rf"\textbf{{{t}}}" if best else t for t, (_, best) in zip(texts, cells, strict=True)
            ]
            rows.append(" & ".join([name.translate(_LATEX), *bold]) + r" \\")
        if table.mean_ranks:
            rows.insert(-1, r"\midrule")
        headings = ["data set", *(one_line(m).translate(_LATEX) for m in table.methods)]
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{(about + table.caption).strip().translate(_LATEX)}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{l{'c' * len(table.methods)}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}" + ("}" if wide else ""),
        ]
        if table.notes:
            notes = capital("; ".join(table.notes)).translate(_LATEX)
            lines.append(rf"\par\smallskip{{\footnotesize {notes}.}}")
        parts.append("\n".join([*lines, r"\end{table}"]))
    return "\n\n".join(parts) + "\n"
