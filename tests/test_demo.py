import sys

import pytest

from imcc import demo
from imcc.datasets import load_dataset


@pytest.fixture(scope="module")
def yeast():
    return load_dataset("yeast")


def test_main_shows_setting_metrics_and_times(yeast, monkeypatch, capsys):
    monkeypatch.setattr(demo, "load_dataset", lambda _: yeast[:300])
    monkeypatch.setitem(demo.SAMPLED, "n_clusters", [8])
    full = demo.IMCCClassifierCV
    small = {"alphas": [0.1, 1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [8, 16]}
    monkeypatch.setattr(demo, "IMCCClassifierCV", lambda **given: full(**small, **given))
    monkeypatch.setenv("COLUMNS", "200")
    assert demo.main() == 0
    shown = capsys.readouterr().out
    assert "yeast: 300 genes, 103 features, 14 labels" in shown
    assert "best of 4 settings: alpha = " in shown
    for name, (mean, _) in demo.PAPER.items():
        assert name in shown
        assert f"{mean:.3f}" in shown
    assert "times as long" in shown


def test_main_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert demo.main() == 1
    assert "pip install 'imcc[data,cli]'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_good_setting_comes_near_the_papers_numbers(yeast):
    search = {"alphas": [0.1, 1.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [32]}
    found = demo.run(yeast, **search).metrics
    for name, (mean, deviation) in demo.PAPER.items():
        assert abs(found[name] - mean) < 3 * deviation, name
