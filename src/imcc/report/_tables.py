"""Tables of mean, standard deviation and rank as in the paper, in several formats."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc.comparison import ScoreTable
from imcc.report._results import Compared, compare_common_runs
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

AVERAGE_RANK = "average rank"


@dataclass(frozen=True)
class TableCell:
    """Result of a method on a data set.

    Attributes
    ----------
    n : int
        Number of runs.
    mean, std : float or None
        Mean and standard deviation over the runs; None without runs (``std``: with fewer than
        two).
    rank : float or None
        Rank among the methods on this data set; 1 is best, ties get the mean rank.  None if runs
        are missing.
    best : bool
        Whether no other method is better.
    """

    n: int
    mean: float | None
    std: float | None
    rank: float | None
    best: bool

    def text(self, decimals: int = 3, between: str = "±") -> str:
        """Return "mean±std (rank)"; a dash without runs.

        Parameters
        ----------
        decimals : int, default=3
            Number of decimals.
        between : str, default="±"
            Text between mean and standard deviation.
        """
        if self.mean is None:
            return DASH
        text = number(self.mean, decimals)
        if self.std is not None:
            text += between + number(self.std, decimals)
        return text if self.rank is None else f"{text} ({rank_text(self.rank)})"


@dataclass(frozen=True)
class PaperTable:
    """A table of results by one metric, in the form of Tables 3 and 4 of the paper.

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
    mean_ranks : tuple of (float or None)
        Mean ranks of the methods over the ranked data sets; empty if nothing is ranked.
    notes : tuple of str
        Notes on missing runs.
    decimals : int
        Number of decimals of means and standard deviations.
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
        """Return the texts of the header."""
        return ["data set", *(one_line(method) for method in self.methods)]

    def rows(self, between: str = "±") -> list[list[tuple[str, bool]]]:
        """Return the rows, average ranks last, as pairs of text and whether it is the best.

        Parameters
        ----------
        between : str, default="±"
            Text between mean and standard deviation.

        Returns
        -------
        list of list of (str, bool)
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
    """Return a table of scores as in the paper.

    Ranks are those of :func:`imcc.comparison.compare`, of unrounded means with mean ranks for ties.
    If methods have different repetitions of a data set, all values of its row are over their common
    repetitions; a row without common repetitions has the means of all runs, but no ranks.

    Parameters
    ----------
    scores : ScoreTable
        Scores, for example of :meth:`imcc.experiment.Store.scores`.
    decimals : int, default=3
        Number of decimals of means and standard deviations.

    Returns
    -------
    PaperTable

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
    compared = scores if isinstance(scores, Compared) else compare_common_runs(scores)
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
    """Return notes on data sets with fewer repetitions than the experiment."""
    full = scores.values.shape[2]
    few: dict[int, list[str]] = {}
    for dataset, row in zip(scores.datasets, counts, strict=True):
        for n in sorted({int(n) for n in row if 0 < n < full}):
            few.setdefault(n, []).append(one_line(dataset))
    return [
        f"over {counted(n, 'repetition')} instead of {full}: {', '.join(names)}"
        for n, names in sorted(few.items())
    ]


#: Comment at the beginning of files written by this module, which may be overwritten.
WRITTEN = "written by imcc report"

_MARKDOWN = str.maketrans({c: f"\\{c}" for c in r"\`*_{}[]()<>#+!|~$&"})
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\ttfamily\char34}",
    "`": "{`}",
    # A bracket at the start of a line would be read as an argument of the preceding line break.
    "[": "{[}",
    "]": "{]}",
    DASH: "--",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def markdown_escape(text: str) -> str:
    r"""Escape a text for Markdown.

    >>> print(markdown_escape("a_b|c"))
    a\_b\|c
    """
    return text.translate(_MARKDOWN)


def latex_escape(text: str) -> str:
    r"""Escape a text for LaTeX, for any engine.

    Characters for which pdfLaTeX has no glyphs are replaced by their code points.

    >>> print(latex_escape("50_% é 中"))
    50\_\% é {[}U+4E2D{]}
    """
    return "".join(_latex_character(c) for c in text)


def _latex_character(c: str) -> str:
    if c in _LATEX:
        return _LATEX[c]
    if c.isascii() or ("\u00c0" <= c <= "\u017e" and unicodedata.category(c)[0] == "L"):
        return c
    return f"{{[}}U+{ord(c):04X}{{]}}"


