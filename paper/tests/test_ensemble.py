"""The scripts behind the ensemble's numbers measure what they say."""

import numpy as np
import pytest

from imcc_paper import ensemble_budget, ensemble_speed
from imcc_paper._measured import Measurements


def test_speed_is_measured_and_laid_out(small_problem, tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(ensemble_speed, "split", lambda *_: small_problem)
    file = tmp_path / "rows.csv"
    monkeypatch.setattr("sys.argv", ["speed", "--data", "made-up", "--csv", str(file)])
    ensemble_speed.main()
    found = Measurements.read(file)
    assert found.cases("sets") == [f"made-up, {m}" for m in ensemble_speed.METHODS]
    times = {m: found.of("sets", f"made-up, {m}")["fit_seconds"] for m in ensemble_speed.METHODS}
    shown = capsys.readouterr().out
    assert "| made-up | 90 x 5 x 4 |" in shown
    assert f"{times['ensemble'] / times['lightgbm']:.2f} times as long" in shown


def test_growth_is_measured_on_the_first_training_rows(small_problem, tmp_path, monkeypatch):
    X, Y, X_new, Y_new = small_problem
    np.savez(tmp_path / "data.npz", X=np.vstack([X, X_new]), Y=np.vstack([Y, Y_new]))
    words = ["--file", str(tmp_path / "data.npz"), "--rows", "30", "60", "--methods", "logistic"]
    monkeypatch.setattr("sys.argv", ["speed", *words, "--csv", str(tmp_path / "rows.csv")])
    ensemble_speed.main()
    found = Measurements.read(tmp_path / "rows.csv")
    assert found.cases("growth") == ["30 rows, logistic", "60 rows, logistic"]
    assert found.of("growth", "60 rows, logistic")["rows"] == 60


def test_budgets_are_measured_once_each(small_problem, tmp_path, monkeypatch):
    X, Y, X_new, Y_new = small_problem
    file, csv = tmp_path / "data.npz", tmp_path / "rows.csv"
    np.savez(file, X=np.vstack([X, X_new]), Y=np.vstack([Y, Y_new]))
    monkeypatch.setattr(ensemble_budget, "N_TEST", 20)
    words = ["budget", "--csv", str(csv)]
    monkeypatch.setattr("sys.argv", [*words, "--file", str(file), "--rows", "60", "--budgets", "0"])
    ensemble_budget.main()
    found = Measurements.read(csv).of("budget: no limit", "ensemble")
    assert (found["rows"], found["landmarks"]) == (60, 0)
    assert "| 60 x 5 x 4 | exact |" in ensemble_budget.budget_table(
        Measurements.read(csv), "budget"
    )
    monkeypatch.setattr(ensemble_budget, "in_own_process", None)
    ensemble_budget.main()  # has nothing left to do
    monkeypatch.setattr("sys.argv", [*words, "--picture", str(tmp_path / "budget.png")])
    ensemble_budget.main()
    assert (tmp_path / "budget.png").stat().st_size > 0
