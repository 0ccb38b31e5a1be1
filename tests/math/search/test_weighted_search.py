"""The exact search with weights of rows: in fits, widths, clusters and metrics."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import JFSCCV, LLSFCV, KernelRidgeBaseline
from imcc.metrics import METRICS, LabelMetrics, evaluate
from tests.backends import BACKENDS, array

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*prototypes have no rows"),
    pytest.mark.filterwarnings("ignore:the best setting is at the edge"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SCORING = [*METRICS, "f1_macro"]
PROTOTYPES = np.array([[0.0, 0, 0, 0, 0], [2, 2, 0, 0, 1], [-2, 0.5, 2, 1, 0]])
OPTIONS = {
    "alphas": [0.0, 2.0],
    "betas": [0.1, 1.0],
    "gammas": [0.0, 0.5],
    "n_clusters": [None],
    "clusterer": PROTOTYPES,
    "scoring": SCORING,
    "refit": "average_precision",
    "width_scales": [1.0],
}
MODELS = {
    "rbf": {},
    "linear": {"kernels": ["linear"]},
    "nystroem": {"approximation": "nystroem", "landmarks": PROTOTYPES},
}


def means(search):
    return np.array([search.cv_results_[f"mean_test_{name}"] for name in SCORING])


@pytest.fixture(scope="module")
def weighted(small_problem):
    X, Y, X_new, _ = small_problem
    return X, Y, np.random.default_rng(0).integers(0, 4, len(X)), X_new


def repeated_folds(weights, n_splits=3):
    """Folds of the rows, and the same folds of the repeated rows."""
    numbers = np.repeat(np.arange(len(weights)), weights)
    folds = list(KFold(n_splits, shuffle=True, random_state=1).split(weights))
    return folds, [tuple(np.flatnonzero(np.isin(numbers, part)) for part in f) for f in folds]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_whole_weights_are_repeated_rows(weighted, name):
    X, Y, weights, X_new = weighted
    folds, more_folds = repeated_folds(weights)
    options = {**OPTIONS, **MODELS[name]}
    search = IMCCClassifierCV(**options, cv=folds).fit(X, Y, sample_weight=weights)
    more = [np.repeat(part, weights, axis=0) for part in (X, Y)]
    repeated = IMCCClassifierCV(**options, cv=more_folds).fit(*more)
    np.testing.assert_allclose(means(search), means(repeated), atol=1e-9)
    assert search.best_params_ == repeated.best_params_
    np.testing.assert_allclose(
        search.decision_function(X_new), repeated.decision_function(X_new), atol=1e-6
    )
    plain = IMCCClassifierCV(**options, cv=folds).fit(X, Y)
    assert np.abs(means(search) - means(plain)).max() > 1e-3


def test_whole_weights_are_repeated_rows_for_kernel_ridge(weighted):
    X, Y, weights, X_new = weighted
    folds, more_folds = repeated_folds(weights)
    search = KernelRidgeBaseline(cv=folds).fit(X, Y, sample_weight=weights)
    more = [np.repeat(part, weights, axis=0) for part in (X, Y)]
    repeated = KernelRidgeBaseline(cv=more_folds).fit(*more)
    assert search.best_params_ == repeated.best_params_
    np.testing.assert_allclose(
        search.decision_function(X_new), repeated.decision_function(X_new), atol=1e-6
    )


def test_any_weights_equal_separate_fits(weighted):
    X, Y, weights, _ = weighted
    weights = weights * 0.37
    folds = list(KFold(3).split(X))
    options = {"n_clusters": [4], "random_state": 0, "scoring": list(METRICS), "refit": False}
    search = IMCCClassifierCV(
        [0.5, 2.0], [0.1, 1.0], [0.3], **options, width_scales=[0.5, 1.0], cv=folds
    ).fit(X, Y, sample_weight=weights)
    for k, params in enumerate(search.cv_results_["params"]):
        for i, (train, test) in enumerate(folds):
            clf = IMCCClassifier(**params, random_state=0)
            clf.fit(X[train], Y[train], sample_weight=weights[train])
            scores = clf.decision_function(X[test])
            expected = evaluate(Y[test], scores, sample_weight=weights[test])
            for name in METRICS:
                found = search.cv_results_[f"split{i}_test_{name}"][k]
                assert found == pytest.approx(expected[name], abs=1e-9), (name, params)


@pytest.mark.parametrize(
    "cv",
    [3, GroupKFold(3), list(KFold(3).split(np.empty(90)))],
    ids=["number", "groups", "listed"],
)
def test_zero_weight_leaves_a_row_out(weighted, cv):
    X, Y, weights, X_new = weighted
    weights = weights * 0.37
    some = weights > 0
    place = np.cumsum(some) - 1
    rest_cv = (
        cv
        if not isinstance(cv, list)
        else [tuple(place[p][some[p]] for p in split) for split in cv]
    )
    options = {"alphas": [0.5], "betas": [0.1, 1], "gammas": [0.3], "n_clusters": [3]}
    options |= {"random_state": 0, "calibrate": True}
    groups = np.arange(90) % 7 if isinstance(cv, GroupKFold) else None
    every = IMCCClassifierCV(**options, cv=cv).fit(X, Y, sample_weight=weights, groups=groups)
    rest = IMCCClassifierCV(**options, cv=rest_cv).fit(
        X[some],
        Y[some],
        sample_weight=weights[some],
        groups=None if groups is None else groups[some],
    )
    np.testing.assert_array_equal(every.predict_proba(X_new), rest.predict_proba(X_new))
    unweighted = IMCCClassifierCV(**options, cv=3).fit(X[some], Y[some])
    assert np.abs(unweighted.calibration_.slope - rest.calibration_.slope).max() > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_on_a_device(weighted, backend):
    X, Y, weights, _ = weighted
    weights = weights * 0.37
    folds = list(KFold(3).split(X))
    here = IMCCClassifierCV(**OPTIONS, cv=folds).fit(X, Y, sample_weight=weights)
    there = IMCCClassifierCV(**OPTIONS, cv=folds).fit(
        array(backend, X), Y, sample_weight=array(backend, weights)
    )
    np.testing.assert_allclose(means(there), means(here), atol=1e-9)


def test_callables_without_weights_are_not_weighted(weighted):
    X, Y, weights, _ = weighted

    def of_rows(estimator, rows, truth):
        return float(np.mean(estimator.predict(rows) == truth))

    def of_weights(estimator, rows, truth, sample_weight=None):
        return float(
            np.average((estimator.predict(rows) == truth).mean(axis=1), weights=sample_weight)
        )

    options = {"n_clusters": [3], "random_state": 0, "cv": 3, "refit": False}
    search = IMCCClassifierCV(
        [1.0], [1.0], [0.1], **options, scoring={"plain": of_rows, "weighted": of_weights}
    ).fit(X, Y, sample_weight=weights)
    loss = IMCCClassifierCV([1.0], [1.0], [0.1], **options, scoring="hamming_loss").fit(
        X, Y, sample_weight=weights
    )
    found = search.cv_results_
    np.testing.assert_allclose(found["mean_test_weighted"], 1 - loss.cv_results_["mean_test_score"])
    assert not np.allclose(found["mean_test_weighted"], found["mean_test_plain"])


@pytest.mark.parametrize(
    "make",
    [
        lambda cv: LLSFCV([0.1], [0.1, 1.0], [1.0], cv=cv, scoring=list(METRICS), refit="coverage"),
        lambda cv: JFSCCV(
            [0.1], [0.1, 1.0], [0.001], [1.0], cv=cv, scoring=list(METRICS), refit="coverage"
        ),
        lambda cv: KernelRidgeBaseline([0.1, 1.0], cv=cv, scoring=list(METRICS), refit="coverage"),
    ],
    ids=["LLSFCV", "JFSCCV", "KernelRidgeBaseline"],
)
def test_other_searches(weighted, make):
    X, Y, weights, X_new = weighted
    folds, more_folds = repeated_folds(weights)
    search = make(folds).fit(X, Y, sample_weight=weights)
    repeated = make(more_folds).fit(*[np.repeat(part, weights, axis=0) for part in (X, Y)])
    for name in METRICS:
        np.testing.assert_allclose(
            search.cv_results_[f"mean_test_{name}"],
            repeated.cv_results_[f"mean_test_{name}"],
            atol=2e-3,
        )
    np.testing.assert_allclose(
        search.decision_function(X_new), repeated.decision_function(X_new), atol=2e-3
    )


def test_judge_without_ranked_rows_is_undefined():
    metrics = LabelMetrics(np.ones((3, 2), dtype=bool), weights=np.ones(3))
    assert np.isnan(metrics.means(np.zeros((2, 1, 3)), ["average_precision"])).all()
