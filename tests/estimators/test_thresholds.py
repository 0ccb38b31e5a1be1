import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc._math.thresholds import CRITERIA
from imcc.baselines import LLSF
from imcc.estimators import (
    MultilabelCalibrator,
    TunedThresholds,
    choose_thresholds,
    cross_fit_scores,
    label_scores,
)
from imcc.estimators.cross_fit import deciding_method
from imcc.estimators.thresholds import decision_thresholds, score_thresholds
from imcc.metrics import average_precision
from tests.estimators.test_scikit_learn import WEIGHTS
from tests.models import GRID
from tests.naive import thresholds as naive

NAIVE = {
    "f1": naive.f1,
    "balanced_accuracy": naive.balanced_accuracy,
    "accuracy": naive.accuracy,
}


@st.composite
def a_label(draw):
    n = draw(st.integers(2, 12))
    # Few values, so that scores tie.
    scores = draw(
        st.lists(st.sampled_from([-2.0, -1.0, -0.1, 0.0, 0.2, 1.0]), min_size=n, max_size=n)
    )
    on = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(on), np.array(scores)


@settings(max_examples=150, deadline=None)
@given(a_label(), st.sampled_from(sorted(NAIVE)))
def test_the_best_cut_is_the_best_of_all(label, criterion):
    on, scores = label
    if on.all() or not on.any():
        return
    chosen = choose_thresholds(on[:, None], scores[:, None], criterion)
    reached = NAIVE[criterion](*naive.counts(on, scores >= chosen.thresholds[0]))
    assert reached == pytest.approx(naive.best_value(on, scores, NAIVE[criterion]), abs=1e-15)
    assert chosen.values[0] == pytest.approx(reached, abs=1e-15)
    at_zero = NAIVE[criterion](*naive.counts(on, scores >= 0))
    assert chosen.default_values[0] == pytest.approx(at_zero, abs=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["f1", "balanced_accuracy", "accuracy"])
def test_labels_are_cut_on_the_rows_they_are_known_of(criterion, weighted):
    rng = np.random.default_rng(4)
    truth = (rng.random((60, 4)) < 0.4).astype(float)
    scores = truth + rng.normal(size=truth.shape)
    truth[rng.random(truth.shape) < 0.3] = np.nan
    truth[:, 3] = np.nan
    weights = rng.integers(0, 3, 60) if weighted else np.ones(60)
    chosen = choose_thresholds(truth, scores, criterion, min_support=3, sample_weight=weights)
    for j in range(3):
        known = ~np.isnan(truth[:, j])
        alone = choose_thresholds(
            truth[known, j : j + 1],
            scores[known, j : j + 1],
            criterion,
            min_support=3,
            sample_weight=weights[known],
        )
        assert chosen.thresholds[j] == alone.thresholds[0]
        assert chosen.values[j] == alone.overall
        assert chosen.default_values[j] == alone.default_overall
    assert chosen.thresholds[3] == 0
    assert chosen.tuned.tolist() == [True, True, True, False]
    assert chosen.overall == pytest.approx(chosen.values[:3].mean())
    filled = choose_thresholds(np.nan_to_num(truth), scores, criterion, sample_weight=weights)
    assert (filled.thresholds[:3] != chosen.thresholds[:3]).any()


def test_micro_f1_of_known_labels_is_exact():
    rng = np.random.default_rng(0)
    n_checked = 0
    for _ in range(20):
        truth = (rng.random((6, 3)) < 0.4).astype(float)
        scores = rng.normal(size=(6, 3)).round(1)
        truth[rng.random((6, 3)) < 0.2] = np.nan
        if ((truth == 1).sum(axis=0) == 0).any() or ((truth == 0).sum(axis=0) == 0).any():
            continue
        n_checked += 1
        found = choose_thresholds(truth, scores, "micro_f1").overall
        assert found == pytest.approx(naive.best_micro_f1(truth, scores), abs=1e-15)
    assert n_checked > 5


