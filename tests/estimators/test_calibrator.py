"""Probabilities for any classifier: out-of-fold scores, one map per label."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.logistic import fit_logistic_maps
from imcc._math.score_maps import fit_score_maps
from imcc.estimators import (
    MultilabelCalibrator,
    TunedThresholds,
    cross_fit_scores,
)
from tests.estimators.test_scikit_learn import WEIGHTS
from tests.naive import logistic as naive

IMCC = IMCCClassifier(n_clusters=4, random_state=0)


def problem(n=300, n_classes=5, seed=0):
    X, Y = make_multilabel_classification(2 * n, n_classes=n_classes, n_labels=1, random_state=seed)
    return X[:n], Y[:n], X[n:], Y[n:]


def loss(Y, chances):
    return np.mean([log_loss(Y[:, j], chances[:, j], labels=[0, 1]) for j in range(Y.shape[1])])


def test_it_is_the_maps_of_cross_fitted_scores_on_the_model_of_all_rows():
    X, Y, X_new, _ = problem()
    cv = KFold(4, shuffle=True, random_state=1)
    found = MultilabelCalibrator(IMCC, cv=cv).fit(X, Y)
    maps = fit_logistic_maps(cross_fit_scores(IMCC, X, Y, cv=cv), Y > 0)
    model = clone(IMCC).fit(X, Y)
    expected = maps.log_odds(model.decision_function(X_new))
    np.testing.assert_allclose(found.decision_function(X_new), expected, rtol=1e-12)
    np.testing.assert_allclose(found.predict_proba(X_new), expit(expected), rtol=1e-12)
    np.testing.assert_array_equal(found.predict(X_new), expected >= 0)
    np.testing.assert_array_equal(found.methods_, ["logistic"] * 5)


def test_probabilities_are_better_than_those_of_the_plain_scores():
    X, Y, X_new, Y_new = problem()
    scores = clone(IMCC).fit(X, Y).decision_function(X_new)
    plain = np.clip((scores + 1) / 2, 1e-3, 1 - 1e-3)
    for method in ("logistic", "isotonic"):
        model = MultilabelCalibrator(IMCC, method=method, min_support=20).fit(X, Y)
        assert loss(Y_new, model.predict_proba(X_new)) < loss(Y_new, plain)


def test_isotonic_where_a_label_has_enough_rows():
    X, Y, _, _ = problem()
    Y[:, 0] = 0
    Y[np.argsort(X[:, 0])[-7:], 0] = 1
    model = MultilabelCalibrator(IMCC, method="isotonic", min_support=20).fit(X, Y)
    assert model.methods_[0] == "logistic"
    assert (model.methods_[1:] == "isotonic").all()
    grid = np.linspace(-3, 3, 200)[:, None] * np.ones(5)
    odds = model.maps_.log_odds(grid)
    assert np.isfinite(odds).all()
    assert (np.diff(odds, axis=0) >= 0).all()
    # The logistic map of label 0 is strictly increasing, the others have steps.
    assert len(np.unique(odds[:, 0])) == 200
    assert len(np.unique(odds[:, 1])) < 200


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_rare_constant_and_separated_labels(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = np.zeros((80, 5), dtype=int)
    Y[:, 1] = 1  # always
    Y[3, 2] = 1  # once
    Y[:, 3] = X[:, 0] > 0  # separated
    Y[:, 4] = rng.integers(2, size=80)  # noise
    model = MultilabelCalibrator(
        IMCCClassifier(n_clusters=4, beta=1e-3, random_state=0), method=method, min_support=10
    ).fit(X, Y)
    chances = model.predict_proba(rng.normal(size=(50, 3)))
    assert np.isfinite(chances).all()
    assert (chances > 0).all()
    assert (chances < 1).all()
    assert (chances[:, 0] < 0.05).all()
    assert (chances[:, 1] > 0.95).all()
    assert (chances[:, 2] < 0.3).all()
    assert len(np.unique(chances[:, 0])) == 1
    assert (model.slopes_ >= 0).all()


def test_shapes_of_one_dimensional_targets():
    X, y = make_classification(120, n_informative=4, n_classes=3, random_state=0)
    model = MultilabelCalibrator(IMCC).fit(X, y)
    chances = model.predict_proba(X)
    assert chances.shape == (120, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
    two = MultilabelCalibrator(IMCC).fit(X, np.where(y > 0, "b", "a"))
    assert two.predict_proba(X).shape == (120, 2)
    assert two.decision_function(X).shape == (120,)
    np.testing.assert_allclose(
        logit(two.predict_proba(X)[:, 1]), two.decision_function(X), rtol=1e-8
    )


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), IMCC),
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(LinearSVC()),
        RandomForestClassifier(20, random_state=0),
        GridSearchCV(IMCC, {"beta": [0.1, 1.0]}, cv=3),
        IMCCClassifierCV([1.0], [0.1, 1.0], [0.1], [4], width_scales=1.0, cv=3, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier(estimator):
    X, Y, X_new, Y_new = problem()
    model = MultilabelCalibrator(estimator).fit(X, Y)
    chances = model.predict_proba(X_new)
    assert chances.shape == Y_new.shape
    base = np.broadcast_to(Y.mean(axis=0), Y_new.shape)
    assert loss(Y_new, chances) < loss(Y_new, base)


def test_prefit_leaves_the_model_as_it_is():
    X, Y, X_new, Y_new = problem()
    fitted = clone(IMCC).fit(X, Y)
    model = MultilabelCalibrator(fitted, cv="prefit").fit(X_new, Y_new)
    assert model.estimator_ is fitted
    maps = fit_logistic_maps(fitted.decision_function(X_new), Y_new > 0)
    np.testing.assert_array_equal(
        model.decision_function(X), maps.log_odds(fitted.decision_function(X))
    )
    with pytest.raises(ValueError, match="prefit"):
        MultilabelCalibrator(fitted, cv="refit").fit(X, Y)
    y = Y[:, 0]
    two = clone(IMCC).fit(X, y)
    with pytest.raises(ValueError, match="classes that the model was trained with"):
        MultilabelCalibrator(two, cv="prefit").fit(X, y + 1)


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_weights_of_rows_are_repeated_rows(method):
    X, Y, X_new, Y_new = problem(120)
    fitted = clone(IMCC).fit(X_new, Y_new)
    weights = np.random.default_rng(0).integers(3, size=120)
    again = np.repeat(np.arange(120), weights)
    options = {"cv": "prefit", "method": method, "min_support": 5}
    weighted = MultilabelCalibrator(fitted, **options).fit(X, Y, sample_weight=weights)
    repeated = MultilabelCalibrator(fitted, **options).fit(X[again], Y[again])
    np.testing.assert_allclose(
        weighted.predict_proba(X_new), repeated.predict_proba(X_new), atol=2e-2
    )
    if method == "logistic":
        np.testing.assert_allclose(
            weighted.predict_proba(X_new), repeated.predict_proba(X_new), rtol=1e-6
        )


def test_weights_reach_the_classifier_or_are_refused():
    X, Y, X_new, _ = problem()
    weights = np.random.default_rng(0).uniform(0.1, 2, size=len(X))
    plain = OneVsRestClassifier(LogisticRegression())
    with pytest.raises(ValueError, match=r"OneVsRestClassifier\.fit does not support it"):
        MultilabelCalibrator(plain).fit(X, Y, sample_weight=weights)
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0))
    weighted = MultilabelCalibrator(forest).fit(X, Y, sample_weight=weights)
    assert (
        weighted.predict_proba(X_new) != MultilabelCalibrator(forest).fit(X, Y).predict_proba(X_new)
    ).any()


def test_bad_arguments():
    X, Y, *_ = problem(60)
    with pytest.raises(ValueError, match="method must be one of 'logistic', 'isotonic'"):
        MultilabelCalibrator(IMCC, method="platt").fit(X, Y)
    with pytest.raises(ValueError, match="min_support"):
        MultilabelCalibrator(IMCC, min_support=0).fit(X, Y)
    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        MultilabelCalibrator(Ridge()).fit(X, Y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_check_estimator():
    results = check_estimator(
        MultilabelCalibrator(LogisticRegression(), cv=3),
        on_skip=None,
        expected_failed_checks=WEIGHTS,
    )
    failed = {r["check_name"] for r in results if r["status"] != "passed"}
    assert failed <= {"check_array_api_input", *WEIGHTS}


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_unknown_labels_take_no_part_in_the_maps(method):
    """The map of a label is that of the rows it is known of; scores come from the same folds."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    Y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(120, 3)) > 0).astype(float)
    Y[rng.random(120) < 0.4, 1] = np.nan
    options = {"cv": KFold(3), "method": method, "min_support": 10}
    model = IMCCClassifier(4, width=2.0, random_state=0)
    clf = MultilabelCalibrator(model, **options).fit(X, Y)
    scores = cross_fit_scores(model, X, Y, cv=KFold(3))
    filled = np.where(np.isnan(Y), 1 - np.nan_to_num(Y), Y)
    known = ~np.isnan(Y)
    expected = fit_score_maps(scores, filled > 0, method, min_support=10, known=known)
    np.testing.assert_allclose(clf.slopes_, expected.logistic.slope)
    other = fit_score_maps(scores, filled > 0, method, min_support=10)
    assert np.abs(clf.maps_.log_odds(scores) - other.log_odds(scores))[:, 1].max() > 0.05
    np.testing.assert_allclose(clf.maps_.log_odds(scores), expected.log_odds(scores))
    slopes, offsets = naive.fit(scores, Y == 1, known=known)
    np.testing.assert_allclose(clf.slopes_, slopes, rtol=1e-4)
    np.testing.assert_allclose(clf.offsets_, offsets, rtol=1e-4, atol=1e-4)


