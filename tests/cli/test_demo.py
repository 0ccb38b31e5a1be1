"""``imcc demo`` with a small experiment in place of the quick one."""

import json

import pytest

from imcc.experiment import Experiment, load_experiment
from tests.cli.conftest import invoke
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


def test_it_ends_with_a_table_and_a_report(small_demo, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = invoke("demo", "-o", tmp_path / "d").stdout
    assert "average_precision (higher is better)" in text
    report = tmp_path / "d" / "report.html"
    assert str(report) in text
    assert "<h1" in report.read_text()
    again = invoke("demo", "-o", tmp_path / "d", "--json")
    found = json.loads(again.stdout)
    assert again.stderr == ""
    assert found["comparison"]["methods"] == ["imcc", "dice"]


def test_a_failure_is_reported(pets, tmp_path, monkeypatch):
    bad = {"imcc": {"estimator": DICE, "params": {"fails": True}}}
    monkeypatch.setattr(
        "imcc.experiment.load_experiment", lambda _: Experiment(pets, bad, n_repeats=1, allow=ALLOW)
    )
    assert "the dice fell off the table" in invoke("demo", "-o", tmp_path, code=1).stderr
