"""Requests in, answers out: every kind of model, and what is refused with which words."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from starlette.testclient import TestClient

from imcc import IMCCClassifier, KernelEnsembleClassifier, load_model, save_model
from imcc._utils.errors import ImccError
from imcc.estimators import TunedThresholds
from imcc.persistence import ModelFileError, read_card
from imcc.serve import make_app
from imcc.serve._app import _ENVIRONMENT, app_of_environment
from imcc.tables import TableClassifier, read_dataset
from tests.serve.conftest import customers

HEADERS = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(model_file):
    return TestClient(make_app(model_file, max_rows=50, max_bytes=100_000))


def ask(client, body, status=200):
    """Return the answer to a body, or the message with which it is refused."""
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    response = client.post("/predict", content=content, headers=HEADERS)
    assert response.status_code == status, response.text
    found = response.json()
    assert status == 200 or list(found) == ["error"]
    assert "Traceback" not in response.text
    return found if status == 200 else found["error"]


def test_one_row_or_many(client, model_file, records):
    model = load_model(model_file)
    many = ask(client, records)
    assert many["warnings"] == []
    chances = model.predict_proba(records)
    assert [list(p["probabilities"].values()) for p in many["predictions"]] == chances.tolist()
    assert [p["labels"] for p in many["predictions"]] == model.predict_tags(records)
    for row, expected in zip(records, many["predictions"], strict=True):
        (one,) = ask(client, row)["predictions"]
        assert one["labels"] == expected["labels"]
        assert one["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-12)


def test_unknown_values_are_warned_of(client, records):
    (said,) = ask(client, {**records[0], "plan": "gold"})["warnings"]
    assert "'plan'" in said
    assert "gold" in said


def test_columns_that_are_not_features(client, model_file, records):
    without = {name: value for name, value in records[0].items() if name != "key"}
    assert ask(client, without) == ask(client, records[0])
    assert "'agee'" in ask(client, {**without, "agee": 3}, 422)
    lenient = TestClient(make_app(model_file, ignore_extra=True))
    assert ask(lenient, {**without, "agee": 3}) == ask(client, without)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, ["'age'", "number", "'old'"]),
        ({"age": 1e999}, ["JSON"]),
        ({"age": [1, 2]}, ["'age'"]),
        ({"age": {"a": 1}}, ["'age'"]),
        ({"age": 10**30}, ["'age'"]),
        ({"member": "perhaps"}, ["'member'", "'perhaps'"]),
        ({"since": "31.05.2021"}, ["'since'", "date"]),
        ({"note": "\ud800"}, ["'note'"]),
        ({"plan": ["basic"]}, ["'plan'"]),
    ],
)
def test_cells_that_do_not_fit_are_named(client, records, change, words):
    status = 400 if words == ["JSON"] else 422
    message = ask(client, {**records[0], **change}, status)
    assert all(word in message for word in words), message


def test_a_number_that_is_too_large_is_infinite(client, records):
    body = json.dumps(records[0]).replace(f"{records[0]['age']}", "1e999")
    assert "infinite" in ask(client, body, 422)


def test_the_row_is_named(client, records):
    rows = [*records[:3], {**records[3], "age": "abc"}]
    assert "row 3" in ask(client, rows, 422)
    missing = {name: value for name, value in records[3].items() if name != "age"}
    assert "row 3" in ask(client, [*records[:3], missing], 422)
    assert "'age'" in ask(client, missing, 422)
    assert "row 1" in ask(client, [records[0], 3], 422)
    assert "different types" in ask(client, [records[0], {**records[1], "age": "1"}], 422)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "JSON"),
        (b"{", 400, "JSON"),
        (b'{"age": NaN}', 400, "NaN"),
        (b"[Infinity]", 400, "Infinity"),
        (b'{"age": 1, "age": 2}', 400, "'age' occurs twice"),
        (b"\xff\xfe{}", 400, "JSON"),
        ("{}".encode("utf-16"), 400, "JSON"),
        (DEEP[:49_000], 400, "JSON"),
        (b'{"age": ' + b"9" * 10_000 + b"}", 400, "JSON"),
        (b"3", 422, "a row or a list of rows"),
        (b"null", 422, "a row or a list of rows"),
        (b"[]", 422, "empty"),
        (b"[[]]", 422, "object"),
        (b'"text"', 422, "object"),
        (b"{}", 422, "columns"),
        (b"[" + b"{}," * 50 + b"{}]", 413, "51 rows"),
        (b" " * 100_001, 413, "100,000 bytes"),
    ],
)
def test_hostile_bodies(client, records, body, status, words):
    assert words in ask(client, body, status)
    assert ask(client, records[0])["predictions"]  # it still answers


def test_deep_nesting_inside_of_the_limits(model_file):
    client = TestClient(make_app(model_file))
    for nested in (DEEP, '{"a":' * 90_000 + "1" + "}" * 90_000, "[" + DEEP + "]"):
        assert "deeply" in ask(client, nested, 400)


def test_a_million_rows_are_refused_before_they_become_a_table(model_file):
    client = TestClient(make_app(model_file, max_bytes=10**7))
    assert "1,000,000 rows" in ask(client, b"[" + b"{}," * 999_999 + b"{}]", 413)


def test_what_is_not_a_prediction_is_refused_in_json(client, records):
    body = json.dumps(records[0])
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        refused = client.post("/predict", content=body, headers={"content-type": kind})
        assert refused.status_code == 415
        assert "application/json" in refused.json()["error"]
    with_charset = {"content-type": "Application/JSON; charset=utf-8"}
    assert client.post("/predict", content=body, headers=with_charset).status_code == 200
    assert client.get("/predict").status_code == 405
    assert client.get("/nothing").json() == {"error": "Not Found"}


def test_time_is_limited(model_file, records):
    client = TestClient(make_app(model_file, max_seconds=1e-9))
    response = client.post("/predict", json=records[0])
    assert response.status_code in (408, 503)
    assert "seconds" in response.json()["error"]


def test_a_bug_is_not_shown(model_file, records, monkeypatch):
    def broken(*_):
        raise KeyError("secret")

    client = TestClient(make_app(model_file), raise_server_exceptions=False)
    monkeypatch.setattr("imcc.serve._app.rows_for_model", broken)
    response = client.post("/predict", json=records[0])
    assert response.status_code == 500
    assert "secret" not in response.text


def test_health_openapi_and_pages(client, records):
    assert client.get("/health").json()["status"] == "ok"
    described = client.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    row = described["components"]["schemas"]["Row"]
    assert set(row["required"]) <= set(records[0]) == set(row["properties"])
    for path in ("/", "/model", "/docs"):
        page = client.get(path)
        assert page.status_code == 200
        assert "<b>late" not in page.text  # names of labels are data
        assert "default-src 'none'" in page.headers["content-security-policy"]
        text = page.text.replace("http://ADDRESS", "").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in page.text
    assert "senior" in client.get("/model").text
    assert "late slow" not in client.get("/").text  # no text of the training table


def test_only_this_machine_asks_by_its_name(model_file):
    app = make_app(model_file, local=True)
    assert TestClient(app, base_url="http://evil.example").get("/health").status_code == 400
    for name in ("localhost:8000", "127.0.0.1:8000"):
        assert TestClient(app, base_url=f"http://{name}").get("/health").status_code == 200


def test_a_process_refuses_a_file_that_was_replaced(tmp_path, monkeypatch):
    frame, labels = customers()
    path = tmp_path / "m.skops"
    for seed in (0, 1):
        model = IMCCClassifier(n_clusters=4, random_state=seed).fit(frame[["age"]], labels)
        save_model(model, path, card=read_card(path) if seed else None)
        if not seed:
            options = {"path": str(path), "digest": make_app(path).state.digest}
            monkeypatch.setenv(_ENVIRONMENT, json.dumps(options))
            assert app_of_environment().state.digest == options["digest"]
    with pytest.raises(ModelFileError, match="changed"):
        app_of_environment()


def test_values_of_training_rows_are_not_on_the_page_without_held_out_rows(tmp_path):
    frame, labels = customers()
    frame.loc[0, "plan"] = "secret"
    model = TableClassifier(IMCCClassifier(n_clusters=4, random_state=0), thresholds=None)
    client = served(tmp_path, model.fit(frame, labels))
    page = client.get("/model").text
    assert "plan" in page
    assert "secret" not in page


# Models that were not fitted to a table.


def served(tmp_path, model, **about):
    return TestClient(make_app(save_model(model, tmp_path / "model.skops", **about)))


@pytest.fixture(scope="module")
def arrays(small_problem):
    X, Y, X_new, _ = small_problem
    return np.maximum(X, 0), Y, np.maximum(X_new, 0)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_plain_and_sparse_rows(tmp_path, arrays, as_rows):
    X, Y, new = arrays
    model = TunedThresholds(KernelEnsembleClassifier(views=("raw",), random_state=0), cv=3)
    model.fit(as_rows(X), Y)
    client = served(tmp_path, model)
    chances = model.predict_proba(as_rows(new))
    dense = ask(client, new.tolist())["predictions"]
    found = [list(p["probabilities"].values()) for p in dense]
    np.testing.assert_allclose(found, chances, rtol=0, atol=1e-9)
    names = list(dense[0]["probabilities"])
    on = [[name in p["labels"] for name in names] for p in dense]
    np.testing.assert_array_equal(on, model.predict(as_rows(new)))
    rows = [{"indices": np.flatnonzero(r)[::-1].tolist(), "values": r[r != 0][::-1].tolist()}
            for r in new]  # fmt: skip
    found = [list(p["probabilities"].values()) for p in ask(client, rows)["predictions"]]
    np.testing.assert_allclose(found, chances, rtol=0, atol=1e-9)
    assert len(ask(client, new[0].tolist())["predictions"]) == 1
    assert len(ask(client, rows[0])["predictions"]) == 1
    by_name = dict(zip((f"x{j}" for j in range(5)), new[0].tolist(), strict=True))
    (named,) = ask(client, by_name)["predictions"]
    assert named["labels"] == dense[0]["labels"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ([1, 2], "5 features"),
        ([[1, 2, 3, 4, 5], [1, 2]], "row 1"),
        ([1, 2, 3, 4, "5"], "value 4"),
        ([1, 2, 3, 4, [5]], "value 4"),
        ([1, 2, 3, 4, None], "NaN"),
        ([1, 2, 3, 4, 10**400], "too large"),
        ({"indices": [5], "values": [1]}, "from 0 to 4"),
        ({"indices": [-1], "values": [1]}, "from 0 to 4"),
        ({"indices": [True], "values": [1]}, "from 0 to 4"),
        ({"indices": 1, "values": [1]}, "from 0 to 4"),
        ({"indices": [1, 1], "values": [1, 2]}, "each place once"),
        ({"indices": [1], "values": [1, 2]}, "each value"),
        ({"indices": [1], "values": ["a"]}, "value 0"),
        ({"indices": [1], "values": "a"}, "list of numbers"),
        ([{"indices": [1], "values": [1]}, {"indices": [1]}], "row 1"),
        ({"x0": 1}, "'x1'"),
        (["some", "words"], ""),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, body, word):
    X, Y, _ = arrays
    client = served(tmp_path, IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y))
    assert word in ask(client, body, 422)


def test_scores_of_models_without_probabilities_and_classes(tmp_path, arrays):
    X, Y, new = arrays
    model = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y)
    found = ask(served(tmp_path, model), new.tolist())["predictions"]
    np.testing.assert_allclose(
        [list(p["scores"].values()) for p in found], model.decision_function(new)
    )
    classes = np.where(Y[:, 0] > 0, "yes", "no")
    (tmp_path / "model.skops").unlink()
    model.fit(X, classes)
    found = ask(served(tmp_path, model), new.tolist())["predictions"]
    assert [p["class"] for p in found] == model.predict(new).tolist()


def test_text_frames_and_encoded_words(tmp_path, arrays):
    texts, Y = ["red apple", "red car", "blue car", "green apple"] * 10, [[1, 0], [0, 1]] * 20
    inner = IMCCClassifier(n_clusters=2, random_state=0)
    model = make_pipeline(TfidfVectorizer(), inner).fit(texts, np.array(Y))
    client = served(tmp_path, model)
    assert len(ask(client, texts[:2])["predictions"]) == 2
    assert len(ask(client, json.dumps(texts[0]))["predictions"]) == 1
    frame = pd.DataFrame({"size": np.arange(40.0) % 7, "note": texts})
    model = make_pipeline(
        make_column_transformer((TfidfVectorizer(), "note"), (StandardScaler(), ["size"])), inner
    ).fit(frame, np.array(Y))
    (tmp_path / "model.skops").unlink()
    client = served(tmp_path, model)
    row = {"note": "12", "size": 3}
    assert len(ask(client, [row, row])["predictions"]) == 2
    assert "'size'" in ask(client, {"note": "red"}, 422)
    assert "'more'" in ask(client, {**row, "more": 1}, 422)
    table = {"size": frame["size"], "colour": ["red", "blue"] * 20, "on": [1, 0, 0, 1] * 10}
    data = read_dataset(table, ["on"])
    model = inner.fit(data.X, data.Y)
    (tmp_path / "model.skops").unlink()
    client = served(tmp_path, model, data=data)
    found = ask(client, {"size": 2, "colour": "red"})["predictions"][0]["scores"]["on"]
    expected = model.decision_function(data.X[2:3])
    assert found == pytest.approx(float(np.ravel(expected)[0]))
    assert "'colour'" in ask(client, {"size": 2}, 422)


def test_files_that_are_refused(tmp_path, model_file):
    with pytest.raises(ModelFileError):
        make_app(tmp_path)
    half = tmp_path / "half.skops"
    half.write_bytes(model_file.read_bytes()[:-100])
    with pytest.raises(ModelFileError):
        make_app(half)
    for name in ("max_rows", "max_bytes", "max_seconds"):
        with pytest.raises(ImccError, match=name):
            make_app(model_file, **{name: 0})


def test_nothing_is_written(tmp_path, model_file, records, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        client = TestClient(make_app(model_file))
        ask(client, records)
        client.get("/")
    assert list(tmp_path.iterdir()) == []
