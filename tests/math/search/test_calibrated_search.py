"""A search that gives probabilities: maps of the out-of-fold scores of the chosen setting."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifierCV
from imcc._math.logistic import fit_logistic_maps
from imcc._utils.wrappers import best_setting, without_search
from imcc.baselines import JFSCCV, LLSFCV, KernelRidgeBaseline
from imcc.estimators import MultilabelCalibrator, TunedThresholds, cross_fit_scores
from imcc.persistence import load_model, save_model
from tests.backends import array, host

SMALL = {
    "alphas": [0.1, 10.0],
    "betas": [0.1, 1.0],
    "gammas": [0.1],
    "n_clusters": [3, 8],
    "width_scales": [1.0],
}
SPARSE = {"alphas": [0.1, 1.0], "betas": [0.01, 0.1], "gammas": [1.0], "max_iter": 5000}
FOLDS = KFold(4, shuffle=True, random_state=3)


def assert_calibrated(search, X, Y, X_new, cv, rtol=1e-7, **options):
    """The search is the maps of scores of separate fits, on the model of all rows."""
    model = search.best_estimator_
    maps = fit_logistic_maps(cross_fit_scores(model, X, Y, cv=cv, **options), Y > 0)
    np.testing.assert_allclose(search.calibration_.slope, maps.slope, rtol=rtol)
    np.testing.assert_allclose(search.calibration_.offset, maps.offset, rtol=rtol, atol=rtol)
    odds = maps.log_odds(model.decision_function(X_new))
    np.testing.assert_allclose(search.decision_function(X_new), odds, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(search.predict_proba(X_new), expit(odds), rtol=rtol)
    np.testing.assert_array_equal(search.predict(X_new), search.predict_proba(X_new) >= 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernels": ["linear"]},
        {"kernels": ["laplacian", "rbf"], "width_scales": [0.5, 2.0]},
        {"approximation": "nystroem", "n_components": 12},
        {"approximation": "nystroem", "n_components": 12, "landmarks": "random"},
        {"n_clusters": [(3, 5), None, 4]},
        {"clusterer": AgglomerativeClustering()},
        {"scoring": ["coverage", "one_error"], "refit": "coverage"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the kernel is not positive")
def test_maps_of_the_scores_of_separate_fits(small_problem, options):
    X, Y, X_new, _ = small_problem
    search = IMCCClassifierCV(**{**SMALL, **options}, cv=FOLDS, random_state=0, calibrate=True)
    assert_calibrated(search.fit(X, Y), X, Y, X_new, FOLDS)


def test_sparse_rows(small_problem):
    X, Y, X_new, _ = small_problem
    rows = sp.csr_matrix(np.where(X > 0, X, 0))
    search = IMCCClassifierCV(**SMALL, cv=FOLDS, random_state=0, calibrate=True).fit(rows, Y)
    assert_calibrated(search, rows, Y, sp.csr_matrix(np.where(X_new > 0, X_new, 0)), FOLDS)


def test_groups_are_held_out_together(small_problem):
    X, Y, X_new, _ = small_problem
    groups = np.arange(len(X)) % 9
    cv = GroupKFold(3)
    search = IMCCClassifierCV(**SMALL, cv=cv, random_state=0, calibrate=True)
    assert_calibrated(search.fit(X, Y, groups=groups), X, Y, X_new, cv, groups=groups)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_rows_of_another_library(small_problem, library):
    X, Y, X_new, _ = small_problem
    search = IMCCClassifierCV(
        **SMALL, cv=FOLDS, random_state=0, calibrate=True, clusterer=KMeans(n_init=1)
    )
    expected = clone(search).fit(X, Y)
    found = search.fit(array(library, X), Y)
    new = array(library, X_new)
    chances = found.predict_proba(new)
    assert type(chances) is type(new)
    np.testing.assert_allclose(host(library, chances), expected.predict_proba(X_new), rtol=1e-6)


def test_labels_that_are_constant_in_a_fold(small_problem):
    X, Y, X_new, _ = small_problem
    Y = Y.copy()
    Y[:, 0] = 0
    Y[5, 0] = 1  # never in the training rows of its fold
    Y[:, 1] = 1
    search = IMCCClassifierCV(**SMALL, cv=FOLDS, random_state=0, calibrate=True).fit(X, Y)
    assert_calibrated(search, X, Y, X_new, FOLDS)
    chances = search.predict_proba(X_new)
    assert ((chances > 0) & (chances < 1)).all()


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_one_class_per_row(small_problem, n_classes):
    X, _, X_new, _ = small_problem
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.0, 2.0][: n_classes - 1])]
    scoring = "one_error" if n_classes > 1 else "hamming_loss"
    search = IMCCClassifierCV(
        **SMALL, cv=KFold(3), scoring=scoring, random_state=0, calibrate=True
    ).fit(X, y)
    chances = search.predict_proba(X_new)
    assert chances.shape == (len(X_new), n_classes)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(search.predict(X_new), search.classes_[chances.argmax(axis=1)])
    if n_classes == 2:
        odds = search.decision_function(X_new)
        np.testing.assert_allclose(logit(chances[:, 1]), odds, rtol=1e-8)
        assert search.decision_function(X_new).shape == (len(X_new),)


def test_nothing_changes_without_it(small_problem):
    X, Y, X_new, _ = small_problem
    plain = IMCCClassifierCV(**SMALL, cv=FOLDS, random_state=0).fit(X, Y)
    with_maps = IMCCClassifierCV(**SMALL, cv=FOLDS, random_state=0, calibrate=True).fit(X, Y)
    assert not hasattr(plain, "predict_proba")
    assert not hasattr(plain, "calibration_")
    with pytest.raises(AttributeError) as caught:
        _ = plain.predict_proba
    assert "only with calibrate=True" in str(caught.value.__cause__)
    for name in ("best_params_", "best_score_"):
        assert getattr(plain, name) == getattr(with_maps, name)
    scores = plain.decision_function(X_new)
    np.testing.assert_array_equal(scores, with_maps.best_estimator_.decision_function(X_new))
    np.testing.assert_array_equal(plain.predict(X_new), scores >= 0)
    # What is fitted counts, not what the parameter has become.
    plain.set_params(calibrate=True)
    assert not hasattr(plain, "predict_proba")
    assert hasattr(clone(plain), "predict_proba")
    with_maps.set_params(calibrate=False)
    assert hasattr(with_maps, "predict_proba")
    assert not hasattr(with_maps.fit(X, Y), "predict_proba")


def test_a_random_state_object_is_used_up_alike(small_problem):
    X, Y, X_new, _ = small_problem
    searches = [
        IMCCClassifierCV(
            **SMALL, cv=FOLDS, random_state=np.random.RandomState(0), calibrate=calibrate
        ).fit(X, Y)
        for calibrate in (False, True)
    ]
    np.testing.assert_array_equal(
        *(search.best_estimator_.decision_function(X_new) for search in searches)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"calibrate": "yes"}, "calibrate must be True or False"),
        ({"refit": False}, "calibrate=True needs a fitted model"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "cv must hold out each row exactly once"),
        ({"cv": [(np.arange(60), np.arange(60, 90))]}, "60 rows are never held out"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "search",
    [IMCCClassifierCV(**SMALL), LLSFCV(**SPARSE), KernelRidgeBaseline([0.1, 1.0])],
    ids=lambda s: type(s).__name__,
)
def test_what_cannot_be_calibrated_is_refused(small_problem, search, parameters, message):
    X, Y, *_ = small_problem
    search = clone(search).set_params(calibrate=True).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)


@pytest.mark.parametrize(
    "search",
    [
        LLSFCV(**SPARSE),
        LLSFCV(**SPARSE, halving=True, unit_rows=True),
        JFSCCV(**{**SPARSE, "gammas": [0.001]}, etas=[1.0]),
        KernelRidgeBaseline([0.1, 1.0], width_scales=[0.5, 1.0]),
        KernelRidgeBaseline([0.1, 1.0], kernels="linear"),
    ],
    ids=str,
)
def test_other_searches(small_problem, search):
    X, Y, X_new, _ = small_problem
    search = clone(search).set_params(cv=FOLDS, calibrate=True).fit(X, Y)
    assert_calibrated(search, X, Y, X_new, FOLDS)
    assert not hasattr(search.set_params(calibrate=False).fit(X, Y), "predict_proba")


@pytest.mark.parametrize(
    "search",
    [
        IMCCClassifierCV(**SMALL, cv=3, random_state=0, calibrate=True),
        IMCCClassifierCV(**SMALL, cv=3, kernels="linear", random_state=0, calibrate=True),
        LLSFCV(**SPARSE, cv=3, calibrate=True),
        KernelRidgeBaseline([0.1, 1.0], cv=3, calibrate=True),
    ],
    ids=lambda s: type(s).__name__,
)
def test_the_chosen_setting_keeps_its_probabilities(small_problem, search):
    """In wrappers, the setting alone would give other scores than the search does."""
    X, Y, X_new, _ = small_problem
    fitted = clone(search).fit(X, Y)
    alone = best_setting(fitted).fit(X, Y)
    assert len(alone.cv_results_["params"]) == 1
    np.testing.assert_allclose(alone.predict_proba(X_new), fitted.predict_proba(X_new), rtol=1e-9)
    small, found = without_search(fitted)
    assert found is fitted
    assert not hasattr(small, "cv_results_")
    np.testing.assert_array_equal(small.predict_proba(X_new), fitted.predict_proba(X_new))
    np.testing.assert_array_equal(small.predict(X_new), fitted.predict(X_new))


def test_a_calibrated_search_without_its_table_can_be_saved(small_problem, tmp_path):
    pytest.importorskip("skops")
    X, Y, X_new, _ = small_problem
    search = IMCCClassifierCV(**SMALL, cv=FOLDS, random_state=0, calibrate=True).fit(X, Y)
    small, _ = without_search(search)
    again = load_model(save_model(small, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict_proba(X_new), search.predict_proba(X_new))
    np.testing.assert_array_equal(again.predict(X_new), search.predict(X_new))


def test_thresholds_and_calibrators_see_log_odds(small_problem):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(**SMALL, cv=3, random_state=0, calibrate=True)
    tuned = TunedThresholds(make_pipeline(StandardScaler(), search), cv=3).fit(X, Y)
    inner = best_setting(tuned.estimator_)
    expected = cross_fit_scores(inner, X, Y, cv=3)
    assert hasattr(inner, "predict_proba")
    twice = MultilabelCalibrator(tuned.estimator_[-1], cv=3).fit(X, Y)
    assert np.isfinite(expected).all()
    # The scores are log-odds already, so a second map is close to none.
    assert twice.slopes_.mean() == pytest.approx(1, abs=0.6)
