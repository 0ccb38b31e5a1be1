"""The tables as Markdown and as LaTeX."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from imcc.report._table import PaperTable
from imcc.report._words import DASH, capital, direction, metric_title

#: What such a file begins with, in a comment: it may be written over.
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
    # A line that begins with a bracket would be read as an argument of the line break before it.
    "[": "{[}",
    "]": "{]}",
    DASH: "--",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def markdown_escape(text: str) -> str:
    r"""Return a text that Markdown shows as it is.

    >>> print(markdown_escape("a_b|c"))
    a\_b\|c
    """
    return text.translate(_MARKDOWN)


def latex_escape(text: str) -> str:
    r"""Return a text that LaTeX prints as it is, whatever engine is used.

    Letters that pdfLaTeX has no glyphs for are given by their numbers.

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
    """Return tables as Markdown, one after the other; the best of each row is bold."""
    parts = [f"<!-- {WRITTEN} -->", *([markdown_escape(caption)] if caption else [])]
    for table in tables:
        lines = [" | ".join(markdown_escape(h) for h in table.headings())]
        lines.append(" | ".join(["---", *["--:"] * len(table.methods)]))
        for row in table.rows(between=" ± "):
            # The numbers' brackets are no link here; only names need escaping.
            cells = [markdown_escape(row[0][0])]
            cells += [f"**{text}**" if best else text for text, best in row[1:]]
            lines.append(" | ".join(cells))
        title = f"### {table.title}"
        block = [title, "\n".join(f"| {line} |" for line in lines)]
        block += [f"*{markdown_escape(note)}*" for note in table.notes]
        parts.append("\n\n".join(block))
    return "\n\n".join(parts) + "\n"


def to_latex(tables: Iterable[PaperTable], caption: str = "") -> str:
    r"""Return tables as LaTeX, a ``table`` each, to be ``\input`` into a document.

    They need the packages booktabs and, for the wide ones, graphicx.
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
