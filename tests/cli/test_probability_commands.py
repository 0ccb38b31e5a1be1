"""predict --proba, tune --calibrate, and evaluate on these."""

import json

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from imcc import IMCCClassifier
from imcc.datasets import read
from imcc.estimators import (
    MultilabelCalibrator,
    TunedThresholds,
    label_scores,
)
from imcc.inspection import diagnose_probabilities
from imcc.persistence import load_model, read_card, save_model
from tests.cli.conftest import LABELS, make_data, one_setting
from tests.writers import write

pytest.importorskip("skops")
GRID = one_setting("4,8", beta="0.1,1")


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A folder with files of numbers, and a model that was fitted to them, not to a table."""
    folder = tmp_path_factory.mktemp("numbers")
    data = make_data(160)
    for name, part in (("train", data[:120]), ("test", data[120:])):
        write(part, folder / f"{name}.csv")
        write(part, folder / f"{name}.arff")
    lines = (folder / "test.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(",".join(x.split(",")[:4]) for x in lines) + "\n")
    training = read(folder / "train.csv", labels=list(LABELS))
    model = IMCCClassifier(n_clusters=6, random_state=0).fit(training.X, training.Y)
    save_model(model, folder / "model.skops", training)
    return folder


@pytest.fixture(scope="module")
def more(tmp_path_factory):
    """A file with labelled rows that the model was not trained on."""
    file = tmp_path_factory.mktemp("more") / "more.csv"
    write(make_data(200, seed=5), file)
    return file


@pytest.fixture(scope="module")
def rows(more):
    return read(more, labels=list(LABELS))


@pytest.fixture(scope="module")
def calibrated(pets, rows, tmp_path_factory):
    file = tmp_path_factory.mktemp("calibrated") / "calibrated.skops"
    model = MultilabelCalibrator(load_model(pets / "model.skops"), cv="prefit")
    training = read(pets / "train.csv", labels=list(LABELS))
    save_model(model.fit(rows.X, rows.Y), file, training)
    return file


def test_an_evaluation_on_the_training_rows_is_warned_of(imcc, pets):
    start = ("evaluate", pets / "model.skops")
    assert "rows that the model was trained on" in imcc(*start, pets / "train.csv").stderr
    assert imcc(*start, pets / "test.csv").stderr == ""
    # Before the results, where it is seen.
    together = imcc(*start, pets / "train.csv").output
    assert together.index("trained on") < together.index("average_precision")


def test_predict_proba_of_a_model_without_names_the_command(imcc, pets):
    result = imcc("predict", pets / "model.skops", pets / "new.csv", "--proba", code=2)
    said = " ".join(result.stderr.split())
    assert "--proba is for models with probabilities" in said
    assert "MultilabelCalibrator" in said


@pytest.mark.parametrize("extra", [(), ("--thresholds", "f1")], ids=" ".join)
def test_tune_calibrate(imcc, pets, tmp_path, extra):
    from sklearn.model_selection import KFold

    training = read(pets / "train.csv", labels=list(LABELS))
    file = tmp_path / "m.skops"
    imcc("tune", pets / "train.arff", *GRID, "-o", file, "--calibrate", *extra)
    card, found = read_card(file), load_model(file)
    cv = KFold(5, shuffle=True, random_state=0)
    expected = MultilabelCalibrator(IMCCClassifier(**card.params), cv=cv)
    if "--thresholds" in extra:
        expected = TunedThresholds(expected, cv=cv)
        assert card.model == "TunedThresholds(MultilabelCalibrator(IMCCClassifier))"
    expected.fit(training.X, training.Y)
    np.testing.assert_array_equal(
        found.predict_proba(training.X), expected.predict_proba(training.X)
    )
    np.testing.assert_array_equal(found.predict(training.X), expected.predict(training.X))
    assert "cross-validated hamming_loss, before calibration" in card.metrics
    imcc("predict", file, pets / "new.csv", "--proba")


def test_evaluate_judges_probabilities(imcc, pets, calibrated, more, rows):
    found = json.loads(imcc("evaluate", calibrated, pets / "test.csv", "--json").stdout)
    testing = read(pets / "test.csv", labels=list(LABELS))
    model = load_model(calibrated)
    expected = diagnose_probabilities(
        testing.Y,
        model.predict_proba(testing.X),
        label_names=LABELS,
    )
    assert found["probabilities"] == expected.to_dict()
    text = imcc("evaluate", calibrated, pets / "test.csv").stdout
    assert expected.log_loss.text(2) in text
    assert expected.labels[1].brier.text(2) in text
    plain = imcc("evaluate", pets / "model.skops", pets / "test.csv").stdout
    assert "Probabilities" not in plain


def test_evaluate_of_foreign_models(imcc, pets, tmp_path):
    training = read(pets / "train.csv", labels=list(LABELS))
    testing = read(pets / "test.csv", labels=list(LABELS))
    trees = ExtraTreesClassifier(5, random_state=0).fit(training.X, training.Y)
    save_model(trees, tmp_path / "t.skops", training)
    trust = ("--trust", "sklearn.tree._tree.Tree")
    out = imcc("evaluate", tmp_path / "t.skops", pets / "test.csv", "--json", *trust).stdout
    found = json.loads(out)
    # Its scores are probabilities: a label is predicted from 1/2 on, not from 0 on.
    predicted = label_scores(trees, testing.X, 3) >= 0.5
    assert found["metrics"]["hamming_loss"] == pytest.approx(np.mean(predicted != testing.Y))
    assert len(found["probabilities"]["labels"]) == 3
