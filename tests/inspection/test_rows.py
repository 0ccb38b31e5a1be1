"""The rows around a row, and its explanation by its columns and these rows."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.inspection import explain_columns, explain_row, nearest_rows
from imcc.tables import TableClassifier

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 90
    region = np.array(["Süd"] * 30 + ["Nord"] * 40 + ["Ost"] * 20)
    age = rng.normal(40, 10, n) + 25 * (region == "Süd")
    note = np.where(region == "Ost", "still waiting for a call", "many thanks for your help")
    opened = pd.date_range("2024-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    frame = pd.DataFrame(
        {
            "key": [f"K-{i}" for i in range(n)],
            "region": region,
            "age": age.round(1),
            "note": note,
            "opened": opened,
            "member": np.where(region == "Nord", "yes", "no"),
        }
    )
    frame.loc[::7, "age"] = None
    labels = pd.DataFrame({"old": age > 50, HOSTILE: region == "Ost"}).astype(int)
    return frame, labels


@pytest.fixture(scope="module")
def model(table):
    frame, labels = table
    inside = IMCCClassifier(n_clusters=3, random_state=0)
    return TableClassifier(inside, kinds={"note": "text"}, random_state=0).fit(frame, labels)


def test_nearest_rows(table, model):
    frame, labels = table
    found = nearest_rows(
        model,
        frame.iloc[[80]],
        frame,
        labels,
        n_nearest=4,
        names=frame["key"],
        label_names=list(labels),
        leave_out=[80],
    )
    features = np.asarray(model.estimator_["table"].transform(frame))
    distances = np.sqrt(((features - features[80]) ** 2).sum(axis=1))
    order = [i for i in np.argsort(distances, kind="stable") if i != 80][:4]
    assert list(found.rows) == order
    np.testing.assert_allclose(found.distances, distances[order])
    assert found.names == tuple(frame["key"].iloc[order])
    assert found.columns == ("region", "age", "note", "opened", "member")
    assert found.values[0][0] == frame["region"].iloc[order[0]]
    assert found.labels[0] == tuple(labels.columns[labels.iloc[order[0]] > 0])
    assert list(found.to_frame().columns) == list(found.columns)
    assert "NearestRows: 4 rows" in repr(found)
    json.dumps(found.to_dict())
    with pytest.raises(InvalidArgumentError, match="names has 3"):
        nearest_rows(model, frame.iloc[[0]], frame, names=[1, 2, 3])


def test_nearest_rows_of_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    clf = IMCCClassifier(n_clusters=3, random_state=0).fit(X, (X > 0).astype(int))
    dense = nearest_rows(clf, X[4], X)
    assert dense.rows[0] == 4
    assert dense.distances[0] == 0
    assert dense.names == tuple(map(str, dense.rows))
    assert dense.labels is None
    assert nearest_rows(clf, sp.csr_array(X[4:5]), sp.csr_array(X)).rows == dense.rows
    # What is not known is not listed.
    Y = np.where(X > 0, 1.0, 0.0)
    Y[4] = [np.nan, 1, 0]
    named = nearest_rows(clf, X[4], X, Y, label_names=np.array(["a", "b", "c"]), n_nearest=1)
    assert named.labels == (("b",),)
    assert nearest_rows(clf, X[4], X[:3], leave_out=[0, 0]).rows in ((1, 2), (2, 1))
    for rows, left_out in ((X[:0], ()), (X[:2], (0, 1))):
        with pytest.raises(InvalidArgumentError, match="no rows"):
            nearest_rows(clf, X[4], rows, leave_out=left_out)


def test_a_row_by_its_columns_and_the_rows_around_it(table, model, tmp_path):
    frame, labels = table
    x, options = frame.iloc[[85]], {"n_background": 20, "random_state": 1}
    given = {"names": frame["key"], "leave_out": [85], "label_names": list(labels)}
    found = explain_row(model, x, frame, labels, n_nearest=3, **given, **options)
    expected = explain_columns(model, x, frame, **options)
    np.testing.assert_array_equal(found.columns.contributions, expected.contributions)
    assert found.nearest == nearest_rows(model, x, frame, labels, n_nearest=3, **given)
    assert "NearestRows" in repr(found)
    assert found.to_frame().shape == (5, 2)
    assert json.loads(json.dumps(found.to_dict()))["nearest"]["rows"] == list(found.nearest.rows)
