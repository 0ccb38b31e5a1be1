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
    assert "average_precision (higher is better)" in text
    report = tmp_path / "d" / "report.html"
    assert str(report) in text
    assert "<h1" in report.read_text()
    again = call("-o", tmp_path / "d", "--json")
    found = json.loads(again.stdout)
    assert again.stderr == ""
    assert found["comparison"]["methods"] == ["imcc", "dice"]


def test_a_failure_is_reported(pets, tmp_path, monkeypatch):
    bad = {"imcc": {"estimator": DICE, "params": {"fails": True}}}
    monkeypatch.setattr(
        "imcc.experiment.load_experiment", lambda _: Experiment(pets, bad, n_repeats=1, allow=ALLOW)
    )
    assert "the dice fell off the table" in call("-o", tmp_path, code=1).stderr
