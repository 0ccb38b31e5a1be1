"""Thresholds that promise a recall or a precision."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from imcc import IMCCClassifier
from imcc.estimators import (
    GuaranteedThresholds,
    MultilabelCalibrator,
    NoGuaranteeWarning,
    TunedThresholds,
    guarantee_thresholds,
    label_scores,
)
from tests.naive import guarantees as naive


def population(n=20_000, seed=0):
    """Labels that depend on each other within a row, with scores that tell something."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    drawn = common + rng.normal(size=(n, 4))
    truth = drawn > [0.5, 1.0, 1.5, 2.0]
    return truth, drawn + 0.7 * common * rng.random((n, 1)) + 0.6 * rng.normal(size=(n, 4))


def reached(truth, predicted, kind, per):
    axis = 0 if per == "label" else None
    right = (truth & predicted).sum(axis=axis)
    of = (truth if kind == "recall" else predicted).sum(axis=axis)
    return np.where(of > 0, right / np.maximum(of, 1), 1.0)


@pytest.mark.parametrize("per", ["label", "overall"])
@pytest.mark.parametrize("kind", ["recall", "precision"])
@pytest.mark.filterwarnings("ignore::imcc.estimators.NoGuaranteeWarning")
def test_promises_are_kept_as_often_as_promised(kind, per):
    truth, scores = population()
    rng = np.random.default_rng(1)
    kept, values, chosen = [], [], []
    for _ in range(80):
        rows = rng.integers(0, len(truth), 600)
        found = guarantee_thresholds(truth[rows], scores[rows], **{kind: 0.8}, per=per)
        assert found.shape == (4,)
        assert per == "label" or len(set(found)) == 1
        value = reached(truth, scores >= found, kind, per)
        is_finite = np.isfinite(found) if per == "label" else np.isfinite(found[0])
        kept.append(value >= 0.8)
        values.extend(np.atleast_1d(value)[np.atleast_1d(is_finite)])
        chosen.append(is_finite)
    assert np.mean(kept, axis=0).min() > 0.8  # 0.9, less three standard errors
    # They are not kept by being far too careful.
    assert np.mean(chosen) > (0.99 if kind == "recall" else 0.6)
    assert np.mean(values) < 0.9


def test_the_recall_of_a_label_is_exact():
    rng = np.random.default_rng(2)
    for n, recall, confidence in ((60, 0.8, 0.9), (200, 0.9, 0.95), (90, 0.5, 0.5)):
        on = rng.random((n, 1)) < 0.6
        scores = rng.normal(size=(n, 1)).round(1)  # ties
        found = guarantee_thresholds(on, scores, recall=recall, confidence=confidence)
        expected = naive.highest_threshold(on[:, 0], scores[:, 0], recall, confidence)
        missed = int((on & (scores < found)).sum())
        assert naive.tail(missed, int(on.sum()), 1 - recall) <= 1 - confidence
        # Of tied scores, all are found or none.
        assert expected <= found[0] <= expected + 0.1 + 1e-9


@pytest.mark.parametrize("per", ["label", "overall"])
def test_it_says_where_nothing_can_be_promised(per):
    truth, scores = population(30)
    for kind, value in (("recall", -np.inf), ("precision", np.inf)):
        with pytest.warns(NoGuaranteeWarning, match=kind):
            found = guarantee_thresholds(truth, scores, **{kind: 0.99}, per=per)
        assert (found == value).all()
    names = ["red", "green", "blue", "rare"]
    truth, scores = population(200)
    with pytest.warns(NoGuaranteeWarning, match="'rare' is always predicted"):
        found = guarantee_thresholds(truth, scores, recall=0.9, label_names=names)
    assert np.isfinite(found).tolist() == [True, True, True, False]


def test_unknown_labels_are_not_counted():
    truth, scores = population(800)
    partly = truth.astype(float)
    partly[::2, 0] = np.nan
    found = guarantee_thresholds(partly, scores, recall=0.7)
    half = guarantee_thresholds(truth[1::2], scores[1::2], recall=0.7)
    every = guarantee_thresholds(truth, scores, recall=0.7)
    assert found[0] == half[0] != every[0]
    assert (found[1:] == every[1:]).all()


