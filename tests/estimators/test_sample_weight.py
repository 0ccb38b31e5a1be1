"""Weights of rows: whole weights are repeated rows, zero weights are rows left out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.cluster import KMeans

from imcc import IMCCClassifier
from imcc._math.kernels import RBFKernel
from tests.naive import imcc as naive

pytestmark = pytest.mark.filterwarnings("ignore:.*prototypes have no rows")

PROTOTYPES = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 0.5, 2.0]])
MODELS = {
    "exact": {},
    "spectral": {"solver": "spectral"},
    "laplacian": {"kernel": "laplacian"},
    "cosine": {"kernel": "polynomial", "kernel_params": {"degree": 2}},
    "linear": {"kernel": "linear"},
    "nystroem": {"approximation": "nystroem", "landmarks": PROTOTYPES},
}


def model(name, **parameters):
    given = {"clusterer": PROTOTYPES, "alpha": 2.0, "beta": 0.3, "gamma": 0.7, "width": 1.7}
    given |= MODELS[name] | parameters
    if given.get("kernel") in ("linear", "polynomial"):
        given.pop("width")
    return IMCCClassifier(**given)


@st.composite
def weighted_problems(draw):
    n, q = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 3.25])
    weights = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    weights[draw(st.integers(0, n - 1))] = 2
    return {
        "X": draw(hnp.arrays(np.float64, (n, 3), elements=values)),
        "Y": draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1))),
        "weights": weights,
        "X_new": draw(hnp.arrays(np.float64, (3, 3), elements=values)),
    }


@given(problem=weighted_problems(), name=st.sampled_from(sorted(MODELS)), sparse=st.booleans())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.filterwarnings("ignore:the kernel is not positive semi-definite")
def test_whole_weights_are_repeated_rows(problem, name, sparse):
    X, Y, weights, X_new = (problem[k] for k in ("X", "Y", "weights", "X_new"))
    wrap = sp.csr_matrix if sparse else np.asarray
    more_X, more_Y = naive.repeated(weights, X, Y)
    weighted = model(name).fit(wrap(X), Y, sample_weight=weights)
    repeated = model(name).fit(wrap(more_X), more_Y)
    np.testing.assert_allclose(
        weighted.decision_function(X_new), repeated.decision_function(X_new), atol=2e-6
    )
    for name in ("cluster_centers_", "soft_labels_", "cluster_sizes_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_zero_weight_leaves_a_row_out(small_problem, name):
    """To the last bit, also for the width rule, k-means and labels that do not vary."""
    X, Y, X_new, _ = small_problem
    X, X_new = X[:, :3], X_new[:, :3]
    weights = np.random.RandomState(0).uniform(0.2, 3, size=len(X))
    weights[::4] = 0
    Y = Y.copy()
    Y[:, 0] = np.arange(len(X)) % 4 == 0  # constant without these rows
    options = {"clusterer": None, "n_clusters": 4, "random_state": 0}
    if "width" in model(name).get_params() and name not in ("linear", "cosine"):
        options["width"] = "mean_distance"
    some = weights > 0
    all_rows = model(name, **options).fit(X, Y, sample_weight=weights)
    without = model(name, **options).fit(X[some], Y[some], sample_weight=weights[some])
    np.testing.assert_array_equal(
        all_rows.decision_function(X_new), without.decision_function(X_new)
    )
    assert (all_rows.decision_function(X_new)[:, 0] == -1).all()
    assert all_rows.width_ == without.width_


@pytest.mark.parametrize("name", sorted(MODELS))
def test_equal_weights_change_nothing(small_problem, name):
    X, Y, X_new, _ = small_problem
    X, X_new = X[:, :3], X_new[:, :3]
    plain = model(name, clusterer=None, n_clusters=5, random_state=0)
    scores = plain.fit(X, Y).decision_function(X_new)
    for weights in (np.ones(len(X)), np.ones(len(X), dtype=bool), 1):
        again = plain.fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(again.decision_function(X_new), scores)
        assert again.cluster_sizes_.dtype == np.int64


@pytest.mark.parametrize("solver", ["cholesky", "spectral"])
def test_any_weights_equal_the_twin(small_problem, solver):
    X, Y, X_new, _ = small_problem
    weights = np.random.RandomState(1).uniform(0.05, 4, size=len(X))
    clf = IMCCClassifier(6, 2.0, 0.3, 0.7, solver=solver, random_state=0)
    clf.fit(X, Y, sample_weight=weights)
    assert clf.width_ == pytest.approx(naive.weighted_mean_distance(X, weights), rel=1e-12)
    signs = np.where(Y, 1.0, -1.0)
    expected = naive.weighted_scores(
        X, signs, X_new, clf.assignment_, weights, 2.0, 0.3, 0.7, naive.rbf, clf.width_
    )
    np.testing.assert_allclose(clf.decision_function(X_new), expected, atol=1e-9)
    assert not np.allclose(
        clf.decision_function(X_new), clf.fit(X, Y).decision_function(X_new), atol=1e-3
    )


@given(weights=hnp.arrays(np.int64, 9, elements=st.integers(1, 4)))
@settings(max_examples=50, deadline=None)
def test_width_rule_of_whole_weights_is_that_of_repeated_rows(weights):
    X = np.random.RandomState(0).standard_normal((9, 2))
    kernel = RBFKernel("rbf")
    (more,) = naive.repeated(weights, X)
    expected = naive.mean_distance(more)
    w = weights.astype(float)
    assert kernel.mean_distance(kernel.base(X), w) == pytest.approx(expected, rel=1e-12)
    assert kernel.mean_distance_of(X, w) == pytest.approx(expected, rel=1e-12)
    small = w / 10  # all below 1: the weighted mean over pairs
    pairs = np.outer(w, w)[np.triu_indices(9, 1)]
    distances = np.sqrt(kernel.base(X))[np.triu_indices(9, 1)]
    mean = np.average(distances, weights=pairs)
    assert kernel.mean_distance(kernel.base(X), small) == pytest.approx(mean, rel=1e-12)


def test_streams_have_no_weights(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(4, kernel="linear")
    with pytest.raises(ValueError, match=r"sample_weight .*stream"):
        clf.fit([(X, Y)], sample_weight=np.ones(len(X)))


def test_clusterers_get_the_weights(small_problem):
    X, Y, *_ = small_problem
    weights = np.random.RandomState(4).uniform(0.01, 5, size=len(X))
    own = IMCCClassifier(5, random_state=0).fit(X, Y, sample_weight=weights)
    draw = np.random.RandomState(np.random.RandomState(0).randint(2**31 - 1)).randint(2**31 - 1)
    given = KMeans(5, n_init=1, random_state=int(draw))
    other = IMCCClassifier(5, clusterer=given).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(own.assignment_, other.assignment_)
    expected = given.fit(X, sample_weight=weights).cluster_centers_
    np.testing.assert_allclose(
        np.sort(own.cluster_centers_, axis=0), np.sort(expected, axis=0), atol=1e-3
    )


@pytest.mark.parametrize("name", ["exact", "laplacian", "linear", "nystroem"])
def test_weights_on_a_device(small_problem, name):
    strict = pytest.importorskip("array_api_strict")
    X, Y, X_new, _ = small_problem
    X, X_new = X[:, :3], X_new[:, :3]
    weights = np.random.RandomState(5).uniform(0, 3, size=len(X))
    weights[3] = 0
    here = model(name).fit(X, Y, sample_weight=weights)
    there = model(name).fit(strict.asarray(X), Y, sample_weight=strict.asarray(weights))
    np.testing.assert_allclose(
        np.asarray(there.decision_function(strict.asarray(X_new))),
        here.decision_function(X_new),
        atol=1e-8,
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "60 finite numbers"),
        ([], "60 finite numbers"),
        (np.full(60, np.nan), "60 finite numbers"),
        (-np.ones(60), ">= 0"),
        (np.zeros(60), "zero for all rows"),
        (np.ones((60, 1)), "1D array"),
        (["a"] * 60, "numbers"),
    ],
)
def test_bad_weights_are_named(weights, message):
    X, Y = np.random.RandomState(0).rand(60, 2), np.eye(2, dtype=int)[np.arange(60) % 2]
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        IMCCClassifier(3).fit(X, Y, sample_weight=weights)


def test_a_class_of_rows_without_weight_is_not_there():
    X, y = np.random.RandomState(0).rand(30, 2), np.arange(30) % 3
    clf = IMCCClassifier(3, random_state=0).fit(X, y, sample_weight=y > 0)
    assert clf.classes_.tolist() == [1, 2]
