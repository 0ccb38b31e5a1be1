"""The closed form, in its three shapes, against slow twins and against the authors' program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imcc._math.clustering import virtual_examples
from imcc._math.kernels import LinearKernel, RBFKernel
from imcc._math.maps import IdentityMap, KernelMap, feature_sums, warn_if_indefinite
from imcc._math.solver import Setting, solve_features, solve_kernel
from tests.naive import imcc as naive

WEIGHTS = [(1.0, 1.0, 0.1), (0.0, 1.0, 0.0), (10.0, 0.1, 0.0), (0.0, 0.01, 5.0), (1e3, 1e-3, 1e3)]
SOLVERS = ("spectral", "cholesky")


class Case:
    """A kernel problem with one or two clusterings."""

    def __init__(self, n=40, q=3, clusters=(4,), seed=0, duplicates=True, sigma=1.5):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 3))
        if duplicates:
            self.X[3], self.X[7] = self.X[4], self.X[6]
        self.Y = np.where(rng.random((n, q)) < 0.4, 1.0, -1.0)
        self.X_new = rng.normal(size=(15, 3))
        self.assignments = [np.arange(n) % c for c in clusters]
        stacked = np.stack(
            [
                a + offset
                for a, offset in zip(self.assignments, np.cumsum([0, *clusters]), strict=False)
            ],
            axis=1,
        )
        self.stacked = stacked
        self.virtual = virtual_examples(self.X, self.Y, stacked)
        self.sigma = sigma

    def kernels(self):
        kernel, Z = RBFKernel("rbf"), self.virtual.centers
        pairs = [(self.X, None), (Z, self.X), (self.X_new, self.X)]
        return [kernel.finish(kernel.base(a, b), self.sigma) for a, b in pairs]

    def solve(self, weights, solver):
        K, K_centers, K_new = self.kernels()
        coef, b = solve_kernel(K, K_centers, self.Y, self.virtual, Setting(*weights), solver)
        return K_new @ coef + b

    def naive(self, weights):
        return naive.scores(
            self.X, self.Y, self.X_new, self.assignments, *weights, naive.rbf, self.sigma
        )


@pytest.mark.parametrize("clusters", [(4,), (40,), (5, 3), (6, 6, 2)])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_kernel_solvers_equal_the_least_squares_twin(weights, clusters):
    case = Case(clusters=clusters)
    expected = case.naive(weights)
    # At alpha / beta = 1e6 the twin itself is good to 1e-7 only.
    tolerance = 1e-8 if weights[0] < 1e3 else 1e-6
    for solver in SOLVERS:
        np.testing.assert_allclose(case.solve(weights, solver), expected, atol=tolerance)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    clusters=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    logs=st.tuples(*[st.floats(-3, 3)] * 3),
)
@settings(max_examples=60, deadline=None)
def test_cholesky_and_spectral_agree_anywhere_on_the_grid(seed, n, clusters, logs):
    """Where the Cholesky solver does not refuse, it gives what the spectral one gives."""
    clusters = tuple(min(c, n) for c in clusters)
    case = Case(n=n, clusters=clusters, seed=seed, duplicates=n >= 8)
    weights = tuple(10.0**x for x in logs)
    try:
        found = case.solve(weights, "cholesky")
    except np.linalg.LinAlgError:
        return
    np.testing.assert_allclose(found, case.solve(weights, "spectral"), atol=1e-6)


def test_cholesky_refuses_what_it_cannot_solve():
    """Rows a hair's breadth apart and a centre between them: digits would be lost."""
    case = Case(n=30, duplicates=False)
    case.X[5] = case.X[4] + 1e-5
    case.virtual = virtual_examples(case.X, case.Y, np.arange(30)[:, np.newaxis] // 2)
    case.assignments = [np.arange(30) // 2]
    weights = (1e3, 1e-3, 1e3)
    with pytest.raises(np.linalg.LinAlgError, match="ill-conditioned"):
        case.solve(weights, "cholesky")
    # The kernel matrix is left as it was for the spectral solver.
    for solver in ("auto", "spectral"):
        np.testing.assert_allclose(case.solve(weights, solver), case.naive(weights), atol=1e-4)


@pytest.mark.parametrize("clusters", [(4,), (5, 3)])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_primal_solvers_equal_the_least_squares_twin(weights, clusters):
    case = Case(clusters=clusters)
    expected = naive.linear_scores(case.X, case.Y, case.X_new, case.assignments, *weights)
    feature_map = IdentityMap.fit(case.X)
    sums = feature_sums(feature_map, case.X, case.Y, case.virtual.membership)
    psi_z, psi_new = feature_map.transform(case.virtual.centers), feature_map.transform(case.X_new)
    for solver in SOLVERS:
        W, b = solve_features(sums, psi_z, case.virtual, Setting(*weights), solver)
        np.testing.assert_allclose(psi_new @ W + b, expected, atol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS[:4])
def test_the_solution_is_a_minimum(weights):
    """Steps in any direction raise the objective."""
    case = Case(clusters=(6, 3))
    K, K_centers, *_ = case.kernels()
    setting = Setting(*weights)
    coef, intercept = solve_kernel(K, K_centers, case.Y, case.virtual, setting, "cholesky")
    K = case.kernels()[0]
    psi, psi_z = naive.kernel_features(K, K_centers)
    blocks = [
        (psi_z[a.min() : a.max() + 1], case.virtual.soft_labels[a.min() : a.max() + 1], a - a.min())
        for a in case.stacked.T
    ]
    W = np.linalg.pinv(psi) @ K @ coef

    def value(W, b):
        return naive.objective(psi, blocks, case.Y, W, b, *weights)

    best = value(W, intercept)
    rng = np.random.default_rng(0)
    for _ in range(10):
        step = rng.normal(size=W.shape) * 1e-3
        assert value(W + step, intercept) > best
        assert value(W, intercept + rng.normal(size=3) * 1e-3) > best


@pytest.mark.parametrize("setting", range(1, 8))
def test_authors_program_and_exact_arithmetic(oracle, setting):
    """Eq. 20 as the authors solve it, and the same in 60-digit arithmetic."""
    expected = oracle.settings[setting]
    weights = tuple(expected["weights"].values())
    X, Y, X_new = oracle.X, oracle.Y.astype(float), oracle.X_new
    sigma = naive.mean_distance(X)
    Z, T, assignment = naive.centers_and_soft_labels(X, Y, expected["assignment"])
    K, K_centers, K_new = (naive.rbf(A, X, sigma) for A in (X, Z, X_new))

    # The twin reproduces the program, its 1e-10 on the diagonal included.
    A, b = naive.equation_20(K, K_centers, Y, T, assignment, *weights, jitter=1e-10)
    np.testing.assert_allclose(
        K_new @ A + b, expected["scores"], atol=1e-4 if setting == 3 else 1e-9
    )
    # The solvers reproduce the exact solution of the same equations.
    virtual = virtual_examples(X, Y, assignment[:, np.newaxis])
    for solver in SOLVERS:
        coef, b = solve_kernel(K.copy(), K_centers, Y, virtual, Setting(*weights), solver)
        np.testing.assert_allclose(K_new @ coef + b, expected["exact"], atol=1e-10)


def test_indefinite_matrices_lose_their_negative_part():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    values = np.array([3.0, 2.0, 1.0, 0.5, -0.2, -1.0])
    kernel_map = KernelMap.fit((Q * values) @ Q.T)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        warn_if_indefinite(kernel_map.negative)
    np.testing.assert_allclose(np.sort(kernel_map.eigenvalues), [0.5, 1, 2, 3])
    positive = (Q[:, :4] * values[:4]) @ Q[:, :4].T
    psi = kernel_map.transform((Q * values) @ Q.T)
    np.testing.assert_allclose(psi @ psi.T, positive, atol=1e-12)


def test_linear_kernel_matrix_of_zero_rows_has_no_features():
    kernel_map = KernelMap.fit(LinearKernel("linear").base(np.zeros((4, 2))))
    assert kernel_map.basis.shape == (4, 0)
    assert kernel_map.negative == 0
