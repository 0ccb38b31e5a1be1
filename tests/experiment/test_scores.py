import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from imcc.experiment._scores import (
    ALL_METRICS,
    LABEL_RANGES,
    all_metrics,
    centred_scores,
    precision_by_frequency,
    predictions,
)
from imcc.metrics import evaluate

# The shapes that scikit-learn gives: lists of matrices, matrices of probabilities, of decisions.
CLASSIFIERS = [
    RandomForestClassifier(5, random_state=0),
    OneVsRestClassifier(LogisticRegression()),
    RidgeClassifier(),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_scores_agree_with_what_the_classifier_predicts(classifier):
    X, Y = make_multilabel_classification(80, n_classes=4, random_state=1)
    classifier.fit(X, Y)
    scores = centred_scores(classifier, X, 4)
    predicted = predictions(classifier, X, scores)
    assert scores.shape == predicted.shape == (80, 4)
    away = np.abs(scores) > 1e-9  # at the threshold itself, libraries differ
    assert ((scores > 0) == predicted)[away].all()
    assert np.array_equal(predicted, classifier.predict(X) > 0)


class Fake:
    def __init__(self, scores, predicted=None):
        self.scores = scores
        if predicted is not None:
            self.predict = lambda _: predicted

    def decision_function(self, X):
        return self.scores


def test_wrong_shapes_and_numbers_are_errors():
    X = np.zeros((2, 1))
    with pytest.raises(TypeError, match="neither"):
        centred_scores(object(), X, 3)
    with pytest.raises(ValueError, match="scores per row"):
        centred_scores(Fake(np.zeros((2, 2))), X, 3)
    Y, predicted = np.eye(2, dtype=int), np.eye(2, dtype=bool)
    for wrong in (np.array([[0, np.nan]] * 2), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="scores"):
            all_metrics(Y, centred_scores(Fake(wrong), X, 2), predicted)
    with pytest.raises(ValueError, match="predictions"):
        predictions(Fake(None, np.zeros((2, 3))), X, np.zeros((2, 2)))


def test_sparse_predictions_and_missing_ones():
    scores = np.array([[0.5, -0.5], [0.0, -1.0]])
    assert predictions(Fake(scores, sp.csr_array([[0, 1], [0, 0]])), None, scores).tolist() == [
        [False, True],
        [False, False],
    ]
    assert predictions(Fake(scores), None, scores).tolist() == [[True, False], [True, False]]


def test_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 5)) < 0.4).astype(int)
    Y[:, 4] = 1  # no area under the curve
    scores = rng.normal(size=Y.shape)
    predicted = scores > 0.2  # not the scores' own threshold
    metrics = all_metrics(Y, scores, predicted)
    assert tuple(metrics) == ALL_METRICS
    assert metrics["coverage"] == evaluate(Y, scores)["coverage"]
    assert metrics["hamming_loss"] == pytest.approx(np.mean(predicted != Y))
    assert metrics["micro_f1"] == pytest.approx(f1_score(Y, predicted, average="micro"))
    assert metrics["macro_f1"] == pytest.approx(f1_score(Y, predicted, average="macro"))
    assert metrics["subset_accuracy"] == pytest.approx((predicted == Y).all(axis=1).mean())
    assert metrics["macro_auc"] == pytest.approx(
        np.mean([roc_auc_score(Y[:, j], scores[:, j]) for j in range(4)])
    )


def test_what_is_undefined_is_nan():
    metrics = all_metrics(np.ones((3, 2), int), np.zeros((3, 2)), np.ones((3, 2), bool))
    assert np.isnan([metrics["average_precision"], metrics["macro_auc"]]).all()
    assert metrics["hamming_loss"] == 0


def test_average_precision_by_the_frequency_of_labels():
    """Against a loop over labels; ranges without a label, and labels nobody has, are left out."""
    rng = np.random.default_rng(0)
    share = np.array([0.0, 0.005, 0.01, 0.03, 0.05, 0.2, 0.6, 1.0])
    train = np.arange(200)[:, np.newaxis] < share * 200
    Y = rng.random((80, 8)) < 0.3
    Y[:, 3] = False
    scores = rng.normal(size=Y.shape)
    found = precision_by_frequency(train, Y, scores)
    expected = [average_precision_score(Y[:, j], scores[:, j]) for j in range(8) if j != 3]
    assert list(found) == list(LABEL_RANGES)
    np.testing.assert_allclose(
        list(found.values()),
        [np.mean(expected[1:3]), expected[3], expected[4], np.mean(expected[5:])],
    )
    found = precision_by_frequency(train[:, :2], Y[:, :2], scores[:, :2])
    assert list(found) == ["label_ap_to_1"]
