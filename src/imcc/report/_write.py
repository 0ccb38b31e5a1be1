"""Writing of reports, tables and figures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from imcc._utils.errors import given
from imcc._utils.files import save
from imcc._utils.progress import part, report_progress
from imcc._utils.validation import check_choice, check_number, check_share
from imcc.comparison import ROPE
from imcc.experiment import ALL_METRICS, EACH, Store
from imcc.metrics import METRICS
from imcc.report import _figures as figures
from imcc.report._page import MARK, render
from imcc.report._picture import SUFFIXES, Picture
from imcc.report._results import OWN, Results, compare_with_paper, gather
from imcc.report._tables import WRITTEN, PaperTable, paper_table, to_latex, to_markdown
from imcc.report._words import counted, metric_title

TABLE_FORMATS = ("markdown", "latex")
# The mark of a report is within its first bytes.
_HEAD = 2048


def build_report(
    store: Store | str | os.PathLike[str],
    *,
    control: str | None = None,
    alpha: float = 0.05,
    rope: float = ROPE,
    title: str | None = None,
) -> str:
    """Return the HTML page of a report.

    Parameters
    ----------
    store, control, alpha, rope, title
        As for :func:`write_report`.

    Returns
    -------
    str
    """
    check_share("alpha", alpha)
    check_number("rope", rope, at_least=0)
    shares = (1, 3)  # as measured for the fifteen data sets of the paper
    with part(0, shares, "comparing"):
        results = gather(_source(store), control=control, alpha=alpha, rope=rope)
    with part(1, shares, "drawing"):
        return render(results, title)


def write_report(
    store: Store | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    control: str | None = None,
    alpha: float = 0.05,
    rope: float = ROPE,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a report on the results of a store as a self-contained HTML page.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment, complete or not.
    path : path-like
        The HTML file; an existing report is overwritten.
    control : str, default=None
        The method that the others are compared with; ``imcc`` by default, if the experiment has a
        method of that name.
    alpha : float, default=0.05
        Significance level of all tests.
    rope : float, default=0.01
        Differences up to this size are negligible in practice, in units of the metric; for the
        Bayesian test (see :func:`imcc.comparison.bayesian_signed_rank`).
    title : str, default=None
        Title of the page; the name of the experiment by default.
    overwrite : bool, default=False
        Whether to overwrite an existing file that is not a report.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    FileExistsError
        If the file already exists, is not a report, and ``overwrite`` is False.

    Examples
    --------
    >>> from imcc.report import write_report
    >>> write_report("paper.sqlite", "report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    target = Path(path)
    _check_target(target, overwrite)
    page = build_report(store, control=control, alpha=alpha, rope=rope, title=title)
    return save(target, page.encode("utf-8"))


def _source(store: Store | str | os.PathLike[str]) -> Store | Path:
    return store if isinstance(store, Store) else Path(store)


def _check_target(target: Path, overwrite: bool) -> None:
    """Check that a file can be written and may be overwritten, before computing anything."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; specify a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} for {target.name}")
    if target.exists() and not overwrite:
        with target.open("rb") as file:
            head = file.read(_HEAD)
        if head and not any(mark.encode() in head for mark in (MARK, WRITTEN)):
            raise FileExistsError(
                f"{target} already exists and is not a report; overwrite it with "
                + given("overwrite", True)
            )


def tables(
    store: Store | str | os.PathLike[str], *, selection: str = OWN, metrics: str = "paper"
) -> list[PaperTable]:
    """Return tables of the results of a store as in the paper, one per metric.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment.
    selection : {"own", "each"}, default="own"
        Whether settings are chosen by the metric of the experiment, or by each metric itself.
    metrics : {"paper", "all"}, default="paper"
        The five metrics of the paper, or all.

    Returns
    -------
    list of PaperTable
    """
    check_choice("selection", selection, (OWN, EACH))
    check_choice("metrics", metrics, ("paper", "all"))
    return list(_tables(gather(_source(store)), selection, metrics))


def _tables(results: Results, selection: str, metrics: str) -> Iterator[PaperTable]:
    # If no method has a search, there is only one selection.
    selection = selection if selection in results.selections else OWN
    for metric in METRICS if metrics == "paper" else ALL_METRICS:
        panel = results.panel(metric, selection)
        if panel is not None:
            yield paper_table(panel.compared)


