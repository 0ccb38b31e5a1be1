"""Models at the command line: tune, predict and evaluate."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from imcc import IMCCClassifier
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
    # Numbers are taken as they are, unless they are written as a table.
    holes = make_data(120)
    X = holes.X.copy()
    X[3, 0] = np.nan
    write(Dataset(X, holes.Y, FEATURES, LABELS, "holes"), tmp_path / "holes.arff")
    start = ("tune", "-o", tmp_path / "m.skops", "--force", *one_setting())
    said = imcc(*start, tmp_path / "holes.arff", code=1).stderr
    assert "imcc datasets convert IN OUT.csv" in flat(said)
    imcc("datasets", "convert", tmp_path / "holes.arff", tmp_path / "table.csv")
    imcc(*start, tmp_path / "table.csv", *NAMED)
    out = imcc("predict", tmp_path / "m.skops", tmp_path / "table.csv").stdout
    assert len(table(out)) == 121


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
    small = (*one_setting(8, kernels="linear"), "--folds", "2")
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
    text = imcc(*start).stdout
    assert re.search(r"^hungry +6\*", text, re.M)
    assert "fewer than 10 rows have the label" in text
    text = imcc(*start, "--top", 2).stdout
    assert "2 of 3 labels" in text
    assert re.findall(r"^hungry", text, re.M) == []
    assert "fewer than 10 rows have the label" not in text
    label = found["labels"][0]
    assert label["intervals"]["auc"][0] < label["auc"] < label["intervals"]["auc"][1]
    assert f"{label['auc']:.3f} [{label['intervals']['auc'][0]:.2f}, " in text
    assert "by 500 resamples" in flat(text)


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
    new = write_plain_svmlight(test, tmp_path / "new.svm", base, labelled=False)
    predicted = np.array(table(imcc("predict", model, new).stdout)[1:], dtype=int)
    np.testing.assert_array_equal(predicted, fitted.predict(test.X))
