"""Leave-one-out from one eigendecomposition equals fitting without each row."""

import numpy as np
import pytest

from imcc._math.ensemble.spectrum import SHRINKAGE, Coupling, Spectrum
from tests.backends import BACKENDS, array, host
from tests.naive import ensemble as naive


def make(n=18, q=3, seed=0, d=4):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    X[3] = X[4]  # a duplicate row
    Y = np.where(X[:, :1] + 0.7 * rng.standard_normal((n, q)) > 0.2, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 4)
    return X, K, Y


def weights(n):
    return np.random.RandomState(1).uniform(0.5, 3, n)


def each(n):
    return [np.array([i]) for i in range(n)]


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0, 1e3])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_brute_force(penalty, weighted):
    _, K, Y = make()
    weight = weights(len(Y)) if weighted else None
    spectrum = Spectrum.of_kernel(K.copy(), weight)
    projected = spectrum.project(Y)
    expected = naive.leave_out(K, Y, penalty, each(len(Y)), weight)
    np.testing.assert_allclose(
        spectrum.leave_one_out(Y, projected, penalty), expected, rtol=1e-7, atol=1e-7
    )
    A, b = spectrum.coefficients(Y, projected, penalty)
    A_slow, b_slow = naive.fit(K, Y, penalty, weight)
    np.testing.assert_allclose(K @ A + b, K @ A_slow + b_slow, atol=1e-7)
    np.testing.assert_allclose(b, b_slow, atol=1e-7)


@pytest.mark.parametrize("eta", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("weighted", [False, True])
def test_coupled_leave_one_out_is_exact_for_a_given_correlation_matrix(eta, weighted):
    _, K, Y = make()
    weight = weights(len(Y)) if weighted else None
    coupling = Coupling.of(Y, weight)
    R = coupling.vectors @ np.diag(coupling.values) @ coupling.vectors.T
    centred = Y - np.average(Y, axis=0, weights=weight)
    covariance = centred.T @ (centred * (1 if weight is None else weight[:, None]))
    d = np.sqrt(np.diag(covariance))
    counts = np.ones(len(Y)) if weight is None else weight
    rarer = np.minimum(counts @ (Y > 0), counts @ (Y < 0))
    shrink = np.sqrt(rarer / (rarer + SHRINKAGE))
    expected = covariance / np.outer(d, d) * np.outer(shrink, shrink)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(R, expected, atol=1e-12)
    spectrum = Spectrum.of_kernel(K.copy(), weight)
    rotated = Y @ coupling.vectors
    penalties = coupling.penalties(0.5, eta)
    loo = spectrum.leave_one_out(rotated, spectrum.project(rotated), penalties)
    L = (1 - eta) * np.eye(Y.shape[1]) + eta * R
    expected = naive.leave_out(K, Y, 0.5, each(len(Y)), weight, L)
    np.testing.assert_allclose(loo @ coupling.vectors.T, expected, rtol=1e-6, atol=1e-6)


def test_several_penalties_share_their_diagonals():
    _, K, Y = make()
    spectrum = Spectrum.of_kernel(K.copy())
    projected = spectrum.project(Y)
    penalties = [0.01, 1.0, 100.0]
    diagonals = spectrum.diagonals(penalties)
    for i, penalty in enumerate(penalties):
        C = np.linalg.inv(K + penalty * np.eye(len(K)))
        np.testing.assert_allclose(diagonals[:, i], np.diag(C), rtol=1e-8)
        np.testing.assert_allclose(
            spectrum.leave_one_out(Y, projected, penalty, diagonals[:, i : i + 1]),
            spectrum.leave_one_out(Y, projected, penalty),
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_features", [3, 30])
def test_features_give_the_kernel_of_their_products(weighted, n_features):
    X, _, Y = make()
    rng = np.random.RandomState(2)
    Phi = X @ rng.standard_normal((X.shape[1], n_features))
    weight = weights(len(Y)) if weighted else None
    spectrum, basis = Spectrum.of_features(Phi.copy(), weight)
    np.testing.assert_allclose(
        (Phi if weight is None else Phi * np.sqrt(weight)[:, None]) @ basis,
        spectrum.vectors,
        atol=1e-10,
    )
    expected = naive.leave_out(Phi @ Phi.T, Y, 0.3, each(len(Y)), weight)
    found = spectrum.leave_one_out(Y, spectrum.project(Y), 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_integer_weights_fit_as_repeated_rows():
    _, K, Y = make()
    weight = np.random.RandomState(0).randint(1, 4, len(Y)).astype(float)
    rows = np.repeat(np.arange(len(Y)), weight.astype(int))
    one = Spectrum.of_kernel(K.copy(), weight)
    other = Spectrum.of_kernel(K[np.ix_(rows, rows)].copy())
    A, b = one.coefficients(Y, one.project(Y), 0.2)
    A2, b2 = other.coefficients(Y[rows], other.project(Y[rows]), 0.2)
    np.testing.assert_allclose(K @ A + b, K[:, rows] @ A2 + b2, atol=1e-8)


@pytest.mark.parametrize("name", BACKENDS)
def test_other_libraries(name):
    _, K, Y = make()
    weight = weights(len(Y))
    expected = Spectrum.of_kernel(K.copy(), weight)
    expected = expected.leave_one_out(Y, expected.project(Y), 0.3)
    Y_own = array(name, Y)
    spectrum = Spectrum.of_kernel(array(name, K), array(name, weight))
    found = spectrum.leave_one_out(Y_own, spectrum.project(Y_own), 0.3)
    np.testing.assert_allclose(host(name, found), expected, atol=1e-8)
