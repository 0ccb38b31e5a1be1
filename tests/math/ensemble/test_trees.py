"""Boosted trees: exact against a slow twin."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from imcc._math.ensemble import trees
from imcc._math.ensemble.trees import Boosting
from tests.naive.trees import boosted_by_rows

SETTINGS = {"n_trees": 5, "rate": 0.3, "min_leaf": 3, "most_features": 99, "most_rows": 999}


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    for name, value in SETTINGS.items():
        monkeypatch.setattr(trees, name.upper(), value)


def boost(X, on, start, seed=0, weight=None):
    boosting = Boosting(X, start[:, None], on[:, None], None, weight, None, seed)
    return boosting.fit(np.arange(len(X)))[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_is_that_of_the_obvious_loop(weighted):
    rng = np.random.RandomState(3)
    X = rng.randn(80, 4).astype(np.float32)
    on = X[:, 0] * X[:, 1] > 0
    start = rng.randn(80)
    weight = rng.randint(1, 4, 80).astype(float) if weighted else None
    new = rng.randn(30, 4).astype(np.float32)
    expected = boosted_by_rows(X, on, start, new, seed=0, weight=weight, **SETTINGS)
    found = boost(X, on, start, weight=weight).sums(new)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_tree_that_was_not_divided_is_one_leaf():
    X = np.zeros((40, 2), dtype=np.float32)  # nothing to divide by
    on = np.arange(40) < 10
    assert DecisionTreeRegressor(max_depth=3).fit(X, on).tree_.node_count == 1
    found = boost(X, on, np.zeros(40)).sums(np.array([[1e30, -1e30], [0, 0]], dtype=np.float32))
    assert found[0] == found[1] < 0


def test_large_tables_are_sampled_and_the_seed_decides(monkeypatch):
    monkeypatch.setattr(trees, "MOST_ROWS", 60)
    monkeypatch.setattr(trees, "MOST_FEATURES", 1)
    X = np.random.RandomState(0).randn(300, 3).astype(np.float32)
    on, start = X[:, 0] > 0.3, np.zeros(300)
    first, again, other = (boost(X, on, start, seed=seed).sums(X) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
