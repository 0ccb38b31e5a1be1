"""What every baseline must stand: scikit-learn's checks, awkward data, bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from imcc.baselines import (
    JFSC,
    JFSCCV,
    LIFT,
    LLSF,
    LLSFCV,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    KernelRidgeBaseline,
)
from tests.estimators.test_bad_input import BAD_DATA
from tests.estimators.test_scikit_learn import SKIPPED, WEIGHTS

SMALL_AXES = {"alphas": [0.01], "betas": [0.1, 1.0], "gammas": [0.01], "cv": 2}
BASELINES = [
    BinaryRelevanceSVM(random_state=0),
    EnsembleClassifierChains(3, random_state=0),
    EnsembleClassifierChains(2, scores="margin", sample_fraction=1.0, random_state=0),
    MAHR(n_rounds=15),
    LIFT(random_state=0),
    LLSF(),
    JFSC(gamma=0.001),
    LLSFCV(**SMALL_AXES, calibrate=True),
    JFSCCV(**SMALL_AXES, budget=2, halving=True, random_state=0),
    KernelRidgeBaseline(betas=[0.1, 1.0], width_scales=[1.0], cv=2),
]
every_baseline = pytest.mark.parametrize("baseline", BASELINES, ids=str)
# LLSF and JFSC say so when features on different scales keep them from converging.
unscaled = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    Y = (X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(60, 3)) > 0).astype(int)
    return X, Y


@pytest.mark.slow
@unscaled
@every_baseline
def test_check_estimator(baseline):
    drawn = (BinaryRelevanceSVM, EnsembleClassifierChains, LIFT)  # folds, samples, rows held out
    expected = WEIGHTS if isinstance(baseline, drawn) else {}
    results = check_estimator(baseline, on_skip=None, expected_failed_checks=expected)
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {*SKIPPED, *expected}
    assert len(results) > 50


@every_baseline
def test_learns_something(baseline, problem):
    X, Y = problem
    clf = clone(baseline).fit(X, Y)
    predicted, scores = clf.predict(X), clf.decision_function(X)
    assert (predicted == Y).mean() > 0.8
    np.testing.assert_array_equal(predicted, (scores >= 0).astype(int))
    assert clf.score(X, Y) == np.mean((predicted == Y).all(axis=1))


@every_baseline
@pytest.mark.parametrize("row", [0, None], ids=["one row differs", "constant"])
def test_labels_never_or_always_on(baseline, problem, row):
    """Never on, always on, and (one row differs) constant in most folds and samples."""
    X, Y = problem
    Y = np.column_stack([Y, np.zeros(60, int), np.ones(60, int)])
    if row is not None:
        Y[row, 3:] = [1, 0]
    clf = clone(baseline).fit(X, Y)
    scores = clf.decision_function(X)
    assert np.isfinite(scores).all()
    assert (clf.predict(X)[1:, 3] == 0).mean() > 0.9
    assert (clf.predict(X)[1:, 4] == 1).mean() > 0.9
    if row is None and not isinstance(clf, (LLSF, JFSC, LLSFCV, JFSCCV)):
        np.testing.assert_array_equal(scores[:, 3:], scores[:1, 3:].repeat(60, axis=0))


@every_baseline
def test_only_constant_labels(baseline, problem):
    X, _ = problem
    Y = np.tile([0, 1, 1], (60, 1))
    if isinstance(baseline, (LLSFCV, JFSCCV)):
        baseline = clone(baseline).set_params(scoring="hamming_loss")
    np.testing.assert_array_equal(clone(baseline).fit(X, Y).predict(X[:5]), Y[:5])


@every_baseline
@unscaled
def test_sparse_rows_give_the_dense_result(baseline, problem):
    X, Y = problem
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = clone(baseline).fit(X, Y).decision_function(X)
    clf = clone(baseline).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(clf.decision_function(sp.csc_matrix(X)), dense, atol=1e-5)
    np.testing.assert_allclose(clf.decision_function(X), dense, atol=1e-5)


@every_baseline
def test_a_single_feature(baseline, problem):
    X, Y = problem
    clf = clone(baseline).fit(X[:, :1], Y)
    assert clf.decision_function(X[:, :1]).shape == (60, 3)


@every_baseline
def test_duplicate_rows(baseline, problem):
    """Every row five times: clusters, folds and samples meet copies everywhere."""
    X, Y = problem
    X, Y = np.repeat(X[:12], 5, axis=0), np.repeat(Y[:12], 5, axis=0)
    clf = clone(baseline).fit(X, Y)
    scores = clf.decision_function(X).reshape(12, 5, 3)
    np.testing.assert_allclose(scores - scores[:, :1], 0, atol=1e-6)


@every_baseline
def test_data_frames_float32_and_label_coding(baseline, problem):
    X, Y = problem
    scores = clone(baseline).fit(X, Y).decision_function(X)
    frame = clone(baseline).fit(pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Y).add_prefix("y"))
    assert list(frame.label_names_) == ["y0", "y1", "y2"]
    assert list(frame.feature_names_in_) == ["x0", "x1", "x2", "x3"]
    signs = clone(baseline).fit(X, np.where(Y, 1, -1)).decision_function(X)
    np.testing.assert_allclose(signs, scores)
    low = clone(baseline).fit(X.astype(np.float32), Y.astype(bool)).decision_function(X)
    # Trees and clusters may take another turn in float32.
    assert np.corrcoef(low.ravel(), scores.ravel())[0, 1] > 0.97


@every_baseline
def test_the_same_seed_gives_the_same_scores_and_pickles_keep_them(baseline, problem):
    X, Y = problem
    clf = clone(baseline).fit(X, Y)
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(clone(baseline).fit(X, Y).decision_function(X), scores)
    again = pickle.loads(pickle.dumps(clf)).decision_function(X)
    np.testing.assert_allclose(again, scores, rtol=1e-10)


# Identical rows are no error for algorithms without a kernel width.
BAD_EVERYWHERE = [case for case in BAD_DATA if "identical" not in case[2]]


@every_baseline
def test_bad_data_gets_the_same_words(baseline):
    for rows, labels, message in BAD_EVERYWHERE:
        with pytest.raises(ValueError, match=message):
            clone(baseline).fit(rows, labels)


@every_baseline
def test_identical_rows_are_no_error_without_a_width(baseline, problem):
    _, Y = problem
    if isinstance(baseline, KernelRidgeBaseline):
        with pytest.raises(ValueError, match="all training rows are identical"):
            clone(baseline).fit(np.ones((60, 4)), Y)
        return
    scores = clone(baseline).fit(np.ones((60, 4)), Y).decision_function(np.ones((2, 4)))
    np.testing.assert_array_equal(scores >= 0, [Y.mean(axis=0) >= 0.5] * 2)


@every_baseline
def test_use_before_fit_and_with_other_features(baseline, problem):
    X, Y = problem
    with pytest.raises(NotFittedError):
        clone(baseline).predict(X)
    clf = clone(baseline).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        clf.decision_function(X[:, :3])


BAD_PARAMETERS = [
    (BinaryRelevanceSVM(C=0), "C must be a finite number > 0, got 0"),
    (BinaryRelevanceSVM(scores="vote"), "scores must be one of 'probability', 'margin'"),
    (EnsembleClassifierChains(0), "n_chains must be an integer >= 1"),
    (EnsembleClassifierChains(C="1"), "C must be"),
    (EnsembleClassifierChains(sample_fraction=1.5), "sample_fraction must be .* > 0 and <= 1"),
    (EnsembleClassifierChains(sample_fraction=0), "sample_fraction must be"),
    (EnsembleClassifierChains(sample_fraction=1.0), "needs rows that a chain was not trained on"),
    (MAHR(n_rounds=0), "n_rounds must be an integer >= 1"),
    (MAHR(reuse=1), "reuse must be True or False, got 1"),
    (MAHR(max_bins=1), "max_bins must be an integer >= 2"),
    (MAHR(min_loss=-1), "min_loss must be a finite number >= 0"),
    (LIFT(ratio=0), "ratio must be a finite number > 0"),
    (LIFT(ratio=2), "ratio must be .* > 0 and <= 1"),
    (LIFT(C=-1), "C must be"),
    (LLSF(alpha=-1), "alpha must be a finite number >= 0"),
    (LLSF(beta=None), "beta must be"),
    (LLSF(gamma=0), "gamma must be a finite number > 0"),
    (LLSF(max_iter=0), "max_iter must be an integer >= 1"),
    (LLSF(tol=np.nan), "tol must be"),
    (JFSC(gamma=-1), "gamma must be a finite number >= 0"),
    (JFSC(eta=0), "eta must be a finite number > 0"),
    (LLSFCV(alphas=[-1]), "alphas must be a finite number >= 0"),
    (LLSFCV(betas=[]), "betas must contain at least one value"),
    (LLSFCV(gammas=[0]), "gammas must be a finite number > 0"),
    (LLSFCV(budget=0), "budget must be an integer >= 1"),
    (LLSFCV(halving="yes"), "halving must be True or False"),
    (LLSFCV(scoring=["one_error"], refit=False, halving=True), "halving=True needs a metric"),
    (LLSFCV(scoring="accuracy"), "scoring must be one of"),
    (LLSFCV(max_iter=0), "max_iter must be"),
    (JFSCCV(etas=[0]), "etas must be a finite number > 0"),
    (JFSCCV(tol=-1), "tol must be"),
    (KernelRidgeBaseline(betas=[0]), "betas must be a finite number > 0"),
]


@pytest.mark.parametrize(("baseline", "message"), BAD_PARAMETERS, ids=str)
def test_bad_parameters(baseline, message, problem):
    with pytest.raises(ValueError, match=message):
        baseline.fit(*problem)
