"""``imcc experiment``: run and show."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.text import printable
from imcc.cli import _options as options
from imcc.cli._progress import duration, shown_progress
from imcc.cli._terminal import print_json, print_table, say

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    from imcc.experiment import Experiment, Failure


def _names(value: str) -> list[str]:
    """Return names that have commas between them."""
    names = [part.strip() for part in value.split(",")]
    if not all(names):
        raise click.BadParameter("give names with commas between them")
    return names


def seconds(value: str) -> float:
    """Return a time such as 90s, 30min or 2h in seconds."""
    units = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|min|h|d|)", value)
    if parts is None:
        raise click.BadParameter(f"{value!r} is not a time such as 90s, 30min or 2h")
    return float(parts[1]) * units[parts[2]]


INTERRUPTED = 130  # the exit code that shells give to what Ctrl-C has ended
OUT_OF_TIME = 75  # the one that means "try again later"


@click.group()
def experiment() -> None:
    """Compare methods on data sets: run, stop, continue."""


@options.command(
    "imcc experiment run quick",
    "imcc experiment run quick.sqlite",
    "imcc experiment run quick --methods imcc,kernel_ridge --repeats 3 -j 2",
    "imcc experiment run mine.toml --methods my_methods.toml --rows mine.csv",
    name="run",
    group=experiment,
)
@click.argument("source", metavar="FILE_OR_NAME")
@click.option(
    "-o",
    "--store",
    type=click.Path(path_type=Path),
    help="File for the results.  [default: NAME.sqlite]",
)
@click.option("--datasets", type=_names, metavar="A,B,...", help="Only these data sets.")
@click.option(
    "--methods",
    type=_names,
    metavar="A,B,...",
    help="Only these methods; FILE.toml among the names adds the methods in that file.",
)
@options.file_option(
    "--rows",
    multiple=True,
    help="Results computed elsewhere, which are added to the store first: a .csv or .sqlite file; "
    "may be repeated.",
)
@click.option("--repeats", type=click.IntRange(min=1), help="Number of splits.")
@options.JOBS
@click.option(
    "--allow",
    metavar="PACKAGE",
    multiple=True,
    help="Also allow methods from this package; may be repeated.  Running an "
    "experiment runs the code that it names: classes with fit, from imcc, scikit-learn and "
    "the packages allowed here or by the file that is run.",
)
@click.option(
    "--timeout",
    type=seconds,
    metavar="TIME",
    help="Stop a task that takes longer, such as 30min; it counts as failed.",
)
@click.option(
    "--for",
    "budget",
    type=seconds,
    metavar="TIME",
    help="Stop after this time, such as 2h.  The same command continues; the exit code is "
    f"{OUT_OF_TIME}.",
)
@click.option(
    "--device",
    metavar="NAME",
    help="Device for methods that support it, such as cuda.  [default: NumPy on the CPU]",
)
@options.QUIET
@options.JSON
def run_(
    source: str,
    store: Path | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    rows: tuple[str, ...],
    repeats: int | None,
    as_json: bool,
    quiet: bool,
    **running: Any,
) -> None:
    """Run an experiment: an included one (quick), a TOML file, or the one of a store.

    Results are stored immediately. Existing results are not computed again, so the same command
    continues an interrupted run, and tries failed tasks again; with more repeats, methods or data
    sets it adds them. The store contains the description of its experiment, and may have been
    moved.

    This runs the methods named in the file: classes with fit from imcc and scikit-learn, from
    packages that the file allows with a line such as allow = ["xgboost"], and from those of
    --allow. Nothing is imported while the file is read. A store allows no packages.

    To compare your own method with existing results, use --methods mine.toml --rows rows.csv: only
    your method is computed, on the same splits. To merge results, use --rows with --for 0s.
    """
    from imcc._utils.files import removed_on_failure
    from imcc.experiment import Store, run

    whole, path = _load(source, store)
    if methods is not None:
        whole, methods = _with_files(whole, methods)
    if rows:
        resolved = whole.resolve(running["allow"])
        with removed_on_failure(path), Store.create(path, resolved) as opened:
            n_new = opened.merge(*rows)
        if not as_json and not quiet:
            say(f"{n_new} new results from {', '.join(rows)}.")
    wanted = whole.subset(datasets=datasets, methods=methods, n_repeats=repeats)
    shown = shown_progress(wanted.name, quiet=quiet or as_json)
    try:
        with _terminated_like_interrupted(), shown as progress:
            summary = run(wanted, path, progress=progress, **running)
    except KeyboardInterrupt:
        say(f"Stopped. Go on with: imcc experiment run {path}", err=True)
        raise SystemExit(INTERRUPTED) from None
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
            }
        )
    elif not quiet:
        say(
            f"{n_tasks - summary.n_missing} of {n_tasks} results are in {path}, "
            f"{summary.n_computed} of them new, in {duration(summary.seconds)}."
        )
        if n_elsewhere > 0:
            say(f"{n_elsewhere} are being computed by another runner.")
        control = f" --control {methods[0]}" if methods and rows else ""
        say(f"To compare them: imcc compare {path}{control}")
    if summary.failures:
        reasons = "\n".join(f"{printable(f.key)}: {printable(f.error)}" for f in summary.failures)
        raise click.ClickException(
            f"{len(summary.failures)} of {n_tasks} tasks failed.\n{reasons}\n"
            f"Try them again with: imcc experiment run {path}"
        )
    if summary.n_out_of_time:
        say(
            f"The time is over; {summary.n_out_of_time} tasks are left. Go on with: imcc "
            f"experiment run {path}",
            err=True,
        )
        raise SystemExit(OUT_OF_TIME)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let a batch system's SIGTERM stop a run as cleanly as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _load(source: str, store: Path | None) -> tuple[Experiment, Path]:
    """Return an experiment and the path of its store."""
    from imcc.experiment import Store, load_experiment

    path = Path(source)
    if path.suffix == ".sqlite" or (path.is_file() and path.suffix not in (".toml", ".json")):
        with Store(path, read_only=True) as opened:
            return opened.experiment, store or opened.path
    whole = load_experiment(source)
    return whole, store or Path(f"{whole.name}.sqlite")


def _with_files(whole: Experiment, given: list[str]) -> tuple[Experiment, list[str]]:
    """Return an experiment with the methods of files added, and all names."""
    from imcc.experiment._plan import load_methods

    names: list[str] = []
    for name in given:
        if name.lower().endswith(".toml"):
            methods, allow = load_methods(name)
            whole = whole.with_methods(methods, allow)
            names += [method.name for method in methods]
        else:
            names.append(name)
    return whole, names


def _failed(failures: list[Failure]) -> list[dict[str, str]]:
    return [{"task": str(failure.key), "error": failure.error} for failure in failures]


@options.command("imcc experiment status quick.sqlite", group=experiment)
@click.argument("store", type=click.Path(path_type=Path))
@options.JSON
def status(store: Path, as_json: bool) -> None:
    """Show which tasks of a store are done, missing or failed.

    Methods of a store are not imported; nor by compare and report.
    """
    from imcc.experiment import Store, remaining_seconds

    with Store(store, read_only=True) as opened:
        wanted, done = opened.experiment, opened.keys()
        failures, running = opened.failures(), opened.running()
        times = {run.key: run.seconds for run in opened.runs()}
    tasks = [task.key for task in wanted.tasks()]
    missing = [key for key in tasks if key not in done]
    n_done = len(tasks) - len(missing)
    left = remaining_seconds(times, missing, {}, 1)
    if as_json:
        print_json(
            {
                "experiment": wanted.to_dict(),
                "tasks": len(tasks),
                "done": n_done,
                "remaining_seconds": left,
                "missing": [str(key) for key in missing],
                "running": [str(key) for key in running],
                "failed": _failed(failures),
            }
        )
        return
    counts = Counter(key[:2] for key in tasks if key in done)
    rows = [
        (*cell, f"{counts[cell]} of {total}")
        for cell, total in Counter(key[:2] for key in tasks).items()
    ]
    title = f"{wanted.name}: {n_done} of {len(tasks)} done"
    print_table(title, ("data set", "method", ">done"), rows)
    for key in running:
        say(f"Running: {key!s}")
    for failure in failures:
        say(f"Failed: {failure.key!s}: {failure.error}")
    if missing and left is not None:
        say(f"About {duration(left)} of computing are left, one task at a time.")
    if missing and not running:
        say(f"Go on with: imcc experiment run {store}")
