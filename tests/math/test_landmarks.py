"""Landmarks: the centres of scikit-learn's k-means on one thread, bit for bit, on any number."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier
from imcc._math.landmarks import MAX_STEPS, k_means_centers


def clumps(n_samples, n_features):
    rng = np.random.default_rng(n_samples)
    return rng.normal(size=(9, n_features))[rng.integers(9, size=n_samples)] + rng.normal(
        size=(n_samples, n_features)
    )


def repeated(n_samples):
    """Rows of which many are equal: centres without rows appear."""
    return np.random.default_rng(1).integers(0, 3, size=(n_samples, 4)).astype(np.float64)


CASES = {
    "more than one block of rows": (clumps(700, 12), 60),
    "float32": (clumps(700, 12).astype(np.float32), 60),
    "by columns": (np.asfortranarray(clumps(300, 5)), 40),
    "far from zero": (clumps(300, 5) + 1e6, 40),
    "few steps": (clumps(40, 2), 12),
    "equal rows": (repeated(200), 40),
    "fewer distinct rows than centres": (np.repeat(clumps(6, 3), 10, axis=0), 20),
    "sparse": (sp.csr_matrix(repeated(300)), 30),
}


def reference(X, n_centers, seed):
    """scikit-learn's own run of the same length, on one thread."""
    with threadpool_limits(1):
        model = KMeans(
            n_centers,
            init="random",
            n_init=1,
            max_iter=MAX_STEPS,
            random_state=np.random.RandomState(seed),
        )
        return model.fit(X).cluster_centers_


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("X", "n_centers"), CASES.values(), ids=CASES)
def test_is_scikit_learn_on_one_thread(X, n_centers, n_threads):
    with threadpool_limits(n_threads):
        centers = k_means_centers(X, n_centers, np.random.RandomState(0))
    np.testing.assert_array_equal(centers, reference(X, n_centers, 0))


def test_the_cases_have_empty_centres_and_an_early_end():
    """Otherwise the test above would not say anything about them."""
    X, n_centers = CASES["equal rows"]
    start = X[np.random.RandomState(0).choice(len(X), size=n_centers, replace=False)]
    assert len(np.unique(start, axis=0)) < n_centers  # equal centres: one has no rows
    X, n_centers = CASES["few steps"]
    with threadpool_limits(1):
        model = KMeans(n_centers, init="random", n_init=1, random_state=np.random.RandomState(0))
        assert model.fit(X).n_iter_ < MAX_STEPS


def test_the_rows_given_stay_as_they_are():
    X, n_centers = CASES["far from zero"]
    before = X.copy()
    k_means_centers(X, n_centers, np.random.RandomState(0))
    np.testing.assert_array_equal(X, before)


def test_a_fit_has_the_same_landmarks_on_any_number_of_threads():
    X = clumps(600, 8)
    Y = X[:, :3] > 0
    classifier = IMCCClassifier(5, approximation="nystroem", n_components=50, random_state=0)
    found = []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads):
            found.append(classifier.fit(X, Y).landmarks_)
    np.testing.assert_array_equal(found[1], found[0])
