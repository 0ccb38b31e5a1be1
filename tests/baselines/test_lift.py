"""LIFT, step by step: how many clusters, which centres, distances, machines, scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.svm import SVC

from imcc._utils.validation import draw_seed
from imcc.baselines import LIFT
from imcc.baselines.lift import label_centers, row_identities
from tests.naive import baselines as naive


@pytest.mark.parametrize(
    ("positives", "ratio", "clusters"),
    [(30, 0.1, 3), (31, 0.1, 4), (60, 0.1, 3), (1, 0.1, 1), (20, 0.3, 6), (45, 1.0, 45)],
)
def test_cluster_counts(positives, ratio, clusters):
    """ceil(ratio * min(P, N)) of each class."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    on = np.arange(90) < positives
    centers = label_centers(X, on, row_identities(X), ratio, 0)
    assert centers.shape == (2 * clusters, 3)


def test_centres_are_those_of_each_class_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    on = np.arange(40) < 15
    X[on] += 100
    centers = label_centers(X, on, row_identities(X), 0.2, 5)
    assert (centers[:3] > 50).all()
    assert (centers[3:] < 50).all()
    expected = KMeans(3, n_init=1, random_state=5).fit(X[on]).cluster_centers_
    np.testing.assert_allclose(centers[:3], expected)


@pytest.mark.parametrize(("n", "clusters"), [(80, 50), (20, 20)])
def test_a_label_with_one_class_has_clusters_of_all_rows(n, clusters):
    X = np.random.default_rng(0).normal(size=(n, 3))
    for on in (np.zeros(n, bool), np.ones(n, bool)):
        assert len(label_centers(X, on, row_identities(X), 0.1, 0)) == clusters


def test_no_more_clusters_than_different_rows():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 10, axis=0)
    centers = label_centers(X, np.arange(40) < 20, row_identities(X), 0.5, 0)
    assert len(centers) == 4


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_row_identities(form):
    X = form(np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [2.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(row_identities(X), [0, 1, 0, 1, 2])


def test_scores_are_a_linear_machine_on_the_distances(small_problem):
    X, Y, X_new, _ = small_problem
    clf = LIFT(C=0.7, scores="margin", random_state=0).fit(X, Y)
    for k, centers in enumerate(clf.cluster_centers_):
        machine = SVC(kernel="linear", C=0.7).fit(cdist(X, centers), Y[:, k])
        np.testing.assert_allclose(
            clf.decision_function(X_new)[:, k],
            machine.decision_function(cdist(X_new, centers)),
            atol=1e-6,
        )


def test_probabilities_rescale_the_margins(small_problem):
    X, Y, X_new, _ = small_problem
    margins, scores = (
        LIFT(scores=scores, random_state=0).fit(X, Y).decision_function(X_new)
        for scores in ("margin", "probability")
    )
    for margin, score in zip(margins.T, scores.T, strict=True):
        slope, offset = np.polyfit(margin, score, 1)
        # One label cannot be learned from these rows: its margins are nearly constant.
        assert slope > 0.5 if margin.std() > 0.1 else np.ptp(score) < 1e-8
        np.testing.assert_allclose(slope * margin + offset, score, atol=1e-8)


def test_options_are_heard(small_problem):
    X, Y, X_new, _ = small_problem

    def scores(**parameters):
        return LIFT(**{"random_state": 0, **parameters}).fit(X, Y).decision_function(X_new)

    one = scores()
    for other in ({"ratio": 0.3}, {"C": 0.1}, {"random_state": 1}, {"scores": "margin"}):
        assert not np.allclose(scores(**other), one), other


def test_n_jobs_reaches_joblib(small_problem, n_jobs_used):
    X, Y, *_ = small_problem
    LIFT(scores="margin", n_jobs=3).fit(X, Y)
    assert n_jobs_used == {3}


@pytest.mark.parametrize("scores", ["margin", "probability"])
def test_scores_are_those_of_one_libsvm_per_fold(small_problem, scores):
    X, Y, X_new, _ = small_problem
    clf = LIFT(ratio=0.5, scores=scores, random_state=3).fit(X, Y)
    for k, on in enumerate(Y.T > 0):
        slow = naive.lift_label(X, on, X_new, 0.5, scores=scores, seed=draw_seed(3) + k)
        np.testing.assert_allclose(clf.decision_function(X_new)[:, k], slow, atol=1e-3)
