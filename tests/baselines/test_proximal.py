"""The solver of LLSF and JFSC: the objective, the descent, the conditions of optimality."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.metrics.pairwise import cosine_distances

from imcc.baselines import JFSC, LLSF, UnboundedError
from imcc.baselines._proximal import Problem, Weights, fisher_scatter, soft_threshold, solve
from tests.conftest import DATA
from tests.naive import baselines as naive


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) + 0.5
    Y = (X @ rng.normal(size=(6, 4)) + rng.normal(size=(40, 4)) > 0.5).astype(float)
    return X, Y


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def test_llsf_is_the_authors_program(oracle):
    with np.load(DATA / "oracle_small.npz") as small:
        (alpha, beta, gamma), expected = small["llsf_params"].ravel(), small["llsf_W"]
    clf = LLSF(alpha, beta, gamma, max_iter=20000, tol=1e-10).fit(oracle.X, oracle.Y)
    np.testing.assert_allclose(clf.coef_.T, expected[:-1], atol=1e-5)
    np.testing.assert_allclose(clf.intercept_, expected[-1], atol=1e-5)
    scores = oracle.X_new @ expected[:-1] + expected[-1] - 0.5
    np.testing.assert_allclose(clf.decision_function(oracle.X_new), scores, atol=1e-4)


def test_the_objective_is_what_the_docstring_says(problem):
    X, Y = problem
    W = np.random.default_rng(1).normal(size=(7, 4))
    S = fisher_scatter(X, Y > 0)
    weights = Weights(0.7, 0.3, 0.02)
    np.testing.assert_allclose(S, naive.fisher_scatter(X, Y))
    task = Problem(X, Y > 0, fisher=True)
    np.testing.assert_allclose(
        task.objective(W, weights, task.gram(W)),
        naive.sparse_objective(X, Y, W, 0.7, 0.3, 0.02, S),
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_scatter_of_sparse_rows_and_constant_labels(problem, form):
    X, Y = problem
    Y = np.column_stack([Y, np.zeros(40), np.ones(40)])
    found = fisher_scatter(form(X), Y > 0)
    np.testing.assert_allclose(found, naive.fisher_scatter(X, Y), atol=1e-9)
    np.testing.assert_array_equal(found[:, 4:], 0)


def test_the_scatter_keeps_its_digits_far_from_zero(problem):
    X, Y = problem
    moved = fisher_scatter(X + 1e7, Y > 0)
    np.testing.assert_allclose(moved, naive.fisher_scatter(X, Y), rtol=1e-5, atol=1e-5)


SETTINGS = [
    Weights(0.0, 0.0),
    Weights(0.0, 2.0),
    Weights(1.0, 0.5),
    Weights(1.0, 0.5, 0.05),
    Weights(0.2, 0.0, 0.1),
]


@pytest.mark.parametrize("weights", SETTINGS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_descent_and_optimality(problem, weights, sparse):
    X, Y = problem
    if sparse:
        X = np.where(np.abs(X) > 1.2, X, 0.0)
    S = fisher_scatter(X, Y > 0)
    task = Problem(sp.csr_matrix(X) if sparse else X, Y > 0, fisher=True)
    W, values, converged = solve(task, weights, task.ridge(1.0), 20000, 1e-9)
    assert converged
    assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()
    assert values[-1] < values[0]
    # The gradient by hand: |g| <= beta at zero, g = -beta sign(W) elsewhere.
    ones, R = with_ones(X), cosine_distances(Y.T)
    gradient = ones.T @ (ones @ W - Y) + weights.alpha * W @ R
    gradient += weights.gamma * np.vstack([S, np.zeros(4)]) * W
    zero = W == 0
    assert (np.abs(gradient[zero]) <= weights.beta + 1e-5).all()
    np.testing.assert_allclose(gradient[~zero], -weights.beta * np.sign(W[~zero]), atol=1e-5)


def test_no_point_nearby_is_lower(problem):
    X, Y = problem
    S = fisher_scatter(X, Y > 0)
    task, weights = Problem(X, Y > 0, fisher=True), Weights(0.5, 1.0, 0.05)
    W = solve(task, weights, task.ridge(1.0), 20000, 1e-10)[0]
    lowest = minimize(
        lambda w: naive.sparse_objective(X, Y, w.reshape(7, 4), 0.5, 1.0, 0.05, S),
        W.ravel() + 0.01 * np.random.default_rng(0).normal(size=28),
        method="Powell",
        options={"xtol": 1e-8, "ftol": 1e-12, "maxiter": 5},
    ).fun
    assert task.objective(W, weights, task.gram(W)) <= lowest + 1e-8


def test_without_penalties_it_is_least_squares(problem):
    X, Y = problem
    clf = LLSF(alpha=0, beta=0, max_iter=20000, tol=1e-10).fit(X, Y)
    expected = np.linalg.lstsq(with_ones(X), Y, rcond=None)[0]
    np.testing.assert_allclose(clf.coef_.T, expected[:-1], atol=1e-6)


def test_jfsc_without_fishers_term_is_llsf(problem):
    X, Y = problem
    llsf = LLSF(0.5, 0.4, 2.0).fit(X, Y)
    jfsc = JFSC(0.5, 0.4, gamma=0.0, eta=2.0).fit(X, Y)
    np.testing.assert_allclose(jfsc.coef_, llsf.coef_, atol=1e-12)
    np.testing.assert_allclose(jfsc.objectives_, llsf.objectives_)
    other = JFSC(0.5, 0.4, gamma=0.1, eta=2.0).fit(X, Y)
    assert np.abs(other.coef_ - llsf.coef_).max() > 0.01


def test_the_ridge_start(problem):
    X, Y = problem
    ones = with_ones(X)
    for rows in (X, X[:4]):
        ones = with_ones(rows)
        expected = np.linalg.solve(ones.T @ ones + 0.3 * np.eye(7), ones.T @ Y[: len(rows)])
        for form in (np.asarray, sp.csr_matrix):
            task = Problem(form(rows), Y[: len(rows)] > 0)
            np.testing.assert_allclose(task.ridge(0.3), expected, atol=1e-9)


@pytest.mark.parametrize(("density", "n_features"), [(1.0, 20), (0.001, 300), (0.2, 300)])
def test_products_and_norm_are_those_of_x(density, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, n_features)) * (rng.random((50, n_features)) < density)
    Y = rng.random((50, 3)) < 0.5
    ones = with_ones(X)
    W = rng.normal(size=(n_features + 1, 3))
    for form in (np.asarray, sp.csr_matrix):
        task = Problem(form(X), Y)
        np.testing.assert_allclose(task.gram(W), ones.T @ (ones @ W), atol=1e-9)
        np.testing.assert_allclose(task.cross, ones.T @ Y)
        np.testing.assert_allclose(task.gram_norm, np.linalg.norm(ones, 2) ** 2)


def test_unbounded_settings_are_reported_not_returned(problem):
    X, Y = problem
    with pytest.raises(
        UnboundedError, match=r"alpha=10000, beta=0.1: .* unbounded .* smaller alpha"
    ):
        LLSF(alpha=1e4).fit(X, Y)
    with pytest.raises(ValueError, match="use a smaller alpha or gamma"):
        JFSC(gamma=1e4).fit(X, Y)


def test_settings_are_unbounded_where_the_curvature_says_so(problem):
    """LLSF with beta = 0 has a minimum as long as lambda_min(X'X) + alpha lambda_min(R) > 0."""
    X, Y = problem
    ones = with_ones(X)
    limit = np.linalg.eigvalsh(ones.T @ ones)[0] / -np.linalg.eigvalsh(cosine_distances(Y.T))[0]
    found = LLSF(alpha=0.95 * limit, beta=0, max_iter=50000, tol=1e-6).fit(X, Y)
    assert np.isfinite(found.coef_).all()
    with pytest.raises(UnboundedError):
        LLSF(alpha=1.2 * limit, beta=0, max_iter=50000).fit(X, Y)


def test_iterations_used_up_are_reported(problem):
    X, Y = problem
    with pytest.warns(UserWarning, match="did not converge .* within max_iter=2 iterations"):
        clf = LLSF(max_iter=2).fit(X, Y)
    assert clf.n_iter_ == 2
    assert LLSF(tol=1e-1).fit(X, Y).n_iter_ < LLSF(tol=1e-8).fit(X, Y).n_iter_


def test_beta_makes_it_sparse_and_alpha_couples(problem):
    X, Y = problem
    zeros = [np.mean(LLSF(beta=beta).fit(X, Y).coef_ == 0) for beta in (0.0, 5.0, 1e4)]
    assert zeros[0] == 0
    assert 0 < zeros[1] < 1
    assert zeros[2] == 1
    assert np.abs(LLSF(alpha=0).fit(X, Y).coef_ - LLSF(alpha=2).fit(X, Y).coef_).max() > 0.005


def test_the_start_is_heard(problem):
    X, Y = problem
    first = [LLSF(gamma=g).fit(X, Y).objectives_[0] for g in (0.1, 100.0)]
    assert first[0] != first[1]
    first = [JFSC(eta=eta).fit(X, Y).objectives_[0] for eta in (0.1, 100.0)]
    assert first[0] != first[1]


def test_soft_threshold():
    np.testing.assert_allclose(soft_threshold(np.array([-3.0, -0.5, 0.0, 2.0]), 1.0), [-2, 0, 0, 1])
