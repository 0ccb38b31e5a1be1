"""Bad input gets an error that names the argument, what was wrong and what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from imcc import IMCCClassifier, IMCCClassifierCV

X = np.random.default_rng(0).normal(size=(30, 4))
Y = (X[:, :3] > 0).astype(int)


def changed(array, at, value):
    array = array.astype(float)
    array[at] = value
    return array


class OfDask:
    """Stands in for a Dask array: its rows are not looked at."""

    __module__ = "dask.array.core"
    shape, ndim = (30, 4), 2


BAD_DATA = [
    (OfDask(), Y, "Dask"),
    (changed(X, (3, 1), np.nan), Y, r"^X contains NaN.*TableClassifier"),
    (changed(X, (3, 1), np.inf), Y, "X contains infinity"),
    (X, Y[:-1], "X has 30, y has 29"),
    (
        X,
        changed(Y, (0, 0), 2),
        r"coded \{0, 1\}, \{-1, \+1\} or boolean, got the values 0.0, 1.0, 2.0",
    ),
    (X, changed(Y, (0, 0), -1), "got the values -1.0, 0.0, 1.0"),
    (X, changed(Y[:, 0], 0, np.nan), "y contains NaN"),
    (X, Y + 0.5, "y must contain labels"),
    (X, Y[:, :0], "y is empty"),
    (X, np.zeros((30, 2, 2)), "one or two dimensions"),
    (X, [[1], [1, 2]] * 15, "MultiLabelBinarizer"),
    (X, [set()] * 30, "no label at all"),
    (X, [{"red", 1}, {"blue"}] * 15, "MultiLabelBinarizer"),
    (X, np.array([["a", "b"]] * 30), "y must contain labels"),
    (X, None, "requires y to be passed"),
    (X, X[:, 0], "Unknown label type"),
    (X[0], Y, "Expected 2D array"),
    (np.empty((0, 4)), Y[:0], "0 sample"),
    (np.full((30, 4), "a"), Y, "could not convert string"),
    (np.ones((30, 4)), Y, "all training rows are identical.*pass a positive number as width"),
    (sp.csr_matrix((30, 4)), Y, "all training rows are identical"),
]


@pytest.mark.parametrize("make", [IMCCClassifier, IMCCClassifierCV])
@pytest.mark.parametrize(("rows", "labels", "message"), BAD_DATA, ids=[m for *_, m in BAD_DATA])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bad_data(make, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        make().fit(rows, labels)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beta": 0}, "beta must be a finite number > 0, got 0"),
        ({"beta": -1.0}, "beta must be"),
        ({"beta": np.nan}, "beta must be"),
        ({"beta": "1"}, "beta must be"),
        ({"alpha": -0.1}, "alpha must be a finite number >= 0"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"alpha": None}, "alpha must be"),
        ({"gamma": -1}, "gamma must be"),
        ({"gamma": True}, "gamma must be"),
        ({"width": np.inf}, "width must be a finite number > 0"),
        ({"width": 0}, "width must be"),
        ({"width": "median"}, "width must be one of 'mean_distance'"),
        ({"width_scale": -1}, "width_scale must be"),
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1"),
        ({"n_clusters": 2.0}, "n_clusters must be"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"kernel": "poly", "width": 2.0}, "has no width"),
        ({"kernel": "linear", "width_scale": 2.0}, "has no width"),
        ({"solver": "lu"}, "solver must be one of"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        IMCCClassifier(**parameters).fit(X, Y)


@pytest.mark.parametrize("make", [IMCCClassifier, IMCCClassifierCV])
def test_predict_before_fit(make):
    with pytest.raises(NotFittedError):
        make().predict(X)


@pytest.mark.parametrize("make", [IMCCClassifier, IMCCClassifierCV])
def test_wrong_number_of_features(make):
    small = {"alphas": 1.0, "betas": 1.0, "gammas": 0.1} if make is IMCCClassifierCV else {}
    clf = make(n_clusters=3, random_state=0, **small).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        clf.decision_function(X[:, :3])


def test_one_of_everything_works():
    one_row = IMCCClassifier(width=1.0, n_clusters=1).fit([[1.0, 2.0]], [[1, 0]])
    np.testing.assert_array_equal(one_row.predict([[1.0, 2.0]]), [[1, 0]])
    one_label = IMCCClassifier(n_clusters=2, random_state=0).fit(X, Y[:, :1])
    assert one_label.predict(X).shape == (30, 1)
    one_feature = IMCCClassifier(n_clusters=2, random_state=0).fit(X[:, :1], Y)
    assert one_feature.predict(X[:, :1]).shape == (30, 3)
    nothing_to_see = IMCCClassifier(kernel="linear", n_clusters=1).fit(np.zeros((5, 2)), Y[:5])
    np.testing.assert_allclose(
        nothing_to_see.decision_function([[0.0, 0.0]])[0], 2 * Y[:5].mean(axis=0) - 1
    )


def test_sparse_labels_with_minus_one_must_be_complete():
    signs = np.where(Y, 1, -1)
    clf = IMCCClassifier(n_clusters=3, random_state=0).fit(X, sp.csr_matrix(signs))
    np.testing.assert_array_equal(
        clf.predict(X), IMCCClassifier(n_clusters=3, random_state=0).fit(X, Y).predict(X)
    )
