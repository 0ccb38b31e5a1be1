"""``imcc experiment``: run, resume, look at, export and merge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc.cli._options import examples
from imcc.cli._progress import duration, task_name
from imcc.cli._running import run_shown, running_options
from imcc.cli._terminal import print_json, print_table, problems_reported

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
    """Run an experiment: one that comes with the package (paper, quick) or a TOML file.

    Results are stored as they come. What is stored already is not computed again, so the same
    command goes on where it was stopped; with more repeats, methods or data sets it adds them.
    """
    from imcc.experiment import load_experiment

    with problems_reported():
        wanted = _restricted(load_experiment(source), datasets, methods, repeats, no_sensitivity)
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

    The store holds the description of its experiment: it may have been moved.
    """
    from imcc.experiment import Store

    with problems_reported(), Store(store) as opened:
        wanted = opened.experiment
    _run(wanted, store, **running)


def _run(wanted: Experiment, path: Path, *, as_json: bool, quiet: bool, **running: Any) -> None:
    summary = run_shown(wanted, path, as_json=as_json, quiet=quiet, **running)
    n_tasks = len(wanted.tasks())
    n_elsewhere = summary.n_missing - len(summary.failures)
    if as_json:
        print_json(
            {
                "store": str(path),
                "tasks": n_tasks,
                "computed": summary.n_computed,
                "failed": _failed(summary.failures),
                "missing": summary.n_missing,
                "seconds": summary.seconds,
            },
            indent=None,  # the last of the lines
        )
    elif not quiet:
        click.echo(
            f"{n_tasks - summary.n_missing} of {n_tasks} results are in {path}, "
            f"{summary.n_computed} of them new, in {duration(summary.seconds)}."
        )
        if n_elsewhere > 0:
            click.echo(f"{n_elsewhere} are being computed by another runner.")
        click.echo(f"Look at them with: imcc compare {path}")
    if summary.failures:
        reasons = "\n".join(f"{task_name(f.key)}: {f.error}" for f in summary.failures)
        raise click.ClickException(
            f"{len(summary.failures)} of {n_tasks} tasks failed.\n{reasons}\n"
            f"Try them again with: imcc experiment resume {path}"
        )


def _failed(failures: list[Failure]) -> list[dict[str, str]]:
    return [{"task": task_name(failure.key), "error": failure.error} for failure in failures]


def _restricted(
    wanted: Experiment,
    datasets: list[str] | None,
    methods: list[str] | None,
    repeats: int | None,
    no_sensitivity: bool,
) -> Experiment:
    """Return the part of an experiment that is asked for."""
    from imcc.experiment import Experiment

    plain = wanted.to_dict()
    if datasets is not None:
        known = {entry["name"]: entry for entry in plain["datasets"]}
        plain["datasets"] = [known[n] for n in _checked("--datasets", datasets, known)]
        studied = plain.get("sensitivity", {})
        studied["datasets"] = [e for e in studied.get("datasets", ()) if e["name"] in datasets]
    if methods is not None:
        known = plain["methods"]
        plain["methods"] = {n: known[n] for n in _checked("--methods", methods, known)}
    if repeats is not None:
        plain["n_repeats"] = repeats
    if no_sensitivity or not plain.get("sensitivity", {}).get("datasets"):
        plain.pop("sensitivity", None)
    return Experiment.from_dict(plain, wanted.name)


def _checked(option: str, names: list[str], known: dict[str, Any]) -> list[str]:
    for name in names:
        if name not in known:
            raise ValueError(f"{option}: {name!r} is not in the experiment: {', '.join(known)}")
    return list(dict.fromkeys(names))


@experiment.command(
    epilog=examples(
        "imcc experiment status quick.sqlite",
    ),
)
@_STORE
@_JSON
def status(store: Path, as_json: bool) -> None:
    """Say what is done, what is missing and what failed."""
    from imcc.experiment import Store

    with problems_reported(), Store(store, read_only=True) as opened:
        wanted, done = opened.experiment, opened.keys()
        failures, running = opened.failures(), opened.running()
    tasks = [task.key for task in wanted.tasks()]
    n_done = sum(key in done for key in tasks)
    if as_json:
        print_json(
            {
                "experiment": wanted.to_dict(),
                "tasks": len(tasks),
                "done": n_done,
                "missing": [task_name(key) for key in tasks if key not in done],
                "running": [task_name(key) for key in running],
                "failed": [
                    {"task": task_name(failure.key), "error": failure.error} for failure in failures
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
        click.echo(f"Running: {task_name(key)}")
    for failure in failures:
        click.echo(f"Failed: {task_name(failure.key)}: {failure.error}")
    if n_done < len(tasks) and not running:
        click.echo(f"Go on with: imcc experiment resume {store}")


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
    help="A .csv or .parquet file; studies go into NAME.sensitivity.csv beside it.",
)
@click.option("--force", is_flag=True, help="Write over files that exist.")
@_JSON
def export_(store: Path, output: Path, force: bool, as_json: bool) -> None:
    """Write all results into a CSV or Parquet file, one line for each chosen setting."""
    from imcc.experiment import Store, export

    with problems_reported(), Store(store, read_only=True) as opened:
        written = export(opened, output, overwrite=force)
    if as_json:
        print_json({"written": [str(path) for path in written]})
    else:
        for path in written:
            click.echo(f"Wrote {path}")


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
    help="What the results are of, if the store is not there yet.",
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
                "conflicts": [task_name(key) for key in merged.conflicts],
            }
        )
    else:
        click.echo(f"{merged.n_new} new results, {merged.n_known} known already.")
    if merged.conflicts:
        names = "\n".join(task_name(key) for key in merged.conflicts)
        raise click.ClickException(
            f"{len(merged.conflicts)} results have other numbers than those of the store, which "
            f"were kept:\n{names}"
        )
