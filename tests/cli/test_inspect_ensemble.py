"""``imcc inspect`` of an ensemble: its members, and single scores taken apart."""

import json

import pytest

from imcc import KernelEnsembleClassifier
from imcc.datasets import read
from imcc.persistence import save_model
from tests.cli.conftest import LABELS


@pytest.fixture
def training(pets):
    return read(pets / "train.csv", labels=list(LABELS))


@pytest.fixture
def model(training):
    return KernelEnsembleClassifier(
        views=("raw", "ranks"), width_scales=(1.0,), virtual_examples=False, random_state=0
    ).fit(training.X, training.Y)


@pytest.fixture
def file(model, training, tmp_path):
    return save_model(model, tmp_path / "m.skops", training)


def test_members_are_shown(imcc, file, model):
    text = imcc("inspect", file, "--top", 1).stdout
    assert f"Members: 1 of {len(model.members_)}, the heaviest first" in text
    assert "has no virtual examples" not in text
    found = json.loads(imcc("inspect", file, "--json").stdout)
    assert found["inspection"] is None
    assert [m["weight"] for m in found["members"]] == [m["weight"] for m in model.members_]


def test_a_score_is_taken_apart(imcc, file, model, pets):
    rows = read(pets / "test.csv", labels=list(LABELS)).X
    start = ("inspect", file, "--rows", pets / "new.csv", "--row", 5, "--label", "sad")
    score = model.decision_function(rows[5:6])[0, LABELS.index("sad")]
    for by in ("support", "members"):
        (one,) = json.loads(imcc(*start, "--by", by, "--json").stdout)["explanations"]
        assert one["by"] == by
        assert one["score"] == pytest.approx(score)
        total = one["others"] + one["constant"] + sum(part["contribution"] for part in one["parts"])
        assert total == pytest.approx(score, abs=1e-9)
    text = imcc(*start, "--by", "members").stdout
    assert "penalty" in text
    assert "mean row" not in text
    wrong = imcc(*start, "--by", "features", code=2).stderr
    assert "not available for an ensemble" in wrong.replace("\n", " ")