def test_tuned_thresholds_leave_unknown_labels_out():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(90, 3))
    Y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(90, 3)) > 0.5).astype(float)
    Y[rng.random(90) < 0.4, 1] = np.nan
    model = IMCCClassifier(4, width=2.0, random_state=0)
    tuned = TunedThresholds(model, cv=KFold(3)).fit(X, Y)
    scores = cross_fit_scores(model, X, Y, cv=KFold(3))
    for j in range(3):
        known = ~np.isnan(Y[:, j])
        best = naive.best_value(Y[known, j] == 1, scores[known, j], naive.f1)
        reached = naive.f1(*naive.counts(Y[known, j], scores[known, j] >= tuned.thresholds_[j]))
        assert reached == pytest.approx(best, abs=1e-15)
        assert tuned.cv_results_["value"][j] == pytest.approx(best, abs=1e-15)
        assert tuned.cv_results_["support"][j] == np.nansum(Y[:, j])
    np.testing.assert_array_equal(tuned.decision_function(X), model.fit(X, Y).decision_function(X))
    prefit = TunedThresholds(model, cv="prefit").fit(X, Y)
    known = ~np.isnan(Y[:, 1])
    expected = choose_thresholds(
        Y[known, 1:2], model.decision_function(X)[known, 1:2], min_support=5
    ).thresholds
    assert prefit.thresholds_[1] == expected[0]
    # A classifier that takes no unknown labels says so itself.
    with pytest.raises(ValueError, match="LLSF does not support unknown labels"):
        TunedThresholds(LLSF(), cv=3).fit(X, Y)


def test_of_equally_good_cuts_the_one_nearest_to_the_default():
    on = np.array([[1], [0], [0], [0], [1]])
    scores = np.array([[0.9], [0.5], [-0.5], [-0.6], [-0.9]])
    # accuracy: the cut at 0.7 and "all off" (0.9+) are 4/5 and 3/5.
    assert choose_thresholds(on, scores, "accuracy").thresholds == pytest.approx(0.7)
    flat = choose_thresholds(on, scores, lambda tp, fp, fn, tn: 0 * tp)
    assert flat.thresholds == pytest.approx(0.0)
    assert choose_thresholds(
        on, scores, lambda tp, fp, fn, tn: 0 * tp, default=0.6
    ).thresholds == pytest.approx(0.7)


def test_labels_that_never_or_always_occur_keep_the_default():
    on = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1]])
    scores = np.array([[0.3, -0.2, 0.1], [0.1, 0.4, -0.5], [0.2, 0.6, -0.3]])
    for criterion in CRITERIA:
        chosen = choose_thresholds(on, scores, criterion, default=0.25)
        np.testing.assert_array_equal(chosen.thresholds[:2], 0.25)
        np.testing.assert_array_equal(chosen.tuned, [False, False, True])
    nothing = choose_thresholds(on[:, :1], scores[:, :1])
    assert np.isnan(nothing.overall)


def test_labels_with_little_support_keep_the_default():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 3))
    on = np.zeros((40, 3), dtype=int)
    on[:4, 0], on[:5, 1], on[4:, 2] = 1, 1, 1  # four on, five on, four off
    for criterion in ("f1", "micro_f1"):
        chosen = choose_thresholds(on, scores, criterion, default=9.0, min_support=5)
        np.testing.assert_array_equal(chosen.tuned, [False, True, False])
        np.testing.assert_array_equal(chosen.thresholds == 9.0, [True, False, True])
        assert choose_thresholds(on, scores, criterion, min_support=4).tuned.all()
    X = rng.normal(size=(40, 2))
    base = IMCCClassifier(n_clusters=2, random_state=0)
    tuned = TunedThresholds(base, cv=2).fit(X, on)
    np.testing.assert_array_equal(tuned.cv_results_["tuned"], [False, True, False])
    assert TunedThresholds(base, cv=2, min_support=1).fit(X, on).cv_results_["tuned"].all()
    with pytest.raises(ValueError, match="min_support"):
        TunedThresholds(base, min_support=0).fit(X, on)


