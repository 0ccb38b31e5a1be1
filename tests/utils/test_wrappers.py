import numpy as np
import pytest
from sklearn.feature_selection import RFE
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._utils.wrappers import (
    best_setting,
    describe,
    first_with,
    innermost,
    layers,
    transformers,
    without_search,
)
from imcc.estimators import TunedThresholds

SEARCH = IMCCClassifierCV([1.0], [0.1, 1.0], [0.1], [4], width_scales=1.0, cv=3, random_state=0)


@pytest.fixture(scope="module")
def nested(small_problem):
    X, Y, *_ = small_problem
    inner = make_pipeline(StandardScaler(), SEARCH)
    return make_pipeline(StandardScaler(), TunedThresholds(inner, cv=3)).fit(X, Y)


def test_layers(nested):
    kinds = [type(layer).__name__ for layer in layers(nested)]
    assert kinds == [
        "Pipeline",
        "TunedThresholds",
        "Pipeline",
        "IMCCClassifierCV",
        "IMCCClassifier",
    ]
    assert type(innermost(nested, searches=False)) is IMCCClassifierCV
    assert type(innermost(nested)) is IMCCClassifier
    assert type(first_with(nested, "thresholds_")) is TunedThresholds
    assert first_with(nested, "nothing_") is None
    assert describe(nested) == (
        "StandardScaler -> TunedThresholds(StandardScaler -> IMCCClassifierCV)"
    )


def test_transformers_come_in_the_order_of_the_rows(nested, small_problem):
    rows = small_problem[2]
    moved = rows
    for step in transformers(nested):
        moved = step.transform(moved)
    expected = nested.decision_function(rows)
    np.testing.assert_array_equal(innermost(nested).decision_function(moved), expected)


def test_searches_of_scikit_learn(small_problem):
    X, Y, *_ = small_problem
    model = GridSearchCV(IMCCClassifier(4, random_state=0), {"beta": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert innermost(model) is model.best_estimator_
    assert without_search(model) == (model.best_estimator_, model)


def test_wrappers_that_change_the_rows_are_models(small_problem):
    X, Y, *_ = small_problem
    model = RFE(RidgeClassifier(), n_features_to_select=2).fit(X, Y[:, 0])
    assert innermost(model) is model
    assert describe(model) == "RFE"


def test_without_search(nested, small_problem):
    X, _, X_new, _ = small_problem
    before = vars(nested[-1]).copy()
    model, search = without_search(nested)
    assert type(search) is IMCCClassifierCV
    assert search not in list(layers(model))
    assert not any(hasattr(layer, "cv_results_") for layer in layers(model[-1].estimator_))
    np.testing.assert_array_equal(model.predict(X_new), nested.predict(X_new))
    np.testing.assert_array_equal(model.decision_function(X), nested.decision_function(X))
    # What was given stays as it is.
    assert vars(nested[-1]) == before
    plain = make_pipeline(StandardScaler(), IMCCClassifier(4)).fit(X, small_problem[1])
    assert without_search(plain) == (plain, None)


def test_best_setting(nested):
    search = innermost(nested, searches=False)
    model = best_setting(nested[-1].estimator_)
    assert type(model[-1]) is IMCCClassifier
    assert not hasattr(model[-1], "classes_")
    assert model[-1].beta == search.best_params_["beta"]
