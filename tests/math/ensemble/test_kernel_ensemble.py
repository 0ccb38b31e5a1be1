"""KernelEnsembleClassifier: members, targets, weights, groups, many rows, trees, words."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

from imcc import KernelEnsembleClassifier
from imcc._math.ensemble import costs, search
from imcc._math.ensemble import plan as planning
from imcc._math.ensemble.linear import held_out_linear
from imcc._math.ensemble.model import centered
from imcc._utils.config import get_config
from imcc._utils.validation import draw_seed
from imcc.estimators import kernel_ensemble
from imcc.metrics import evaluate
from tests.backends import array, host
from tests.naive.ensemble import fit as fit_slowly

every_screen = search._Search.screen


def make(n=120, q=4, seed=0):
    X, Y = make_multilabel_classification(
        n, n_features=12, n_classes=q, n_labels=2, random_state=seed
    )
    return X.astype(float), Y


def small(**changes):
    return KernelEnsembleClassifier(
        **{"views": ("raw", "ranks"), "trees": False, "random_state": 0, **changes}
    )


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def fitted(data):
    return small().fit(*data)


def kernel_values(model, member, X):
    """Return the kernel values of rows and all training rows, one pair at a time."""
    space = dict(zip(model.keys, model.spaces, strict=True))[member.key]
    rows = space.transform(centered(X, model.center)).astype(np.float64)
    anchors = space.transform(model.anchors).astype(np.float64)
    squares = np.array([[((a - b) ** 2).sum() for b in anchors] for a in rows])
    scale = 2 * member.width**2 if member.key[1] == "rbf" else member.width
    return np.exp(-squares / scale)


def test_log_odds_are_the_weighted_mean_of_the_members(data, fitted):
    X, _ = data
    expected = 0.0
    for member in fitted._model.members:
        scores = kernel_values(fitted._model, member, X[:7]) @ member.coef + member.intercept
        expected = expected + member.weight * (member.slope * scores + member.offset)
    found = fitted.decision_function(X[:7])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    p = fitted.predict_proba(X[:7])
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-found)))
    np.testing.assert_array_equal(fitted.predict(X[:7]), p >= 0.5)


def test_a_member_is_the_ridge_model_of_its_setting(data, fitted):
    X, Y = data
    plain = [m for m in fitted._model.members if m.setting["coupling"] == 0]
    for member in plain:
        K = kernel_values(fitted._model, member, X)
        A, b = fit_slowly(K, 2.0 * Y - 1, member.setting["penalty"])
        np.testing.assert_allclose(K @ member.coef + member.intercept, K @ A + b, atol=1e-6)
    assert plain


def test_coupled_labels_are_close_to_the_model_with_coupled_penalty():
    """The penalty along each eigenvector is interpolated between those that were fitted."""
    X, Y = make(60)
    signs, place = 2.0 * Y - 1, 5
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 300.0)
    solutions = {}
    for i in range(place - 2, place + 3):
        A, b = fit_slowly(K, signs, search.PENALTIES[i])
        solutions[i] = search.Solution(K @ A + b, A, b)
    for eta in (0.1, 0.4):
        found = search.couple(solutions, place, eta, signs)
        L = (1 - eta) * np.eye(4) + eta * np.corrcoef(signs.T)
        A, b = fit_slowly(K, signs, search.PENALTIES[place], L=L)
        plain = solutions[place].held_out
        assert abs(found.held_out - (K @ A + b)).max() < 0.35 * abs(plain - (K @ A + b)).max()
        np.testing.assert_allclose(found.held_out, K @ found.coef + found.intercept, atol=1e-8)


def test_members_and_table(fitted):
    weights = [member["weight"] for member in fitted.members_]
    np.testing.assert_allclose(sum(weights), 1)
    assert weights == sorted(weights, reverse=True)
    table = fitted.search_results_
    assert len({len(column) for column in table.values()}) == 1
    assert set(table["param_view"]) == {"raw", "ranks"}
    assert fitted.held_out_score_ > table["score"].mean()
    assert fitted.scoring_ == "average_precision"
    assert fitted.recipe_ == 3
    assert (fitted.n_landmarks_, fitted.precision_) == (0, "float64")


def test_same_input_same_numbers(data, fitted):
    again = small().fit(*data)
    np.testing.assert_array_equal(
        again.decision_function(data[0]), fitted.decision_function(data[0])
    )


def test_pickles_without_what_can_be_computed_again(data, fitted):
    fitted.predict(data[0])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))
    assert "_placed_anchors" not in pickle.loads(pickle.dumps(fitted._model)).__dict__


def test_better_than_the_base_rates():
    X, Y = make(300)
    clf = small().fit(X[:200], Y[:200])
    base = np.tile(Y[:200].mean(axis=0), (100, 1))
    found = evaluate(Y[200:], clf.decision_function(X[200:]))
    assert found["ranking_loss"] < 0.8 * evaluate(Y[200:], base)["ranking_loss"]


@pytest.mark.parametrize(
    "change",
    [{"views": ("root",)}, {"scoring": "log_loss"}, {"trees": True}],
    ids=lambda change: next(iter(change)),
)
def test_every_parameter_has_an_effect(change):
    X = np.random.RandomState(0).randn(300, 6)
    Y = np.column_stack([(X[:, 0] > 0.5) & (X[:, 1] > -0.5), X[:, 2] > 0]).astype(int)
    one, other = (small(**options).fit(X, Y).decision_function(X) for options in ({}, change))
    assert not np.allclose(one, other, atol=1e-6)


def test_random_state_chooses_the_rows_of_the_screening(monkeypatch):
    for module in (planning, search):
        monkeypatch.setattr(module, "ROUNDS", ((60, 4), (80, 2)))
    X, Y = make()
    tables = [small(random_state=seed).fit(X, Y).search_results_ for seed in (0, 1)]
    assert tables[0]["score"][0] != tables[1]["score"][0]
    assert set(tables[0]["n_samples"]) == {60, 80, 120}
    # The best go on, at most two widths of the same view and kernel.
    second = tables[0]["n_samples"] == 80
    names = ("param_view", "param_kernel", "param_width_scale")
    kept = set(zip(*(tables[0][name][second] for name in names), strict=True))
    assert len(kept) == 4
    assert max(sum(k[:2] == other[:2] for other in kept) for k in kept) <= 2


def test_trees_that_take_too_long_are_said_to_be_skipped(data, monkeypatch):
    monkeypatch.setattr(costs.Costs, "trying_trees", lambda _: 1e12)
    clf = small(trees=True, max_time=1000).fit(*data)
    assert (clf.n_trees_, clf.stopped_early_) == (0, True)


def test_what_takes_longer_than_the_rest_of_the_time_is_skipped(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(costs.time, "perf_counter", lambda: now[0])
    clock = costs.Clock(10.0, None)
    assert not clock.must_stop(1e9)  # nobody knows yet how long that takes
    now[0] = 2.0
    clock.worked(1.0, "a fifth")
    assert not clock.must_stop(4.0)
    assert not clock.stopped
    assert clock.must_stop(7.0)
    assert not clock.must_stop(3.0)  # which is shorter
    assert clock.stopped
    now[0] = 10.1
    assert clock.must_stop()
    assert not costs.Clock(None, None).must_stop(1e9)


def test_max_time_stops_the_search(data):
    clf = small(max_time=1e-9).fit(*data)
    assert clf.stopped_early_
    assert len(clf.members_) >= 1
    assert np.isfinite(clf.predict_proba(data[0])).all()
    assert not small(max_time=1000).fit(*data).stopped_early_


def test_verbose_says_what_is_planned_and_how_far_it_is(data, capsys):
    small(verbose=1).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert "exact kernels" in lines[0]
    assert "GiB" in lines[0]
    shares = [int(line.split(":")[1].split("%")[0]) for line in lines[1:]]
    assert shares == sorted(shares)
    assert shares[-1] >= 95


def test_a_function_may_decide(data):
    def hits(y_true, log_odds):
        assert y_true.dtype == bool
        return float(np.mean(y_true == (log_odds >= 0)))

    clf = small(scoring=hits).fit(*data)
    loss = small(scoring="hamming_loss").fit(*data)
    np.testing.assert_allclose(clf.held_out_score_, 1 - loss.held_out_score_)
    assert clf.scoring_ == "hits"


# Targets.


def test_binary_target(data):
    X, Y = data
    y = np.where(Y[:, 0] > 0, "yes", "no")
    clf = small().fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(X), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), np.where(p[:, 1] >= 0.5, "yes", "no"))
    assert clf.decision_function(X).shape == (len(X),)


def test_multiclass_target(data):
    X, _ = data
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
    clf = small().fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(X), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), p.argmax(axis=1))


def test_one_label(data):
    X, Y = data
    clf = small().fit(X, Y[:, :1])
    assert clf.scoring_ == "log_loss"
    assert clf.predict_proba(X).shape == (len(X), 1)
    assert clf.held_out_score_ < np.log(2)


def test_constant_labels_are_exactly_constant(data):
    X, Y = data
    Y = Y.copy()
    Y[:, 1], Y[:, 3] = 0, 1
    clf = small().fit(X, Y)
    n = len(X)
    p = clf.predict_proba(X)
    assert (p[:, 1] == p[0, 1]).all()
    assert (p[:, 3] == p[0, 3]).all()
    np.testing.assert_allclose(p[0, [1, 3]], [0.5 / (n + 1), (n + 0.5) / (n + 1)])
    np.testing.assert_allclose(
        p[:, [0, 2]], small().fit(X, Y[:, [0, 2]]).predict_proba(X)[:, [0, 1]], atol=0.2
    )


def test_nothing_to_learn(data):
    X, Y = data
    clf = small().fit(X, np.ones((len(X), 2), dtype=int))
    assert clf.members_ == []
    assert (clf.predict(X) == 1).all()
    same = small().fit(np.ones((10, 3)), Y[:10])
    assert same.members_ == []
    rates = (Y[:10].sum(axis=0) + 0.5) / 11
    np.testing.assert_allclose(same.predict_proba(np.ones((2, 3))), np.tile(rates, (2, 1)))


# Rows.


@pytest.mark.parametrize("n", [2, 3, 5, 12, 30])
def test_few_rows(n):
    X, Y = make(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = KernelEnsembleClassifier(random_state=0).fit(X[:n], Y[:n])
        p = clf.predict_proba(X)
    assert np.isfinite(p).all()


def test_duplicate_rows_and_rows_without_labels():
    X, Y = make(60)
    X, Y = np.vstack([X, X[:30]]), np.vstack([Y, Y[:30]])
    Y[:20] = 0
    assert np.isfinite(small().fit(X, Y).predict_proba(X)).all()


def test_many_labels():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((80, 5))
    Y = (rng.random_sample((80, 400)) < 0.02) | (X[:, :1] > 1.5)
    p = small().fit(X, Y).predict_proba(X)
    assert p.shape == (80, 400)
    assert np.isfinite(p).all()


def sparse_rows(n=100, columns=40, seed=0):
    rng = np.random.RandomState(seed)
    X = sp.random(n, columns, 0.1, "csr", random_state=rng)
    X.data[:] = rng.randint(1, 4, X.nnz)
    W = rng.standard_normal((columns, 3))
    return X, (X @ W > 0.3).astype(int)


def test_sparse_rows_equal_dense_ones():
    X, Y = sparse_rows()
    one = KernelEnsembleClassifier(random_state=0).fit(X, Y)
    other = KernelEnsembleClassifier(random_state=0).fit(X.toarray(), Y)
    assert set(one.search_results_["param_view"]) == {"raw", "tfidf"}
    found = one.decision_function(X)
    np.testing.assert_allclose(found, other.decision_function(X.toarray()), atol=1e-7)
    np.testing.assert_allclose(found, one.decision_function(X.toarray()), atol=1e-7)


def test_columns_far_from_zero_change_little(data, fitted):
    """Rows are centred in float64 before they are kept in float32."""
    X, Y = data
    moved = X + 1e4 * X.std(axis=0)
    found = small().fit(moved, Y).predict_proba(moved)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_members_do_not_depend_on_the_precision_of_factors(data, fitted, monkeypatch, precision):
    monkeypatch.setattr(planning, "DOUBLE_ROWS", 0 if precision == "float32" else 10_000)
    X, Y = data
    clf = small().fit(X, Y)
    assert clf.precision_ == precision
    np.testing.assert_allclose(clf.predict_proba(X), fitted.predict_proba(X), atol=1e-4)


# Weights, groups and unknown labels.


def test_zero_weight_leaves_rows_out(data):
    X, Y = data
    weight = np.ones(len(X))
    weight[::3] = 0
    one = small()
    held_out = one.fit_held_out(X, Y, sample_weight=weight)
    assert np.isnan(held_out[::3]).all()
    other = small().fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


def test_weights_matter_and_ones_do_not(data, fitted):
    X, Y = data
    ones = small().fit(X, Y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.decision_function(X), fitted.decision_function(X))
    weight = np.where(Y[:, 0] > 0, 5.0, 1.0)
    heavy = small().fit(X, Y, sample_weight=weight)
    assert heavy.predict_proba(X)[:, 0].mean() > fitted.predict_proba(X)[:, 0].mean() + 0.05


def test_groups_are_held_out_together():
    """Rows that occur twice: leave-one-out sees the twin, leaving out groups does not."""
    X, Y = make(80)
    Y = np.random.RandomState(1).permutation(Y)  # nothing to learn but the twins
    X, Y, groups = np.vstack([X, X]), np.vstack([Y, Y]), np.tile(np.arange(80), 2)
    assert small().fit(X, Y).held_out_score_ > 0.9
    assert small().fit(X, Y, groups=groups).held_out_score_ < 0.8


def with_unknown(Y, seed=0):
    Y = Y.astype(float)
    rng = np.random.RandomState(seed)
    Y[rng.permutation(len(Y))[: len(Y) // 3], 1] = np.nan
    Y[rng.permutation(len(Y))[: len(Y) // 4], 2] = np.nan
    return Y


def test_held_out_scores_of_unknown_cells_are_those_of_new_rows(data):
    X, Y = data
    Y = with_unknown(Y)
    clf = small()
    held_out = clf.fit_held_out(X, Y)
    unknown = np.isnan(Y)
    np.testing.assert_allclose(held_out[unknown], clf.decision_function(X)[unknown], atol=1e-6)
    known_score = evaluate(Y, held_out)["average_precision"]
    np.testing.assert_allclose(clf.held_out_score_, known_score)


def test_base_rates_are_those_of_known_rows(data):
    X, Y = data
    Y = Y.astype(float)
    Y[:, 1] = 0.0
    Y[:100, 1] = np.nan
    p = small().fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 0.5 / 21)


@pytest.mark.parametrize(("n", "n_groups"), [(4, None), (60, 4)])
def test_linear_members_of_few_rows_or_groups(n, n_groups):
    """There are fewer folds than usual; these words make linear models join."""
    rng = np.random.RandomState(0)
    Y = rng.rand(n, 3) < 0.4
    X = (rng.rand(n, 400) < 0.02).astype(float)
    for j in range(3):
        often, rarely = rng.rand(n, 12) < 0.35, rng.rand(n, 12) < 0.03
        X[:, 12 * j : 12 * j + 12] = np.where(Y[:, [j]], often, rarely)
    groups = None if n_groups is None else np.arange(n) % n_groups
    folds = list(held_out_linear(sp.csr_matrix(X), Y, None, None, groups, 1.0, 5, 0))
    assert sorted(np.concatenate([rows for rows, _ in folds])) == list(range(n))
    assert all(np.isfinite(scores).all() for _, scores in folds)
    clf = KernelEnsembleClassifier(random_state=0).fit(sp.csr_matrix(X), Y, groups=groups)
    assert np.isfinite(clf.decision_function(sp.csr_matrix(X))).all()


def test_unknown_labels_can_be_replaced_by_means():
    """One factor for all labels; nearly as good as an exact fit, and judged on known labels."""
    X, Y = make(400)
    Y = Y.astype(float)
    hidden = np.random.RandomState(0).rand(*Y.shape) < 0.2
    partly, new = np.where(hidden, np.nan, Y)[:300], slice(300, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean = small(unknown="mean").fit(X[:300], partly)
    exact = small().fit(X[:300], partly)
    found, expected = (log_loss(clf, X[new], Y[new]) for clf in (mean, exact))
    assert found < expected + 0.02
    assert not np.allclose(mean.decision_function(X), exact.decision_function(X))
    none = small(unknown="mean").fit(X[:300], Y[:300])
    plain = small().fit(X[:300], Y[:300])
    np.testing.assert_array_equal(none.decision_function(X), plain.decision_function(X))
    with pytest.raises(ValueError, match="unknown"):
        small(unknown="zero").fit(X[:300], partly)


def test_many_patterns_warn_and_functions_cannot_judge(data):
    X, Y = data
    Y = Y.astype(float)
    Y[np.random.RandomState(0).random_sample(Y.shape) < 0.1] = np.nan
    with pytest.raises(ValueError, match="scoring"):
        small(scoring=lambda y, z: 0.0).fit(X, Y)
    many = np.tile(Y, (1, 8))
    many[np.random.RandomState(0).random_sample(many.shape) < 0.1] = np.nan
    with pytest.warns(UserWarning, match="known"):
        small(views=("raw",)).fit(X, many)


# Many rows.


def test_landmarks_are_announced_and_memory_is_refused_before_it_is_used(monkeypatch):
    X, Y = make(2000)
    monkeypatch.setattr(planning, "_ENTRIES", 0)  # blocks would need more than so few rows
    exact = planning.make_plan(X, 4, 4e7, trees=False)  # in float32
    available = 0.95 * exact.n_bytes
    plan = planning.make_plan(X, 4, available, trees=False)
    assert plan.n_landmarks > 500
    with pytest.warns(UserWarning, match="landmarks"):
        clf = small(views=("raw",), max_memory=available).fit(X, Y)
    assert clf.n_landmarks_ == plan.n_landmarks == len(clf._model.anchors)
    assert clf.planned_bytes_ <= available
    exact = small(views=("raw",)).fit(X, Y)
    assert clf.held_out_score_ > exact.held_out_score_ - 0.01
    with pytest.raises(MemoryError, match="max_memory"):
        small(max_memory=1e6).fit(X, Y)


@pytest.mark.parametrize("gigabytes", [2, 8, 24, 80])
def test_the_plan_fits_the_memory_and_is_exact_where_it_can_be(gigabytes):
    available = gigabytes * 1e9

    def plan(n, n_labels=20):
        return planning.make_plan(np.broadcast_to(np.float32(0), (n, 1)), n_labels, available, 1)

    exact = [n for n in range(1000, 150_000, 1000) if not plan(n).n_landmarks]
    assert exact == list(range(1000, exact[-1] + 1, 1000))
    assert 4 * exact[-1] ** 2 > 0.9 * (available - 4e8)
    for n in (1000, exact[-1], 2 * exact[-1], 10 * exact[-1]):
        assert plan(n).n_bytes <= available
    assert plan(1000, 1_000_000).n_bytes > available  # which is refused


def test_an_80_gb_device_has_room_for_exact_kernels_of_100_000_rows_and_its_blocks():
    X = np.broadcast_to(np.float32(0), (100_000, 1))
    there = get_config().device_entries
    plan = planning.make_plan(X, 20, 0.8 * 80e9, device_entries=there)
    assert not plan.n_landmarks
    # Three blocks in float64, and three panels of columns, beside the matrix.
    panels = 3 * 4 * get_config().device_columns * len(X)
    assert plan.n_bytes > 4 * len(X) ** 2 + 3 * 8 * planning.DEVICE_ENTRIES + panels
    assert plan.n_bytes > planning.make_plan(X, 20, 0.8 * 80e9).n_bytes


def test_landmarks_take_no_longer_than_the_exact_kernels_of_a_fit_that_takes_minutes():
    def plan(n, available=1e12):
        X, most = np.broadcast_to(np.float32(0), (n, 1)), planning.PATIENT_ROWS
        return planning.make_plan(X, 20, available, most_rows=most)

    most = planning.PATIENT_ROWS
    assert not plan(most).n_landmarks
    # Operations, of which those in float64 take twice as long.
    patience = 2 / 3 * most**3
    for n in (most + 1, 100_000, 1_000_000):
        m = plan(n).n_landmarks
        assert 0.99 * patience < 2 * 3 * n * m**2 <= patience
    assert plan(100_000, 4e9).n_landmarks < plan(100_000).n_landmarks


def test_many_rows_get_landmarks_unless_the_memory_is_given(monkeypatch):
    X, Y = make(1200)
    monkeypatch.setattr(kernel_ensemble, "PATIENT_ROWS", 1100)
    with pytest.warns(UserWarning, match="max_memory"):
        clf = small(views=("raw",)).fit(X, Y)
    assert clf.n_landmarks_ == planning.FEWEST_LANDMARKS
    assert small(views=("raw",), max_memory=1e9).fit(X, Y).n_landmarks_ == 0


def test_kernels_that_would_take_longer_than_the_time_are_approximated(monkeypatch):
    X, Y = make(1200)
    monkeypatch.setattr(planning, "FEW_ROWS", 1000)
    monkeypatch.setattr(planning, "_SPEED", 1.0)
    with pytest.warns(UserWarning, match="max_time"):
        clf = small(views=("raw",), max_time=1000).fit(X, Y)
    assert clf.n_landmarks_ == planning.FEWEST_LANDMARKS
    monkeypatch.setattr(planning, "_SPEED", 1e11)
    assert small(views=("raw",), max_time=1000).fit(X, Y).n_landmarks_ == 0


# Trees and words.


@pytest.fixture(scope="module")
def limits():
    """Labels that change at a threshold, which smooth models find with many rows only."""
    X = np.random.RandomState(0).randn(900, 12)
    Y = np.column_stack([(X[:, 0] > 0.5) & (X[:, 1] > -0.5), X[:, 2] > 0]).astype(int)
    return X[:500], Y[:500], X[500:], Y[500:]


def log_loss(model, X, Y):
    return np.logaddexp(0, np.where(Y > 0, -1, 1) * model.decision_function(X)).mean()


def test_trees_find_limits_that_kernels_miss(limits):
    X, Y, X_test, Y_test = limits
    alone = small().fit(X, Y)
    clf = small(trees=True)
    held_out = clf.fit_held_out(X, Y)
    assert clf.n_trees_ == len(clf._model.trees.trees.output) > 0
    assert set(clf._model.trees.trees.output) == {0, 1}
    assert log_loss(clf, X_test, Y_test) < 0.7 * log_loss(alone, X_test, Y_test)
    np.testing.assert_allclose(clf.held_out_score_, evaluate(Y, held_out)["average_precision"])


def test_log_odds_with_trees_are_weighted_means(limits, monkeypatch):
    """Those of all members, kernels and trees, with the weights of ``members_``."""
    X, Y, X_test, _ = limits
    shares = iter([(0.5, 2.0), (0.5, 1.0), (0.25, 1.0)])  # of the trial, a fold and all rows
    monkeypatch.setattr(search, "best_share", lambda *_: next(shares))
    clf = small(trees=True).fit(X, Y)
    member, before = clf._model.trees, small().fit(X, Y).decision_function(X_test)
    seen = centered(X_test, clf._model.center)[:, member.trees.used]
    found = 0.75 * before + member.trees.sums(seen, 2) + member.added
    np.testing.assert_allclose(clf.decision_function(X_test), found, atol=1e-9)
    weights = {member["view"]: member["weight"] for member in clf.members_}
    np.testing.assert_allclose(weights["columns"], 0.25)
    np.testing.assert_allclose(sum(member["weight"] for member in clf.members_), 1)


@pytest.mark.parametrize("n", [300, 1000])
def test_held_out_scores_of_rows_that_repeat_say_what_new_rows_get(n):
    """A score without a row is lower if the row has the label: nothing may learn from that."""
    rng = np.random.RandomState(0)
    X = rng.randint(0, 3, (n + 1000, 3)).astype(float)
    Y = (rng.rand(n + 1000, 3) < 1 / (1 + np.exp(-X[:, [0]] + [0, 0.5, 1]))).astype(int)
    clf = KernelEnsembleClassifier(random_state=0)
    held_out = clf.fit_held_out(X[:n], Y[:n])
    new = log_loss(clf, X[n:], Y[n:])
    own = np.logaddexp(0, np.where(Y[:n] > 0, -held_out, held_out)).mean()
    assert abs(own - new) < 0.05 * new


def test_without_signal_for_trees_the_model_is_as_it_was(data, fitted):
    X, _ = data
    Y = (np.random.RandomState(1).rand(len(X), 2) < 0.4).astype(int)
    clf = small(trees=True).fit(X, Y)
    assert clf.n_trees_ == 0
    found = clf.decision_function(X)
    np.testing.assert_array_equal(found, small().fit(X, Y).decision_function(X))


def test_trees_learn_nothing_from_which_labels_are_unknown():
    """The second label is known only where the first is 0."""
    rng = np.random.RandomState(0)
    X = rng.randn(400, 4)
    Y = (X[:, :2] + 0.8 * rng.randn(400, 2) > 0).astype(float)
    some = Y[:200].copy()
    some[some[:, 0] == 1, 1] = np.nan
    alone = log_loss(small().fit(X[:200], some), X[200:], Y[200:])
    clf = small(trees=True).fit(X[:200], some)
    assert log_loss(clf, X[200:], Y[200:]) < 1.02 * alone


def words(n=150, columns=320, seed=0):
    rng = np.random.RandomState(seed)
    X = sp.random(n, columns, 0.05, "csr", random_state=rng, data_rvs=lambda k: np.ones(k))
    return X, (X @ rng.standard_normal((columns, 3)) > 0.5).astype(int)


@pytest.mark.parametrize("helps", [False, True])
def test_linear_models_of_words_join_only_if_they_help(monkeypatch, helps):
    """If they do, the selection decides their weight: here it takes nothing else."""
    monkeypatch.setattr(search, "helps", lambda *_: helps)
    last = np.array([0.0, 1.0])
    monkeypatch.setattr(search, "choose_greedily", lambda pool, *_: (last[-len(pool) :], 0.0))
    monkeypatch.setattr(search._Search, "screen", lambda self: every_screen(self)[:1])
    X, Y = words()
    clf = KernelEnsembleClassifier(random_state=0)
    held_out = clf.fit_held_out(X, Y)
    (member,) = clf._model.members
    assert (member.key == ("tfidf", "linear")) == helps
    if not helps:
        return
    unit = TfidfTransformer().fit(X).transform(X)
    C = 1 / member.setting["penalty"]
    models = [
        LogisticRegression(C=C, solver="liblinear", dual=True, random_state=0) for _ in range(3)
    ]
    for j, model in enumerate(models):
        expected = model.fit(unit, Y[:, j]).decision_function(unit)
        expected = member.slope[j] * expected + member.offset[j]
        np.testing.assert_allclose(clf.decision_function(X)[:, j], expected, atol=1e-4)
        folds = KFold(5, shuffle=True, random_state=draw_seed(0))
        scores = cross_val_predict(model, unit, Y[:, j], cv=folds, method="decision_function")
        expected = member.slope[j] * scores + member.offset[j]
        np.testing.assert_allclose(held_out[:, j], expected, atol=1e-4)
    dense = clf.decision_function(X.toarray())
    np.testing.assert_allclose(clf.decision_function(X), dense, atol=1e-7)


# Other libraries.


def test_rows_of_another_library(data, fitted):
    X, Y = data
    clf = small().fit(array("torch", X), Y)
    found = clf.decision_function(array("torch", X))
    np.testing.assert_allclose(host("torch", found), fitted.decision_function(X), atol=1e-4)
    on_host = small(device="cpu").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(on_host, fitted.decision_function(X), atol=1e-4)


# Errors.


@pytest.mark.parametrize(
    "change",
    [
        {"views": ("raw", "upside down")},
        {"scoring": "beauty"},
        {"max_time": 0},
        {"max_memory": -1},
        {"trees": "none"},
        {"linear": 2},
    ],
)
def test_bad_parameters(data, change):
    with pytest.raises(ValueError, match=next(iter(change))):
        small(**change).fit(*data)


def test_bad_weights_and_groups(data):
    X, Y = data
    with pytest.raises(ValueError, match="sample_weight"):
        small().fit(X, Y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="zero for all rows"):
        small().fit(X, Y, sample_weight=np.zeros(120))
    for groups in (np.zeros(120), np.arange(119)):
        with pytest.raises(ValueError, match="groups"):
            small().fit(X, Y, groups=groups)


def test_clone_keeps_parameters():
    assert clone(small(max_time=3)).get_params()["max_time"] == 3
