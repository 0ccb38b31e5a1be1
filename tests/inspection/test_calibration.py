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

from imcc import IMCCClassifier
from imcc.baselines import LIFT, LLSF, BinaryRelevanceSVM, KernelRidgeBaseline
from imcc.inspection import diagnose_probabilities, score_probabilities
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
    for chances in (right, wrong):
        part = diagnose_probabilities(Y, chances, label_names=["a", "b", "c"])
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


def test_intervals_are_those_of_the_slow_bootstrap(judged):
    Y, right, wrong = judged
    options = {"n_resamples": 20, "confidence": 0.8, "random_state": 5, "n_bins": 4}
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, 120, 120) for _ in range(20)]
    edges = np.linspace(0, 1, 5)
    for chances in (right, wrong):
        part = diagnose_probabilities(Y, chances, **options)
        drawn = np.array([naive.resampled_measures(Y, chances, rows, edges) for rows in draws])
        for k, name in enumerate(MEASURES):
            for j, label in enumerate(part.labels):
                check_interval(getattr(label, name), drawn[:, k, j], name)
            check_interval(getattr(part, name), drawn[:, k].mean(axis=1), name)


def check_interval(estimate, drawn, name):
    if name == "calibration_error":
        drawn = drawn - drawn.mean() + estimate.value
    low, high = np.quantile(drawn, [0.1, 0.9])
    low = max(low, 0) if estimate.value > 0 else low
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert estimate.low <= estimate.value <= estimate.high


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
        ({"label_names": ["a"]}, "label_names"),
    ],
)
def test_bad_arguments(judged, options, message):
    Y, right, _ = judged
    with pytest.raises(ValueError, match=message):
        diagnose_probabilities(Y, right, **options)


def test_frames_texts_and_dicts(judged):
    pytest.importorskip("pandas")
    Y, right, _ = judged
    names = ["sea", "esc\x1b[2J", "b"]
    found = diagnose_probabilities(Y, right, label_names=names)
    frame = found.to_frame()
    assert frame.index.get_level_values("label").tolist() == names
    assert frame["brier_high"].tolist() == [label.brier.high for label in found.labels]
    assert len(frame.columns) == 11
    text = repr(found)
    assert text.startswith("Probabilities of 3 labels on 120 rows: log loss 0.")
    assert f"{found.labels[1].brier.value:.3f}" in text
    assert "\x1b" not in text
    about = found.to_dict()
    assert json.loads(json.dumps(about)) == about


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
    assert score_probabilities(BinaryRelevanceSVM(scores="margin").fit(X, Y), X_new, 4) is None
    assert score_probabilities(LinearSVC().fit(X, Y[:, 0]), X_new, 1) is None


def test_without_resamples_there_are_no_intervals(judged):
    Y, right, _ = judged
    found = diagnose_probabilities(Y, right, n_resamples=0)
    full = diagnose_probabilities(Y, right)
    assert np.isnan(found.brier.low)
    assert found.brier.value == full.brier.value
    assert str(found.labels[0].log_loss) == f"{full.labels[0].log_loss.value:.3f}"
