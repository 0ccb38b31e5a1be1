"""The logistic maps: equal to SciPy's minimum, and sensible where there is little to go by."""

import warnings

import numpy as np
import pytest

from imcc._math.logistic import fit_logistic_maps, sigmoid
from tests.backends import BACKENDS, array, host
from tests.naive import logistic as naive


def make(n=120, q=5, seed=0, spread=0.3):
    rng = np.random.RandomState(seed)
    scores = rng.standard_normal((n, q)) * spread - 0.4
    slopes = np.linspace(1, 8, q)
    on = rng.random_sample((n, q)) < 1 / (1 + np.exp(-(slopes * scores - 0.5)))
    return scores, on


def weights(n, seed=1):
    return np.random.RandomState(seed).randint(0, 4, n).astype(float)


def mask(shape, seed=2):
    return np.random.RandomState(seed).random_sample(shape) < 0.7


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_scipy(weighted, masked):
    scores, on = make()
    weight = weights(len(on)) if weighted else None
    known = mask(on.shape) if masked else None
    maps = fit_logistic_maps(scores, on, weight, known)
    slopes, offsets = naive.fit(scores, on, weight, known)
    np.testing.assert_allclose(maps.slope, slopes, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(maps.offset, offsets, rtol=2e-4, atol=2e-4)


def test_the_gradient_is_zero_at_the_solution():
    """To more digits than SciPy's differences give."""
    scores, on = make(n=3000, q=7)
    maps = fit_logistic_maps(scores, on)
    s, m = maps.scale, scores.mean(axis=0)
    np.testing.assert_allclose(s, np.sqrt(scores.var(axis=0).mean()))
    residual = sigmoid(maps.log_odds(scores)) - on
    a, c = maps.slope * s, maps.offset + maps.slope * m
    of_slope = np.sum(residual * (scores - m) / s, axis=0) + 0.2 * (a - maps.common_slope * s)
    of_offset = residual.sum(axis=0) + 1 / (1 + np.exp(-c)) - 0.5
    assert np.abs(of_slope).max() < 1e-6
    assert np.abs(of_offset).max() < 1e-6


def test_wrong_way_scores_get_slope_zero_and_the_base_rate():
    scores, on = make(n=400, q=3)
    scores[:, 1] = -1.0 * on[:, 1] + 0.1 * scores[:, 1]
    maps = fit_logistic_maps(scores, on)
    assert maps.slope[1] == 0
    k, n = on[:, 1].sum(), len(on)
    np.testing.assert_allclose(maps.offset[1], np.log((k + 0.5) / (n - k + 0.5)))
    assert (maps.slope[[0, 2]] > 0).all()
    slopes, offsets = naive.fit(scores, on)
    np.testing.assert_allclose(maps.slope, slopes, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(maps.offset, offsets, rtol=2e-4, atol=2e-4)


def test_all_labels_the_wrong_way():
    rng = np.random.RandomState(0)
    on = rng.random_sample((50, 3)) < 0.3
    maps = fit_logistic_maps(-2.0 * on, on)
    assert (maps.slope == 0).all()
    assert maps.common_slope == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_constant_rare_and_separated_labels_are_finite(scale):
    rng = np.random.RandomState(0)
    n = 500
    on = np.zeros((n, 6), dtype=bool)
    on[:, 0] = rng.random_sample(n) < 0.5
    on[:3, 1] = True  # rare
    on[:, 3] = True  # always on; label 2 is never on
    on[: n // 2, 4] = True  # perfectly separated
    on[:7, 5] = True  # with constant scores
    scores = np.where(on, 0.5, -0.5) + 0.6 * rng.standard_normal(on.shape)
    scores[:, 2], scores[:, 5] = -1.0, -0.9
    scores[:, 4] = np.where(on[:, 4], 1.0, -1.0) + 0.01 * rng.standard_normal(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maps = fit_logistic_maps(scores * scale, on)
        p = sigmoid(maps.log_odds(scores * scale))
    assert np.isfinite(maps.slope).all()
    assert np.isfinite(maps.offset).all()
    assert (maps.slope >= 0).all()
    np.testing.assert_allclose(p[:, 2], 0.5 / (n + 1))
    np.testing.assert_allclose(p[:, 5], 7.5 / (n + 1))
    assert p[:, 3].mean() > 0.99
    assert p[on[:, 4], 4].min() > 0.95
    assert p[~on[:, 4], 4].max() < 0.05
    assert 0 < p[:3, 1].mean() < 1


def test_the_unit_of_the_scores_does_not_matter():
    scores, on = make()
    one = sigmoid(fit_logistic_maps(scores, on).log_odds(scores))
    other = sigmoid(fit_logistic_maps(1e4 * scores + 3, on).log_odds(1e4 * scores + 3))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_integer_weights_are_repeated_rows_and_zero_leaves_out():
    scores, on = make()
    weight = weights(len(on))
    rows = np.repeat(np.arange(len(on)), weight.astype(int))
    one = fit_logistic_maps(scores, on, weight)
    other = fit_logistic_maps(scores[rows], on[rows])
    np.testing.assert_allclose(one.slope, other.slope, rtol=1e-9)
    np.testing.assert_allclose(one.offset, other.offset, rtol=1e-9)


def test_unknown_cells_may_hold_anything():
    scores, on = make()
    known = mask(on.shape)
    one = fit_logistic_maps(scores, on, known=known)
    scores[~known], on[~known] = np.nan, True
    other = fit_logistic_maps(scores, on, known=known)
    np.testing.assert_array_equal(one.slope, other.slope)
    np.testing.assert_array_equal(one.offset, other.offset)


def test_a_label_nobody_knows_gets_even_odds():
    scores, on = make()
    known = np.ones(on.shape, dtype=bool)
    known[:, 2] = False
    maps = fit_logistic_maps(scores, on, known=known)
    assert maps.offset[2] == 0
    np.testing.assert_allclose(maps.slope[2], maps.common_slope)


def test_one_row_and_one_label():
    maps = fit_logistic_maps(np.array([[0.3]]), np.array([[True]]))
    assert maps.slope[0] == 0
    np.testing.assert_allclose(sigmoid(maps.log_odds(np.array([[0.3]]))), 0.75)


@pytest.mark.parametrize("name", BACKENDS)
def test_other_libraries(name):
    scores, on = make()
    known, weight = mask(on.shape), weights(len(on))
    expected = fit_logistic_maps(scores, on, weight, known)
    found = fit_logistic_maps(array(name, scores), array(name, on), weight, known)
    np.testing.assert_allclose(host(name, found.slope), expected.slope, rtol=1e-9)
    np.testing.assert_allclose(host(name, found.offset), expected.offset, rtol=1e-9)


def test_sigmoid_at_the_ends():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sigmoid(np.array([-1000.0, -40.0, 0.0, 40.0, 1000.0]))
    np.testing.assert_allclose(found, [0, np.exp(-40), 0.5, 1, 1], rtol=1e-12)


def test_scores_must_be_finite():
    scores, on = make()
    with pytest.raises(ValueError, match="finite"):
        fit_logistic_maps(np.full_like(scores, np.nan), on)
