"""LLSFCV and JFSCCV against fitting each setting on each fold."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from imcc.baselines import JFSC, JFSCCV, LLSF, LLSFCV, UnboundedError
from imcc.baselines._sparse_linear import scaled
from imcc.metrics import METRICS, evaluate

EXACT = {"max_iter": 5000, "tol": 1e-9}
AXES = {
    LLSFCV: {"alphas": [0.1, 1.0], "betas": [0.2, 2.0, 5.0], "gammas": [0.1, 10.0]},
    JFSCCV: {"alphas": [0.1, 1.0], "betas": [0.2, 2.0], "gammas": [0.001, 0.02], "etas": [1.0]},
}
both = pytest.mark.parametrize(("make", "model"), [(LLSFCV, LLSF), (JFSCCV, JFSC)])


@both
def test_equals_fitting_each_setting_on_each_fold(small_problem, make, model):
    X, Y, X_new, _ = small_problem
    cv = KFold(3, shuffle=True, random_state=0)
    search = make(**AXES[make], **EXACT, cv=cv, scoring=list(METRICS), refit="ranking_loss")
    search.fit(X, Y)
    results = search.cv_results_
    assert len(results["params"]) == np.prod([len(axis) for axis in AXES[make].values()])
    for k, setting in enumerate(results["params"]):
        for i, (train, test) in enumerate(cv.split(X)):
            clf = model(**setting, **EXACT).fit(X[train], Y[train])
            for name, value in evaluate(Y[test], clf.decision_function(X[test])).items():
                assert results[f"split{i}_test_{name}"][k] == pytest.approx(value, abs=1e-9)
    best = results["mean_test_ranking_loss"].argmin()
    assert results["mean_test_ranking_loss"][search.best_index_] == pytest.approx(
        results["mean_test_ranking_loss"][best]
    )
    alone = model(**search.best_params_, **EXACT).fit(X, Y)
    np.testing.assert_allclose(search.decision_function(X_new), alone.decision_function(X_new))
    assert search.n_iter_ == search.best_estimator_.n_iter_


def test_default_grids_are_the_papers():
    llsf, jfsc = LLSFCV(), JFSCCV()
    assert [len(axis) for axis in (llsf.alphas, llsf.betas, llsf.gammas)] == [21, 21, 3]
    assert [llsf.alphas[0], llsf.alphas[-1]] == [2.0**-10, 2.0**10]
    assert [len(axis) for axis in (jfsc.alphas, jfsc.betas, jfsc.gammas)] == [11, 11, 11]
    assert [jfsc.gammas[0], jfsc.gammas[-1]] == [4.0**-5, 4.0**5]
    assert jfsc.etas == (0.1, 1, 10)


def test_a_budget_draws_from_the_grid_and_is_recorded(small_problem):
    X, Y, *_ = small_problem
    search = LLSFCV(budget=7, cv=3, random_state=0).fit(X, Y)
    assert len(search.cv_results_["params"]) == 7
    assert len({tuple(setting.values()) for setting in search.cv_results_["params"]}) == 7
    assert search.budget_["settings_in_grid"] == 1323
    assert search.budget_["settings_tried"] == 7
    assert search.budget_["fits"] == 21
    assert search.budget_["fits_of_full_search"] == 3969
    same, other = (
        LLSFCV(budget=7, cv=3, random_state=seed).fit(X, Y).cv_results_["params"] for seed in (0, 1)
    )
    assert same == search.cv_results_["params"]
    assert other != same
    small = LLSFCV(**AXES[LLSFCV], budget=100, cv=3).fit(X, Y)
    assert small.budget_["settings_tried"] == 12


def test_halving_drops_the_worse_half_after_each_fold(small_problem):
    X, Y, *_ = small_problem
    # Only settings with a minimum, so that halves are halves.
    axes = {"alphas": [0.01, 0.1], "betas": np.logspace(-2, 1, 8), "gammas": 1.0}
    full = LLSFCV(**axes, cv=4).fit(X, Y)
    search = LLSFCV(**axes, cv=4, halving=True).fit(X, Y)
    tried = search.cv_results_["n_folds_tried"]
    assert [int((tried > i).sum()) for i in range(4)] == [16, 8, 4, 3]
    assert search.budget_["fits"] == 31
    assert search.budget_["halving"] is True
    first = search.cv_results_["split0_test_score"]
    np.testing.assert_allclose(first, full.cv_results_["split0_test_score"])
    assert first[tried > 1].min() >= first[tried == 1].max()
    assert tried[search.best_index_] == 4
    out = tried < 4
    assert np.isnan(search.cv_results_["mean_test_score"][out]).all()
    assert search.cv_results_["rank_test_score"][out].min() > 3


def test_unbounded_settings_are_ranked_last_and_counted(small_problem):
    X, Y, *_ = small_problem
    search = LLSFCV(alphas=[0.1, 1e5], betas=[0.1, 1.0], gammas=1.0, cv=3).fit(X, Y)
    np.testing.assert_array_equal(search.cv_results_["bounded"], [True, True, False, False])
    assert np.isnan(search.cv_results_["mean_test_score"][2:]).all()
    assert (search.cv_results_["rank_test_score"][2:] == 3).all()
    assert search.best_params_["alpha"] == 0.1
    assert search.budget_["fits_unbounded"] == 6
    with pytest.raises(UnboundedError, match=r"every setting of the grid .* smaller alphas or"):
        LLSFCV(alphas=1e5, betas=0.1, gammas=1.0).fit(X, Y)
    with pytest.raises(UnboundedError, match="smaller alphas, smaller gammas or larger betas"):
        JFSCCV(alphas=0.1, betas=0.1, gammas=1e5, etas=1.0).fit(X, Y)


def test_a_setting_that_is_unbounded_on_all_rows_only_gives_way_to_the_next(small_problem):
    """Labels that are equal in the rows of the folds do not pull at each other there."""
    X, Y, *_ = small_problem
    Y = np.stack([Y[:, 0], Y[:, 0]], axis=1)
    Y[60:, 1] = 1 - Y[60:, 0]
    cv = [(np.arange(0, 40), np.arange(40, 60)), (np.arange(20, 60), np.arange(0, 20))]
    search = LLSFCV(alphas=[1e5, 0.1], betas=0.2, gammas=1.0, cv=cv, scoring="hamming_loss")
    with pytest.warns(ConvergenceWarning, match="next best setting"):
        search.fit(X, Y)
    assert search.cv_results_["bounded"].all()
    np.testing.assert_array_equal(search.cv_results_["rank_test_score"], 1)
    assert search.best_index_ == 1
    assert search.best_estimator_.alpha == search.best_params_["alpha"] == 0.1
    search.set_params(alphas=[1e5, 1e6])
    with (
        pytest.warns(ConvergenceWarning, match="next best setting"),
        pytest.raises(UnboundedError, match="no setting that is bounded on the folds"),
    ):
        search.fit(X, Y)


def test_no_refit(small_problem):
    X, Y, *_ = small_problem
    search = LLSFCV(**AXES[LLSFCV], cv=3, refit=False).fit(X, Y)
    assert search.best_params_ in search.cv_results_["params"]
    with pytest.raises(AttributeError, match="refit=False"):
        search.decision_function(X)
    several = LLSFCV(**AXES[LLSFCV], cv=3, scoring=["one_error", "coverage"], refit=False)
    assert not hasattr(several.fit(X, Y), "best_params_")


def test_options_are_heard(small_problem):
    X, Y, *_ = small_problem
    axes = AXES[LLSFCV]
    one = LLSFCV(**axes, cv=3).fit(X, Y)
    assert one.n_splits_ == 3
    np.testing.assert_allclose(
        LLSFCV(**axes, cv=3, n_jobs=2).fit(X, Y).cv_results_["mean_test_score"],
        one.cv_results_["mean_test_score"],
    )
    rough = LLSFCV(**axes, cv=3, tol=0.5).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        short = LLSFCV(**axes, cv=3, max_iter=1).fit(X, Y)
    assert short.n_iter_ == 1
    assert rough.n_iter_ < one.n_iter_


def test_n_jobs_reaches_joblib(small_problem, n_jobs_used):
    X, Y, *_ = small_problem
    LLSFCV(**AXES[LLSFCV], cv=3, n_jobs=2).fit(X, Y)
    assert n_jobs_used == {2}


def test_groups_reach_the_splitter(small_problem):
    from sklearn.model_selection import GroupKFold

    X, Y, *_ = small_problem
    groups = np.arange(90) // 30
    search = LLSFCV(**AXES[LLSFCV], cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert search.n_splits_ == 3
    with pytest.raises(ValueError, match="groups"):
        LLSFCV(**AXES[LLSFCV], cv=GroupKFold(3)).fit(X, Y)


CONSTANT = {"llsf": LLSF(beta=0.5), "jfsc": JFSC(beta=0.5, unit_rows=True, fit_intercept=False)}


@pytest.mark.parametrize("clf", CONSTANT.values(), ids=CONSTANT)
def test_constant_labels_have_constant_scores_and_do_not_touch_the_others(small_problem, clf):
    X, Y, X_new, _ = small_problem
    wide = np.column_stack([np.zeros(90, int), Y, np.ones(90, int), Y[:, 1]])
    scores = clf.fit(X, wide).decision_function(X_new)
    np.testing.assert_array_equal(scores[:, 0], -0.5)
    np.testing.assert_array_equal(scores[:, 5], 0.5)
    np.testing.assert_array_equal(scores[:, 6], scores[:, 2])
    without = clf.fit(X, wide[:, [1, 2, 3, 4, 6]]).decision_function(X_new)
    np.testing.assert_array_equal(scores[:, [1, 2, 3, 4, 6]], without)
    only = clf.fit(X, wide[:, [0, 5]]).decision_function(X_new)
    np.testing.assert_array_equal(only, np.tile([-0.5, 0.5], (40, 1)))
    assert clf.n_iter_ == 0


@both
def test_labels_that_a_fold_does_not_have_tie(small_problem, make, model):
    """Two labels that occur in one fold only: constant where that fold is held out."""
    X, Y, *_ = small_problem
    rare = np.zeros((90, 2), int)
    rare[:10, 0] = rare[5:20, 1] = 1
    Y = np.hstack([Y, rare])
    search = make(**AXES[make], **EXACT, cv=KFold(3), scoring=list(METRICS), refit="coverage")
    results = search.fit(X, Y).cv_results_
    for k, setting in enumerate(results["params"]):
        for i, (train, test) in enumerate(KFold(3).split(X)):
            scores = model(**setting, **EXACT).fit(X[train], Y[train]).decision_function(X[test])
            if i == 0:
                np.testing.assert_array_equal(scores[:, 4:], -0.5)
            for name, value in evaluate(Y[test], scores).items():
                assert results[f"split{i}_test_{name}"][k] == pytest.approx(value, abs=1e-9)


@both
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_row_scaling_and_the_column_of_ones_reach_every_fit(small_problem, make, model, form):
    X, Y, X_new, _ = small_problem
    options = {"unit_rows": True, "fit_intercept": False, **EXACT}
    search = make(**AXES[make], **options, cv=KFold(2)).fit(form(X), Y)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    train, test = next(KFold(2).split(X))
    for setting, found in zip(
        search.cv_results_["params"], search.cv_results_["split0_test_score"], strict=True
    ):
        clf = model(**setting, fit_intercept=False, **EXACT).fit((X / lengths)[train], Y[train])
        np.testing.assert_array_equal(clf.intercept_, 0)
        scores = clf.decision_function((X / lengths)[test])
        expected = evaluate(Y[test], scores, ["average_precision"])["average_precision"]
        assert found == pytest.approx(expected, abs=1e-9)
    # Scaled rows give the same scores as the rows they were scaled from.
    np.testing.assert_allclose(
        search.decision_function(3 * X_new), search.decision_function(X_new), atol=1e-12
    )
    plain = make(**AXES[make], **EXACT, cv=KFold(2)).fit(X, Y)
    assert not np.allclose(
        plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


def test_rows_of_zeros_and_of_huge_numbers_are_scaled_too():
    rows = np.array([[0.0, 0.0], [3e200, 4e200], [3.0, 4.0]])
    expected = [[0, 0], [0.6, 0.8], [0.6, 0.8]]
    np.testing.assert_allclose(scaled(rows, True), expected)
    np.testing.assert_allclose(scaled(sp.csr_matrix(rows), True).toarray(), expected)
    assert scaled(rows, False) is rows


def test_scores_that_are_not_finite_name_the_setting(small_problem):
    """Tiny training rows have huge weights, and held-out rows are huge."""
    X, Y, *_ = small_problem
    X = X * np.where(np.arange(len(X)) < 60, 1e-158, 1e151)[:, None]
    cv = [(np.arange(0, 40), np.arange(60, 90)), (np.arange(20, 60), np.arange(60, 90))]
    search = LLSFCV(alphas=0.0, betas=0.0, gammas=[1e300, 1e-320], cv=cv, refit=False)
    with pytest.raises(ValueError, match=r"not finite, first .*'gamma': 1e-320"):
        search.fit(X, Y)
