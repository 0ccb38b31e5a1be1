"""Random shapes, values and settings through fit and predict, against the slow twin."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from imcc import IMCCClassifier
from tests.conftest import FixedClusters
from tests.naive import imcc as naive


@st.composite
def problems(draw):
    n, d, q = draw(st.integers(1, 14)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    # Few different values: duplicate rows, equal columns and ties are common.
    values = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 2.0, 3.25])
    return {
        "X": draw(hnp.arrays(np.float64, (n, d), elements=values)),
        "Y": draw(hnp.arrays(np.int64, (n, q), elements=st.integers(0, 1))),
        "labels": draw(hnp.arrays(np.int64, n, elements=st.integers(0, draw(st.integers(0, n))))),
        "X_new": draw(hnp.arrays(np.float64, (3, d), elements=values)),
    }


weights = st.tuples(
    st.one_of(st.just(0.0), st.floats(-2, 2).map(lambda x: 10**x)),
    st.floats(-2, 2).map(lambda x: 10**x),
    st.one_of(st.just(0.0), st.floats(-2, 2).map(lambda x: 10**x)),
)


@given(
    problem=problems(),
    weights=weights,
    kernel=st.sampled_from(["rbf", "laplacian", "linear"]),
    solver=st.sampled_from(["auto", "spectral"]),
    sparse=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_fit_and_predict_equal_the_twin(problem, weights, kernel, solver, sparse):
    X, Y, labels, X_new = (problem[k] for k in ("X", "Y", "labels", "X_new"))
    alpha, beta, gamma = weights
    clf = IMCCClassifier(
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        kernel=kernel,
        solver=solver,
        clusterer=FixedClusters(labels),
    )
    rows = sp.csr_matrix(X) if sparse else X
    if kernel != "linear" and len(np.unique(X, axis=0)) == 1:
        with pytest.raises(ValueError, match="all training rows are identical"):
            clf.fit(rows, Y)
        clf.set_params(width=1.5)
    scores = clf.fit(rows, Y).decision_function(sp.csr_matrix(X_new) if sparse else X_new)
    signs = np.where(Y, 1.0, -1.0)
    if kernel == "linear":
        expected = naive.linear_scores(X, signs, X_new, [clf.assignment_], *weights)
    else:
        function = getattr(naive, kernel)
        expected = naive.scores(X, signs, X_new, [clf.assignment_], *weights, function, clf.width_)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    np.testing.assert_array_equal(clf.predict(X_new), scores >= 0)


@given(problem=problems(), n_clusters=st.integers(1, 20), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_k_means_never_leaves_an_empty_cluster(problem, n_clusters, seed):
    X, Y = problem["X"], problem["Y"]
    clf = IMCCClassifier(n_clusters, width=1.0, random_state=seed).fit(X, Y)
    distinct = len(np.unique(X, axis=0))
    assert 1 <= len(clf.cluster_sizes_) <= min(n_clusters, distinct)
    assert clf.cluster_sizes_.min() >= 1
    assert np.isfinite(clf.cluster_centers_).all()
    assert np.abs(clf.soft_labels_).max() <= 1
    assert np.isfinite(clf.decision_function(X)).all()


@given(problem=problems(), weights=weights)
@settings(max_examples=40, deadline=None)
def test_order_of_rows_and_labels_does_not_matter(problem, weights):
    X, Y, labels, X_new = (problem[k] for k in ("X", "Y", "labels", "X_new"))
    assume(len(X) > 1)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(Y.shape[1])
    alpha, beta, gamma = weights

    def scores(X, Y, labels):
        clf = IMCCClassifier(
            alpha=alpha, beta=beta, gamma=gamma, width=1.0, clusterer=FixedClusters(labels)
        )
        return clf.fit(X, Y).decision_function(X_new)

    straight = scores(X, Y, labels)
    shuffled = scores(X[rows], Y[rows][:, columns], labels[rows])
    np.testing.assert_allclose(shuffled, straight[:, columns], atol=1e-7)
