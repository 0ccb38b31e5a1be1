"""``imcc demo``: an experiment on real data, from the search to the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imcc._utils.text import printable
from imcc.cli._options import examples
from imcc.cli._progress import working
from imcc.cli._running import run_shown, running_options, stopped_in_time
from imcc.cli._terminal import print_json, print_table, problems_reported

if TYPE_CHECKING:  # imported where it is used, so that help does not wait for it
    import numpy as np
    from rich.text import Text

    from imcc.experiment import Experiment, Store
    from imcc.inspection import CalibrationDiagnostics


@click.command(epilog=examples("imcc demo", "imcc demo -o /tmp/demo -j -1"))
@click.option(
    "-o",
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("imcc-demo"),
    show_default=True,
    help="Folder for the results and the report; created if it does not exist.",
)
@running_options
def demo(folder: Path, as_json: bool, quiet: bool, **running: Any) -> None:
    """Compare five methods on yeast, and write a report.

    Runs the experiment "quick" (yeast: 2417 genes, 103 features, 14 labels; three random splits; no
    network), prints the table, and writes the report. IMCC's 2058 settings are searched exactly on
    five folds of each split. A figure shows the calibration of the ensemble's probabilities on the
    test rows of the first split. Existing results are not computed again; -j -1 uses all cores.
    """
    import numpy as np

    from imcc.experiment import Store, load_experiment
    from imcc.report import write_report

    store, report = folder / "quick.sqlite", folder / "report.html"
    picture = folder / "calibration.png"
    with problems_reported():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = load_experiment("quick")
    summary = run_shown(wanted, store, as_json=False, quiet=quiet or as_json, **running)
    for failure in summary.failures:
        raise click.ClickException(printable(f"{failure.key}: {failure.error}", keep="\n"))
    stopped_in_time(summary, store)
    with problems_reported():
        with Store(store, read_only=True) as opened:
            means, stds = _by_method(opened, np.mean), _by_method(opened, _spread)
        with working("writing the report", quiet=quiet or as_json):
            write_report(store, report)
        with working("drawing the probabilities", quiet=quiet or as_json):
            judged = _draw_calibration(wanted, picture)
    if as_json:
        found = {"store": str(store), "report": str(report), "means": means, "stds": stds}
        print_json({**found, "calibration": str(picture) if picture.exists() else None})
        return
    _show(means, stds, wanted.n_repeats)
    if judged is not None:
        click.echo(
            f"Probabilities of the ensemble: log loss {judged.log_loss.value:.3f}, calibration "
            f"error {judged.calibration_error.value:.3f} on the rows held out by the first split"
        )
    if picture.exists():
        click.echo(f"What they are worth, label by label: {picture.resolve()}")
    click.echo(f"The whole report: {report.resolve()}")


def _draw_calibration(wanted: Experiment, path: Path) -> CalibrationDiagnostics | None:
    """Draw the probabilities of the ensemble on the test rows of the first split.

    The model is that of the experiment, with the same rows and the same seed.  An existing figure
    is kept; without the ensemble in the experiment, there is none.
    """
    from imcc.datasets import paper_splits, split_seed
    from imcc.inspection import diagnose_probabilities, draw_calibration

    methods = [method for method in wanted.methods if method.name == "kernel_ensemble"]
    if path.exists() or not methods:
        return None
    data, protocol = wanted.datasets[0].load(), wanted.protocol
    train, test = paper_splits(data, 1, protocol.test_size, protocol.seed)[0]
    model = methods[0].build()
    model.set_params(random_state=split_seed(protocol.seed, data.name, data.n_rows, 0))
    model.fit(data.X[train], data.Y[train])
    chances = model.predict_proba(data.X[test])
    judged = diagnose_probabilities(
        data.Y[test], chances, n_resamples=50, label_names=data.label_names
    )
    draw_calibration(judged, path)
    return judged


def _spread(values: np.ndarray, axis: int) -> np.ndarray:
    import numpy as np

    return np.std(values, axis=axis, ddof=1)


def _by_method(store: Store, summarise: Any) -> dict[str, dict[str, float]]:
    from imcc.metrics import METRICS

    tables = {metric: store.scores(metric) for metric in METRICS}
    methods = next(iter(tables.values())).methods
    return {
        method: {
            metric: float(summarise(table.values[0], axis=-1)[i])
            for metric, table in tables.items()
        }
        for i, method in enumerate(methods)
    }


# Short enough that the table fits into 80 columns.
_HEADINGS = {
    "one_error": "one error ↓",
    "hamming_loss": "Hamming ↓",
    "ranking_loss": "ranking ↓",
    "coverage": "coverage ↓",
    "average_precision": "precision ↑",
}


def _show(
    means: dict[str, dict[str, float]], stds: dict[str, dict[str, float]], n_splits: int
) -> None:
    from imcc.metrics import METRICS

    rows: list[tuple[object, ...]] = []
    for method, of_method in means.items():
        cells = []
        for metric, mean in of_method.items():
            best = max if METRICS[metric].greater_is_better else min
            first = mean == best(other[metric] for other in means.values())
            cells.append(_cell(mean, stds[method][metric], "*" if first else " "))
        rows.append((method, *cells))
    print_table(
        f"yeast, 20 % of the rows held out, {n_splits} random splits: mean ± std, * the best",
        [("", "left"), *((_HEADINGS[name], "right") for name in METRICS)],
        rows,
    )


def _cell(mean: float, std: float, mark: str) -> Text:
    """Return a mean with its deviation in 11 columns, in bold if it is marked."""
    from rich.text import Text

    spread = f"{std:.3f}".lstrip("0")
    return Text(f"{mean:.3f}±{spread}{mark}", style="bold" if mark.strip() else "")