def test_rows_of_weight_zero_are_left_out_of_folds_too():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3))
    Y = (X[:, :2] + rng.normal(size=(60, 2)) > 0).astype(int)
    weights = rng.integers(0, 3, 60).astype(float)
    some = weights > 0
    model = IMCCClassifier(4, random_state=0)
    listed = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(60) % 3 == k) for k in range(3)]
    listed = [(train, np.flatnonzero(test)) for train, test in listed]
    place = np.cumsum(some) - 1
    renumbered = [tuple(place[part][some[part]] for part in split) for split in listed]
    for all_cv, some_cv in ((3, 3), (listed, renumbered)):
        every = MultilabelCalibrator(model, cv=all_cv).fit(X, Y, sample_weight=weights)
        rest = MultilabelCalibrator(model, cv=some_cv).fit(
            X[some], Y[some], sample_weight=weights[some]
        )
        np.testing.assert_array_equal(every.predict_proba(X), rest.predict_proba(X))


def test_thresholds_are_probabilities():
    X, Y, X_new, _ = problem()
    clf = MultilabelCalibrator(IMCC).fit(X, Y)
    chances = clf.predict_proba(X_new)
    limits = [0.1, 0.3, 0.5, 0.0, 1.0]
    for wrapped in (clf, TunedThresholds(clf, cv="prefit").fit(X_new, problem()[3])):
        found = wrapped.predict(X_new, thresholds=limits)
        np.testing.assert_array_equal(found, chances >= limits)
        assert found.dtype == np.int64
        one = wrapped.predict(X_new, thresholds=0.3)
        np.testing.assert_array_equal(one, chances >= 0.3)
        assert (one != wrapped.predict(X_new)).any()
        for wrong in (-0.1, 1.5, [0.2, 0.3], "a"):
            with pytest.raises(ValueError, match=r"^thresholds"):
                wrapped.predict(X_new, thresholds=wrong)
    # Without probabilities, they are scores.
    plain = TunedThresholds(IMCC, cv=3).fit(X, Y)
    expected = plain.decision_function(X_new) >= -0.7
    np.testing.assert_array_equal(plain.predict(X_new, thresholds=-0.7), expected)


def test_thresholds_of_vectors_of_classes():
    X, y = make_classification(200, n_classes=3, n_informative=6, random_state=0)
    words = np.where(y == 1, "yes", "no")
    two = MultilabelCalibrator(IMCC).fit(X, words)
    found = two.predict(X, thresholds=0.2)
    np.testing.assert_array_equal(found == "yes", two.predict_proba(X)[:, 1] >= 0.2)
    with pytest.raises(ValueError, match="thresholds is not allowed"):
        MultilabelCalibrator(IMCC).fit(X, y).predict(X, thresholds=0.2)
    trees = TunedThresholds(RandomForestClassifier(9, random_state=0), cv=3).fit(X, words)
    found = trees.predict(X, thresholds=0.4)
    np.testing.assert_array_equal(found == "yes", trees.predict_proba(X)[:, 1] >= 0.4)