def to_markdown(tables: Iterable[PaperTable], caption: str = "") -> str:
    """Return tables as Markdown, with the best of each row in bold.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table` or :func:`tables`.
    caption : str, default=""
        Text before the first table.

    Returns
    -------
    str
    """
    parts = [f"<!-- {WRITTEN} -->", *([markdown_escape(caption)] if caption else [])]
    for table in tables:
        lines = [" | ".join(markdown_escape(h) for h in table.headings())]
        lines.append(" | ".join(["---", *["--:"] * len(table.methods)]))
        for row in table.rows(between=" ± "):
            # The brackets of numbers are not links; only names need escaping.
            cells = [markdown_escape(row[0][0])]
            cells += [f"**{text}**" if best else text for text, best in row[1:]]
            lines.append(" | ".join(cells))
        title = f"### {table.title}"
        block = [title, "\n".join(f"| {line} |" for line in lines)]
        block += [f"*{markdown_escape(note)}*" for note in table.notes]
        parts.append("\n\n".join(block))
    return "\n\n".join(parts) + "\n"


def to_latex(tables: Iterable[PaperTable], caption: str = "") -> str:
    r"""Return tables as LaTeX, one ``table`` each, to be ``\input`` into a document.

    The packages booktabs and, for wide tables, graphicx are needed.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table` or :func:`tables`.
    caption : str, default=""
        Text at the end of each caption.

    Returns
    -------
    str
    """
    parts = [f"% {WRITTEN}\n" + r"% \usepackage{booktabs,graphicx}"]
    parts += [_latex_table(table, caption) for table in tables]
    return "\n\n".join(parts) + "\n"


def _latex_table(table: PaperTable, caption: str) -> str:
    about = f"{capital(metric_title(table.metric))} ({direction(table.greater_is_better)}). "
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escape((about + caption).strip())}}}",
    ]
    wide = len(table.methods) > 4
    if wide:  # a resized box: as wide as the text, however many methods there are
        lines.append(r"\resizebox{\linewidth}{!}{%")
    lines += [rf"\begin{{tabular}}{{l{'c' * len(table.methods)}}}", r"\toprule"]
    lines.append(_latex_row(table.headings(), latex_escape))
    lines.append(r"\midrule")
    for position, ((name, _), *cells) in enumerate(table.rows()):
        if position == len(table.datasets):  # the average ranks
            lines.append(r"\midrule")
        texts = [(_numbers(text), best) for text, best in cells]
        bold = [rf"\textbf{{{text}}}" if best else text for text, best in texts]
        lines.append(_latex_row([latex_escape(name), *bold], str))
    lines += [r"\bottomrule", r"\end{tabular}" + ("}" if wide else "")]
    if table.notes:
        notes = "; ".join(latex_escape(note) for note in table.notes)
        lines.append(rf"\par\smallskip{{\footnotesize {capital(notes)}.}}")
    return "\n".join([*lines, r"\end{table}"])


def _numbers(text: str) -> str:
    return text.replace("±", r"$\pm$").replace(DASH, "--")


def _latex_row(cells: Iterable[str], escape: Callable[[str], str]) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"


_TEMPLATES = ("report.html", "macros.html", "report.css", "report.js")


def templates() -> tuple[Any, dict[str, str]]:
    """Return a Jinja environment that escapes everything, and the texts of the templates."""
    jinja2 = require("jinja2", "Writing a report")
    folder = resources.files("imcc.report") / "templates"
    texts = {name: (folder / name).read_text("utf-8") for name in _TEMPLATES}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment, texts


def table_values(table: PaperTable, about: str = "") -> dict[str, Any]:
    """Return the values of the template for a table.

    Parameters
    ----------
    table : PaperTable
    about : str, default=""
        Text next to the title.
    """
    rows = [
        {
            "name": one_line(dataset),
            "cells": [
                {
                    "value": "" if cell.mean is None else f"{cell.mean:.6g}",
                    "mean": "" if cell.mean is None else f"{cell.mean:.{table.decimals}f}",
                    "std": "" if cell.std is None else f"{cell.std:.{table.decimals}f}",
                    "rank": "" if cell.rank is None else rank_text(cell.rank),
                    "best": cell.best,
                }
                for cell in cells
            ],
        }
        for dataset, cells in zip(table.datasets, table.cells, strict=True)
    ]
    return {
        "title": table.title,
        "about": about,
        "best": "max" if table.greater_is_better else "min",
        "headings": table.headings()[1:],
        "rows": rows,
        "average": table.rows()[-1][1:] if table.mean_ranks else (),
        "notes": table.notes,
    }


def to_html(tables: Iterable[PaperTable]) -> str:
    """Return tables as HTML without styles.

    Parameters
    ----------
    tables : iterable of PaperTable
        Tables, of :func:`paper_table` or :func:`tables`.

    Returns
    -------
    str
    """
    macros = templates()[0].get_template("macros.html").module
    return "\n".join(str(macros.scores(table_values(table), sortable=False)) for table in tables)
