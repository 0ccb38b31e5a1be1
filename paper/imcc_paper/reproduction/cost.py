"""Training time beside quality, and how it grows, from the times of the committed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from imcc.comparison import Comparison
from imcc.experiment import Store
from imcc_paper.reproduction.rows import listed, prose, table
from imcc_paper.reproduction.times import PLACES, Times, gather_times, place, ratio

#: What the other times are divided by, data set by data set.
REFERENCE = "brsvm"
# A line through fewer data sets than this says nothing.
_ENOUGH = 8


def costs(store: Store, compared: Comparison | None) -> Iterator[str]:
    """Yield the table of times beside ranks."""
    runs = store.runs()
    usual, times, others = gather_times(runs)
    n_sets = len(store.experiment.datasets)
    reference = next(t for t in times if (t.method, t.place) == (REFERENCE, "CPU"))
    machines = Counter(
        f"{run.environment.get('processor')}, {run.environment.get('cores')} cores"
        + (f", {run.environment['device']}" if run.environment.get("device") else "")
        for run in runs
    )
    thread = "thread" if usual == 1 else "threads"
    yield prose(
        f"Search and training of the rows with {usual} {thread} per run"
        + (f" ({others} rows with another number are left out)" if others else "")
        + ", and prediction of the test rows: the median over the splits of each data set. Rows "
        "were computed on "
        + "; ".join(f"{name} ({n} rows)" for name, n in machines.most_common())
        + ". Several ran at the same time on one machine: these are times under load, of which "
        "small differences mean nothing. A row on the GPU used the GPU and one thread of the CPU; "
        "these times are listed by themselves. Where a method has rows on all of its data sets "
        "from the machine that computed most rows, only these count. Medians over different data "
        "sets cannot be compared, so the last column divides by the time of "
        f"`{REFERENCE}` on the same data sets (geometric mean)." + _other_machines(times, reference)
    )
    rank = {}
    if compared is not None:
        rank = dict(zip(compared.methods, compared.mean_ranks, strict=True))
    rows = []
    for t in sorted(times, key=lambda t: (rank.get(t.method, np.inf), t.method, t.place)):
        factor = ratio(t, reference)
        rows.append(
            [
                t.method,
                t.place,
                f"{len(t.seconds)} of {n_sets}",
                str(t.n_runs),
                f"{rank[t.method]:.2f}" if t.method in rank else "not ranked",
                _seconds(float(np.median(list(t.seconds.values())))),
                _seconds(float(np.median(list(t.predict.values())))),
                "none in common" if factor is None else f"{factor:.2g}",
            ]
        )
    yield table(
        [
            *("method", "on", "data sets", "rows", "average rank (average precision)"),
            *("median time", "of prediction", f"training, times {REFERENCE}"),
        ],
        rows,
    )


def _other_machines(times: Sequence[Times], reference: Times) -> str:
    """Say whose times on a CPU come from other machines than those of the reference."""
    others = [t for t in times if t.place == reference.place and t.machines != reference.machines]
    if not others:
        return ""
    names = listed(dict.fromkeys(name for t in others for name in sorted(t.machines)))
    return (
        f" The times of {listed(t.method for t in others)} on a CPU are not, or not only, from the "
        f"machine of those of {REFERENCE} ({listed(sorted(reference.machines))}) but from {names}, "
        "so that their ratio compares machines as well."
    )


def growth(store: Store) -> Iterator[str]:
    """Yield the exponents of rows and labels in the training time."""
    runs = store.runs()
    _, times, _ = gather_times(runs)
    sizes = {run.key.dataset: (run.n_train, run.n_labels, run.n_features) for run in runs}
    yield prose(
        "How the time grows: the exponents a and b of seconds ~ rows^a labels^b, by least squares "
        "on the logarithms over the data sets, with standard errors, and the share of the variance "
        "that they explain. The data sets also differ in features and in how many of them are "
        "zero, so this describes these data sets; it is no law. Methods with fewer than "
        f"{_ENOUGH} data sets at one place are left out."
    )
    rows = []
    for t in times:
        if len(t.seconds) < _ENOUGH:
            continue
        names = list(t.seconds)
        design = np.array([[1.0, *np.log(sizes[d][:2])] for d in names])
        target = np.log([t.seconds[d] for d in names])
        fit, errors, share = _least_squares(design, target)
        rows.append(
            [
                *(t.method, t.place, str(len(names))),
                *(f"{fit[i]:.1f} ± {errors[i]:.1f}" for i in (1, 2)),
                f"{share:.2f}",
            ]
        )
    yield table(["method", "on", "data sets", "rows", "labels", "explained"], rows)


def _least_squares(design: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    fit = np.linalg.lstsq(design, target, rcond=None)[0]
    rest = target - design @ fit
    n, k = design.shape
    covariance = np.linalg.inv(design.T @ design) * (rest @ rest) / (n - k)
    centred = target - target.mean()
    return fit, np.sqrt(np.diag(covariance)), 1 - float(rest @ rest) / float(centred @ centred)


def _seconds(value: float) -> str:
    if value < 0.1:
        return f"{1000 * value:.2g} ms"
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def origins(store: Store, methods: Sequence[str]) -> str:
    """Return how many rows each method has, by where they were computed, and what is missing."""
    runs = store.runs()
    found = Counter((run.key.method, place(run)) for run in runs)
    total = len(store.experiment.datasets) * store.experiment.n_repeats
    rows = []
    for method in methods:
        have = {run.key.dataset for run in runs if run.key.method == method}
        lacking = [spec.name for spec in store.experiment.datasets if spec.name not in have]
        n = [found[method, where] for where in PLACES]
        rows.append(
            [method, *(str(k) for k in n), f"{sum(n)} of {total}", ", ".join(lacking) or "none"]
        )
    return table(["method", "on a CPU", "on a GPU", "rows", "data sets without a row"], rows)
