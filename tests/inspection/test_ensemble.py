"""Scores of an ensemble, taken apart: by training rows, and by members."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc.estimators import TunedThresholds
from imcc.inspection import Explainer, draw_members, explain
from imcc.inspection._ensemble import member_name

FAST = {"views": ("raw", "standard"), "random_state": 0}


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(90, n_features=8, n_classes=4, n_labels=2, random_state=1)
    Y[:, 2] = 1  # a constant label
    return X.astype(float), Y


@pytest.fixture(scope="module")
def fitted(data):
    X, Y = data
    return KernelEnsembleClassifier(**FAST).fit(X[:80], Y[:80])


def test_training_rows_add_up_to_the_log_odds(data, fitted):
    X, _ = data
    assert len(fitted.members_) > 1
    explainer = Explainer(fitted)
    for i in (80, 85):
        for j in range(4):
            found = explainer.explain(X[i], j)
            assert found.by == "support"
            score = fitted.decision_function(X[i : i + 1])[0, j]
            np.testing.assert_allclose(found.score, score)
            np.testing.assert_allclose(sum(found.totals().values()), score, atol=1e-9)
            if j != 2:
                assert found.weights["row"].shape == (80,)
                assert (found.weights["row"] <= 1 + 1e-12).all()
    assert "others" in repr(found)


def test_contributions_are_what_the_score_loses_without_a_row(data, fitted):
    """Set the coefficients of one training row to zero in every member."""
    from dataclasses import replace

    X, _ = data
    found = explain(fitted, X[82], 1, by="support")
    i = found.top(1)[0].index
    model = fitted._model
    members = []
    for member in model.members:
        coef = member.coef.copy()
        coef[i] = 0
        members.append(replace(member, coef=coef))
    without = replace(model, members=tuple(members)).log_odds(X[82:83])[0, 1]
    np.testing.assert_allclose(found.contributions("row")[i], found.score - without, atol=1e-9)


def test_members_add_up(data, fitted):
    X, _ = data
    whole = explain(fitted, X[81], 0, by="members")
    assert whole.constant == 0
    weights = [member["weight"] for member in fitted.members_]
    np.testing.assert_allclose(whole.weights["member"], weights)
    np.testing.assert_allclose(whole.totals()["member"], whole.score, atol=1e-9)
    assert whole.top(1)[0].name in [member_name(member) for member in fitted.members_]


def test_inside_of_a_pipeline_with_thresholds_and_sparse_rows(data):
    X, Y = data
    tuned = TunedThresholds(
        make_pipeline(StandardScaler(), KernelEnsembleClassifier(**FAST)), cv=2
    ).fit(X[:60], Y[:60])
    found = explain(tuned, X[70], 1, label_names=list("abcd"))
    assert found.label == "b"
    # Evidence is in log-odds; the threshold is a probability.
    assert expit(found.threshold) == pytest.approx(tuned.thresholds_[1])
    assert found.score == pytest.approx(tuned.decision_function(X[70:71])[0, 1])
    rng = np.random.RandomState(0)
    S = sp.random(60, 30, 0.1, "csr", random_state=rng)
    T = (S @ rng.standard_normal((30, 3)) > 0.1).astype(int)
    clf = KernelEnsembleClassifier(random_state=0).fit(S, T)
    long = sp.csr_matrix((S.data, S.indices.astype(np.int64), S.indptr.astype(np.int64)), S.shape)
    found = explain(clf, long[5], 0)
    assert found.score == pytest.approx(clf.decision_function(S[5])[0, 0])


def test_landmarks_and_binary_targets():
    X = np.random.RandomState(0).standard_normal((2000, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    # Too little for a matrix of 2000 x 2000 numbers.
    clf = KernelEnsembleClassifier(views=("raw",), max_memory=1.5e8, random_state=0)
    with pytest.warns(UserWarning, match="landmarks"):
        clf.fit(X, y)
    found = explain(clf, X[80], "yes")
    assert found.weights["landmark"].shape == (clf.n_landmarks_,)
    assert found.top(1)[0].name.startswith("landmark ")
    assert found.score == pytest.approx(clf.decision_function(X[80:81])[0])


def test_what_cannot_be_explained(data, fitted):
    X, Y = data
    with pytest.raises(ValueError, match="by 'evidence' is not available for an ensemble"):
        explain(fitted, X[0], 0, by="evidence")
    imcc = IMCCClassifier(4, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="members of a KernelEnsembleClassifier"):
        explain(imcc, X[0], 0, by="members")
    assert explain(fitted, X[0], 2).totals() == {"constant": pytest.approx(np.log(80.5 / 0.5))}


# The picture.


def test_bars_are_the_weights(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    text = draw_members(fitted, tmp_path / "members.svg").read_text()
    assert f"Weights of the {len(fitted.members_)} members" in text
    assert draw_members(fitted, tmp_path / "members.png").stat().st_size > 5000


def test_only_ensembles_have_members(data):
    X, Y = data
    with pytest.raises(TypeError, match="pipeline: IMCCClassifier has no members"):
        draw_members(IMCCClassifier(4, random_state=0).fit(X, Y), "members.png")
