"""``imcc report``, through its real entry point."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from imcc.cli._app import app
from tests.report.synthetic import METHODS, make_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "mine.sqlite"
    return make_store(path, ("yeast", "scene"), metrics=("average_precision", "coverage"))


def imcc(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "imcc.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )


def run(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_report(store, tmp_path):
    done = imcc("report", store, "-o", tmp_path / "report.html", "--title", "Mine", cwd=tmp_path)
    assert done.returncode == 0
    # On a slow machine, how far it is.
    assert all(line.startswith("writing the report:") for line in done.stderr.splitlines())
    assert done.stdout.strip() == str(tmp_path / "report.html")
    assert '<h1 id="title">Mine</h1>' in (tmp_path / "report.html").read_text("utf-8")


def test_json_says_where_and_how_large(store, tmp_path):
    told = json.loads(run(store, "-o", tmp_path / "r.html", "--json").stdout)
    assert told == {
        "path": str(tmp_path / "r.html"),
        "bytes": (tmp_path / "r.html").stat().st_size,
    }


def test_help_has_examples():
    done = imcc("report", "--help")
    assert done.returncode == 0
    assert "\n    imcc report quick.sqlite\n" in done.stdout
    assert "\\b" not in done.stdout
    assert "report" in imcc("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.sqlite"], 1, "there is no results store"),
        (["{store}", "--control", "nobody"], 2, "control must be one of the experiment's methods"),
        (["{store}", "--alpha", "2"], 2, "alpha"),
        (["{store}", "--tables", "word"], 2, "markdown"),
        (["{store}", "-o", "notes.txt"], 1, "overwrite it with --force"),
        (["{store}", "-o", "none/r.html"], 1, "there is no folder"),
        (["{store}", "--tables", "latex", "--figures", "svg"], 2, "not both"),
        (["{store}", "--tables", "latex", "-o", "t.md"], 2, ".tex"),
        (["{store}", "-o", "-"], 2, "--tables"),
        (["{store}", "--tables", "latex", "--title", "x"], 2, "--title is for the page"),
        (["{store}", "--tables", "latex", "--control", "imcc"], 2, "--control is not for --tables"),
        (["{store}", "-o", "-", "--json"], 2, "there is none"),
        (["notes.txt"], 1, "not a results store"),
        ([], 2, "STORE"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    store, tmp_path, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("my notes, which are long enough to be no database at all")
    result = run(*[argument.format(store=store) for argument in arguments])
    assert result.exit_code == code
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert (tmp_path / "notes.txt").read_text().startswith("my notes")


def test_force(store, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    assert run(store, "-o", path, "--force").exit_code == 0
    assert path.read_text("utf-8").startswith("<!doctype html>")


def test_where_files_go_by_default(tmp_path):
    store = make_store(tmp_path / "mine.sqlite", metrics=("average_precision",))
    for arguments, names in (
        ([], ["mine.html"]),
        (["--tables", "markdown"], ["mine.md"]),
        (["--tables", "latex"], ["mine.tex"]),
    ):
        result = run(store, *arguments)
        assert result.output.split() == [str(tmp_path / name) for name in names]
        assert all((tmp_path / name).exists() for name in names)
    result = run(store, "--figures", "svg")
    written = result.output.split()
    assert str(tmp_path / "mine-figures" / "spread_1_yeast.svg") in written
    told = json.loads(run(store, "--figures", "png", "--json").output)
    assert len(told) == len(written)
    assert all(entry["path"].endswith(".png") and entry["bytes"] > 1000 for entry in told)


def test_to_the_screen(store):
    done = imcc("report", store, "--tables", "markdown", "-o", "-")
    assert "### Average precision ↑" in done.stdout
    assert done.stdout.count("| average rank |") == 2
    latex = run(store, "--tables", "latex", "-o", "-").output
    assert latex.count(r"\begin{table}") == 2
    assert "by average precision" in latex


def test_control_and_alpha(store, tmp_path):
    path = tmp_path / "r.html"
    assert run(store, "-o", path, "--control", METHODS[2], "--alpha", "0.2").exit_code == 0
    page = path.read_text("utf-8")
    assert f"to both sides of {METHODS[2]} (diamond)" in page
    assert "Significance level 0.2" in page
