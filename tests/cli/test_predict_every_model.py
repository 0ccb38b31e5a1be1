"""imcc predict for models of every kind: the formats, the best labels, the probabilities."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from imcc import IMCCClassifier
from imcc.datasets import Dataset, read
from imcc.estimators import MultilabelCalibrator
from imcc.persistence import save_model, untrusted_types
from imcc.persistence._card import make_card
from tests.cli.conftest import make_data, one_setting
from tests.writers import write

FORMS = ("csv", "json", "parquet")
KINDS = ("arff", "svm", "npz", "mat")


def as_frame(path):
    """What a file of predictions says, whatever its format."""
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".json": pd.read_json}
    return readers[path.suffix](path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows in four formats, and a calibrated model of each; sparse for svmlight."""
    for package in ("pyarrow", "skops"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("kinds")
    data = make_data(90)
    new = data[60:]
    write(new, folder / "new.arff")
    write(new, folder / "new.svm")
    write(new, folder / "new.npz")
    savemat(folder / "new.mat", {"data": new.X, "target": new.Y.T})
    models = {}
    for kind in KINDS:
        known = read(folder / f"new.{kind}")
        train = Dataset(data.X[:60], data.Y[:60], known.feature_names, known.label_names, kind)
        classifier = IMCCClassifier(4, random_state=0)
        model = MultilabelCalibrator(classifier, cv=3).fit(train.X, train.Y)
        save_model(model, folder / f"{kind}.skops", card=make_card(model, train))
        models[kind] = (model, known)
    return folder, models


@pytest.mark.parametrize(
    ("kind", "form"), [*zip(KINDS, (*FORMS, "csv"), strict=True), ("svm", "csv"), ("mat", "json")]
)
def test_the_best_labels_of_every_model_in_every_format(files, imcc, tmp_path, kind, form):
    folder, models = files
    model, known = models[kind]
    X = known.X.toarray() if known.is_sparse else known.X
    chances = model.predict_proba(X)
    names = np.array(known.label_names)
    best = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    start = ("predict", folder / f"{kind}.skops", folder / f"new.{kind}")
    out = tmp_path / f"out.{form}"
    imcc(*start, "--top", 2, "--proba", "-o", out)
    found = as_frame(out)
    if form == "json":
        pairs = [[(one["label"], one["probability"]) for one in row] for row in found["top"]]
        tags, values = np.array(pairs, object).transpose(2, 0, 1)
    else:
        tags = found[["label1", "label2"]].astype(str).to_numpy()
        values = found[["probability1", "probability2"]].to_numpy()
    assert tags.tolist() == names[best].tolist()
    np.testing.assert_allclose(
        values.astype(float), np.take_along_axis(chances, best, axis=1), rtol=1e-12
    )
    imcc(*start, "--proba", "-o", out, "--force")
    found = as_frame(out)
    if form == "json":
        found = pd.DataFrame(list(found["probabilities"]))
    np.testing.assert_allclose(found[list(names)].to_numpy(), chances, rtol=1e-12)
    imcc(*start, "-o", out, "--force")
    assert len(as_frame(out)) == 30


def test_a_model_without_names_numbers_its_labels(imcc, tmp_path):
    data = make_data(40)
    model = MultiOutputClassifier(LogisticRegression()).fit(data.X, data.Y)
    file = save_model(model, tmp_path / "m.skops")
    trust = [part for name in untrusted_types(file) for part in ("--trust", name)]
    nameless = Dataset(data.X, data.Y)
    write(nameless, tmp_path / "new.npz")
    shown = imcc("predict", file, tmp_path / "new.npz", "--top", 2, "--proba", *trust)
    rows = shown.stdout.splitlines()
    assert rows[0] == "label1,probability1,label2,probability2"
    assert set(rows[1].split(",")[::2]) <= {"label0", "label1", "label2"}


def test_a_column_of_ids_keeps_its_name(imcc, tmp_path):
    frame = pd.DataFrame(make_data(60).X, columns=list("abcd"))
    frame["label1"] = [f"key-{i:05}" for i in range(60)]
    frame["y"] = (frame["a"] > 0).astype(int)
    frame["z"] = (frame["b"] > 0).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    start = ("tune", tmp_path / "t.csv", "--labels", "y,z", *one_setting())
    imcc(*start, "-o", tmp_path / "m.skops")
    shown = imcc("predict", tmp_path / "m.skops", tmp_path / "t.csv", "--top", 1).stdout
    assert shown.splitlines()[0] == "label1,predicted label1"
    assert shown.splitlines()[1].startswith("key-00000,")


def test_ids_of_parquet_files_keep_their_type(imcc, tmp_path):
    """Also where the first thousands of rows have none."""
    pytest.importorskip("pyarrow")
    n = 5000
    frame = pd.DataFrame(np.tile(make_data(50).X, (100, 1)), columns=list("abcd"))
    frame["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(n), "h")
    frame["y"] = (frame["a"] > 0).astype(int)
    frame["z"] = (frame["b"] > 0).astype(int)
    frame[:200].to_parquet(tmp_path / "t.parquet")
    frame.loc[: n - 100, "day"] = pd.NaT
    frame.to_parquet(tmp_path / "new.parquet")
    (tmp_path / "t.toml").write_text('[columns]\nday = "id"\n')
    start = ("tune", tmp_path / "t.parquet", "--labels", "y,z", "--schema", tmp_path / "t.toml")
    imcc(*start, *one_setting(2), "-o", tmp_path / "m.skops")
    start = ("predict", tmp_path / "m.skops", tmp_path / "new.parquet")
    for form in FORMS:
        imcc(*start, "-o", tmp_path / f"out.{form}")
    found = pd.read_parquet(tmp_path / "out.parquet")["day"]
    assert str(found.dtype).startswith("datetime64")
    assert found.isna().sum() == n - 99
    last = json.loads((tmp_path / "out.json").read_text())[-1]
    assert last["day"].startswith("2024-07-")
