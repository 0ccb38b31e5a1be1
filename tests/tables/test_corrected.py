"""Trees that correct log-odds: exact against a slow twin, and only where they help."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from imcc import KernelEnsembleClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import TunedThresholds, choose_thresholds
from imcc.inspection import explain
from imcc.persistence import load_model, save_model
from imcc.tables import TreeCorrectedClassifier
from imcc.tables._trees import boost
from tests.naive.trees import boosted_by_rows

SETTINGS = {"n_trees": 5, "rate": 0.3, "min_leaf": 3, "most_features": 99, "most_rows": 999}


def small():
    return KernelEnsembleClassifier(
        views=("raw",),
        kernels=("rbf",),
        width_scales=(0.5, 1.0),
        coupling=(0.0,),
        virtual_examples=False,
        random_state=0,
    )


@pytest.fixture(scope="module")
def data():
    X = np.random.RandomState(0).randn(260, 6)
    Y = np.column_stack([(X[:, 0] > 0.5) & (X[:, 1] > -0.5), X[:, 2] > 0]).astype(int)
    return X[:180], Y[:180], X[180:], Y[180:]


@pytest.fixture(scope="module")
def fitted(data):
    ensemble = small()
    model = TreeCorrectedClassifier(ensemble, random_state=0)
    held = model.fit_held_out(*data[:2])
    return model, held


@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_is_that_of_the_obvious_loop(weighted):
    rng = np.random.RandomState(3)
    X = rng.randn(80, 4).astype(np.float32)
    on = X[:, 0] * X[:, 1] > 0
    start = rng.randn(80)
    weight = rng.randint(1, 4, 80).astype(float) if weighted else None
    trees = boost(X, on, start, seed=0, weight=weight, **SETTINGS)
    new = rng.randn(30, 4).astype(np.float32)
    expected = boosted_by_rows(X, on, start, new, seed=0, weight=weight, **SETTINGS)
    np.testing.assert_allclose(trees.sums(new), expected, rtol=1e-12, atol=1e-14)


def test_a_tree_that_was_not_divided_is_one_leaf():
    X = np.zeros((20, 2), dtype=np.float32)  # nothing to divide by
    on = np.arange(20) < 5
    trees = boost(X, on, np.zeros(20), seed=0, **SETTINGS)
    assert DecisionTreeRegressor(max_depth=3).fit(X, on).tree_.node_count == 1
    found = trees.sums(np.array([[1e30, -1e30], [0, 0]], dtype=np.float32))
    assert found[0] == found[1] < 0


def test_large_tables_are_sampled_and_the_seed_decides():
    X = np.random.RandomState(0).randn(300, 3).astype(np.float32)
    on, start = X[:, 0] > 0.3, np.zeros(300)
    few = {**SETTINGS, "most_rows": 60, "most_features": 1}
    first, again, other = (boost(X, on, start, seed=seed, **few).sums(X) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_trees_find_limits_that_kernels_miss(data, fitted):
    _, Y, X_test, Y_test = data
    model, held = fitted
    assert model.weight_ > 0
    before, after = model.log_losses_
    assert after < before
    # The reported loss is that of what was returned.
    assert after == pytest.approx(np.mean(np.logaddexp(0, np.where(Y > 0, -held, held))))
    assert model.score(X_test, Y_test) > model.estimator_.score(X_test, Y_test)
    added = model.decision_function(X_test) - model.estimator_.decision_function(X_test)
    np.testing.assert_allclose(model.correction(X_test), added, atol=1e-12)


def test_without_signal_for_trees_the_classifier_is_as_it_was(data):
    X, _, X_test, _ = data
    Y = (np.random.RandomState(1).rand(len(X), 2) < 0.4).astype(int)
    ensemble = small()
    model = TreeCorrectedClassifier(ensemble, random_state=0).fit(X, Y)
    assert model.weight_ == 0
    assert model.trees_ == {}
    alone = ensemble.fit(X, Y).decision_function(X_test)
    assert np.array_equal(model.decision_function(X_test), alone)


def test_unknown_labels_and_weights(data):
    X, Y, X_test, _ = data
    unknown = Y.astype(float)
    unknown[::7, 0] = np.nan
    weight = np.ones(len(X))
    weight[:10] = 0
    ensemble = small()
    model = TreeCorrectedClassifier(ensemble, random_state=0)
    held = model.fit_held_out(X, unknown, sample_weight=weight)
    assert np.isnan(held[:10]).all()
    assert np.isfinite(held[10:]).all()
    without = TreeCorrectedClassifier(ensemble, random_state=0).fit(X[10:], unknown[10:])
    assert model.weight_ == without.weight_ > 0
    np.testing.assert_allclose(
        model.decision_function(X_test), without.decision_function(X_test), atol=1e-9
    )


def known_where_the_first_is_off(seed=0):
    """Rows, labels of which the second is known only where the first is 0, and new rows."""
    rng = np.random.RandomState(seed)
    X = rng.randn(400, 4)
    Y = (X[:, :2] + 0.8 * rng.randn(400, 2) > 0).astype(float)
    some = Y[:200].copy()
    some[some[:, 0] == 1, 1] = np.nan
    return X[:200], some, X[200:], Y[200:]


def log_loss(model, X, Y):
    return np.logaddexp(0, np.where(Y > 0, -1, 1) * model.decision_function(X)).mean()


def test_trees_learn_nothing_from_which_labels_are_unknown():
    X, Y, X_test, Y_test = known_where_the_first_is_off()
    model = TreeCorrectedClassifier(small(), random_state=0).fit(X, Y)
    assert log_loss(model, X_test, Y_test) < 1.02 * log_loss(model.estimator_, X_test, Y_test)


class Leaking(KernelEnsembleClassifier):
    """An ensemble whose held-out scores say which labels are unknown."""

    def fit_held_out(self, X, y, **more):
        held = super().fit_held_out(X, y, **more)
        return np.where(np.isnan(np.asarray(y)), 0.0, held)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_classifier_whose_held_out_scores_leak_gets_no_trees(grouped):
    X, Y, X_test, Y_test = known_where_the_first_is_off()
    more = {"groups": np.arange(len(X)) // 2} if grouped else {}
    model = TreeCorrectedClassifier(Leaking(**small().get_params()), random_state=0)
    held = model.fit_held_out(X, Y, **more)
    assert model.weight_ == 0
    assert model.trees_ == {}
    # It was the check on new rows that refused them, and what is returned is without them.
    assert np.isfinite(model.log_losses_).all()
    assert np.array_equal(held, Leaking(**small().get_params()).fit_held_out(X, Y, **more))
    alone = log_loss(model.estimator_, X_test, Y_test)
    assert log_loss(model, X_test, Y_test) == pytest.approx(alone)


def test_only_features_that_are_named_are_looked_at(data):
    X, Y, X_test, _ = data
    ensemble = small()
    model = TreeCorrectedClassifier(ensemble, features=[0, 1], random_state=0).fit(X, Y)
    seen = {int(k) for trees in model.trees_.values() for k in np.unique(trees.feature)}
    assert seen <= {0, 1, 2, 3}  # two features, two log-odds
    assert model.correction(X_test).shape == (len(X_test), 2)
    with pytest.raises(InvalidArgumentError, match="from 0 to 5"):
        TreeCorrectedClassifier(ensemble, features=[6]).fit(X, Y)


def test_a_classifier_without_held_out_scores_is_refused(data):
    from sklearn.linear_model import RidgeClassifier

    with pytest.raises(InvalidArgumentError, match="fit_held_out"):
        TreeCorrectedClassifier(RidgeClassifier()).fit(*data[:2])


def test_saved_models_need_no_trust_and_explanations_add_up(data, fitted, tmp_path):
    pytest.importorskip("skops")
    model, _ = fitted
    path = tmp_path / "model.skops"
    save_model(model, path)
    loaded = load_model(path)
    assert np.array_equal(loaded.decision_function(data[2]), model.decision_function(data[2]))
    for by in ("support", "members"):
        found = explain(model, data[2][:1], label=0, by=by)
        assert found.score == pytest.approx(model.decision_function(data[2][:1])[0, 0])
        total = found.constant + sum(
            float(np.sum(found.weights[k] * found.values[k])) for k in found.weights
        )
        assert total == pytest.approx(found.score)


def test_thresholds_are_chosen_on_the_corrected_log_odds(data, fitted):
    model, held = fitted
    tuned = TunedThresholds(model, cv="held_out").fit(*data[:2])
    assert np.array_equal(tuned.decision_function(data[2]), model.decision_function(data[2]))
    assert np.array_equal(tuned.thresholds_, choose_thresholds(data[1], held, "f1").thresholds)
