"""The grids by name, what is said at their edge, and the table of what was found."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

from imcc import IMCCClassifierCV
from imcc._math.search.results import edges_of_grid
from imcc.baselines import KernelRidgeBaseline
from imcc.estimators import EdgeOfGridWarning
from imcc.metrics import METRICS


def values_of(search, name):
    return sorted({setting[name] for setting in search.cv_results_["params"]})


def test_the_default_grid(small_problem):
    X, Y, *_ = small_problem
    search = IMCCClassifierCV(random_state=0).fit(X, Y)
    assert len(search.cv_results_["params"]) == 672
    assert values_of(search, "alpha") == [0, 0.1, 1, 10]
    assert values_of(search, "beta") == [10.0**k for k in range(-3, 4)]
    assert values_of(search, "gamma") == [0, 0.1, 1]
    assert values_of(search, "n_clusters") == [16, 64]
    assert values_of(search, "width_scale") == [0.25, 0.5, 1, 2]
    assert values_of(search, "kernel") == ["rbf"]


def test_axes_that_are_given_replace_those_of_the_grid(small_problem):
    X, Y, *_ = small_problem
    for grid, n_widths in (("default", 4), ("paper", 1)):
        search = IMCCClassifierCV(
            alphas=2.0, gammas=0.5, n_clusters=[3, 5], grid=grid, random_state=0
        ).fit(X, Y)
        assert values_of(search, "alpha") == [2]
        assert len(search.cv_results_["params"]) == 7 * 2 * n_widths
    with pytest.raises(ValueError, match="grid must be one of 'default', 'paper', got 'all'"):
        IMCCClassifierCV(grid="all").fit(X, Y)
    # None alone is the grid's, None as a value is the clusterer's own number.
    own = IMCCClassifierCV(1.0, 1.0, 0.1, [None], width_scales=1.0, clusterer=X[:5]).fit(X, Y)
    assert own.best_params_["n_clusters"] is None


def test_parameters_are_as_given():
    search = IMCCClassifierCV(grid="paper", betas=[1.0])
    params = search.get_params()
    assert (params["grid"], params["betas"], params["alphas"]) == ("paper", [1.0], None)
    assert clone(search).get_params() == params
    assert search.set_params(grid="default").get_params()["alphas"] is None
    assert repr(IMCCClassifierCV(grid="paper")) == "IMCCClassifierCV(grid='paper')"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=1, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_never_below_kernel_ridge(metric, seed):
    """On the same folds, by the score that each reports of itself."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(36, 3))
    Y = X @ rng.normal(size=(3, 4)) + rng.normal(size=(36, 4)) > 0.3
    cv = KFold(3, shuffle=True, random_state=seed)
    ridge = KernelRidgeBaseline(cv=cv, scoring=metric, refit=False).fit(X, Y)
    search = IMCCClassifierCV(
        n_clusters=[3, 6], cv=cv, scoring=metric, refit=False, random_state=0
    ).fit(X, Y)
    sign = 1 if METRICS[metric].greater_is_better else -1
    assert sign * search.best_score_ >= sign * ridge.best_score_ - 1e-9


def results(axes, best):
    """Return results of one axis in which some values share the first rank."""
    ((name, values),) = axes.items()
    return {
        "params": [{name: value} for value in values],
        "rank_test_score": np.where(np.isin(values, best), 1, 2),
    }


@pytest.mark.parametrize(
    ("axes", "best", "expected"),
    [
        ({"beta": [0.1, 1.0, 10.0]}, [10.0], {"beta": (10.0, "largest")}),
        ({"beta": [10.0, 0.1, 1.0]}, [0.1], {"beta": (0.1, "smallest")}),
        ({"beta": [0.1, 1.0, 10.0]}, [1.0], {}),
        ({"beta": [0.1, 10.0]}, [10.0], {}),
        ({"beta": [0.1, 10.0, 10.0]}, [10.0], {}),
        ({"beta": [0.1, 1.0, 10.0]}, [1.0, 10.0], {}),
        ({"alpha": [0.0, 1.0, 10.0]}, [0.0], {}),
        ({"alpha": [0.1, 1.0, 10.0]}, [0.1], {"alpha": (0.1, "smallest")}),
        ({"n_clusters": [1, 2, 4]}, [1], {}),
        ({"n_clusters": [1, 2, 40]}, [40], {}),
        ({"n_clusters": [1, 2, 4]}, [4], {"n_clusters": (4, "largest")}),
    ],
    ids=str,
)
def test_edges(axes, best, expected):
    bounds = {"alpha": (0, np.inf), "n_clusters": (1, 40)}
    assert edges_of_grid(results(axes, best), "score", axes, bounds) == expected


def test_axes_that_are_no_numbers_have_no_edge():
    found = {"params": [{"n_clusters": n} for n in (2, (2, 3), None)], "rank_test_score": [1, 2, 3]}
    assert edges_of_grid(found, "score", {"n_clusters": [2, (2, 3), None]}, {}) == {}


def test_a_best_setting_at_the_edge_is_a_warning(small_problem):
    X, Y, *_ = small_problem
    fixed = {"alphas": 1.0, "gammas": 0.1, "n_clusters": [3, 8], "width_scales": 1.0}
    far = IMCCClassifierCV(**fixed, betas=[1e-7, 1e-5, 1e-3], random_state=0)
    with pytest.warns(EdgeOfGridWarning) as caught:
        far.fit(X, Y)
    (warning,) = caught
    assert "beta=0.001 is the largest of betas, try larger values" in str(warning.message)
    assert warning.filename == __file__
    wide = IMCCClassifierCV(**fixed, betas=[1e-7, 1e-5, 1e-3, 1.0, 1e4], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EdgeOfGridWarning)
        assert wide.fit(X, Y).best_score_ > far.best_score_
    with pytest.warns(EdgeOfGridWarning, match="largest of width_scales"):
        KernelRidgeBaseline([1.0], width_scales=[0.05, 0.1, 0.2]).fit(X, Y)
