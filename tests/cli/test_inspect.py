"""``imcc inspect``: what is in a model, and the page about it."""

import json

import pytest

from imcc import IMCCClassifier, KernelEnsembleClassifier, TableClassifier
from imcc.baselines import BinaryRelevanceSVM
from imcc.datasets import read
from imcc.persistence import save_model
from imcc.tables import read_table
from imcc.tables._example import write_example
from tests.cli.conftest import LABELS, flat

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

TICKET_LABELS = ["complaint", "refund", "upgrade", "senior", "remote", "praise"]


@pytest.fixture
def training(pets):
    return read(pets / "train.csv", labels=list(LABELS))


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    """Support tickets as CSV, and a model of them."""
    folder = tmp_path_factory.mktemp("tickets")
    write_example(folder / "train.csv", 80, seed=1)
    write_example(folder / "test.csv", 30, seed=2)
    table = read_table(folder / "train.csv")
    labels = table.select(TICKET_LABELS).to_pandas().astype(int)
    model = TableClassifier(IMCCClassifier(6, random_state=0), random_state=0)
    save_model(model.fit(table.drop_columns(TICKET_LABELS), labels), folder / "model.skops")
    return folder


# A model


def test_a_model(imcc, pets):
    start = ("inspect", pets / "model.skops")
    text = imcc(*start).stdout
    assert "6 of 6 clusters" in text
    found = json.loads(imcc(*start, "--json").stdout)
    assert found["card"]["label_names"] == list(LABELS)
    assert len(found["inspection"]["sizes"]) == 6
    assert found["inspection"]["correlations"]["total"] is None
    assert "--html" in imcc(*start, pets / "train.csv", code=2).stderr
    assert "--schema" in imcc(*start, "--schema", "x.toml", code=2).stderr


def test_a_model_without_virtual_examples(imcc, pets, tmp_path, training):
    model = BinaryRelevanceSVM().fit(training.X, training.Y)
    file = save_model(model, tmp_path / "m.skops", training)
    assert "BinaryRelevanceSVM has no virtual examples" in flat(imcc("inspect", file).stdout)
    assert json.loads(imcc("inspect", file, "--json").stdout)["inspection"] is None


@pytest.fixture
def ensemble(training, tmp_path):
    model = KernelEnsembleClassifier(views=("raw", "ranks"), random_state=0).fit(
        training.X, training.Y
    )
    return model, save_model(model, tmp_path / "m.skops", training)


def test_members_of_an_ensemble(imcc, ensemble, tmp_path):
    model, file = ensemble
    text = imcc("inspect", file).stdout
    shown = min(10, len(model.members_))
    assert f"Members: {shown} of {len(model.members_)}, the heaviest first" in text
    assert "has no virtual examples" not in text
    found = json.loads(imcc("inspect", file, "--json").stdout)
    assert [m["weight"] for m in found["members"]] == [m["weight"] for m in model.members_]


# A page


def test_a_page(imcc, tickets, tmp_path):
    start = ("inspect", tickets / "model.skops")
    done = imcc(*start, tickets / "test.csv", "--html", tmp_path / "page.html")
    assert "Wrote" in done.stderr
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "30 given rows" in page
    ids = read_table(tickets / "test.csv")["ticket"].to_pylist()
    assert sum(name in page for name in ids) > 5  # of rows with errors
    again = imcc(*start, tickets / "test.csv", "--html", tmp_path / "page.html", code=1)
    assert "--force" in again.stderr
    # A model that keeps no held-out probabilities needs rows.
    assert "held-out" in flat(imcc(*start, "--html", tmp_path / "x.html", code=2).stderr)
    assert not (tmp_path / "x.html").exists()


def test_a_page_without_rows(imcc, ensemble, pets, tmp_path):
    _, file = ensemble
    found = json.loads(imcc("inspect", file, "--html", tmp_path / "p.html", "--json").stdout)
    assert found["page"] == str(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text("utf-8")
    assert "are not in this file" in page
    assert all(name in page for name in LABELS)
    # The training rows are recognised.
    imcc("inspect", file, pets / "train.csv", "--html", tmp_path / "p.html", "--force", "--quiet")
    assert "held-out rows" in (tmp_path / "p.html").read_text("utf-8")
