"""Gradient boosting that starts at given log-odds, a row and a leaf at a time."""

import math

import numpy as np
from sklearn.tree import DecisionTreeRegressor


def boosted_by_rows(
    X, on, start, new, *, n_trees, rate, min_leaf, most_features, most_rows, seed, weight=None
):
    """Return what the trees add for new rows; for tables that are not sampled."""
    assert len(X) <= most_rows
    assert X.shape[1] <= most_features
    v = [1.0] * len(X) if weight is None else list(weight)
    rng = np.random.RandomState(seed)
    f = list(start)
    added = np.zeros(len(new))
    for _ in range(n_trees):
        p = [1 / (1 + math.exp(-z)) for z in f]
        gradient = np.array([float(y) - q for y, q in zip(on, p, strict=True)])
        tree = DecisionTreeRegressor(
            max_depth=3,
            min_samples_leaf=min_leaf,
            max_features=X.shape[1],
            random_state=rng.randint(2**31 - 1),
        ).fit(X, gradient, sample_weight=weight)
        leaf, leaf_of_new = tree.apply(X), tree.apply(new)
        value = {}
        for name in set(leaf):
            rows = [i for i in range(len(X)) if leaf[i] == name]
            up = sum(v[i] * gradient[i] for i in rows)
            down = sum(v[i] * p[i] * (1 - p[i]) for i in rows)
            value[name] = rate * up / (down + 1)
        f = [z + value[name] for z, name in zip(f, leaf, strict=True)]
        added += [value[name] for name in leaf_of_new]
    return added
