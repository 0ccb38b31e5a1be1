"""Names of labels and features: one rule for all that shows them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import TunedThresholds
from imcc.inspection._names import names_of_features, names_of_labels


@pytest.fixture(scope="module")
def frame(small_problem):
    X, Y, *_ = small_problem
    return pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(Y, columns=list("pqrs"))


def test_those_of_the_outermost_layer_that_has_so_many(frame):
    X, Y = frame
    model = make_pipeline(StandardScaler(), IMCCClassifier(4, random_state=0)).fit(X, Y)
    assert names_of_labels(model, 4) == ("p", "q", "r", "s")
    assert names_of_features(model, 5) == tuple("abcde")
    assert names_of_features(model[-1], 5) == tuple(f"x{j}" for j in range(5))
    assert names_of_features(model, 3) == ("x0", "x1", "x2")
    tuned = TunedThresholds(model, cv="prefit").fit(X, Y)
    assert names_of_labels(tuned, 4) == ("p", "q", "r", "s")
    assert names_of_labels(tuned, 3) == ("label0", "label1", "label2")


def test_classes_where_the_target_has_one_column(frame):
    X, _ = frame
    kind = np.where(X["a"] > 0, "on", "off")
    assert names_of_labels(IMCCClassifier(4, random_state=0).fit(X, kind), 1) == ("on",)
    kind[:9] = "?"
    model = IMCCClassifier(4, random_state=0).fit(X, kind)
    assert names_of_labels(model, 3) == ("?", "off", "on")


def test_given_names_are_counted(frame):
    X, Y = frame
    model = IMCCClassifier(4, random_state=0).fit(X, Y)
    assert names_of_labels(model, 4, [1, 2, 3, 4]) == ("1", "2", "3", "4")
    with pytest.raises(InvalidArgumentError, match="label_names must be 4 names, one per label, g"):
        names_of_labels(model, 4, ["a"])
    with pytest.raises(
        InvalidArgumentError, match=r"feature_names must be 5 names, .* got 'abcde'"
    ):
        names_of_features(model, 5, "abcde")
