"""Every estimator, on dense and sparse rows, from arrays and frames: saved, loaded, the same."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc._utils.names import CLASSES, PARTS, name_of
from imcc.persistence import load_model, read_card, save_model, untrusted_types
from imcc.tables import TableClassifier, TableEncoder
from tests.models import MODELS

pytest.importorskip("skops")

FEATURES, LABELS = [f"word {j}" for j in range(5)], list("pqrs")


def as_sparse_frame(X):
    return pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=FEATURES)


ROWS = {
    "dense float32": lambda X: X.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "sparse frame": as_sparse_frame,
}


@pytest.fixture(scope="module")
def problem(small_problem):
    X, Y, X_new, _ = small_problem
    return np.maximum(X, 0), Y, np.maximum(X_new, 0)


def test_no_estimator_is_left_out():
    kinds = {type(model) for model in MODELS.values()} | {TableClassifier, TableEncoder}
    assert {name_of(kind) for kind in kinds} - {None} == set(CLASSES)


@pytest.mark.parametrize("inner", ["rbf", "ensemble", "thresholds", "calibrated"])
def test_round_trip_of_tables(tmp_path, inner):
    """With columns of every kind, and a label that comes from tags."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=60).round(2)
    table = pd.DataFrame(
        {
            "key": [f"K{i}" for i in range(60)],
            "size": np.where(np.arange(60) % 7 == 0, np.nan, size),
            "town": rng.choice(["Ulm", "Köln", "Bonn"], 60),
            "new": rng.choice(["yes", "no"], 60),
            "sold": pd.date_range("2024-01-01", periods=60, freq="31h"),
            "note": [" ".join(rng.choice(["red", "green", "blue", "dark"], 4)) for _ in range(60)],
            "tags": np.where(size > 0, "large|any", "any") + np.where(size > 1, "|huge", ""),
        }
    )
    with pytest.warns(UserWarning, match="'any' is 1 in every row"):
        model = TableClassifier(MODELS[inner], random_state=0).fit(table, "tags")
    file = save_model(model, tmp_path / "m.skops")
    assert untrusted_types(file) == []
    assert read_card(file).label_names == ("any", "huge", "large")
    again = load_model(file)
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.schema_ == model.schema_
    used = saved_names(file)
    assert {module for module, _ in used} == {"imcc"}
    assert {"TableClassifier", "TableEncoder", "Schema", "SchemaColumn"} <= {n for _, n in used}


def saved_names(file):
    """Return the names by which a file knows classes of ours."""
    with zipfile.ZipFile(file) as archive:
        waiting = [json.loads(archive.read("schema.json"))]
    found = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("__module__"), str):
                found.add((node["__module__"], node["__class__"]))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return {(module, name) for module, name in found if module.split(".")[0] == "imcc"}


def shown(model):
    return re.sub(r" at 0x\w+", "", repr(model.get_params()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(problem, tmp_path, name, rows):
    X, Y, X_new = problem
    X, X_new = ROWS[rows](X), ROWS[rows](X_new)
    if "frame" in rows:
        Y = pd.DataFrame(Y, columns=LABELS)
    model = MODELS[name].fit(X, Y)
    file = save_model(model, tmp_path / "m.skops")
    card = read_card(file)
    if "frame" in rows:
        assert (card.feature_names, card.label_names) == (tuple(FEATURES), tuple(LABELS))
    assert untrusted_types(file) == []
    again = load_model(file)
    assert type(again) is type(model)
    assert shown(again) == shown(model)
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X_new)
        np.testing.assert_array_equal(again.decision_function(X_new), scores)
    used = saved_names(file)
    assert {module for module, _ in used} == {"imcc"}  # no module path of ours
    assert {short for _, short in used} <= {*CLASSES, *PARTS}
