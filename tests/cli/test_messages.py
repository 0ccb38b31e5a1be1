"""What commands say about mistakes, names that do harm, broken pipes and full disks; help."""

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
import warnings

import click
import numpy as np
import pytest
from click.testing import CliRunner

from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc.cli._app import app
from imcc.cli._terminal import print_result, problems_reported
from imcc.datasets import Dataset, read
from imcc.persistence import save_model
from tests.cli.conftest import (
    LABELS,
    NAMED,
    commands,
    flat,
    inside,
    make_data,
    one_setting,
    table,
)
from tests.writers import write


@pytest.fixture
def training(pets):
    return read(pets / "train.csv", labels=list(LABELS))


def test_mistakes_are_told_without_tracebacks(imcc, pets, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "junk.skops").write_bytes(b"\x80\x04junk.")
    (tmp_path / "folder").mkdir()
    model, train = pets / "model.skops", pets / "train.csv"
    out = ("-o", tmp_path / "m.skops")
    cases = [
        (["tune", train], 2, "Missing option '-o'"),
        (["tune", train, *out], 2, "--labels"),
        (["tune", train, "--labels", "nope", *out], 1, "'nope'"),
        (["tune", tmp_path / "no.csv", *NAMED, *out], 1, "no file"),
        (["tune", tmp_path / "empty.csv", *NAMED, *out], 1, "empty"),
        (["tune", "nope", *out], 2, "no data set named 'nope'"),
        (["tune", train, "--labels", "x*", *out], 1, "--labels"),
        (["tune", train, *NAMED, "-o", tmp_path / "folder"], 1, "is a folder"),
        (["tune", train, *NAMED, "-o", tmp_path / "m.pkl"], 2, ".skops"),
        (["tune", train, *NAMED, "-o", tmp_path / "no" / "m.skops"], 1, "no folder"),
        (["predict", tmp_path / "no.skops", train], 1, "No such file"),
        (["predict", tmp_path / "folder", train], 1, "folder"),
        (["predict", tmp_path / "junk.skops", train], 1, "pickle"),
        (["predict", train, train], 1, "not a model file"),
        (["predict", model, tmp_path / "empty.csv"], 1, "empty"),
        (["predict", model, train, "--top", "0"], 2, "--top"),
        (["predict", model], 2, "Missing argument"),
        (["evaluate", model, "yeast"], 2, "fitted to a table"),
    ]
    for arguments, code, message in cases:
        result = imcc(*arguments, code=code)
        assert message in result.stderr.replace("\n", " "), (arguments, result.stderr)
        assert result.stdout == ""
    assert not (tmp_path / "m.skops").exists()


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("predict MODEL NEW --json -o OUT.csv", "--json"),
        ("predict MODEL NEW --proba --scores", "--scores"),
        ("tune TRAIN --labels happy -o OUT.skops --calibrate", "--calibrate"),
        ("tune TRAIN --labels happy -o OUT.skops --model imcc --fast", "--fast"),
        ("tune TRAIN --labels happy -o OUT.skops --model imcc --max-time 5", "--max-time"),
        ("inspect MODEL --schema s.toml", "--schema"),
        ("datasets describe TRAIN --force", "--force"),
        ("datasets describe yeast --unknown-labels", "--unknown-labels"),
        ("report none.sqlite -o tables.tex --published p.csv", "--published"),
        ("report none.sqlite -o tables.tex --control imcc", "--control"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(imcc, pets, tmp_path, words, flag):
    files = {name.upper(): pets / f"{name}.csv" for name in ("new", "train")}
    files |= {"MODEL": pets / "model.skops"}
    files |= {name: tmp_path / name for name in ("OUT.csv", "OUT.skops")}
    assert flag in imcc(*(files.get(word, word) for word in words.split()), code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    words = ["predict", str(tmp_path / "no.skops"), "x.csv"]
    assert "Traceback" not in CliRunner().invoke(app, words).output
    shown = CliRunner().invoke(app, ["--debug", *words]).output
    assert "Traceback" in shown
    assert "No such file" in shown
    monkeypatch.setenv("IMCC_DEBUG", "1")
    assert "Traceback" in CliRunner().invoke(app, words).output


HOSTILE = ("<script>alert(1)</script>", "[bold]x[/red]", "two\nlines", "ü😀", '"q",', "=1+1")
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def test_hostile_names(imcc, tmp_path):
    data = make_data(60)
    Y = np.column_stack([data.Y, 1 - data.Y])
    hostile = Dataset(data.X, Y, ("a,b", "[red]", 'c"d', "e\nf"), HOSTILE, "<b>[bold]")
    write(hostile, tmp_path / "t.npz")
    model = tmp_path / "m.skops"
    imcc("tune", tmp_path / "t.npz", "-o", model, *one_setting())
    assert "[bold]x[/red]" in imcc("inspect", model).stdout
    rows = table(imcc("predict", model, tmp_path / "t.npz").stdout)
    assert rows[0] == [*HOSTILE[:-1], "'=1+1"]
    top = ("predict", model, tmp_path / "t.npz", "--top", 6, "--scores")
    cells = {cell for row in table(imcc(*top).stdout)[1:] for cell in row}
    assert {cell for cell in cells if cell[0] == "'"} == {"'=1+1"}
    assert any(cell[0] == "-" for cell in cells)  # numbers stay numbers
    write(hostile, tmp_path / "t.csv")
    assert table(imcc("predict", model, tmp_path / "t.csv").stdout) == rows
    assert "[bold]x[/red]" in imcc("evaluate", model, tmp_path / "t.csv").stdout


def test_names_do_not_control_the_terminal(imcc, tmp_path):
    """Whatever a file calls its labels, columns and itself: no command prints it as it is."""
    data = make_data(60)
    labels = ("happy", f"sad{ESCAPE}", "hungry")
    hostile = Dataset(data.X, data.Y, ("a", f"b{ESCAPE}", "c", "d"), labels, f"pets{ESCAPE}")
    write(hostile, tmp_path / "t.npz")
    file = tmp_path / f"t{ESCAPE.replace('/', '')}.npz"
    (tmp_path / "t.npz").rename(file)
    model = tmp_path / f"m{ESCAPE}.skops"
    tune = ("tune", file, "-o", model, *one_setting())
    runs = [
        imcc(*tune),
        imcc(*tune, "--json", "--force"),
        imcc(*tune, code=1),
        imcc("inspect", model),
        imcc("inspect", model, "--json"),
        imcc("inspect", model, file, "--html", tmp_path / f"p{ESCAPE.replace('/', '')}.html"),
        imcc("evaluate", model, file),
        imcc("evaluate", model, file, "--json"),
        imcc("predict", model, file, "--json"),
        imcc("predict", model, file, "-o", tmp_path / f"o{ESCAPE}.csv"),
        imcc("predict", model, tmp_path / f"none{ESCAPE}.csv", code=1),
        imcc("predict", file, file, code=1),
        imcc("datasets", "describe", file),
        imcc("datasets", "describe", file, "--json"),
        imcc("datasets", "describe", f"none{ESCAPE}", code=2),
        imcc("datasets", "convert", file, tmp_path / f"u{ESCAPE}.npz"),
        imcc(f"none{ESCAPE}", code=2),
    ]
    for run in runs:
        assert not {c for c in run.stdout + run.stderr if unicodedata.category(c) == "Cc"} - {"\n"}
    assert "sad\\x1b]0;owned\\x07" in runs[6].stdout
    assert json.loads(runs[7].stdout)["labels"][1]["label"] == labels[1]


def test_a_prediction_on_the_screen_is_harmless_and_in_a_file_unchanged(monkeypatch, capsys):
    print_result(f"sad{ESCAPE}\n")
    assert capsys.readouterr().out == f"sad{ESCAPE}\n"
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", screen)
    print_result(f"sad{ESCAPE}\n")
    assert screen.getvalue().startswith("sad\\x1b]0;owned\\x07")
    assert "\x1b" not in screen.getvalue()


def test_a_mistake_of_ours_keeps_its_traceback():
    """Only what users can mend becomes a message: a TypeError is a bug, and looks like one."""

    @click.command()
    def broken():
        with problems_reported():
            raise TypeError("unsupported operand")

    result = CliRunner().invoke(broken)
    assert isinstance(result.exception, TypeError)
    assert "Error:" not in result.output


HINTS = {
    "header = false in the file of --schema": given("header", False),
    "--force": given("overwrite", True),
    "--labels a,b": given("labels", ["a", "b"]),
    "--labels -k": given("labels", text="-k"),
    "--labels 'PREFIX*'": given("label_prefix"),
    "--drop 'a b'": given("drop", ["a b"]),
    'encoding = "latin-1" in the file of --schema': given("encoding", "latin-1"),
    "member = ... in the file of --schema": given("member"),
    '[columns] "a b" = "category" in the file of --schema': given("kinds", {"a b": "category"}),
    '[columns] "day" = { kind = "date", format = "%d.%m.%y" } in the file of --schema': given(
        "date_formats", {"day": "%d.%m.%y"}
    ),
    'missing = ["x"] in the file of --schema': given("missing_words", ["x"]),
    "'imcc datasets convert ... --read index_base=one'": given("index_base", "one"),
    "'imcc datasets convert ... --read max_bytes=...'": given("max_bytes"),
    "trees=False": given("trees", False),
    "'labels='": "'labels='",
}


def test_hints_are_what_can_be_typed():
    """An option of the command, a line of its schema file, or an option of convert."""

    @click.command()
    @click.option("--force", is_flag=True)
    @click.option("--labels")
    @click.option("--drop")
    @click.option("--seed")
    @click.option("--schema")
    def command(**_):
        with problems_reported():
            text = Message(*(part for hint in HINTS.values() for part in (hint, "|")))
            raise InvalidArgumentError("random_state", text)

    result = CliRunner().invoke(command)
    assert result.exit_code == 2
    assert f"--seed {'|'.join(HINTS)}|" in flat(result.output)


@pytest.fixture
def foreign(tmp_path, training):
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(n_estimators=3, random_state=0).fit(training.X, training.Y)
    return save_model(model, tmp_path / "m.skops", training)


def test_foreign_types_are_asked_for(imcc, foreign, pets):
    wrong = imcc("predict", foreign, pets / "new.csv", code=1)
    assert "sklearn.tree._tree.Tree" in wrong.stderr
    assert "--trust" in wrong.stderr
    done = imcc("predict", foreign, pets / "new.csv", "--trust", "sklearn.tree._tree.Tree")
    assert len(table(done.stdout)) == 41


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk(imcc, pets):
    said = imcc("tune", pets / "train.csv", *NAMED, "-o", "/dev/full", *one_setting(), code=1)
    assert "No space left" in said.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "imcc", "datasets", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.path.isfile("/dev/full")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_broken_pipe_is_quiet(pets, tmp_path):
    write(make_data(3000), tmp_path / "many.csv")
    predict = f"{sys.executable} -m imcc predict {pets}/model.skops {tmp_path}/many.csv --scores"
    command = f"{predict} --quiet | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "happy,sad,hungry\n"
    assert done.stderr == ""


def test_interrupted(imcc, pets, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("imcc.tables.TableClassifier.fit", interrupt)
    said = imcc("tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", code=130).stderr
    assert "Interrupted" in said
    assert list(tmp_path.iterdir()) == []


# Help


def test_every_command_has_help_with_examples(imcc):
    for path, command in commands():
        if path and inside(command):
            continue  # a group
        examples = imcc(*path, "--help").stdout.split("Examples:")[1]
        assert " ".join(("imcc", *path)) in " ".join(examples.split())


def test_every_command_that_prints_a_result_can_speak_json():
    options = {path: {o for p in c.params for o in p.opts} for path, c in commands()}
    groups = {path for path, command in commands() if inside(command)}
    silent = {path for path, known in options.items() if "--json" not in known}
    # These have none: they write a file, or answer requests.
    writing = {("report",), ("datasets", "convert"), ("datasets", "example")}
    assert silent - groups == {("serve",), *writing}


def test_the_examples_are_valid(imcc):
    """Every option that an example names is one that the command has."""
    for path, command in commands():
        for line in (command.epilog or "").splitlines():
            for words in re.findall(r"imcc ([a-z]+(?: [a-z]+)*)([^|>]*)", line):
                name = words[0].split()
                found = app
                while name and name[0] in inside(found):
                    found = inside(found)[name.pop(0)]
                known = {opt for p in found.params for opt in (*p.opts, *p.secondary_opts)}
                for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", words[1]):
                    assert option in known, (path, line, option)


def test_without_skops_it_is_said_before_the_work(imcc, pets, tmp_path, monkeypatch):
    for name in ("skops", "skops.io"):
        monkeypatch.setitem(sys.modules, name, None)
    arguments = ["tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops"]
    result = imcc(*arguments, code=1)
    assert "pip install skops" in result.stderr


def test_the_same_warning_is_shown_once(capsys):
    with problems_reported():
        for text in ("first", "second", "first"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["Warning: first", "Warning: second"]
