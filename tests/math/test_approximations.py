"""Approximate kernels: exact where they should be, close where they cannot be, small always."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.fitting import DEFAULT_N_COMPONENTS
from imcc._math.kernels import check_kernel
from imcc._math.maps import NystroemMap, feature_sums
from imcc._math.sampling import sample_rows
from imcc._utils.config import config_context
from imcc._utils.validation import draw_seed
from imcc.metrics import METRICS
from tests.conftest import FixedClusters
from tests.math.search.test_search import AXES, assert_same, brute_force, exact_search
from tests.naive import imcc as naive

HEAVY = {"alpha": 30.0, "beta": 0.05, "gamma": 3.0}


def fitted(problem, **parameters):
    X, Y, *_ = problem
    return IMCCClassifier(**{"n_clusters": 6, "random_state": 0, **parameters}).fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "cosine"])
@pytest.mark.parametrize("solver", ["cholesky", "spectral"])
def test_all_rows_as_landmarks_is_the_exact_model(small_problem, kernel, solver):
    X, Y, X_new, _ = small_problem
    problem = (np.abs(X), Y) if kernel == "chi2" else (X, Y)
    exact = fitted(problem, kernel=kernel, **HEAVY)
    for change in ({"n_components": 90}, {"n_components": 500}, {"landmarks": problem[0]}):
        clf = fitted(
            problem, kernel=kernel, approximation="nystroem", solver=solver, **change, **HEAVY
        )
        if kernel != "cosine":
            assert clf.width_ == pytest.approx(exact.width_, rel=1e-9)
        np.testing.assert_allclose(
            clf.decision_function(np.abs(X_new)), exact.decision_function(np.abs(X_new)), atol=1e-6
        )


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("beta", [1e-3, 1.0])
def test_ill_conditioned_landmarks_are_exact_too(offset, beta):
    """Rows in a line and some of them twice: most eigenvalues of the kernel are tiny."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(80, 1)), 1) + offset
    Y = np.column_stack([X[:, 0] > offset, np.abs(X[:, 0] - offset) > 0.5])
    exact, nystroem = (
        IMCCClassifier(4, beta=beta, random_state=0, approximation=a, n_components=m).fit(X, Y)
        for a, m in ((None, None), ("nystroem", 80))
    )
    np.testing.assert_allclose(nystroem.decision_function(X), exact.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("late", [True, False])
def test_nystroem_equals_its_twin(small_problem, config, late):
    X, Y, X_new, _ = small_problem
    config(late_condition=1e12 if late else 0.0, sum_entries=200)  # several blocks
    landmarks = X[::5]
    labels = np.arange(90) % 7
    clf = IMCCClassifier(
        approximation="nystroem", landmarks=landmarks, clusterer=FixedClusters(labels), **HEAVY
    ).fit(X, Y)
    signs = np.where(Y, 1.0, -1.0)
    Z, T, _ = naive.centers_and_soft_labels(X, signs, labels)
    _, psi, psi_z, psi_new = naive.kernel_features(
        *(naive.rbf(A, landmarks, clf.width_) for A in (landmarks, X, Z, X_new))
    )
    W, b = naive.stacked_least_squares(psi, [(psi_z, T, labels)], signs, *HEAVY.values())
    np.testing.assert_allclose(clf.decision_function(X_new), psi_new @ W + b, atol=1e-8)
    by_hand = naive.rbf(X_new, clf.landmarks_, clf.width_) @ clf.dual_coef_ + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X_new), by_hand, atol=1e-10)
    np.testing.assert_allclose(clf.landmarks_, landmarks, atol=1e-12)


def test_the_error_falls_with_the_components(small_problem):
    X_new = small_problem[2]
    exact = fitted(small_problem).decision_function(X_new)
    given = FixedClusters(fitted(small_problem).assignment_)
    errors = []
    for m in (4, 16, 64):
        scores = [
            fitted(
                small_problem,
                approximation="nystroem",
                n_components=m,
                random_state=seed,
                clusterer=given,
                n_clusters=None,
            ).decision_function(X_new)
            for seed in range(5)
        ]
        errors.append(np.mean([np.abs(found - exact).mean() for found in scores]))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@pytest.mark.parametrize(
    "change",
    [
        {"approximation": None, "n_components": None},
        {"n_components": 14},
        {"landmarks": "random"},
        {"landmarks": np.eye(12, 5)},
        {"kernel": "laplacian"},
        {"width_scale": 0.5},
        {"width": 1.0},
        {"random_state": 1},
        {"alpha": 9.0},
    ],
    ids=str,
)
def test_every_parameter_has_an_effect(small_problem, change):
    X_new = small_problem[2]
    base = {"approximation": "nystroem", "n_components": 12, "alpha": 5.0, "gamma": 1.0}
    scores = [fitted(small_problem, **p).decision_function(X_new) for p in (base, base | change)]
    assert np.abs(scores[0] - scores[1]).max() > 1e-6


