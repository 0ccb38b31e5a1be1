"""The stopwatch of the ensemble's stages counts each moment once."""

import numpy as np
import pytest

from benchmarks import ensemble_stages
from imcc import KernelEnsembleClassifier


def test_what_a_part_calls_counts_for_the_part_that_is_called(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(ensemble_stages.time, "perf_counter", lambda: next(now))
    watch = ensemble_stages.Stopwatch(lambda: None)
    inner = watch.watched(lambda: None, part="inner")
    outer = watch.watched(lambda n: inner(), stage=lambda n: f"stage {n}")
    outer(1)
    # The clock moves by one at every look: before, between and after the two functions.
    assert watch.seconds == {
        ("other", "other"): 1,
        ("stage 1", "other"): 2,
        ("stage 1", "inner"): 1,
    }
    assert watch.table().splitlines()[-1].split() == ["sum", "4.00", "3.00", "1.00"]


def test_a_fit_is_watched_and_is_the_same_fit(small_problem):
    X, Y, *_ = small_problem
    model = KernelEnsembleClassifier(width_scales=(1.0,), coupling=(0.0,), random_state=0)
    expected = model.fit(X[:60], Y[:60]).decision_function(X[60:70])
    watch = ensemble_stages.watched_fit(model, X[:60], Y[:60])
    np.testing.assert_array_equal(model.decision_function(X[60:70]), expected)
    stages, parts = ({where[k] for where in watch.seconds} for k in (0, 1))
    assert {"screening, 60 rows", "members, all rows", "cross-fitted score"} <= stages
    assert "virtual examples, folds" in stages
    watched = {part for _, _, _, part in ensemble_stages.WATCHED if part}
    assert parts >= watched - {"IMCC's solver", "clustering"}
    seconds = sum(watch.seconds.values())
    assert seconds == pytest.approx(sum(watch._sums(0).values()))
