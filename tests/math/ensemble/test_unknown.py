"""Unknown labels (NaN): each is learned from the rows in which it is known, and judged there."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from imcc import KernelEnsembleClassifier
from imcc._math.ensemble.held_out import Held, Labels
from imcc._math.ensemble.model import make_kernel
from imcc._math.ensemble.patterns import FeatureRidges, KernelRidges, PatternScorer
from imcc._math.ensemble.selection import Criterion
from imcc._math.logistic import fit_logistic_maps
from imcc._math.maps import NystroemMap
from imcc._math.search.folds import Fold
from imcc._math.solver import label_patterns
from imcc.metrics import evaluate
from tests.backends import array, host
from tests.naive import ensemble as naive

PENALTIES = (0.1, 3.0)
FAST = {
    "views": ("raw",),
    "kernels": ("rbf",),
    "width_scales": (1.0,),
    "penalties": (0.5,),
    "random_state": 0,
}


def make(n=36, seed=0):
    """Rows, labels with NaN (two of four unknown in the same rows), and which are known."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, 3))
    Y = (np.tanh(X @ rng.standard_normal((3, 4))) + 0.3 * rng.standard_normal((n, 4)) > 0).astype(
        float
    )
    Y[rng.permutation(n)[: n // 3], 1] = np.nan
    both = rng.permutation(n)[: n // 4]
    Y[both, 2] = Y[both, 3] = np.nan
    return X, Y, ~np.isnan(Y)


def kernel_of(X, width=1.5):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * width**2))


def by_hand(K, Y, penalty, weight=None, folds=None):
    """Held-out scores, label by label; only of known cells, zero elsewhere."""
    out = np.zeros(Y.shape)
    for j in range(Y.shape[1]):
        rows = np.flatnonzero(~np.isnan(Y[:, j]))
        own = K[np.ix_(rows, rows)]
        signs = 2 * Y[rows, j : j + 1] - 1
        groups = [np.array([i]) for i in range(len(rows))]
        if folds is not None:
            groups = [np.flatnonzero(np.isin(rows, test)) for _, test in folds]
        w = None if weight is None else weight[rows]
        out[rows, j] = naive.leave_out(own, signs, penalty, groups, w)[:, 0]
    return out


def held_of(Y, known, weight=None, folds=None):
    signs = np.where(known, 2 * np.nan_to_num(Y) - 1, 0.0)
    made = None if folds is None else [Fold(*fold) for fold in folds]
    return Held(Labels.of(signs, weight), made, None, known)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_folds", [False, True])
@pytest.mark.parametrize("kind", ["kernel", "features"])
def test_held_out_scores_equal_fitting_without_the_rows(weighted, in_folds, kind):
    X, Y, known = make()
    K = kernel_of(X)
    weight = np.random.RandomState(1).uniform(0.5, 2, len(X)) if weighted else None
    folds = list(KFold(4).split(X)) if in_folds else None
    if kind == "kernel":
        ridges = KernelRidges(K)
    else:
        nystroem = NystroemMap.fit(make_kernel("rbf"), 1.5, None, X)
        ridges = FeatureRidges(nystroem, nystroem.transform(X))
    scorer = PatternScorer(ridges, held_of(Y, known, weight, folds), PENALTIES)
    for penalty in PENALTIES:
        expected = by_hand(K, Y, penalty, weight, folds)
        found = scorer.held_out(penalty)
        np.testing.assert_allclose(found[known], expected[known], atol=1e-7)
        # The final model of each label is that of the rows in which it is known.
        coef, intercept = scorer.coefficients(penalty)
        for j in range(4):
            rows = np.flatnonzero(known[:, j])
            w = None if weight is None else weight[rows]
            signs = 2 * Y[rows, j : j + 1] - 1
            A, b = naive.fit(K[np.ix_(rows, rows)], signs, penalty, w)
            ours = K @ coef[:, j] + intercept[j]
            expected = K[:, rows] @ A[:, 0] + b[0]
            np.testing.assert_allclose(ours, expected, atol=1e-7)
            if not in_folds:  # it never saw the other rows, and scores them
                others = ~known[:, j]
                np.testing.assert_allclose(found[others, j], expected[others], atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"exact_rows": 20, "n_landmarks": 30}])
@pytest.mark.filterwarnings("ignore:36 rows are more than exact_rows")
def test_held_out_scores_of_unknown_cells_are_those_of_new_rows(options):
    X, Y, known = make()
    clf = KernelEnsembleClassifier(**FAST, **options)
    held = clf.fit_held_out(X, Y)
    np.testing.assert_allclose(held[~known], clf.decision_function(X)[~known], atol=1e-6)


def test_labels_known_in_the_same_rows_share_a_pattern():
    _, _, known = make()
    found = sorted(columns.tolist() for _, columns in label_patterns(known))
    assert found == [[0], [1], [2, 3]]


def test_an_ensemble_of_one_is_that_model_calibrated_on_known_cells():
    X, Y, known = make()
    clf = KernelEnsembleClassifier(**FAST).fit(X, Y)
    K = kernel_of(X, clf.members_[0]["width"])
    loo = by_hand(K, Y, 0.5)
    maps = fit_logistic_maps(loo, Y > 0, None, known)
    z = maps.log_odds(loo)
    expected = evaluate(Y, z)["average_precision"]
    np.testing.assert_allclose(clf.selection_score_, expected)
    for j in range(4):
        rows = np.flatnonzero(known[:, j])
        A, b = naive.fit(K[np.ix_(rows, rows)], 2 * Y[rows, j : j + 1] - 1, 0.5)
        scores = K[:, rows] @ A[:, 0] + b[0]
        log_odds = maps.slope[j] * scores + maps.offset[j]
        np.testing.assert_allclose(clf.decision_function(X)[:, j], log_odds, atol=1e-5)


