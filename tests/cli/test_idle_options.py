"""Options that would do nothing are refused; a default that is spelled out is the default."""

import click
import pytest
import sklearn

from imcc.cli._options import changed_options
from tests.cli.conftest import NAMED, flat, make_data
from tests.cli.test_model_commands import commands
from tests.writers import write


@pytest.mark.parametrize(
    "words",
    [
        "predict MODEL NEW --json -o OUT.csv",
        "predict MODEL NEW --proba --scores",
        "tune TRAIN NAMED -o OUT.skops --calibrate",
        "tune TRAIN NAMED -o OUT.skops --scale",
        "datasets describe TRAIN --force",
        "datasets describe yeast --unknown-labels",
        "compare none.sqlite --published p.csv --control imcc",
        "report none.sqlite -o tables.tex --published p.csv",
        "report none.sqlite -o tables.tex --control imcc",
    ],
)
def test_an_option_that_would_do_nothing_is_refused(imcc, pets, tmp_path, words):
    files = {
        "MODEL": pets / "model.skops",
        "NEW": pets / "new.csv",
        "TEST": pets / "test.csv",
        "TRAIN": pets / "train.csv",
    }
    arguments = []
    for word in words.split():
        if word == "NAMED":
            arguments += NAMED
        elif word.startswith("OUT"):
            arguments.append(tmp_path / word)
        else:
            arguments.append(files.get(word, word))
    said = flat(imcc(*arguments, code=2).stderr)
    # The last option that needs another one, by name.
    flags = [word for word in words.split() if word.startswith("--")]
    assert any(flag in said for flag in flags[-2:]), said
    assert list(tmp_path.glob("OUT*")) == []


def test_no_two_options_of_a_command_have_one_name():
    for path, command in commands():
        flags = [flag for p in command.params if isinstance(p, click.Option) for flag in p.opts]
        assert len(flags) == len(set(flags)), path


def in_words(option):
    """Return a default of click as it is typed; [] if there is none, or no way to type it."""
    default = getattr(option, "default", None)
    if not isinstance(option, click.Option) or not isinstance(default, (str, int, float)):
        return []
    flag = max(option.opts, key=len)
    if option.is_flag:  # a flag without an opposite cannot be typed as False
        return [flag if default else option.secondary_opts[0]] if option.secondary_opts else []
    return [flag, str(default)]


def changed(command, option, *words):
    """Whether an option that is typed counts as changed."""
    required = ["x"] * sum(isinstance(p, click.Argument) for p in command.params)
    with command.make_context("x", [*words, *required], resilient_parsing=True):
        return bool(changed_options(option.name))


def test_a_default_that_is_spelled_out_is_no_change():
    seen = 0
    for path, command in commands():
        for option in command.params:
            if words := in_words(option):
                assert not changed(command, option, *words), (path, words)
                seen += 1
                if isinstance(option.default, int) and not option.is_flag:
                    assert changed(command, option, words[0], str(option.default + 1))
    assert seen > 10


@pytest.fixture
def stopped(monkeypatch):
    """Stop where a model is fitted, and collect what it is."""
    models = []

    def stop(model, *_):
        with sklearn.config_context(print_changed_only=False):
            models.append(repr(model))
        raise click.ClickException("stopped")

    for name in (
        "imcc.tables.TableClassifier.fit",
        "imcc.estimators.TunedThresholds.fit",
        "imcc.estimators.KernelEnsembleClassifier.fit",
        "imcc.estimators.IMCCClassifierCV.fit",
    ):
        monkeypatch.setattr(name, stop)
    return models


@pytest.mark.parametrize(
    ("suffix", "options", "spelled"),
    [
        ("csv", [], ["--thresholds", "f1", "--model", "ensemble", "--seed", 0]),
        ("arff", [], ["--thresholds", "none", "--metric", "average_precision"]),
        ("csv", ["--model", "imcc"], ["--thresholds", "none", "--folds", 5]),
        (
            "arff",
            ["--model", "imcc", "--thresholds", "f1"],
            ["--folds", 5, "--set", "grid=default"],
        ),
    ],
)
def test_tune_fits_the_same_if_defaults_are_spelled_out(
    imcc, tmp_path, stopped, suffix, options, spelled
):
    write(make_data(30), tmp_path / f"t.{suffix}")
    named = NAMED if suffix == "csv" else ()
    start = ("tune", tmp_path / f"t.{suffix}", *named, *options, "-o", tmp_path / "m.skops")
    imcc(*start, code=1)
    imcc(*start, *spelled, code=1)
    assert stopped[0] == stopped[1]
    imcc(*start, "--seed", 1, code=1)
    assert stopped[2] != stopped[0]
