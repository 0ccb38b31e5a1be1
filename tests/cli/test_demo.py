"""``imcc demo`` with a small experiment in place of the quick one."""

import json

import pytest
from click.testing import CliRunner

from imcc.cli._app import app
from imcc.experiment import Experiment, load_experiment
from tests.experiment.conftest import ALLOW, DICE, importable_methods, pets

__all__ = ["importable_methods", "pets"]  # fixtures


@pytest.fixture
def small_demo(pets, monkeypatch):
    def small(name):
        if name != "quick":  # the report asks for the paper's
            return load_experiment(name)
        return Experiment(
            {"yeast": pets}, {"imcc": DICE, "dice": DICE}, n_repeats=2, name="quick", allow=ALLOW
        )

    monkeypatch.setattr("imcc.experiment.load_experiment", small)


def call(*arguments, code=0):
    result = CliRunner().invoke(app, ["demo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def test_it_ends_with_a_table_and_a_report(small_demo, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = call("-o", tmp_path / "d").stdout
    assert "precision ↑" in text
    report = tmp_path / "d" / "report.html"
    assert str(report) in text
    assert "<h1" in report.read_text()
    again = call("-o", tmp_path / "d", "--json")
    found = json.loads(again.stdout)
    assert again.stderr == ""
    assert set(found["means"]) == {"imcc", "dice"}
    assert 0 <= found["means"]["imcc"]["coverage"] <= 1
    assert found["stds"]["imcc"]["coverage"] > 0


def test_the_probabilities_of_the_ensemble_are_drawn_once(pets, tmp_path, monkeypatch):
    fast = {"views": ["raw"], "width_scales": [1.0], "virtual_examples": False}
    ensemble = {"estimator": "KernelEnsembleClassifier", "params": fast}
    methods = {"kernel_ensemble": ensemble, "dice": DICE}

    def small(name):
        if name != "quick":
            return load_experiment(name)
        return Experiment({"yeast": pets}, methods, n_repeats=2, name="quick", allow=ALLOW)

    monkeypatch.setattr("imcc.experiment.load_experiment", small)
    text = call("-o", tmp_path).stdout
    picture = tmp_path / "calibration.png"
    assert picture.stat().st_size > 5000
    assert str(picture) in text
    assert "2 random splits" in text
    assert "Probabilities of the ensemble: log loss 0." in text
    picture.write_text("drawn before")
    found = json.loads(call("-o", tmp_path, "--json").stdout)
    assert found["calibration"] == str(picture)
    assert picture.read_text() == "drawn before"


def test_a_failure_is_reported(pets, tmp_path, monkeypatch):
    bad = {"imcc": {"estimator": DICE, "params": {"fails": True}}}
    monkeypatch.setattr(
        "imcc.experiment.load_experiment", lambda _: Experiment(pets, bad, n_repeats=1, allow=ALLOW)
    )
    assert "the dice fell off the table" in call("-o", tmp_path, code=1).stderr
