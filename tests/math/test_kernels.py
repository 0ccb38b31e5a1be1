import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels

from imcc._array import linalg
from imcc._math.kernels import check_kernel, choose_width, squared_distances
from tests.backends import array, host
from tests.calls import recorded_calls
from tests.naive import imcc as naive


@pytest.fixture
def rows():
    return np.random.default_rng(0).random((37, 4)) * (
        np.random.default_rng(1).random((37, 4)) < 0.6
    )


def values(kernel, X, Z=None, width=None):
    return kernel.finish(kernel.base(X, Z), width)


def expected(name, X, Z, width):
    if name == "chi2":
        return chi2_kernel(X, Z, gamma=1 / width)
    return getattr(naive, name)(X, Z, width)


@pytest.mark.parametrize("block", [2**20, 50, 1])
@pytest.mark.parametrize("n_others", [None, 9, 50])
def test_distances_of_sparse_rows_on_a_device_are_computed_in_blocks(
    block, n_others, rows, config, monkeypatch
):
    config(device_entries=block)
    monkeypatch.setattr(linalg, "_DENSE_ENTRIES", block)
    others = None if n_others is None else np.tile(rows, (2, 1))[:n_others] + 0.1
    like = array("torch", 0.0)
    found = squared_distances(
        sp.csr_matrix(rows), None if others is None else sp.csr_matrix(others), like=like
    )
    expected = cdist(rows, rows if others is None else others, "sqeuclidean")
    np.testing.assert_allclose(host("torch", found), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "linear"])
@pytest.mark.parametrize("block", [2**20, 50])
def test_values_dense(name, block, rows, config):
    config(kernel_entries=block)
    kernel = check_kernel(name)
    width = 0.7 if kernel.has_width else None
    other = rows[:9] + 0.1
    np.testing.assert_allclose(
        values(kernel, rows, None, width), expected(name, rows, rows, width), atol=1e-12
    )
    np.testing.assert_allclose(
        values(kernel, other, rows, width), expected(name, other, rows, width), atol=1e-12
    )


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("sides", ["both", "left", "right"])
def test_values_sparse(name, sides, rows):
    kernel = check_kernel(name)
    width = 0.7 if kernel.has_width else None
    left = sp.csr_matrix(rows) if sides != "right" else rows
    right = sp.csr_matrix(rows[:9]) if sides != "left" else rows[:9]
    found = values(kernel, left, right, width)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected(name, rows, rows[:9], width), atol=1e-12)


def test_sparse_rows_are_never_densified_as_a_whole(config):
    """Only blocks of the product may become dense."""
    wide = sp.random(60, 5000, density=0.01, format="csr", random_state=0)
    config(kernel_entries=600)
    expected = naive.rbf(wide.toarray(), wide.toarray(), 3.0)
    with recorded_calls(sp.csr_matrix.toarray) as calls:
        found = values(check_kernel("rbf"), wide, None, 3.0)
    seen = [call.arguments["self"].shape for call in calls]
    assert seen
    assert all(shape[0] <= 10 and shape[1] <= 60 for shape in seen)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("name", "metric"), [("rbf", "euclidean"), ("laplacian", "cityblock")])
@pytest.mark.parametrize("block", [2**20, 50])
def test_width_rule_is_the_mean_pairwise_distance(name, metric, block, rows, config):
    config(kernel_entries=block)
    kernel = check_kernel(name)
    base = kernel.base(rows)
    mean = naive.mean_distance(rows, metric)
    assert choose_width(kernel, base, "mean_distance", 1.0) == pytest.approx(mean, rel=1e-12)
    assert choose_width(kernel, base, "mean_distance", 0.5) == pytest.approx(mean / 2, rel=1e-12)
    assert choose_width(kernel, base, 3.0, 2.0) == 6.0
    assert kernel.mean_distance_of(rows) == pytest.approx(mean, rel=1e-12)
    weights = np.random.default_rng(0).uniform(0.1, 0.9, len(rows))
    weighted = naive.weighted_mean_distance(rows, weights, metric)
    assert kernel.mean_distance_of(rows, weights) == pytest.approx(weighted, rel=1e-12)


def test_width_rule_needs_different_rows():
    kernel = check_kernel("rbf")
    for rows in (np.ones((5, 2)), np.ones((1, 2))):
        with pytest.raises(ValueError, match="all training rows are identical"):
            choose_width(kernel, kernel.base(rows), "mean_distance", 1.0)
        assert choose_width(kernel, kernel.base(rows), 2.0, 1.0) == 2.0


def test_origin_saves_digits_far_from_zero():
    """Distances between rows far away from the origin; products of uncentred rows lose them."""
    rows = np.random.default_rng(0).normal(size=(20, 3))
    far = rows + 1e7
    kernel = check_kernel("rbf")
    base = kernel.base(far - kernel.origin(far))
    np.testing.assert_allclose(base, kernel.base(rows), atol=1e-7)
    assert np.abs(kernel.base(far) - kernel.base(rows)).max() > 1e-3
    assert kernel.origin(sp.csr_matrix(rows)) is None


@pytest.mark.parametrize("name", ["poly", "sigmoid", "cosine"])
def test_other_names_are_scikit_learns(name, rows):
    kernel = check_kernel(name)
    assert not kernel.has_width
    np.testing.assert_allclose(values(kernel, rows), pairwise_kernels(rows, metric=name))
    found = values(check_kernel("poly", {"degree": 2}), rows, rows[:3])
    np.testing.assert_allclose(found, pairwise_kernels(rows, rows[:3], metric="poly", degree=2))


def test_callable_kernels(rows):
    kernel = check_kernel(lambda x, z: float(x @ z) ** 2)
    np.testing.assert_allclose(values(kernel, rows, rows[:4]), (rows @ rows[:4].T) ** 2)


@pytest.mark.parametrize(
    ("kernel", "parameters", "message"),
    [
        ("precomputed", None, "virtual examples are means of training rows"),
        ("gauss", None, "kernel must be a callable or one of"),
        (3, None, "got 3"),
        (None, None, "got None"),
        ("rbf", {"gamma": 2}, "kernel_params"),
    ],
)
def test_bad_kernels_are_named(kernel, parameters, message):
    with pytest.raises(ValueError, match=message):
        check_kernel(kernel, parameters)
