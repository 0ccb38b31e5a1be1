"""The script behind the tables of the documentation."""

import numpy as np
import pytest
from sklearn.svm import SVC

from imcc_paper import baselines as script
from imcc_paper import one_repetition, slow_machines
from imcc_paper._measured import Measurements
from imcc_paper.places import DOCS, RESULTS


def test_models_are_seeded_where_they_have_a_seed():
    for name, model in {**script.ALGORITHMS, **script.SPEED, **script.VARIANTS["lift"]}.items():
        seeded = script.seeded(model, 3).get_params()
        assert seeded.get("random_state", 3) == 3, name
        assert "cv" not in seeded or seeded["cv"].random_state == 3, name


def test_labels_to_time_are_spread_over_the_frequencies():
    Y = np.arange(100)[:, np.newaxis] < np.array([0, 50, 10, 100, 90, 70, 30, 2])
    np.testing.assert_array_equal(script.spread_labels(Y, 3), [5, 6, 7])


def test_means_of_the_metrics_of_variants(small_problem, tmp_path, monkeypatch, capsys):
    X, Y, *_ = small_problem
    monkeypatch.setattr(script, "load", lambda name: (X, Y))
    monkeypatch.setitem(script.VARIANTS, "mahr", {"MAHR": script.MAHR(n_rounds=3)})
    file = tmp_path / "rows.csv"
    options = ["--variants", "mahr", "--data", "made-up", "--repetitions", "2", "--csv", str(file)]
    monkeypatch.setattr("sys.argv", ["baselines", *options])
    script.main()
    found = Measurements.read(file)
    assert found.cases("mahr") == ["made-up: MAHR"]
    model = script.MAHR(n_rounds=3)
    mean = np.mean([script.one_run(model, X, Y, split)["coverage"] for split in (0, 1)])
    assert found.of("mahr", "made-up: MAHR")["coverage"] == pytest.approx(mean, rel=1e-5)
    assert capsys.readouterr().out == script.metric_table(found, "mahr") + "\n"


def test_the_table_of_time_and_memory():
    found = Measurements()
    found.add("speed", "MAHR", cpu_seconds=4, copies=0.8)
    assert script.speed_table(found).splitlines()[2:] == ["| MAHR | 4.0 | 0.8 |"]


def test_cells_are_stored_once_and_the_large_ones_come_first(tmp_path):
    path = tmp_path / "cells.csv"
    cells = one_repetition.cells_to_run(
        ["scene", "bibtex"], ["ECC", "LLSF"], 0, {("scene", "ECC", 0)}
    )
    assert cells == [("bibtex", "ECC", 0), ("bibtex", "LLSF", 0), ("scene", "LLSF", 0)]
    assert one_repetition.stored(path) == []
    path.write_text("data,algorithm,repetition,seconds\nscene,ECC,0,2.25\n")
    table = one_repetition.time_table(one_repetition.stored(path), "seconds")
    assert "| scene | not run | 2.2 | not run |" in table
    assert table.splitlines()[-1].endswith("| 2.2 |")


def test_the_page_shows_the_repetition_that_was_timed():
    rows = one_repetition.stored(RESULTS / "one_repetition.csv")
    assert len(rows) == len(one_repetition.DATA) * len(one_repetition.SIX) == 90
    shown = one_repetition.time_table(rows, "seconds")
    assert shown in (DOCS / "baselines.md").read_text("utf-8")
    # Two at a time: half of the sum, and the start of 90 processes.
    total = sum(float(row["seconds"]) + float(row["predict_seconds"]) for row in rows)
    assert total / 2 < 14.5 * 60 < 30 * 60


def test_the_interior_point_finds_the_optimum_of_libsvm():
    rng = np.random.default_rng(0)
    X = 5 + rng.normal(size=(80, 6))
    y = np.where(X[:, 0] + rng.normal(size=80) > 5, 1.0, -1.0)
    found = slow_machines.interior_point(X, y, 2.0)
    expected = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X - 5, y)
    np.testing.assert_allclose(found.weights, expected.coef_[0], atol=1e-5)
    np.testing.assert_allclose(
        X @ found.weights + found.intercept, expected.decision_function(X - 5), atol=1e-5
    )
    assert 0 <= found.gap + 1e-12 < 1e-6
    for center in (False, True):
        machine = slow_machines.libsvm(X, y, 2.0, 1e-3, center)
        assert slow_machines.objective(X, y, 2.0, machine) == pytest.approx(
            slow_machines.objective(X, y, 2.0, found), rel=1e-3
        )


def test_the_table_of_slow_machines():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    Y = X[:, :3] + 0.5 * rng.normal(size=(60, 3)) > 0
    found = Measurements()
    slow_machines.add_machines("made up", X, Y, X[:5], 2, found)
    assert found.of("made up", "rows")["labels"] == 2
    assert 0 <= found.of("made up", "interior point")["gap"] < 1e-6
    lines = slow_machines.machines_table(found, "made up").splitlines()
    assert [line.split("|")[1].split(",")[0].strip() for line in lines[2:7]] == [
        *["libsvm"] * 4,
        "interior point",
    ]
    assert lines[6].endswith("| 0.0e+00 | 0.0e+00 |")
