import json

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_recall_fscore_support,
    roc_auc_score,
)

from imcc.inspection import diagnose
from tests.naive import thresholds as naive
from tests.naive.inspection import resampled_diagnosis


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(1)
    Y = (rng.random((150, 4)) < [0.5, 0.3, 0.1, 0.7]).astype(int)
    scores = (0.8 * Y + 0.6 * rng.normal(size=Y.shape) - 0.5).round(2)  # rounded: some tie
    return Y, scores


@pytest.mark.parametrize("thresholds", [None, 0.2, [-0.5, 0.0, 0.1, 0.4]])
def test_against_scikit_learn(judged, thresholds):
    Y, scores = judged
    found = diagnose(Y, scores, thresholds=thresholds, label_names=list("abcd"))
    predicted = (scores >= (0 if thresholds is None else np.asarray(thresholds))).astype(int)
    expected = precision_recall_fscore_support(Y, predicted)
    for name, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        np.testing.assert_allclose([getattr(x, name) for x in found.labels], values)
    np.testing.assert_allclose(
        [x.auc for x in found.labels], roc_auc_score(Y, scores, average=None)
    )
    np.testing.assert_allclose(
        [x.average_precision for x in found.labels],
        average_precision_score(Y, scores, average=None),
    )
    assert [x.label for x in found.labels] == list("abcd")
    assert [x.predicted for x in found.labels] == predicted.sum(axis=0).tolist()
    assert found.macro_f1 == pytest.approx(f1_score(Y, predicted, average="macro"))
    assert found.micro_f1 == pytest.approx(f1_score(Y, predicted, average="micro"))
    assert found.micro_precision == pytest.approx((Y * predicted).sum() / predicted.sum())
    assert found.micro_recall == pytest.approx((Y * predicted).sum() / Y.sum())
    assert found.macro_auc == pytest.approx(roc_auc_score(Y, scores))


def test_best_f1_is_that_of_the_slow_search(judged):
    Y, scores = judged
    for j, label in enumerate(diagnose(Y, scores).labels):
        assert label.best_f1 == pytest.approx(naive.best_value(Y[:, j], scores[:, j], naive.f1))
        again = naive.f1(*naive.counts(Y[:, j], scores[:, j] >= label.best_threshold))
        assert again == pytest.approx(label.best_f1)


def test_labels_that_never_or_always_occur():
    found = diagnose([[0, 1], [0, 1]], [[-0.5, 0.5], [-0.4, -0.6]])
    never, always = found.labels
    assert (never.support, never.predicted) == (0, 0)
    assert all(np.isnan(v) for v in (never.precision, never.recall, never.auc))
    assert all(np.isnan(v) for v in (never.average_precision, never.best_f1))
    assert (always.recall, always.best_f1) == (0.5, 1.0)
    assert np.isnan(always.auc)
    assert never.f1 == 0
    assert found.macro_f1 == always.f1 / 2
    assert found.macro_f1_present == always.f1
    assert json.loads(json.dumps(found.to_dict()))["labels"][0]["auc"] is None
    assert diagnose([[0]], [[-1.0]]).macro_f1 == 0
    assert np.isnan(diagnose([[0]], [[-1.0]]).macro_f1_present)


def test_text_and_frame(judged):
    names = ["sea", "beach", "a name that is much too long for a table", "esc\x1b[2J"]
    found = diagnose(*judged, label_names=names)
    frame = found.to_frame()
    assert frame.index.get_level_values("label").tolist() == names
    assert {"support", "precision", "best_threshold"} < set(frame.columns)
    assert frame["f1"].tolist() == [label.f1 for label in found.labels]
    text = repr(found)
    assert text.startswith(f"Diagnostics of 4 labels on 150 rows: macro-F1 {found.macro_f1:.3f}")
    assert f"{found.labels[0].precision:.3f}" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y, F: diagnose(Y[:5], F), "same shape"),
        (lambda Y, F: diagnose(Y, F, label_names=["a"]), "label_names must be 4 names"),
        (lambda Y, F: diagnose(Y, F, thresholds=[1.0]), "thresholds"),
    ],
)
def test_bad_arguments(judged, call, message):
    with pytest.raises(ValueError, match=message):
        call(*judged)


def test_intervals_are_of_resampled_rows():
    rng = np.random.default_rng(0)
    Y = rng.random((40, 4)) < [0.5, 0.2, 0.05, 0.0]
    scores = (rng.normal(size=(40, 4)) + Y).round(1)  # with ties
    limits = [0.5, 0.0, 0.3, 0.2]
    found = diagnose(Y, scores, thresholds=limits, n_resamples=30, random_state=3, confidence=0.8)
    again = np.random.default_rng(3)
    drawn = np.array(
        [resampled_diagnosis(Y, scores, limits, again.integers(0, 40, 40)) for _ in range(30)]
    )
    plain = diagnose(Y, scores, thresholds=limits)
    for j, label in enumerate(found.labels):
        for k, name in enumerate(("f1", "auc", "average_precision")):
            values = drawn[:, k, j][~np.isnan(drawn[:, k, j])]
            assert getattr(label, name) == pytest.approx(
                getattr(plain.labels[j], name), nan_ok=True
            )
            low, high = np.quantile(values, [0.1, 0.9]) if len(values) else (np.nan, np.nan)
            assert label.intervals[name] == pytest.approx((low, high), nan_ok=True)
    for k, name in enumerate(("macro_f1", "macro_auc", "macro_average_precision")):
        means = np.array([np.mean(row[~np.isnan(row)]) for row in drawn[:, k]])
        assert found.intervals[name] == pytest.approx(np.quantile(means, [0.1, 0.9]))
    assert found.intervals["micro_f1"][0] < found.micro_f1 < found.intervals["micro_f1"][1]
    assert str(found.labels[3].estimate("auc")) == "-"
    assert str(found.labels[0].estimate("f1")).startswith(f"{found.labels[0].f1:.3f} [")
    frame = found.to_frame()
    assert frame["auc_low"].iloc[0] == found.labels[0].intervals["auc"][0]
    assert "intervals" not in frame.columns
    assert plain.intervals == {}
    assert found.to_dict()["labels"][3]["intervals"]["auc"] == [None, None]
