"""``imcc compare``: comparison of methods with tests of significance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from imcc._utils.progress import report_progress
from imcc.cli import _options as options
from imcc.cli._choices import ALL_METRICS, LABEL_RANGES, METRICS
from imcc.cli._progress import working
from imcc.cli._terminal import print_json, print_table, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.comparison import Comparison, ScoreTable


@options.command(
    "imcc compare quick.sqlite",
    "imcc compare mine.sqlite --metric coverage --control imcc",
    name="compare",
)
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--metric",
    "metrics",
    type=click.Choice((*ALL_METRICS, *LABEL_RANGES)),
    multiple=True,
    help="Metric to compare by; may be repeated.  [default: the paper's five]",
)
@options.CONTROL
@options.JSON
def compare_(
    store: Path,
    metrics: tuple[str, ...],
    control: str | None,
    as_json: bool,
) -> None:
    """Compare the results of methods, with tests of significance.

    Shows means and ranks, which method is best, by how much and whether significantly; for the
    control against each other method the size of the difference, Wilcoxon's test with Holm's
    adjustment and the probabilities of a Bayesian test. Methods are compared on the splits that all
    of them have, those of the control if it is given; what is left out for that reason is listed.
    """
    from imcc.comparison import compare
    from imcc.experiment import Store

    wanted = list(dict.fromkeys(metrics)) or list(METRICS)
    with Store(store, read_only=True) as opened, working("comparing"):
        if control is None and "imcc" in {run.key.method for run in opened.runs()}:
            control = "imcc"
        compared = []
        for number, metric in enumerate(wanted):
            report_progress(number, len(wanted), metric)
            scores = opened.scores(metric)
            size = opened.experiment.protocol.test_size
            result = compare(scores, control=control, missing="drop", test_size=size)
            compared.append((scores, result))
    if as_json:
        print_json([result.to_dict() for _, result in compared])
        return
    for scores, result in compared:
        _show_comparison(scores, result)


def _show_comparison(scores: ScoreTable, result: Comparison) -> None:
    """Print means and ranks of one metric, and the conclusions that a report has too."""
    from rich.text import Text

    from imcc.report import paper_table
    from imcc.report._results import Panel
    from imcc.report._verdict import verdict

    panel = Panel(scores, result)
    better = "higher" if result.greater_is_better else "lower"
    fewest, most = result.counts.min(), result.counts.max()
    n_runs = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    print_table(
        f"{result.metric} ({better} is better), mean ± std (rank), {n_runs}",
        ["", *(f">{method}" for method in scores.methods)],
        [
            (name, *(Text(text, style="bold" if best else "") for text, best in cells))
            for name, cells in paper_table(panel).rows(" ± ")
        ],
    )
    found = verdict(panel)
    answers = (found.winner, found.lead, found.significant)
    for sentences in dict.fromkeys(text for _, text in answers):
        say(sentences)
    if result.against_control is not None:
        click.echo()
        _show_against(result)
    for name, reason in result.left_out:
        say(f"Left out: {name}: {reason}")
    click.echo()


def _show_against(result: Comparison) -> None:
    """Print the control against each other method: sizes, p and probabilities."""
    against = result.against_control
    assert against is not None
    i, n_sets = against.control, len(result.datasets)
    rows = []
    for j, name in enumerate(result.methods):
        if j == i:
            continue
        won, lost = result.wins[i, j], result.wins[j, i]
        half = against.mean_interval[j, 1] - against.mean[j]
        rows.append(
            (
                name,
                f"{won}/{n_sets - won - lost}/{lost}",
                f"{against.mean[j]:+.4f} ± {half:.4f}",
                f"{against.wilcoxon_p[j]:.2g}",
                f"{against.better[j]:.2f}/{against.equivalent[j]:.2f}/{against.worse[j]:.2f}",
            )
        )
    print_table(
        f"{result.metric}: {result.control} against each, positive where it is better",
        ("against", ">won/tied/lost", ">difference", ">p", ">better/equal/worse"),
        rows,
    )
    say(
        f"Difference: mean over data sets, {1 - result.alpha:.0%} interval. p: Wilcoxon with Holm. "
        "better/equal/worse: probabilities by the Bayesian signed-rank test, where equal means "
        f"within {against.rope:g}."
    )
