import json
import re
import shutil

import pytest

from imcc.cli._experiment import seconds
from imcc.experiment import Experiment, run
from tests.cli.conftest import invoke as call
from tests.experiment.conftest import ALLOW, DICE, importable_methods, pets, pets_file, small
from tests.experiment.test_trust import descriptions, hostile_store

__all__ = ["importable_methods", "pets", "pets_file", "small"]  # fixtures

# Methods of imcc are computed in this process; those of others in workers, which take seconds to
# start.
RIDGE = 'estimator = "kernel_ridge"\nparams = {betas = [0.1, 1.0], width_scales = [1.0]}\n'
BAD = '[methods.bad]\nestimator = "kernel_ridge"\nparams = {betas = [-1.0]}\n'


@pytest.fixture
def toml(pets_file, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        f'n_repeats = 2\ncv = 3\ndatasets = ["{pets_file}"]\n'
        f"[methods.ridge]\n{RIDGE}[methods.other]\n{RIDGE.replace('0.1', '0.01')}"
    )
    return path


@pytest.fixture
def store(toml, tmp_path):
    path = tmp_path / "mine.sqlite"
    call("experiment", "run", toml, "-o", path)
    return path


def test_run_tells_what_it_does_and_where_the_results_are(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path)
    assert "[4 of 4] pets, " in result.stderr
    assert "pets, other, split 2 done in" in result.stderr
    assert f"4 of 4 results are in {path}, 4 of them new" in result.stdout
    assert "0 of them new" in call("experiment", "run", toml, "-o", path).stdout
    assert call("experiment", "run", toml, "-o", path, "--quiet").output == ""


def test_run_can_be_restricted_and_grow(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    run_it = ("experiment", "run", toml, "-o", path)
    assert "1 of 1" in call(*run_it, "--methods", "ridge", "--repeats", "1").stdout
    assert "4 of 4" in call(*run_it).stdout
    assert "8 of 8" in call(*run_it, "--repeats", "4", "--datasets", "pets").stdout
    call(*run_it, "--methods", "mice", code=2)
    call(*run_it, "--datasets", "cats", code=2)
    call(*run_it, "--methods", "a,,b", code=2)


def test_the_summary_as_json(toml, tmp_path):
    result = call("experiment", "run", toml, "-o", tmp_path / "x.sqlite", "--json")
    assert result.stderr == ""
    summary = json.loads(result.stdout)
    assert (summary["computed"], summary["missing"], summary["failed"]) == (4, 0, [])


def test_failures_are_told_and_end_with_an_error(toml, tmp_path):
    toml.write_text(toml.read_text() + BAD)
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path, code=1)
    assert "4 of 6 results" in result.stdout
    assert "2 of 6 tasks failed" in result.stderr
    assert "betas" in result.stderr
    assert f"imcc experiment run {path}" in result.stderr
    status = call("experiment", "status", path).stdout
    assert "Failed: pets, bad, split 1: " in status
    found = json.loads(call("experiment", "status", path, "--json").stdout)
    assert (found["done"], found["tasks"], len(found["failed"])) == (4, 6, 2)
    found = json.loads(call("experiment", "run", path, "--json", code=1).stdout)
    assert "betas" in found["failed"][0]["error"]


