"""The search is exact: the same winner, scores and coefficients as fitting every setting."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.search.fold import _evaluate
from imcc._math.search.grid import DistinctLabels, _pairs_by_rho
from imcc._math.search.results import by_rank, cv_results, rank_settings
from imcc._utils.progress import progress_reported_to
from imcc.datasets import load_dataset, paper_splits
from imcc.metrics import METRICS, evaluate, get_scorer
from tests.backends import array, host
from tests.calls import recorded_calls

AXES = {
    "alpha": [1e-3, 1e3],
    "beta": [1e-3, 10.0],
    "gamma": [0.0, 0.1, 10.0],
    "n_clusters": [3, 12],
}
SMALL = {
    "alphas": [0.1, 10.0],
    "betas": [0.1, 1.0],
    "gammas": [0.1],
    "n_clusters": [3, 8],
    "grid": "paper",  # one width
}


def brute_force(X, Y, axes, cv, metrics=("average_precision",), **fixed):
    scoring = {name: get_scorer(name) for name in metrics}
    clf = IMCCClassifier(random_state=0, **fixed)
    return GridSearchCV(clf, axes, scoring=scoring, refit=metrics[0], cv=cv).fit(X, Y)


def exact_search(X, Y, axes, cv, metrics=("average_precision",), **fixed):
    named = {f"{name}s".replace("n_clusterss", "n_clusters"): v for name, v in axes.items()}
    return IMCCClassifierCV(
        **named, cv=cv, scoring=list(metrics), refit=metrics[0], random_state=0, **fixed
    ).fit(X, Y)


def assert_same(found, expected, metrics, X_new):
    assert found.best_params_ == expected.best_params_
    assert found.cv_results_["params"] == expected.cv_results_["params"]
    for name in metrics:
        sign = 1 if METRICS[name].greater_is_better else -1
        for key in (f"mean_test_{name}", f"split0_test_{name}"):
            np.testing.assert_allclose(
                found.cv_results_[key], sign * expected.cv_results_[key], atol=1e-8, err_msg=key
            )
        np.testing.assert_allclose(
            found.cv_results_[f"std_test_{name}"],
            expected.cv_results_[f"std_test_{name}"],
            atol=1e-8,
        )
    np.testing.assert_array_equal(
        found.decision_function(X_new), expected.best_estimator_.decision_function(X_new)
    )


@pytest.mark.parametrize(
    "kernels",
    [
        {"kernel": ["rbf"], "width_scale": [1.0]},
        {"kernel": ["linear"]},
        {"kernel": ["rbf", "laplacian"], "width_scale": [0.5, 1.0], "gamma": [0.1]},
    ],
    ids=["rbf", "linear", "kernels and widths"],
)
def test_equals_fitting_every_setting(small_problem, kernels):
    X, Y, X_new, _ = small_problem
    metrics, cv = list(METRICS), KFold(3)
    axes = {**AXES, **kernels}
    expected = brute_force(X, Y, axes, cv, metrics)
    found = exact_search(X, Y, axes, cv, metrics)
    assert_same(found, expected, metrics, X_new)
    assert set(found.cv_results_) == set(expected.cv_results_)


def test_kernels_with_and_without_a_width(small_problem):
    X, Y, X_new, _ = small_problem
    small = {"alpha": [1.0], "beta": [0.1, 1.0], "gamma": [0.1], "n_clusters": [4]}
    grids = [
        {**small, "kernel": ["rbf", "laplacian"], "width_scale": [0.5, 2.0]},
        {**small, "kernel": ["linear", "cosine"]},
    ]
    expected = brute_force(X, Y, grids, KFold(3))
    axes = {**small, "kernel": ["linear", "rbf", "cosine", "laplacian"], "width_scale": [0.5, 2.0]}
    found = exact_search(X, Y, axes, KFold(3))
    assert_same(found, expected, ["average_precision"], X_new)
    np.testing.assert_array_equal(
        found.cv_results_["param_width_scale"].mask, expected.cv_results_["param_width_scale"].mask
    )


def test_the_clusterer_reaches_every_fit(small_problem):
    X, Y, X_new, _ = small_problem
    axes = {**AXES, "kernel": ["rbf"], "width_scale": [1.0]}
    fixed = {"clusterer": AgglomerativeClustering()}
    expected = brute_force(X, Y, axes, KFold(3), **fixed)
    assert_same(exact_search(X, Y, axes, KFold(3), **fixed), expected, ["average_precision"], X_new)


def test_prototypes_as_clusterer(small_problem):
    X, Y, X_new, _ = small_problem
    axes = {**AXES, "n_clusters": [None], "kernel": ["rbf"], "width_scale": [1.0]}
    expected = brute_force(X, Y, axes, KFold(3), clusterer=X[:5].copy())
    found = exact_search(X, Y, axes, KFold(3), clusterer=X[:5].copy())
    assert_same(found, expected, ["average_precision"], X_new)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_and_wide_rows(kernel):
    rng = np.random.default_rng(0)
    X = rng.random((40, 90)) * (rng.random((40, 90)) < 0.1)
    Y = rng.random((40, 3)) < 0.4
    axes = {**AXES, "kernel": [kernel]} | ({"width_scale": [1.0]} if kernel == "rbf" else {})
    expected = brute_force(sp.csr_matrix(X), Y, axes, KFold(3))
    found = exact_search(sp.csr_matrix(X), Y, axes, KFold(3))
    assert_same(found, expected, ["average_precision"], sp.csr_matrix(X))


def test_several_clusterings_on_the_axis(small_problem):
    X, Y, X_new, _ = small_problem
    axes = {"alpha": [1.0, 100.0], "beta": [0.01, 1.0], "gamma": [0.1, 10.0]}
    axes |= {"n_clusters": [5, (3, 6), (4, 4)], "kernel": ["rbf"], "width_scale": [1.0]}
    expected = brute_force(X, Y, axes, KFold(3))
    assert_same(exact_search(X, Y, axes, KFold(3)), expected, ["average_precision"], X_new)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_class_a_row(small_problem, n_classes):
    """Evaluated as a ranking of classes; split by class, as GridSearchCV does."""
    X, _, X_new, _ = small_problem
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.0, 2.0][: n_classes - 1])]
    found = IMCCClassifierCV(**SMALL, cv=3, scoring="one_error", random_state=0).fit(X, y)
    axes = {"alpha": [0.1, 10.0], "beta": [0.1, 1.0], "gamma": [0.1], "n_clusters": [3, 8]}
    expected = GridSearchCV(IMCCClassifier(random_state=0), axes, scoring="accuracy", cv=3).fit(
        X, y
    )
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], 1 - expected.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(found.predict(X_new), expected.predict(X_new))


def test_pairs_of_the_papers_grid_share_rho():
    decades = 10.0 ** np.arange(-3, 4)
    groups = _pairs_by_rho(decades, decades)
    assert len(groups) == 34
    assert sum(map(len, groups.values())) == 49
    for rho, pairs in groups.items():
        for i, j in pairs:
            assert decades[i] / (1 + decades[j]) == pytest.approx(rho, rel=1e-12)


def test_the_papers_grid(small_problem):
    X, Y, *_ = small_problem
    with pytest.warns(ConvergenceWarning, match="n_clusters=128 is more than"):
        search = IMCCClassifierCV(grid="paper", random_state=0, cv=3).fit(X, Y)
    settings = search.cv_results_["params"]
    assert len(settings) == 2058
    assert search.n_splits_ == 3
    for name in ("alpha", "beta", "gamma"):
        assert sorted({s[name] for s in settings}) == [10.0**k for k in range(-3, 4)]
    assert sorted({s["n_clusters"] for s in settings}) == [8, 16, 32, 64, 128, 256]
    assert {(s["kernel"], s["width_scale"]) for s in settings} == {("rbf", 1.0)}


def test_results_have_the_shape_of_grid_search(small_problem):
    X, Y, *_ = small_problem
    one = IMCCClassifierCV(**SMALL, random_state=0).fit(X, Y)
    axes = {"alpha": [0.1, 10.0], "beta": [0.1, 1.0], "gamma": [0.1], "n_clusters": [3, 8]}
    axes |= {"kernel": ["rbf"], "width_scale": [1.0]}
    grid = GridSearchCV(
        IMCCClassifier(random_state=0), axes, scoring=get_scorer("average_precision")
    ).fit(X, Y)
    assert set(one.cv_results_) == set(grid.cv_results_)
    for key, column in grid.cv_results_.items():
        assert len(one.cv_results_[key]) == len(column), key
        if key.startswith("param"):
            np.testing.assert_array_equal(np.asarray(one.cv_results_[key]), np.asarray(column))
        elif "time" not in key:
            np.testing.assert_allclose(one.cv_results_[key], column, atol=1e-12, err_msg=key)
    assert one.best_index_ == grid.best_index_
    assert one.best_score_ == pytest.approx(grid.best_score_)


def test_scoring_chooses_the_winner(small_problem):
    X, Y, *_ = small_problem
    metrics = list(METRICS)
    for decides in metrics:
        search = IMCCClassifierCV(**SMALL, scoring=metrics, refit=decides, random_state=0).fit(X, Y)
        column = search.cv_results_[f"mean_test_{decides}"]
        best = column.max() if METRICS[decides].greater_is_better else column.min()
        assert search.best_score_ == best
        assert column[search.best_index_] == best
        assert search.cv_results_[f"rank_test_{decides}"][search.best_index_] == 1


def test_without_refit(small_problem):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(**SMALL, refit=False, random_state=0).fit(X, Y)
    assert search.best_params_
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    several = ["coverage", "one_error"]
    search = IMCCClassifierCV(**SMALL, scoring=several, refit=False, random_state=0).fit(X, Y)
    assert not hasattr(search, "best_params_")
    assert "mean_test_coverage" in search.cv_results_


def test_any_splitter(small_problem):
    X, Y, *_ = small_problem
    groups = np.repeat(np.arange(9), 10)
    by_group = IMCCClassifierCV(**SMALL, cv=GroupKFold(4), random_state=0).fit(X, Y, groups=groups)
    assert by_group.n_splits_ == 4
    shuffled = ShuffleSplit(2, random_state=0)
    assert IMCCClassifierCV(**SMALL, cv=shuffled, random_state=0).fit(X, Y).n_splits_ == 2
    pairs = [(np.arange(60), np.arange(60, 90))]
    once = IMCCClassifierCV(**SMALL, cv=pairs, random_state=0).fit(X, Y)
    assert once.n_splits_ == 1
    with pytest.raises(ValueError, match="without held-out rows"):
        IMCCClassifierCV(**SMALL, cv=[(np.arange(9), np.array([], int))]).fit(X, Y)


def test_held_out_rows_have_no_influence_on_training(small_problem):
    """Changing held-out rows beyond recognition changes nothing in what is trained for them."""
    X, Y, *_ = small_problem
    odd = X.copy()
    odd[75:] += 1e3
    narrow = [(np.arange(60), np.arange(60, 75))]
    kept = IMCCClassifierCV(**SMALL, cv=narrow, refit=False, random_state=0)
    a = kept.fit(X, Y).cv_results_["mean_test_score"].copy()
    b = kept.fit(odd, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_jobs_make_no_difference(small_problem):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(**SMALL, random_state=0).set_params(
        kernels=["rbf", "laplacian"], width_scales=[0.25, 0.5, 1.0, 2.0]
    )
    expected = clone(search).fit(X, Y)
    alone = expected.cv_results_["mean_test_score"]
    with parallel_config("threading"):
        threads = search.set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(threads.cv_results_["mean_test_score"], alone, atol=1e-12)


@pytest.mark.slow
def test_processes_make_no_difference_and_lose_no_warning(small_problem):
    X, Y, *_ = small_problem
    axes = {**SMALL, "n_clusters": [3, 80]}
    results = []
    for n_jobs in (None, 2):
        with pytest.warns(ConvergenceWarning, match="n_clusters=80"):
            search = IMCCClassifierCV(**axes, random_state=0, n_jobs=n_jobs).fit(X, Y)
        results.append(search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(*results, atol=1e-12)


def test_progress(small_problem):
    X, Y, *_ = small_problem
    told = []
    kernels = {"kernels": ["rbf", "linear"], "width_scales": [0.5, 1.0]}
    with progress_reported_to(lambda share, what: told.append((share, what))):
        IMCCClassifierCV(**SMALL, **kernels, cv=3, random_state=0).fit(X, Y)
    shares = [share for share, what in told if what == "searching the grid"]
    assert len(shares) == 9
    assert shares == sorted(shares)


def test_more_clusters_than_a_fold_has_rows(small_problem):
    X, Y = small_problem[0][:12], small_problem[1][:12]
    with pytest.warns(ConvergenceWarning, match="n_clusters=64 is more than"):
        search = IMCCClassifierCV(**{**SMALL, "n_clusters": [4, 64]}, cv=3, random_state=0).fit(
            X, Y
        )
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_single_values_stay_fixed(small_problem):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(1.0, [0.1, 1.0], 0.1, 8, kernels="linear", random_state=0).fit(X, Y)
    assert [p["beta"] for p in search.cv_results_["params"]] == [0.1, 1.0]
    assert search.best_params_["kernel"] == "linear"


def test_a_metric_without_rows_to_judge(small_problem):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match=r"undefined on every fold.*hamming_loss"):
        IMCCClassifierCV(**SMALL, random_state=0).fit(X, Y[:, :1])
    search = IMCCClassifierCV(**SMALL, scoring="hamming_loss", random_state=0).fit(X, Y[:, :1])
    assert search.predict(X).shape == (90, 1)
    # Undefined on one fold only: that fold is left out of the means.
    Y = Y.copy()
    Y[:30] = 0
    some = IMCCClassifierCV(**SMALL, cv=KFold(3), random_state=0).fit(X, Y)
    assert np.isnan(some.cv_results_["split0_test_score"]).all()
    mean = (some.cv_results_["split1_test_score"] + some.cv_results_["split2_test_score"]) / 2
    np.testing.assert_allclose(some.cv_results_["mean_test_score"], mean)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, "alphas must contain at least one value"),
        ({"alphas": [-1]}, "alphas must be a finite number >= 0"),
        ({"betas": [0]}, "betas must be a finite number > 0"),
        ({"gammas": [np.inf]}, "gammas must be a finite number >= 0"),
        ({"n_clusters": [0]}, "n_clusters must be an integer"),
        ({"width_scales": [0]}, "width_scales must be a finite number > 0"),
        ({"kernels": ["gauss"]}, "kernel must be a callable or one of"),
        ({"scoring": "no_such"}, "scoring must be one of"),
        ({"scoring": []}, "scoring must contain"),
        ({"scoring": ["coverage", "coverage"]}, "scoring must contain at least one metric"),
        ({"scoring": ["coverage", "one_error"]}, "refit must be the name of the metric"),
        ({"refit": "coverage"}, "refit must be True or False"),
        ({"cv": 1}, "k-fold"),
        ({"clusterer": DBSCAN()}, "cannot be set"),
    ],
)
def test_bad_parameters_are_named(small_problem, parameters, message):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match=message):
        IMCCClassifierCV(**{**SMALL, **parameters}).fit(X, Y)


def with_indistinct_labels(X, Y):
    """Add columns that some fold of KFold(3) cannot tell apart: never, always, twice, opposite."""
    rare = np.zeros((len(Y), 4), int)
    rare[:10, 0] = 1  # in the first fold only: constant where it is held out
    rare[:, 1] = 1
    rare[40:45, 1] = 0  # off in the second fold only
    rare[:, 2] = Y[:, 1]
    rare[:, 3] = 1 - Y[:, 2]
    rare[70:75, 2:] = 1 - rare[70:75, 2:]  # equal and opposite but for the third fold
    return np.hstack([Y, rare])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_labels_that_a_fold_cannot_tell_apart_tie(small_problem, kernel):
    """As if every setting were fitted and rounding left no trace in the scores."""
    X, Y, *_ = small_problem
    Y = with_indistinct_labels(X, Y)
    search = IMCCClassifierCV(
        **SMALL, kernels=kernel, cv=KFold(3), random_state=0, refit="coverage",
        scoring=list(METRICS),
    )  # fmt: skip
    results = search.fit(X, Y).cv_results_
    for k, params in enumerate(results["params"]):
        for i, (train, test) in enumerate(KFold(3).split(X)):
            clf = search.estimator_for(params).fit(X[train], Y[train])
            scores = np.round(clf.decision_function(X[test]), 9)
            for name, value in evaluate(Y[test], scores).items():
                assert results[f"split{i}_test_{name}"][k] == pytest.approx(value, abs=1e-12)


def test_distinct_labels():
    signs = np.array([[1, -1, 1, -1, -1, 1], [1, 1, 1, -1, -1, -1], [1, -1, -1, -1, 1, 1.0]])
    labels = DistinctLabels.of(signs)
    np.testing.assert_array_equal(labels.signs, signs[:, [1, 2]])
    np.testing.assert_array_equal(labels.index, [0, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(labels.factor, [0, 1, 1, 0, -1, -1])
    np.testing.assert_array_equal(labels.constant, [1, 0, 0, -1, 0, 0])
    scores = np.random.default_rng(0).normal(size=(2, 3, 4))
    a, b = scores
    expected = np.stack([np.ones_like(a), a, b, -np.ones_like(a), -b, -a])
    np.testing.assert_array_equal(labels.expand(scores), expected)
    for name in ("torch", "array_api_strict"):
        found = host(name, labels.expand(array(name, scores)))
        np.testing.assert_array_equal(found, expected)
    different = DistinctLabels.of(signs[:, 1:3])
    assert different.expand(scores) is scores
    constant = DistinctLabels.of(np.ones((3, 2)))
    np.testing.assert_array_equal(constant.expand(scores[:1]), np.ones((2, 3, 4)))


def test_all_labels_constant_in_a_fold(small_problem):
    X, *_ = small_problem
    Y = np.zeros((90, 2), int)
    Y[:30, 0] = 1
    search = IMCCClassifierCV(**SMALL, cv=KFold(3), scoring="hamming_loss", random_state=0)
    results = search.fit(X, Y).cv_results_
    np.testing.assert_array_equal(results["split0_test_score"], 0.5)


def test_means_that_rounding_keeps_apart_are_tied():
    means = np.array([0.7, 0.9, np.nan, 0.9 * (1 + 1e-15), 0.9 - 1e-6, 0.7])
    np.testing.assert_array_equal(rank_settings(means, True), [4, 1, 6, 1, 3, 4])
    np.testing.assert_array_equal(rank_settings(means, False), [1, 4, 6, 4, 3, 1])
    np.testing.assert_array_equal(rank_settings(np.zeros(3), False), [1, 1, 1])
    results = {"mean_test_score": means, "rank_test_score": rank_settings(means, True)}
    assert by_rank(results, "score") == [1, 3, 4, 0, 5]


@pytest.mark.parametrize("scoring", ["average_precision", "hamming_loss"])
def test_scores_that_are_not_finite_name_the_setting(small_problem, scoring):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(**SMALL, cv=3, scoring=scoring, random_state=0)
    with recorded_calls(_evaluate) as scored, recorded_calls(cv_results) as laid_out:
        search.fit(X, Y)
    # A fold of that search, as if products with the centres of the second clustering overflowed.
    arguments = scored[0].arguments
    (problem,) = arguments["problems"]
    first, second = problem.factors
    arguments["problems"] = [replace(problem, factors=[first, np.full_like(second, np.nan)])]
    finite, *_ = _evaluate(**arguments)
    assert finite[..., 0].all()
    assert not finite[..., 1].any()
    arguments = laid_out[0].arguments
    arguments["outcomes"][0][0, 0, 0] = finite
    with pytest.raises(ValueError, match=r"4 of 8 settings .* not finite, .*'n_clusters': 8"):
        cv_results(**arguments)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "weights", "n_clusters"),
    [("genbase", (1e-3, 1.0, 1e3), (8, 64)), ("medical", (1.0,), (64, 128))],
)
def test_the_choice_does_not_depend_on_the_number_of_threads(name, weights, n_clusters):
    """On genbase many labels are constant or equal in a fold; on medical k-means has ties."""
    data = load_dataset(name)
    train, _ = next(iter(paper_splits(data, 1)))
    searches = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            search = IMCCClassifierCV(
                weights, weights, weights, n_clusters, scoring=list(METRICS), random_state=0,
                refit="average_precision",
            )  # fmt: skip
            searches.append(search.fit(data.X[train], data.Y[train]))
    one, two = searches
    assert one.best_params_ == two.best_params_
    for name in METRICS:
        np.testing.assert_allclose(
            *(s.cv_results_[f"mean_test_{name}"] for s in searches), atol=1e-12, rtol=0
        )
        np.testing.assert_array_equal(*(s.cv_results_[f"rank_test_{name}"] for s in searches))


def test_scorers_of_scikit_learn_are_those_of_single_fits(small_problem):
    X, Y, X_new, _ = small_problem
    axes = {**AXES, "gamma": [0.1], "kernel": ["rbf"], "width_scale": [1.0]}

    def mean_score(estimator, X, y):
        return float(np.mean(estimator.decision_function(X) * (2 * y - 1)))

    scoring = {"f1_macro": "f1_macro", "roc_auc": "roc_auc", "mine": mean_score}
    expected = GridSearchCV(
        IMCCClassifier(random_state=0), axes, scoring=scoring, refit="f1_macro", cv=KFold(3)
    ).fit(X, Y)
    named = {f"{name}s": axes[name] for name in ("alpha", "beta", "gamma", "kernel")}
    found = IMCCClassifierCV(
        **named, n_clusters=axes["n_clusters"], width_scales=1.0, cv=KFold(3), random_state=0,
        scoring={**scoring, "coverage": "coverage"}, refit="f1_macro",
    ).fit(X, Y)  # fmt: skip
    for name in scoring:
        np.testing.assert_allclose(
            found.cv_results_[f"mean_test_{name}"],
            expected.cv_results_[f"mean_test_{name}"],
            atol=1e-9,
        )
    assert found.best_params_ == expected.best_params_
    assert found.best_score_ == pytest.approx(expected.best_score_)
    np.testing.assert_array_equal(found.predict(X_new), expected.predict(X_new))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
def test_scorers_of_one_class_per_row(small_problem, n_classes, library):
    X, *_ = small_problem
    y = np.digitize(X[:, 0], [0.0, 2.0][: n_classes - 1]) + 5
    axes = {"alpha": [0.1, 10.0], "beta": [0.1, 1.0], "gamma": [0.1], "n_clusters": [3, 8]}
    clusterer = AgglomerativeClustering()
    expected = GridSearchCV(
        IMCCClassifier(clusterer=clusterer), axes, scoring="balanced_accuracy", cv=3
    ).fit(X, y)
    rows = X if library == "numpy" else array(library, X)
    found = IMCCClassifierCV(
        **SMALL, cv=3, scoring="balanced_accuracy", clusterer=clusterer, refit=library == "numpy"
    ).fit(rows, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert found.best_params_.items() >= expected.best_params_.items()


def test_scorers_that_need_more_than_scores_are_refused_early(small_problem):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match="'neg_log_loss' cannot be computed"):
        IMCCClassifierCV(**SMALL, scoring="neg_log_loss").fit(X, Y)
    with pytest.raises(ValueError, match=r"'f1' cannot be computed.*average"):
        IMCCClassifierCV(**SMALL, scoring="f1").fit(X, Y)
    with pytest.raises(ValueError, match="values of scoring='score' that are not finite"):
        IMCCClassifierCV(**SMALL, scoring=lambda *_: np.nan).fit(X, Y)
    with pytest.raises(ValueError, match="must keep its name"):
        IMCCClassifierCV(**SMALL, scoring={"mine": "coverage"}, refit="mine").fit(X, Y)
