"""``imcc sensitivity``: how IMCC depends on its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.text import printable
from imcc.cli._choices import METRICS as METRIC_NAMES
from imcc.cli._options import examples
from imcc.cli._running import run_shown, running_options, stopped_in_time
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Experiment, Study


@click.command(
    epilog=examples(
        "imcc sensitivity yeast",
        "imcc sensitivity mydata.csv --metric average_precision -o mine.sqlite",
    ),
)
@click.argument("dataset", metavar="NAME_OR_FILE")
@click.option(
    "-o",
    "--store",
    type=click.Path(path_type=Path),
    default=Path("sensitivity.sqlite"),
    show_default=True,
    help="File for the results.",
)
@click.option(
    "--metric",
    type=click.Choice(METRIC_NAMES),
    default="coverage",
    show_default=True,
    help="Metric to show; all five metrics are stored.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for folds and clusterings."
)
@click.option(
    "--cv", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds."
)
@running_options
def sensitivity(
    dataset: str, store: Path, metric: str, seed: int, cv: int, as_json: bool, **running: Any
) -> None:
    """Study how IMCC depends on its parameters.

    As in section 4.3 of the paper, all settings of its grid are cross-validated in one exact
    search. Shows the metric over alpha and gamma, beta, and the number of clusters, with the other
    parameters at their best.
    """
    from imcc.experiment import Experiment, Store

    with problems_reported():
        wanted = Experiment((), sensitivity=[dataset], seed=seed, cv=cv, name="sensitivity")
        name = wanted.studied_datasets[0].name
        known = store.exists() and _has_study(store, wanted)
    if not known:
        quiet = running.pop("quiet") or as_json  # with --json, only the result is printed
        summary = run_shown(wanted, store, quiet=quiet, as_json=False, **running)
        for failure in summary.failures:
            raise click.ClickException(printable(failure.error, keep="\n"))
        stopped_in_time(summary, store)
    with problems_reported(), Store(store, read_only=True) as opened:
        study = next(s for s in opened.studies() if s.key[1] == name)
    _show(study, metric, store, as_json)


def _has_study(path: Path, wanted: Experiment) -> bool:
    from imcc.experiment import Store

    with Store(path, read_only=True) as store:
        done = store.keys()
        return all(task.key in done for task in wanted.tasks())


def _show(study: Study, metric: str, path: Path, as_json: bool) -> None:
    from imcc.metrics import METRICS

    surface, _ = study.along(metric, "alpha", "gamma")
    curves = {axis: study.along(metric, axis) for axis in ("beta", "n_clusters")}
    if as_json:
        print_json(
            {
                "dataset": study.key[1],
                "metric": metric,
                "best": study.best(metric),
                "axes": study.axes,
                "alpha_gamma": surface.tolist(),
                **{
                    axis: {"mean": mean.tolist(), "std": std.tolist()}
                    for axis, (mean, std) in curves.items()
                },
                "store": str(path),
            }
        )
        return
    best = ", ".join(f"{name} = {value:g}" for name, value in study.best(metric).items())
    better = "higher" if METRICS[metric].greater_is_better else "lower"
    say(f"{study.key[1]}, {metric} ({better} is better), best at {best}\n")
    gammas = study.axes["gamma"]
    print_table(
        "alpha (down) x gamma (across), the others at their best",
        [("", "right"), *((f"{gamma:g}", "right") for gamma in gammas)],
        [
            (f"{alpha:g}", *(f"{value:.4f}" for value in row))
            for alpha, row in zip(study.axes["alpha"], surface, strict=True)
        ],
    )
    for axis, (mean, std) in curves.items():
        print_table(
            f"{axis}, the others at their best",
            [(axis, "right"), ("mean", "right"), ("std over folds", "right")],
            [
                (f"{value:g}", f"{m:.4f}", f"{s:.4f}")
                for value, m, s in zip(study.axes[axis], mean, std, strict=True)
            ],
        )
    say(f"Stored in {path}")
