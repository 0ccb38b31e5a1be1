import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from imcc._math.clustering import assign_rows, split_n_clusters, virtual_examples
from tests.conftest import FixedClusters
from tests.naive import imcc as naive


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(40, 3))


def signs_for(rows):
    return np.where(rows[:, :2] > 0.2, 1.0, -1.0)


def test_centres_and_soft_labels_are_means(rows):
    signs = signs_for(rows)
    assignment = np.random.default_rng(1).integers(5, size=40)
    virtual = virtual_examples(rows, signs, assignment[:, np.newaxis])
    Z, T, _ = naive.centers_and_soft_labels(rows, signs, assignment)
    np.testing.assert_allclose(virtual.centers, Z, atol=1e-14)
    np.testing.assert_allclose(virtual.soft_labels, T, atol=1e-14)
    np.testing.assert_array_equal(virtual.sizes, np.bincount(assignment))
    np.testing.assert_array_equal(virtual.membership.toarray(), np.eye(5)[assignment])


def test_a_single_member_is_its_own_virtual_example(rows):
    """Eq. 2, where the authors' program averages over the labels by mistake."""
    signs = signs_for(rows)
    assignment = np.array([0] * 39 + [1])
    virtual = virtual_examples(rows, signs, assignment[:, np.newaxis])
    np.testing.assert_array_equal(virtual.centers[1], rows[39])
    np.testing.assert_array_equal(virtual.soft_labels[1], signs[39])


def test_sparse_rows_give_the_same(rows):
    signs = signs_for(rows)
    rows = np.where(rows > 0.5, rows, 0.0)
    assignment = assign_rows(rows, 6, None, 0)
    dense = virtual_examples(rows, signs, assignment)
    sparse = virtual_examples(sp.csr_matrix(rows), signs, assignment)
    np.testing.assert_allclose(sparse.centers, dense.centers, atol=1e-14)


def test_k_means_is_seeded_and_finds_clumps():
    rng = np.random.default_rng(2)
    clump = np.repeat(np.arange(4), 10)
    X = rng.normal(size=(4, 2))[clump] * 50 + rng.normal(size=(40, 2))
    found = assign_rows(X, 4, None, seed=3)[:, 0]
    assert len({(a, b) for a, b in zip(clump, found, strict=True)}) == 4
    np.testing.assert_array_equal(found, assign_rows(X, 4, None, seed=3)[:, 0])
    wide = rng.normal(size=(200, 2))
    assert not np.array_equal(assign_rows(wide, 20, None, 0), assign_rows(wide, 20, None, 1))


def test_several_clusterings_are_stacked_and_differ(rows):
    assignment = assign_rows(rows, (4, 4, 7), None, seed=0)
    assert assignment.shape == (40, 3)
    assert [set(column) for column in assignment.T] == [
        set(range(4)),
        set(range(4, 8)),
        set(range(8, 15)),
    ]
    np.testing.assert_array_equal(assignment[:, 0], assign_rows(rows, 4, None, seed=0)[:, 0])
    virtual = virtual_examples(rows, signs_for(rows), assignment)
    np.testing.assert_array_equal(virtual.first, [1] * 4 + [0] * 11)


def test_more_clusters_than_distinct_rows(rows):
    X = np.repeat(rows[:5], 4, axis=0)
    for n_clusters in (10, 100):
        with pytest.warns(ConvergenceWarning, match=f"n_clusters={n_clusters} is more than.*: 5"):
            assignment = assign_rows(X, n_clusters, None, 0)
        assert set(assignment[:, 0]) == set(range(5))


@pytest.mark.parametrize(
    "clusterer", [KMeans(3, n_init=1), AgglomerativeClustering(3), GaussianMixture(3)]
)
def test_other_clusterers_are_used_as_they_are(rows, clusterer):
    assignment = assign_rows(rows, None, clusterer, seed=0)
    assert set(assignment[:, 0]) == {0, 1, 2}
    assert not hasattr(clusterer, "labels_")
    np.testing.assert_array_equal(assignment, assign_rows(rows, None, clusterer, seed=0))


def test_an_explicit_number_is_passed_on(rows):
    assignment = assign_rows(rows, 6, AgglomerativeClustering(3), seed=0)
    assert assignment.max() == 5
    with pytest.raises(ValueError, match=r"n_clusters=6 cannot be set.*DBSCAN"):
        assign_rows(rows, 6, DBSCAN(), seed=0)


def test_noise_rows_become_clusters_of_their_own(rows):
    labels = [-1, 0, -1] + [7] * 37
    with pytest.warns(UserWarning, match="marked 2 of 40 rows as noise"):
        assignment = assign_rows(rows, None, FixedClusters(labels), 0)[:, 0]
    sizes = np.bincount(assignment)
    assert sorted(sizes) == [1, 1, 1, 37]
    assert assignment[0] != assignment[2]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0] * 39, "one integer for each of the 40 rows"),
        ([[0]] * 40, "shape"),
        ([0.5] * 40, "type float64"),
        ([-2] + [0] * 39, "gave the label -2"),
    ],
)
def test_nonsense_of_a_clusterer_is_named(rows, labels, message):
    with pytest.raises(ValueError, match=message) as error:
        assign_rows(rows, None, FixedClusters(labels), 0)
    assert "FixedClusters" in str(error.value)


def test_a_clusterer_without_labels_is_refused(rows):
    class Nothing:
        def fit(self, X):
            return self

    with pytest.raises(ValueError, match="Nothing sets no labels_"):
        assign_rows(rows, None, Nothing(), 0)


@pytest.mark.parametrize("bad", [0, -3, 2.5, "8", [], [4, 0], True, [None]])
def test_bad_numbers_of_clusters(bad):
    with pytest.raises(ValueError, match="n_clusters must"):
        split_n_clusters(bad)
