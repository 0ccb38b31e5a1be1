"""Held-out probabilities that a model keeps, also inside wrappers and in its file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier, TableClassifier
from imcc._utils.wrappers import first_with
from imcc.estimators import MultilabelCalibrator, TunedThresholds, cross_fit_scores
from imcc.persistence import load_model, save_model

ENSEMBLE = KernelEnsembleClassifier(views=("raw",), random_state=0)


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(90, n_features=8, n_classes=3, random_state=0)
    Y = Y.astype(float)
    Y[3, 1] = np.nan
    return X, Y


def check(model, Y, unused=()):
    """Compare the kept labels with the given ones, row by row."""
    labels, chances = model.held_out_labels_, model.held_out_proba_
    kept = np.setdiff1d(np.arange(len(Y)), unused)
    assert chances.dtype == np.float32
    assert np.isnan(chances[list(unused)]).all()
    assert ((chances[kept] > 0) & (chances[kept] < 1)).all()
    np.testing.assert_array_equal(labels[kept], np.nan_to_num(Y[kept], nan=-1))
    # Better than chance, and worse than on the rows that were trained on.
    assert chances[kept][labels[kept] == 1].mean() > chances[kept][labels[kept] == 0].mean() + 0.2


@pytest.mark.parametrize("wrap", [lambda m: m, TunedThresholds, MultilabelCalibrator])
def test_rows_of_weight_zero_stay_in_their_places(data, wrap, tmp_path):
    X, Y = data
    options = {TunedThresholds: {"cv": "held_out"}, MultilabelCalibrator: {"cv": 2}}.get(wrap, {})
    model = wrap(ENSEMBLE, **options)
    weights = np.ones(len(X))
    weights[[0, 7]] = 0
    model.fit(X, Y, sample_weight=weights)
    check(model, Y, [0, 7])
    again = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.held_out_proba_, model.held_out_proba_)
    check(model.fit(X, Y), Y)


def test_tables(data):
    pandas = pytest.importorskip("pandas")
    X, Y = data
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    weights = np.arange(len(X)) % 9
    model = TableClassifier(ENSEMBLE, random_state=0)
    check(model.fit(frame, Y, sample_weight=weights), Y, np.flatnonzero(weights == 0))
    check(model.fit(frame, Y), Y)
    other = TableClassifier(IMCCClassifier(4, random_state=0)).fit(frame, Y)
    assert not hasattr(other, "held_out_proba_")


def test_around_any_classifier(data):
    """Those of a calibrator are its maps of scores of held-out folds."""
    X, Y = data
    Y = np.nan_to_num(Y)
    inner = make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression()))
    model = make_pipeline(StandardScaler(), MultilabelCalibrator(inner, cv=3)).fit(X, Y)
    calibrated = first_with(model, "held_out_proba_")
    scores = cross_fit_scores(inner, X, Y, cv=3)
    own = calibrated.slopes_ * np.log(scores / (1 - scores)) + calibrated.offsets_
    np.testing.assert_allclose(calibrated.held_out_proba_, 1 / (1 + np.exp(-own)), rtol=1e-3)


def test_not_kept(data):
    X, Y = data
    for model in (clone(ENSEMBLE), MultilabelCalibrator(IMCCClassifier(4, random_state=0))):
        fitted = model.set_params(keep_held_out=False).fit(X, Y)
        assert not hasattr(fitted, "held_out_proba_")
        assert not hasattr(TunedThresholds(fitted, cv="prefit").fit(X, Y), "held_out_labels_")