def test_unknown_labels_say_nothing():
    """Rows of which no label is known change views and widths only, and the rest not at all."""
    X, Y, _ = make(60)
    full = np.nan_to_num(Y)
    with_rows = full.copy()
    with_rows[40:] = np.nan
    options = {**FAST, "penalties": (0.1, 1.0), "coupling": (0.0,), "virtual_examples": False}
    one = KernelEnsembleClassifier(**options).fit(X, with_rows)
    alone = KernelEnsembleClassifier(**options).fit(X[:40], full[:40])
    scale = alone.members_[0]["width"] / one.members_[0]["width"]
    options["width_scales"] = (scale,)
    same = KernelEnsembleClassifier(**options).fit(X, with_rows)
    np.testing.assert_allclose(
        same.decision_function(X), alone.decision_function(X), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(same.selection_score_, alone.selection_score_)


def test_neither_coupling_nor_virtual_examples_are_tried():
    X, Y, _ = make(60)
    clf = KernelEnsembleClassifier(**{**FAST, "penalties": (0.1, 1.0)}).fit(X, Y)
    table = clf.search_results_
    assert set(table["param_eta"]) == {0.0}
    assert set(table["param_n_clusters"]) == {0}
    assert 0 < clf.cross_fitted_score_ <= 1


def test_base_rates_are_those_of_known_rows():
    X, Y, _ = make()
    Y[:, 0] = 1
    Y[:10, 0] = np.nan
    clf = KernelEnsembleClassifier(**FAST).fit(X, Y)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 0], 26.5 / 27)


@pytest.mark.parametrize("name", ["torch"])
def test_on_another_library(name):
    X, Y, _ = make()
    expected = KernelEnsembleClassifier(**FAST).fit(X, Y).decision_function(X)
    clf = KernelEnsembleClassifier(**FAST).fit(array(name, X), Y)
    found = host(name, clf.decision_function(array(name, X)))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rows_of_weight_zero_are_left_out():
    X, Y, _ = make()
    weight = np.ones(len(X))
    weight[::4] = 0
    one = KernelEnsembleClassifier(**FAST).fit(X, Y, sample_weight=weight)
    other = KernelEnsembleClassifier(**FAST).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


@pytest.mark.filterwarnings("ignore:36 rows are more than exact_rows")
def test_all_rows_as_landmarks_are_the_exact_model():
    X, Y, _ = make()
    exact = KernelEnsembleClassifier(**FAST).fit(X, Y)
    landmarks = KernelEnsembleClassifier(**FAST, exact_rows=20, n_landmarks=50).fit(X, Y)
    np.testing.assert_allclose(
        landmarks.decision_function(X), exact.decision_function(X), atol=1e-4
    )


def test_few_known_cells():
    """A label that is known in two rows, rows without any known label, screening without them."""
    X, Y, _ = make()
    Y[:, 3] = np.nan
    Y[3, 3], Y[7, 3] = 0, 1
    Y[5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = KernelEnsembleClassifier(**FAST).fit(X, Y)
        in_folds = KernelEnsembleClassifier(**FAST, cv=KFold(4)).fit(X, Y)
    for model in (clf, in_folds):
        assert np.isfinite(model.predict_proba(X)).all()


def test_screening_parts_without_known_rows_of_a_label(config):
    X, Y, _ = make(60)
    Y[3:, 3] = np.nan
    Y[:3, 3] = [0, 1, 0]
    config(screen_rows=(20, 40))
    clf = KernelEnsembleClassifier(**{**FAST, "width_scales": (0.5, 1.0)}).fit(X, Y)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert np.isfinite(clf.search_results_["score"]).all()


def test_many_patterns_warn_and_functions_cannot_judge():
    X, Y, _ = make()
    rng = np.random.RandomState(0)
    many = rng.randint(0, 2, (36, 25)).astype(float)
    many[rng.random_sample(many.shape) < 0.2] = np.nan
    with pytest.warns(UserWarning, match="known in 25 different sets of rows.*for every kernel"):
        KernelEnsembleClassifier(**FAST).fit(X, many)
    with pytest.raises(ValueError, match="scoring must be a name if some labels are unknown"):
        KernelEnsembleClassifier(**FAST, scoring=lambda y, z: 0.0).fit(X, Y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "name", ["average_precision", "hamming_loss", "ranking_loss", "coverage", "one_error"]
)
def test_the_criterion_is_the_metric_of_known_labels(name, weighted):
    _, Y, known = make()
    Y[4] = np.nan
    known = ~np.isnan(Y)
    rng = np.random.RandomState(2)
    z = rng.standard_normal(Y.shape)
    weight = rng.uniform(0.5, 2, len(Y)) if weighted else None
    criterion = Criterion(Y > 0, name, weight=weight, known=known)
    expected = evaluate(Y, z, sample_weight=weight)[name]
    np.testing.assert_allclose(criterion.reported(criterion(z)), expected)


def test_log_loss_of_known_labels():
    _, Y, _ = make()
    Y[4] = np.nan
    known = ~np.isnan(Y)
    z = np.random.RandomState(2).standard_normal(Y.shape)
    p = 1 / (1 + np.exp(-z))
    rows = [
        -np.mean(np.where(Y[i][known[i]] > 0, np.log(p[i][known[i]]), np.log1p(-p[i][known[i]])))
        for i in range(len(Y))
        if known[i].any()
    ]
    found = -Criterion(Y > 0, "log_loss", known=known)(z)
    np.testing.assert_allclose(found, np.mean(rows))
