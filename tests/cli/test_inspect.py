"""``imcc inspect``: what is in a model, and why a row has its scores."""

import json
import re

import numpy as np
import pytest

from imcc import IMCCClassifier, KernelEnsembleClassifier, TableClassifier
from imcc.baselines import BinaryRelevanceSVM
from imcc.datasets import read
from imcc.persistence import load_model, save_model
from imcc.tables import read_table
from imcc.tables._example import write_example
from tests.cli.conftest import LABELS, flat, make_data

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
    lines = (folder / "test.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "one.csv").write_text("".join(lines[:2]), "utf-8")
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
    assert "Label correlations" in text
    found = json.loads(imcc(*start, "--json").stdout)
    assert found["card"]["label_names"] == list(LABELS)
    assert len(found["inspection"]["clusters"]) == 6
    assert found["inspection"]["correlations"]["total"] is None
    assert "2 of 6 clusters" in imcc(*start, "--top", 2).stdout
    assert "clusters at random" in imcc(*start, "--data", pets / "train.csv").stdout
    wrong = imcc(*start, "--data", pets / "test.csv", code=1)
    assert "not the data that the model was trained on" in flat(wrong.stderr)


def test_a_model_without_virtual_examples(imcc, pets, tmp_path, training):
    model = BinaryRelevanceSVM().fit(training.X, training.Y)
    file = save_model(model, tmp_path / "m.skops", training)
    assert "BinaryRelevanceSVM has no virtual examples" in flat(imcc("inspect", file).stdout)
    assert json.loads(imcc("inspect", file, "--json").stdout)["inspection"] is None
    start = ("inspect", file, pets / "new.csv", "--row", 2)
    text = imcc(*start, "--data", pets / "train.csv").stdout
    assert "colour index" in text
    assert "all sets of columns" in text
    assert "not known to be the training data" in imcc(*start).stdout


@pytest.fixture
def ensemble(training, tmp_path):
    model = KernelEnsembleClassifier(views=("raw", "ranks"), random_state=0).fit(
        training.X, training.Y
    )
    return model, save_model(model, tmp_path / "m.skops", training)


def test_members_of_an_ensemble(imcc, ensemble, tmp_path):
    model, file = ensemble
    text = imcc("inspect", file, "--top", 1).stdout
    assert f"Members: 1 of {len(model.members_)}, the heaviest first" in text
    assert "has no virtual examples" not in text
    found = json.loads(imcc("inspect", file, "--json").stdout)
    assert [m["weight"] for m in found["members"]] == [m["weight"] for m in model.members_]


# A row, by the columns of its table


def test_a_row_by_its_id(imcc, tickets):
    table = read_table(tickets / "test.csv")
    name = table["ticket"][4].as_py()
    start = ("inspect", tickets / "model.skops", tickets / "test.csv", "--row", name, "--json")
    found = json.loads(imcc(*start, "--data", tickets / "train.csv").stdout)["explanation"]
    columns, nearest = found["columns"], found["nearest"]
    scores = load_model(tickets / "model.skops").decision_function(table.take([4]))[0]
    assert columns["label_names"] == TICKET_LABELS
    assert columns["scores"] == pytest.approx(scores)
    sums = np.array(columns["baseline"]) + np.sum(columns["contributions"], axis=0)
    assert sums == pytest.approx(scores)
    assert len(nearest["rows"]) == 5
    row = read_table(tickets / "train.csv").slice(nearest["rows"][0], 1).to_pylist()[0]
    assert nearest["names"][0] == row["ticket"]
    assert nearest["labels"][0] == [label for label in TICKET_LABELS if row[label] == "1"]
    assert (
        found
        == json.loads(imcc(*start[:4], 4, "--json", "--data", tickets / "train.csv").stdout)[
            "explanation"
        ]
    )


def test_a_row_is_not_its_own_neighbour(imcc, tickets):
    start = ("inspect", tickets / "model.skops", "--row", 3, "--json")
    train = tickets / "train.csv"
    for files in ((train,), ("--data", train), (train, "--data", train)):
        nearest = json.loads(imcc(*start, *files).stdout)["explanation"]["nearest"]
        assert 3 not in nearest["rows"]


def test_a_row_as_text(imcc, tickets):
    start = ("inspect", tickets / "model.skops", tickets / "train.csv", "--row", 3)
    text = imcc(*start, "--label", "senior", "--data", tickets / "train.csv").stdout
    assert "Row 3, senior: score" in text
    assert "the training data" in text
    # What the columns add, with bars on the side of the sign.
    bars = re.findall(r" ([+-])\d\.\d{3}  \d\.\d{3} +([-+|]+) *$", text, re.M)
    assert len(bars) == 9
    middles = {line.index("|") for line in text.splitlines() if re.search(r"\d  .*\|", line)}
    assert len(middles) == 1
    for sign, bar in bars:
        assert bar in ("|", f"|{bar.strip('|')}" if sign == "+" else f"{bar.strip('|')}|")
    assert "7 others together" in imcc(*start, "--top", 2).stdout


def test_ids_that_occur_twice_are_told_apart_by_number(imcc, tickets, tmp_path):
    lines = (tickets / "test.csv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "new.csv").write_text("".join([*lines, lines[5]]), "utf-8")
    start = ("inspect", tickets / "model.skops", tmp_path / "new.csv", "--row")
    name = read_table(tickets / "test.csv")["ticket"][4].as_py()
    assert "counted from 0: 4, 30" in flat(imcc(*start, name, code=2).stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv", "--row", "T-x"], "no row with this id or number"),
        (["train.csv", "--row", "80"], "there are 80 rows"),
        (["train.csv", "--row", "1", "--label", "none"], "--label must be one of"),
        (["one.csv", "--row", "0"], "--data is needed"),
        (["train.csv"], "say which with --row"),
        (["--label", "senior"], "say which with --row"),
        (["--row", "1"], "name the file after the model"),
    ],
)
def test_what_is_wrong(imcc, tickets, arguments, message, monkeypatch):
    monkeypatch.chdir(tickets)
    result = imcc("inspect", "model.skops", *arguments, code=2)
    assert message in flat(result.stderr)
    assert result.stdout == ""


def test_a_row_of_an_array(imcc, pets, tmp_path):
    """The names of its columns are in the card."""
    data = make_data(160)[:120]
    model = IMCCClassifier(4, random_state=0).fit(data.X, data.Y)
    file = save_model(model, tmp_path / "m.skops", data)
    assert "colour index" in imcc("inspect", file, pets / "new.csv", "--row", 2).stdout


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
    for wrong in (("--row", 0), ("--label", "refund")):
        imcc(*start, tickets / "test.csv", "--html", tmp_path / "x.html", *wrong, code=2)


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


def test_costs_of_errors(imcc, ensemble, tmp_path):
    _, file = ensemble
    start = ("inspect", file, "--html", tmp_path / "p.html", "--force", "-q")

    def costs(*options):
        imcc(*start, *options)
        data = re.search(r'id="data">(.*?)</script>', (tmp_path / "p.html").read_text("utf-8"))
        return [label["cost"] for label in json.loads(data[1])["labels"]]

    every = len(LABELS)
    assert costs() == [None] * every
    assert costs("--costs", "1,5") == [[1, 5]] * every
    named = f"{LABELS[1]}=20,0.5"
    assert costs("--costs", named)[:2] == [[1, 1], [20, 0.5]]
    assert costs("--costs", named, "--costs", "1,5") == [[1, 5], [20, 0.5], *[[1, 5]] * (every - 2)]
    for wrong in ("1", "1,x", "-1,2", "nan,1", "other=1,2"):
        assert "costs" in imcc(*start, f"--costs={wrong}", code=2).stderr
    assert "--html" in imcc("inspect", file, "--costs", "1,5", code=2).stderr