def test_a_sample_is_enough_for_width_and_landmarks(small_problem, config):
    X = small_problem[0]
    of_all = fitted(small_problem, approximation="nystroem", n_components=20).landmarks_
    config(width_rows=40, rows_per_landmark=3)
    clf = fitted(small_problem, approximation="nystroem", n_components=20)
    # Each landmark is a mean of rows of the sample, and 60 of the 90 rows are in it.
    sample = sample_rows(X, 60, draw_seed(clf.random_state))
    expected = fitted((sample, small_problem[1][:60]), approximation="nystroem", n_components=20)
    np.testing.assert_allclose(clf.landmarks_, expected.landmarks_, atol=1e-12)
    assert clf.landmarks_.shape != of_all.shape or np.abs(clf.landmarks_ - of_all).max() > 1e-6
    assert clf.width_ != naive.mean_distance(X)
    assert clf.width_ == pytest.approx(naive.mean_distance(X), rel=0.2)


def test_the_default_number_of_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    clf = IMCCClassifier(4, approximation="nystroem", landmarks="random").fit(X, X > 0)
    assert clf.landmarks_.shape == (DEFAULT_N_COMPONENTS, 2)


def test_the_model_does_not_grow_with_the_rows():
    rng = np.random.default_rng(0)
    sizes = []
    for n in (200, 2000):
        X = rng.normal(size=(n, 4))
        clf = IMCCClassifier(5, approximation="nystroem", n_components=20, random_state=0).fit(
            X, X > 0
        )
        assert not hasattr(clf, "assignment_")
        sizes.append(len(pickle.dumps(clf)))
    assert abs(sizes[1] - sizes[0]) < 100


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_sparse_and_float32_rows(kernel):
    rng = np.random.default_rng(0)
    X = rng.random((60, 12)) * (rng.random((60, 12)) < 0.3)
    Y, labels = rng.random((60, 3)) < 0.4, rng.integers(7, size=60)
    clf = IMCCClassifier(
        kernel=kernel,
        approximation="nystroem",
        n_components=20,
        landmarks="random",
        clusterer=FixedClusters(labels),
        random_state=0,
    ).fit(X, Y)
    expected = clf.decision_function(X)
    sparse = clone(clf).fit(sp.csr_matrix(X), Y)
    assert sparse._model.scores(sp.csr_matrix(X)).shape == (60, 3)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), expected, atol=1e-8)
    np.testing.assert_allclose(sparse.decision_function(X), expected, atol=1e-8)
    assert sp.issparse(sparse.landmarks_)
    single = clone(clf).fit(X.astype(np.float32), Y)
    scores = single.decision_function(X.astype(np.float32))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=2e-4)


def test_prediction_in_blocks_makes_no_difference(small_problem, config):
    clf = fitted(small_problem, approximation="nystroem", n_components=50)
    whole = clf.decision_function(small_problem[2])
    config(score_entries=100)
    np.testing.assert_allclose(clf.decision_function(small_problem[2]), whole, atol=1e-12)


def test_landmarks_that_repeat_are_taken_once():
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 3)), 10, axis=0)
    clf = IMCCClassifier(3, approximation="nystroem", n_components=20, random_state=0)
    clf.fit(X, X > 0)
    assert len(clf.landmarks_) < 20
    exact = IMCCClassifier(3, random_state=0).fit(X, X > 0)
    np.testing.assert_allclose(clf.decision_function(X), exact.decision_function(X), atol=1e-6)


