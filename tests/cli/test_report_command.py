"""``imcc report``: the page, its tables and all results."""

import pytest

from tests.cli.conftest import flat, invoke
from tests.report.synthetic import METHODS, make_store


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "mine.sqlite"
    return make_store(path, ("yeast", "scene"), metrics=("average_precision", "coverage"))


def run(*arguments, code=0):
    return invoke("report", *arguments, code=code)


def test_a_report(store, tmp_path):
    done = run(store, "--control", METHODS[2])
    assert done.stdout.strip() == str(tmp_path / "mine.html")
    page = (tmp_path / "mine.html").read_text("utf-8")
    assert f"to both sides of {METHODS[2]} (diamond)" in page


def test_what_is_written_is_what_the_name_says(store, tmp_path):
    told = run(store, "-o", tmp_path / "t.tex").stdout
    assert told == f"{tmp_path / 't.tex'}\n"
    text = (tmp_path / "t.tex").read_text("utf-8")
    assert text.count(r"\begin{table}") == 2
    for _ in range(2):  # it may be overwritten
        run(store, "-o", tmp_path / "t.tex")
        run(store, "-o", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("dataset,method,repetition,selection,")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.sqlite"], 1, "there is no results store"),
        (["{store}", "--control", "nobody"], 2, "control must be one of"),
        (["{store}", "-o", "notes.tex"], 1, "notes.tex already exists and is not a report"),
        (["{store}", "-o", "notes.csv"], 1, "notes.csv already exists"),
        (["."], 2, "is a folder, not a store"),
        (["{store}", "-o", "none/r.html"], 1, "there is no folder"),
        (["{store}", "-o", "t.md"], 2, "-o must end in .html"),
        (["{store}", "-o", "t.tex", "--control", "imcc"], 2, "--control"),
        (["{store}", "-o", "t.csv", "--published", "p.csv"], 2, "--published"),
        (["notes.md"], 1, "not a results store"),
        ([], 2, "STORE"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    store, tmp_path, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    for name in ("notes.md", "notes.csv", "notes.tex"):
        (tmp_path / name).write_text("my notes, which are long enough to be no database at all")
    result = run(*[argument.format(store=store) for argument in arguments], code=code)
    assert message in flat(result.output)
    assert (tmp_path / "notes.md").read_text().startswith("my notes")
    assert (tmp_path / "notes.csv").read_text().startswith("my notes")
