"""The metrics of many settings at once are those of one at a time, ties and all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imcc.metrics import METRICS, LabelMetrics
from tests.backends import BACKENDS, array, backend, host
from tests.naive import metrics as naive


@pytest.fixture(params=BACKENDS)
def library(request):
    backend(request.param)
    return request.param


def means(library, relevant, scores, names=tuple(METRICS)):
    """Return the metrics of scores of shape (n_settings, n_rows, n_labels)."""
    given = array(library, scores.transpose(2, 0, 1))
    return host(library, LabelMetrics(relevant, like=given).means(given, names))


def expected(relevant, scores):
    scores = np.ascontiguousarray(scores.transpose(2, 0, 1))
    return LabelMetrics(relevant).means(scores, list(METRICS))


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
def test_the_same_as_for_numpy(library, density):
    rng = np.random.default_rng(0)
    relevant = rng.random((23, 7)) < density
    # Few different values: many ties, also with 0, the threshold.
    scores = rng.integers(-3, 3, size=(5, 23, 7)) / 2.0
    np.testing.assert_allclose(
        means(library, relevant, scores), expected(relevant, scores), atol=1e-14
    )


def test_empty_and_full_rows_are_left_out(library):
    rng = np.random.default_rng(1)
    relevant = rng.random((12, 4)) < 0.5
    relevant[:3], relevant[3:5] = False, True
    scores = rng.normal(size=(3, 12, 4))
    np.testing.assert_allclose(means(library, relevant, scores), expected(relevant, scores))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**16))
def test_any_small_table(n_rows, n_labels, n_settings, seed):
    backend("torch")
    rng = np.random.default_rng(seed)
    relevant = rng.random((n_rows, n_labels)) < rng.random()
    scores = rng.integers(-2, 3, size=(n_settings, n_rows, n_labels)).astype(float)
    found = means("torch", relevant, scores)
    for k in range(n_settings):
        slow = naive.evaluate(relevant, scores[k])
        np.testing.assert_allclose(found[:, k], [slow[name] for name in METRICS], atol=1e-14)


def test_blocks_change_nothing(library, config):
    rng = np.random.default_rng(2)
    relevant, scores = rng.random((40, 9)) < 0.4, rng.normal(size=(6, 40, 9))
    whole = means(library, relevant, scores)
    config(device_entries=9 * 6 * 5)  # five pairs at a time
    np.testing.assert_allclose(means(library, relevant, scores), whole, atol=1e-15)


def test_some_of_the_metrics_in_any_order(library):
    rng = np.random.default_rng(3)
    relevant, scores = rng.random((10, 5)) < 0.4, rng.normal(size=(2, 10, 5))
    names = ["coverage", "average_precision", "hamming_loss"]
    whole = dict(zip(METRICS, means(library, relevant, scores), strict=True))
    np.testing.assert_array_equal(
        means(library, relevant, scores, names), [whole[name] for name in names]
    )


def test_weights_and_unknown_labels(library):
    rng = np.random.default_rng(4)
    known = rng.random((12, 4)) < 0.7
    relevant = (rng.random((12, 4)) < 0.5) & known
    scores, weights = rng.normal(size=(4, 3, 12)), rng.random(12)
    on_host = LabelMetrics(relevant, known, weights).means(scores, list(METRICS))
    given = array(library, scores)
    computed = LabelMetrics(relevant, known, weights, like=given).means(given, list(METRICS))
    np.testing.assert_allclose(host(library, computed), on_host, atol=1e-14)
