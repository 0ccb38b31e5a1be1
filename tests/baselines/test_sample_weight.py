"""Weights of rows in every baseline: zero leaves a row out, whole weights are repeated rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from imcc.baselines import JFSC, LIFT, LLSF, MAHR, BinaryRelevanceSVM, EnsembleClassifierChains
from imcc.baselines._platt import fit_sigmoid, prior_log_odds
from imcc.baselines.lift import label_centers, row_identities
from tests.baselines.test_all import every_baseline
from tests.naive import imcc as naive

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 4))
    Y = (X @ rng.normal(size=(4, 3)) + 0.8 * rng.normal(size=(60, 3)) > 0).astype(int)
    return X, Y, rng.integers(0, 4, size=60)


@every_baseline
def test_zero_weight_leaves_a_row_out(baseline, problem):
    X, Y, weights = problem
    weights = weights * 0.7
    some = weights > 0
    every = clone(baseline).fit(X, Y, sample_weight=weights).decision_function(X)
    rest = clone(baseline).fit(X[some], Y[some], sample_weight=weights[some])
    np.testing.assert_array_equal(every, rest.decision_function(X))
    plain = clone(baseline).fit(X[some], Y[some]).decision_function(X)
    assert np.abs(every - plain).max() > 1e-3  # the weights do something


@every_baseline
def test_equal_weights_change_nothing(baseline, problem):
    X, Y, _ = problem
    plain = clone(baseline).fit(X, Y).decision_function(X)
    ones = clone(baseline).fit(X, Y, sample_weight=np.ones(60)).decision_function(X)
    np.testing.assert_array_equal(ones, plain)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    ("baseline", "within"),
    [
        (LLSF(tol=1e-9, max_iter=20000), 1e-6),
        (LLSF(tol=1e-9, max_iter=20000, fit_intercept=False, unit_rows=True), 1e-6),
        (JFSC(gamma=0.001, tol=1e-9, max_iter=20000), 1e-6),
        (MAHR(n_rounds=20), 1e-9),
        (MAHR(n_rounds=20, max_bins=5), 1e-9),
        # libsvm stops when the conditions of optimality hold to 1e-3.
        (BinaryRelevanceSVM(scores="margin"), 1e-2),
        (EnsembleClassifierChains(2, scores="margin", sample_fraction=1.0, random_state=0), 1e-2),
    ],
    ids=str,
)
def test_whole_weights_are_repeated_rows(baseline, within, form, problem):
    X, Y, weights = problem
    more_X, more_Y = naive.repeated(weights, X, Y)
    weighted = clone(baseline).fit(form(X), Y, sample_weight=weights).decision_function(X)
    repeated = clone(baseline).fit(form(more_X), more_Y).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=within)


def test_sigmoid_of_whole_weights_is_that_of_repeated_rows(problem):
    X, Y, weights = problem
    margins, on = X[:, 0], Y[:, 0] > 0
    more_margins, more_on = naive.repeated(weights, margins, on)
    some = weights > 0
    found = fit_sigmoid(margins[some], on[some], weights[some].astype(float))
    np.testing.assert_allclose(found, fit_sigmoid(more_margins, more_on), rtol=1e-6)
    assert prior_log_odds(on, weights.astype(float)) == pytest.approx(prior_log_odds(more_on))


def test_lift_counts_clusters_by_weights(problem):
    X, Y, weights = problem
    some = weights > 0
    X, on, weights = X[some], Y[some, 0] > 0, weights[some].astype(float)
    more_X, more_on = naive.repeated(weights.astype(int), X, on)
    found = label_centers(X, on, row_identities(X), 0.3, 0, weights)
    repeated = label_centers(more_X, more_on, row_identities(more_X), 0.3, 0)
    assert found.shape == repeated.shape
    lift = LIFT(0.3, random_state=0).fit(X, on[:, None], sample_weight=weights)
    assert lift.cluster_centers_[0].shape == found.shape
