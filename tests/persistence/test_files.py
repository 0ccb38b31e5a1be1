"""Files that were written by an earlier version are read by this one."""

import importlib
import importlib.util
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from imcc._utils.names import CLASSES, PARTS
from imcc.persistence import load_model, read_card, untrusted_types

pytest.importorskip("skops")

DATA = Path(__file__).parents[1] / "data"
FILES = sorted((DATA / "models").glob("*.skops"))


def script():
    spec = importlib.util.spec_from_file_location("make_models", DATA / "make_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_says_what_is_there():
    assert {file.stem for file in FILES} >= set(script().models())


# Versions of scikit-learn warn about each other's estimators.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_committed_files_are_read(file):
    card = read_card(file)
    assert (card.feature_names, card.label_names) == (tuple("abcd"), tuple("pqr"))
    assert (card.data_name, card.n_rows) == ("small", 24)
    assert untrusted_types(file) == []
    model = load_model(file)
    X, _ = script().problem()
    with np.load(DATA / "models" / "scores.npz") as expected:
        for rows in (X, sp.csr_array(X)):
            scores = model.decision_function(rows)
            np.testing.assert_allclose(scores, expected[file.stem], rtol=1e-9, atol=1e-12)
            assert model.predict(rows).shape == (24, 3)
    # All parameters of today are there.
    assert repr(clone(model))
    assert model.get_params()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_committed_files_name_no_module_of_ours(file):
    with zipfile.ZipFile(file) as archive:
        text = archive.read("schema.json").decode()
    assert '"imcc.' not in text
    assert json.loads(text)["__module__"] in ("imcc", "sklearn.pipeline")


def test_short_names_lead_to_classes():

    for where in (*CLASSES.values(), *PARTS.values()):
        module, _, name = where.partition(":")
        assert isinstance(getattr(importlib.import_module(module), name), type)
    assert not set(CLASSES) & set(PARTS)
