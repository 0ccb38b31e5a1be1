"""MAHR: its stumps, its loss, its reuse."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from imcc.baselines import MAHR
from imcc.baselines._stumps import BinnedRows
from tests.calls import recorded_calls
from tests.naive import baselines as naive


def noisy_problem(n=120, d=5, q=3, seed=0):
    """Labels that stumps cannot learn by heart in a few rounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, q)) + 1.5 * rng.normal(size=(n, q)) > 0).astype(int)
    return X, Y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("zeros", [0.0, 0.6, 1.0])
def test_best_stumps_are_those_found_by_trying_all(form, zeros):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(50, 4)), 1) * (rng.random((50, 4)) >= zeros)
    Y = rng.random((50, 6)) < 0.5
    weights = rng.random((50, 6))
    binned = BinnedRows(form(X), 64)
    feature, threshold, left, right, cuts = binned.best_stumps(weights * np.where(Y, 1.0, -1.0))
    said = binned.outputs(cuts, left, right)
    for k in range(6):
        slow = naive.Stump().fit(X, Y[:, k], weights[:, k])
        np.testing.assert_array_equal(said[:, k] > 0, slow.predict(X) == 1)
        if zeros < 1:  # otherwise no feature can be told from another
            assert feature[k] == slow.feature_
            assert threshold[k] == pytest.approx(slow.cut_)


def test_few_bins_cut_at_equal_shares():
    X = np.arange(100.0)[:, np.newaxis]
    thresholds = {
        float(BinnedRows(X, 4).best_stumps(np.where(at < X, 1.0, -1.0))[1][0])
        for at in np.arange(5, 95, 3)
    }
    assert thresholds == {24.5, 49.5, 74.5}


def test_neighbouring_numbers_are_told_apart():
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2)]])
    clf = MAHR(n_rounds=1).fit(X, [[0], [1]])
    np.testing.assert_array_equal(clf.predict(X), [[0], [1]])


def test_without_reuse_it_is_scikit_learns_adaboost():
    """With the same stumps, scikit-learn's boosting gives the same scores, up to its scale."""
    X, Y = noisy_problem()
    clf = MAHR(n_rounds=20, reuse=False, max_bins=200).fit(X, Y)
    assert clf.n_iter_ == 20
    assert not clf.label_relationship_.any()
    for k in range(3):
        theirs = AdaBoostClassifier(naive.Stump(), n_estimators=20).fit(X, Y[:, k])
        # scikit-learn gives the difference of the classes' votes, over the sum of the weights.
        total = sum(np.abs(done.own[k]) for done in clf.rounds_)
        np.testing.assert_allclose(
            2 * clf.decision_function(X)[:, k] / total, theirs.decision_function(X), atol=1e-8
        )


def test_without_reuse_it_is_about_adaboost_with_trees_of_depth_one():
    """scikit-learn's own stumps go by Gini's index: not the same, as good."""
    X, Y = noisy_problem(400)
    ours = MAHR(n_rounds=30, reuse=False).fit(X[:200], Y[:200])
    for k in range(3):
        tree = DecisionTreeClassifier(max_depth=1)
        theirs = AdaBoostClassifier(tree, n_estimators=30, random_state=0)
        theirs.fit(X[:200], Y[:200, k])
        right = np.mean(ours.predict(X[200:])[:, k] == Y[200:, k])
        assert abs(right - theirs.score(X[200:], Y[200:, k])) < 0.06


def test_reuse_is_the_rule_of_the_docstring():
    X, Y = noisy_problem()
    X_new = np.random.default_rng(5).normal(size=(40, 5))
    clf = MAHR(n_rounds=12, max_bins=200).fit(X, Y)
    scores, influence = naive.mahr(X, Y, 12, X_new)
    np.testing.assert_allclose(clf.decision_function(X_new), scores, atol=1e-7)
    np.testing.assert_allclose(clf.label_relationship_, influence, atol=1e-7)