def test_the_support_is_what_decides_whether_a_label_is_tuned():
    """Row weights are summed: the reported support is the one compared with min_support."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    on = np.zeros((30, 2), dtype=int)
    on[:6, 0] = on[:6, 1] = 1
    on[29, 1] = 1
    weights = np.full(30, 0.5)
    weights[29] = 3
    base = IMCCClassifier(n_clusters=2, random_state=0).fit(X, on)
    options = {"cv": "prefit", "min_support": 5}
    plain = TunedThresholds(base, **options).fit(X, on).cv_results_
    np.testing.assert_array_equal(plain["support"], [6, 7])
    assert plain["tuned"].all()
    weighted = TunedThresholds(base, **options).fit(X, on, sample_weight=weights).cv_results_
    np.testing.assert_allclose(weighted["support"], [3, 6])
    np.testing.assert_array_equal(weighted["tuned"], [False, True])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0]], [[0.1]]), "same shape"),
        (([[1], [0]], [[0.1], [0.2]], "f2"), "criterion must be one of 'f1'"),
        (([[1], [0]], [[0.1], [0.2]], lambda tp, fp, fn, tn: tp / 0 * 0.0), "no NaN"),
        (([[1], [0]], [[0.1], [0.2]], lambda tp, fp, fn, tn: 1.0), "per cut"),
        (([[1], [0]], [[np.nan], [0.2]]), "scores"),
    ],
)
def test_bad_arguments(arguments, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        choose_thresholds(*arguments)


# The estimator


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(240, 6))
    Y = (X[:, :4] + 0.8 * rng.normal(size=(240, 4)) > [0.2, 0.8, 1.4, 1.6]).astype(int)
    return X[:160], Y[:160], X[160:], Y[160:]


def test_thresholds_are_those_of_held_out_scores(rare):
    X, Y, X_new, Y_new = rare
    base = IMCCClassifier(n_clusters=8, random_state=0)
    cv = KFold(4, shuffle=True, random_state=0)
    tuned = TunedThresholds(base, cv=cv).fit(X, Y)
    held_out = cross_val_predict(base, X, Y, cv=cv, method="decision_function")
    np.testing.assert_array_equal(cross_fit_scores(base, X, Y, cv=cv), held_out)
    chosen = choose_thresholds(Y, held_out)
    np.testing.assert_array_equal(tuned.thresholds_, chosen.thresholds)
    np.testing.assert_array_equal(tuned.cv_results_["value"], chosen.values)
    np.testing.assert_array_equal(tuned.cv_results_["support"], Y.sum(axis=0))
    assert tuned.best_score_ == chosen.overall > chosen.default_overall == tuned.default_score_
    plain = base.fit(X, Y)
    np.testing.assert_array_equal(tuned.decision_function(X_new), plain.decision_function(X_new))
    expected = plain.decision_function(X_new) >= chosen.thresholds
    np.testing.assert_array_equal(tuned.predict(X_new), expected)
    np.testing.assert_array_equal(plain.predict(X_new, thresholds=chosen.thresholds), expected)
    np.testing.assert_array_equal(tuned.predict(X_new, thresholds=0), plain.predict(X_new))
    macro = [f1_score(Y_new, p, average="macro") for p in (expected, plain.predict(X_new))]
    assert macro[0] > macro[1] + 0.05


def test_every_option_counts(rare):
    X, Y, *_ = rare
    base = IMCCClassifier(n_clusters=8, random_state=0)
    plain = TunedThresholds(base).fit(X, Y).thresholds_
    others = [
        TunedThresholds(base, criterion="balanced_accuracy"),
        TunedThresholds(base, cv=3),
        TunedThresholds(IMCCClassifier(n_clusters=8, beta=10.0, random_state=0)),
    ]
    for other in others:
        assert not np.array_equal(other.fit(X, Y).thresholds_, plain)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_runs_once(rare, in_pipeline):
    """Its best setting is fitted in the folds."""
    X, Y, *_ = rare
    search = IMCCClassifierCV(**{**GRID, "betas": [0.1, 10.0]}, random_state=0)
    model = make_pipeline(StandardScaler(), search) if in_pipeline else search
    once = TunedThresholds(model, cv=4).fit(X, Y)
    fitted = once.estimator_[-1] if in_pipeline else once.estimator_
    best = IMCCClassifier(**fitted.best_params_, random_state=0)
    best = make_pipeline(StandardScaler(), best) if in_pipeline else best
    chosen = choose_thresholds(Y, cross_fit_scores(best, X, Y, cv=4))
    np.testing.assert_array_equal(once.thresholds_, chosen.thresholds)


@pytest.mark.parametrize(
    "model",
    [
        ExtraTreesClassifier(20, random_state=0),  # a list of arrays
        MultiOutputClassifier(LogisticRegression()),
        MLPClassifier((4,), max_iter=20, random_state=0),  # one array
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_with_probabilities(rare, model):
    X, Y, X_new, _ = rare
    tuned = TunedThresholds(model).fit(X, Y)
    assert ((tuned.thresholds_ > 0) & (tuned.thresholds_ < 1)).all()
    assert tuned.decision_function(X_new).shape == (80, 4)
    np.testing.assert_array_equal(
        tuned.predict(X_new), tuned.decision_function(X_new) >= tuned.thresholds_
    )
    tuned.predict_proba(X_new)
    never = Y.copy()
    never[:, 1] = 0
    if not isinstance(model, MultiOutputClassifier):  # which refuses a constant label itself
        assert TunedThresholds(model).fit(X, never).thresholds_[1] == 0.5


def test_a_vector_of_two_classes(rare):
    X, Y, X_new, _ = rare
    words = np.where(Y[:, 3] == 1, "yes", "no")
    tuned = TunedThresholds(IMCCClassifier(n_clusters=4, random_state=0)).fit(X, words)
    assert tuned.thresholds_.shape == (1,)
    assert set(tuned.predict(X_new)) == {"yes", "no"}
    expected = tuned.decision_function(X_new) >= tuned.thresholds_[0]
    np.testing.assert_array_equal(tuned.predict(X_new) == "yes", expected)
    trees = TunedThresholds(ExtraTreesClassifier(10, random_state=0)).fit(X, words)
    assert trees.decision_function(X_new).shape == (80,)
    with pytest.raises(ValueError, match="multiclass"):
        TunedThresholds(IMCCClassifier(n_clusters=4)).fit(X, np.arange(160) % 3)
    several = IMCCClassifier(n_clusters=4).fit(X, np.arange(160) % 3)
    with pytest.raises(ValueError, match="highest score"):
        several.predict(X_new, thresholds=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "f3"}, "criterion"),
        ({"cv": [(np.arange(80), np.arange(80, 160))]}, "exactly once: 80 rows are never"),
    ],
)
def test_bad_options(rare, options, message):
    X, Y, *_ = rare
    with pytest.raises(ValueError, match=message.replace(":", ".*")):
        TunedThresholds(IMCCClassifier(n_clusters=4), **options).fit(X, Y)


def test_predict_with_thresholds(rare):
    X, Y, X_new, _ = rare
    clf = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y)
    scores = clf.decision_function(X_new)
    np.testing.assert_array_equal(clf.predict(X_new, thresholds=-0.3), scores >= -0.3)
    each = [-0.5, 0.1, np.inf, -np.inf]
    np.testing.assert_array_equal(clf.predict(X_new, thresholds=each), scores >= each)
    for wrong in ([0.1, 0.2], "a", [np.nan] * 4, [[0.0] * 4]):
        with pytest.raises(ValueError, match="thresholds"):
            clf.predict(X_new, thresholds=wrong)


# Checks that fail, and why: predictions are by the thresholds, while scores are the model's own, so
# that the ranking of the labels stays.
EXPECTED = {
    "check_classifiers_train": "predict is not decision_function >= 0",
    "check_classifier_multioutput": "predict is not decision_function >= 0",
    **WEIGHTS,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_check_estimator():
    tuned = TunedThresholds(IMCCClassifier(n_clusters=4, random_state=0), cv=2)
    results = check_estimator(tuned, on_skip=None, on_fail=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed <= set(EXPECTED)
    assert len(results) > 50


@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_whole_weights_are_repeated_rows(criterion):
    rng = np.random.default_rng(8)
    scores = rng.normal(size=(40, 3)).round(1)
    on = scores + rng.normal(size=(40, 3)) > 0.3
    weights = rng.integers(0, 4, 40)
    found = choose_thresholds(on, scores, criterion, min_support=2, sample_weight=weights)
    repeated = choose_thresholds(
        np.repeat(on, weights, axis=0), np.repeat(scores, weights, axis=0), criterion, min_support=2
    )
    np.testing.assert_allclose(found.thresholds, repeated.thresholds)
    np.testing.assert_allclose(found.values, repeated.values)
    assert found.overall == pytest.approx(repeated.overall)
    assert found.default_overall == pytest.approx(repeated.default_overall)


def test_tuning_with_weights():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(80, 3))
    Y = (X[:, :2] + rng.normal(size=(80, 2)) > 0.8).astype(int)
    weights = rng.integers(0, 4, 80) * 0.5
    some = weights > 0
    model = IMCCClassifier(4, random_state=0)
    every = TunedThresholds(model, cv=3).fit(X, Y, sample_weight=weights)
    rest = TunedThresholds(model, cv=3).fit(X[some], Y[some], sample_weight=weights[some])
    np.testing.assert_array_equal(every.thresholds_, rest.thresholds_)
    np.testing.assert_array_equal(every.decision_function(X), rest.decision_function(X))
    plain = TunedThresholds(model, cv=3).fit(X[some], Y[some])
    assert not np.array_equal(plain.thresholds_, rest.thresholds_)


def test_prefit_leaves_the_model_as_it_is(rare):
    X, Y, X_new, Y_new = rare
    clf = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y)
    tuned = TunedThresholds(clf, cv="prefit", min_support=2).fit(X_new, Y_new)
    assert tuned.estimator_ is clf
    expected = choose_thresholds(Y_new, clf.decision_function(X_new), min_support=2)
    np.testing.assert_array_equal(tuned.thresholds_, expected.thresholds)
    with pytest.raises(ValueError, match="cv must be"):
        TunedThresholds(clf, cv="fit").fit(X_new, Y_new)
    with pytest.raises(NotFittedError):
        TunedThresholds(IMCCClassifier(), cv="prefit").fit(X_new, Y_new)


def test_decision_thresholds_are_those_that_predict(rare):
    X, Y, X_new, _ = rare
    base = IMCCClassifier(n_clusters=4, random_state=0)
    tuned = TunedThresholds(base).fit(X, Y)
    trees = ExtraTreesClassifier(9, random_state=0).fit(X, Y)
    models = [
        tuned,
        make_pipeline(StandardScaler(), TunedThresholds(base)).fit(X, Y),
        base.fit(X, Y),
        MultilabelCalibrator(tuned, cv="prefit").fit(X_new, Y[:80]),
        GridSearchCV(TunedThresholds(base), {"min_support": [5]}, cv=2).fit(X, Y),
    ]
    models.append(TunedThresholds(models[3], cv="prefit").fit(X_new, Y[:80]))
    for model in models:
        values = label_scores(model, X_new, 4, method=deciding_method(model))
        predicted = model.predict(X_new)
        np.testing.assert_array_equal(values >= decision_thresholds(model, 4), predicted)
        scores = label_scores(model, X_new, 4)
        np.testing.assert_array_equal(scores >= score_thresholds(model, 4), predicted)
    np.testing.assert_array_equal(decision_thresholds(trees, 4), [0.5] * 4)


def test_held_out_scores_of_the_classifier_itself():
    """Thresholds without further fits: from the scores that the ensemble held out anyway."""
    X, Y = make_multilabel_classification(150, 8, n_classes=4, n_labels=1, random_state=0)
    Y[:, 3] = 0  # never on
    ensemble = KernelEnsembleClassifier(views=("raw",), random_state=0)
    plain = ensemble.fit(X, Y)
    held_out = clone(ensemble).fit_held_out(X, Y)
    tuned = TunedThresholds(ensemble, cv="held_out").fit(X, Y)
    np.testing.assert_array_equal(tuned.decision_function(X), plain.decision_function(X))
    expected = choose_thresholds(Y, expit(held_out), "f1", default=0.5).thresholds
    np.testing.assert_array_equal(tuned.thresholds_, expected)
    np.testing.assert_array_equal(tuned.predict(X), tuned.predict_proba(X) >= expected)
    assert tuned.thresholds_[3] == 0.5
    # They are held out: worse than the scores of rows that the model has seen.
    seen = average_precision(Y, plain.decision_function(X))
    assert average_precision(Y, held_out) < seen
    weights = np.r_[np.zeros(30), np.ones(120)]
    some = clone(ensemble).fit_held_out(X, Y, sample_weight=weights)
    assert np.isnan(some[:30]).all()
    np.testing.assert_allclose(some[30:], clone(ensemble).fit_held_out(X[30:], Y[30:]))
    weighted = TunedThresholds(ensemble, cv="held_out").fit(X, Y, sample_weight=weights)
    assert weighted.thresholds_.shape == (4,)
    with pytest.raises(ValueError, match="needs a classifier with fit_held_out"):
        TunedThresholds(IMCCClassifier(), cv="held_out").fit(X, Y)
    with pytest.raises(ValueError, match="cv must be"):
        TunedThresholds(ensemble, cv="loo").fit(X, Y)
