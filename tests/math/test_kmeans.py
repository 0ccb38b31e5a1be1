"""k-means on a device: a clustering as good as scikit-learn's, the same for the same seed."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from imcc import IMCCClassifier
from imcc._math.clustering import assign_rows, k_means, lloyd
from tests.backends import BACKENDS, array, backend


@pytest.fixture(params=BACKENDS)
def library(request):
    backend(request.param)
    return request.param


def inertia(X, labels):
    """The sum of squared distances of the rows to the means of their clusters, row by row."""
    means = {k: X[labels == k].mean(axis=0) for k in np.unique(labels)}
    return sum(((x - means[k]) ** 2).sum() for x, k in zip(X, labels, strict=True))


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return rng.normal(size=(8, 6))[rng.integers(8, size=300)] * 3 + rng.normal(size=(300, 6))


def test_every_row_is_with_its_nearest_mean(rows, library):
    """What Lloyd's steps end with: nothing left to change."""
    labels = k_means(array(library, rows), 12, seed=0)
    means = np.array([rows[labels == k].mean(axis=0) for k in range(12)])
    nearest = ((rows[:, np.newaxis] - means) ** 2).sum(axis=2).argmin(axis=1)
    # A last few rows may still move when the centres hardly do.
    assert np.mean(nearest == labels) > 0.97


def test_is_as_good_as_scikit_learn(rows, library):
    seeds = range(8)
    ours = [inertia(rows, k_means(array(library, rows), 20, seed)) for seed in seeds]
    theirs = [KMeans(20, n_init=1, random_state=seed).fit(rows).inertia_ for seed in seeds]
    assert np.mean(ours) < 1.03 * np.mean(theirs)


def test_the_start_is_spread_out(library):
    """k-means++ finds all of many far clumps, where a random start would miss some."""
    rng = np.random.default_rng(0)
    clump = np.repeat(np.arange(25), 8)
    X = np.stack([clump % 5, clump // 5], axis=1) * 100 + rng.normal(size=(200, 2))
    for seed in range(3):
        labels = k_means(array(library, X), 25, seed)
        assert len(set(zip(clump, labels, strict=True))) == 25


def test_seeds_decide(rows, library):
    given = array(library, rows)
    np.testing.assert_array_equal(k_means(given, 20, 1), k_means(given, 20, 1))
    assert not np.array_equal(k_means(given, 20, 1), k_means(given, 20, 2))


def test_blocks_change_nothing(rows, library, config):
    expected = k_means(array(library, rows), 10, 0)
    config(device_entries=100)
    np.testing.assert_array_equal(k_means(array(library, rows), 10, 0), expected)


def test_libraries_agree(rows):
    found = [k_means(array(name, rows), 16, 5) for name in BACKENDS]
    np.testing.assert_array_equal(*found)


def test_fewer_distinct_rows_than_clusters(library):
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 6, axis=0)
    with pytest.warns(
        ConvergenceWarning, match="n_clusters=9 is more than .*: 5 clusters are used"
    ):
        labels = assign_rows(array(library, X), 9, None, 0)[:, 0]
    assert len(set(zip(np.arange(30) // 6, labels, strict=True))) == 5


def test_all_rows_equal_and_one_row(library):
    np.testing.assert_array_equal(k_means(array(library, np.ones((4, 2))), 1, 0), 0)
    assert len(set(k_means(array(library, np.ones((4, 2))), 3, 0))) == 1
    np.testing.assert_array_equal(k_means(array(library, [[1.0, 2.0]]), 1, 0), [0])


def test_each_distinct_row_is_a_cluster_if_there_are_enough(library):
    for seed in (2, 3, 42, 55, 56):
        rng = np.random.default_rng(seed)
        n_distinct = int(rng.integers(8, 40))
        counts = rng.integers(2, 9, size=n_distinct)
        X = np.repeat(rng.normal(size=(n_distinct, 6)), counts, axis=0)
        labels = k_means(array(library, X), n_distinct + int(rng.integers(1, 20)), seed)
        of_rows = set(zip(np.repeat(np.arange(n_distinct), counts), labels, strict=True))
        assert len(of_rows) == len(set(labels)) == n_distinct


def test_a_cluster_without_rows_is_not_used(library):
    rng = np.random.default_rng(1)
    X = array(library, rng.normal(size=(60, 2)))
    far = array(library, np.vstack([np.eye(2), np.full((2, 2), 50.0)]))
    assert set(lloyd(X, far)) == {0, 1}


def test_the_estimator_uses_it(small_problem, library):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(6, random_state=0).fit(array(library, X), Y)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    draw = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=1)[0]
    np.testing.assert_array_equal(
        np.asarray(clf.assignment_), k_means(array(library, X), 6, int(draw))
    )
