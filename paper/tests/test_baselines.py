"""The script behind the tables of the documentation."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from imcc_paper import baselines as script
from imcc_paper import one_repetition
from imcc_paper._measured import Measurements


def test_models_are_seeded_where_they_have_a_seed():
    for name, model in {**script.ALGORITHMS, **script.SPEED, **script.VARIANTS["lift"]}.items():
        seeded = script.seeded(model, 3).get_params()
        assert seeded.get("random_state", 3) == 3, name
        assert "cv" not in seeded or seeded["cv"].random_state == 3, name


def test_means_of_the_metrics_of_variants(small_problem, tmp_path, monkeypatch, capsys):
    X, Y, *_ = small_problem
    monkeypatch.setattr(script, "dense_rows", lambda name: (X, Y))
    monkeypatch.setitem(script.VARIANTS, "mahr", {"MAHR": script.MAHR(n_rounds=3)})
    file = tmp_path / "rows.csv"
    monkeypatch.setitem(script.DATA, "mahr", ("made-up",))
    monkeypatch.setattr(script, "REPETITIONS", 2)
    monkeypatch.setattr("sys.argv", ["baselines", "mahr", "--csv", str(file)])
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


def test_a_repetition_is_computed_once(small_problem, tmp_path, monkeypatch):
    X, Y, *_ = small_problem
    monkeypatch.setattr(one_repetition._measured, "dense_rows", lambda name: (X, Y))
    monkeypatch.setattr(one_repetition, "ALGORITHMS", {"LLSF": script.LLSF()})
    monkeypatch.setattr(one_repetition, "DATA", ("scene", "bibtex"))
    file = tmp_path / "rows.csv"
    assert one_repetition.main(["--csv", str(file), "--jobs", "1"]) == 0
    rows = one_repetition.stored_rows(file)
    assert [row["data"] for row in rows] == ["bibtex", "scene"]  # the large one first
    model = script.seeded(script.LLSF(), 0)
    parts = train_test_split(X, Y, test_size=0.2, random_state=0)
    scores = model.fit(parts[0], parts[2]).decision_function(parts[1])
    assert rows[0]["coverage"] == pytest.approx(script.evaluate(parts[3], scores)["coverage"])
    assert len(one_repetition.page_table(rows).splitlines()) == 5
    assert one_repetition.main(["--csv", str(file)]) == 0
    assert one_repetition.stored_rows(file) == rows


def test_what_the_page_says_of_the_repetition():
    rows = one_repetition.stored_rows()
    assert len(rows) == 90
    # Two at a time: half of the sum, and the start of processes.
    total = sum(row["seconds"] + row["predict_seconds"] for row in rows)
    assert total / 2 < 14.5 * 60 < 30 * 60
