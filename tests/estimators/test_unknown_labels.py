"""NaN in Y: a label that is not known takes no part in what is learned about it."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from imcc import IMCCClassifier
from imcc.baselines import LLSF, LLSFCV
from imcc.metrics import get_scorer
from tests.estimators.test_sample_weight import MODELS, model

pytestmark = pytest.mark.filterwarnings("ignore:.*prototypes have no rows")


@pytest.fixture(scope="module")
def partly_known(small_problem):
    """Labels of three patterns: 0 and 2 are unknown in the same rows, 3 is known of all."""
    X, Y, X_new, _ = small_problem
    Y = Y.astype(float)
    rng = np.random.default_rng(0)
    Y[np.ix_(rng.random(len(Y)) < 0.3, [0, 2])] = np.nan
    Y[rng.random(len(Y)) < 0.6, 1] = np.nan
    return X[:, :3], Y, X_new[:, :3]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_each_label_is_fitted_on_the_rows_it_is_known_of(partly_known, name, weighted):
    X, Y, X_new = partly_known
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else np.ones(len(X))
    clf = model(name).fit(X, Y, sample_weight=weights)
    scores = clf.decision_function(X_new)
    for j in range(4):
        known = ~np.isnan(Y[:, j])
        alone = model(name).fit(X[known], Y[known, j : j + 1], sample_weight=weights[known])
        np.testing.assert_allclose(
            scores[:, j], alone.decision_function(X_new)[:, 0], atol=1e-7, err_msg=str(j)
        )
        np.testing.assert_allclose(clf.soft_labels_[:, j], alone.soft_labels_[:, 0], atol=1e-12)
    everything = model(name).fit(X, np.nan_to_num(Y), sample_weight=weights)
    assert np.abs(everything.decision_function(X_new) - scores).max() > 0.01
    np.testing.assert_allclose(clf.cluster_centers_, everything.cluster_centers_, atol=1e-12)


def test_width_and_clusters_are_those_of_all_rows(partly_known):
    X, Y, _ = partly_known
    clf = IMCCClassifier(5, random_state=0).fit(X, Y)
    plain = IMCCClassifier(5, random_state=0).fit(X, np.nan_to_num(Y))
    assert clf.width_ == plain.width_
    np.testing.assert_array_equal(clf.assignment_, plain.assignment_)
    np.testing.assert_array_equal(clf.predict(X), clf.decision_function(X) >= 0)


def test_labels_that_do_not_vary_where_known(partly_known):
    X, Y, X_new = partly_known
    Y = Y.copy()
    Y[:, 0] = np.where(np.isnan(Y[:, 0]), np.nan, 1)
    Y[:, 1] = np.where(np.isnan(Y[:, 1]), np.nan, 0)
    scores = IMCCClassifier(5, random_state=0).fit(X, Y).decision_function(X_new)
    np.testing.assert_array_equal(scores[:, :2], np.tile([1.0, -1.0], (len(X_new), 1)))


def test_a_cluster_without_a_known_label_takes_no_part(partly_known):
    X, Y, _ = partly_known
    plain = IMCCClassifier(5, random_state=0).fit(X, np.nan_to_num(Y))
    Y = Y.copy()
    Y[plain.assignment_ == 2, 1] = np.nan
    clf = IMCCClassifier(5, random_state=0, width=1.0).fit(X, Y)
    assert clf.soft_labels_[2, 1] == 0
    assert np.isfinite(clf.decision_function(X)).all()


def test_a_device_gives_the_same(partly_known):
    strict = pytest.importorskip("array_api_strict")
    X, Y, X_new = partly_known
    here = model("exact").fit(X, Y)
    there = model("exact").fit(strict.asarray(X), strict.asarray(Y))
    np.testing.assert_allclose(
        np.asarray(there.decision_function(strict.asarray(X_new))),
        here.decision_function(X_new),
        atol=1e-9,
    )


def test_many_patterns_are_a_warning():
    rng = np.random.default_rng(0)
    X, Y = rng.random((40, 2)), rng.integers(0, 2, (40, 21)).astype(float)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    with pytest.warns(UserWarning, match="known in 21 different sets of rows"):
        IMCCClassifier(3, random_state=0).fit(X, Y)
    IMCCClassifier(3, random_state=0).fit(X, Y[:, :20])


def test_what_cannot_be_done_is_said(partly_known):
    X, Y, _ = partly_known
    gone = Y.copy()
    gone[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"only NaN in column 1"):
        IMCCClassifier(3).fit(X, gone)
    with pytest.raises(ValueError, match="infinity"):
        IMCCClassifier(3).fit(X, np.where(np.isnan(Y), np.inf, Y))
    with pytest.raises(ValueError, match=r"coded \{0, 1\}"):
        IMCCClassifier(3).fit(X, Y + 1)
    for estimator in (LLSF(), LLSFCV()):
        with pytest.raises(ValueError, match=r"y contains NaN: .* does not support unknown labels"):
            estimator.fit(X, Y)
    with pytest.raises(ValueError, match="y contains NaN"):
        IMCCClassifier(3, kernel="linear").fit([(X, Y)])


def test_grid_search_of_scikit_learn(partly_known):
    X, Y, _ = partly_known
    search = GridSearchCV(
        IMCCClassifier(4, random_state=0),
        {"alpha": [0.0, 1.0], "beta": [0.1, 10.0]},
        scoring=get_scorer("average_precision"),
        cv=KFold(3),
    ).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
