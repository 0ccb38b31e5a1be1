"""Make the store that every later version must read: ``python tests/data/make_store.py``.

It is made once for each format of stores and then stays as it is; the test that reads it is in
``tests/experiment/test_old_stores.py``.  Beside the store lies its export, with the same numbers.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from imcc.datasets import Dataset
from imcc.experiment import Experiment, Failure, Store, TaskKey, export, run_task

FOLDER = Path(__file__).parent
GRID = {"alphas": [0.1, 10.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [3, [3, 5]]}


def make_data():
    """Return the data set of the experiment."""
    rng = np.random.RandomState(3)  # whose stream never changes
    X = rng.normal(size=(40, 3)).round(3)
    Y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(40, 3)) > 0.3).astype(int)
    return Dataset(X, Y, name="pets")


def make_experiment(data):
    """Return the experiment: ours with and without parameters, another one, a grid, a study."""
    return Experiment(
        data,
        {
            "imcc": {"params": GRID},
            "kernel_ridge": "kernel_ridge",
            "knn": (KNeighborsClassifier(), {"n_neighbors": [3, 5]}),
        },
        n_repeats=2,
        cv=3,
        sensitivity={"datasets": [data], "params": GRID},
        name="old",
    )


def main():
    """Write the store, in which a row is missing, and its export."""
    path = FOLDER / "store_1.sqlite"
    path.unlink(missing_ok=True)
    experiment = make_experiment(make_data()).resolve()
    # Nothing of the machine, so that making it again gives the same.
    same = {"environment": {"cores": 2, "imcc": "0.1.0"}, "finished": "2026-01-01T00:00:00+00:00"}
    times = {"fit_seconds": 1.5, "cpu_seconds": 2.5}
    missing = TaskKey("scores", "pets", "kernel_ridge", 1)
    with Store.create(path, experiment) as store:
        for task in experiment.tasks():
            if task.key == missing:
                store.add(Failure(task.key, "ValueError: no", "Traceback", 0.5, **same))
                continue
            row = replace(run_task(task, 1), **same, **times)
            if task.kind == "scores":
                row = replace(row, search_seconds=1.0, predict_seconds=0.25, peak_memory=None)
            store.add(row)
        export(store, FOLDER / "store_1.csv", overwrite=True)


if __name__ == "__main__":
    main()