def test_a_store_can_be_moved_and_continued(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    call("experiment", "run", toml, "-o", path, "--repeats", "1")
    call("experiment", "run", toml, "-o", path, "--for", "0s", code=75)
    moved = tmp_path / "elsewhere" / "y.db"
    moved.parent.mkdir()
    shutil.move(path, moved)
    toml.unlink()
    status = call("experiment", "status", moved).stdout
    assert "2 of 4 done" in status
    assert "of computing are left" in status
    assert f"imcc experiment run {moved}" in " ".join(status.split())
    assert "4 of 4" in call("experiment", "run", moved).stdout
    assert "4 of 4 done" in call("experiment", "status", moved).stdout


def test_rows_computed_elsewhere(store, toml, tmp_path):
    out = tmp_path / "out.csv"
    call("report", store, "-o", out)
    (tmp_path / "own.toml").write_text(f"[methods.own]\n{RIDGE.replace('0.1', '10')}")
    run_it = ("experiment", "run", toml, "--methods", tmp_path / "own.toml", "--repeats", 1)
    path = tmp_path / "x.sqlite"
    text = call(*run_it, "--rows", out, "-o", path).stdout
    assert f"4 new results from {out}." in text
    assert f"1 of 1 results are in {path}, 1 of them new" in text
    assert f"imcc compare {path} --control own" in text
    assert "0 new results" in call(*run_it, "--rows", store, "-o", path).stdout
    (found,) = json.loads(
        call("compare", path, "--control", "own", "--metric", "coverage", "--json").stdout
    )
    assert (found["methods"], found["counts"]) == (["ridge", "other", "own"], [[1, 1, 1]])
    # Without a method, it is a merge.
    merge = ("experiment", "run", toml, "-o", tmp_path / "y.sqlite", "--rows", store)
    assert "4 of 4 results" in call(*merge).stdout
    # The rows are of methods that the experiment does not have: no store is left behind.
    wrong = ("experiment", "run", "quick", "--rows", out, "-o", tmp_path / "new.sqlite")
    assert "has no task" in " ".join(call(*wrong, code=1).stderr.split())
    assert list(tmp_path.glob("new.sqlite*")) == []


def test_compare_prints_ranks_and_tests(store):
    text = call("compare", store).stdout
    assert "average_precision (higher is better), mean ± std (rank), 2 runs" in text
    assert "average rank" in text
    assert "One data set does not show which method is better on others." in text
    (found,) = json.loads(call("compare", store, "--metric", "coverage", "--json").stdout)
    assert found["metric"] == "coverage"
    assert found["methods"] == ["ridge", "other"]
    call("compare", store, "--control", "nobody", code=2)
    both = call("compare", store, "--metric", "coverage", "--metric", "micro_f1").stdout
    assert "micro_f1" in both
    often = call("compare", store, "--metric", "label_ap_above_20").stdout
    assert "label_ap_above_20 (higher is better)" in often
    assert "average_precision" not in both


def test_compare_tests_over_several_data_sets(pets, tmp_path):
    data = {f"set{i}": pets for i in range(7)}
    methods = {
        name: {"estimator": DICE, "params": {"random_state": number}}
        for number, name in enumerate(("imcc", "b", "c"))
    }
    experiment = Experiment(data, methods, n_repeats=2, allow=ALLOW)
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    text = call("compare", tmp_path / "x.sqlite", "--metric", "one_error").stdout
    assert "the best mean rank by one-error" in text
    assert "Friedman's test" in text
    assert "one_error: imcc against each, positive where it is better" in text
    assert re.search(
        r"^b +\d/\d/\d +[+-]0\.\d{4} ± 0\.\d{4} +[\d.]+ +[\d.]+/[\d.]+/[\d.]+$", text, re.M
    )
    assert "where equal means within 0.01." in text
    text = call("compare", tmp_path / "x.sqlite", "--control", "b").stdout
    assert "coverage: b against each, positive where it is better" in text


def test_tables_wider_than_the_terminal_come_in_pieces(pets, tmp_path, monkeypatch):
    methods = {f"a method with a long name {i}": DICE for i in range(7)}
    run(Experiment(pets, methods, n_repeats=2, allow=ALLOW), tmp_path / "x.sqlite", isolate=False)
    monkeypatch.setenv("COLUMNS", "100")
    text = call("compare", tmp_path / "x.sqlite", "--metric", "coverage").stdout
    table = [line for line in text.splitlines() if not line.endswith(".")]
    assert max(map(len, table)) <= 100
    assert all(name in text for name in methods)
    assert sum(line.startswith("pets") for line in table) == 3
    assert "continued" in text


def test_compare_says_what_is_left_out(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    call("experiment", "run", toml, "-o", path, "--repeats", "1")
    call("experiment", "run", toml, "-o", path, "--methods", "ridge")
    assert "Left out: 1 run: repetitions that not all" in call("compare", path).stdout


PUBLISHED = "dataset,method,metric,mean,std,n\nyeast,imcc,average_precision,0.777,0.008,10\n"


def test_compare_with_published_numbers(tmp_path, pets):
    """A method stands beside the published cell of the same name."""
    file = tmp_path / "published.csv"
    file.write_text(f"# A journal\n{PUBLISHED}yeast,other,coverage,0.5,0.01,10\n")
    experiment = Experiment({"yeast": pets}, {"imcc": DICE}, n_repeats=3, allow=ALLOW)
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    page = tmp_path / "page.html"
    call("report", tmp_path / "x.sqlite", "--published", file, "-o", page)
    assert "those published in A journal" in page.read_text()
    none = call("report", tmp_path / "x.sqlite", "--published", "no_such.csv", code=2).stderr
    assert "no_such.csv cannot be read" in " ".join(none.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("experiment", "run", "quack"), 2, "one of quick"),
        (("experiment", "run", "none.sqlite"), 1, "no results store"),
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


# Files that are not to be trusted.


@pytest.mark.parametrize(
    "command",
    [
        ("experiment", "status", "STORE"),
        ("experiment", "status", "STORE", "--json"),
        ("compare", "STORE"),
        ("report", "STORE", "-o", "out.html", "--published", "PUBLISHED"),
        ("report", "STORE", "-o", "out.tex"),
        ("report", "STORE", "-o", "out.csv"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("way", ["itself", "nested", "in ours"])
def test_no_command_runs_what_a_store_names(tmp_path, monkeypatch, way, command):
    folder = tmp_path / "stores"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    store = hostile_store(folder / "x.sqlite", descriptions(tmp_path / "trace")[way])
    published = tmp_path / "published.csv"
    published.write_text(PUBLISHED)
    replaced = {"STORE": store, "PUBLISHED": published}
    call(*(replaced.get(word, word) for word in command))
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("way", ["itself", "nested", "in ours"])
def test_running_a_store_refuses_what_it_names(tmp_path, way):
    store = hostile_store(tmp_path / "x.sqlite", descriptions(tmp_path / "trace")[way])
    assert "--allow os" in call("experiment", "run", store, code=2).stderr
    assert "fit" in call("experiment", "run", store, "--allow", "os", code=2).stderr
    call("experiment", "run", "quick", "--rows", store, "-o", tmp_path / "new.sqlite", code=1)
    assert not (tmp_path / "trace").exists()


def test_others_methods_must_be_allowed(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    toml.write_text(toml.read_text() + f'[methods.dice]\nestimator = "{DICE}"\n')
    run_it = ("experiment", "run", toml, "-o", path, "--methods", "dice")
    assert "--allow imcc_test_methods" in call(*run_it, code=2).stderr
    assert not path.exists()
    allow = ("--allow", "imcc_test_methods")
    call(*run_it, *allow, "--for", "0s", code=75)
    call("experiment", "run", path, code=2)  # a store brings no permissions
    assert "2 of 2" in call("experiment", "run", path, *allow).stdout


def test_names_that_control_a_terminal_are_written_out(pets, tmp_path):
    names = {"\x1b]0;owned\x07": DICE, "=HYPERLINK(1)": DICE}
    experiment = Experiment({"\x1b[2Jpets": pets}, names, n_repeats=2, allow=ALLOW)
    path = tmp_path / "x.sqlite"
    run(experiment, path, isolate=False)
    out = tmp_path / "out.csv"
    for command in (
        ("experiment", "status", path),
        ("experiment", "status", path, "--json"),
        ("compare", path),
        ("compare", path, "--json"),
        ("report", path, "-o", out),
    ):
        result = call(*command)
        assert not {"\x1b", "\x07"} & {*result.output}
    assert "\n\x1b[2Jpets,'=HYPERLINK(1)," in out.read_text()


def test_times_can_be_written_in_many_ways(tmp_path):
    times = {"90": 90, "90s": 90, "30min": 1800, "2h": 7200, "1.5 h": 5400, "1d": 86400}
    assert {text: seconds(text) for text in times} == times
    for text in ("", "soon", "2x", "h", "-5s"):
        call("experiment", "run", "quick", "-o", tmp_path / "x.sqlite", "--for", text, code=2)


def test_a_run_that_is_out_of_time_says_how_to_go_on(toml, tmp_path):
    path = tmp_path / "x.sqlite"
    result = call("experiment", "run", toml, "-o", path, "--for", "0s", code=75)
    assert f"imcc experiment run {path}" in result.stderr
    assert "4 tasks are left" in result.stderr
    found = call("experiment", "run", toml, "-o", path, "--for", "0s", "--json", code=75)
    assert json.loads(found.stdout)["out_of_time"] == 4


def test_a_task_that_takes_too_long_fails(toml, tmp_path):
    toml.write_text(toml.read_text() + f'[methods.slow]\nestimator = "{DICE}"\n')
    toml.write_text(toml.read_text() + "params = {delay = 600.0}\n")
    arguments = ("--timeout", "1s", "--methods", "slow", "--repeats", "1", "--allow", ALLOW[0])
    result = call("experiment", "run", toml, "-o", tmp_path / "x.sqlite", *arguments, code=1)
    assert "longer than the timeout of 1 s" in result.stderr
