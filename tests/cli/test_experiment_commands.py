import json
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from imcc.cli._app import app
from imcc.cli._running import Duration
from imcc.experiment import Experiment, run
from tests.experiment.conftest import ALLOW, DICE, importable_methods, pets, pets_file, small
from tests.experiment.test_trust import descriptions, hostile_store

__all__ = ["importable_methods", "pets", "pets_file", "small"]  # fixtures

# Methods of others run in processes of their own, which take seconds to start: one test has them.
HERE = "--no-isolate"


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    if code != 130:
        assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.fixture
def toml(pets_file, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        f"""
        allow = ["imcc_test_methods"]
        n_repeats = 2
        cv = 3
        datasets = ["{pets_file}"]
        [methods.dice]
        estimator = "{DICE}"
        [methods.other]
        estimator = "{DICE}"
        grid = {{strength = [1.0, 2.0]}}
        """
    )
    return path


@pytest.fixture
def store(toml, tmp_path):
    path = tmp_path / "mine.sqlite"
    call("experiment", "run", toml, "-o", path, HERE)
    return path


def test_run_tells_what_it_does_and_where_the_results_are(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path)
    assert "[4 of 4] pets, " in result.stderr
    assert "pets, other, split 2 done in" in result.stderr
    assert f"4 of 4 results are in {path}, 4 of them new" in result.stdout
    assert "0 of them new" in call("experiment", "run", toml, "-o", path).stdout
    assert call("experiment", "run", toml, "-o", path, "--quiet").output == ""


