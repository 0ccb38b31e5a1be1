"""The methods for comparison: gradient boosting, logistic regression and extra-trees."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from imcc.datasets import Dataset, paper_splits
from imcc.metrics import evaluate
from imcc_paper import boosted
from imcc_paper._measured import Measurements
from imcc_paper.methods import (
    ExtraTreesBaseline,
    LightGBMBaseline,
    LogisticRegressionBaseline,
    XGBoostBaseline,
)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 6))
    signal = X[:, :3] + X[:, 3:] ** 2 - 1 + 0.5 * rng.normal(size=(150, 3))
    return X[:120], (signal[:120] > 0).astype(int), X[120:], (signal[120:] > 0).astype(int)


def log_loss(clf, X, Y):
    chances = clf.predict_proba(X)
    return -np.mean(np.log(np.where(Y, chances, 1 - chances)))


BOOSTERS = [LightGBMBaseline, XGBoostBaseline]


@pytest.fixture(params=BOOSTERS)
def booster(request):
    pytest.importorskip({"L": "lightgbm", "X": "xgboost"}[request.param.__name__[0]])
    return request.param


def test_they_predict_rows_they_have_not_seen(booster, problem):
    X, Y, X_new, Y_new = problem
    clf = booster(random_state=0).fit(X, Y)
    share = np.broadcast_to(Y.mean(axis=0), Y_new.shape)
    assert log_loss(clf, X_new, Y_new) < 0.9 * -np.mean(np.log(np.where(Y_new, share, 1 - share)))
    scores = clf.decision_function(X_new)
    np.testing.assert_allclose(clf.predict_proba(X_new), expit(scores))
    np.testing.assert_array_equal(clf.predict(X_new), scores >= 0)


def test_lightgbm_is_lightgbms(problem):
    """Each label: LightGBM by itself on all rows, with the number of trees that was found."""
    lightgbm = pytest.importorskip("lightgbm")
    X, Y, X_new, _ = problem
    clf = LightGBMBaseline(feature_fraction=1.0, random_state=0).fit(X, Y)
    assert clf.n_trees_.shape == (3,)
    assert (clf.n_trees_ >= 1).all()
    assert (clf.n_trees_ < 300).all()  # stopped
    for j in range(3):
        theirs = lightgbm.LGBMClassifier(
            n_estimators=int(clf.n_trees_[j]),
            num_leaves=15,
            min_child_samples=5,
            reg_lambda=1.0,
            verbosity=-1,
            n_jobs=1,
        ).fit(X, Y[:, j])
        expected = theirs.predict(X_new, raw_score=True)
        np.testing.assert_allclose(clf.decision_function(X_new)[:, j], expected, atol=1e-12)


def test_xgboost_is_xgboosts(problem):
    """A step of boosting from the labels' log-odds, against the formula of XGBoost's leaves."""
    pytest.importorskip("xgboost")
    X, Y, *_ = problem
    X = np.where(X[:, :1] > 0, 2.0, 1.0)  # one split, two leaves
    clf = XGBoostBaseline(1, feature_fraction=1.0, max_depth=1, random_state=0).fit(X, Y)
    assert clf.n_steps_ == 1
    prior = np.log((Y.sum(axis=0) + 1) / (len(Y) - Y.sum(axis=0) + 1))
    chance = expit(prior)
    for value in (1.0, 2.0):
        rows = X[:, 0] == value
        gradient = (chance - Y[rows]).sum(axis=0)
        hessian = rows.sum() * chance * (1 - chance)
        expected = prior - 0.1 * gradient / (hessian + 1)
        np.testing.assert_allclose(clf.decision_function(X[rows])[0], expected, atol=1e-5)


def test_a_rare_label_gets_the_usual_number_of_trees(problem):
    pytest.importorskip("lightgbm")
    X, Y, *_ = problem
    rare = np.zeros((120, 1), dtype=int)
    rare[:3] = 1
    clf = LightGBMBaseline(random_state=0).fit(X, np.hstack([Y, rare]))
    assert clf.n_trees_[3] == int(np.median(clf.n_trees_[:3]))
    assert LightGBMBaseline(random_state=0).fit(X, rare).n_trees_.tolist() == [20]
    assert LightGBMBaseline(3, random_state=0).fit(X, rare).n_trees_.tolist() == [3]


def test_constant_labels_have_the_log_odds_of_their_share(booster, problem):
    X, Y, X_new, _ = problem
    Y = np.column_stack([np.zeros(120), Y[:, 0], np.ones(120)])
    scores = booster(20, random_state=0).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores[:, [0, 2]], np.log([[1 / 121, 121]] * 30))
    assert np.ptp(scores[:, 1]) > 0.5


def test_explicit_zeros_are_zeros(booster, problem):
    X, Y, *_ = problem
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    stored = sp.csr_array((X.ravel(), np.tile(np.arange(6), 120), np.arange(0, 721, 6)))
    assert stored.nnz == 720
    ours = booster(20, random_state=0).fit(stored, Y).decision_function(stored)
    np.testing.assert_allclose(
        ours, booster(20, random_state=0).fit(X, Y).decision_function(X), atol=1e-6
    )


# Logistic regression


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_logistic_regression_is_scikit_learns(problem, kind):
    X, Y, X_new, _ = problem
    if kind == "sparse":
        X, X_new = (np.where(np.abs(part) > 1.7, part, 0.0) for part in (X, X_new))
    scaler = (StandardScaler() if kind == "dense" else MaxAbsScaler()).fit(X)
    clf = LogisticRegressionBaseline(Cs=0.3).fit(sp.csr_array(X) if kind == "sparse" else X, Y)
    assert clf.C_.tolist() == [0.3] * 3
    for j in range(3):
        theirs = LogisticRegression(C=0.3, tol=1e-8).fit(scaler.transform(X), Y[:, j])
        expected = theirs.decision_function(scaler.transform(X_new))
        np.testing.assert_allclose(clf.decision_function(X_new)[:, j], expected, atol=1e-2)


def test_the_penalty_is_that_of_the_lowest_loss(problem):
    """Against a plain loop over folds and values."""
    X, Y, *_ = problem
    Cs = (0.01, 0.1, 1.0, 10.0)
    clf = LogisticRegressionBaseline(Cs, random_state=0).fit(X, Y)
    noise = np.random.default_rng(1).normal(size=(120, 40))
    noisy = LogisticRegressionBaseline(Cs, random_state=0).fit(np.hstack([X, noise]), Y)
    assert (noisy.C_ <= clf.C_).all()
    assert noisy.C_.max() < clf.C_.max()
    assert set(clf.C_) <= set(Cs)


def test_a_label_with_one_row_takes_the_usual_penalty(problem):
    X, Y, *_ = problem
    rare = np.zeros((120, 1), dtype=int)
    rare[0] = 1
    clf = LogisticRegressionBaseline(random_state=0).fit(X, np.hstack([Y, rare]))
    assert clf.C_[3] == np.median(clf.C_[:3])
    assert LogisticRegressionBaseline([0.1, 1, 10]).fit(X, rare).C_.tolist() == [1.0]


def test_they_can_be_sent_to_other_processes(booster, problem):
    X, Y, X_new, _ = problem
    unfitted = pickle.loads(pickle.dumps(booster(5, random_state=0)))
    clf = unfitted.fit(X, Y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.decision_function(X_new), clf.decision_function(X_new))


def test_the_script_behind_the_numbers(problem, monkeypatch):
    pytest.importorskip("lightgbm")
    X, Y, *_ = problem
    data = Dataset(X, Y, name="yeast")
    monkeypatch.setattr(boosted, "load_dataset", lambda _: data)
    monkeypatch.setattr(boosted, "DATA", ("yeast",))
    monkeypatch.setattr(boosted, "DEFAULTS", {"one": LogisticRegressionBaseline(Cs=1.0)})
    variants = {"two": (LightGBMBaseline(2, random_state=0), ("yeast",)), "three": (None, ("x",))}
    monkeypatch.setattr(boosted, "VARIANTS", variants)
    found = Measurements()
    boosted.add_all(found)
    assert [found.cases(part) for part in found.parts()] == [["yeast: one"], ["yeast: two"]]
    train, test = paper_splits(data, 1, 0.2, 1000)[0]
    clf = LogisticRegressionBaseline(Cs=1.0).fit(X[train], Y[train])
    expected = evaluate(Y[test], clf.decision_function(X[test]))["average_precision"]
    assert found.of("defaults", "yeast: one")["average_precision"] == pytest.approx(expected)
    table = boosted.layout(found, ("defaults",), ("yeast",), "average_precision", ".3f")
    assert table.splitlines()[2] == f"| one | {expected:.3f} |"


def test_extra_trees_are_scikit_learns(problem):
    X, Y, X_new, _ = problem
    clf = ExtraTreesBaseline(25, min_samples_leaf=2, random_state=0).fit(X, Y)
    seed = clf.forest_.random_state
    theirs = ExtraTreesClassifier(25, min_samples_leaf=2, random_state=seed).fit(X, Y)
    votes = np.column_stack([vote[:, 1] for vote in theirs.predict_proba(X_new)])
    np.testing.assert_allclose(clf.decision_function(X_new), votes - 0.5)
    Y = np.column_stack([np.zeros(120), Y[:, 0], np.ones(120)])
    beside = ExtraTreesBaseline(10, random_state=0).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(beside[:, [0, 2]], [[-0.5, 0.5]] * 120)
    assert ExtraTreesBaseline(10).fit(X, np.zeros((120, 2))).forest_ is None
