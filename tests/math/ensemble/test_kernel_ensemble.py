"""KernelEnsembleClassifier: options, shapes, weights, groups, many rows, hard cases."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from imcc import KernelEnsembleClassifier
from imcc._math.ensemble import search
from imcc._math.ensemble.model import distances, make_kernel
from imcc._math.ensemble.records import Kernel
from imcc.metrics import evaluate
from tests.backends import BACKENDS, array, host
from tests.calls import recorded_calls

FAST = {
    "views": ("raw", "standard"),
    "width_scales": (0.5, 1.0),
    "penalties": (0.1, 1.0, 10.0),
    "coupling": (0.0, 0.2),
    "virtual_examples": False,
    "random_state": 0,
}


def make(n=120, q=4, seed=0):
    X, Y = make_multilabel_classification(
        n, n_features=12, n_classes=q, n_labels=2, random_state=seed
    )
    return X.astype(float), Y


def fast(**changes):
    return KernelEnsembleClassifier(**{**FAST, **changes})


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def fitted(data):
    return fast().fit(*data)


def test_log_odds_are_the_weighted_mean_of_the_members(data, fitted):
    """Each member by itself, the slow way."""
    X, _ = data
    model = fitted._model
    expected = 0.0
    for member in model.members:
        names = [view.name for view in model.views]
        at = names.index(member.setting.view)
        rows, anchors = model.views[at].transform(X[:7]), model.anchors[at]
        kernel = make_kernel(member.setting.kernel)
        scores = kernel.finish(kernel.base(rows, anchors), member.width) @ member.coef
        scores = scores + member.intercept
        expected = expected + member.weight * (member.slope * scores + member.offset)
    found = fitted.decision_function(X[:7])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    p = fitted.predict_proba(X[:7])
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-found)))
    np.testing.assert_array_equal(fitted.predict(X[:7]), p >= 0.5)


def test_members_and_table(fitted):
    weights = [member["weight"] for member in fitted.members_]
    np.testing.assert_allclose(sum(weights), 1)
    assert weights == sorted(weights, reverse=True)
    table = fitted.search_results_
    assert len({len(column) for column in table.values()}) == 1
    assert set(table["stage"]) == {"screen", "all rows"}
    assert set(table["param_view"]) == {"raw", "standard"}
    at_all = table["stage"] == "all rows"
    assert fitted.selection_score_ > table["score"][at_all].mean()
    assert 0 < fitted.cross_fitted_score_ <= 1
    assert fitted.scoring_ == "average_precision"
    assert fitted.recipe_ == search.RECIPE
    assert fitted.n_landmarks_ == 0


def test_a_member_is_the_ridge_model_of_its_setting(data):
    """With one of everything the ensemble is one calibrated kernel ridge model."""
    from imcc._math.logistic import fit_logistic_maps
    from tests.naive import ensemble as naive

    X, Y = data
    clf = fast(
        views=("raw",), kernels=("rbf",), width_scales=(1.0,), penalties=(0.5,), coupling=(0.0,)
    ).fit(X, Y)
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    width = distances.sum() / (len(X) * (len(X) - 1))
    np.testing.assert_allclose(clf.members_[0]["width"], width)
    K = np.exp(-(distances**2) / (2 * width**2))
    signs = 2.0 * Y - 1
    loo = naive.leave_out(K, signs, 0.5, [np.array([i]) for i in range(len(X))])
    maps = fit_logistic_maps(loo, Y > 0)
    A, b = naive.fit(K, signs, 0.5)
    np.testing.assert_allclose(clf.decision_function(X), maps.log_odds(K @ A + b), atol=1e-5)
    score = evaluate(Y, maps.log_odds(loo))["average_precision"]
    np.testing.assert_allclose(clf.selection_score_, score)


def test_same_input_same_numbers(data, fitted):
    again = fast().fit(*data)
    np.testing.assert_array_equal(
        again.decision_function(data[0]), fitted.decision_function(data[0])
    )


def test_pickles(data, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))


def test_better_than_the_base_rates():
    X, Y = make(300)
    clf = fast(virtual_examples=True).fit(X[:200], Y[:200])
    base = np.tile(Y[:200].mean(axis=0), (100, 1))
    found = evaluate(Y[200:], clf.decision_function(X[200:]))
    assert found["ranking_loss"] < 0.8 * evaluate(Y[200:], base)["ranking_loss"]


@pytest.mark.parametrize(
    "change",
    [
        {"views": ("ranks", "root")},
        {"kernels": ("laplacian",)},
        {"width_scales": (3.0,)},
        {"penalties": (100.0,)},
        {"coupling": (0.9,)},
        {"n_members": 1},
        {"weights": "scoring"},
        {"calibration": None},
        {"scoring": "hamming_loss"},
        {"cv": 3},
        {"exact_rows": 100, "n_landmarks": 20},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.filterwarnings("ignore:120 rows are more than exact_rows")
def test_every_parameter_has_an_effect(data, fitted, change):
    X, Y = data
    other = fast(**change).fit(X, Y)
    assert not np.allclose(other.decision_function(X), fitted.decision_function(X), atol=1e-6)


def test_random_state_chooses_the_rows_of_the_screening(config):
    X, Y = make()
    config(screen_rows=(60, 90))
    widths = [fast(random_state=seed).fit(X, Y).search_results_["score"][0] for seed in (0, 1)]
    assert widths[0] != widths[1]


def test_screening_proceeds_from_parts_to_all_rows(config):
    X, Y = make()
    config(screen_rows=(60, 90), screen_keep=(5, 2))
    table = fast().fit(X, Y).search_results_
    kernels = {
        n: {
            key
            for key in zip(
                table["param_view"],
                table["param_kernel"],
                table["param_width_scale"],
                table["n_samples"],
                strict=True,
            )
            if key[3] == n
        }
        for n in (60, 90, 120)
    }
    assert [len(kernels[n]) for n in (60, 90, 120)] == [8, 5, 2]


def test_distances_are_computed_once_for_each_view_and_kernel(config):
    X, Y = make()
    config(screen_rows=(60,), screen_keep=(6,))
    with recorded_calls(distances) as calls:
        table = fast().fit(X, Y).search_results_
    computed = [call for call in calls if call.caller == "imcc._math.ensemble.members"]
    at_all = table["stage"] == "all rows"
    pairs = set(zip(table["param_view"][at_all], table["param_kernel"][at_all], strict=True))
    assert len(computed) == len(pairs) < 6


def test_kernels_that_share_distances_follow_each_other():
    a, b, c = (("raw", "rbf"), ("raw", "laplacian"), ("ranks", "rbf"))
    kernels = [Kernel(*key, float(i), 1.0) for i, key in enumerate([b, a, b, c, a])]
    assert [kernel.width_scale for kernel in search.sharing_order(kernels)] == [0, 2, 1, 4, 3]


def test_n_jobs_changes_nothing(data, fitted):
    other = fast(n_jobs=2).fit(*data)
    np.testing.assert_allclose(
        other.decision_function(data[0]), fitted.decision_function(data[0]), atol=1e-8
    )


def test_a_search_that_skips_nothing_is_not_stopped(data):
    """However short the time: one kernel is always fitted, and nine rows are not cross-fitted."""
    X, Y = (part[:9] for part in data)
    only = {"views": ("raw",), "kernels": ("rbf",), "width_scales": (1.0,)}
    clf = fast(max_time=1e-9, **only).fit(X, Y)
    assert not clf.stopped_early_
    assert fast(max_time=1e-9, **{**only, "views": ("raw", "ranks")}).fit(X, Y).stopped_early_
    more = fast(max_time=1e-9, **only).fit(*data)
    assert more.stopped_early_
    assert np.isnan(more.cross_fitted_score_)


def test_max_time_stops_the_search(data):
    clf = fast(max_time=1e-9).fit(*data)
    assert clf.stopped_early_
    assert clf.members_
    full = fast().fit(*data)
    assert not full.stopped_early_
    assert len(clf.search_results_["score"]) < len(full.search_results_["score"])


def test_verbose_says_how_far_it_is(data, capsys):
    fast(verbose=1).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("% done, about" in line for line in lines)
    fast().fit(*data)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"virtual_examples": True},
        {"coupling": (0.0,)},
        {"exact_rows": 100, "n_landmarks": 20},
        {"cv": 3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:120 rows are more than exact_rows")
def test_all_work_that_was_planned_is_reported(data, capsys, config, change):
    config(screen_rows=(60, 90), screen_keep=(5, 2))
    fast(**{**change, "verbose": 1}).fit(*data)
    shares = [int(line.split("%")[0].split()[-1]) for line in capsys.readouterr().err.splitlines()]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert shares[0] < 50


def test_a_function_may_decide(data):
    def hits(y_true, log_odds):
        assert y_true.dtype == bool
        return float(np.mean(y_true == (log_odds >= 0)))

    clf = fast(scoring=hits).fit(*data)
    loss = fast(scoring="hamming_loss").fit(*data)
    np.testing.assert_allclose(clf.selection_score_, 1 - loss.selection_score_)
    assert clf.scoring_ == "hits"


# Targets.


def test_binary_target(data):
    X, Y = data
    y = np.where(Y[:, 0] > 0, "yes", "no")
    clf = fast().fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(X), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), np.where(p[:, 1] >= 0.5, "yes", "no"))
    assert clf.decision_function(X).shape == (len(X),)


def test_multiclass_target(data):
    X, _ = data
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
    clf = fast().fit(X, y)
    p = clf.predict_proba(X)
    assert p.shape == (len(X), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), p.argmax(axis=1))


def test_one_label(data):
    X, Y = data
    clf = fast().fit(X, Y[:, :1])
    assert clf.scoring_ == "log_loss"
    assert clf.predict_proba(X).shape == (len(X), 1)
    assert clf.selection_score_ < np.log(2)


def test_constant_labels_are_exactly_constant(data):
    X, Y = data
    Y = Y.copy()
    Y[:, 1], Y[:, 3] = 0, 1
    clf = fast().fit(X, Y)
    n = len(X)
    p = clf.predict_proba(X)
    assert (p[:, 1] == p[0, 1]).all()
    assert (p[:, 3] == p[0, 3]).all()
    np.testing.assert_allclose(p[0, [1, 3]], [0.5 / (n + 1), (n + 0.5) / (n + 1)])
    np.testing.assert_allclose(
        p[:, [0, 2]], fast().fit(X, Y[:, [0, 2]]).predict_proba(X)[:, [0, 1]], atol=0.2
    )


def test_nothing_to_learn(data):
    X, Y = data
    clf = fast().fit(X, np.ones((len(X), 2), dtype=int))
    assert clf.members_ == []
    assert (clf.predict(X) == 1).all()
    same = fast().fit(np.ones((10, 3)), Y[:10])
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
    clf = KernelEnsembleClassifier(random_state=0, width_scales=(1.0,)).fit(X, Y)
    assert np.isfinite(clf.predict_proba(X)).all()


def test_many_labels():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((80, 5))
    Y = (rng.random_sample((80, 400)) < 0.02) | (X[:, :1] > 1.5)
    clf = fast().fit(X, Y)
    assert clf.predict_proba(X).shape == (80, 400)
    assert np.isfinite(clf.predict_proba(X)).all()


def sparse_rows(n=100, seed=0):
    rng = np.random.RandomState(seed)
    X = sp.random(n, 40, 0.1, "csr", random_state=rng)
    X.data[:] = 1.0
    W = rng.standard_normal((40, 3))
    return X, (X @ W > 0.3).astype(int)


def test_sparse_rows_equal_dense_ones():
    X, Y = sparse_rows()
    options = {**FAST, "views": "auto"}
    one = KernelEnsembleClassifier(**options).fit(X, Y)
    other = KernelEnsembleClassifier(**options).fit(X.toarray(), Y)
    assert set(one.search_results_["param_view"]) == {"raw", "unit", "tfidf"}
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(X.toarray()), atol=1e-7
    )
    np.testing.assert_allclose(
        one.decision_function(X), one.decision_function(X.toarray()), atol=1e-7
    )


def test_float32_rows(data):
    X, Y = data
    clf = fast().fit(X.astype(np.float32), Y)
    assert np.isfinite(clf.predict_proba(X.astype(np.float32))).all()


# Weights and groups.


def test_zero_weight_leaves_rows_out(data):
    X, Y = data
    weight = np.ones(len(X))
    weight[::3] = 0
    one = fast().fit(X, Y, sample_weight=weight)
    other = fast().fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


def test_zero_weight_leaves_rows_out_of_folds(data):
    X, Y = data
    weight = np.ones(len(X))
    weight[::3] = 0
    kept = np.flatnonzero(weight)
    folds = list(KFold(4).split(X))
    one = fast(cv=folds).fit(X, Y, sample_weight=weight)
    own = [
        (np.flatnonzero(np.isin(kept, train)), np.flatnonzero(np.isin(kept, test)))
        for train, test in folds
    ]
    other = fast(cv=own).fit(X[kept], Y[kept])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


def test_weights_matter_and_ones_do_not(data, fitted):
    X, Y = data
    ones = fast().fit(X, Y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.decision_function(X), fitted.decision_function(X))
    weight = np.where(Y[:, 0] > 0, 5.0, 1.0)
    heavy = fast().fit(X, Y, sample_weight=weight)
    assert heavy.predict_proba(X)[:, 0].mean() > fitted.predict_proba(X)[:, 0].mean() + 0.05


def test_groups_are_held_out_together(monkeypatch):
    """Rows that occur twice: leave-one-out sees the twin, folds of groups do not."""
    X, Y = make(80)
    rng = np.random.RandomState(1)
    Y = rng.permutation(Y)  # nothing to learn but the twins
    X, Y, groups = np.vstack([X, X]), np.vstack([Y, Y]), np.tile(np.arange(80), 2)
    alone = fast().fit(X, Y)
    together = fast().fit(X, Y, groups=groups)
    assert alone.selection_score_ > 0.9
    assert together.selection_score_ < 0.8


def test_folds_equal_fitting_without_them(data):
    """The held-out scores that decide are those of models that never saw the fold."""
    from tests.naive import ensemble as naive

    X, Y = data
    folds = list(KFold(4).split(X))
    clf = fast(
        views=("raw",),
        kernels=("rbf",),
        width_scales=(1.0,),
        penalties=(0.5,),
        coupling=(0.0,),
        calibration=None,
        cv=folds,
    ).fit(X, Y)
    width = clf.members_[0]["width"]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * width**2))
    expected = naive.leave_out(K, 2.0 * Y - 1, 0.5, [test for _, test in folds])
    score = evaluate(Y, expected)["average_precision"]
    np.testing.assert_allclose(clf.selection_score_, score)


# Many rows.


@pytest.mark.filterwarnings("ignore:120 rows are more than exact_rows")
@pytest.mark.parametrize("cv", ["loo", 3])
def test_all_rows_as_landmarks_are_the_exact_model(data, cv):
    X, Y = data
    exact = fast(cv=cv).fit(X, Y)
    landmarks = fast(cv=cv, exact_rows=100, n_landmarks=200).fit(X, Y)
    assert landmarks.n_landmarks_ == len(X)
    np.testing.assert_allclose(landmarks.selection_score_, exact.selection_score_)
    np.testing.assert_allclose(
        landmarks.decision_function(X), exact.decision_function(X), atol=1e-4
    )


def test_nystroem_says_so_and_keeps_few_rows(data):
    X, Y = data
    with pytest.warns(UserWarning, match="Nyström features of 30 landmarks"):
        clf = fast(exact_rows=100, n_landmarks=30).fit(X, Y)
    assert clf.n_landmarks_ == 30
    assert all(len(anchors) == 30 for anchors in clf._model.anchors)
    weight = np.random.RandomState(0).uniform(0.5, 2, len(X))
    with pytest.warns(UserWarning, match="Nyström"):
        weighted = fast(exact_rows=100, n_landmarks=30).fit(X, Y, sample_weight=weight)
    assert np.isfinite(weighted.predict_proba(X)).all()


# Virtual examples.


def test_virtual_examples_compete_on_the_same_folds():
    """Classes with labels that are often wrong, and a kernel too narrow to average over them."""
    rng = np.random.RandomState(0)
    kinds = rng.randint(6, size=90)
    X = rng.standard_normal((6, 4))[kinds] * 4 + rng.standard_normal((90, 4))
    Y = (rng.random_sample((6, 5)) < 0.5)[kinds]
    Y = np.where(rng.random_sample(Y.shape) < 0.25, ~Y, Y).astype(int)
    narrow = {"views": ("raw",), "width_scales": (0.25,), "penalties": (0.1,), "coupling": (0.0,)}
    clf = fast(**narrow, virtual_examples=True).fit(X, Y)
    assert clf.virtual_weight_ == 1
    (member,) = [m for m in clf.members_ if m["n_clusters"]]
    table = clf.search_results_
    of_folds = table["stage"] == "folds"
    assert (table["param_n_clusters"][of_folds] > 0).any()
    assert (table["param_n_clusters"][of_folds] == 0).any()
    assert set(table["n_samples"][of_folds]) == {len(X)}
    # The member is IMCC's model of the same setting.
    from imcc import IMCCClassifier

    setting = {name: member[name] for name in ("alpha", "gamma", "n_clusters", "kernel", "width")}
    model = clf._model
    rows = model.views[0].transform(X)
    own = next(m for m in model.members if m.weight > 0)
    imcc = IMCCClassifier(**setting, beta=member["penalty"], random_state=0)
    expected = imcc.fit(rows, Y).decision_function(rows)
    found = (clf.decision_function(X) - own.offset) / own.slope
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_virtual_examples_do_not_join_without_a_gain(data):
    clf = fast(virtual_examples=True).fit(*data)
    table = clf.search_results_
    assert (table["param_n_clusters"] > 0).any()
    joined = sum(m["weight"] for m in clf.members_ if m["n_clusters"])
    np.testing.assert_allclose(joined, clf.virtual_weight_)


# Other libraries.


@pytest.mark.parametrize("name", ["torch"])
def test_rows_of_another_library(data, fitted, name):
    X, Y = data
    clf = fast().fit(array(name, X), Y)
    found = clf.decision_function(array(name, X))
    np.testing.assert_allclose(host(name, found), fitted.decision_function(X), atol=1e-6)
    assert BACKENDS


def test_distances_of_zeros_and_ones_are_exact_on_a_device():
    pytest.importorskip("torch")
    X = sparse_rows()[0].toarray()
    expected = np.abs(X[:, None] - X[None]).sum(-1)
    found = host("torch", distances("laplacian", array("torch", X)))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(distances("laplacian", X), expected)


def test_device_of_the_host_gives_the_same(data, fitted):
    pytest.importorskip("torch")
    X, Y = data
    clf = fast(device="cpu").fit(X, Y)
    found = clf.decision_function(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, fitted.decision_function(X), atol=1e-6)


# Errors.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"views": ("raw", "upside down")}, "views must be one of"),
        ({"kernels": ("linear",)}, "kernels must be one of"),
        ({"width_scales": (0.0,)}, "width_scales"),
        ({"penalties": ()}, "penalties"),
        ({"coupling": (1.0,)}, "coupling"),
        ({"n_members": 0}, "n_members"),
        ({"weights": "even"}, "weights must be"),
        ({"calibration": "platt"}, "calibration"),
        ({"scoring": "beauty"}, "scoring"),
        ({"cv": "lots"}, "cv must be"),
        ({"max_time": 0}, "max_time"),
        ({"exact_rows": 0}, "exact_rows"),
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"cv": [(np.arange(60), np.arange(60, 120))]}, "exactly once"),
    ],
)
def test_bad_parameters(data, change, message):
    with pytest.raises(ValueError, match=message):
        fast(**change).fit(*data)


def test_bad_weights_and_groups(data):
    X, Y = data
    with pytest.raises(ValueError, match="sample_weight must be 120"):
        fast().fit(X, Y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="zero for all rows"):
        fast().fit(X, Y, sample_weight=np.zeros(120))
    with pytest.raises(ValueError, match="groups"):
        fast().fit(X, Y, groups=np.zeros(120))


def test_clone_keeps_parameters():
    assert clone(fast(n_members=3)).get_params()["n_members"] == 3
