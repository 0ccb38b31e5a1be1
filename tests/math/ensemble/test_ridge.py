"""Ridge regression of the ensemble: exact against fits without the rows, the slow way."""

import numpy as np
import pytest

from imcc._math.ensemble import ridge
from imcc._math.ensemble.members import Gram, Labels, fit_kernel, fit_landmarks
from imcc._math.ensemble.ridge import solve_features, solve_kernel
from tests.backends import array, host
from tests.naive import ensemble as naive

PENALTY = 0.3


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """Two labels, 16 rows of 4 features, or 8 x 8 kernel values at a time."""
    monkeypatch.setattr(ridge, "_ENTRIES", 80)


def make(n=40, q=3, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, 4)).astype(np.float32)
    Y = np.sign(np.tanh(X @ rng.standard_normal((4, q))) + 0.5 * rng.standard_normal((n, q)))
    return X, Y, rng.uniform(0.5, 2.0, n)


def rbf(X, width=2.0):
    X = X.astype(np.float64)
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * width**2))


def groups_of(grouped, n=40):
    rows = np.arange(n)
    return np.array_split(np.random.RandomState(3).permutation(n), 7) if grouped else rows[:, None]


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_one_factor_gives_the_model_and_the_scores_without_each_row(library, weighted, grouped):
    X, Y, weight = make()
    K, groups, v = rbf(X), groups_of(grouped), weight if weighted else None
    moved = [x if library == "numpy" or x is None else array(library, x) for x in (K.copy(), Y, v)]
    found = solve_kernel(moved[0], moved[1], PENALTY, moved[2], groups if grouped else None)
    held_out, coef, intercept = (x if library == "numpy" else host(library, x) for x in found)
    A, b = naive.fit(K, Y, PENALTY, v)
    np.testing.assert_allclose(K @ coef + intercept, K @ A + b, atol=1e-9)
    np.testing.assert_allclose(held_out, naive.leave_out(K, Y, PENALTY, groups, v), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_features_are_a_linear_kernel(weighted, grouped):
    X, Y, weight = make()
    Z, groups, v = X.astype(np.float64), groups_of(grouped), weight if weighted else None
    found = solve_features(Z, Y, PENALTY, v, groups if grouped else None)
    A, b = naive.fit(Z @ Z.T, Y, PENALTY, v)
    np.testing.assert_allclose(Z @ found.coef + found.intercept, Z @ Z.T @ A + b, atol=1e-8)
    expected = naive.leave_out(Z @ Z.T, Y, PENALTY, groups, v)
    np.testing.assert_allclose(found.held_out, expected, atol=1e-8)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_a_factor_in_float32_is_refined_to_float64(penalty, offset):
    """Also for small penalties, and for rows that are far from zero (which are centred before)."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 5)) + offset
    Y = np.sign(X[:, :2] - offset + rng.standard_normal((300, 2)))
    rows = (X - X.mean(axis=0)).astype(np.float32)
    gram, labels = Gram("rbf", 3.0, rows), Labels(Y)
    exact = fit_kernel(gram, labels, penalty, "float64")
    coarse = fit_kernel(gram, labels, penalty, "float32")
    K = gram.matrix()
    np.testing.assert_allclose(K @ coarse.coef, K @ exact.coef, atol=1e-5)
    np.testing.assert_allclose(coarse.intercept, exact.intercept, atol=1e-5)
    # The diagonal of the inverse is that of float32.
    np.testing.assert_allclose(
        coarse.held_out, exact.held_out, atol=0.02 if penalty < 0.01 else 2e-3
    )


def unknown_labels(Y):
    """Two of three labels are unknown in some rows, one of them in others."""
    known = np.ones(Y.shape, dtype=bool)
    known[:13, 1] = False
    known[5:20, 2] = False
    return known


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("marks", [False, True])
def test_each_label_is_learned_from_the_rows_in_which_it_is_known(weighted, grouped, marks):
    """With all rows as landmarks, these are the exact models."""
    X, Y, weight = make()
    known, v = unknown_labels(Y), weight if weighted else None
    numbers = np.arange(40) // 3 if grouped else None
    labels = Labels(np.where(known, Y, 0.0), known, v, numbers)
    gram, K = Gram("rbf", 2.0, X), rbf(X)
    if marks:
        found = fit_landmarks(gram, labels, PENALTY, np.arange(40))
    else:
        found = fit_kernel(gram, labels, PENALTY, "float64")
    for j in range(3):
        rows = np.flatnonzero(known[:, j])
        own, y = K[np.ix_(rows, rows)], Y[rows, j : j + 1]
        w = None if v is None else v[rows]
        A, b = naive.fit(own, y, PENALTY, w)
        scores = K[:, rows] @ A[:, 0] + b[0]
        tolerance = 2e-3 if marks else 1e-8
        found_scores = K @ found.coef[:, j] + found.intercept[j]
        np.testing.assert_allclose(found_scores, scores, atol=tolerance)
        groups = [np.flatnonzero(rows // 3 == g) for g in range(14)] if grouped else None
        groups = np.arange(len(rows))[:, None] if groups is None else [g for g in groups if len(g)]
        held_out = naive.leave_out(own, y, PENALTY, groups, w)[:, 0]
        np.testing.assert_allclose(found.held_out[rows, j], held_out, atol=tolerance)
        # The model of a label never saw the rows in which it is unknown.
        others = ~known[:, j]
        np.testing.assert_allclose(found.held_out[others, j], scores[others], atol=tolerance)


def test_filled_labels_have_the_means_of_the_known_ones():
    _, Y, _ = make()
    known = unknown_labels(Y)
    filled = Labels(np.where(known, Y, 0.0), known).filled()
    assert filled.known is None
    for j in range(3):
        np.testing.assert_allclose(filled.signs[~known[:, j], j], Y[known[:, j], j].mean())
        np.testing.assert_array_equal(filled.signs[known[:, j], j], Y[known[:, j], j])
