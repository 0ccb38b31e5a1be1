"""The exact search where some labels are not known equals separate fits."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import KernelRidgeBaseline
from imcc.metrics import METRICS, evaluate
from tests.backends import BACKENDS, array

pytestmark = [
    pytest.mark.filterwarnings("ignore:the best setting is at the edge"),
    pytest.mark.filterwarnings("ignore:.*prototypes are the nearest of no row"),
    pytest.mark.filterwarnings("ignore:.*more than the distinct training rows"),
]
LANDMARKS = np.random.default_rng(3).normal(size=(7, 5)) * 2
MODELS = {
    "rbf": {},
    "linear": {"kernels": ["linear"]},
    "nystroem": {"approximation": "nystroem", "landmarks": LANDMARKS},
}
AXES = {"alphas": [0.0, 2.0], "betas": [0.1, 1.0], "gammas": [0.0, 0.5], "n_clusters": [3, (2, 3)]}


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
            clf.fit(X[train], Y[train], None if weights is None else weights[train])
            own = None if weights is None else weights[test]
            expected = evaluate(Y[test], clf.decision_function(X[test]), sample_weight=own)
            for metric in METRICS:
                found = search.cv_results_[f"split{i}_test_{metric}"][k]
                assert found == pytest.approx(expected[metric], abs=1e-9), (metric, params)
    best = search.estimator_for(search.best_params_).fit(X, Y, weights)
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


def test_what_cannot_be_done_is_said(partly_known):
    X, Y, _ = partly_known
    with pytest.raises(ValueError, match=r"span='augmented' .*NaN in y"):
        IMCCClassifierCV(span="augmented").fit(X, Y)
    with pytest.raises(ValueError, match=r"'f1_macro' .*NaN in y"):
        IMCCClassifierCV(scoring="f1_macro").fit(X, Y)
    with pytest.raises(ValueError, match=r"calibrate=True .*MultilabelCalibrator"):
        IMCCClassifierCV(calibrate=True).fit(X, Y)
    gone = Y.copy()
    gone[:60, 1] = np.nan
    with pytest.raises(ValueError, match=r"label 1 .*known of no training row"):
        IMCCClassifierCV(**AXES, cv=[(np.arange(60), np.arange(60, 90))]).fit(X, gone)
