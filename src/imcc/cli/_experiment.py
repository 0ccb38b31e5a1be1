"""``imcc experiment``: run, resume, show, export and merge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.text import printable
from imcc.cli._options import examples
from imcc.cli._progress import duration, working
from imcc.cli._running import run_shown, running_options, stopped_in_time
from imcc.cli._terminal import print_json, print_table, problems_reported, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.comparison import Comparison
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
        "imcc experiment run quick --methods imcc,kernel_ridge --repeats 3 -j 2",
        "imcc experiment run mine.toml -o results/mine.sqlite -j -1",
        "imcc experiment run mine.toml --methods my_methods.toml --rows mine.csv",
    ),
)
@click.argument("source", metavar="FILE_OR_NAME")
@click.option(
    "-o",
    "--store",
    type=click.Path(path_type=Path),
    help="File for the results.  [default: NAME.sqlite]",
)
@click.option("--datasets", type=_Names(), help="Only these data sets.")
@click.option(
    "--methods",
    type=_Names(),
    help="Only these methods; FILE.toml or FILE.json among the names adds the methods in that "
    "file.",
)
@click.option(
    "--rows",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Results of the other methods: a .csv or .sqlite file; may be repeated.  They "
    "are not computed again, and --methods are compared with them at the end.",
)
@click.option("--repeats", type=click.IntRange(min=1), help="Number of splits.")
@click.option("--no-sensitivity", is_flag=True, help="Do not run the sensitivity studies.")
@running_options
def run_(
    source: str,
    store: Path | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    repeats: int | None,
    no_sensitivity: bool,
    rows: tuple[Path, ...],
    **running: Any,
) -> None:
    """Run an experiment: an included one (quick) or a TOML or JSON file.

    Results are stored immediately. Existing results are not computed again, so the same command
    resumes an interrupted run; with more repeats, methods or data sets it adds them.

    This runs the methods named in the file: classes with fit from imcc and scikit-learn, from
    packages that the file allows with a line such as allow = ["xgboost"], and from those of
    --allow. Nothing is imported while the file is read.

    To compare your own method with existing results, use --methods mine.toml --rows rows.csv: only
    your method is computed, on the same splits, and means, ranks and tests of all methods are
    shown.
    """
    from imcc.experiment import join_rows, load_experiment

    with problems_reported():
        whole = load_experiment(source)
        from_file = False
        if methods is not None:
            whole, methods, from_file = _with_files(whole, methods)
        if rows and methods is None:
            raise click.UsageError("--rows needs --methods: what is to be compared with the rows.")
        path = store or Path(f"{whole.name}.sqlite")
        if rows and methods is not None:
            allowed = whole.resolve(running["allow"])
            part = allowed.subset(datasets=datasets, n_repeats=repeats, sensitivity=False)
            merged = join_rows(allowed, methods, rows, path, wanted=part)
            if not running["as_json"] and not running["quiet"]:
                listed = ", ".join(map(str, rows))
                say(f"{merged.n_new + merged.n_known} results of other methods from {listed}.")
            # Splits that no other method has cannot be compared.
            repeats = repeats or _n_repeats(path, methods)
        wanted = whole.subset(
            datasets=datasets,
            methods=methods,
            n_repeats=repeats,
            # Only IMCC has sensitivity studies, not methods from a file.
            sensitivity=not (no_sensitivity or rows or from_file),
        )
    _run(wanted, path, compared=methods if rows else None, **running)


def _with_files(whole: Experiment, given: list[str]) -> tuple[Experiment, list[str], bool]:
    """Return an experiment with the methods of files added; all names; whether there was a file."""
    from imcc.experiment import load_methods

    names: list[str] = []
    from_file = False
    for name in given:
        if not name.lower().endswith((".toml", ".json")):
            names.append(name)
            continue
        methods, allow = load_methods(name)
        whole = whole.with_methods(methods, allow)
        names += [method.name for method in methods]
        from_file = True
    return whole, list(dict.fromkeys(names)), from_file


def _n_repeats(path: Path, methods: list[str]) -> int | None:
    """Return how many splits a store has of other methods; None if it has none."""
    from imcc.experiment import SCORES, Store

    with Store(path, read_only=True) as opened:
        done = opened.keys()
    others = [key for key in done if key.kind == SCORES and key.method not in methods]
    return max((key.repetition + 1 for key in others), default=None)


@experiment.command(
    epilog=examples(
        "imcc experiment resume quick.sqlite",
        "imcc experiment resume quick.sqlite -j -1",
    ),
)
@_STORE
@running_options
def resume(store: Path, **running: Any) -> None:
    """Compute the missing results of a store, and retry failed tasks.

    The store contains the description of its experiment, and may have been moved. It does not
    contain the permission to import packages other than imcc and scikit-learn: give --allow again.
    """
    from imcc.experiment import Store

    with problems_reported(), Store(store) as opened:
        wanted = opened.experiment
    _run(wanted, store, **running)


def _run(
    wanted: Experiment,
    path: Path,
    *,
    as_json: bool,
    quiet: bool,
    compared: list[str] | None = None,
    **running: Any,
) -> None:
    summary = run_shown(wanted, path, as_json=as_json, quiet=quiet, **running)
    n_tasks = len(wanted.tasks())
    n_elsewhere = summary.n_missing - len(summary.failures) - summary.n_out_of_time
    beside: list[Comparison] = []
    left_out: list[str] = []
    if compared and n_tasks > summary.n_missing:
        beside, left_out = _compare_beside(path, compared)
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
                **(
                    {"comparison": [found.to_dict() for found in beside], "left_out": left_out}
                    if compared
                    else {}
                ),
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
        if compared is None:
            say(f"To compare them: imcc compare {path}")
    if beside and not as_json:
        from imcc.cli._compare import show_comparison

        if left_out:
            say(f"Without rows on all of these data sets, and left out: {', '.join(left_out)}.")
        click.echo()
        for found in beside:
            show_comparison(found)
        for found in beside:
            say(_rank_in_words(found))
    if summary.failures:
        reasons = "\n".join(f"{printable(f.key)}: {printable(f.error)}" for f in summary.failures)
        raise click.ClickException(
            f"{len(summary.failures)} of {n_tasks} tasks failed.\n{reasons}\n"
            f"Try them again with: imcc experiment resume {path}"
        )
    stopped_in_time(summary, path)


def _rank_in_words(found: Comparison) -> str:
    """Return a sentence with the mean rank of the control and the first method."""
    assert found.control is not None
    own = float(found.mean_ranks[found.methods.index(found.control)])
    best = found.order[0]
    first = printable(found.methods[best])
    return (
        f"{found.metric}: {printable(found.control)} has mean rank {own:.2f} of "
        f"{len(found.methods)} methods; first is {first} with {float(found.mean_ranks[best]):.2f}."
    )


def _compare_beside(path: Path, methods: list[str]) -> tuple[list[Comparison], list[str]]:
    """Return the comparison of methods with the others on the same splits, and those left out."""
    from imcc.comparison import compare
    from imcc.experiment import Store, scores_beside
    from imcc.metrics import METRICS

    with problems_reported(), Store(path, read_only=True) as opened:
        done = opened.keys()
        tables = [scores_beside(opened, methods, metric) for metric in METRICS]
        found = [
            compare(
                table,
                control=methods[0],
                missing="drop",
                test_size=opened.experiment.protocol.test_size,
            )
            for table in tables
        ]
    return found, sorted({key.method for key in done} - set(tables[0].methods))


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
    """Show which tasks are done, missing or failed.

    Methods of the store are not imported; nor by list, export, merge, compare and report.
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
    """List the included experiments, and the stores in a folder."""
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
    help="A .csv file; studies are written to NAME.sensitivity.csv next to it.",
)
@click.option("--force", is_flag=True, help="Overwrite files that already exist.")
@click.option(
    "--raw",
    is_flag=True,
    help="Write text that looks like a formula (=, +, -, @) unchanged; by default it is prefixed "
    "with an apostrophe, which merge removes.",
)
@_JSON
def export_(store: Path, output: Path, force: bool, raw: bool, as_json: bool) -> None:
    """Write all results to a CSV file, with one row per chosen setting."""
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
        "imcc experiment merge new.sqlite results.csv --experiment mine.toml",
    ),
)
@_STORE
@click.argument("sources", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--experiment",
    "described",
    metavar="FILE_OR_NAME",
    help="Experiment of the results, if the store does not exist.",
)
@_JSON
def merge_(store: Path, sources: tuple[Path, ...], described: str | None, as_json: bool) -> None:
    """Add results computed elsewhere to a store: exported files or other stores."""
    from imcc._utils.files import removed_on_failure
    from imcc.experiment import Store, load_experiment, merge

    with problems_reported(), removed_on_failure(store, "-wal", "-shm"):
        if described is not None:
            Store.create(store, load_experiment(described)).close()
        for source in sources:
            if source.suffix != ".csv":
                with Store(source, read_only=True) as other:
                    Store.create(store, other.experiment).close()
        with Store(store) as opened, working("merging"):
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
        say(f"{merged.n_new} new results, {merged.n_known} already known.")
    if merged.conflicts:
        names = "\n".join(printable(key) for key in merged.conflicts)
        raise click.ClickException(
            f"{len(merged.conflicts)} results have other numbers than those of the store, which "
            f"were kept:\n{names}"
        )