def test_run_writes_beside_by_default(toml, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("experiment", "run", toml, HERE)
    assert (tmp_path / "mine.sqlite").exists()


def test_run_can_be_restricted_and_grow(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    run_it = ("experiment", "run", toml, "-o", path, HERE)
    assert "1 of 1" in call(*run_it, "--methods", "dice", "--repeats", "1").stdout
    assert "4 of 4" in call(*run_it).stdout
    assert "8 of 8" in call(*run_it, "--repeats", "4", "--datasets", "pets").stdout
    call(*run_it, "--methods", "mice", code=2)
    call(*run_it, "--datasets", "cats", code=2)
    call(*run_it, "--methods", "a,,b", code=2)


def test_sensitivity_can_be_left_out(toml, tmp_path, pets_file):
    toml.write_text(toml.read_text() + f'\n[sensitivity]\ndatasets = ["{pets_file}"]\n')
    path = tmp_path / "x.sqlite"
    assert "4 of 4" in call("experiment", "run", toml, "-o", path, "--no-sensitivity", HERE).stdout


def test_json_lines_while_running(toml, tmp_path):
    lines = call("experiment", "run", toml, "-o", tmp_path / "x.sqlite", "--json", HERE).stdout
    *events, summary = [json.loads(line) for line in lines.splitlines()]
    assert [event["event"] for event in events] == ["done"] * 4
    assert events[-1]["remaining_seconds"] == 0
    assert summary["computed"] == 4
    assert summary["failed"] == []


def test_failures_are_told_and_end_with_an_error(toml, tmp_path):
    toml.write_text(
        toml.read_text() + f'[methods.bad]\nestimator = "{DICE}"\nparams = {{fails = true}}\n'
    )
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path, HERE, code=1)
    assert "4 of 6 results" in result.stdout
    assert "2 of 6 tasks failed" in result.stderr
    assert "the dice fell off the table" in result.stderr
    assert f"imcc experiment resume {path}" in result.stderr
    status = call("experiment", "status", path).stdout
    assert "Failed: pets, bad, split 1: ValueError: the dice" in status
    found = json.loads(call("experiment", "status", path, "--json").stdout)
    assert (found["done"], found["tasks"], len(found["failed"])) == (4, 6, 2)
    again = ("experiment", "resume", path, "--json", "--allow", "imcc_test_methods")
    lines = call(*again, HERE, code=1).stdout.splitlines()
    assert json.loads(lines[0])["error"].startswith("ValueError")


def test_a_store_can_be_moved_and_resumed(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    call("experiment", "run", toml, "-o", path, "--repeats", "1", HERE)
    moved = tmp_path / "elsewhere" / "y.sqlite"
    moved.parent.mkdir()
    shutil.move(path, moved)
    call("experiment", "run", toml, "-o", moved, HERE)
    toml.unlink()
    again = call("experiment", "resume", moved, "--allow", "imcc_test_methods")
    assert "4 of 4" in again.stdout
    assert "4 of 4 done" in call("experiment", "status", moved).stdout


def test_list_shows_what_there_is(store, tmp_path):
    (tmp_path / "broken.sqlite").write_text("no")
    text = call("experiment", "list", tmp_path).stdout
    assert "quick" in text
    assert "mine.sqlite" in text
    found = json.loads(call("experiment", "list", tmp_path, "--json").stdout)
    assert set(found["experiments"]) == {"quick"}
    assert [(s["file"], s["done"]) for s in found["stores"]] == [
        ("broken.sqlite", None),
        ("mine.sqlite", 4),
    ]


def test_export_and_merge(store, toml, tmp_path):
    out = tmp_path / "out.csv"
    assert str(out) in call("experiment", "export", store, "-o", out).stdout
    call("experiment", "export", store, "-o", out, code=1)
    call("experiment", "export", store, "-o", out, "--force")
    written = json.loads(
        call("experiment", "export", store, "-o", tmp_path / "o.csv", "--json").stdout
    )
    new = tmp_path / "new.sqlite"
    call("experiment", "merge", new, out, code=1)  # of what experiment?
    refused = call("experiment", "merge", new, out, "--experiment", toml, code=2)
    assert "nothing is imported here" in refused.stderr
    call("experiment", "run", toml, "-o", new, "--for", "0s", code=75)
    assert "4 new results" in call("experiment", "merge", new, out).stdout
    found = json.loads(call("experiment", "merge", new, *written["written"], "--json").stdout)
    assert found == {"new": 0, "known": 4, "conflicts": []}
    third = tmp_path / "third.sqlite"
    assert "4 new results" in call("experiment", "merge", third, store).stdout
    text = out.read_text().replace(",0.", ",0.9", 4)
    out.write_text(text)
    assert "other numbers" in call("experiment", "merge", new, out, code=1).stderr


def test_compare_prints_ranks_and_tests(store):
    text = call("compare", store).stdout
    assert "average_precision (higher is better), mean ± std (rank), 2 runs" in text
    assert "mean rank" in text
    assert "No test: at least two data sets are needed" in text
    (found,) = json.loads(call("compare", store, "--metric", "coverage", "--json").stdout)
    assert found["metric"] == "coverage"
    assert found["methods"] == ["dice", "other"]
    call("compare", store, "--control", "nobody", code=2)
    both = call("compare", store, "--metric", "coverage", "--metric", "micro_f1").stdout
    assert "micro_f1" in both
    assert "average_precision" not in both


def test_compare_tests_over_several_data_sets(pets, tmp_path):
    data = {f"set{i}": pets for i in range(7)}
    experiment = Experiment(data, {"imcc": DICE, "b": DICE, "c": DICE}, n_repeats=2, allow=ALLOW)
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    text = call("compare", tmp_path / "x.sqlite", "--metric", "one_error").stdout
    assert "Friedman: F_F =" in text
    assert "first in" in text
    assert "one_error: imcc against each, positive where it is better" in text
    assert "Nemenyi: mean ranks differ significantly where they are" in text
    assert "imcc is significantly better than: none (Nemenyi)" in text
    assert re.search(
        r"^b +\d/\d/\d +[+-]0\.\d{4} ± 0\.\d{4} +[\d.]+ +[\d.]+/[\d.]+/[\d.]+$", text, re.M
    )
    assert "where equal means within 0.01." in text
    text = call("compare", tmp_path / "x.sqlite", "--control", "b", "--selection", "each").stdout
    assert "b is significantly better" in text
    strict = json.loads(call("compare", tmp_path / "x.sqlite", "--alpha", "0.2", "--json").stdout)
    assert strict[0]["alpha"] == 0.2
    assert strict[0]["against_control"]["critical_difference"] > 0
    wide = call("compare", tmp_path / "x.sqlite", "--rope", "1", "--metric", "coverage", "--json")
    assert json.loads(wide.stdout)[0]["against_control"]["equivalent"] == [1, 1, 1]
    call("compare", tmp_path / "x.sqlite", "--rope", "-1", code=2)


def test_tables_wider_than_the_terminal_come_in_pieces(pets, tmp_path, monkeypatch):
    methods = {f"a method with a long name {i}": DICE for i in range(7)}
    run(Experiment(pets, methods, n_repeats=2, allow=ALLOW), tmp_path / "x.sqlite", isolate=False)
    monkeypatch.setenv("COLUMNS", "100")
    text = call("compare", tmp_path / "x.sqlite", "--metric", "coverage").stdout
    assert max(len(line) for line in text.splitlines()) <= 100
    assert all(name in text for name in methods)
    assert text.count("pets") == 3
    assert "first in" in text
    assert "continued" in text


def test_compare_is_explicit_about_missing_runs(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    call("experiment", "run", toml, "-o", path, "--repeats", "1", HERE)
    call("experiment", "run", toml, "-o", path, "--methods", "dice", HERE)
    told = call("compare", path, code=2).stderr
    assert "runs are missing in 1 cell" in told
    assert "--missing drop" in told
    text = call("compare", path, "--missing", "drop").stdout
    assert "Left out: 1 run: repetitions that not all" in text


PUBLISHED = "dataset,method,metric,mean,std,n\nyeast,imcc,average_precision,0.777,0.008,10\n"


def test_compare_with_published_numbers(tmp_path, pets):
    """A method stands beside the published cell of the same name."""
    file = tmp_path / "published.csv"
    file.write_text(f"# A journal\n{PUBLISHED}yeast,other,coverage,0.5,0.01,10\n")
    experiment = Experiment({"yeast": pets}, {"imcc": DICE}, n_repeats=3, allow=ALLOW)
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    command = ("compare", tmp_path / "x.sqlite", "--published", file)
    text = call(*command).stdout
    assert "0.777 ± 0.008" in text
    found = json.loads(call(*command, "--json").stdout)
    assert [cell["verdict"] == "missing" for cell in found["cells"]] == [False, True]
    one = json.loads(call(*command, "--json", "--metric", "coverage").stdout)
    assert [cell["metric"] for cell in one["cells"]] == ["coverage"]
    page = tmp_path / "page.html"
    call("report", tmp_path / "x.sqlite", "--published", file, "-o", page)
    assert "those published in A journal" in page.read_text()
    none = call("compare", tmp_path / "x.sqlite", "--published", "no_such.csv", code=2).stderr
    assert "no_such.csv cannot be read" in " ".join(none.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("experiment", "run", "quack"), 2, "one of quick"),
        (("experiment", "resume", "none.sqlite"), 1, "no results store"),
        (("experiment", "status", "none.sqlite"), 1, "no results store"),
        (("compare", "none.sqlite"), 1, "no results store"),
        (("experiment", "run", "quick", "-o", "/proc/x.sqlite"), 1, "you may write"),
        (("experiment", "run", "quick", "-o", "/none/x.sqlite"), 1, "no folder"),
        (("experiment", "run", "quick", "-j", "0"), 2, "--jobs"),
    ],
)
def test_mistakes_get_a_message_and_an_exit_code(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_merge_that_fails_leaves_no_store(store, toml, tmp_path):
    out = tmp_path / "rows.csv"
    call("experiment", "export", store, "-o", out)
    new = tmp_path / "new.sqlite"
    # The rows are of methods that the experiment does not have.
    assert (
        "has no task"
        in call("experiment", "merge", new, out, "--experiment", "quick", code=1).stderr
    )
    assert list(tmp_path.glob("new.sqlite*")) == []


def test_through_the_real_entry_point(store):
    done = subprocess.run(
        [sys.executable, "-m", "imcc.cli", "compare", store, "--metric", "coverage", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["metric"] == "coverage"


# Files that are not to be trusted.


@pytest.mark.parametrize(
    "command",
    [
        ("experiment", "status", "STORE"),
        ("experiment", "status", "STORE", "--json"),
        ("experiment", "list", "FOLDER"),
        ("compare", "STORE", "--missing", "drop"),
        ("compare", "STORE", "--published", "PUBLISHED"),
        ("report", "STORE", "-o", "out.html"),
        ("report", "STORE", "--tables", "markdown", "-o", "-"),
        ("experiment", "export", "STORE", "-o", "out.csv"),
    ],
    ids=lambda command: " ".join(command[:3]),
)
@pytest.mark.parametrize("way", ["itself", "nested", "in ours"])
def test_no_command_runs_what_a_store_names(tmp_path, monkeypatch, way, command):
    folder = tmp_path / "stores"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    store = hostile_store(folder / "x.sqlite", descriptions(tmp_path / "trace")[way])
    published = tmp_path / "published.csv"
    published.write_text(PUBLISHED)
    replaced = {"STORE": store, "FOLDER": folder, "PUBLISHED": published}
    call(*(replaced.get(word, word) for word in command))
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("way", ["itself", "nested", "in ours"])
def test_merge_and_resume_refuse_what_a_store_names(tmp_path, way):
    store = hostile_store(tmp_path / "x.sqlite", descriptions(tmp_path / "trace")[way])
    call("experiment", "merge", tmp_path / "new.sqlite", store, code=2)
    call("experiment", "merge", store, store, code=2)
    result = call("experiment", "resume", store, code=2)
    assert "--allow os" in result.stderr
    assert "fit" in call("experiment", "resume", store, "--allow", "os", code=2).stderr
    assert not (tmp_path / "trace").exists()


def test_others_methods_must_be_allowed(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    toml.write_text(toml.read_text().replace('allow = ["imcc_test_methods"]', ""))
    result = call("experiment", "run", toml, "-o", path, code=2)
    assert "--allow imcc_test_methods" in result.stderr
    assert not path.exists()
    call(
        "experiment",
        "run",
        toml,
        "-o",
        path,
        "--allow",
        "imcc_test_methods",
        "--for",
        "0s",
        code=75,
    )
    call("experiment", "resume", path, code=2)
    assert "4 of 4" in call("experiment", "resume", path, "--allow", "imcc_test_methods").stdout


def test_names_that_control_a_terminal_are_written_out(pets, tmp_path):
    names = {"\x1b]0;owned\x07": DICE, "=HYPERLINK(1)": DICE}
    experiment = Experiment({"\x1b[2Jpets": pets}, names, n_repeats=2, allow=ALLOW)
    path = tmp_path / "x.sqlite"
    run(experiment, path, isolate=False)
    out = tmp_path / "out.csv"
    for command in (
        ("experiment", "status", path),
        ("experiment", "status", path, "--json"),
        ("experiment", "list", tmp_path),
        ("compare", path),
        ("compare", path, "--json"),
        ("experiment", "export", path, "-o", out),
        ("experiment", "merge", path, out),
    ):
        result = call(*command)
        assert not {"\x1b", "\x07"} & {*result.output}
    assert "\n\x1b[2Jpets,'=HYPERLINK(1)," in out.read_text()
    call("experiment", "export", path, "-o", out, "--force", "--raw")
    assert "\n\x1b[2Jpets,=HYPERLINK(1)," in out.read_text()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30min", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5 h", 5400)],
)
def test_times_can_be_written_in_many_ways(text, seconds):
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2x", "h", "-5s", "1h-3"])
def test_wrong_times_are_refused(text, tmp_path):
    call("experiment", "run", "quick", "-o", tmp_path / "x.sqlite", "--for", text, code=2)


def test_a_run_that_is_out_of_time_says_how_to_go_on(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path, "--for", "0s", code=75)
    assert f"imcc experiment resume {path}" in result.stderr
    assert "4 tasks are left" in result.stderr
    found = call("experiment", "run", toml, "-o", path, "--for", "0s", "--json", code=75)
    assert json.loads(found.stdout)["out_of_time"] == 4


def test_the_time_that_is_left_is_estimated_from_what_is_stored(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    run_it = ("experiment", "run", toml, "-o", path, HERE)
    call(*run_it, "--repeats", "1")
    call(*run_it, "--for", "0s", code=75)
    assert "of computing are left" in call("experiment", "status", path).stdout
    assert json.loads(call("experiment", "status", path, "--json").stdout)["remaining_seconds"] > 0


def test_a_task_that_takes_too_long_fails(toml, tmp_path):
    toml.write_text(toml.read_text() + f'[methods.slow]\nestimator = "{DICE}"\n')
    toml.write_text(toml.read_text() + "params = {delay = 600.0}\n")
    arguments = ("--timeout", "1s", "--methods", "slow", "--repeats", "1")
    result = call("experiment", "run", toml, "-o", tmp_path / "x.sqlite", *arguments, code=1)
    assert "longer than the timeout of 1 s" in result.stderr
