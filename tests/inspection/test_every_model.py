"""Every kind of explanation of every kind of model: it works, or an error says what to do."""

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._utils.errors import ImccError
from imcc.inspection import explain_columns, inspect_model, nearest_rows
from imcc.tables import TableClassifier
from tests.backends import BACKENDS, array
from tests.models import GRID, IMCC, MODELS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

random = np.random.default_rng(0)
X = np.abs(random.normal(size=(40, 4)))
Y = (X[:, :3] + random.normal(size=(40, 3)) > 1).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd"))
EVERY = {
    **MODELS,
    "sparse": IMCCClassifier(**IMCC),
    "sparse ensemble": MODELS["ensemble"],
    "stream": IMCCClassifier(**IMCC, kernel="linear"),
    "other": RidgeClassifier(),
    **{
        f"table, {name}": TableClassifier(model)
        for name, model in {**MODELS, "other": RidgeClassifier()}.items()
        if name in ("rbf", "nystroem", "ensemble", "other")
    },
}
HAVE_CLUSTERS = {
    *("rbf", "linear", "laplacian", "chi2", "polynomial", "search", "calibrated search"),
    *("pipeline", "grid search", "thresholds", "thresholds of a search", "guaranteed"),
    *("calibrated", "calibrated, isotonic", "kernel ridge", "sparse", "table, rbf"),
}


def rows_of(name):
    if "sparse" in name:
        return sp.csr_array(X)
    return FRAME if name.startswith("table") else X


@functools.cache
def fitted(name):
    model = clone(EVERY[name])
    return model.fit([(X, Y)]) if name == "stream" else model.fit(rows_of(name), Y)


@pytest.mark.parametrize("name", EVERY)
def test_clusters_are_inspected_or_an_error_says_what_to_do(name):
    if name in HAVE_CLUSTERS:
        # Guaranteed thresholds fit the model to some of the rows only.
        data = () if name == "guaranteed" else (Y,)
        assert len(inspect_model(fitted(name), *data).sizes) > 0
    else:
        with pytest.raises(ImccError):
            inspect_model(fitted(name))


@pytest.mark.parametrize("name", EVERY)
def test_rows_are_explained(name):
    model, rows = fitted(name), rows_of(name)
    found = explain_columns(model, rows[:1], rows[:5])
    total = found.baseline + found.contributions.sum(axis=0)
    np.testing.assert_allclose(total, found.scores, atol=1e-9)
    assert nearest_rows(model, rows[:1], rows).rows[0] == 0


def test_a_search_without_a_model():
    search = IMCCClassifierCV(**GRID, random_state=0, refit=False).fit(X, Y)
    with pytest.raises(ImccError, match="refit=False"):
        explain_columns(search, X[0], X)


@pytest.mark.parametrize("library", BACKENDS)
def test_models_of_a_device(library):
    """A model that was fitted on another library's arrays is explained as NumPy's."""
    rows = array(library, X)
    for kernel in ("rbf", "linear"):
        model = MODELS[kernel]
        there = clone(model).set_params(clusterer=X[:4], n_clusters=None).fit(rows, Y)
        here = clone(there).fit(X, Y)
        one, other = inspect_model(there), inspect_model(here)
        np.testing.assert_array_equal(one.sizes, other.sizes)
        np.testing.assert_allclose(one.shares, other.shares)
