import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    coverage_error,
    f1_score,
    label_ranking_average_precision_score,
    label_ranking_loss,
)
from sklearn.metrics import hamming_loss as sk_hamming_loss
from threadpoolctl import threadpool_limits

import imcc.metrics as m
from imcc import IMCCClassifier
from imcc.estimators import MultilabelCalibrator, label_scores
from imcc.experiment._scores import all_metrics
from imcc.inspection import diagnose
from imcc.metrics import macro_f1, macro_f1_present, micro_f1
from tests.naive import metrics as naive

NAMES = ["one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision"]


@pytest.mark.parametrize("setting", range(1, 8))
def test_equals_the_authors_program(oracle, setting):
    expected = oracle.settings[setting]
    found = m.evaluate(oracle.Y_new, expected["scores"])
    assert list(found) == NAMES
    np.testing.assert_allclose(list(found.values()), expected["metrics"], atol=1e-12)


@st.composite
def truths_and_scores(draw):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 9)))
    truth = draw(hnp.arrays(bool, shape))
    # Few different values, so that ties are common; zero among them.
    scores = draw(hnp.arrays(np.float64, shape, elements=st.sampled_from([-1.5, -1, 0, 0.5, 2])))
    return truth, scores


@given(truths_and_scores())
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_equals_the_naive_version(case):
    truth, scores = case
    expected, found = naive.evaluate(truth, scores), m.evaluate(truth, scores)
    for name in NAMES:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-12, err_msg=name)


@given(truths_and_scores())
@settings(max_examples=80, deadline=None)
def test_both_ways_of_counting_agree(case):
    truth, scores = case
    metrics, layout = m.LabelMetrics(truth), np.ascontiguousarray(scores.T)[:, np.newaxis]
    by_comparing = metrics._counts_by_comparing(layout)
    by_sorting = metrics._counts_by_sorting(layout)
    np.testing.assert_array_equal(by_comparing[0], by_sorting[0])
    np.testing.assert_array_equal(by_comparing[1], by_sorting[1])


def test_more_than_255_labels_and_many_blocks(config):
    config(pair_entries=5000)
    rng = np.random.default_rng(1)
    truth, scores = rng.random((15, 600)) < 0.03, np.round(rng.normal(size=(15, 600)), 1)
    expected, found = naive.evaluate(truth, scores), m.evaluate(truth, scores)
    for name in NAMES:
        assert found[name] == pytest.approx(expected[name], abs=1e-12)


def test_equals_scikit_learn_where_conventions_coincide():
    rng = np.random.default_rng(3)
    truth = rng.random((50, 8)) < 0.4
    truth[truth.all(axis=1) | ~truth.any(axis=1), :4] = [True, True, False, False]
    scores = rng.normal(size=truth.shape)
    assert m.coverage(truth, scores) == pytest.approx((coverage_error(truth, scores) - 1) / 8)
    assert m.ranking_loss(truth, scores) == pytest.approx(label_ranking_loss(truth, scores))
    assert m.average_precision(truth, scores) == pytest.approx(
        label_ranking_average_precision_score(truth, scores)
    )
    assert m.hamming_loss(truth, scores) == pytest.approx(sk_hamming_loss(truth, scores >= 0))


def test_conventions_on_one_row_each():
    # A tie at the top with a relevant label is no one-error, but it is a ranking error.
    assert m.one_error([[1, 0, 0]], [[1.0, 1.0, 0.0]]) == 0
    assert m.ranking_loss([[1, 0, 0]], [[1.0, 1.0, 0.0]]) == 0.5
    assert m.average_precision([[1, 0, 0]], [[1.0, 1.0, 0.0]]) == 0.5
    assert m.coverage([[1, 0, 0]], [[1.0, 1.0, 0.0]]) == pytest.approx(1 / 3)
    # A score of zero predicts the label.
    assert m.hamming_loss([[1, 0]], [[0.0, -1.0]]) == 0
    # Rows with no label count 0 in coverage, and not at all in the ranking metrics.
    truth, scores = [[0, 0], [1, 0]], [[1.0, 2.0], [1.0, 2.0]]
    assert m.coverage(truth, scores) == 0.25
    assert m.one_error(truth, scores) == 1


@pytest.mark.parametrize("name", ["one_error", "ranking_loss", "average_precision"])
def test_undefined_is_nan_with_a_warning(name):
    with pytest.warns(UndefinedMetricWarning, match=name):
        value = getattr(m, name)([[0, 0], [1, 1]], [[1.0, 2.0], [0.0, 1.0]])
    assert np.isnan(value)


def test_codings_and_containers_make_no_difference():
    rng = np.random.default_rng(5)
    truth, scores = rng.random((30, 6)) < 0.3, rng.normal(size=(30, 6))
    truth[0] = [True, False, False, False, False, False]
    expected = m.evaluate(truth, scores)
    for other in (
        truth.astype(int),
        np.where(truth, 1, -1),
        truth.tolist(),
        sp.csr_matrix(truth.astype(float)),
        sp.coo_array(truth.astype(int)),
    ):
        assert m.evaluate(other, scores) == expected
    assert m.evaluate(truth, scores.tolist()) == expected
    assert m.evaluate(truth, scores, ["coverage"]) == {"coverage": expected["coverage"]}


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([[0, 2]], [[1.0, 2.0]], "y_true must contain labels coded"),
        ([[0, 1]], [[1.0, np.nan]], "scores contains NaN"),
        ([[0, 1]], [[1.0, 2.0, 3.0]], "same shape"),
        ([0, 1], [[1.0, 2.0]], "two-dimensional"),
        ([[0, 1]], sp.csr_matrix([[1.0, 2.0]]), "scores must be dense"),
    ],
)
def test_bad_input_is_named(truth, scores, message):
    with pytest.raises(ValueError, match=message):
        m.evaluate(truth, scores)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="metrics must be one of"):
        m.evaluate([[0, 1]], [[1.0, 2.0]], ["f1"])
    with pytest.raises(ValueError, match="name must be one of"):
        m.get_scorer("f1")


