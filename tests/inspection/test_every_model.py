"""Every kind of explanation of every kind of model: it works, or an error says what to do."""

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc._utils.errors import ImccError
from imcc.baselines import LIFT, KernelRidgeBaseline
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import (
    explain_columns,
    inspect_model,
    nearest_rows,
)
from imcc.tables import TableClassifier
from tests.backends import BACKENDS, array

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

random = np.random.default_rng(0)
X = random.normal(size=(40, 4))
Y = (X[:, :3] + random.normal(size=(40, 3)) > 0).astype(int)
UNKNOWN = np.where(np.arange(120).reshape(40, 3) == 7, np.nan, Y)
FRAME = pd.DataFrame(X, columns=list("abcd"))
GIVEN = {"n_clusters": 4, "random_state": 0}
EXACT = IMCCClassifier(**GIVEN)
LINEAR = IMCCClassifier(**GIVEN, kernel="linear")
NYSTROEM = IMCCClassifier(**GIVEN, approximation="nystroem", n_components=9)
GRID = {"alphas": [1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
GRID |= {"width_scales": [1.0], "random_state": 0}
ENSEMBLE = KernelEnsembleClassifier(random_state=0)

CLUSTERS = {"inspect_model"}
# What works in addition to explain_columns and nearest_rows, which are for every model.
MODELS = {
    "exact": (lambda: EXACT.fit(X, Y), CLUSTERS),
    "sparse": (lambda: IMCCClassifier(**GIVEN).fit(sp.csr_array(X), Y), CLUSTERS),
    "linear": (lambda: LINEAR.fit(X, Y), CLUSTERS),
    "nystroem": (lambda: NYSTROEM.fit(X, Y), set()),
    "stream": (lambda: IMCCClassifier(**GIVEN, kernel="linear").fit([(X, Y)]), set()),
    "weights": (
        lambda: IMCCClassifier(**GIVEN).fit(X, Y, sample_weight=np.arange(40) % 3),
        CLUSTERS,
    ),
    "unknown labels": (
        lambda: IMCCClassifier(**GIVEN).fit(X, UNKNOWN),
        CLUSTERS,
    ),
    "search": (lambda: IMCCClassifierCV(**GRID).fit(X, Y), CLUSTERS),
    "calibrated search": (lambda: IMCCClassifierCV(**GRID, calibrate=True).fit(X, Y), CLUSTERS),
    "nystroem search": (
        lambda: IMCCClassifierCV(**GRID, approximation="nystroem", n_components=9).fit(X, Y),
        set(),
    ),
    "ensemble": (lambda: ENSEMBLE.fit(X, Y), set()),
    "sparse ensemble": (
        lambda: KernelEnsembleClassifier(random_state=0).fit(sp.csr_array(np.abs(X)), Y),
        set(),
    ),
    "trees": (
        lambda: KernelEnsembleClassifier(views=("raw",), trees="all", random_state=0).fit(X, Y),
        set(),
    ),
    "calibrated": (lambda: MultilabelCalibrator(EXACT, cv=2).fit(X, Y), CLUSTERS),
    "isotonic": (
        lambda: MultilabelCalibrator(EXACT, cv=2, method="isotonic", min_support=3).fit(X, Y),
        CLUSTERS,
    ),
    "tuned": (lambda: TunedThresholds(EXACT, cv=2).fit(X, Y), CLUSTERS),
    "tuned, calibrated nystroem": (
        lambda: TunedThresholds(MultilabelCalibrator(NYSTROEM, cv=2), cv=2).fit(X, Y),
        set(),
    ),
    "pipeline": (lambda: make_pipeline(StandardScaler(), LINEAR).fit(X, Y), CLUSTERS),
    "table": (lambda: TableClassifier(EXACT).fit(FRAME, Y), CLUSTERS),
    "table, nystroem": (lambda: TableClassifier(NYSTROEM).fit(FRAME, Y), set()),
    "table, ensemble": (lambda: TableClassifier(ENSEMBLE).fit(FRAME, Y), set()),
    "table, other": (lambda: TableClassifier(RidgeClassifier()).fit(FRAME, Y), set()),
    "other": (lambda: RidgeClassifier().fit(X, Y), set()),
    "kernel ridge": (lambda: KernelRidgeBaseline([1.0], cv=3).fit(X, Y), CLUSTERS),
    "LIFT": (lambda: LIFT(random_state=0).fit(X, Y), set()),
}
FOR_EVERY_MODEL = {"explain_columns", "nearest_rows"}
WAYS = [*CLUSTERS, *sorted(FOR_EVERY_MODEL)]


@functools.cache
def fitted(name):
    return MODELS[name][0]()


def call(way, name, model):
    """Explain the first row in one of the ways."""
    rows = FRAME if name.startswith("table") else X
    row = rows[:1] if name.startswith("table") else rows[0]
    if "sparse" in name:
        rows = sp.csr_array(np.abs(X) if "ensemble" in name else X)
        row = rows[:1]
    if way == "explain_columns":
        return explain_columns(model, row, rows[:5])
    if way == "nearest_rows":
        return nearest_rows(model, row, rows)
    return inspect_model(model)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_it_works_or_says_what_to_do(name, way):
    model, works = fitted(name), MODELS[name][1] | FOR_EVERY_MODEL
    if way not in works:
        with pytest.raises(ImccError):
            call(way, name, model)
        return
    call(way, name, model)


def test_a_search_without_a_model():
    search = IMCCClassifierCV(**GRID, refit=False).fit(X, Y)
    with pytest.raises(ImccError, match="refit=False"):
        explain_columns(search, X[0], X)


@pytest.mark.parametrize("library", BACKENDS)
def test_models_of_a_device(library):
    """A model that was fitted on another library's arrays is explained as NumPy's."""
    rows = array(library, X)
    for model in (EXACT, LINEAR):
        there = clone(model).set_params(clusterer=X[:4], n_clusters=None).fit(rows, Y)
        here = clone(there).fit(X, Y)
        for one, other in zip(
            inspect_model(there).clusters, inspect_model(here).clusters, strict=True
        ):
            assert one.size == other.size
            np.testing.assert_allclose(one.shares, other.shares)
