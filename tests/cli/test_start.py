"""Help and completion are there at once: nothing that computes is imported for them."""

import json
import os
import subprocess
import sys

import pytest

import imcc
from imcc.cli import _choices as choices
from imcc.cli import main
from imcc.cli._app import app
from tests.cli.conftest import commands

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "joblib", "matplotlib", "pyarrow", "skops")
# Runs commands one after the other: [environment, arguments] each.
PROGRAM = f"""
import contextlib, io, json, os, sys
from imcc.cli import main
shown = []
for environment, arguments in json.loads(sys.argv[1]):
    os.environ.update(environment)
    sys.argv = ["imcc", *arguments]
    text = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(text):
        try:
            main()
        except SystemExit as end:
            assert not end.code, (arguments, end.code)
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    assert not heavy, (arguments, heavy)
    shown.append(text.buffer.getvalue().decode())
print(json.dumps(shown))
"""


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_and_completion_import_nothing_heavy():
    """One process for all of them: the first one that imports something is named."""
    paths = [path for path, _ in commands()]
    completed = {"imcc pre": "predict", "imcc tune --metric ": "coverage"}
    requests = [({}, ["--version"]), *(({}, [*path, "--help"]) for path in paths)]
    for words in completed:
        there = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        requests.append((there | {"_IMCC_COMPLETE": "bash_complete"}, []))
    shown = json.loads(run(PROGRAM, json.dumps(requests)))
    assert shown[0] == f"imcc, version {imcc.__version__}\n"
    helps = shown[1 : 1 + len(paths)]
    assert all("Usage: imcc" in text for text in helps)
    assert len(set(helps)) == len(paths)
    for text, expected in zip(shown[1 + len(paths) :], completed.values(), strict=True):
        assert expected in text


def test_import_imcc_imports_nothing_heavy():
    names = f"sorted({{*sys.modules}} & {{*{HEAVY!r}}})"
    program = f"import sys, imcc; dir(imcc); imcc.__version__; assert {names} == [], {names}\n"
    program += f"imcc.metrics; assert 'sklearn' in {names} and 'skops' not in {names}, {names}"
    run(program)


def test_every_name_of_the_package_is_there():
    assert [name for name in dir(imcc) if not hasattr(imcc, name)] == []
    assert sorted(imcc.__all__) == sorted(set(dir(imcc)) - {"__version__"})
    assert not hasattr(imcc, "nothing")


def test_the_root_lists_every_command_with_its_summary(imcc):
    text = imcc("--help").stdout
    for name, command in app.commands.items():
        assert f"  {name}" in text
        assert command.get_short_help_str(limit=80) in text
        assert "..." not in command.get_short_help_str(limit=80)


def test_words_of_other_programs_are_answered_with_the_right_one(imcc):
    for word in ("fit", "train"):
        assert "Did you mean 'tune'?" in imcc(word, "table.csv", code=2).stderr
    assert "tune" not in imcc("frobnicate", code=2).stderr.split("Error")[1]


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_click_or_rich_the_message_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=f"'{package}': pip install click rich"):
        main()


def test_the_choices_are_those_of_the_packages():
    from imcc._math.thresholds import CRITERIA

    assert tuple(imcc.metrics.METRICS) == choices.METRICS
    assert tuple(imcc.experiment.ALL_METRICS) == choices.ALL_METRICS
    assert tuple(imcc.experiment.LABEL_RANGES) == choices.LABEL_RANGES
    assert tuple(CRITERIA) == choices.CRITERIA
