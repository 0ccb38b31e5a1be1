import sys

import numpy as np
import pytest

from imcc import demo


@pytest.fixture(scope="module")
def yeast():
    pytest.importorskip("river", reason="pip install 'imcc[data]'")
    return demo.load_yeast()


def test_yeast_is_the_papers(yeast):
    """Table 2 of the paper, its density corrected."""
    X, Y = yeast
    assert X.shape == (2417, 103)
    assert Y.shape == (2417, 14)
    assert Y.sum(axis=1).mean() == pytest.approx(4.237, abs=5e-4)
    assert Y.mean() == pytest.approx(0.303, abs=5e-4)
    assert len(np.unique(Y, axis=0)) == 198


def test_main_shows_setting_metrics_and_times(yeast, monkeypatch, capsys):
    X, Y = yeast
    monkeypatch.setattr(demo, "load_yeast", lambda: (X[:300], Y[:300]))
    monkeypatch.setitem(demo.SAMPLED, "n_clusters", [8])
    full = demo.IMCCClassifierCV
    small = {"alphas": [0.1, 1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [8, 16]}
    monkeypatch.setattr(demo, "IMCCClassifierCV", lambda **given: full(**small, **given))
    monkeypatch.setenv("COLUMNS", "200")
    assert demo.main() == 0
    shown = capsys.readouterr().out
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
    X, Y = yeast
    search = {"alphas": [0.1, 1.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [32]}
    found = demo.run(X, Y, **search).metrics
    for name, (mean, deviation) in demo.PAPER.items():
        assert abs(found[name] - mean) < 3 * deviation, name
