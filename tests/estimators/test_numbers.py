"""Numbers that are hard to compute with: the right result or an error that says why, never NaN."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._utils.validation import check_finite_result
from imcc.baselines import KernelRidgeBaseline
from tests.backends import BACKENDS, array

random = np.random.default_rng(1)
X = random.normal(size=(40, 5))
Y = (X[:, :3] + 0.5 * random.normal(size=(40, 3)) > 0).astype(int)
MODELS = [
    {},
    {"kernel": "laplacian"},
    {"kernel": "linear"},
    {"span": "augmented", "solver": "spectral"},
    {"approximation": "nystroem", "n_components": 10},
    {"approximation": "nystroem", "n_components": 10, "landmarks": "random"},
    {"approximation": "fourier", "n_components": 10},
]
IDS = [" ".join(map(str, model.values())) or "rbf" for model in MODELS]


def stored_twice(X, kind=sp.csr_matrix):
    """The same matrix with each entry stored as the sum of two, the columns in reverse."""
    dense = np.where(np.abs(X) > 0.3, X, 0.0)
    plain = kind(dense)
    indptr = 2 * plain.indptr
    order = np.concatenate(
        [
            np.repeat(np.arange(a, b)[::-1], 2)
            for a, b in zip(plain.indptr[:-1], plain.indptr[1:], strict=True)
        ]
    )
    doubled = kind((plain.data[order] / 2, plain.indices[order], indptr), shape=plain.shape)
    assert not doubled.has_canonical_format
    np.testing.assert_allclose(doubled.toarray(), dense)
    return doubled, plain


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_entries_stored_twice_are_summed(model, kind):
    doubled, plain = stored_twice(X, kind)
    parts = [part.copy() for part in (doubled.data, doubled.indices, doubled.indptr)]
    one = IMCCClassifier(4, random_state=0, **model).fit(plain, Y)
    two = IMCCClassifier(4, random_state=0, **model).fit(doubled, Y)
    expected = one.decision_function(plain)
    np.testing.assert_allclose(two.decision_function(doubled), expected, rtol=1e-12)
    np.testing.assert_allclose(one.decision_function(doubled), expected, rtol=1e-12)
    # The matrix that was given is not changed.
    for before, after in zip(parts, (doubled.data, doubled.indices, doubled.indptr), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("model", MODELS[2:3] + MODELS[4:], ids=IDS[2:3] + IDS[4:])
def test_entries_stored_twice_are_summed_in_streams(model):
    doubled, plain = stored_twice(X)
    fits = [
        IMCCClassifier(4, random_state=0, **model).fit(
            lambda X=rows: iter([(X[:25], Y[:25]), (X[25:], Y[25:])])
        )
        for rows in (plain, doubled)
    ]
    expected, found = (clf.decision_function(plain) for clf in fits)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_entries_stored_twice_are_summed_in_searches_and_baselines():
    doubled, plain = stored_twice(X)
    for make in (
        lambda: IMCCClassifierCV([1.0], [0.1, 1.0], [0.1], [3], cv=3, random_state=0),
        KernelRidgeBaseline,
    ):
        one, two = make().fit(plain, Y), make().fit(doubled, Y)
        np.testing.assert_allclose(
            two.decision_function(doubled), one.decision_function(plain), rtol=1e-12
        )


def test_a_sum_that_overflows():
    doubled, _ = stored_twice(X)
    doubled.data[:] = 1.7e308
    with pytest.raises(ValueError, match=r"stored more than once.*infinite"):
        IMCCClassifier().fit(doubled, Y)


def with_value(value, dtype=np.float64, at=(3, 2)):
    rows = X.astype(dtype)
    rows[at] = value
    return rows


HUGE = [(-3.4e38, np.float32), (1e200, np.float64), (-1.7e308, np.float64)]


@pytest.mark.parametrize(("value", "dtype"), HUGE)
@pytest.mark.parametrize("model", MODELS, ids=IDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_huge_value_is_an_error_that_names_the_column(model, value, dtype, sparse):
    rows = with_value(value, dtype)
    rows = sp.csr_matrix(rows) if sparse else rows
    with pytest.raises(ValueError, match=r"too large to compute with: column 2.*overflow"):
        IMCCClassifier(4, random_state=0, **model).fit(rows, Y)
    clf = IMCCClassifier(4, random_state=0, **model).fit(X.astype(dtype), Y)
    for method in (clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=r"too large to compute with: column 2"):
            method(rows)


def test_the_column_is_named_as_in_the_data_frame():
    frame = pd.DataFrame(with_value(1e200), columns=list("abcde"))
    with pytest.raises(ValueError, match=r"column 2 \('c'\).*1e\+200"):
        IMCCClassifier().fit(frame, Y)


@pytest.mark.parametrize("library", BACKENDS)
def test_a_huge_value_on_a_device(library):
    rows = array(library, with_value(1e200))
    with pytest.raises(ValueError, match=r"too large to compute with: column 2"):
        IMCCClassifier(4, random_state=0).fit(rows, Y)


def test_large_values_that_can_be_computed_with_are_no_error():
    small = IMCCClassifier(4, random_state=0).fit(X, Y).decision_function(X)
    scaled = X * 2.0**300
    large = IMCCClassifier(4, random_state=0).fit(scaled, Y).decision_function(scaled)
    np.testing.assert_allclose(large, small, rtol=1e-9)


def test_finite_or_an_error():
    values = np.array([1.0, 2.0])
    assert check_finite_result(values, "the scores") is values
    assert check_finite_result(3.0, "the scores") == 3.0
    with pytest.raises(ValueError, match=r"the scores with beta=1 are not finite.*scale"):
        check_finite_result(np.array([1.0, np.nan]), "the scores with beta=1")
    with pytest.raises(ValueError, match=r"1e\+200 in column 2 \('c'\).*: do that"):
        check_finite_result(
            np.inf, "the scores", X=with_value(1e200), names=list("abcde"), remedy="do that"
        )
