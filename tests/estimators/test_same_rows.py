"""The same rows have the same scores in every form: dense, sparse, float32, in parts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc._math.ensemble.views import VIEWS
from imcc._utils.names import CLASSES, name_of
from imcc.baselines import JFSCCV
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.tables import TableClassifier, TableEncoder
from tests.models import IMCC, MODELS

EVERY = {
    **MODELS,
    # With small weights: on features of different scales, others have no minimum.
    "JFSCCV": JFSCCV(alphas=[1e-4], betas=[1.0], gammas=[1e-4], cv=3),
    **{
        f"{kernel} kernel": IMCCClassifier(**IMCC, kernel=kernel)
        for kernel in ("cosine", "sigmoid", "additive_chi2")
    },
    **{f"{v} view": KernelEnsembleClassifier(views=(v,), random_state=0) for v in VIEWS},
    "thresholds of an ensemble": TunedThresholds(
        KernelEnsembleClassifier(random_state=0), cv="held_out"
    ),
    "calibrated ensemble": MultilabelCalibrator(
        KernelEnsembleClassifier(views=("raw",), random_state=0), cv=2
    ),
}


def reversed_entries(X):
    """Return a CSR matrix whose rows list their entries from the last column to the first."""
    rows = sp.csr_matrix(X)
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        for part in (rows.indices, rows.data):
            part[begin:end] = part[begin:end][::-1].copy()
    rows.has_sorted_indices = False
    return rows


def halved_entries(X):
    """Return a CSR matrix that stores every entry twice, with half of its value."""
    rows = sp.coo_matrix(X)
    data, where = np.tile(rows.data / 2, 2), (np.tile(rows.row, 2), np.tile(rows.col, 2))
    order = np.argsort(where[0], kind="stable")
    starts = np.searchsorted(where[0][order], np.arange(X.shape[0] + 1))
    return sp.csr_matrix((data[order], where[1][order], starts), shape=X.shape)


def stored_zeros(X):
    columns, starts = np.tile(np.arange(X.shape[1]), len(X)), np.arange(0, X.size + 1, X.shape[1])
    return sp.csr_matrix((X.ravel(), columns, starts), shape=X.shape)


def long_indices(X):
    rows = sp.csr_matrix(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def scored_in_parts(size, form=np.asarray):
    return lambda score, X: np.concatenate(
        [score(form(X[begin : begin + size])) for begin in range(0, len(X), size)]
    )


FORMS = {
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "list": lambda X: X.tolist(),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "reversed entries": reversed_entries,
    "halved entries": halved_entries,
    "stored zeros": stored_zeros,
    "64-bit indices": long_indices,
    "float32": lambda X: X.astype(np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
WAYS = {
    **{name: lambda score, X, form=form: score(form(X)) for name, form in FORMS.items()},
    "chunks": scored_in_parts(7),
    "sparse chunks": scored_in_parts(7, sp.csc_matrix),
    "single rows": scored_in_parts(1),
    "single sparse rows": scored_in_parts(1, sp.csr_matrix),
}
FITTED_ON = {"dense": np.asarray, "csr": sp.csr_matrix, "float32": lambda X: X.astype(np.float32)}
# Scores are as exact as float32 where rows are; those in float64 differ by rounding only.
SINGLE, DOUBLE = 5e-7, 1e-9


def is_single(form):
    return "float32" in form


@pytest.fixture(scope="module")
def problems():
    """Dense rows, one column far from 0, and rows that are mostly zeros; exact in float32."""
    rng = np.random.default_rng(0)
    dense = np.abs(rng.normal(loc=[20, 3, 3, 2, 0, 0, 0, 0], size=(102, 8)))
    dense[:, 7] = rng.integers(3, size=102)
    zeros = rng.poisson(0.15, size=(102, 12)) * rng.uniform(0.5, 1.0, size=(102, 12))
    found = {}
    for name, X in {"dense": dense, "zeros": zeros}.items():
        X = X.astype(np.float32).astype(np.float64)
        noise = 0.3 * rng.normal(size=(102, 3))
        Y = ((X - X.mean(axis=0)) @ rng.normal(size=(X.shape[1], 3)) + noise > 0).astype(int)
        found[name] = X[:90], Y[:90], X[90:]
    return found


def test_no_classifier_is_left_out():
    kinds = {type(model) for model in EVERY.values()} | {TableClassifier, TableEncoder}
    assert {name_of(kind) for kind in kinds} - {None} == set(CLASSES)


@pytest.mark.filterwarnings("ignore")  # of convergence, and of approximated kernels
@pytest.mark.parametrize(
    ("rows", "fitted_on"), [("dense", "dense"), ("zeros", "csr"), ("dense", "float32")]
)
@pytest.mark.parametrize("name", EVERY)
def test_same_scores_in_every_form(problems, name, rows, fitted_on):
    X, Y, X_new = problems[rows]
    model = clone(EVERY[name]).fit(FITTED_ON[fitted_on](X), Y)
    for method in ("decision_function", "predict_proba"):
        score = getattr(model, method, None)
        if score is None:
            continue
        expected = score(X_new)
        # Pipelines scale float32 rows in float32, before the classifier sees them.
        single = fitted_on == "float32" and name == "pipeline"
        for way, scored in WAYS.items():
            tolerance = SINGLE if single or is_single(way) else DOUBLE
            np.testing.assert_allclose(
                scored(score, X_new),
                expected,
                rtol=0,
                atol=tolerance * np.abs(expected).max(),
                err_msg=f"{method}, {way}",
            )


@pytest.mark.parametrize("view", VIEWS)
def test_ensembles_of_dense_and_of_sparse_rows_are_the_same(problems, view):
    X, Y, X_new = problems["dense"]
    model = KernelEnsembleClassifier(views=(view,), random_state=0)
    expected = model.fit(X, Y).decision_function(X_new)
    found = model.fit(sp.csr_matrix(X), Y).decision_function(X_new)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("inner", ["rbf", "ensemble", "with trees", "thresholds"])
def test_same_scores_of_every_form_of_a_table(inner):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": (rng.normal(size=90) + 30).astype(np.float32).astype(np.float64),
            "town": rng.choice(["Ulm", "Bonn", "Essen"], 90),
            "note": [" ".join(rng.choice(["red", "green", "blue", "dark"], 4)) for _ in range(90)],
        }
    )
    Y = np.column_stack([table["size"] > 30, table["town"] == "Ulm"]).astype(int)
    new = table[60:].reset_index(drop=True)
    model = TableClassifier(MODELS[inner], random_state=0).fit(table[:60], Y[:60])
    forms = {
        "pyarrow": pa.Table.from_pandas(new),
        "dict": new.to_dict("list"),
        "float32": new.astype({"size": np.float32}),
        "another order": new[["note", "size", "town"]],
    }
    score = model.decision_function
    expected = score(new)
    found = {name: score(form) for name, form in forms.items()}
    found["chunks"] = np.concatenate([score(new[i : i + 7]) for i in range(0, 30, 7)])
    found["single rows"] = np.concatenate([score(new[i : i + 1]) for i in range(30)])
    for name, scores in found.items():
        np.testing.assert_allclose(scores, expected, atol=1e-9, err_msg=name)