def test_more_is_more_careful():
    truth, scores = population(2000)
    for per in ("label", "overall"):
        least, most, surer = (
            guarantee_thresholds(truth, scores, per=per, **options)
            for options in (
                {"recall": 0.7},
                {"recall": 0.8},
                {"recall": 0.7, "confidence": 0.99},
            )
        )
        assert (most < least).all()
        assert (surer < least).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "recall"),
        ({"recall": 0.9, "precision": 0.9}, "recall"),
        ({"recall": 1.0}, "recall"),
        ({"precision": 0}, "precision"),
        ({"recall": 0.9, "per": "row"}, "per"),
        ({"recall": 0.9, "confidence": 90}, "confidence"),
    ],
)
def test_bad_arguments(options, name):
    truth, scores = population(50)
    with pytest.raises(ValueError, match=f"^{name}"):
        guarantee_thresholds(truth, scores, **options)
    with pytest.raises(ValueError, match=f"^{name}"):
        GuaranteedThresholds(IMCCClassifier(), **options).fit(scores, truth)


def problem():
    truth, scores = population(900, seed=3)
    return np.column_stack([scores, scores[:, ::-1] ** 2]), truth.astype(int)


BASE = IMCCClassifier(n_clusters=8, random_state=0)


@pytest.mark.parametrize(
    "base", [BASE, MultilabelCalibrator(BASE, cv=3), ExtraTreesClassifier(20, random_state=0)]
)
def test_a_classifier_that_holds_rows_out(base):
    X, Y = problem()
    model = GuaranteedThresholds(base, recall=0.7, calibration=0.4, random_state=0)
    model.fit(X[:600], Y[:600])
    assert model.n_calibration_ == 240
    assert model.guaranteed_.all()
    has_chances = hasattr(base, "predict_proba")
    method = "predict_proba" if has_chances else "decision_function"
    values = label_scores(model.estimator_, X[600:], 4, method=method)
    found = model.predict(X[600:])
    np.testing.assert_array_equal(found, values >= model.thresholds_)
    assert reached(Y[600:] > 0, found > 0, "recall", "label").min() > 0.6
    assert found.sum() > model.predict(X[600:], thresholds=0.5).sum()
    other = GuaranteedThresholds(base, recall=0.7, calibration=0.4, random_state=1)
    assert (other.fit(X[:600], Y[:600]).thresholds_ != model.thresholds_).any()


def test_a_fitted_classifier():
    X, Y = problem()
    fitted = MultilabelCalibrator(BASE, cv=3).fit(X[:500], Y[:500])
    model = GuaranteedThresholds(fitted, precision=0.6, per="overall", calibration="prefit")
    model.fit(X[500:], Y[500:])
    assert model.estimator_ is fitted
    expected = guarantee_thresholds(
        Y[500:], fitted.predict_proba(X[500:]), precision=0.6, per="overall"
    )
    np.testing.assert_array_equal(model.thresholds_, expected)
    # It is for predictions as any other thresholds.
    again = TunedThresholds(fitted, cv="prefit").fit(X[500:], Y[500:])
    again.thresholds_ = expected
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_rows_of_groups_and_three_classes_are_refused():
    X, Y = problem()
    with pytest.raises(ValueError, match=r"^groups"):
        GuaranteedThresholds(BASE, recall=0.9).fit(X, Y, groups=np.arange(len(X)) // 2)
    with pytest.raises(ValueError, match="multiclass"):
        GuaranteedThresholds(BASE, recall=0.9).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match=r"^calibration"):
        GuaranteedThresholds(BASE, recall=0.9, calibration=1.5).fit(X, Y)
    words = np.where(Y[:, 0], "yes", "no")
    two = GuaranteedThresholds(MultilabelCalibrator(BASE, cv=3), recall=0.8, random_state=0)
    found = two.fit(X, words).predict(X)
    assert (found[words == "yes"] == "yes").mean() > 0.75
