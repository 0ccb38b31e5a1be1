"""Records as text and as data frames: all of it, and nothing else."""

import dataclasses

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc.inspection import (
    LabelDiagnosis,
    diagnose,
    explain,
    inspect_model,
    probabilities,
    reliability,
    threshold_curve,
)

pytest.importorskip("pandas")
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
    columns = {field.name for field in dataclasses.fields(LabelDiagnosis)} - {"label", "intervals"}
    assert set(frame.columns) == columns
    assert frame["f1"].tolist() == [label.f1 for label in found.labels]
    text = repr(found)
    assert text.startswith(f"Diagnostics of 4 labels on 40 rows: macro-F1 {found.macro_f1:.3f}")
    assert f"{found.labels[0].precision:.3f}" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 6


def test_curves_and_reliability(scored):
    for curve in threshold_curve(*scored, label_names=NAMES):
        frame = curve.to_frame()
        np.testing.assert_array_equal(frame["threshold"], curve.thresholds)
        assert list(frame.columns) == ["threshold", "precision", "recall", "f1"]
        assert f"best F1 {np.nanmax(curve.f1):.3f}" in repr(curve)
    for record in reliability(scored[0], probabilities(scored[1]), label_names=NAMES):
        frame = record.to_frame()
        assert frame["count"].sum() == 40
        assert f"Brier score {record.brier:.3f}" in repr(record)
        assert len(repr(record).splitlines()) == 12


@pytest.mark.parametrize("by", ["evidence", "support"])
def test_explanations(fitted, small_problem, by):
    X, Y, X_new, _ = small_problem
    found = explain(fitted, X_new[:1], 0, by=by, X=X, Y=Y)
    found = found[0] if isinstance(found, list) else found
    frame = found.to_frame()
    assert len(frame) == sum(len(weights) for weights in found.weights.values())
    assert frame["contribution"].sum() + found.constant == pytest.approx(found.score)
    assert frame["contribution"].abs().is_monotonic_decreasing
    lines = repr(found).splitlines()
    assert f"score {found.score:.3f}" in lines[0]
    total = sum(float(line.split()[-1]) for line in lines[2:])
    assert total == pytest.approx(found.score, abs=0.01)


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
    pairs = found.correlations.to_frame()
    assert list(pairs.columns) == ["first", "second", "total", "carried"]
    assert len(pairs) == 6
    assert repr(found.correlations).startswith("LabelCorrelations of 4 labels")
