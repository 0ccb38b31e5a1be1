"""Numbers that are hard to compute with: the right result or an error that says why, never NaN."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier, IMCCClassifierCV
from tests.backends import BACKENDS, array

random = np.random.default_rng(1)
X = random.normal(size=(40, 5))
Y = (X[:, :3] + 0.5 * random.normal(size=(40, 3)) > 0).astype(int)
MODELS = [
    {},
    {"kernel": "laplacian"},
    {"kernel": "linear"},
    {"solver": "spectral"},
    {"approximation": "nystroem", "n_components": 10},
    {"approximation": "nystroem", "n_components": 10, "landmarks": "random"},
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
    with pytest.raises(ValueError, match=r"values that are too large: column 2.*overflow"):
        IMCCClassifier(4, random_state=0, **model).fit(rows, Y)
    clf = IMCCClassifier(4, random_state=0, **model).fit(X.astype(dtype), Y)
    for method in (clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=r"values that are too large: column 2"):
            method(rows)


def test_the_column_is_named_as_in_the_data_frame():
    frame = pd.DataFrame(with_value(1e200), columns=list("abcde"))
    with pytest.raises(ValueError, match=r"column 2 \('c'\).*1e\+200"):
        IMCCClassifier().fit(frame, Y)


@pytest.mark.parametrize("library", BACKENDS)
def test_a_huge_value_on_a_device(library):
    rows = array(library, with_value(1e200))
    with pytest.raises(ValueError, match=r"values that are too large: column 2"):
        IMCCClassifier(4, random_state=0).fit(rows, Y)


def test_large_values_that_can_be_computed_with_are_no_error():
    small = IMCCClassifier(4, random_state=0).fit(X, Y).decision_function(X)
    scaled = X * 2.0**300
    large = IMCCClassifier(4, random_state=0).fit(scaled, Y).decision_function(scaled)
    np.testing.assert_allclose(large, small, rtol=1e-9)


def with_extreme_row():
    """Rows whose squares do not overflow, but whose products cannot be inverted."""
    rows = np.random.default_rng(0).normal(size=(60, 4))
    labels = (rows[:, :2] > 0).astype(int)
    rows[1] *= 1e140
    return pd.DataFrame(rows, columns=list("abcd")), labels


EXTREME = [
    IMCCClassifier(2, kernel="linear", random_state=0),
    IMCCClassifierCV(n_clusters=(2,), kernels=("linear",), cv=3, random_state=0),
]


@pytest.mark.parametrize("model", EXTREME, ids=["fit", "search"])
def test_a_singular_matrix_is_an_error_that_names_the_column(model):
    rows, labels = with_extreme_row()
    with pytest.raises(
        ValueError, match=r"singular.*X is .*e\+140 in column \d \('[a-d]'\).*scale the features"
    ) as caught:
        model.fit(rows, labels)
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)


def test_a_singular_matrix_of_a_stream_is_an_error_that_says_what_to_do():
    rows, labels = with_extreme_row()
    model = IMCCClassifier(2, kernel="linear", random_state=0)
    with pytest.raises(ValueError, match=r"singular.*values of X.*scale the features"):
        model.fit([(rows.to_numpy(), labels)])


# Labels that no row or every row has.

CONSTANT = np.column_stack([Y[:, 0], np.zeros(40, int), Y[:, 1], np.ones(40, int)])
EXACT = [
    *MODELS,
    {"solver": "cholesky"},
    {"solver": "spectral"},
    {"kernel": "linear", "solver": "spectral"},
    {"approximation": "nystroem", "n_components": 10, "solver": "spectral"},
    {"n_clusters": (2, 3)},
    {"alpha": 0.0, "gamma": 0.0},
    {"alpha": 100.0, "beta": 1e-3, "gamma": 10.0},
]


def assert_exactly_constant(clf, rows, q=2):
    scores = np.asarray(clf.decision_function(rows))
    np.testing.assert_array_equal(scores[:, 1], -1.0)
    np.testing.assert_array_equal(scores[:, 3], 1.0)
    np.testing.assert_array_equal(np.asarray(clf.intercept_)[[1, 3]], [-1.0, 1.0])
    coef = np.asarray(clf.coef_).T if hasattr(clf, "coef_") else np.asarray(clf.dual_coef_)
    np.testing.assert_array_equal(coef[:, [1, 3]], 0.0)
    np.testing.assert_array_equal(np.asarray(clf.soft_labels_)[:, 1], -1.0)
    np.testing.assert_array_equal(np.asarray(clf.soft_labels_)[:, 3], 1.0)


@pytest.mark.parametrize("model", EXACT, ids=str)
@pytest.mark.parametrize("wide", [False, True])
def test_labels_that_do_not_vary_have_exactly_constant_scores(model, wide):
    rows = random.normal(size=(40, 60)) if wide else X  # more features than rows: in the dual
    model = {"n_clusters": 4, **model}
    clf = IMCCClassifier(**model, random_state=0).fit(rows, CONSTANT)
    assert_exactly_constant(clf, rows)
    # The others are as if these were not there.
    alone = IMCCClassifier(**model, random_state=0).fit(rows, CONSTANT[:, [0, 2]])
    np.testing.assert_allclose(
        clf.decision_function(rows)[:, [0, 2]], alone.decision_function(rows), rtol=1e-10
    )


@pytest.mark.parametrize("model", MODELS[2:3] + MODELS[4:], ids=IDS[2:3] + IDS[4:])
def test_they_are_constant_from_streams(model):
    chunks = [(X[:15], CONSTANT[:15]), (X[15:30], CONSTANT[15:30]), (X[30:], CONSTANT[30:])]
    clf = IMCCClassifier(4, random_state=0, lloyd_passes=1, **model).fit(chunks)
    assert_exactly_constant(clf, X)


def test_a_single_class():
    clf = IMCCClassifier(4, random_state=0).fit(X, np.full(40, "a"))
    np.testing.assert_array_equal(clf.decision_function(X), 1.0)


# Widths.


@pytest.mark.parametrize("model", [{}, {"kernel": "laplacian"}, *MODELS[4:]], ids=str)
@pytest.mark.parametrize(
    ("width", "width_scale", "size"),
    [
        (1e-300, 1.0, "small"),
        (1e300, 1.0, "large"),
        (1e300, 1e300, "large"),
        (1e-200, 1e-200, "small"),
        ("mean_distance", 1e-300, "small"),
        ("mean_distance", 1e300, "large"),
    ],
)
def test_extreme_widths_are_an_error_that_says_so(model, width, width_scale, size):
    clf = IMCCClassifier(4, width=width, width_scale=width_scale, random_state=0, **model)
    with pytest.raises(ValueError, match=f"width of the kernel is too {size}"):
        clf.fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("width", [1e-140, 1e140])
def test_widths_that_can_be_computed_with_are_no_error(kernel, width):
    clf = IMCCClassifier(4, width=width, kernel=kernel, random_state=0).fit(X, Y)
    assert np.isfinite(clf.decision_function(X)).all()


def test_rows_that_differ_too_little_are_not_called_identical_only():
    with pytest.raises(ValueError, match=r"identical .*or nearly so"):
        IMCCClassifier(random_state=0, clusterer=np.zeros((1, 5))).fit(X * 1e-200, Y)


def test_a_solution_that_overflows_names_the_setting():
    with (
        np.errstate(all="ignore"),
        pytest.raises((ValueError, np.linalg.LinAlgError), match=r"alpha=1e\+308|not finite"),
    ):
        IMCCClassifier(4, alpha=1e308, gamma=1e308, random_state=0).fit(X, Y)
