"""Rows too many for the memory, and labels as sets."""

import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc._utils.config import config_context
from imcc._utils.validation import encode_target
from imcc.baselines import KernelRidgeBaseline
from imcc.estimators import MultilabelCalibrator, TunedThresholds


@pytest.mark.parametrize(
    ("estimator", "remedy"),
    [
        (IMCCClassifier(), "approximation='nystroem'"),
        (IMCCClassifier(solver="spectral"), "approximation='nystroem'"),
        (IMCCClassifierCV(), "approximation='nystroem'"),
        (KernelRidgeBaseline(), "approximation='nystroem'"),
        (KernelEnsembleClassifier(max_memory=1e12), "max_memory"),
    ],
    ids=["fit", "spectral", "search", "kernel ridge", "ensemble"],
)
def test_eighty_thousand_rows_are_refused_before_any_work(estimator, remedy):
    X = np.random.RandomState(0).rand(80_000, 2)
    Y = np.eye(3, dtype=int)[np.arange(80_000) % 3]
    with config_context(host_memory=16 * 2.0**30):
        start = time.perf_counter()
        with pytest.raises(MemoryError, match=rf"80000 rows needs about .* GiB.*16 GiB.*{remedy}"):
            estimator.fit(X, Y)
        assert time.perf_counter() - start < 5
    assert not hasattr(estimator, "classes_")


def test_an_approximation_needs_no_such_memory():
    X = np.random.RandomState(0).rand(3000, 2)
    Y = np.eye(3, dtype=int)[np.arange(3000) % 3]
    clf = IMCCClassifier(4, random_state=0)
    with config_context(host_memory=1e6):
        with pytest.raises(MemoryError, match="3000 rows"):
            clf.fit(X, Y)
        clf.set_params(approximation="nystroem", n_components=20).fit(X, Y)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, bool])
def test_sparse_labels_become_small_dense_ones_that_must_fit(dtype):
    dense = (np.random.RandomState(0).rand(60, 50) < 0.1).astype(dtype)
    Y = sp.coo_matrix(dense)
    with config_context(host_memory=9.0 * dense.size - 1), pytest.raises(MemoryError, match="y "):
        IMCCClassifier(2).fit(np.random.RandomState(0).rand(60, 3), Y)
    np.testing.assert_array_equal(encode_target(Y, 60).signs, encode_target(dense, 60).signs)
    Y.data = Y.data + 1 if dtype is not bool else np.full(Y.nnz, 257)
    with pytest.raises(ValueError, match="y must contain"):
        encode_target(Y, 60)


SETS = [{"red", "round"}, {"blue"}, set(), {"blue", "round"}, {"red"}] * 8
ROWS = np.random.RandomState(0).rand(40, 3)


@pytest.mark.parametrize(
    "labels",
    [
        SETS,
        tuple(map(frozenset, SETS)),
        [sorted(labels) for labels in SETS],
        [tuple(labels) for labels in SETS],
        pd.Series(SETS),
    ],
    ids=["sets", "frozensets", "lists", "tuples", "series"],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: IMCCClassifier(4, random_state=0),
        lambda: IMCCClassifierCV([1.0], [0.1, 1.0], [0.1], [4], cv=3, random_state=0),
        lambda: MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3),
        lambda: TunedThresholds(IMCCClassifier(4, random_state=0), cv=3),
    ],
    ids=["fit", "search", "calibrator", "thresholds"],
)
def test_sets_of_labels_are_binarised(make, labels):
    binarizer = MultiLabelBinarizer()
    Y = binarizer.fit_transform(SETS)
    clf = make().fit(ROWS, labels)
    assert clf.label_names_.tolist() == binarizer.classes_.tolist() == ["blue", "red", "round"]
    expected = make().fit(ROWS, Y)
    np.testing.assert_array_equal(clf.decision_function(ROWS), expected.decision_function(ROWS))
    assert clf.score(ROWS, labels) == expected.score(ROWS, Y)


def test_sets_of_numbers_are_binarised_and_lists_of_numbers_are_not():
    clf = IMCCClassifier(4, random_state=0).fit(ROWS, [{3, 10}, {20}] * 20)
    assert clf.label_names_.tolist() == ["3", "10", "20"]
    assert IMCCClassifier(4).fit(ROWS, [[0, 1], [1, 0]] * 20).label_names_ is None
    with pytest.raises(ValueError, match=r"'green'.* which is unknown"):
        IMCCClassifier(4, random_state=0).fit(ROWS, SETS).score(ROWS, [{"green"}] * 40)
    with pytest.raises(ValueError, match="X has 40, y has 39"):
        IMCCClassifier(4).fit(ROWS, SETS[:-1])
    with pytest.raises(ValueError, match="same text"):
        IMCCClassifier(4).fit(ROWS, [{"1"}] * 39 + [{Alike()}])


class Alike(str):
    """Text that differs from another one and reads the same."""

    def __str__(self):
        return "1"

    def __new__(cls):
        return super().__new__(cls, "one")
