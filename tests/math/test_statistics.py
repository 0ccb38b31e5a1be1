import itertools
from dataclasses import asdict

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from imcc._array.array import one_hot
from imcc._math.maps import Statistics


def problem(seed, n=23):
    rng = np.random.default_rng(seed)
    clusters = np.stack([rng.integers(5, size=n), rng.integers(5, 10, size=n)], axis=1)
    psi, Y = rng.normal(size=(n, 4)), np.where(rng.random((n, 3)) < 0.4, 1.0, -1.0)
    return psi, Y, one_hot(clusters, 10, psi)


def same(a, b, atol=1e-12):
    for name, value in asdict(a).items():
        np.testing.assert_allclose(value, asdict(b)[name], atol=atol, err_msg=name)


def test_the_sums_are_what_they_say():
    psi, Y, P = problem(0)
    sums, dense = Statistics.of_rows(psi, Y, P), P.toarray()
    np.testing.assert_allclose(sums.gram, psi.T @ psi)
    np.testing.assert_allclose(sums.cross, psi.T @ Y)
    np.testing.assert_allclose(sums.cluster_sums, dense.T @ psi)
    np.testing.assert_allclose(sums.cluster_labels, dense.T @ Y)
    np.testing.assert_array_equal(sums.sizes, dense.sum(axis=0))
    assert sums.n_rows == 23
    same(Statistics.of_rows(sp.csr_array(psi), Y, P), sums)


@given(st.integers(0, 100), st.lists(st.integers(1, 22), max_size=4))
@settings(max_examples=50, deadline=None)
def test_parts_add_up_to_the_whole(seed, cuts):
    psi, Y, P = problem(seed)
    edges = [0, *sorted(set(cuts)), 23]
    parts = [Statistics.of_rows(psi[a:b], Y[a:b], P[a:b]) for a, b in itertools.pairwise(edges)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    same(total, Statistics.of_rows(psi, Y, P))