def test_second_fit_leaves_nothing_of_the_first(small_problem):
    X, Y, *_ = small_problem
    clf = fitted(small_problem)
    clf.set_params(approximation="nystroem", n_components=10).fit(X, Y)
    assert not hasattr(clf, "assignment_")
    clf.set_params(approximation=None, n_components=None, kernel="linear").fit(X, Y)
    assert not hasattr(clf, "landmarks_")
    assert not hasattr(clf, "dual_coef_")
    clf.set_params(kernel="rbf").fit(X, Y)
    assert not hasattr(clf, "coef_")
    assert clf.assignment_.shape == (90,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "rff"}, "approximation must be one of 'nystroem'"),
        ({"approximation": "nystroem", "n_components": 0}, "n_components must be an integer"),
        ({"n_components": 1.5}, "n_components must be an integer"),
        ({"landmarks": "random"}, "landmarks have no effect with approximation=None"),
        ({"approximation": "nystroem", "landmarks": "grid"}, "landmarks must be one of"),
        ({"approximation": "nystroem", "landmarks": np.ones(5)}, "got an array of shape"),
        (
            {"approximation": "nystroem", "landmarks": np.ones((2, 3))},
            "landmarks must have 5 features",
        ),
        (
            {"approximation": "nystroem", "landmarks": np.full((2, 5), np.nan)},
            "landmarks must contain finite",
        ),
        (
            {"approximation": "nystroem", "landmarks": np.eye(5), "n_components": 6},
            "n_components is 6, but 5 rows",
        ),
        ({"approximation": "nystroem", "kernel": "linear"}, "needs no approximation"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(small_problem, parameters, message):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match=message):
        fitted(small_problem, **parameters)
    named = {"kernels" if k == "kernel" else k: v for k, v in parameters.items()}
    with pytest.raises(ValueError, match=message):
        IMCCClassifierCV([1.0], [1.0], [1.0], [4], **named).fit(X, Y)


def test_identical_rows_have_no_width():
    with pytest.raises(ValueError, match="all training rows are identical"):
        IMCCClassifier(1, approximation="nystroem").fit(np.ones((9, 3)), np.eye(9, 2))


@pytest.mark.parametrize(
    ("fixed", "kernels"),
    [
        ({"approximation": "nystroem", "n_components": 25}, ["rbf"]),
        ({"approximation": "nystroem", "n_components": 25}, ["rbf", "laplacian"]),
        ({"approximation": "nystroem", "n_components": 25, "landmarks": "random"}, ["laplacian"]),
        (
            {
                "approximation": "nystroem",
                "landmarks": np.random.default_rng(0).normal(size=(20, 5)),
            },
            ["laplacian"],
        ),
        ({"approximation": "nystroem", "n_components": 1000}, ["rbf"]),
    ],
    ids=str,
)
def test_the_search_is_exact_within_the_approximation(small_problem, fixed, kernels):
    X, Y, X_new, _ = small_problem
    axes = {**AXES, "kernel": kernels, "width_scale": [0.5, 1.0]}
    axes |= {"alpha": [1e-2, 10.0], "beta": [1e-2, 1.0], "gamma": [0.1], "n_clusters": [3]}
    expected = brute_force(X, Y, axes, KFold(3), list(METRICS), **fixed)
    found = exact_search(X, Y, axes, KFold(3), list(METRICS), **fixed)
    assert_same(found, expected, list(METRICS), X_new)


def test_the_search_makes_no_matrix_of_all_pairs(config):
    config(width_rows=50, kernel_entries=1000)
    X = np.random.default_rng(0).normal(size=(3000, 4))
    search = IMCCClassifierCV(
        [1.0], [0.1, 1.0], [0.1], [4, 8], approximation="nystroem", n_components=10, cv=3
    )
    tracemalloc.start()
    search.fit(X, X > 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 2000 * 8 / 2  # half of the matrix of a fold
    assert search.best_estimator_.dual_coef_.shape == (10, 4)


def test_late_and_early_rotation_agree(small_problem):
    X = small_problem[0]
    kernel = check_kernel("rbf")
    maps = []
    for limit in (1e12, 0.0):
        with config_context(late_condition=limit):
            maps.append(NystroemMap.fit(kernel, 3.0, None, X[::4]))
    assert [m.late for m in maps] == [True, False]
    P = sp.csr_array(np.eye(3)[np.arange(90) % 3])
    sums = [m.of_sums(feature_sums(m, X, np.ones((90, 2)), P)) for m in maps]
    for name in ("gram", "cross", "cluster_sums"):
        np.testing.assert_allclose(getattr(sums[0], name), getattr(sums[1], name), atol=1e-8)
