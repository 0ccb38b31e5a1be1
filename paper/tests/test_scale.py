"""The scripts behind the numbers of two pages run, and measure what they say."""

import multiprocessing
import shutil

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc_paper import approximation, busy_machine, scale, serving, versions
from imcc_paper._measured import Measurements
from imcc_paper.places import ROOT


@pytest.mark.parametrize("case", ["nystroem", "linear"])
def test_scale_measures_a_fit_and_the_arithmetic(tmp_path, monkeypatch, case):
    monkeypatch.setitem(scale.CASES, "nystroem", {"approximation": "nystroem", "n_components": 20})
    monkeypatch.setattr(scale, "BLOCK", 700)
    found = scale.measure(case, tmp_path, 3000)
    assert set(found) == {"fit_seconds", "arithmetic_seconds", "peak_mib"}
    assert min(found.values()) > 0
    again = scale.files(tmp_path, 3000)
    assert np.load(again[0], mmap_mode="r").shape == (3000, 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["X3000.npy", "Y3000.npy"]


def test_the_made_up_labels_can_be_learned():
    X, Y = scale.make_rows(0, 3000)
    assert 0.05 < Y.mean() < 0.5
    clf = IMCCClassifier(8, kernel="linear", random_state=0).fit(X[:2000], Y[:2000])
    assert (clf.predict(X[2000:]) == Y[2000:]).mean() > (1 - Y.mean()) + 0.02


def test_approximation_makes_a_table_and_a_plot(small_problem, tmp_path, monkeypatch):
    monkeypatch.setattr(approximation, "N_CLUSTERS", 6)
    pytest.importorskip("matplotlib")
    X, Y, *_ = small_problem
    results = {}
    for data in approximation.DATASETS:
        results[data, "exact", 0] = approximation.measure(X, Y, 2)
        for case, parameters in approximation.CASES.items():
            for size in (10, 20):
                results[data, case, size] = approximation.measure(
                    X, Y, 2, n_components=size, **parameters
                )
    lines = approximation.table(results, (0, 10, 20)).splitlines()
    assert len(lines) == 2 + 3 * 7
    assert any(line.startswith("| yeast | Fourier | 10 |") for line in lines)
    assert len(approximation.table(results, (0, 20)).splitlines()) == 2 + 3 * 4
    approximation.plot(results, tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert "Nyström, random rows" in text
    approximation.plot(results, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_the_estimate_on_paper():
    text = scale.estimate_table(25e9)
    assert "800 GB in float64; 8 GB per machine" in text
    # 1e8 rows x (2 x 1000 x 1000 + 1000^2 + ...) flop on 800 cores.
    assert "18 s at 25 GFlop/s per core" in text


def test_versions_takes_turns_and_says_what_it_measured(tmp_path, capsys):
    source = ROOT / "src"
    versions.main([str(source), "--jobs", "metrics", "linear", "--rounds", "2", "--rows", "80"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| metrics", "| linear"]
    assert all(line.count("(") == 6 for line in lines[-2:])
    with pytest.raises(SystemExit):
        versions.main([str(tmp_path)])
    assert "there is no package imcc in" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        versions.main([str(source), "--jobs", "nothing"])
    assert "no job named nothing; there are linear, rbf," in capsys.readouterr().err


def test_busy_processes_end_with_the_measurement(tmp_path):
    file, source = tmp_path / "busy.csv", str(ROOT / "src")
    busy_machine.main(["--rows", "40", "--busy", "1", "--before", source, "--csv", str(file)])
    assert multiprocessing.active_children() == []
    lines = busy_machine.blocks(Measurements.read(file))["busy"].splitlines()
    assert "40 rows" in lines[0]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[4:]]
    assert [cell[2] for cell in cells] == ["0", "0", "1", "1"]
    assert [cell[1] for cell in cells] == [busy_machine.LIMITED, busy_machine.UNLIMITED] * 2


def test_the_numbers_of_a_server_on_its_page():
    found = Measurements()
    assert "Not measured yet" in serving.blocks(found)["serving"]
    found.add("row", "predict_proba", milliseconds=2.345)
    times = {"median": 5, "p99": 20, "longest": 40, "cpu": 3.2}
    found.add("rate", 2, wanted=200, requests=12_000, failed=0, per_second=199.8, **times)
    sizes = {"megabytes_before": 400, "megabytes_after": 401}
    found.add("flood", 2, requests=100_000, failed=0, per_second=350, **sizes)
    text = serving.blocks(found)["serving"]
    assert "One row takes 2.3 ms" in text
    assert "| 2 | 200 of 200 | 0 | 5 ms | 20 ms | 40 ms | 3.2 ms |" in text
    assert "400 MiB" in text
    assert "102,000" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("hey") is None, reason="needs the load generator hey")
def test_a_server_is_measured_and_stopped(tmp_path):
    file = tmp_path / "serving.csv"
    options = ["--requests", "40", "--rate", "20", "--flood", "40", "--workers", "1"]
    serving.main([*options, "--csv", str(file)])
    found = Measurements.read(file)
    assert found.of("rate", 1)["requests"] == 40
    assert found.of("rate", 1)["failed"] == found.of("flood", 1)["failed"] == 0
