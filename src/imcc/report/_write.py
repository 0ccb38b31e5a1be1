"""Writing of reports, tables and figures."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from imcc._utils.files import check_target, save
from imcc._utils.progress import part
from imcc.experiment import Store
from imcc.report._page import render
from imcc.report._results import find_control, make_panels
from imcc.report._tables import WRITTEN, paper_table, to_latex
from imcc.report._words import counted, metric_title

# Marks of files written by this package, which may be overwritten; within their first bytes.
_MARKS = (b'<meta name="generator" content="imcc report', WRITTEN.encode())
_HEAD = 2048


def write_report(
    store: Store | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    control: str | None = None,
    title: str | None = None,
    published: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a report on the results of a store as a self-contained HTML page.

    Tests have the significance level 0.05, and differences up to 0.01 are negligible.  For others,
    use :func:`imcc.comparison.compare`.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment, complete or not.
    path : path-like
        The HTML file; an existing report is overwritten.
    control : str, default=None
        The method that the others are compared with; ``imcc`` by default, if the experiment has a
        method of that name.
    title : str, default=None
        Title of the page; the name of the experiment by default.
    published : path-like, default=None
        CSV file of published results to show beside these, matched by the names of data sets,
        methods and metrics; see :func:`imcc.experiment.compare_with_published`.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    FileExistsError
        If the file already exists and is not a report.

    Examples
    --------
    >>> from imcc.report import write_report
    >>> write_report("mine.sqlite", "report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    target = Path(path)
    _check_target(target)
    shares = (3, 2)  # as measured for fifteen data sets
    with _opened(store) as results:
        with part(0, shares, "comparing"):
            panels = make_panels(results, find_control(results, control))
        with part(1, shares, "drawing"):
            page = render(results, panels, title=title, published=published)
    return save(target, page.encode("utf-8", "replace"))


def _opened(store: Store | str | os.PathLike[str]) -> AbstractContextManager[Store]:
    return nullcontext(store) if isinstance(store, Store) else Store(Path(store), read_only=True)


def _check_target(target: Path) -> None:
    """Check that a file can be written and may be overwritten, before computing anything."""
    check_target(target)
    if target.exists():
        with target.open("rb") as file:
            head = file.read(_HEAD)
        if head and not any(mark in head for mark in _MARKS):
            raise FileExistsError(
                f"{target} already exists and is not a report: choose another name, or delete it"
            )


def write_tables(store: Store | str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    r"""Write tables of the results of a store as in the paper, one per metric, as LaTeX.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment.  Settings are those chosen by the metric of the experiment.
    path : path-like
        The file, with the suffix ``.tex``; existing tables are overwritten.  It is to be
        ``\input`` into a document with the packages booktabs and graphicx.

    Returns
    -------
    pathlib.Path
        The file.
    """
    target = Path(path)
    if target.suffix != ".tex":
        raise ValueError(f"path must end in .tex, got {target.name!r}")
    _check_target(target)
    with _opened(store) as results:
        n_repeats, scoring = results.experiment.n_repeats, results.experiment.protocol.scoring
        panels = make_panels(results, find_control(results, None))
    caption = (
        f"Mean ± standard deviation over {counted(n_repeats, 'random split')}, rank in brackets, "
        f"best in bold; settings chosen by {metric_title(scoring)}."
    )
    tables = [paper_table(panel, caption=caption) for panel in panels]
    return save(target, to_latex(tables).encode("utf-8"))
