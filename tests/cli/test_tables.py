"""Tables at the command line: a CSV file as people have it in, a model and predictions out."""

import json
import re

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from imcc import IMCCClassifier
from imcc._utils.wrappers import innermost
from imcc.estimators.thresholds import decision_thresholds
from imcc.persistence import load_model, read_card, save_model
from imcc.tables import UnknownValuesWarning, read_table
from imcc.tables._example import write_example
from tests.cli.conftest import flat, invoke, one_setting, table

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LABELS = ["complaint", "refund", "upgrade", "senior", "remote", "praise"]
NAMED = ("--labels", ",".join(LABELS))
QUICK = one_setting(8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Support tickets as CSV, and a model of them."""
    folder = tmp_path_factory.mktemp("tickets")
    write_example(folder / "train.csv", 300, seed=1)
    write_example(folder / "test.csv", 100, seed=2)
    shown = invoke("tune", folder / "train.csv", *NAMED, *QUICK, "-o", folder / "model.skops")
    (folder / "shown.txt").write_text(shown.output)
    return folder


def test_the_schema_is_shown_and_stored(folder, imcc):
    shown = flat((folder / "shown.txt").read_text())
    assert "ticket id" in shown
    assert "message text" in shown
    assert "(1 as words)" in shown
    model = load_model(folder / "model.skops")  # without extra trust
    kinds = {column.name: column.kind for column in model.schema_}
    assert kinds["ticket"] == "id"
    assert kinds["income"] == "number"
    assert kinds["region"] == "category"
    assert kinds["message"] == "text"
    card = read_card(folder / "model.skops")
    stored = {c["name"]: c["kind"] for c in card.columns["table"]["columns"]}
    assert stored == kinds
    assert card.label_names == tuple(LABELS)
    assert card.n_rows == 300
    assert "The columns" in imcc("inspect", folder / "model.skops").stdout


def test_predictions_carry_ids_and_are_those_of_python(folder, imcc):
    model = load_model(folder / "model.skops")
    new = read_table(folder / "test.csv")
    ids = new["ticket"].to_pylist()
    start = ("predict", folder / "model.skops", folder / "test.csv")
    rows = table(imcc(*start).stdout)
    assert rows[0] == ["ticket", *LABELS]
    assert [row[0] for row in rows[1:]] == ids
    np.testing.assert_array_equal(np.array([r[1:] for r in rows[1:]], int), model.predict(new))
    scores = model.decision_function(new)
    rows = table(imcc(*start, "--scores").stdout)
    np.testing.assert_array_equal(np.array([r[1:] for r in rows[1:]], float), scores)
    rows = table(imcc(*start, "--top", 2).stdout)
    assert rows[0] == ["ticket", "label1", "label2"]
    best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    assert rows[1][1:] == [LABELS[j] for j in best[0]]
    found = json.loads(imcc(*start, "--json", "--top", 1).stdout)
    assert found[3]["ticket"] == ids[3]
    assert found[3]["top"] == [{"label": LABELS[best[3, 0]], "score": scores[3].max()}]
    assert "MultilabelCalibrator" in flat(imcc(*start, "--proba", code=2).stderr)


def test_files_are_what_their_names_say(folder, imcc, tmp_path):
    rows = read_table(folder / "test.csv").to_pandas().astype(str)
    odd = ["=1+1", "+1", "-2", "@x", "00123", "12345678901234567890"]
    rows.loc[: len(odd) - 1, "ticket"] = odd
    rows.to_csv(tmp_path / "new.csv", index=False)
    start = ("predict", folder / "model.skops", tmp_path / "new.csv", "--scores")
    for name in ("out.csv", "out.json", "out.parquet"):
        assert "100 rows written" in imcc(*start, "-o", tmp_path / name).stderr
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["ticket"].tolist()[:6] == odd
    records = json.loads((tmp_path / "out.json").read_text())
    assert [row["ticket"] for row in records] == found["ticket"].tolist()
    # Numbers stay as they are; what a spreadsheet would compute does not.
    shown = pd.read_csv(tmp_path / "out.csv", dtype={"ticket": str})
    assert shown["ticket"].tolist()[:6] == ["'=1+1", "+1", "-2", "'@x", *odd[4:]]
    pd.testing.assert_frame_equal(shown[LABELS], found[LABELS])
    # A spreadsheet is read as the CSV file is.
    pytest.importorskip("openpyxl")
    pd.read_csv(folder / "test.csv").to_excel(tmp_path / "in.xlsx", index=False)
    outputs = [
        imcc("predict", folder / "model.skops", file, "--scores").stdout
        for file in (tmp_path / "in.xlsx", folder / "test.csv")
    ]
    assert outputs[0] == outputs[1]


def test_evaluate_and_inspect_read_the_same_files(folder, imcc, tmp_path):
    found = json.loads(
        imcc("evaluate", folder / "model.skops", folder / "test.csv", "--json").stdout
    )
    assert found["metrics"]["average_precision"] > 0.75
    page = tmp_path / "page.html"
    imcc("inspect", folder / "model.skops", folder / "test.csv", "--html", page)
    assert read_table(folder / "test.csv")["ticket"][7].as_py() in page.read_text("utf-8")


def test_a_file_that_does_not_say_how_it_is_read(folder, imcc, tmp_path):
    """What --schema says counts wherever rows are read for a model."""
    odd, schema = tmp_path / "odd.csv", tmp_path / "odd.toml"
    rows = pd.read_csv(folder / "test.csv", dtype=str)
    rows.to_csv(odd, index=False, sep="#")
    schema.write_text('delimiter = "#"\n')
    model, plain = folder / "model.skops", folder / "test.csv"
    page = ("inspect", "--html", tmp_path / "page.html", "--force", "--json")
    for command in (("predict",), ("evaluate", "--json"), page):
        start = (*command, model)
        assert "'ticket#age#" in imcc(*start, odd, code=1).stderr
        found = imcc(*start, odd, "--schema", schema).stdout
        assert found == imcc(*start, plain).stdout


def test_stray_words_name_file_line_and_two_ways_out(folder, imcc, tmp_path):
    lines = (folder / "train.csv").read_text("utf-8").splitlines()[:80]
    cells = lines[9].split(",")
    cells[2] = "abc"
    lines[9] = ",".join(cells)
    lines[4] = lines[4].replace(",", ',"', 1).replace(",", '\n",', 2).replace('\n",', ",", 1)
    lines[4] = '"two\nlines"' + lines[4][lines[4].index(",") :].replace('"', "").replace("\n", "")
    file = tmp_path / "stray.csv"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    start = ("tune", file, *NAMED, *QUICK, "-o", tmp_path / "m.skops", "--force")
    said = flat(imcc(*start, code=1).stderr)
    assert "stray.csv, line 11: column 'income'" in said  # one row above takes two lines
    schema = tmp_path / "schema.toml"
    for line, kind in (
        ('missing = ["abc"]', "number"),
        ('[columns] "income" = "category"', "category"),
    ):
        assert f"{line} in the file of --schema" in said
        schema.write_text(line.replace("] ", "]\n"))
        imcc(*start, "--schema", schema)
        assert load_model(tmp_path / "m.skops").schema_["income"].kind == kind
    # In a file to predict, too.
    said = flat(imcc("predict", folder / "model.skops", file, code=1).stderr)
    assert "stray.csv, line 11: column 'income' is of the kind number, but 'abc'" in said


def test_columns_can_be_overruled(folder, imcc, tmp_path):
    out, schema = tmp_path / "m.skops", tmp_path / "schema.toml"
    lines = (folder / "train.csv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "t.csv").write_text("".join(lines[:60]), "utf-8")
    schema.write_text(
        '[columns]\nregion = "text"\nvisits = "category"\nhours = "id"\nincome = "drop"\n'
        + "".join(f'{name} = "label"\n' for name in LABELS)
    )
    start = ("tune", tmp_path / "t.csv", "--schema", schema, *QUICK, "-o", out, "--quiet")
    imcc(*start, "--drop", "age", "--drop", "score")
    kinds = {column.name: column.kind for column in load_model(out).schema_}
    assert (kinds["region"], kinds["visits"], kinds["hours"]) == ("text", "category", "id")
    assert {"age", "score", "income"}.isdisjoint(kinds)
    assert load_model(out).label_names_.tolist() == LABELS
    assert "is it 'message'?" in flat(imcc(*start, "--force", "--drop", "mesage", code=2).stderr)
    unlabelled = ("tune", folder / "train.csv", "-o", out, "--force")
    assert "--tags" in flat(imcc(*unlabelled, code=2).stderr)


def test_describe_shows_the_same_table(folder, imcc):
    shown = imcc("datasets", "describe", folder / "train.csv", *NAMED).stdout
    assert "ticket     id" in shown
    assert "labels               6" in shown
    assert "duplicate rows" not in shown
    found = json.loads(imcc("datasets", "describe", folder / "train.csv", "--json").stdout)
    assert [c["kind"] for c in found["schema"]["columns"]][:3] == ["id", "number", "number"]


def test_names_with_commas_quotes_and_umlauts(imcc, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            'Größe, "cm"': size.round(3),
            "Straße": rng.choice(["Ulm", "Köln"], 80),
            "ja, sicher": (size > 0).astype(int),
            "selten": (size > 1).astype(int),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    start = ("tune", tmp_path / "t.csv", "-o", tmp_path / "m.skops", *one_setting(), "--force")
    schema = tmp_path / "schema.toml"
    imcc(
        "datasets", "describe", tmp_path / "t.csv", "--labels", "ja, sicher", "--schema-to", schema
    )
    text = schema.read_text("utf-8").replace('"selten" = "yes/no"', '"selten" = "label"')
    schema.write_text(text, "utf-8")
    imcc(*start, "--schema", schema)
    assert load_model(tmp_path / "m.skops").label_names_.tolist() == ["ja, sicher", "selten"]
    imcc(*start, "--labels", "ja, sicher")
    rows = table(imcc("predict", tmp_path / "m.skops", tmp_path / "t.csv", "--ignore-extra").stdout)
    assert rows[0] == ["ja, sicher"]


@pytest.mark.parametrize("form", ["bars", "parquet"])
def test_a_column_of_tags(folder, imcc, tmp_path, form):
    frame = pd.read_csv(folder / "train.csv")
    lists = [[name for name in LABELS if row[name]] for _, row in frame.iterrows()]
    frame = frame.drop(columns=LABELS)
    file = tmp_path / ("t.parquet" if form == "parquet" else "t.csv")
    if form == "parquet":
        frame = frame.assign(income=pd.to_numeric(frame["income"]))
        columns = {name: pa.array(frame[name], from_pandas=True) for name in frame}
        parquet.write_table(pa.table({**columns, "labels": lists}), file)
    else:
        frame.assign(labels=["|".join(tags) for tags in lists]).to_csv(file, index=False)
    model = tmp_path / "m.skops"
    imcc("tune", file, "--tags", "labels", *QUICK, "-o", model)
    assert load_model(model).label_names_.tolist() == sorted(LABELS)
    found = json.loads(imcc("evaluate", model, file, "--json").stdout)
    assert found["metrics"]["average_precision"] > 0.9
    start = ("evaluate", model, folder / "train.csv")
    by_columns = imcc(*start, "--json").stdout
    assert json.loads(by_columns)["metrics"] == pytest.approx(found["metrics"], abs=1e-6)


def test_unknown_values_are_said_once(folder, imcc, tmp_path):
    frame = pd.read_csv(folder / "test.csv")
    frame.loc[:4, "region"] = "Mars"
    pd.concat([frame] * 50).to_csv(tmp_path / "new.csv", index=False)  # more than one part
    result = imcc("predict", folder / "model.skops", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert result.stderr.count("Warning") == 1
    assert "'region' in 250 rows ('Mars')" in flat(result.stderr)
    assert "5,000 rows written" in result.stderr
    with pytest.warns(UnknownValuesWarning):
        whole = load_model(folder / "model.skops").predict(frame)
    found = pd.read_csv(tmp_path / "o.csv")[LABELS].to_numpy()
    np.testing.assert_array_equal(found, np.tile(whole, (50, 1)))


@pytest.fixture
def short(folder, tmp_path):
    """A small table with two labels."""
    rows = pd.read_csv(folder / "train.csv")[["ticket", "age", "region", "senior", "remote"]][:80]
    rows.to_csv(tmp_path / "short.csv", index=False)
    return tmp_path / "short.csv"


def test_tune_fits_an_ensemble_by_default(folder, short, imcc, tmp_path):
    out = tmp_path / "m.skops"
    start = ("tune", short, "--labels", "senior,remote", "-o", out)
    shown = imcc(*start).stdout
    assert re.search(r"An ensemble of \d+ models; \d+ trials of kernels", shown)
    assert "held-out average_precision" in shown
    rows = table(imcc("predict", out, folder / "test.csv", "--proba", "--ignore-extra").stdout)
    chances = np.array([row[1:] for row in rows[1:]], dtype=float)
    assert ((chances > 0) & (chances < 1)).all()
    predicted = table(imcc("predict", out, folder / "test.csv", "--ignore-extra").stdout)
    limits = decision_thresholds(load_model(out), 2)
    assert (limits != 0.5).any()
    np.testing.assert_array_equal(
        np.array([row[1:] for row in predicted[1:]], dtype=int), chances >= limits
    )
    imcc(*start, "--force", "--thresholds", "none")
    predicted = table(imcc("predict", out, folder / "test.csv", "--ignore-extra").stdout)
    np.testing.assert_array_equal(
        np.array([row[1:] for row in predicted[1:]], dtype=int), chances >= 0.5
    )
    assert "The best of 1 settings" in imcc(*start, "--force", *one_setting()).stdout
    assert type(load_model(out).estimator_[-1]) is IMCCClassifier


def test_the_way_back(folder, imcc, tmp_path):
    """A pipeline made in Python is used with the raw file."""
    frame = pd.read_csv(folder / "train.csv")
    frame["message"] = frame["message"].fillna("")
    numbers = ["age", "visits", "score"]
    steps = ColumnTransformer(
        [
            ("numbers", SimpleImputer(), numbers),
            ("region", OneHotEncoder(handle_unknown="ignore"), ["region"]),
            ("message", TfidfVectorizer(), "message"),
        ]
    )
    model = make_pipeline(steps, IMCCClassifier(8, random_state=0))
    used = frame[[*numbers, "region", "message"]]
    model.fit(used, frame[LABELS])
    file = save_model(model, tmp_path / "m.skops")
    new = pd.read_csv(folder / "test.csv").fillna({"message": ""})
    raw = tmp_path / "raw.csv"
    new.to_csv(raw, index=False)
    new.loc[new["message"] == "", "message"] = "nothing"
    new.to_csv(raw, index=False)
    encoder = "sklearn.preprocessing._encoders.OneHotEncoder"
    assert encoder in imcc("predict", file, raw, code=1).stderr
    trust = ("--trust", encoder)
    rows = table(imcc("predict", file, raw, "--ignore-extra", "--scores", *trust).stdout)
    assert rows[0] == LABELS
    expected = model.decision_function(new[used.columns])
    np.testing.assert_allclose(np.array(rows[1:], dtype=float), expected)
    found = json.loads(imcc("evaluate", file, raw, "--ignore-extra", "--json", *trust).stdout)
    assert found["metrics"]["average_precision"] > 0.6
    imcc("inspect", file, raw, "--html", tmp_path / "page.html", *trust)
    assert "unknown to the model" in imcc("predict", file, raw, *trust, code=1).stderr


def test_the_line_that_tells_excel_the_delimiter(imcc, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfsep=;\r\na;y\r\n1;0\r\n")
    said = flat(imcc("datasets", "describe", tmp_path / "t.csv", code=1).stderr)
    assert "line 1: the first line tells Excel the delimiter" in said


def test_labels_are_unknown_only_if_that_is_said(imcc, tmp_path):
    pytest.importorskip("skops")
    file, model = tmp_path / "t.csv", tmp_path / "m.skops"
    rows = [f"{i * 1.5},{'xy'[i % 2]},{('', 0, 1, 0)[i % 4]},{i // 2 % 2}" for i in range(40)]
    file.write_text("a,b,l,m\n" + "\n".join(rows) + "\n")
    fit = ("tune", file, "--labels", "l,m", *one_setting(2), "-o", model)
    said = flat(imcc(*fit, code=1).stderr)
    assert "line 2" in said
    assert "'l' has missing values, in 10 of 40 rows" in said
    assert said.rstrip().endswith("--unknown-labels")
    describe = ("datasets", "describe", file, "--labels", "l,m", "--json")
    imcc(*describe, code=1)
    found = json.loads(imcc(*describe, "--unknown-labels").stdout)
    assert found["label_counts"] == {"l": 10, "m": 20}
    imcc(*fit, "--unknown-labels")
    assert load_model(model).unknown_labels is True
    # The labels of all rows are needed to compare with.
    refused = flat(imcc("evaluate", model, file, code=1).stderr)
    assert "'l' has missing values" in refused
    assert "--unknown" not in refused
    assert "unknown_labels" not in refused


def test_fast_and_a_limit_on_the_time(imcc, short, tmp_path):
    start = ("tune", short, "--labels", "senior,remote", "-o", tmp_path / "m.skops", "--force")
    imcc(*start, "--fast", "--quiet")
    model = load_model(tmp_path / "m.skops")
    ensemble = innermost(model)
    assert (ensemble.max_time, ensemble.trees, ensemble.n_trees_) == (10.0, False, 0)
    imcc(*start, "--max-time", "1e-9", "--quiet")
    ensemble = innermost(load_model(tmp_path / "m.skops"))
    assert ensemble.max_time == 1e-9
    assert ensemble.stopped_early_
    assert "--max-time" in imcc(*start, "--set", "max_time=5", code=2).stderr
