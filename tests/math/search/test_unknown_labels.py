"""The exact search where some labels are not known equals separate fits."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import (
    f1_score,
    fbeta_score,
    get_scorer,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.logistic import fit_logistic_maps
from imcc.baselines import KernelRidgeBaseline
from imcc.metrics import METRICS, evaluate
from tests.backends import BACKENDS, array
from tests.naive import logistic as naive

pytestmark = [
    pytest.mark.filterwarnings("ignore:the best setting is at the edge"),
    pytest.mark.filterwarnings("ignore:.*prototypes have no rows"),
    pytest.mark.filterwarnings("ignore:.*more than the distinct training rows"),
]
LANDMARKS = np.random.default_rng(3).normal(size=(7, 5)) * 2
MODELS = {
    "rbf": {},
    "linear": {"kernels": ["linear"]},
    "nystroem": {"approximation": "nystroem", "landmarks": LANDMARKS},
}
AXES = {"alphas": [0.0, 2.0], "betas": [0.1, 1.0], "gammas": [0.0, 0.5], "n_clusters": [3, (2, 3)]}
FEW = {
    "alphas": [2.0],
    "betas": [0.1, 1.0],
    "gammas": [0.5],
    "n_clusters": [3],
    "width_scales": [1.0],
}


@pytest.fixture(scope="module")
def partly_known(small_problem):
    X, Y, X_new, _ = small_problem
    Y = Y.astype(float)
    rng = np.random.default_rng(0)
    Y[np.ix_(rng.random(len(Y)) < 0.3, [0, 2])] = np.nan
    Y[rng.random(len(Y)) < 0.5, 1] = np.nan
    Y[4] = np.nan
    return X, Y, X_new


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_search_equals_separate_fits(partly_known, name, weighted):
    X, Y, X_new = partly_known
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    folds = list(KFold(3).split(X))
    options = {"random_state": 0, "cv": folds, "scoring": list(METRICS), "refit": "coverage"}
    search = IMCCClassifierCV(
        **AXES, **options, **MODELS[name], width_scales=[0.7] if name == "rbf" else [1.0]
    ).fit(X, Y, sample_weight=weights)
    for k, params in enumerate(search.cv_results_["params"]):
        for i, (train, test) in enumerate(folds):
            clf = search.estimator_for(params)
            clf.fit(X[train], Y[train], sample_weight=None if weights is None else weights[train])
            own = None if weights is None else weights[test]
            expected = evaluate(Y[test], clf.decision_function(X[test]), sample_weight=own)
            for metric in METRICS:
                found = search.cv_results_[f"split{i}_test_{metric}"][k]
                assert found == pytest.approx(expected[metric], abs=1e-9), (metric, params)
    best = search.estimator_for(search.best_params_).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(search.decision_function(X_new), best.decision_function(X_new))


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_a_device(partly_known, backend):
    X, Y, _ = partly_known
    options = {"clusterer": LANDMARKS, "cv": KFold(3), "refit": False}
    axes = {**AXES, "n_clusters": [None]}
    here = IMCCClassifierCV(**axes, **options).fit(X, Y)
    there = IMCCClassifierCV(**axes, **options).fit(array(backend, X), Y)
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=1e-9
    )


def test_kernel_ridge(partly_known):
    X, Y, X_new = partly_known
    ridge = KernelRidgeBaseline([0.1, 1.0], cv=3).fit(X, Y)
    expected = IMCCClassifier(1, 0.0, ridge.best_params_["beta"], 0.0)
    expected.set_params(width_scale=ridge.best_params_["width_scale"])
    scores = expected.fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(ridge.decision_function(X_new), scores, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_that_are_means_over_labels(partly_known, weighted):
    """Each label is scored on the held-out rows that it is known of."""
    X, missing, _ = partly_known
    Y = (X[:, :4] + np.random.default_rng(2).normal(size=missing.shape) > 0).astype(float)
    Y[np.isnan(missing)] = np.nan
    Y[60:, 3] = np.nan  # known of no held-out row of the last fold: no part of its mean
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    folds = list(KFold(3).split(X))
    scoring = {
        "f1_macro": "f1_macro",
        "roc_auc": "roc_auc",
        "f2": make_scorer(fbeta_score, beta=2, average="macro", zero_division=0),
        "coverage": "coverage",
    }
    search = IMCCClassifierCV(**FEW, random_state=0, cv=folds, scoring=scoring, refit="f1_macro")
    search.fit(X, Y, sample_weight=weights)
    for k, params in enumerate(search.cv_results_["params"]):
        for i, (train, test) in enumerate(folds):
            clf = search.estimator_for(params)
            clf.fit(X[train], Y[train], sample_weight=None if weights is None else weights[train])
            found = {"f1_macro": [], "roc_auc": [], "f2": []}
            for j in range(Y.shape[1]):
                rows = test[~np.isnan(Y[test, j])]
                if len(rows):
                    scores = clf.decision_function(X[rows])[:, j]
                    on, option = Y[rows, j], {"zero_division": 0}
                    own = {} if weights is None else {"sample_weight": weights[rows]}
                    found["f1_macro"].append(f1_score(on, scores >= 0, **own, **option))
                    found["roc_auc"].append(roc_auc_score(on, scores, **own))
                    found["f2"].append(fbeta_score(on, scores >= 0, beta=2, **own, **option))
            assert [len(values) for values in found.values()] == [3 if i == 2 else 4] * 3
            for name, values in found.items():
                value = search.cv_results_[f"split{i}_test_{name}"][k]
                assert value == pytest.approx(np.mean(values), abs=1e-12), name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_probabilities_leave_unknown_cells_out(partly_known, name, weighted):
    X, Y, X_new = partly_known
    known, on = ~np.isnan(Y), Y > 0
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    folds = list(KFold(3).split(X))
    search = IMCCClassifierCV(
        **AXES, **MODELS[name], width_scales=[1.0], random_state=0, cv=folds, calibrate=True
    ).fit(X, Y, sample_weight=weights)
    model, scores = search.best_estimator_, np.empty(Y.shape)
    for train, test in folds:
        clf = search.estimator_for(search.best_params_)
        clf.fit(X[train], Y[train], sample_weight=None if weights is None else weights[train])
        scores[test] = clf.decision_function(X[test])
    slopes, offsets = naive.fit(scores, on, weights, known)
    np.testing.assert_allclose(search.calibration_.slope, slopes, rtol=1e-4)
    np.testing.assert_allclose(search.calibration_.offset, offsets, rtol=1e-4, atol=1e-4)
    odds = fit_logistic_maps(scores, on, weights, known).log_odds(model.decision_function(X_new))
    np.testing.assert_allclose(search.predict_proba(X_new), expit(odds), rtol=1e-6)
    # What unknown cells are taken for does not matter, and taking them for zeros would.
    filled = fit_logistic_maps(scores, on, weights)
    assert np.abs(filled.offset - search.calibration_.offset).max() > 0.1


def test_probabilities_on_a_device(partly_known):
    X, Y, X_new = partly_known
    options = {"clusterer": LANDMARKS, "cv": KFold(3), "calibrate": True, "width_scales": [1.0]}
    axes = {**AXES, "n_clusters": [None]}
    here = IMCCClassifierCV(**axes, **options).fit(X, Y)
    strict = pytest.importorskip("array_api_strict")
    there = IMCCClassifierCV(**axes, **options).fit(strict.asarray(X), Y)
    chances = np.asarray(there.predict_proba(strict.asarray(X_new)))
    np.testing.assert_allclose(chances, here.predict_proba(X_new), rtol=1e-6)


def test_probabilities_of_kernel_ridge(partly_known):
    X, Y, X_new = partly_known
    ridge = KernelRidgeBaseline([0.1, 1.0], cv=KFold(3), calibrate=True).fit(X, Y)
    search = IMCCClassifierCV(
        [0.0], [0.1, 1.0], [0.0], [1], cv=KFold(3), calibrate=True, random_state=0
    ).fit(X, Y)
    np.testing.assert_allclose(ridge.predict_proba(X_new), search.predict_proba(X_new), rtol=1e-7)
    filled = KernelRidgeBaseline([0.1, 1.0], cv=KFold(3), calibrate=True).fit(X, np.nan_to_num(Y))
    assert np.abs(filled.predict_proba(X_new) - ridge.predict_proba(X_new)).max() > 0.05


def test_what_cannot_be_done_is_said(partly_known):
    X, Y, _ = partly_known
    first_two = make_scorer(f1_score, average="macro", labels=[0, 1])
    own = make_scorer(lambda y, p, average="macro": f1_score(y, p, average=average))
    for scoring in (
        "f1_micro",
        "f1_samples",
        "accuracy",
        get_scorer("f1_weighted"),
        first_two,
        own,
    ):
        with pytest.raises(ValueError, match=r"scoring='.*' is not supported .*NaN in y.*f1_macro"):
            IMCCClassifierCV(scoring=scoring).fit(X, Y)
    constant = np.where(np.isnan(Y), np.nan, 1.0)
    with pytest.raises(ValueError, match=r"scoring='roc_auc' .*undefined there"):
        IMCCClassifierCV(**FEW, scoring="roc_auc").fit(X, constant)
    gone = Y.copy()
    gone[:60, 1] = np.nan
    with pytest.raises(ValueError, match=r"label 1 .*unknown in all training rows"):
        IMCCClassifierCV(**AXES, cv=[(np.arange(60), np.arange(60, 90))]).fit(X, gone)
