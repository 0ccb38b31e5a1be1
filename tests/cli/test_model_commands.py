import io
import json
import os
import re
import subprocess
import sys
import unicodedata
import warnings
from concurrent.futures import ThreadPoolExecutor

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc.cli._app import app
from imcc.cli._terminal import print_result, problems_reported
from imcc.datasets import Dataset, load_dataset, read
from imcc.estimators import MultilabelCalibrator
from imcc.metrics import METRICS
from imcc.metrics import evaluate as evaluate_metrics
from imcc.persistence import load_model, read_card, save_model
from tests.cli.conftest import FEATURES, LABELS, NAMED, flat, invoke, make_data, one_setting, table
from tests.writers import write

GRID = one_setting("4,8", beta="0.1,1")


def frame(X):
    """Return rows as a table, which models of CSV files take."""
    return pd.DataFrame(X, columns=list(FEATURES))


@pytest.fixture
def training(pets):
    return read(pets / "train.csv", labels=list(LABELS))


@pytest.fixture
def testing(pets):
    return read(pets / "test.csv", labels=list(LABELS))


@pytest.fixture(scope="module")
def tuned(pets, tmp_path_factory):
    """A model of the best of a few settings."""
    file = tmp_path_factory.mktemp("tuned") / "m.skops"
    invoke("tune", pets / "train.csv", *NAMED, *GRID, "-o", file)
    return file


# tune


def test_tune_is_the_search(imcc, pets, tmp_path, training):
    model = tmp_path / "m.skops"
    out = json.loads(imcc("tune", pets / "train.csv", *NAMED, *GRID, "-o", model, "--json").stdout)
    card = read_card(model)
    assert out["settings"] == 4
    assert out["params"] == card.params
    assert out["label_names"] == list(LABELS)
    assert card.feature_names == FEATURES
    assert len(card.fingerprint) == 64
    assert set(card.metrics) == {f"cross-validated {name}" for name in METRICS}
    found = load_model(model)
    features = found.estimator_["table"].transform(frame(training.X))
    again = IMCCClassifier(**card.params).fit(features, training.Y)
    np.testing.assert_allclose(
        found.decision_function(frame(training.X)), again.decision_function(features), atol=1e-12
    )
    assert [column["kind"] for column in out["schema"]["columns"]] == ["number"] * 4 + ["label"] * 3


@pytest.mark.parametrize(
    "changed",
    [
        ("--metric", "one_error", "--set", "betas=0.001,1000"),
        ("--set", "betas=100"),
        ("--set", "n_clusters=2"),
        ("--set", "kernels=linear,"),
        ("--thresholds", "micro_f1"),
        ("--thresholds", "f1", "--folds", "3"),
        ("--calibrate",),
        ("--folds", "3"),
        ("--seed", "7"),
    ],
    ids=" ".join,
)
def test_every_option_of_tune_counts(imcc, pets, tmp_path, tuned, changed):
    model = tmp_path / "m.skops"
    imcc("tune", pets / "train.csv", *NAMED, *GRID, "-o", model, *changed)
    cards = read_card(tuned), read_card(model)
    models = load_model(tuned), load_model(model)
    X = frame(make_data(30, seed=9).X)
    same = np.array_equal(*(m.decision_function(X) for m in models))
    same &= np.array_equal(*(m.predict(X) for m in models))
    assert not same or cards[0].metrics != cards[1].metrics


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("betas=-1", "betas must be"),
        ("beta=1", "Invalid parameter 'beta'"),
        ("betas", "not a name and a value"),
        ("cv=3", "--folds"),
        ("random_state=3", "--seed"),
        ("scoring=coverage", "--metric"),
        ("grid=small", "grid must be"),
        ("kernels=x", "kernel"),
        ("n_clusters__x=1", "n_clusters__x"),
        ("device=nonsense", "device"),
    ],
)
def test_the_estimator_checks_its_parameters(imcc, pets, tmp_path, setting, message):
    start = ("tune", pets / "train.csv", *NAMED, "--model", "imcc", "-o", tmp_path / "m.skops")
    assert message in flat(imcc(*start, "-q", "--set", setting, code=2).stderr)
    assert not (tmp_path / "m.skops").exists()


