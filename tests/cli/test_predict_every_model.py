"""imcc predict for models of every kind of file, and what becomes of ids."""

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
from tests.cli.conftest import make_data, one_setting, table
from tests.writers import write


@pytest.mark.parametrize("kind", ["arff", "svm", "npz", "mat"])
def test_models_of_every_kind_of_file(imcc, tmp_path, kind):
    data = make_data(90)
    new, file = data[60:], tmp_path / f"new.{kind}"
    if kind == "mat":
        savemat(file, {"data": new.X, "target": new.Y.T})
    else:
        write(new, file)
    known = read(file)
    train = Dataset(data.X[:60], data.Y[:60], known.feature_names, known.label_names, kind)
    model = MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3).fit(train.X, train.Y)
    save_model(model, tmp_path / "m.skops", train)
    rows = table(imcc("predict", tmp_path / "m.skops", file, "--proba").stdout)
    assert rows[0] == list(known.label_names)
    expected = model.predict_proba(known.X.toarray() if known.is_sparse else known.X)
    np.testing.assert_allclose(np.array(rows[1:], float), expected, rtol=1e-12)


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
    for form in ("csv", "json", "parquet"):
        imcc(*start, "-o", tmp_path / f"out.{form}")
    found = pd.read_parquet(tmp_path / "out.parquet")["day"]
    assert str(found.dtype).startswith("datetime64")
    assert found.isna().sum() == n - 99
    last = json.loads((tmp_path / "out.json").read_text())[-1]
    assert last["day"].startswith("2024-07-")
