"""The best labels of each row, of every kind of classifier."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier, TableClassifier
from imcc.estimators import TunedThresholds, cross_fit, top_labels
from tests.naive.metrics import best_labels

X, Y = make_multilabel_classification(140, n_features=6, n_classes=7, random_state=0)
IMCC = IMCCClassifier(4, random_state=0)
ENSEMBLE = KernelEnsembleClassifier(views=("raw",), random_state=0)


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    monkeypatch.setattr(cross_fit, "_TOP_ROWS", 16)


@pytest.mark.parametrize(
    "model",
    [
        IMCC,
        ENSEMBLE,
        make_pipeline(MaxAbsScaler(), ENSEMBLE),
        TunedThresholds(IMCC, cv=2),
        KNeighborsClassifier(3),  # equal probabilities, one array per label
    ],
    ids=["scores", "probabilities", "pipeline", "thresholds", "list"],
)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_they_are_those_of_all_scores(model, convert):
    model.fit(convert(X[:100]), Y[:100])
    new = convert(X[100:])
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(new)
        if isinstance(scores, list):
            scores = np.column_stack([chances[:, 1] for chances in scores])
    else:
        scores = model.decision_function(new)
    labels, values = top_labels(model, new, 3)
    expected = best_labels(scores, 3)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(values, np.take_along_axis(scores, expected, 1), atol=1e-12)
    assert top_labels(model, new, 20)[0].shape == (40, 7)


def test_classes_and_tables():
    y = np.array(["a", "b", "c"])[np.arange(140) % 3]
    clf = KernelEnsembleClassifier(views=("raw",), random_state=0).fit(X, y)
    labels, _ = top_labels(clf, X.tolist(), 1)
    np.testing.assert_array_equal(clf.classes_[labels[:, 0]], clf.predict(X))
    table = pd.DataFrame(X, columns=list("abcdef")).assign(rainy=Y[:, 0], windy=Y[:, 1])
    model = TableClassifier(ENSEMBLE).fit(table, ["rainy", "windy"])
    labels, values = top_labels(model, table, 1)
    np.testing.assert_array_equal(values[:, 0], model.predict_proba(table).max(axis=1))


def test_what_cannot_be_cut_into_blocks_is_refused():
    clf = ENSEMBLE.fit(X, Y)
    with pytest.raises(ValueError, match="X "):
        top_labels(clf, {"a": [1.0]}, 2)
    with pytest.raises(ValueError, match="k "):
        top_labels(clf, X, 0)
