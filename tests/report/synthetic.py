"""Stores with made-up rows of plausible structure, so that reports can be tested in a second."""

import numpy as np

from imcc.datasets import list_datasets
from imcc.experiment import (
    ALL_METRICS,
    Experiment,
    Failure,
    Run,
    Store,
    TaskKey,
)
from imcc.experiment._methods import NAMED
from imcc.experiment._results import Selection
from imcc.experiment._scores import greater_is_better
from imcc.metrics import METRICS
from imcc.report import write_report

METHODS = ("imcc", "kernel_ridge", "extra_trees")
FIFTEEN = (
    *(
        "imcc",
        "imcc_kernels",
        "brsvm",
        "ecc",
        "mahr",
        "llsf",
        "jfsc",
        "lift",
        "kernel_ridge",
    ),
    *("extra_trees", "random_forest_of_chains", "ml_knn", "label_powerset", "rakel", "constant"),
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'quoted'",
    "two\nlines",
    "a name that is so long that nobody would ever want to read it to its end, " * 3
    + "if it had one",
    "数据集 émile",
    "שלום עולם",
    "$x_1^2$ 50% #1 \\alpha",
    "</style><img src=x onerror=alert(2)>",
)
ENVIRONMENT = {
    "imcc": "0.1.0",
    "python": "3.13.1",
    "numpy": "2.3.0",
    "processor": "a <fast> one",
    "cores": 2,
}


def make_store(
    path,
    datasets=("yeast",),
    methods=METHODS,
    n_repeats=3,
    *,
    failures=(),
    leave_out=(),
    searched=lambda method: method in ("imcc", "kernel_ridge"),
    metrics=ALL_METRICS,
    name="made up",
):
    """Write a store; all of it but the (data set, method, repetition) that ``leave_out`` has.

    Only ``metrics`` are defined.
    """
    rng = np.random.default_rng(0)
    experiment = Experiment(
        [d if d in list_datasets() else {"name": d, "in_memory": True} for d in datasets],
        {m: m if m in NAMED else "extra_trees" for m in methods},
        n_repeats=n_repeats,
        name=name,
    )
    rows = []
    for d in datasets:
        hard, speed = rng.uniform(0.15, 0.45), 10 ** rng.uniform(-1, 2)
        for j, m in enumerate(methods):
            level = hard + 0.004 * j + 0.004 * rng.normal()
            for key in ((d, m, r) for r in range(n_repeats) if (d, m, r) not in leave_out):
                loss = float(np.clip(level + 0.01 * rng.normal(), 0, 1))
                rows.append(_run(rng, key, loss, speed * 2.0 ** (j % 7), searched(m), metrics))
    with Store.create(path, experiment) as store:
        store.add(*rows, *failures)
    return path


def build_page(store, **options):
    """Return the page that ``write_report`` writes."""
    path = store.with_suffix(".html")
    return write_report(store, path, **options).read_text("utf-8")


def _metrics(rng, loss, defined):
    values = {}
    for position, metric in enumerate(ALL_METRICS):
        wrong = float(np.clip(loss * (0.4 + 0.2 * position) + 0.001 * rng.normal(), 0, 1))
        values[metric] = 1 - wrong if greater_is_better(metric) else wrong
    return {m: v if m in defined else float("nan") for m, v in values.items()}


def _run(rng, key, loss, seconds, searched, defined):
    selections = [Selection("none", {}, None, _metrics(rng, loss, defined))]
    if searched:
        selections = [
            Selection(
                metric,
                {
                    "alpha": 10.0 ** int(rng.integers(-3, 4)),
                    "n_clusters": 2 ** int(rng.integers(3, 9)),
                },
                0.5,
                _metrics(rng, loss, defined),
            )
            for metric in METRICS
        ]
    return Run(
        key=TaskKey(*key),
        fingerprint="f",
        data_fingerprint=f"of {key[0]}",
        seed=1,
        n_train=1934,
        n_test=483,
        n_features=103,
        n_labels=14,
        selections=tuple(selections),
        fit_seconds=seconds * float(rng.uniform(0.9, 1.1)),
        search_seconds=0.0,
        predict_seconds=seconds / 50,
        cpu_seconds=seconds,
        peak_memory=10**8,
        warnings=("UserWarning: <b>bold</b>",) if key[2] == 0 else (),
        environment=ENVIRONMENT,
        finished="2026-01-01T00:00:00+00:00",
    )


def failure(dataset, method, repetition, error="ValueError: <b>it broke</b>"):
    return Failure(
        TaskKey(dataset, method, repetition),
        error,
        "Traceback (most recent call last):\n  <module>\n" + error,
        1.5,
        "2026-01-01T00:00:00+00:00",
    )
