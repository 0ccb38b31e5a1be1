"""The two rows that are not in the paper: kernel ridge and extra-trees."""

import numpy as np
import pytest

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import KernelRidgeBaseline
from tests.naive import imcc as naive


def test_kernel_ridge_is_imcc_without_virtual_examples(small_problem):
    X, Y, X_new, _ = small_problem
    ridge = KernelRidgeBaseline(betas=0.7, width_scales=0.5).fit(X, Y)
    assert ridge.best_params_ == {"beta": 0.7, "kernel": "rbf", "width_scale": 0.5}
    for seed, n_clusters in ((0, 3), (1, 20)):
        imcc = IMCCClassifier(
            n_clusters, alpha=0, gamma=0, beta=0.7, width_scale=0.5, random_state=seed
        ).fit(X, Y)
        np.testing.assert_allclose(
            ridge.decision_function(X_new), imcc.decision_function(X_new), atol=1e-8
        )


def test_kernel_ridge_solves_its_problem(small_problem):
    """(K + beta I) a = y with the rows' kernel, the mean taken care of by the intercept."""
    X, Y, X_new, _ = small_problem
    ridge = KernelRidgeBaseline(betas=0.7, width_scales=0.5).fit(X, Y)
    width = 0.5 * naive.mean_distance(X)
    K = naive.rbf(X, X, width)
    signs = np.where(Y, 1.0, -1.0)
    system = np.block([[K + 0.7 * np.eye(90), np.ones((90, 1))], [np.ones((1, 90)), 0]])
    solution = np.linalg.solve(system, np.vstack([signs, np.zeros((1, 4))]))
    expected = naive.rbf(X_new, X, width) @ solution[:-1] + solution[-1]
    np.testing.assert_allclose(ridge.decision_function(X_new), expected, atol=1e-8)


def test_kernel_ridge_searches_exactly(small_problem):
    X, Y, *_ = small_problem
    axes = {"betas": [0.01, 1.0, 100.0], "kernels": ["rbf", "laplacian"], "width_scales": [0.5, 2]}
    ridge = KernelRidgeBaseline(**axes, cv=3, scoring="ranking_loss").fit(X, Y)
    imcc = IMCCClassifierCV(
        alphas=0, gammas=0, n_clusters=1, **axes, cv=3, scoring="ranking_loss", random_state=0
    ).fit(X, Y)
    np.testing.assert_allclose(
        ridge.cv_results_["mean_test_score"], imcc.cv_results_["mean_test_score"]
    )
    assert ridge.best_score_ == imcc.best_score_
    assert ridge.best_index_ == imcc.best_index_
    assert all(imcc.best_params_[name] == value for name, value in ridge.best_params_.items())
    assert len(KernelRidgeBaseline().fit(X, Y).cv_results_["params"]) == 7 * 4


def test_kernel_ridge_hears_its_kernel(small_problem):
    X, Y, X_new, _ = small_problem
    one = KernelRidgeBaseline(betas=1.0).fit(X, Y).decision_function(X_new)
    other = KernelRidgeBaseline(1.0, kernels="laplacian").fit(X, Y).decision_function(X_new)
    assert not np.allclose(other, one)


def test_kernel_ridge_hears_refit(small_problem):
    X, Y, *_ = small_problem
    search = KernelRidgeBaseline([0.1, 1.0], refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
