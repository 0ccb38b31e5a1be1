"""The scripts behind the numbers of two pages run, and measure what they say."""

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc_paper import approximation, scale


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
    assert len(lines) == 2 + 3 * 5
    assert any(line.startswith("| yeast | Nyström, k-means | 10 |") for line in lines)
    assert len(approximation.table(results, (0, 20)).splitlines()) == 2 + 3 * 3
    approximation.plot(results, tmp_path / "plot.svg", "")
    text = (tmp_path / "plot.svg").read_text()
    assert "Nyström, random rows" in text
    approximation.plot(results, tmp_path / "again.svg", "")
    assert (tmp_path / "again.svg").read_text() == text
