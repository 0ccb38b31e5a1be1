"""``imcc report``: a report on the results of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from imcc.cli._choices import FIGURE_FORMATS, TABLE_FORMATS
from imcc.cli._options import ALPHA, CONTROL, ROPE, examples, refuse_options
from imcc.cli._progress import working
from imcc.cli._terminal import print_json, problems_reported

_SUFFIXES = {"markdown": ".md", "latex": ".tex"}


@click.command(
    epilog=examples(
        "imcc report quick.sqlite",
        'imcc report mine.sqlite -o report.html --title "All my data sets"',
        "imcc report mine.sqlite --tables latex -o tables.tex",
        "imcc report mine.sqlite --tables markdown -o - | less",
        "imcc report mine.sqlite --figures pdf -o figures",
        "imcc report mine.sqlite --published published.csv",
    )
)
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; with --tables, - for the standard output; with --figures, the folder.  "
    "[default: the store's name, .html; for tables .md or .tex; for figures the folder "
    "NAME-figures]",
)
@click.option("--title", help="Title of the page.  [default: the experiment's name]")
@CONTROL
@ALPHA
@ROPE
@click.option(
    "--tables",
    type=click.Choice(TABLE_FORMATS),
    help="Write only the tables, in this format.",
)
@click.option(
    "--figures",
    type=click.Choice(FIGURE_FORMATS),
    help="Write only the figures, as files of this format.",
)
@click.option(
    "--published",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV file of published results to show beside these; see imcc compare.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is not a report.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def report(
    store: Path,
    output: Path | None,
    title: str | None,
    control: str | None,
    alpha: float,
    rope: float,
    tables: str | None,
    figures: str | None,
    published: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a report on the results of a store as HTML.

    The page is self-contained. It shows which method is best, by how much and whether
    significantly, the tables and figures, every data set, and how to reproduce the results. The
    experiment need not be complete.
    """
    import imcc.report as reports

    if tables is not None and figures is not None:
        raise click.UsageError("Give --tables or --figures, not both.")
    for option, value in (("--title", title), ("--published", published)):
        if value is not None and (tables is not None or figures is not None):
            raise click.UsageError(f"{option} is for the page, not for --tables or --figures.")
    if as_json and output == Path("-"):
        raise click.UsageError("--json prints the name of the file; with -o - there is none.")
    if tables is not None and control is not None:
        raise click.UsageError("--control is not for --tables: their ranks need none.")
    if tables is not None:
        refuse_options(["alpha", "rope"], "the tests of the page and the figures")
    if figures is not None:
        refuse_options(["rope"], "the tests of the page")
        refuse_options(["force"], "single files")
    if output == Path("-"):
        refuse_options(["force"], "files")
        if tables is None:
            raise click.UsageError("-o - is for --tables.")
    page: dict[str, Any] = {"control": control, "alpha": alpha}
    text, written = "", []
    with problems_reported(), working("writing the report"):
        if figures is not None:
            folder = output or store.with_name(f"{store.stem}-figures")
            written = reports.write_figures(store, folder, format=figures, **page)
        elif output == Path("-"):
            formatter = reports.to_latex if tables == "latex" else reports.to_markdown
            text = formatter(reports.tables(store))
        elif tables is not None:
            path = output or store.with_suffix(_SUFFIXES[tables])
            if path.suffix != _SUFFIXES[tables]:
                raise click.UsageError(
                    f"-o must end in {_SUFFIXES[tables]} with --tables {tables}."
                )
            written = [reports.write_tables(store, path, overwrite=force)]
        else:
            path = output or store.with_suffix(".html")
            page |= {"title": title, "rope": rope, "published": published}
            written = [reports.write_report(store, path, **page, overwrite=force)]
    shown = [{"path": str(path), "bytes": path.stat().st_size} for path in written]
    if text:
        click.echo(text, nl=False)
    elif as_json:
        print_json(shown if figures is not None else shown[0])
    else:
        for path in written:
            click.echo(str(path))  # a path is copied, so it stands alone
