"""The script behind the numbers on calibration: what it measures, stores and skips."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc.datasets import Dataset, paper_splits
from imcc.estimators import MultilabelCalibrator
from imcc.metrics import METRICS, evaluate, log_loss
from imcc_paper import calibration
from imcc_paper.places import RESULTS


@pytest.fixture
def tiny(monkeypatch, small_problem):
    X, Y, *_ = small_problem
    data = Dataset(X, Y, name="tiny")
    monkeypatch.setattr(calibration, "load_dataset", lambda _: data)
    one = {"alphas": 1.0, "betas": (0.1, 1.0), "gammas": 0.1, "n_clusters": (4,)}
    models = {
        "LIFT": IMCCClassifier(4, random_state=0),
        "IMCC": IMCCClassifierCV(**one, width_scales=1.0, random_state=0),
        "ensemble": KernelEnsembleClassifier(),
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


def test_the_ensemble_has_its_own_probabilities(tiny):
    (row,) = calibration.measure(calibration.Run("tiny", 0, "ensemble"))
    assert row["stage"] == "after"
    train, test = paper_splits(tiny, 1)[0]
    model = KernelEnsembleClassifier(random_state=0).fit(tiny.X[train], tiny.Y[train])
    assert row["log_loss"] == pytest.approx(
        log_loss(tiny.Y[test], model.predict_proba(tiny.X[test]))
    )
    assert calibration.finished([row]) == {calibration.Run("tiny", 0, "ensemble")}


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


def test_a_run_is_finished_when_it_has_both_rows():
    pair = [row("yeast", 0, "IMCC", stage, v) for stage, v in (("before", 0.4), ("after", 0.3))]
    assert calibration.finished(pair) == {calibration.Run("yeast", 0, "IMCC")}
    assert calibration.finished(pair[:1]) == set()


def test_the_table_has_means_of_the_runs_that_all_methods_have():
    rows = []
    for data, before, after in (("yeast", 0.4, 0.2), ("scene", 0.2, 0.1)):
        for split in (0, 1):
            rows.append(row(data, split, "IMCC", "before", before))
            rows.append(row(data, split, "IMCC", "after", after))
        rows.append(row(data, 0, "ensemble", "after", after / 2))
    rows.append(row("yeast", 1, "ensemble", "after", 0.3))
    rows += [row("image", 0, "IMCC", stage, 9.0) for stage in ("before", "after")]
    rows.append(row("genbase", 0, "IMCC", "before", 9.0))  # not finished
    text = calibration.page_table(rows, ("ensemble", "IMCC", "LLSF"))
    assert "Means over 2 data sets (scene, yeast; 3 splits in all)." in text
    assert "| ensemble | 0.1250 |" in text  # of 0.05 and the mean of 0.1 and 0.3
    assert "| IMCC | 0.3000 -> 0.1500 |" in text
    assert len(text.splitlines()) == 6


def test_what_the_page_says_about_the_best_is_so():
    rows = calibration.stored_rows(RESULTS / "calibration.csv")
    table = calibration.page_table(rows, calibration.BESIDE)
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[4:]]
    found = {line[0]: [min(map(float, cell.split(" -> "))) for cell in line[1:4]] for line in lines}
    assert [min(found, key=lambda name: found[name][k]) for k in range(2)] == ["ensemble"] * 2
    assert abs(found["ensemble"][2] - found["logistic regression"][2]) < 0.002
