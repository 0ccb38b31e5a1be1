"""``imcc demo``: an experiment on real data, from the search to the report."""

from __future__ import annotations

from pathlib import Path

import click

from imcc._utils.text import printable
from imcc.cli import _options as options
from imcc.cli._compare import show_comparison
from imcc.cli._experiment import run_shown
from imcc.cli._progress import working
from imcc.cli._terminal import print_json


@options.command("imcc demo", "imcc demo -o /tmp/demo -j -1")
@click.option(
    "-o",
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("imcc-demo"),
    show_default=True,
    help="Folder for the results and the report; created if it does not exist.",
)
@options.JOBS
@options.QUIET
@options.JSON
def demo(folder: Path, n_jobs: int, quiet: bool, as_json: bool) -> None:
    """Compare five methods on yeast, and write a report.

    Runs the experiment "quick" (yeast: 2417 genes, 103 features, 14 labels; three random splits; no
    network), writes the report, and prints the comparison by average precision. IMCC's 2058
    settings are searched exactly on five folds of each split. Existing results are not computed
    again; -j -1 uses all cores.
    """
    from imcc.comparison import compare
    from imcc.experiment import Store, load_experiment
    from imcc.report import write_report

    store, report = folder / "quick.sqlite", folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = load_experiment("quick")
    summary = run_shown(wanted, store, n_jobs=n_jobs, quiet=quiet or as_json)
    for failure in summary.failures:
        raise click.ClickException(printable(f"{failure.key}: {failure.error}", keep="\n"))
    with working("writing the report", quiet=quiet or as_json):
        write_report(store, report)
        with Store(store, read_only=True) as opened:
            scores = opened.scores("average_precision")
        result = compare(scores)
    if as_json:
        print_json({"store": str(store), "report": str(report), "comparison": result.to_dict()})
        return
    show_comparison(scores, result)
    click.echo(f"The whole report: {report.resolve()}")