def test_parameters_of_the_ensemble(imcc, pets, tmp_path):
    few = ("views=raw", "linear=false", "max_memory=4e9")
    settings = [word for setting in few for word in ("--set", setting)]
    imcc("tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", *settings)
    params = read_card(tmp_path / "m.skops").params
    assert (params["views"], params["linear"], params["max_memory"]) == ("raw", False, 4e9)


def test_folds_are_those_of_all_cross_validations(imcc, tmp_path):
    """Of the search, and of the thresholds around it."""
    write(make_data(60), tmp_path / "t.arff")
    start = ("tune", tmp_path / "t.arff", "-o", tmp_path / "m.skops", "--force")
    for model in (("--model", "imcc", *GRID), ("--set", "views=raw")):
        imcc(*start, *model, "--folds", "3", "--thresholds", "f1")
        assert load_model(tmp_path / "m.skops").cv.n_splits == 3


def test_one_label_is_chosen_by_its_decisions(imcc, pets, tmp_path):
    start = ("tune", pets / "train.csv", "--labels", "sad", *GRID, "-o", tmp_path / "m.skops")
    found = json.loads(imcc(*start, "--json").stdout)
    assert list(found["metrics"]) == ["cross-validated hamming_loss"]
    assert "one_error" in imcc(*start, "--force", "--metric", "one_error", code=2).stderr


def test_missing_values(imcc, tmp_path, pets):
    lines = (pets / "train.csv").read_text().splitlines()
    lines[3] = "?," + lines[3].split(",", 1)[1]
    (tmp_path / "holes.csv").write_text("\n".join(lines))
    start = ("tune", tmp_path / "holes.csv", *NAMED, "-o", tmp_path / "m.skops", *one_setting())
    imcc(*start)
    out = imcc("predict", tmp_path / "m.skops", tmp_path / "holes.csv").stdout
    assert len(table(out)) == 121
    for option in ("--fill-missing", "--scale"):
        assert option in imcc(*start, "--force", option, code=2).stderr
    # A data set of numbers is taken as it is.
    holes = make_data(120)
    X = holes.X.copy()
    X[3, 0] = np.nan
    write(Dataset(X, holes.Y, FEATURES, LABELS, "holes"), tmp_path / "holes.arff")
    start = ("tune", tmp_path / "holes.arff", "-o", tmp_path / "a.skops", *one_setting())
    assert "--fill-missing" in imcc(*start, code=1).stderr
    scores = []
    for scaled in ((), ("--scale",)):
        imcc(*start, "--fill-missing", "--force", *scaled)
        predicting = ("predict", tmp_path / "a.skops", tmp_path / "holes.arff", "--scores")
        scores.append(table(imcc(*predicting).stdout))
    assert len(scores[0]) == 121
    assert scores[0] != scores[1]


def test_files_are_not_written_over(imcc, pets, tmp_path):
    model = tmp_path / "m.skops"
    model.write_text("precious")
    start = ("tune", pets / "train.csv", *NAMED, "-o", model, *one_setting())
    assert "--force" in imcc(*start, code=1).stderr
    assert model.read_text() == "precious"
    imcc(*start, "--force")
    assert read_card(model).n_rows == 120


def test_quiet_and_stdin(imcc, pets, tmp_path):
    text = (pets / "train.csv").read_text()
    start = ("tune", "-", *NAMED, "-o", tmp_path / "m.skops", *one_setting(6), "--quiet")
    assert imcc(*start, stdin=text).output == ""
    X = frame(make_data(10, seed=3).X)
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.skops").decision_function(X),
        load_model(pets / "model.skops").decision_function(X),
    )


