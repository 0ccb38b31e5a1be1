"""``imcc experiment``: run, resume, show, export and merge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.text import printable
from imcc.cli._options import examples
from imcc.cli._progress import duration
from imcc.cli._running import run_shown, running_options, stopped_in_time
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Experiment, Failure

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_STORE = click.argument("store", type=click.Path(path_type=Path))


class _Names(click.ParamType):
    """Names with commas between them."""

    name = "A,B,..."

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not all(names):
            self.fail("give names with commas between them", param, context)
        return names


@click.group(
    epilog=examples(
        "imcc experiment run quick",
        "imcc experiment status quick.sqlite",
        "imcc experiment resume quick.sqlite",
    )
)
def experiment() -> None:
    """Compare methods on data sets: run, stop, resume, export, merge."""


@experiment.command(
    "run",
    epilog=examples(
        "imcc experiment run quick",
        "imcc experiment run paper --methods imcc,kernel_ridge --repeats 3 -j 2",
        "imcc experiment run mine.toml -o results/mine.sqlite --dask tcp://10.0.0.1:8786",
    ),
)
@click.argument("source", metavar="FILE_OR_NAME")
@click.option(
    "-o",
    "--store",
    type=click.Path(path_type=Path),
    help="The file that takes the results.  [default: NAME.sqlite]",
)
@click.option("--datasets", type=_Names(), help="Only these data sets.")
@click.option("--methods", type=_Names(), help="Only these methods.")
@click.option("--repeats", type=click.IntRange(min=1), help="So many splits instead.")
@click.option("--no-sensitivity", is_flag=True, help="Leave out the sensitivity studies.")
@running_options
def run_(
    source: str,
    store: Path | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    repeats: int | None,
    no_sensitivity: bool,
    **running: Any,
) -> None:
    """Run an experiment: one that comes with the package (paper, quick) or a TOML or JSON file.

    Results are stored as they come. What is stored already is not computed again, so the same
    command continues where it was stopped; with more repeats, methods or data sets it adds them.

    This runs the methods that the file names: classes with fit, from imcc and scikit-learn, from
    packages that the file allows with a line such as allow = ["xgboost"], and those of --allow.
    Nothing is imported while the file is read.
    """
    from imcc.experiment import load_experiment

    with problems_reported():
        wanted = load_experiment(source).subset(
            datasets=datasets,
            methods=methods,
            n_repeats=repeats,
            sensitivity=not no_sensitivity,
        )
    _run(wanted, store or Path(f"{wanted.name}.sqlite"), **running)


@experiment.command(
    epilog=examples(
        "imcc experiment resume quick.sqlite",
        "imcc experiment resume quick.sqlite -j -1",
    ),
)
@_STORE
@running_options
def resume(store: Path, **running: Any) -> None:
    """Compute what is missing in a store, and try again what failed.

    The store holds the description of its experiment: it may have been moved. It does not hold the
    permission to import other packages than imcc and scikit-learn: say --allow again.
    """
    from imcc.experiment import Store

    with problems_reported(), Store(store) as opened:
        wanted = opened.experiment
    _run(wanted, store, **running)


def _run(wanted: Experiment, path: Path, *, as_json: bool, quiet: bool, **running: Any) -> None:
    summary = run_shown(wanted, path, as_json=as_json, quiet=quiet, **running)
    n_tasks = len(wanted.tasks())
    n_elsewhere = summary.n_missing - len(summary.failures) - summary.n_out_of_time
    if as_json:
        print_json(
            {
                "store": str(path),
                "tasks": n_tasks,
                "computed": summary.n_computed,
                "failed": _failed(summary.failures),
                "missing": summary.n_missing,
                "out_of_time": summary.n_out_of_time,
                "seconds": summary.seconds,
            },
            indent=None,  # the last of the lines
        )
    elif not quiet:
        say(
            f"{n_tasks - summary.n_missing} of {n_tasks} results are in {path}, "
            f"{summary.n_computed} of them new, in {duration(summary.seconds)}."
        )
        if n_elsewhere > 0:
            say(f"{n_elsewhere} are being computed by another runner.")
        say(f"To compare them: imcc compare {path}")
    if summary.failures:
        reasons = "\n".join(f"{printable(f.key)}: {printable(f.error)}" for f in summary.failures)
        raise click.ClickException(
            f"{len(summary.failures)} of {n_tasks} tasks failed.\n{reasons}\n"
            f"Try them again with: imcc experiment resume {path}"
        )
    stopped_in_time(summary, path)


def _failed(failures: list[Failure]) -> list[dict[str, str]]:
    return [{"task": str(failure.key), "error": failure.error} for failure in failures]


@experiment.command(
    epilog=examples(
        "imcc experiment status quick.sqlite",
    ),
)
@_STORE
@_JSON
def status(store: Path, as_json: bool) -> None:
    """Show what is done, what is missing and what failed.

    Nothing that the store names is imported; nor by list, export, merge, compare and report.
    """
    from imcc.experiment import Store, remaining_seconds

    with problems_reported(), Store(store, read_only=True) as opened:
        wanted, done = opened.experiment, opened.keys()
        failures, running = opened.failures(), opened.running()
        times = {result.key: result.seconds for result in opened.results()}
    tasks = [task.key for task in wanted.tasks()]
    n_done = sum(key in done for key in tasks)
    left = remaining_seconds(times, [key for key in tasks if key not in done], {}, 1)
    if as_json:
        print_json(
            {
                "experiment": wanted.to_dict(),
                "tasks": len(tasks),
                "done": n_done,
                "remaining_seconds": left,
                "missing": [str(key) for key in tasks if key not in done],
                "running": [str(key) for key in running],
                "failed": [
                    {"task": str(failure.key), "error": failure.error} for failure in failures
                ],
            }
        )
        return
    counts = Counter(key[:3] for key in tasks if key in done)
    totals = Counter(key[:3] for key in tasks)
    rows = [
        (dataset, kind if kind == "sensitivity" else method, f"{counts[cell]} of {total}")
        for cell, total in totals.items()
        for kind, dataset, method in [cell]
    ]
    print_table(
        f"{wanted.name}: {n_done} of {len(tasks)} done",
        [("data set", "left"), ("method", "left"), ("done", "right")],
        rows,
    )
    for key in running:
        say(f"Running: {key!s}")
    for failure in failures:
        say(f"Failed: {failure.key!s}: {failure.error}")
    if n_done < len(tasks) and left is not None:
        say(f"About {duration(left)} of computing are left, one task at a time.")
    if n_done < len(tasks) and not running:
        say(f"Go on with: imcc experiment resume {store}")


@experiment.command(
    "list",
    epilog=examples(
        "imcc experiment list results",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@_JSON
def list_(folder: Path, as_json: bool) -> None:
    """List the experiments that come with the package, and the stores in a folder."""
    from imcc.experiment import list_experiments

    with problems_reported():
        shipped = list_experiments()
        stores = [_glance(path) for path in sorted(folder.glob("*.sqlite"))]
    if as_json:
        print_json({"experiments": shipped, "stores": stores})
        return
    print_table("Experiments", [("name", "left"), ("what it is", "left")], list(shipped.items()))
    if stores:
        print_table(
            f"Stores in {folder.resolve()}",
            [("file", "left"), ("experiment", "left"), ("done", "right")],
            [(s["file"], s["experiment"], f"{s['done']} of {s['tasks']}") for s in stores],
        )


def _glance(path: Path) -> dict[str, Any]:
    from imcc.experiment import Store, StoreError

    try:
        with Store(path, read_only=True) as store:
            n_tasks = len(store.experiment.tasks())
            n_done = n_tasks - len(store.missing())
            return {
                "file": path.name,
                "experiment": store.experiment.name,
                "done": n_done,
                "tasks": n_tasks,
            }
    except (StoreError, ValueError) as error:
        return {"file": path.name, "experiment": str(error), "done": None, "tasks": None}


@experiment.command(
    "export",
    epilog=examples(
        "imcc experiment export quick.sqlite -o quick.csv",
    ),
)
@_STORE
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="A .csv or .parquet file; studies are written to NAME.sensitivity.csv beside it.",
)
@click.option("--force", is_flag=True, help="Overwrite files that already exist.")
@click.option(
    "--raw",
    is_flag=True,
    help="Write text that begins a formula (=, +, -, @) as it is; by default it gets an "
    "apostrophe in CSV files, which merge takes away again.",
)
@_JSON
def export_(store: Path, output: Path, force: bool, raw: bool, as_json: bool) -> None:
    """Write all results into a CSV or Parquet file, one line for each chosen setting."""
    from imcc.experiment import Store, export

    with problems_reported(), Store(store, read_only=True) as opened:
        written = export(opened, output, overwrite=force, defuse=not raw)
    if as_json:
        print_json({"written": [str(path) for path in written]})
    else:
        for path in written:
            say(f"Wrote {path}")


@experiment.command(
    "merge",
    epilog=examples(
        "imcc experiment merge quick.sqlite from_another_machine.csv",
        "imcc experiment merge new.sqlite results.csv --experiment paper",
    ),
)
@_STORE
@click.argument("sources", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--experiment",
    "described",
    metavar="FILE_OR_NAME",
    help="What the results are of, if the store does not exist yet.",
)
@_JSON
def merge_(store: Path, sources: tuple[Path, ...], described: str | None, as_json: bool) -> None:
    """Take into a store results that were computed elsewhere: exported files or other stores."""
    from imcc.experiment import Store, load_experiment, merge

    with problems_reported():
        if described is not None:
            Store.create(store, load_experiment(described)).close()
        for source in sources:
            if source.suffix not in (".csv", ".parquet"):
                with Store(source, read_only=True) as other:
                    Store.create(store, other.experiment).close()
        with Store(store) as opened:
            merged = merge(opened, sources)
    if as_json:
        print_json(
            {
                "new": merged.n_new,
                "known": merged.n_known,
                "conflicts": [str(key) for key in merged.conflicts],
            }
        )
    else:
        say(f"{merged.n_new} new results, {merged.n_known} known already.")
    if merged.conflicts:
        names = "\n".join(printable(key) for key in merged.conflicts)
        raise click.ClickException(
            f"{len(merged.conflicts)} results have other numbers than those of the store, which "
            f"were kept:\n{names}"
        )