@pytest.mark.parametrize("reuse", [True, False])
def test_the_exponential_loss_never_rises(small_problem, reuse):
    X, Y, *_ = small_problem
    Y = np.column_stack([Y, X[:, 0] > 0])  # a label that one stump learns
    clf = MAHR(n_rounds=60, reuse=reuse).fit(X, Y)
    assert clf.losses_.shape == (clf.n_iter_ + 1, 5)
    np.testing.assert_array_equal(clf.losses_[0], 1)
    assert (np.diff(clf.losses_, axis=0) <= 1e-12).all()
    learning = clf.losses_[:-1] >= 1 / 90
    assert (np.diff(clf.losses_, axis=0)[learning] < 0).all()
    expected = np.exp(-np.where(Y, 1, -1) * clf.decision_function(X)).mean(axis=0)
    np.testing.assert_allclose(clf.losses_[-1], expected, rtol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_asymmetric_relationship_is_found(seed):
    """Label 1 is what label 0 is and a strong feature of its own; label 2 is alone.

    So label 0 is what label 1 needs besides one stump, while label 1 is of little use to label 0.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(800, 12))
    hidden = X[:, :6].sum(axis=1) / np.sqrt(6)
    own = 1.5 * np.sign(X[:, 6])
    Y = np.column_stack([hidden > 0, hidden + own > 0, X[:, 7] + X[:, 8] > 0])
    relation = MAHR(n_rounds=40).fit(X, Y).label_relationship_
    np.testing.assert_array_equal(np.diag(relation), 0)
    assert relation[1, 0] > 2 * relation[0, 1]
    assert relation[1, 0] > 3 * max(relation[1, 2], relation[2, 1], relation[0, 2], relation[2, 0])


def test_options_are_heard():
    X, Y = noisy_problem()
    assert MAHR().fit(X, Y).n_iter_ == 2 * X.shape[1]
    assert MAHR(n_rounds=7).fit(X, Y).n_iter_ == 7
    one = MAHR().fit(X, Y).decision_function(X)
    assert not np.allclose(MAHR(reuse=False).fit(X, Y).decision_function(X), one)
    assert not np.allclose(MAHR(max_bins=3).fit(X, Y).decision_function(X), one)
    easy = (X[:, :2] > 0).astype(int)
    assert MAHR(n_rounds=9).fit(X, easy).n_iter_ == 1
    assert MAHR(n_rounds=9, min_loss=0).fit(X, easy).n_iter_ == 9
    assert 1 < MAHR(n_rounds=99, min_loss=0.7).fit(X, Y).n_iter_ < 99


def test_constant_labels_are_ranked_first_and_last():
    X, Y = noisy_problem()
    Y = np.column_stack([Y, np.zeros(120, int), np.ones(120, int)])
    scores = MAHR(n_rounds=5).fit(X, Y).decision_function(X)
    assert (scores[:, 3] < scores[:, :3].min()).all()
    assert (scores[:, 4] > scores[:, :3].max()).all()


def test_stumps_of_a_round_come_from_one_product():
    X, Y = noisy_problem()
    with recorded_calls(BinnedRows.best_stumps) as calls:
        MAHR(n_rounds=4).fit(X, Y)
    assert [call.arguments["signed_weights"].shape for call in calls] == [(120, 3)] * 4


@pytest.mark.slow
def test_yeast_sized_training_takes_less_than_a_minute():
    X, Y = noisy_problem(1934, 103, 14)
    start = time.process_time()
    clf = MAHR().fit(X, Y)
    assert clf.n_iter_ == 206
    assert time.process_time() - start < 60


def test_equal_stumps_are_not_told_apart_by_rounding():
    """Copies of a feature, and sums in another order: always the first copy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).round(1)
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4)) > 0).astype(int)
    copies = np.tile(X, (1, 3))
    for _ in range(3):
        order = rng.permutation(200)
        clf = MAHR(n_rounds=30).fit(copies[order], Y[order])
        assert max(done.feature.max() for done in clf.rounds_) < 3


def test_labels_that_have_stopped_stay_as_they_are(small_problem):
    X, Y, *_ = small_problem
    clf = MAHR(n_rounds=60, min_loss=0.6).fit(X, Y)
    stopped = clf.losses_[:-1] < 0.6
    assert stopped.any()
    assert not stopped.all()
    for before, done in zip(stopped, clf.rounds_, strict=True):
        assert not done.own[before].any()
        assert not done.reuse[before].any()
        assert done.own[~before].all()


def test_stumps_that_do_not_split_have_finite_thresholds():
    """A feature without two values gives a constant hypothesis; model files hold finite numbers."""
    X = np.zeros((12, 1))
    Y = np.array([[1, 0]] * 9 + [[0, 1]] * 3)
    model = MAHR(n_rounds=3).fit(X, Y)
    thresholds = np.concatenate([done.threshold for done in model.rounds_])
    assert np.isfinite(thresholds).all()
    np.testing.assert_array_equal(model.predict(X), np.tile([1, 0], (12, 1)))


def learnable_problem(n=40, d=3, seed=0):
    """Two labels that a stump learns, so that their exponentials underflow, and one it does not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X.sum(axis=1) + rng.normal(size=n) > 0
    return X, np.column_stack([X[:, 0] > 0, noisy, X[:, 0] < 0.1]).astype(int)


def test_without_stopping_all_rounds_are_sound():
    X, Y = learnable_problem()
    clf = MAHR(n_rounds=120, max_bins=200, min_loss=0).fit(X, Y)
    scores = clf.decision_function(X)
    assert clf.n_iter_ == 120
    # Scores whose exponentials cannot be represented.
    assert np.where(Y, scores, -scores)[:, [0, 2]].min() > 800
    assert (np.diff(clf.losses_, axis=0) <= 0).all()
    np.testing.assert_array_equal(clf.losses_[-1] == 0, [True, False, True])
    expected, influence = naive.mahr(X, Y, 120, X)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    np.testing.assert_allclose(clf.label_relationship_, influence, rtol=1e-5)


def test_rows_are_judged_by_their_weights_when_the_loss_vanishes():
    """A weight of 2 is a row written twice, also where exponentials are computed as logarithms."""
    X, Y = learnable_problem()
    counts = np.random.default_rng(1).integers(1, 4, size=len(X))
    options = {"n_rounds": 120, "max_bins": 200, "min_loss": 0}
    weighted = MAHR(**options).fit(X, Y, sample_weight=counts)
    repeated = MAHR(**options).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    scores = weighted.decision_function(X)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, repeated.decision_function(X), rtol=1e-5)
