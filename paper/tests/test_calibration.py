"""The script behind the numbers on calibration: what it measures, stores and skips."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.datasets import Dataset, paper_splits
from imcc.estimators import MultilabelCalibrator
from imcc.metrics import METRICS, evaluate
from imcc_paper import _rows, calibration


@pytest.fixture
def tiny(monkeypatch, small_problem):
    X, Y, *_ = small_problem
    data = Dataset(X, Y, name="tiny")
    monkeypatch.setattr(calibration, "load_dataset", lambda _: data)
    one = {"alphas": 1.0, "betas": (0.1, 1.0), "gammas": 0.1, "n_clusters": (4,)}
    models = {
        "LIFT": IMCCClassifier(4, random_state=0),
        "IMCC": IMCCClassifierCV(**one, width_scales=1.0, random_state=0),
    }
    monkeypatch.setattr(calibration, "MODELS", models)
    return data


def test_it_measures_the_same_model_before_and_after(tiny):
    before, after = calibration.measure(calibration.Run("tiny", 1, "LIFT"))
    assert set(before) == set(after) == set(calibration.COLUMNS)
    train, test = paper_splits(tiny, 2)[1]
    folds = calibration.KFold(5, shuffle=True, random_state=1)
    inner = calibration.seeded(IMCCClassifier(4), 1)
    model = MultilabelCalibrator(inner, cv=folds).fit(tiny.X[train], tiny.Y[train])
    scores = model.estimator_.decision_function(tiny.X[test])
    expected = evaluate(tiny.Y[test], scores)
    assert {name: before[name] for name in METRICS} == expected
    odds = model.decision_function(tiny.X[test])
    assert after["ranking_loss"] == evaluate(tiny.Y[test], odds)["ranking_loss"]
    chances = np.clip((scores + 1) / 2, 0, 1)
    brier = [brier_score_loss(tiny.Y[test][:, j], chances[:, j]) for j in range(4)]
    assert before["brier"] == pytest.approx(np.mean(brier))
    assert after["log_loss"] < before["log_loss"] + 1


def test_a_search_calibrates_from_its_own_held_out_scores(tiny):
    before, after = calibration.measure(calibration.Run("tiny", 0, "IMCC"))
    train, test = paper_splits(tiny, 1)[0]
    search = calibration.seeded(calibration.MODELS["IMCC"], 0).set_params(calibrate=True)
    search.fit(tiny.X[train], tiny.Y[train])
    raw = search.best_estimator_.decision_function(tiny.X[test])
    for found, scores in ((before, raw), (after, search.decision_function(tiny.X[test]))):
        assert {name: found[name] for name in METRICS} == evaluate(tiny.Y[test], scores)


def row(data, split, method, stage, value):
    measured = dict.fromkeys(calibration.MEASURES, value)
    return {
        "data": data,
        "split": split,
        "method": method,
        "stage": stage,
        "seconds": 1,
        **measured,
    }


def test_a_run_is_finished_when_it_has_both_rows(tmp_path):
    file = tmp_path / "rows.csv"
    pair = [row("yeast", 0, "IMCC", stage, v) for stage, v in (("before", 0.4), ("after", 0.3))]
    _rows.add_rows(file, calibration.COLUMNS, pair)
    assert calibration.stored_rows(file) == pair
    assert calibration.finished(pair) == {calibration.Run("yeast", 0, "IMCC")}
    assert calibration.finished(pair[:1]) == set()


def test_finished_runs_are_not_run_again_and_failures_are_counted(tmp_path, monkeypatch, capsys):
    file = tmp_path / "rows.csv"
    stages = ("before", "after")
    there = [row("yeast", 0, "LLSF", stage, 0.5) for stage in stages]
    _rows.add_rows(file, calibration.COLUMNS, there)
    asked = []

    def measure(run, device):
        asked.append(run)
        if run.data == "scene":
            raise RuntimeError("broken")
        return [row(*run, stage, 0.2) for stage in stages]

    monkeypatch.setattr(calibration, "measure", measure)
    start = ["-o", str(file), "--data", "yeast", "scene", "--methods", "LLSF", "--splits", "1"]
    assert calibration.main(start) == 1
    assert asked == [calibration.Run("scene", 0, "LLSF")]
    assert "RuntimeError: broken" in capsys.readouterr().err
    assert calibration.main([*start[:3], "yeast", *start[5:], "--by-data", "log_loss"]) == 0
    assert len(asked) == 1
    text = capsys.readouterr().out
    assert "| LLSF, before (1 sets) | 0.5000 |" in text
    assert "| yeast | not run |" in text


def test_the_table_has_means_of_sets_and_changes(tmp_path):
    rows = []
    for data, before, after in (("yeast", 0.4, 0.2), ("scene", 0.2, 0.1)):
        for split in (0, 1):
            rows.append(row(data, split, "IMCC", "before", before))
            rows.append(row(data, split, "IMCC", "after", after))
    rows.append(row("image", 0, "IMCC", "before", 9.0))  # not finished: does not count
    lines = calibration.mean_table(rows).splitlines()
    assert lines[2].startswith("| IMCC, before (2 sets) | 0.3000 |")
    assert lines[3].startswith("| IMCC, after (2 sets) | 0.1500 |")
    assert lines[4].startswith("| IMCC, change | -0.1500 (-50.0 %) |")
    assert len(lines) == 5
