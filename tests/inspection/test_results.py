"""Records as text and as data frames: all of it, and nothing else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import TunedThresholds
from imcc.inspection import (
    diagnose,
    inspect_model,
)
from imcc.inspection._results import names_of_features, names_of_labels

NAMES = ["sea", "beach", "a name that is much too long for a table", "esc\x1b[2J"]


@pytest.fixture(scope="module")
def fitted(small_problem):
    X, Y, *_ = small_problem
    return IMCCClassifier(n_clusters=12, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def scored(fitted, small_problem):
    *_, X_new, Y_new = small_problem
    return Y_new, fitted.decision_function(X_new)


def test_diagnostics(scored):
    found = diagnose(*scored, label_names=NAMES)
    frame = found.to_frame()
    assert frame.index.get_level_values("label").tolist() == NAMES
    assert {"support", "precision", "best_threshold"} < set(frame.columns)
    assert frame["f1"].tolist() == [label.f1 for label in found.labels]
    text = repr(found)
    assert text.startswith(f"Diagnostics of 4 labels on 40 rows: macro-F1 {found.macro_f1:.3f}")
    assert f"{found.labels[0].precision:.3f}" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 6


def test_inspections(fitted, small_problem):
    X, Y, *_ = small_problem
    found = inspect_model(fitted, X, Y)
    frame = found.to_frame()
    assert frame.shape == (len(found.clusters), 4)
    assert frame.index.names == ["clustering", "cluster", "size"]
    np.testing.assert_array_equal(frame.iloc[3], found.clusters[3].shares)
    text = repr(found)
    assert text.startswith("Inspection of a model of 90 rows and 4 labels, 12 clusters")
    assert "... and 2 more" in text
    assert f"{found.largest(1)[0].shares.max():.0%}" in text
    pairs = found.correlations.to_frame()
    assert list(pairs.columns) == ["first", "second", "total", "carried"]
    assert len(pairs) == 6
    assert repr(found.correlations).startswith("LabelCorrelations of 4 labels")


# Names of labels and features


@pytest.fixture(scope="module")
def frames(small_problem):
    X, Y, *_ = small_problem
    return pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(Y, columns=list("pqrs"))


def test_those_of_the_outermost_layer_that_has_so_many(frames):
    X, Y = frames
    model = make_pipeline(StandardScaler(), IMCCClassifier(4, random_state=0)).fit(X, Y)
    assert names_of_labels(model, 4) == ("p", "q", "r", "s")
    assert names_of_features(model, 5) == tuple("abcde")
    assert names_of_features(model[-1], 5) == tuple(f"x{j}" for j in range(5))
    assert names_of_features(model, 3) == ("x0", "x1", "x2")
    tuned = TunedThresholds(model, cv="prefit").fit(X, Y)
    assert names_of_labels(tuned, 4) == ("p", "q", "r", "s")
    assert names_of_labels(tuned, 3) == ("label0", "label1", "label2")


def test_classes_where_the_target_has_one_column(frames):
    X, _ = frames
    kind = np.where(X["a"] > 0, "on", "off")
    assert names_of_labels(IMCCClassifier(4, random_state=0).fit(X, kind), 1) == ("on",)
    kind[:9] = "?"
    model = IMCCClassifier(4, random_state=0).fit(X, kind)
    assert names_of_labels(model, 3) == ("?", "off", "on")


def test_given_names_are_counted(frames):
    X, Y = frames
    model = IMCCClassifier(4, random_state=0).fit(X, Y)
    assert names_of_labels(model, 4, [1, 2, 3, 4]) == ("1", "2", "3", "4")
    with pytest.raises(InvalidArgumentError, match="label_names must be 4 names, one per label, g"):
        names_of_labels(model, 4, ["a"])
    with pytest.raises(
        InvalidArgumentError, match=r"feature_names must be 5 names, .* got 'abcde'"
    ):
        names_of_features(model, 5, "abcde")
