"""Records as text and as data frames: all of it, and nothing else."""

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc.inspection import (
    diagnose,
    inspect_model,
)

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
