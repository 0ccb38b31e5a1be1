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
    return X, on


def boost(X, on, known=None, weight=None, groups=None, seed=0, threads=1):
    return Boosting(X, on, known, weight, groups, seed, threads)


def log_odds(X, on, n_trees=20, **options):
    """The log-odds of all rows by trees that were fitted to them."""
    boosting, rows = boost(X, on, **options), np.arange(len(X))
    return boosting.log_odds(*boosting.fit(rows, np.arange(on.shape[1]), n_trees), rows)


def loss(z, on):
    return np.logaddexp(0, np.where(on, -z, z)).mean(axis=0)


@pytest.fixture
def boosters(monkeypatch):
    """The boosters of LightGBM."""
    train, found = lightgbm.train, []

    def kept(*args, **kwargs):
        found.append(train(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(lightgbm, "train", kept)
    return found


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_are_those_of_a_walk_through_each_tree(sparse, boosters, monkeypatch):
    monkeypatch.setattr(trees, "_ENTRIES", 500)  # several blocks of rows
    X, on = make()
    X = np.where(np.abs(X) > 0.7, X, 0).astype(np.float32)
    monkeypatch.setattr(trees, "BLOCK_ROWS", 20)
    boosting = boost(sp.csr_matrix(X) if sparse else X, on)
    found, start = boosting.fit(np.arange(150), np.arange(2), 20)
    sums = boosting.log_odds(found, start, np.arange(150, 200)) - start
    structures = [tree["tree_structure"] for tree in boosters[0].dump_model()["tree_info"]]
    expected = np.column_stack([sums_by_rows(structures[j::2], X[150:]) for j in range(2)])
    np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(sums).max() > 0.1


def test_rows_at_a_threshold_go_to_the_left():
    """Also where it lies between two numbers in single precision."""
    below = np.float32(0.1)
    for threshold in (float(below), float(below) + 1e-12, 0.1, 0.1 - 1e-12):
        near = trees._rounded(threshold)
        values = np.array([np.nextafter(below, np.float32(0)), below, 1.0], dtype=np.float32)
        np.testing.assert_array_equal(values > near, values.astype(float) > threshold)


def test_log_odds_are_those_of_lightgbm_and_the_frequency(boosters):
    X, on = make()
    found = log_odds(X, on)
    positives = on.sum(axis=0)
    start = np.log(positives + 0.5) - np.log(len(X) - positives + 0.5)
    expected = boosters[0].predict(X, raw_score=True)
    np.testing.assert_allclose(found, start + expected, rtol=1e-9, atol=1e-12)
    assert (loss(found, on) < 0.6 * loss(np.tile(start, (len(X), 1)), on)).all()


def test_trees_are_those_of_the_binary_objective_of_lightgbm():
    X, on = make()
    weight = np.random.RandomState(1).uniform(0.2, 3, len(X))
    boosting, rows = boost(X, on, weight=weight), np.arange(len(X))
    found, start = boosting.fit(rows, np.arange(2), 20)
    options = {**boosting._options(), "objective": "binary"}
    for j in range(2):
        first = np.full(len(X), start[j])
        data = lightgbm.Dataset(X, on[:, j].astype(float), weight=weight, init_score=first)
        expected = lightgbm.train(options, data, 20).predict(X, raw_score=True)
        added = boosting.log_odds(found, start, rows)[:, j] - start[j]
        np.testing.assert_allclose(added, expected, rtol=1e-5, atol=1e-7)


def test_the_trial_finds_the_number_of_trees_with_the_lowest_loss_of_other_rows(monkeypatch):
    monkeypatch.setattr(trees, "MOST_TREES", 60)
    monkeypatch.setattr(trees, "_PATIENCE", 60)
    X, on = make(600)
    on ^= np.random.RandomState(1).rand(*on.shape) < 0.2  # too many trees learn the noise
    boosting, train, test = boost(X, on), np.arange(300), np.arange(300, 600)
    n_trees, found = boosting.trial(train, test, np.arange(2))
    fits = [boosting.fit(train, np.arange(2), n) for n in range(1, 61)]
    losses = [loss(boosting.log_odds(*fit, test), on[test]).sum() for fit in fits]
    assert n_trees == np.argmin(losses) + 1 < 60
    np.testing.assert_allclose(found, boosting.log_odds(*fits[n_trees - 1], test), rtol=1e-9)


def test_rows_of_weight_zero_and_unknown_labels_do_not_count():
    X, on = make(400)
    wrong = on.copy()
    wrong[::2] = ~wrong[::2]
    weight = np.where(np.arange(400) % 2, 1.0, 0.0)
    known = np.repeat((weight > 0)[:, None], 2, axis=1)
    one = log_odds(X, wrong, weight=weight)
    other = log_odds(X, on, weight=weight)
    unknown = log_odds(X, wrong, known=known)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(unknown, other)


def test_held_out_rows_are_scored_by_trees_of_the_other_folds():
    X, on = make(300)
    groups = np.arange(300) // 3
    boosting, both = boost(X, on, groups=groups), np.arange(2)
    folds = list(boosting.held_out(both, 20))
    assert sorted(np.concatenate([test for test, _ in folds])) == list(range(300))
    for test, scores in folds:
        train = np.setdiff1d(np.arange(300), test)
        assert not set(groups[test]) & set(groups[train])
        expected = boosting.log_odds(*boosting.fit(train, both, 20), test)
        np.testing.assert_array_equal(scores, expected)
        assert np.mean((scores > 0) == on[test]) > 0.8
    # A label that nothing explains: what was fitted to a row must not help to score it.
    noise = np.random.RandomState(1).rand(300, 1) > 0.5
    for test, scores in boost(X, noise).held_out(both[:1], 20):
        assert loss(scores, noise[test]) > 0.69


def test_only_frequent_labels_that_enough_rows_have_and_lack_are_fitted():
    X, on = make(300)
    on = np.column_stack([on, np.arange(300) < 5, np.arange(300) >= 5, np.arange(300) < 20])
    np.testing.assert_array_equal(boost(X, on).labels(100), [0, 1, 4])
    np.testing.assert_array_equal(boost(X, on).labels(2), [0, 1])
    known = np.ones(on.shape, dtype=bool)
    known[:15, 4] = False
    np.testing.assert_array_equal(boost(X, on, known).labels(100), [0, 1])
    np.testing.assert_array_equal(boost(X, on).labels(100, np.arange(8, 300)), [0, 1, 4])


def test_a_label_that_no_row_of_a_fold_has_gets_its_frequency():
    X, on = make()
    found, start = boost(X, np.zeros_like(on)).fit(np.arange(len(X)), np.arange(2), 20)
    assert len(found.output) == 0
    np.testing.assert_allclose(start, np.log(0.5 / (len(X) + 0.5)))
    np.testing.assert_array_equal(found.sums(np.ones((3, 0)), 2), np.zeros((3, 2)))


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_that_cannot_be_split_give_no_trees(sparse):
    """LightGBM refuses them."""
    _, on = make()
    X = np.zeros((200, 3), dtype=np.float32)
    X[:2, 0], X[:, 1] = 1.0, 0.0 if sparse else 5.0
    boosting, rows = boost(sp.csr_matrix(X) if sparse else X, on), np.arange(200)
    found, start = boosting.fit(rows, np.arange(2), 20)
    assert len(found.output) == 0
    np.testing.assert_array_equal(boosting.log_odds(found, start, rows), np.tile(start, (200, 1)))
    n_trees, log_odds = boosting.trial(rows[:150], rows[150:], np.arange(2))
    assert (n_trees, log_odds.shape) == (0, (50, 2))


@pytest.mark.parametrize("n", [300, 9000])
def test_same_numbers_whatever_the_threads(n):
    X, on = make(n)
    one, other = (log_odds(X, on, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, other)


def test_a_system_without_threads_is_told_what_to_install(monkeypatch):
    def missing(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(trees.importlib, "import_module", missing)
    with pytest.raises(ImportError, match="libgomp1"):
        log_odds(*make())
