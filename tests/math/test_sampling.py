import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from imcc._math.sampling import Sample, row_keys, sample_rows


@given(st.integers(0, 2**31 - 1), st.lists(st.integers(1, 59), max_size=4), st.integers(1, 80))
@settings(max_examples=50, deadline=None)
def test_the_sample_does_not_depend_on_the_parts(seed, cuts, size):
    X = np.arange(120.0).reshape(60, 2)
    edges = [0, *sorted(set(cuts)), 60]
    parts = [Sample.of_rows(X[a:b], a, size, seed) for a, b in itertools.pairwise(edges)]
    expected = sample_rows(X, size, seed)
    for order in (parts, parts[::-1]):
        merged = order[0]
        for part in order[1:]:
            merged = merged.merge(part, size)
        np.testing.assert_array_equal(merged.rows, expected)
        np.testing.assert_array_equal(X[merged.numbers], expected)


def test_keys_differ_between_rows_and_seeds_and_are_even():
    keys = row_keys(0, 0, 100_000)
    assert len(np.unique(keys)) == 100_000
    assert not np.intersect1d(keys, row_keys(1, 0, 100_000)).size
    np.testing.assert_array_equal(row_keys(0, 500, 10), keys[500:510])
    counts = np.bincount((keys >> np.uint64(60)).astype(int))
    assert abs(counts - 6250).max() < 400  # five standard deviations


def test_every_row_is_as_likely():
    drawn = [sample_rows(np.arange(50.0)[:, np.newaxis], 10, seed).ravel() for seed in range(500)]
    counts = np.bincount(np.concatenate(drawn).astype(int), minlength=50)
    assert abs(counts - 100).max() < 50


def test_sparse_rows_and_small_sets():
    X = np.arange(40.0).reshape(20, 2)
    assert sample_rows(X, 20, 0) is X
    drawn = sample_rows(sp.csr_matrix(X), 7, 3)
    np.testing.assert_array_equal(drawn.toarray(), sample_rows(X, 7, 3))
    a, b = (Sample.of_rows(sp.csr_array(X[i : i + 10]), i, 7, 3) for i in (0, 10))
    np.testing.assert_array_equal(a.merge(b, 7).rows.toarray(), drawn.toarray())


def test_the_sample_of_many_parts():
    X = np.arange(20_000.0)[:, np.newaxis]
    starts = range(0, 20_000, 500)
    parts = [Sample.of_rows(X[a : a + 500], a, 50, 1) for a in starts]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part, 50)
    np.testing.assert_array_equal(merged.rows, sample_rows(X, 50, 1))
    smaller = sample_rows(X, 20, 1)
    np.testing.assert_array_equal(merged.smallest(20).rows, smaller)
    assert merged.smallest(60) is merged