def test_named_data_and_arff(imcc, tmp_path):
    small = (*one_setting(8), "--folds", "2")
    done = imcc("tune", "yeast", *small, "-o", tmp_path / "y.skops", "--json")
    assert json.loads(done.stdout)["data_name"] == "yeast"
    done = imcc("evaluate", tmp_path / "y.skops", "yeast", "--json")
    assert json.loads(done.stdout)["metrics"]["average_precision"] > 0.7
    yeast = load_dataset("yeast")[:300]
    write(yeast, tmp_path / "my.arff")
    (tmp_path / "my.xml").rename(tmp_path / "labels.xml")
    start = ("tune", tmp_path / "my.arff", "--labels", tmp_path / "labels.xml", *small)
    imcc(*start, "-o", tmp_path / "a.skops")
    done = imcc("predict", tmp_path / "a.skops", tmp_path / "my.arff")
    assert table(done.stdout)[0] == list(yeast.label_names)
    assert "300 rows" in imcc("evaluate", tmp_path / "a.skops", tmp_path / "my.arff").stdout


@pytest.fixture
def pipe(tmp_path):
    """A named pipe: what is read from it is gone, so a second reading would find nothing."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_model_is_read_once(imcc, pets, pipe, command):
    expected = imcc(command, pets / "model.skops", pets / "test.csv").stdout
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.write_bytes, (pets / "model.skops").read_bytes())
        assert imcc(command, pipe, pets / "test.csv").stdout == expected
        written.result(timeout=30)


# predict


def test_predict(imcc, pets, testing):
    model = load_model(pets / "model.skops")
    start = ("predict", pets / "model.skops", pets / "new.csv")
    rows = table(imcc(*start).stdout)
    assert rows[0] == list(LABELS)
    np.testing.assert_array_equal(np.array(rows[1:], dtype=int), model.predict(frame(testing.X)))
    rows = table(imcc(*start, "--scores").stdout)
    assert rows[0] == list(LABELS)
    scores = model.decision_function(frame(testing.X))
    np.testing.assert_array_equal(np.array(rows[1:], dtype=float), scores)
    rows = table(imcc(*start, "--top", 2).stdout)
    assert rows[0] == ["label1", "label2"]
    order = np.argsort(-scores, axis=1)[:, :2]
    assert rows[1:] == [[LABELS[j] for j in row] for row in order]
    assert table(imcc(*start, "--top", 2, "-o", "-").stdout) == rows
    rows = table(imcc(*start, "--top", 9, "--scores").stdout)
    assert rows[0] == ["label1", "score1", "label2", "score2", "label3", "score3"]
    assert float(rows[1][1]) == scores[0].max()


def test_predict_into_files(imcc, pets, tmp_path):
    start = ("predict", pets / "model.skops", pets / "new.csv")
    for name in ("out.csv", "out.json", "out"):
        result = imcc(*start, "-o", tmp_path / name)
        assert result.stdout == ""
        assert "40 rows written" in result.stderr
    assert len(json.loads((tmp_path / "out.json").read_text())) == 40
    assert (tmp_path / "out").read_text() == (tmp_path / "out.csv").read_text()
    assert "--force" in imcc(*start, "-o", tmp_path / "out.csv", code=1).stderr
    assert imcc(*start, "-o", tmp_path / "out.csv", "--force", "--quiet").output == ""
    for name in ("out.xlsx", "out.csv.gz"):
        assert "parquet" in imcc(*start, "-o", tmp_path / name, code=2).stderr
        assert not (tmp_path / name).exists()


def test_columns_are_matched_by_name(imcc, pets, tmp_path):
    expected = imcc("predict", pets / "model.skops", pets / "new.csv").stdout
    rows = table((pets / "new.csv").read_text())
    turned = "\n".join(",".join(reversed(row)) for row in rows)
    (tmp_path / "turned.csv").write_text(turned)
    assert imcc("predict", pets / "model.skops", tmp_path / "turned.csv").stdout == expected
    assert imcc("predict", pets / "model.skops", "-", stdin=turned).stdout == expected
    (tmp_path / "more.csv").write_text("\n".join(f"{','.join(row)},x" for row in rows))
    wrong = imcc("predict", pets / "model.skops", tmp_path / "more.csv", code=1)
    assert re.search(r"1 column.*unknown to the model: 'x'.*--ignore-extra", wrong.stderr, re.S)
    more = imcc("predict", pets / "model.skops", tmp_path / "more.csv", "--ignore-extra")
    assert more.stdout == expected
    (tmp_path / "less.csv").write_text("\n".join(",".join(row[:2]) for row in rows))
    wrong = imcc("predict", pets / "model.skops", tmp_path / "less.csv", code=1)
    assert "missing: 'colour index', 'age'" in wrong.stderr.replace("\n", " ")
    one = "\n".join(",".join(row) for row in rows[:2])
    assert (
        imcc("predict", pets / "model.skops", "-", stdin=one).stdout.splitlines()
        == (expected.splitlines()[:2])
    )


def test_a_model_of_one_class_a_row(imcc, tmp_path, training, pets):
    words = np.array(["cat", "dog", "emu"])[training.Y[:, 0] + training.Y[:, 1]]
    model = IMCCClassifier(n_clusters=4, random_state=0)
    model = MultilabelCalibrator(model, cv=3).fit(frame(training.X), words)
    save_model(model, tmp_path / "m.skops")
    rows = table(imcc("predict", tmp_path / "m.skops", pets / "new.csv").stdout)
    assert rows[0] == ["class"]
    assert {row[0] for row in rows[1:]} <= {"cat", "dog", "emu"}
    for option in ("--scores", "--proba"):
        rows = table(imcc("predict", tmp_path / "m.skops", pets / "new.csv", option).stdout)
        assert rows[0] == ["cat", "dog", "emu"]
    np.testing.assert_allclose(np.array(rows[1:], dtype=float).sum(axis=1), 1)
    assert json.loads(imcc("predict", tmp_path / "m.skops", pets / "new.csv", "--json").stdout)
    assert (
        "one class per row"
        in imcc("evaluate", tmp_path / "m.skops", pets / "test.csv", code=2).stderr
    )


def test_a_model_of_data_frames(imcc, tmp_path, training, testing, pets):
    X, Y = pd.DataFrame(training.X, columns=FEATURES), pd.DataFrame(training.Y, columns=LABELS)
    model = IMCCClassifier(n_clusters=6, random_state=0).fit(X, Y)
    save_model(model, tmp_path / "m.skops")
    result = imcc("predict", tmp_path / "m.skops", pets / "new.csv")
    found = np.array(table(result.stdout)[1:], dtype=int)
    np.testing.assert_array_equal(found, model.predict(frame(testing.X)))
    assert result.stderr == ""


# evaluate


def test_evaluate(imcc, pets, testing):
    model = load_model(pets / "model.skops")
    start = ("evaluate", pets / "model.skops", pets / "test.csv")
    found = json.loads(imcc(*start, "--json").stdout)
    assert found["metrics"] == evaluate_metrics(
        testing.Y, model.decision_function(frame(testing.X))
    )
    assert [label["label"] for label in found["labels"]] == list(LABELS)
    assert [label["support"] for label in found["labels"]] == testing.Y.sum(axis=0).tolist()
    text = imcc(*start, "--top", 2).stdout
    assert "2 of 3 labels" in text
    assert re.findall(r"^hungry", text, re.M) == []
    assert "fewer than 10 rows have the label" in text
    assert "hungry (6)" in text
    label = found["labels"][0]
    assert label["intervals"]["auc"][0] < label["auc"] < label["intervals"]["auc"][1]
    assert f"{label['auc']:.3f} [{label['intervals']['auc'][0]:.2f}, " in text
    assert "by 50 resamples" in flat(imcc(*start, "--resamples", 50).stdout)
    assert "[" not in imcc(*start, "--resamples", 0).stdout


def test_evaluate_with_thresholds_judges_the_decisions(imcc, pets, tmp_path, testing):
    file = tmp_path / "m.skops"
    imcc("tune", pets / "train.csv", *NAMED, *one_setting(), "-o", file, "--thresholds", "f1")
    model = load_model(file)
    found = json.loads(imcc("evaluate", file, pets / "test.csv", "--json").stdout)
    wrong = np.mean(model.predict(frame(testing.X)) != testing.Y)
    assert found["metrics"]["hamming_loss"] == pytest.approx(wrong)
    assert [x["threshold"] for x in found["labels"]] == model.estimator_[-1].thresholds_.tolist()
    scores = evaluate_metrics(testing.Y, model.decision_function(frame(testing.X)))
    assert found["metrics"]["average_precision"] == scores["average_precision"]


def test_evaluate_wants_the_labels(imcc, pets, tmp_path):
    wrong = imcc("evaluate", pets / "model.skops", pets / "new.csv", code=1)
    assert "'happy'" in wrong.stderr
    rows = table((pets / "test.csv").read_text())
    turned = "\n".join(",".join(reversed(row)) for row in rows)
    first = imcc("evaluate", pets / "model.skops", pets / "test.csv", "--json").stdout
    second = imcc("evaluate", pets / "model.skops", "-", "--json", stdin=turned).stdout
    assert json.loads(first)["metrics"] == pytest.approx(json.loads(second)["metrics"])


# Trouble


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
        (["predict", tmp_path / "no.skops", train], 1, "there is no file"),
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
        ("tune TRAIN --labels happy -o OUT.skops --scale", "--scale"),
        ("tune TRAIN --labels happy -o OUT.skops --model imcc --fast", "--fast"),
        ("tune TRAIN --labels happy -o OUT.skops --model imcc --max-time 5", "--max-time"),
        ("inspect MODEL --schema s.toml", "--schema"),
        ("datasets describe TRAIN --force", "--force"),
        ("datasets describe yeast --unknown-labels", "--unknown-labels"),
        ("compare none.sqlite --published p.csv --control imcc", "--control"),
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
    assert "Error: there is no file" in shown
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
    start = ("inspect", model, "--data", tmp_path / "t.npz", "--row", 0)
    assert "two" in imcc(*start, "--label", "two\nlines").stdout


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
        imcc("inspect", model, file, "--row", 0, "--label", labels[1]),
        imcc("inspect", model, file, "--row", 0, "--label", f"no{ESCAPE}", code=2),
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
    assert "sad\\x1b]0;owned\\x07" in runs[7].stdout
    assert json.loads(runs[8].stdout)["labels"][1]["label"] == labels[1]


def test_a_prediction_on_the_screen_is_harmless_and_in_a_file_unchanged(
    imcc, tmp_path, monkeypatch
):
    data = make_data(60)
    hostile = Dataset(data.X, data.Y, FEATURES, ("happy", f"sad{ESCAPE}", "hungry"))
    write(hostile, tmp_path / "t.npz")
    imcc("tune", tmp_path / "t.npz", "-o", tmp_path / "m.skops", *one_setting())
    printed = imcc("predict", tmp_path / "m.skops", tmp_path / "t.npz").stdout
    assert ESCAPE in printed
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", screen)
    print_result(printed)
    assert screen.getvalue().startswith("happy,sad\\x1b]0;owned\\x07")
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


def test_labels_that_never_or_always_occur(imcc, tmp_path):
    data = make_data(60)
    Y = data.Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    write(Dataset(data.X, Y, FEATURES, LABELS), tmp_path / "t.csv")
    model = tmp_path / "m.skops"
    start = ("tune", tmp_path / "t.csv", *NAMED, *GRID, "-o", model)
    imcc(*start, "--thresholds", "f1")
    rows = table(imcc("predict", model, tmp_path / "t.csv").stdout)[1:]
    assert {row[0] for row in rows} == {"0"}
    assert {row[1] for row in rows} == {"1"}
    assert "-" in imcc("evaluate", model, tmp_path / "t.csv").stdout
    json.loads(imcc("evaluate", model, tmp_path / "t.csv", "--json").stdout)
    imcc("inspect", model)


def test_one_row(imcc, tmp_path):
    write(make_data(1), tmp_path / "one.csv")
    start = ("tune", tmp_path / "one.csv", *NAMED, "-o", tmp_path / "m.skops")
    assert "the table has a single row" in flat(imcc(*start, *one_setting(1), code=1).stderr)
    write(make_data(1), tmp_path / "one.arff")
    start = ("tune", tmp_path / "one.arff", "-o", tmp_path / "m.skops")
    assert "splits" in imcc(*start, *one_setting(1), code=2).stderr


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


def inside(group):
    """The commands of a group by name; none of a command that is no group."""
    if not hasattr(group, "list_commands"):
        return {}
    context = click.Context(group)
    return {name: group.get_command(context, name) for name in group.list_commands(context)}


def commands(group=app, path=()):
    yield path, group
    for name, command in inside(group).items():
        yield from commands(command, (*path, name))


def test_every_command_has_help_with_examples(imcc):
    for path, command in commands():
        if path and inside(command):
            continue  # a group
        examples = imcc(*path, "--help").stdout.split("Examples:")[1]
        assert " ".join(("imcc", *path)) in " ".join(examples.split())


def test_every_command_can_speak_json():
    options = {path: {o for p in c.params for o in p.opts} for path, c in commands()}
    groups = {path for path, command in commands() if inside(command)}
    silent = {path for path, known in options.items() if "--json" not in known}
    assert silent - groups == {("serve",)}  # which has no result to print


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


LINEAR = one_setting(kernels="linear")


def write_plain_svmlight(data, path, base, labelled=True):
    """Write rows as other programs do: no header, so that nothing says where the indices begin."""
    lines = []
    for row, labels in zip(data.X, data.Y, strict=True):
        cells = [f"{j + base}:{value!r}" for j, value in enumerate(row.tolist()) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(labels))) * labelled, *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("base", [0, 1])
def test_svmlight_files_keep_the_index_base_of_the_model(imcc, training, testing, tmp_path, base):
    train = write_plain_svmlight(training, tmp_path / "train.svm", base)
    model = tmp_path / "model.skops"
    said = imcc("tune", train, "-o", model, *LINEAR).stderr
    assert ("index_base" in said) == bool(base)  # 1 is a guess
    assert read_card(model).columns["index_base"] == base
    # No index 0 occurs in the test rows, so nothing in them says where they are counted from.
    X = testing.X.copy()
    X[:, 0] = 0
    test = Dataset(X, testing.Y)
    assert test.Y.sum(axis=0).min() > 0
    file = write_plain_svmlight(test, tmp_path / "test.svm", base)
    shown = json.loads(imcc("evaluate", model, file, "--json").stdout)["metrics"]
    fitted = load_model(model)
    expected = evaluate_metrics(test.Y, fitted.decision_function(test.X))
    assert shown["average_precision"] == pytest.approx(expected["average_precision"])
    # Without labels, and as .npz.
    new = write_plain_svmlight(test, tmp_path / "new.svm", base, labelled=False)
    predicted = np.array(table(imcc("predict", model, new).stdout)[1:], dtype=int)
    np.testing.assert_array_equal(predicted, fitted.predict(test.X))
    np.savez(tmp_path / "new.npz", X=test.X)
    assert imcc("predict", model, tmp_path / "new.npz").stdout == imcc("predict", model, new).stdout


def test_the_same_warning_is_shown_once(capsys):
    with problems_reported():
        for text in ("first", "second", "first"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["Warning: first", "Warning: second"]
