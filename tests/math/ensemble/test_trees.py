"""Boosted trees: the arrays score rows as LightGBM does, a row and a tree at a time as well."""

import lightgbm
import numpy as np
import pytest
import scipy.sparse as sp

from imcc._math.ensemble import trees
from imcc._math.ensemble.trees import Boosting
from tests.naive.trees import sums_by_rows


def make(n=200, n_labels=2, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 5).astype(np.float32)
    on = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 2] > 0.3])[:, :n_labels]
    return X, on, 0.5 * rng.randn(n, n_labels)


def boost(X, on, start, known=None, weight=None, groups=None, seed=0):
    return Boosting(X, start, on, known, weight, groups, seed)


def added(X, on, start, **options):
    """What trees of all rows add to their log-odds."""
    boosting, rows = boost(X, on, start, **options), np.arange(len(X))
    return boosting.added(boosting.fit(rows), rows)


@pytest.fixture
def boosters(monkeypatch):
    """The boosters of LightGBM, one per label."""
    train, found = lightgbm.train, []

    def kept(*args, **kwargs):
        found.append(train(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(lightgbm, "train", kept)
    return found


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_are_those_of_a_walk_through_each_tree(sparse, boosters, monkeypatch):
    monkeypatch.setattr(trees, "_ENTRIES", 500)  # several blocks of rows
    X, on, start = make()
    X = np.where(np.abs(X) > 0.7, X, 0).astype(np.float32)
    monkeypatch.setattr(trees, "BLOCK_ROWS", 20)
    boosting = boost(sp.csr_matrix(X) if sparse else X, on, start)
    sums = boosting.added(boosting.fit(np.arange(150)), np.arange(150, 200))
    dumps = [booster.dump_model()["tree_info"] for booster in boosters]
    structures = [[tree["tree_structure"] for tree in dump] for dump in dumps]
    expected = np.column_stack([sums_by_rows(own, X[150:]) for own in structures])
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    assert np.abs(sums).max() > 0.1


def test_rows_at_a_threshold_go_to_the_left():
    """Also where it lies between two numbers in single precision."""
    below = np.float32(0.1)
    for threshold in (float(below), float(below) + 1e-12, 0.1, 0.1 - 1e-12):
        near = trees._rounded(threshold)
        values = np.array([np.nextafter(below, np.float32(0)), below, 1.0], dtype=np.float32)
        np.testing.assert_array_equal(values > near, values.astype(float) > threshold)


def test_scores_are_those_of_lightgbm(boosters):
    X, on, start = make()
    found = added(X, on, start)
    expected = np.column_stack([booster.predict(X, raw_score=True) for booster in boosters])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_trees_start_at_the_log_odds():
    """Where these are right already, trees add little."""
    X, on, _ = make(600)
    right = np.where(on, 6.0, -6.0)
    far, near = added(X, on, np.zeros(on.shape)), added(X, on, right)
    assert np.abs(near).mean() < 0.3 * np.abs(far).mean()


def test_rows_of_weight_zero_and_unknown_labels_do_not_count():
    X, on, start = make(400)
    wrong = on.copy()
    wrong[::2] = ~wrong[::2]
    weight = np.where(np.arange(400) % 2, 1.0, 0.0)
    known = np.repeat((weight > 0)[:, None], 2, axis=1)
    one = added(X, wrong, start, weight=weight)
    other = added(X, on, start, weight=weight)
    unknown = added(X, wrong, start, known=known)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(unknown, other)


def test_held_out_rows_are_scored_by_trees_of_the_other_folds():
    X, on, _ = make(300)
    groups = np.arange(300) // 3
    part, weight = boost(X, on, np.zeros(on.shape), groups=groups).held_out(lambda: None)
    assert weight > 0.5
    # A label that nothing explains: what was fitted to a row must not help to score it.
    noise = np.random.RandomState(1).rand(300, 1) > 0.5
    assert boost(X, noise, np.zeros(noise.shape)).held_out(lambda: None)[1] < 0.3
    assert np.mean((part > 0) == on) > 0.8


def test_labels_with_few_rows_are_left_as_they_are():
    X, on, start = make(300)
    on[:, 1] = False
    on[:5, 1] = True
    found = boost(X, on, start).fit(np.arange(300))
    assert set(found.output) == {0}
    nothing = boost(X, on[:, 1:], start[:, 1:])
    assert nothing.held_out(lambda: None)[1] == 0
    assert not nothing.added(nothing.fit(np.arange(300)), np.arange(300)).any()


@pytest.mark.parametrize("n", [300, 9000])
def test_same_trees_whatever_the_threads(n, monkeypatch):
    X, on, start = make(n)
    found = []
    for threads in (1, 2):
        train = lightgbm.train

        def limited(options, *args, train=train, threads=threads):
            return train({**options, "num_threads": threads}, *args)

        with monkeypatch.context() as patched:
            patched.setattr(lightgbm, "train", limited)
            found.append(boost(X, on, start).fit(np.arange(n)))
    np.testing.assert_array_equal(found[0].threshold, found[1].threshold)
    np.testing.assert_array_equal(found[0].value, found[1].value)


def test_no_trees_add_nothing():
    X, on, start = make()
    empty = boost(X, np.zeros_like(on), start).fit(np.arange(len(X)))
    assert len(empty.output) == 0
    np.testing.assert_array_equal(empty.sums(np.ones((3, 0)), 2), np.zeros((3, 2)))


def test_a_system_without_threads_is_told_what_to_install(monkeypatch):
    def missing(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(trees.importlib, "import_module", missing)
    X, on, start = make()
    with pytest.raises(ImportError, match="libgomp1"):
        boost(X, on, start).fit(np.arange(200))
