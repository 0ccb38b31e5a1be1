"""The script behind the tables of the documentation."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks import baselines as script
from benchmarks import one_repetition, slow_machines
from benchmarks._measured import Measurements
from imcc.metrics import METRICS


def test_models_are_seeded_where_they_have_a_seed():
    for name, model in {**script.ALGORITHMS, **script.SPEED, **script.VARIANTS["lift"]}.items():
        seeded = script.seeded(model, 3).get_params()
        assert seeded.get("random_state", 3) == 3, name
        assert "cv" not in seeded or seeded["cv"].random_state == 3, name


def test_the_table_has_means_beside_the_papers_numbers(tmp_path):
    store = tmp_path / "rows.jsonl"
    assert script.stored_rows(store) == []
    store.write_text(
        '{"algorithm": "ECC", "data": "yeast", "repetition": 0, "average_precision": 0.70}\n'
        '{"algorithm": "ECC", "data": "yeast", "repetition": 1, "average_precision": 0.72}\n'
    )
    table = script.accuracy_table(script.stored_rows(store), ["yeast"])
    assert "| ECC | 0.710 ± 0.010 (0.756) |" in table
    assert "| extra-trees | not run |" in table


def test_the_papers_numbers_cover_its_algorithms():
    assert set(script.PAPER) < set(script.ALGORITHMS)
    assert all(len(row) == len(script.DATA) for row in script.PAPER.values())


def test_labels_to_time_are_spread_over_the_frequencies():
    Y = np.arange(100)[:, np.newaxis] < np.array([0, 50, 10, 100, 90, 70, 30, 2])
    np.testing.assert_array_equal(script.spread_labels(Y, 3), [5, 6, 7])


def test_old_and_new_time(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 40))
    Y = (X[:, :4] + 0.3 * rng.normal(size=(100, 4)) > 0).astype(int)
    monkeypatch.setattr(script, "load", lambda name: (X, Y))
    found = Measurements()
    script.add_ratios(["made up"], 2, found)
    cases = [f"made up: {name}" for name in ("BRsvm", "ECC", "LIFT")]
    assert found.cases("ratio") == cases
    of = found.of("ratio", cases[0])
    assert of["ratio"] == pytest.approx(of["separate"] / of["shared"], rel=1e-4)
    assert script.ratio_table(found).splitlines()[2].startswith("| made up: BRsvm | ")


def test_means_of_the_metrics_of_variants(tmp_path, monkeypatch, capsys):
    rows = [
        {"algorithm": name, "data": "yeast", "repetition": number}
        | dict.fromkeys(METRICS, 0.5 + number / 10)
        for name in ("MAHR", "LIFT, margin")
        for number in (0, 1)
    ]
    store, file = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    store.write_text("\n".join(map(json.dumps, rows)) + "\n")
    options = ["--variants", "mahr", "--data", "yeast", "--print", "--store", str(store)]
    monkeypatch.setattr("sys.argv", ["baselines", *options, "--csv", str(file)])
    script.main()
    assert capsys.readouterr().out.endswith("| yeast: MAHR |" + " 0.550 |" * len(METRICS) + "\n")
    assert Measurements.read(file).cases("mahr") == ["yeast: MAHR"]
    monkeypatch.setattr("sys.argv", ["baselines", "--csv", str(file)])
    with pytest.raises(SystemExit):
        script.main()
    assert "--csv is for --speed, --ratio and --variants" in capsys.readouterr().err


def test_time_and_memory_are_empty_where_not_measured():
    found = Measurements()
    found.add("speed", "MAHR", seconds=4, copies=0.8)
    found.add("speed", "LIFT", cpu_seconds=8.5)
    assert script.speed_table(found).splitlines()[2:] == [
        "| MAHR | 4.0 |  | 0.8 |",
        "| LIFT |  | 8.5 |  |",
    ]


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
    root = Path(__file__).parents[2]
    rows = one_repetition.stored(root / "results" / "one_repetition.csv")
    assert len(rows) == len(one_repetition.DATA) * len(one_repetition.SIX) == 90
    shown = one_repetition.time_table(rows, "seconds")
    assert shown in (root / "docs" / "baselines.md").read_text("utf-8")
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
