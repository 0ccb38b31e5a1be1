"""evaluate_model gives what its parts give for the scores, decisions and probabilities."""

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc.datasets import load_dataset
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import diagnose, diagnose_probabilities, evaluate_model
from imcc.metrics import evaluate


@pytest.fixture(scope="module")
def rows():
    yeast = load_dataset("yeast")
    return yeast[:200], yeast[200:300]


def test_scores_and_decisions(rows):
    train, test = rows
    model = TunedThresholds(IMCCClassifier(4, random_state=0), cv=3).fit(train.X, train.Y)
    options = {"label_names": test.label_names, "n_resamples": 20, "random_state": 3}
    found = evaluate_model(model, test.X, test.Y, **options)
    scores = model.decision_function(test.X)
    expected = evaluate(test.Y, scores)
    expected["hamming_loss"] = np.mean(model.predict(test.X) != test.Y)
    assert found.metrics == pytest.approx(expected)
    by_hand = diagnose(test.Y, scores, thresholds=model.thresholds_, **options)
    assert found.labels.to_dict() == by_hand.to_dict()
    assert found.probabilities is None


def test_probabilities(rows):
    train, test = rows
    model = MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3).fit(train.X, train.Y)
    found = evaluate_model(model, test.X, test.Y, n_resamples=20).probabilities
    by_hand = diagnose_probabilities(test.Y, model.predict_proba(test.X), n_resamples=20)
    assert found.log_loss == by_hand.log_loss


def test_labels_are_checked(rows):
    train, test = rows
    model = IMCCClassifier(4, random_state=0).fit(train.X, train.Y)
    with pytest.raises(ValueError, match="shape"):
        evaluate_model(model, test.X[:50], test.Y)
    with pytest.raises(ValueError, match="label_names"):
        evaluate_model(model, test.X, test.Y, label_names=["a"])
