"""The files around a release agree with each other."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import imcc

ROOT = Path(__file__).parents[1]


def text(*parts):
    return ROOT.joinpath(*parts).read_text("utf-8")


def test_the_citation_has_the_version_of_the_package():
    version = re.search(r"^version: (\S+)$", text("CITATION.cff"), re.M)[1]
    assert imcc.__version__.removesuffix(".dev0") == version


def test_the_workflow_runs_what_ci_runs_on_every_supported_python():
    workflow = text(".github", "workflows", "ci.yml")
    assert "run: bash .ci/run" in workflow
    # The folder that the tests read is the one that the data files are downloaded to.
    assert re.search(r"IMCC_DATA_MIRROR: (\$.*)", workflow)[1] in re.findall(
        r"IMCC_DATA_HOME: (.*)", workflow
    )
    assert "fetch_datasets(" in workflow
    versions = re.findall(r'"(3\.\d+)"', re.search(r"python-version: \[(.*)\]", workflow)[1])
    classifiers = tomllib.loads(text("pyproject.toml"))["project"]["classifiers"]
    named = {line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line)}
    assert set(versions) == named
    assert versions[0] == "3.11"


def test_the_source_distribution_has_what_the_tests_read():
    """Every file or folder at the top that tests open is in the source distribution."""
    settings = tomllib.loads(text("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["sdist"]
    included = {name.lstrip("/") for name in settings["include"]}
    assert all((ROOT / name).exists() for name in included)
    assert {"src", "tests", "docs", "examples", "conftest.py"} <= included
    assert "paper" not in included


# Installing the package by its name, which nobody has reserved yet; a wheel's file is no name.
BY_NAME = re.compile(
    r"imcc\[[\w,]+\](?! @ file://)"
    r"|(?:(?:pip3? install|uv add|uv tool install|pipx install)(?: +[^\s`;&|#]+)*?"
    r"|uvx|pipx run|--from|--spec) +['\"]?imcc(?![\w\[./-])"
)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "pip install imcc",
            "pip install 'imcc[all]'",
            "python -m pip install -U numpy imcc==0.1",
        ),
        *("uv add imcc", "uv tool install 'imcc'", "uvx imcc datasets list"),
        *(
            "uvx --from imcc imcc datasets list",
            "pipx run --spec 'imcc[cli]' imcc datasets list",
            "pipx install imcc",
        ),
    ],
)
def test_a_command_that_installs_the_package_by_its_name_is_found(command):
    assert BY_NAME.search(command)


def test_nothing_tells_to_install_the_package_by_its_name():
    """Until a release exists, that fails; and whoever registers the name could run any code."""
    folders = ("src", "tests", "docs", "examples", "paper", ".github")
    files = [*ROOT.glob("*"), *(path for name in folders for path in (ROOT / name).rglob("*"))]
    made = {"_build", "auto_examples", "generated"}  # by `make docs`
    searched = 0
    for path in files:
        if path.suffix in (".md", ".py", ".rst", ".yml", ".html") and not made & set(path.parts):
            found = BY_NAME.search(path.read_text("utf-8"))
            assert not found or path == Path(__file__), f"{path}: {found[0]}"
            searched += 1
    assert searched > 300


SNIPPET = """\
import numpy as np

from imcc import (
    IMCCClassifier,
    IMCCClassifierCV,
    KernelEnsembleClassifier,
    TableClassifier,
    TunedThresholds,
    load_dataset,
    load_model,
    save_model,
)
from imcc.estimators import MultilabelCalibrator
from imcc.metrics import evaluate

data = load_dataset("yeast")
clf = KernelEnsembleClassifier(random_state=0).fit(data.X, data.Y)
chances: np.ndarray = np.asarray(clf.predict_proba(data.X))
values: dict[str, float] = evaluate(data.Y, clf.decision_function(data.X))
search = IMCCClassifierCV(n_clusters=(16, 32), scoring="average_precision").fit(data.X, data.Y)
tuned = TunedThresholds(IMCCClassifier(n_clusters=16), criterion="f1").fit(data.X, data.Y)
sure = MultilabelCalibrator(IMCCClassifier()).fit(data.X, data.Y)
table = TableClassifier(random_state=0)
path = save_model(clf, "model.skops")
print(path.name, load_model(path), values["one_error"], search.best_params_, table, sure, chances)
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_a_program_of_a_user_passes_mypy_strict(tmp_path):
    """The package has types (py.typed) that a strict check of a user's program accepts."""
    (tmp_path / "program.py").write_text(SNIPPET, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")),
            *("--follow-imports", "silent", "program.py"),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
