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
from imcc._utils.wrappers import innermost
from imcc.baselines import LIFT, KernelRidgeBaseline
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import (
    draw_members,
    explain,
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
FOURIER = IMCCClassifier(**GIVEN, approximation="fourier", n_components=9)
GRID = {"alphas": [1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
GRID |= {"width_scales": [1.0], "random_state": 0}
ENSEMBLE = KernelEnsembleClassifier(random_state=0)

CLUSTERS = {"inspect_model"}
EXACT_WAYS = {"evidence", "support", *CLUSTERS}
LINEAR_WAYS = {"evidence", "features", *CLUSTERS}
ENSEMBLE_WAYS = {"support", "members", "draw_members"}
# What works in addition to explain_columns and nearest_rows, which are for every model.
MODELS = {
    "exact": (lambda: EXACT.fit(X, Y), EXACT_WAYS),
    "sparse": (lambda: IMCCClassifier(**GIVEN).fit(sp.csr_array(X), Y), EXACT_WAYS),
    "linear": (lambda: LINEAR.fit(X, Y), LINEAR_WAYS),
    "nystroem": (lambda: NYSTROEM.fit(X, Y), {"support"}),
    "fourier": (lambda: FOURIER.fit(X, Y), set()),
    "stream": (lambda: IMCCClassifier(**GIVEN, kernel="linear").partial_fit(X, Y), {"features"}),
    "weights": (
        lambda: IMCCClassifier(**GIVEN).fit(X, Y, sample_weight=np.arange(40) % 3),
        {"support", *CLUSTERS},
    ),
    "unknown labels": (
        lambda: IMCCClassifier(**GIVEN).fit(X, UNKNOWN),
        {"support", *CLUSTERS},
    ),
    "search": (lambda: IMCCClassifierCV(**GRID).fit(X, Y), EXACT_WAYS),
    "calibrated search": (lambda: IMCCClassifierCV(**GRID, calibrate=True).fit(X, Y), EXACT_WAYS),
    "nystroem search": (
        lambda: IMCCClassifierCV(**GRID, approximation="nystroem", n_components=9).fit(X, Y),
        {"support"},
    ),
    "ensemble": (lambda: ENSEMBLE.fit(X, Y), ENSEMBLE_WAYS),
    "sparse ensemble": (
        lambda: KernelEnsembleClassifier(random_state=0).fit(sp.csr_array(np.abs(X)), Y),
        ENSEMBLE_WAYS,
    ),
    "trees": (
        lambda: KernelEnsembleClassifier(views=("raw",), trees="all", random_state=0).fit(X, Y),
        ENSEMBLE_WAYS,
    ),
    "calibrated": (lambda: MultilabelCalibrator(EXACT, cv=2).fit(X, Y), EXACT_WAYS),
    "isotonic": (
        lambda: MultilabelCalibrator(EXACT, cv=2, method="isotonic", min_support=3).fit(X, Y),
        EXACT_WAYS,
    ),
    "tuned": (lambda: TunedThresholds(EXACT, cv=2).fit(X, Y), EXACT_WAYS),
    "tuned, calibrated nystroem": (
        lambda: TunedThresholds(MultilabelCalibrator(NYSTROEM, cv=2), cv=2).fit(X, Y),
        {"support"},
    ),
    "pipeline": (lambda: make_pipeline(StandardScaler(), LINEAR).fit(X, Y), LINEAR_WAYS),
    "table": (lambda: TableClassifier(EXACT).fit(FRAME, Y), EXACT_WAYS),
    "table, nystroem": (lambda: TableClassifier(NYSTROEM).fit(FRAME, Y), {"support"}),
    "table, ensemble": (lambda: TableClassifier(ENSEMBLE).fit(FRAME, Y), ENSEMBLE_WAYS),
    "table, other": (lambda: TableClassifier(RidgeClassifier()).fit(FRAME, Y), set()),
    "other": (lambda: RidgeClassifier().fit(X, Y), set()),
    "kernel ridge": (lambda: KernelRidgeBaseline([1.0], cv=3).fit(X, Y), EXACT_WAYS),
    "LIFT": (lambda: LIFT(random_state=0).fit(X, Y), set()),
}
FOR_EVERY_MODEL = {"explain_columns", "nearest_rows"}
WAYS = ["default", "evidence", "support", "features", "members", *CLUSTERS]
WAYS = [*sorted(WAYS), "draw_members", *sorted(FOR_EVERY_MODEL)]


@functools.cache
def fitted(name):
    return MODELS[name][0]()


def call(way, name, model, folder=None):
    """Explain the first row in one of the ways."""
    rows = FRAME if name.startswith("table") else X
    row = rows[:1] if name.startswith("table") else rows[0]
    if "sparse" in name:
        rows = sp.csr_array(np.abs(X) if "ensemble" in name else X)
        row = rows[:1]
    labels = UNKNOWN if name == "unknown labels" else Y
    if way in ("default", "evidence", "support", "features", "members"):
        by = None if way == "default" else way
        return explain(model, row, 0, by=by, X=rows, Y=labels)
    if way == "explain_columns":
        return explain_columns(model, row, rows[:5])
    if way == "nearest_rows":
        return nearest_rows(model, row, rows)
    return inspect_model(model) if way == "inspect_model" else draw_members(model, folder / "m.png")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_it_works_or_says_what_to_do(name, way, tmp_path):
    model, works = fitted(name), MODELS[name][1] | FOR_EVERY_MODEL
    if "evidence" in works or "members" in works:
        works |= {"default"}
    if way not in works:
        with pytest.raises(ImccError):
            call(way, name, model, tmp_path)
        return
    found = call(way, name, model, tmp_path)
    if way in ("default", "evidence", "support", "features", "members"):
        assert sum(found.totals().values()) == pytest.approx(found.score)


@pytest.mark.parametrize("name", ["nystroem", "nystroem search", "table, nystroem"])
def test_landmarks_are_not_called_rows(name):
    """Row 3 of a Nyström model is its fourth landmark, and no training row."""
    found = call("support", name, fitted(name))
    assert list(found.weights) == ["landmark"]
    assert found.weights["landmark"].shape == (len(innermost(fitted(name)).landmarks_),)
    assert found.top(1)[0].name.startswith("landmark ")


def test_what_a_model_lacks_is_asked_for_last():
    """Not Y first, and then that Y is of no use."""
    for name in ("nystroem", "fourier", "stream", "weights"):
        with pytest.raises(ImccError, match="model"):
            explain(fitted(name), X[0], 0, by="evidence")
    search = IMCCClassifierCV(**GRID, refit=False).fit(X, Y)
    with pytest.raises(ImccError, match="refit=False"):
        explain_columns(search, X[0], X)


@pytest.mark.parametrize("library", BACKENDS)
def test_models_of_a_device(library):
    """A model that was fitted on another library's arrays is explained as NumPy's."""
    rows = array(library, X)
    for model, ways in ((EXACT, EXACT_WAYS), (LINEAR, LINEAR_WAYS), (NYSTROEM, {"support"})):
        there = clone(model).set_params(clusterer=X[:4], n_clusters=None).fit(rows, Y)
        here = clone(there).fit(X, Y)
        for way in sorted(ways - CLUSTERS):
            found = explain(there, rows[0, :], 0, by=way, X=rows, Y=Y)
            expected = explain(here, X[0], 0, by=way, X=X, Y=Y)
            assert found.score == pytest.approx(expected.score, abs=1e-6)
            if model is not NYSTROEM:  # its landmarks come from another k-means
                for kind, values in expected.weights.items():
                    np.testing.assert_allclose(found.weights[kind], values, atol=1e-6)
        if ways & CLUSTERS:
            assert inspect_model(there).facts == pytest.approx(inspect_model(here).facts)
