"""``imcc report``: a report on the results of a store."""

from __future__ import annotations

from pathlib import Path

import click

from imcc.cli import _options as options
from imcc.cli._progress import working


@options.command(
    "imcc report quick.sqlite",
    "imcc report mine.sqlite -o report.html --published published.csv",
    "imcc report mine.sqlite -o tables.tex",
    "imcc report mine.sqlite -o results.csv",
)
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write: .html for the page, .tex for its tables, .csv for all results.  "
    "[default: the store's name with .html]",
)
@options.CONTROL
@options.file_option(
    "--published",
    help="CSV file of published results to compare with: the columns dataset, method, metric, "
    "mean, std and n.",
)
def report(store: Path, output: Path | None, control: str | None, published: str | None) -> None:
    """Write a report on the results of a store as HTML.

    The page is self-contained. It shows which method is best, by how much and whether
    significantly, the tables and figures, every data set, and how to reproduce the results. The
    experiment need not be complete.
    """
    from imcc.experiment import Store
    from imcc.report import write_report, write_tables

    if store.is_dir():
        raise click.UsageError(f"{store} is a folder, not a store of results.")
    path = output or store.with_suffix(".html")
    if path.suffix not in (".html", ".tex", ".csv"):
        raise click.UsageError("-o must end in .html, .tex or .csv.")
    if path.suffix != ".html":
        options.refuse_options("the page", control=control, published=published)
    with working("writing the report"), Store(store, read_only=True) as opened:
        if path.suffix == ".html":
            write_report(opened, path, control=control, published=published)
        elif path.suffix == ".csv":
            opened.export(path)
        else:
            write_tables(opened, path)
    click.echo(str(path))  # a path is copied, so it stands alone
