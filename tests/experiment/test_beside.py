"""A method of one's own beside rows that were computed elsewhere."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from imcc.comparison import compare
from imcc.datasets import write
from imcc.experiment import (
    Experiment,
    ExperimentError,
    Store,
    StoreError,
    export,
    join_rows,
    load_methods,
    merge,
    run,
    scores_beside,
)
from tests.experiment.conftest import ALLOW, DICE


@pytest.fixture
def rows(small, tmp_path):
    """What somebody else has computed and published."""
    run(small, tmp_path / "theirs.sqlite", isolate=False)
    with Store(tmp_path / "theirs.sqlite") as store:
        return export(store, tmp_path / "small.csv")[0]


@pytest.fixture
def mine(small, tmp_path):
    log = tmp_path / "log"
    own = {"estimator": DICE, "params": {"strength": 3.0, "log": str(log)}}
    return small.with_methods({"mine": own}).resolve(), log


def test_only_the_own_method_is_computed(mine, rows, tmp_path):
    experiment, log = mine
    path = tmp_path / "mine.sqlite"
    merged = join_rows(experiment, ["mine"], [rows], path)
    assert (merged.n_new, merged.n_known) == (6, 0)
    assert not log.exists()
    summary = experiment.subset(methods=["mine"], n_repeats=2).run(path, isolate=False)
    assert (summary.n_computed, summary.failures) == (2, [])
    assert len(log.read_text().splitlines()) == 2
    with Store(path) as store, Store(tmp_path / "theirs.sqlite") as theirs:
        table = scores_beside(store, ["mine"], "coverage")
        assert table.methods == ("mine", "dice", "grid")
        assert table.counts.tolist() == [[2, 2, 2]]  # of the three splits of the others
        expected = theirs.scores("coverage").values[:, 0, :2]
        np.testing.assert_allclose(table.values[:, 1, :2], expected)
        seeds = {(run.key.repetition, run.seed) for run in store.runs()}
        assert len(seeds) == 3  # the same splits for all methods
        found = compare(table, control="mine", missing="drop")
        assert found.methods == ("mine", "dice", "grid")
    # Again: everything is known.
    assert join_rows(experiment, ["mine"], [rows], path).n_known == 6


def test_rows_of_other_splits_are_refused(small, rows, pets_file, tmp_path):
    methods = {method.name: method for method in small.methods}
    for other in ({"seed": 1}, {"test_size": 0.3}, {"cv": 4}, {"stratified": True}):
        experiment = Experiment(
            {"pets": pets_file},
            {**methods, "mine": DICE},
            allow=ALLOW,
            **{"n_repeats": 3, "cv": 3, **other},
        ).resolve()
        with pytest.raises(StoreError, match="only rows of the same splits"):
            join_rows(experiment, ["mine"], [rows], tmp_path / f"{next(iter(other))}.sqlite")


def test_rows_of_other_data_are_refused_before_anything_is_computed(mine, rows, pets, tmp_path):
    experiment, log = mine
    X = np.array(pets.X)
    X[0, 0] += 1e-6
    write(replace(pets, X=X), tmp_path / "pets.npz", overwrite=True)
    with pytest.raises(StoreError, match=r"the data of 'pets' differ from those.* same splits"):
        join_rows(experiment, ["mine"], [rows], tmp_path / "mine.sqlite")
    assert not log.exists()
    assert not list(tmp_path.glob("mine.sqlite*"))


def test_one_name_and_one_path_are_not_letters(mine, rows, tmp_path):
    experiment, _ = mine
    path = tmp_path / "mine.sqlite"
    assert join_rows(experiment, "mine", str(rows), path).n_new == 6
    with Store(path) as store:
        assert merge(store, rows).n_known == 6
        assert merge(store, str(rows)).n_known == 6
    experiment.subset(methods=["mine"], n_repeats=1).run(path, isolate=False)
    with Store(path) as store:
        one = scores_beside(store, "mine", "coverage")
        assert one.methods == scores_beside(store, ["mine"], "coverage").methods


def test_a_store_that_exists_gets_all_rows_or_none(mine, rows, tmp_path):
    experiment, _ = mine
    path = tmp_path / "mine.sqlite"
    head, *lines = rows.read_text().splitlines()
    part = tmp_path / "part.csv"
    name = head.split(",").index("method")
    dice = [line for line in lines if line.split(",")[name] == "dice"]
    part.write_text("\n".join([head, *dice]) + "\n")
    join_rows(experiment, "mine", part, path)
    cells = dice[0].split(",")
    cells[head.split(",").index("coverage")] = "0.123"
    others = [line for line in lines if line not in dice]
    rows.write_text("\n".join([head, ",".join(cells), *dice[1:], *others]) + "\n")
    with pytest.raises(StoreError, match="1 results with other values"):
        join_rows(experiment, "mine", rows, path)
    with Store(path, read_only=True) as store:
        assert {run.key.method for run in store.runs()} == {"dice"}


def test_rows_that_contradict_the_store_are_refused(mine, rows, tmp_path):
    experiment, _ = mine
    path = tmp_path / "mine.sqlite"
    join_rows(experiment, ["mine"], [rows], path)
    head, *lines = rows.read_text().splitlines()
    column = head.split(",").index("coverage")
    cells = lines[0].split(",")
    cells[column] = "0.123"
    rows.write_text("\n".join([head, ",".join(cells), *lines[1:]]) + "\n")
    with pytest.raises(StoreError, match="1 results with other values"):
        join_rows(experiment, ["mine"], [rows], path)


def test_a_name_that_is_taken_is_refused(small):
    with pytest.raises(ExperimentError, match=r"already has dice: use another name"):
        small.with_methods({"dice": "imcc"})


def test_methods_without_rows_on_all_data_sets_are_left_out(pets, tmp_path):
    other = pets.renamed("cats")
    experiment = Experiment(
        [pets, other],
        {"mine": DICE, "half": DICE, "whole": DICE, "one": DICE},
        n_repeats=3,
        cv=3,
        allow=ALLOW,
    ).resolve()
    path = tmp_path / "s.sqlite"
    experiment.subset(methods=["mine"], n_repeats=2).run(path, isolate=False)
    experiment.subset(methods=["whole"]).run(path, isolate=False)
    experiment.subset(methods=["half"], datasets=["pets"]).run(path, isolate=False)
    experiment.subset(methods=["one"], n_repeats=1).run(path, isolate=False)
    with Store(path) as store:
        table = scores_beside(store, ["mine"], "one_error")
        assert table.methods == ("mine", "whole", "one")
        assert table.counts.tolist() == [[2, 2, 1]] * 2
        found = compare(table, control="mine", missing="drop")
        assert found.counts.tolist() == [[1, 1, 1]] * 2
        assert scores_beside(store, ["half"], "one_error").datasets == ("pets",)
        assert scores_beside(store, ["half", "one"], "one_error").counts.max() == 1
    with (
        Store.create(tmp_path / "empty.sqlite", experiment) as empty,
        pytest.raises(ExperimentError, match="mine: no split"),
    ):
        scores_beside(empty, ["mine"], "one_error")


# Files of methods


def test_a_file_of_methods(tmp_path):
    (tmp_path / "m.toml").write_text(
        'allow = ["a"]\n[methods.knn]\nestimator = "sklearn.neighbors.KNeighborsClassifier"\n'
    )
    methods, allow = load_methods(tmp_path / "m.toml")
    assert ([m.name for m in methods], allow) == (["knn"], ("a",))
    (tmp_path / "m.json").write_text('{"methods": {"imcc2": {"estimator": "imcc"}}}')
    assert [m.name for m in load_methods(tmp_path / "m.json")[0]] == ["imcc2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a file of methods must have \[methods.NAME\].* it has nothing"),
        ('datasets = ["yeast"]\n[methods.imcc]', "it has datasets, methods"),
        ("[methods", "'m.toml' is not valid TOML"),
        ('[methods.x]\nestimator = "nobody"', "method 'x' must be one of"),
        ('allow = "a b"\n[methods.imcc]', "allow must be names of packages"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, message):
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_methods(tmp_path / "m.toml")
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_methods(tmp_path / "none.toml")


# The command


def call(*arguments, code=0):
    from imcc.cli._app import app

    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(pets_file, tmp_path):
    (tmp_path / "theirs.toml").write_text(
        f'allow = ["imcc_test_methods"]\nn_repeats = 3\ncv = 3\ndatasets = ["{pets_file}"]\n'
        f'[methods.dice]\nestimator = "{DICE}"\n'
        f'[methods.other]\nestimator = "{DICE}"\nparams = {{strength = 2.0}}\n'
    )
    (tmp_path / "mine.toml").write_text(
        'allow = ["imcc_test_methods"]\n'
        f'[methods.mine]\nestimator = "{DICE}"\nparams = {{strength = -1.0}}\n'
    )
    call("experiment", "run", tmp_path / "theirs.toml", "--repeats", 2, "--no-isolate", "--quiet",
         "-o", tmp_path / "theirs.sqlite")  # fmt: skip
    call("experiment", "export", tmp_path / "theirs.sqlite", "-o", tmp_path / "rows.csv")
    return tmp_path


def test_the_command_compares_at_once(files, monkeypatch):
    monkeypatch.chdir(files)
    command = ("experiment", "run", "theirs.toml", "--methods", "mine.toml", "--no-isolate")
    out = call(*command, "--rows", "rows.csv", "-o", "a.sqlite").stdout
    assert "4 results of other methods from rows.csv." in out
    assert "2 of 2 results are in a.sqlite, 2 of them new" in out  # as many splits as the rows have
    for metric in ("one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision"):
        assert re.search(rf"{metric} \(\w+ is better\).* 2 runs\n +mine +dice +other", out)
    assert "No test: at least two data sets are needed." in out
    assert re.search(
        r"\naverage_precision: mine has mean rank [\d.]+ of 3 methods; first is \w+ with [\d.]+\.$",
        out.rstrip(),
    )
    again = call(*command, "--rows", "rows.csv", "-o", "a.sqlite", "--json").stdout
    last = json.loads(again.splitlines()[-1])
    assert (last["computed"], last["left_out"]) == (0, [])
    assert [found["methods"] for found in last["comparison"]] == [["mine", "dice", "other"]] * 5


def test_without_rows_only_the_methods_of_the_file_are_run(files, monkeypatch, pets_file):
    """And no study of another one."""
    monkeypatch.chdir(files)
    with Path("theirs.toml").open("a") as file:
        file.write(f'[sensitivity]\ndatasets = ["{pets_file}"]\n')
    command = ("experiment", "run", "theirs.toml", "--methods", "mine.toml", "--no-isolate")
    out = " ".join(call(*command, "--repeats", 1, "-o", "d.sqlite").stdout.split())
    assert "1 of 1 results are in d.sqlite" in out
    assert "imcc compare d.sqlite" in out
    assert "rank" not in out


def test_the_command_says_who_lacks_rows(files, monkeypatch, pets_file):
    monkeypatch.chdir(files)
    text = (
        Path("theirs.toml")
        .read_text()
        .replace(f'["{pets_file}"]', f'["{pets_file}", {{name = "cats", path = "{pets_file}"}}]')
    )
    Path("theirs.toml").write_text(text)
    call("experiment", "run", "theirs.toml", "--methods", "other", "--datasets", "cats",
         "--repeats", 1, "--no-isolate", "--quiet", "-o", "cats.sqlite")  # fmt: skip
    command = ("experiment", "run", "theirs.toml", "--methods", "mine.toml", "--no-isolate")
    rows = ("--rows", "rows.csv", "--rows", "cats.sqlite", "-o", "a.sqlite")
    out = call(*command, *rows).stdout
    assert "Without rows on all of these data sets, and left out: dice." in out
    assert re.search(r"1 to 2 runs\n +mine +other\n", out)


def test_the_command_refuses_what_makes_no_sense(files, monkeypatch):
    monkeypatch.chdir(files)
    start = ("experiment", "run", "theirs.toml")
    assert "--rows needs --methods" in call(*start, "--rows", "rows.csv", code=2).output
    own = (*start, "--methods", "mine.toml")
    assert "no file none.csv" in call(*own, "--rows", "none.csv", code=1).output
    Path("theirs.toml").write_text("seed = 5\n" + Path("theirs.toml").read_text())
    message = call(*own, "--rows", "rows.csv", "-o", "x.sqlite", code=1).output
    assert "only rows of the same splits" in " ".join(message.split())