def format_tables(
    store: Store | str | os.PathLike[str],
    *,
    format: str = "markdown",  # noqa: A002
    selection: str = OWN,
    metrics: str = "paper",
) -> str:
    """Return tables of the results of a store as Markdown or LaTeX.

    Parameters
    ----------
    store, format, selection, metrics
        As for :func:`write_tables`.

    Returns
    -------
    str
    """
    check_choice("format", format, TABLE_FORMATS)
    check_choice("selection", selection, (OWN, EACH))
    check_choice("metrics", metrics, ("paper", "all"))
    results = gather(_source(store))
    chosen = metric_title(results.scoring) if selection == OWN else "each metric itself"
    caption = (
        f"Mean ± standard deviation over {counted(results.experiment.n_repeats, 'random split')}, "
        f"rank in brackets, best in bold; settings chosen by {chosen}."
    )
    blocks = list(_tables(results, selection, metrics))
    return to_latex(blocks, caption) if format == "latex" else to_markdown(blocks, caption)


def write_tables(
    store: Store | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str = "markdown",  # noqa: A002
    selection: str = OWN,
    metrics: str = "paper",
    overwrite: bool = False,
) -> Path:
    r"""Write tables of the results of a store as Markdown or LaTeX.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment.
    path : path-like
        The file; existing tables are overwritten.
    format : {"markdown", "latex"}, default="markdown"
        Format of the file.  A LaTeX file is to be ``\input`` into a document with the packages
        booktabs and graphicx.
    selection : {"own", "each"}, default="own"
        Whether settings are chosen by the metric of the experiment, or by each metric itself.
    metrics : {"paper", "all"}, default="paper"
        The five metrics of the paper, or all.
    overwrite : bool, default=False
        Whether to overwrite an existing file that was not written by this function.

    Returns
    -------
    pathlib.Path
        The file.
    """
    target = Path(path)
    _check_target(target, overwrite)
    text = format_tables(store, format=format, selection=selection, metrics=metrics)
    return save(target, text.encode("utf-8"))


def write_figures(
    store: Store | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    format: str = "svg",  # noqa: A002
    control: str | None = None,
    alpha: float = 0.05,
) -> list[Path]:
    """Write the figures of a report to separate files.

    Parameters
    ----------
    store : Store or path-like
        The results of an experiment.
    folder : path-like
        Folder; it is created if it does not exist.  Files of the same names are overwritten.
    format : {"svg", "pdf", "png"}, default="svg"
        Format of the files.
    control : str, default=None
        As for :func:`write_report`.
    alpha : float, default=0.05
        Significance level of all tests.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    check_choice("format", format, [suffix[1:] for suffix in SUFFIXES])
    check_share("alpha", alpha)
    with part(0, (1, 1), "comparing"):
        results = gather(_source(store), control=control, alpha=alpha)
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is not a folder")
    target.mkdir(parents=True, exist_ok=True)
    with part(1, (1, 1), "drawing"):
        return [
            picture.save(target / f"{name}.{format}") for name, picture in _all_figures(results)
        ]


def _all_figures(results: Results) -> Iterator[tuple[str, Picture]]:
    for number, panel in enumerate(results.panels):
        report_progress(number, len(results.panels))
        yield from figures.critical_differences(panel)
        yield from figures.time_against_quality(results, panel)
    for metric in METRICS:
        for number, (dataset, pictures) in enumerate(figures.sensitivities(results, metric), 1):
            parts = ("alpha_gamma", "beta", "n_clusters")
            for name, picture in zip(parts, pictures, strict=True):
                yield f"sensitivity_{number}_{_file_name(dataset)}_{metric}_{name}", picture
    for number, spec in enumerate(results.experiment.datasets, 1):
        main = results.main
        drawn = None if main is None else figures.spread(results, main, spec.name)
        if drawn is not None:
            yield f"spread_{number}_{_file_name(spec.name)}", drawn
    for selection in results.selections:
        beside = compare_with_paper(results, selection)
        if beside is not None:
            for _, name, picture in figures.against_paper(beside, selection):
                yield name, picture


def _file_name(name: str) -> str:
    """Return a name that is valid on any file system; a number before it makes it unique."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] or "data"