@pytest.mark.parametrize("name", NAMES)
def test_scorers_point_upwards(name, small_problem):
    from imcc import IMCCClassifier

    X, Y, X_new, Y_new = small_problem
    clf = IMCCClassifier(n_clusters=6, random_state=0).fit(X, Y)
    value = getattr(m, name)(Y_new, clf.decision_function(X_new))
    sign = 1 if m.METRICS[name].greater_is_better else -1
    assert m.get_scorer(name)(clf, X_new, Y_new) == pytest.approx(sign * value)
    assert value > 0


def test_scorers_of_other_metrics(small_problem):
    X, Y, X_new, Y_new = small_problem
    forest = ExtraTreesClassifier(20, random_state=0).fit(X, Y)  # a list of arrays
    ours = MultilabelCalibrator(IMCCClassifier(n_clusters=6, random_state=0), cv=3).fit(X, Y)
    for model in (forest, ours):
        chances = label_scores(model, X_new, Y.shape[1], method="predict_proba")
        clipped = np.clip(chances, 1e-7, 1 - 1e-7)
        losses = [sklearn.metrics.log_loss(y, p) for y, p in zip(Y_new.T, clipped.T, strict=True)]
        expected = {
            "log_loss": -np.mean(losses),
            "macro_average_precision": sklearn.metrics.average_precision_score(Y_new, chances),
            "macro_f1": sklearn.metrics.f1_score(Y_new, model.predict(X_new), average="macro"),
        }
        for name, value in expected.items():
            assert m.get_scorer(name)(model, X_new, Y_new) == pytest.approx(value), name


def test_unknown_labels_count_for_nothing():
    truth = np.array([[1, 0], [0, 1], [np.nan, 1], [1, 0.0]])
    scores = np.array([[0.9, 0.3], [0.4, 0.8], [0.99, 0.6], [0.2, 0.7]])
    rows = [0, 1, 3]
    of_first = sklearn.metrics.average_precision_score(truth[rows, 0], scores[rows, 0])
    of_second = sklearn.metrics.average_precision_score(truth[:, 1], scores[:, 1])
    assert m.macro_average_precision(truth, scores) == pytest.approx((of_first + of_second) / 2)
    right = [0.9, 0.7, 0.6, 0.8, 0.6, 0.2, 0.3]
    assert m.log_loss(truth, scores) == pytest.approx(-np.log(right).mean())
    assert np.isnan(m.macro_average_precision([[0], [0]], [[0.1], [0.2]]))
    with pytest.raises(ValueError, match="probabilities"):
        m.log_loss([[1]], [[1.5]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda y: 2 * y - 1, lambda y: y > 0])
def test_f1_is_scikit_learns(form):
    rng = np.random.default_rng(0)
    on, predicted = rng.random((2, 40, 6)) < 0.3
    on[:, 0] = predicted[:, 0] = False
    on[:, 1] = False
    predicted[:, 2] = False
    Y, P = form(on.astype(int)), form(predicted.astype(int))
    for average, function in (("macro", macro_f1), ("micro", micro_f1)):
        expected = f1_score(on, predicted, average=average, zero_division=0)
        assert function(Y, P) == pytest.approx(expected)
    assert macro_f1_present(Y, P) == pytest.approx(macro_f1(Y, P) * 6 / 5)


def test_f1_of_a_single_label_is_not_the_accuracy():
    on, predicted = np.array([[1], [0], [0], [0]]), np.array([[1], [1], [0], [0]])
    assert micro_f1(on, predicted) == macro_f1(on, predicted) == pytest.approx(2 / 3)
    assert micro_f1(np.zeros((3, 1)), np.zeros((3, 1))) == 0


def test_f1_refuses_other_shapes():
    with pytest.raises(ValueError, match="same shape"):
        macro_f1([[1, 0]], [[1, 0, 0]])


def test_every_macro_f1_is_the_same():
    """Of an experiment, of the diagnostics and of the metrics, for one model."""
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((30, 5)) < 0.3).astype(int), rng.normal(size=(30, 5)) - 0.5
    Y[:, 4] = 0
    scores[:, 4] = -1
    found = diagnose(Y, scores)
    stored = all_metrics(Y, scores, scores >= 0)
    assert found.macro_f1 == stored["macro_f1"] == macro_f1(Y, scores >= 0)
    assert found.micro_f1 == stored["micro_f1"] == micro_f1(Y, scores >= 0)
    assert np.mean([label.f1 for label in found.labels]) == pytest.approx(found.macro_f1)
    single = diagnose(Y[:, :1], scores[:, :1])
    stored = all_metrics(Y[:, :1], scores[:, :1], scores[:, :1] >= 0)
    assert single.micro_f1 == stored["micro_f1"] == single.labels[0].f1


def test_means_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    truth = rng.random((100_000, 5)) < 0.3
    scores = rng.normal(size=truth.shape)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(m.evaluate(truth, scores))
    assert found[0] == found[1]
