"""Log loss, Brier score and calibration error of each label, with intervals."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import (
    LIFT,
    LLSF,
    BinaryRelevanceSVM,
    KernelRidgeBaseline,
)
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import (
    diagnose_probabilities,
    draw_calibration,
    probabilities_before_calibration,
    score_probabilities,
)
from tests.naive import inspection as naive

MEASURES = ("log_loss", "brier", "calibration_error")


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(3)
    right = rng.uniform(size=(120, 3)) ** [1, 2, 4]
    Y = (rng.uniform(size=right.shape) < right).astype(int)
    return Y, right, np.clip(1.4 * right - 0.1, 0, 1)  # the last are wrong, 0 and 1 among them


def test_values_against_scikit_learn(judged):
    Y, right, wrong = judged
    found = diagnose_probabilities(Y, right, before=wrong, label_names=["a", "b", "c"])
    for part, chances in ((found, right), (found.before, wrong)):
        for j, label in enumerate(part.labels):
            inside = np.clip(chances[:, j], 1e-7, 1 - 1e-7)
            assert label.log_loss.value == pytest.approx(log_loss(Y[:, j], inside))
            assert label.brier.value == pytest.approx(brier_score_loss(Y[:, j], chances[:, j]))
            observed, predicted = calibration_curve(Y[:, j], chances[:, j], n_bins=10)
            filled = label.counts > 0
            np.testing.assert_allclose(label.observed[filled], observed)
            np.testing.assert_allclose(label.predicted[filled], predicted)
            assert np.isnan(label.observed[~filled]).all()
            gaps = np.abs(predicted - observed) @ label.counts[filled] / 120
            assert label.calibration_error.value == pytest.approx(gaps)
            assert label.support == Y[:, j].sum()
            assert label.label == "abc"[j]
        for name in MEASURES:
            values = [getattr(label, name).value for label in part.labels]
            assert getattr(part, name).value == pytest.approx(np.mean(values))
    assert found.before.before is None
    for name in MEASURES:
        change = getattr(found, name).value - getattr(found.before, name).value
        assert found.changes[name].value == pytest.approx(change)


def test_intervals_are_those_of_the_slow_bootstrap(judged):
    Y, right, wrong = judged
    options = {"n_resamples": 20, "confidence": 0.8, "random_state": 5, "n_bins": 4}
    found = diagnose_probabilities(Y, right, before=wrong, **options)
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, 120, 120) for _ in range(20)]
    edges = np.linspace(0, 1, 5)
    slow = [
        np.array([naive.resampled_measures(Y, P, rows, edges) for rows in draws])
        for P in (right, wrong)
    ]
    for part, drawn in zip((found, found.before), slow, strict=True):
        for k, name in enumerate(MEASURES):
            for j, label in enumerate(part.labels):
                check_interval(getattr(label, name), drawn[:, k, j], name)
            check_interval(getattr(part, name), drawn[:, k].mean(axis=1), name)
    for k, name in enumerate(MEASURES):
        moved = (slow[0] - slow[1])[:, k].mean(axis=1)
        check_interval(found.changes[name], moved, name)


def check_interval(estimate, drawn, name):
    if name == "calibration_error":
        drawn = drawn - drawn.mean() + estimate.value
    low, high = np.quantile(drawn, [0.1, 0.9])
    low = max(low, 0) if estimate.value > 0 else low
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert estimate.low <= estimate.value <= estimate.high


def test_blocks_of_resamples_make_no_difference(judged, config):
    Y, right, _ = judged
    whole = diagnose_probabilities(Y, right)
    config(sum_entries=500)
    again = diagnose_probabilities(Y, right)
    for name in MEASURES:
        one, other = getattr(whole, name), getattr(again, name)
        assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_the_error_by_chance_is_that_of_right_probabilities():
    rng = np.random.default_rng(0)
    P = rng.uniform(size=(200, 1)) ** 3
    found = diagnose_probabilities(P > 0.5, P)
    drawn = [
        diagnose_probabilities(rng.uniform(size=P.shape) < P, P, n_resamples=0) for _ in range(300)
    ]
    mean = np.mean([one.calibration_error.value for one in drawn])
    assert found.error_by_chance == pytest.approx(mean, rel=0.1)


def test_every_option_counts(judged):
    Y, right, _ = judged
    plain = diagnose_probabilities(Y, right)
    for options in (
        {"n_bins": 3},
        {"confidence": 0.5},
        {"n_resamples": 30},
        {"random_state": 1},
        {"label_names": ["a", "b", "c"]},
    ):
        assert repr(diagnose_probabilities(Y, right, **options)) != repr(plain), options
    assert repr(diagnose_probabilities(Y, right)) == repr(plain)


def test_labels_that_never_or_always_occur():
    P = np.full((50, 2), 0.5)
    found = diagnose_probabilities(np.tile([0, 1], (50, 1)), P)
    for label in found.labels:
        assert label.log_loss.value == pytest.approx(np.log(2))
        assert label.calibration_error.value == pytest.approx(0.5)
        assert label.calibration_error.low == label.calibration_error.high == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0}, "confidence"),
        ({"n_resamples": -1}, "n_resamples"),
        ({"n_bins": 0}, "n_bins"),
        ({"before": [[2.0] * 3] * 120}, "before must be probabilities"),
        ({"before": [[0.2] * 2] * 120}, "same shape"),
        ({"label_names": ["a"]}, "label_names"),
    ],
)
def test_bad_arguments(judged, options, message):
    Y, right, _ = judged
    with pytest.raises(ValueError, match=message):
        diagnose_probabilities(Y, right, **options)


def test_frames_texts_and_dicts(judged):
    pytest.importorskip("pandas")
    Y, right, wrong = judged
    names = ["sea", "esc\x1b[2J", "b"]
    found = diagnose_probabilities(Y, right, before=wrong, label_names=names)
    frame = found.to_frame()
    assert frame.index.get_level_values("label").tolist() == names
    assert frame["brier_high"].tolist() == [label.brier.high for label in found.labels]
    before = [label.log_loss.low for label in found.before.labels]
    assert frame["log_loss_low_before"].tolist() == before
    assert len(frame.columns) == 1 + 2 * 10
    assert len(found.before.to_frame().columns) == 11
    text = repr(found)
    assert text.startswith("Probabilities of 3 labels on 120 rows: log loss 0.")
    assert "before calibration" in text
    assert "before" not in repr(found.before)
    assert f"{found.labels[1].brier.value:.3f}" in text
    assert "\x1b" not in text
    about = found.to_dict()
    assert json.loads(json.dumps(about)) == about
    assert about["before"]["labels"][0]["brier"]["low"] == found.before.labels[0].brier.low
    assert about["changes"]["brier"]["value"] == found.changes["brier"].value


def test_picture(judged, tmp_path):
    pytest.importorskip("matplotlib")
    Y, right, wrong = judged
    names = ["plain", "<b>&$x_1$", "zwei\nZeilen"]
    both = diagnose_probabilities(Y, right, before=wrong, label_names=names)
    for suffix in ("png", "svg"):
        assert draw_calibration(both, tmp_path / f"c.{suffix}").stat().st_size > 5000
    text = (tmp_path / "c.svg").read_text()
    assert text.count('id="axes_') == 3
    few = draw_calibration(both, tmp_path / "few.svg", max_labels=2).read_text()
    assert few.count('id="axes_') == 2
    one = draw_calibration(diagnose_probabilities(Y, right), tmp_path / "one.svg").read_text()
    assert len(one) < len(text)


def test_what_scores_say_of_probabilities(small_problem):
    X, Y, X_new, _ = small_problem
    shapes = {
        IMCCClassifier(6, random_state=0): lambda f: np.clip((f + 1) / 2, 0, 1),
        KernelRidgeBaseline(cv=3): lambda f: np.clip((f + 1) / 2, 0, 1),
        make_pipeline(StandardScaler(), LLSF()): lambda f: np.clip(f + 0.5, 0, 1),
        BinaryRelevanceSVM(random_state=0): expit,
        LIFT(random_state=0): expit,
    }
    for model, expected in shapes.items():
        model.fit(X, Y)
        found = score_probabilities(model, X_new, 4)
        np.testing.assert_allclose(found, expected(model.decision_function(X_new)))
        assert probabilities_before_calibration(model, X_new, 4) is None
    assert score_probabilities(BinaryRelevanceSVM(scores="margin").fit(X, Y), X_new, 4) is None
    assert score_probabilities(LinearSVC().fit(X, Y[:, 0]), X_new, 1) is None


def test_before_calibration_is_the_model_inside(small_problem):
    X, Y, X_new, _ = small_problem
    inner = MultilabelCalibrator(IMCCClassifier(6, random_state=0), cv=3)
    for model in (inner, make_pipeline(StandardScaler(), TunedThresholds(inner, cv=3))):
        model.fit(X, Y)
        rows = X_new if model is inner else model[0].transform(X_new)
        fitted = model if model is inner else model[-1].estimator_
        expected = np.clip((fitted.estimator_.decision_function(rows) + 1) / 2, 0, 1)
        np.testing.assert_allclose(probabilities_before_calibration(model, X_new, 4), expected)
        np.testing.assert_allclose(score_probabilities(model, X_new, 4), fitted.predict_proba(rows))


def test_before_calibration_of_a_calibrated_search(small_problem):
    X, Y, X_new, _ = small_problem
    grid = {"alphas": [1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
    search = IMCCClassifierCV(**grid, calibrate=True, random_state=0).fit(X, Y)
    expected = np.clip((search.best_estimator_.decision_function(X_new) + 1) / 2, 0, 1)
    np.testing.assert_allclose(probabilities_before_calibration(search, X_new, 4), expected)
    np.testing.assert_allclose(score_probabilities(search, X_new, 4), search.predict_proba(X_new))


def test_without_resamples_there_are_no_intervals(judged):
    Y, right, wrong = judged
    found = diagnose_probabilities(Y, right, before=wrong, n_resamples=0)
    full = diagnose_probabilities(Y, right, before=wrong)
    assert np.isnan(found.brier.low)
    assert np.isnan(found.changes["brier"].high)
    assert found.brier.value == full.brier.value
    assert str(found.labels[0].log_loss) == f"{full.labels[0].log_loss.value:.3f}"
