"""``imcc inspect MODEL DATA --row ID``: what drove a score, in terms of the table's columns."""

import json
import re

import pytest

from imcc.baselines import BinaryRelevanceSVM
from imcc.cli._row import signed_bar, signed_number
from imcc.persistence import load_model, save_model
from imcc.tables import read_table
from imcc.tables._example import write_example
from tests.cli.conftest import invoke, one_setting

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

LABELS = ["complaint", "refund", "upgrade", "senior", "remote", "praise"]
QUICK = ("--background-rows", 10, "--evaluations", 600)


def flat(text):
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Support tickets as CSV, and a model of them."""
    folder = tmp_path_factory.mktemp("tickets")
    write_example(folder / "train.csv", 120, seed=1)
    write_example(folder / "test.csv", 30, seed=2)
    lines = (folder / "test.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "one.csv").write_text("".join(lines[:2]), "utf-8")
    start = ("tune", folder / "train.csv", "--labels", ",".join(LABELS), *one_setting(6))
    invoke(*start, "-o", folder / "model.skops")
    return folder


@pytest.fixture
def inspect(folder, imcc):
    def run(*arguments, **options):
        return imcc("inspect", folder / "model.skops", *QUICK, *arguments, **options)

    return run


def test_a_row_by_its_id(inspect, folder):
    table = read_table(folder / "test.csv")
    name = table["ticket"][4].as_py()
    start = (folder / "test.csv", "--row", name, "--data", folder / "train.csv")
    found = json.loads(inspect(*start, "--json").stdout)["row"]
    model = load_model(folder / "model.skops")
    scores = model.decision_function(table.take([4]))[0]
    assert [one["label"] for one in found["columns"]["labels"]] == LABELS
    for one, score in zip(found["columns"]["labels"], scores, strict=True):
        assert one["score"] == pytest.approx(score)
        total = one["baseline"] + sum(part["contribution"] for part in one["columns"])
        assert total == pytest.approx(score)
    assert found["background"].startswith("10 of 120 rows of train.csv, the training data")
    assert "training data" in found["nearest_in"]
    assert len(found["nearest"]) == 5
    first = found["nearest"][0]
    row = read_table(folder / "train.csv").slice(first["row"], 1).to_pylist()[0]
    assert first["name"] == row["ticket"]
    assert first["values"]["plan"] in (row["plan"], "missing")
    assert first["labels"] == [label for label in LABELS if row[label] == "1"]
    assert "its cluster" in found["group"]["name"]
    again = json.loads(inspect(*start, "--json", "--seed", 1).stdout)["row"]
    assert again["columns"]["labels"][0]["baseline"] != found["columns"]["labels"][0]["baseline"]


def test_a_row_is_not_its_own_neighbour(inspect, folder):
    start = (folder / "train.csv", "--row", 3, "--json")
    for more in ((), ("--data", folder / "train.csv")):
        nearest = json.loads(inspect(*start, *more).stdout)["row"]["nearest"]
        assert 3 not in [one["row"] for one in nearest]


def test_as_text(inspect, folder):
    start = (folder / "train.csv", "--row", 3)
    text = inspect(*start, "--label", "senior", "--label", "remote").stdout
    assert text.count("background mean") == 2
    assert "Row 3, senior: score" in text
    assert "Background: 10 of 120 rows of" in text
    assert "train.csv, the training data" in text
    # What the columns add, with bars on the side of the sign.
    for sign, bar in re.findall(r" ([+-])\d\.\d{3}  \d\.\d{3} +([-+|]+)$", text, re.M):
        assert bar in ("|", f"|{bar.strip('|')}" if sign == "+" else f"{bar.strip('|')}|")
    assert "Virtual examples" not in text
    assert "choose one with --label" in flat(inspect(*start).stdout)
    few = inspect(*start, "--top", 2, "--nearest", 1).stdout
    assert "7 others together" in few
    assert few.count("T-01") == 1
    pooled = inspect(*start, "--columns", 3).stdout
    assert "7 other columns" in pooled


def test_signed_bars():
    assert signed_bar(0.26, 0.5, 4) == "    |++"
    assert signed_bar(-0.5, 0.5, 4) == "----|"
    assert signed_bar(0.0, 0.0, 4) == "    |"


def test_signed_numbers_have_no_negative_zero():
    assert [signed_number(x) for x in (-1e-17, 0.0, -0.0006, 1.25)] == [
        "+0.000",
        "+0.000",
        "-0.001",
        "+1.250",
    ]


def test_the_background(inspect, folder):
    other = inspect(folder / "test.csv", "--row", 0).stdout
    assert "test.csv, not the training data" in other
    given = inspect(
        folder / "one.csv", "--row", 0, "--background", folder / "test.csv", "--json"
    ).stdout
    found = json.loads(given)["row"]
    assert found["background"].startswith("10 of 30 rows of")
    assert "test.csv, not the training data" in found["nearest_in"]
    wrong = inspect(folder / "one.csv", "--row", 0, code=2)
    assert "--background" in wrong.stderr
    assert "one row" in flat(wrong.stderr)


def test_pictures_and_the_page(inspect, folder, tmp_path):
    files = ("--html", tmp_path / "p.html", "--draw-columns", tmp_path / "c.svg")
    inspect(folder / "train.csv", "--row", 3, "--label", "senior", *files)
    text = (tmp_path / "p.html").read_text("utf-8")
    assert '<ul class="parts">' in text
    assert "Virtual examples" in text
    assert (tmp_path / "c.svg").stat().st_size > 4000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv", "--row", "T-x"], "nor a value of 'ticket'"),
        (["train.csv", "--row", "120"], "there is no row 120"),
        (["train.csv", "--row", "1", "--label", "none"], "one of the model's labels ('complaint'"),
        (["train.csv", "--row", "1", "--evaluations", "50"], "--evaluations leaves 50 mixed rows"),
        (["train.csv"], "say which with --row"),
        (["--row", "1"], "Name the file after the model"),
        (["train.csv", "--rows", "test.csv", "--row", "1"], "not both"),
        (["train.csv", "--row", "1", "--by", "support", "--draw-columns", "x.png"], "by columns"),
        (["train.csv", "--row", "1", "--by", "support", "--background", "x.csv"], "by columns"),
    ],
)
def test_what_is_wrong(inspect, folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    assert message in flat(inspect(*arguments, code=2).stderr)


def test_a_model_without_virtual_examples(imcc, pets, tmp_path):
    from tests.cli.conftest import make_data

    data = make_data(160)[:120]
    model = BinaryRelevanceSVM().fit(data.X, data.Y)
    file = save_model(model, tmp_path / "m.skops", data)
    page = tmp_path / "p.html"
    start = ("inspect", file, pets / "new.csv", "--row", 2, "--data", pets / "train.csv")
    text = imcc(*start, "--html", page).stdout
    assert "colour index" in text
    assert "all sets of columns" in text
    assert "Virtual examples" not in page.read_text("utf-8")
    alone = imcc("inspect", file, pets / "new.csv", "--row", 2).stdout
    assert "not known to be the training data" in alone
