"""Tables of scores for tests."""

import numpy as np

from imcc.comparison import ScoreTable


def make(values, *, greater=True, metric="average_precision"):
    """Return a table of values: data sets x methods (x repetitions)."""
    values = np.asarray(values, dtype=float)
    if values.ndim == 2:
        values = values[:, :, np.newaxis]
    datasets = tuple(f"d{i}" for i in range(values.shape[0]))
    methods = tuple(f"m{j}" for j in range(values.shape[1]))
    return ScoreTable(metric, greater, datasets, methods, values)


def random_table(n=8, k=4, repetitions=5, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 1, 1)) + rng.normal(size=(n, k, repetitions)) * 0.3
    return make(values + np.arange(k)[:, np.newaxis] * 0.3)
