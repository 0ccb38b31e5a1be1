"""Arrays of other libraries: the same results, out of the library that went in.

torch on the CPU and array_api_strict, which allows nothing but the standard, stand in for a GPU.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._array import array as _array
from imcc._array import device as _device
from imcc._array import linalg as _linalg
from imcc._utils.config import config_context
from imcc.metrics import METRICS, evaluate
from tests.backends import BACKENDS, KernelThatFills, array, backend, host, torch_calls
from tests.conftest import FixedClusters

HARD = {"alpha": 1e3, "beta": 1e-3, "gamma": 10.0}
GRID = {
    "alphas": [1e-3, 1.0, 1e3],
    "betas": [1e-3, 0.1, 10.0],
    "gammas": [0.0, 0.1, 10.0],
    "n_clusters": [3, 12],
    "grid": "paper",  # one width
    "cv": KFold(3),
    "scoring": list(METRICS),
    "refit": "average_precision",
    "clusterer": KMeans(n_init=1),
    "random_state": 0,
}


def same(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


@pytest.fixture(params=BACKENDS)
def library(request):
    backend(request.param)
    return request.param


@pytest.mark.parametrize("solver", ["auto", "spectral"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "linear", "poly"])
def test_fits_are_the_same(small_problem, library, kernel, solver):
    X, Y, X_new, _ = small_problem
    if kernel == "chi2":
        X, X_new = np.abs(X), np.abs(X_new)
    clf = IMCCClassifier(
        clusterer=FixedClusters(np.arange(90) % 7), kernel=kernel, solver=solver, **HARD
    )
    expected = clone(clf, safe=False).fit(X, Y)
    found = clf.fit(array(library, X), array(library, Y))
    scores = found.decision_function(array(library, X_new))
    same(host(library, scores), expected.decision_function(X_new), 1e-7)
    labels = found.predict(array(library, X_new))
    np.testing.assert_array_equal(host(library, labels), expected.predict(X_new))
    for name in ("cluster_centers_", "soft_labels_", "intercept_", "cluster_sizes_", "assignment_"):
        same(host(library, getattr(found, name)), getattr(expected, name), 1e-7)
    assert found.width_ == pytest.approx(expected.width_)


def test_several_clusterings_and_float32(small_problem, library):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier((3, 5), clusterer=KMeans(n_init=1), random_state=0)
    narrow = X.astype(np.float32)
    expected = clf.fit(narrow, Y).decision_function(X_new.astype(np.float32))
    scores = clf.fit(array(library, narrow), Y).decision_function(
        array(library, X_new.astype(np.float32))
    )
    assert host(library, scores).dtype == np.float32
    same(host(library, scores), expected, 1e-5)
    assert host(library, clf.assignment_).shape == (90, 2)


@pytest.mark.parametrize("kernels", [["rbf", "linear"], ["laplacian"]], ids=str)
def test_searches_are_the_same(small_problem, library, kernels):
    X, Y, X_new, _ = small_problem
    search = IMCCClassifierCV(**GRID, kernels=kernels, width_scales=[0.5, 1.0])
    expected, found = clone(search).fit(X, Y), search.fit(array(library, X), array(library, Y))
    for name in METRICS:
        np.testing.assert_allclose(
            found.cv_results_[f"mean_test_{name}"],
            expected.cv_results_[f"mean_test_{name}"],
            atol=1e-12,
        )
    assert found.best_params_ == expected.best_params_
    scores = found.decision_function(array(library, X_new))
    same(host(library, scores), expected.decision_function(X_new), 1e-7)


def test_the_search_finds_what_single_fits_find(small_problem, library):
    """With k-means on the device: the same clusters, hence the same scores, in every fold."""
    X, Y, *_ = small_problem
    rows = array(library, X)
    grid = {**GRID, "alphas": 1.0, "betas": [0.1, 1.0], "gammas": 0.1, "clusterer": None}
    results = IMCCClassifierCV(**grid, n_jobs=2).fit(rows, Y).cv_results_
    assert len(results["params"]) == 4
    for i, setting in enumerate(results["params"]):
        for fold, (train, test) in enumerate(KFold(3).split(X)):
            clf = IMCCClassifier(**setting, random_state=0).fit(array(library, X[train]), Y[train])
            scores = clf.decision_function(array(library, X[test]))
            for name, value in evaluate(Y[test], scores).items():
                assert results[f"split{fold}_test_{name}"][i] == pytest.approx(value, abs=1e-12)


def test_one_dimensional_targets(small_problem, library):
    X, Y, X_new, _ = small_problem
    for y in (Y[:, 0], Y[:, 0] + 2 * Y[:, 1], np.array(["no", "yes"])[Y[:, 0]]):
        clf = IMCCClassifier(4, clusterer=KMeans(n_init=1), random_state=0)
        expected = clf.fit(X, y).predict(X_new)
        found = clf.fit(array(library, X), y).predict(array(library, X_new))
        np.testing.assert_array_equal(
            found if y.dtype.kind == "U" else host(library, found), expected
        )
        assert clf.score(array(library, X), y) == clf.score(X, y)


@pytest.mark.parametrize("block", [2, 3, 100])
def test_cholesky_in_blocks(library, config, block):
    config(device_columns=block)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(7, 7))
    A, B = root @ root.T + np.eye(7), rng.normal(size=(7, 2))
    factor = _linalg.cholesky(array(library, A))
    np.testing.assert_allclose(np.tril(host(library, factor)), np.linalg.cholesky(A))
    found = _linalg.cholesky_solve(factor, array(library, B))
    np.testing.assert_allclose(host(library, found), np.linalg.solve(A, B))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        _linalg.cholesky(array(library, A - 5 * np.eye(7)))


def test_memory_for_a_few_entries_gives_the_same(small_problem, library):
    """Blocks as small as they may get, down to one setting and one row at a time."""
    X, Y, X_new, _ = small_problem
    rows = array(library, X)
    search = IMCCClassifierCV(**GRID, kernels=["rbf"])
    expected = clone(search).fit(rows, Y)
    scores = host(library, expected.decision_function(array(library, X_new)))
    for entries in (24, 2**14):
        with config_context(device_entries=entries, device_columns=7):
            assert _device.block_entries(rows) == entries
            found = clone(search).fit(rows, Y)
            same(host(library, found.decision_function(array(library, X_new))), scores)
        for name in METRICS:
            key = f"mean_test_{name}"
            np.testing.assert_allclose(found.cv_results_[key], expected.cv_results_[key], atol=1e-9)


def test_a_kernel_matrix_that_does_not_fit_is_reported(small_problem, config):
    X, Y, *_ = small_problem
    rows = array("torch", X)
    config(device_memory=1e5)
    with pytest.raises(MemoryError, match=r"90 rows needs about 0.000133 GiB .*nystroem"):
        IMCCClassifier(4).fit(rows, Y)
    with pytest.raises(MemoryError, match=r"search with 90 rows needs .*approximation='nystroem'"):
        IMCCClassifierCV(**GRID).fit(rows, Y)
    assert IMCCClassifier(4, kernel="linear", random_state=0).fit(rows, Y).coef_.shape == (4, 5)


def test_a_library_out_of_memory_is_explained(small_problem):
    X, Y, X_new, _ = small_problem
    backend("torch")
    kernel = KernelThatFills()
    clf = IMCCClassifier(4, kernel=kernel, random_state=0, device="cpu").fit(X, Y)
    kernel.is_full = True
    with pytest.raises(MemoryError, match=r"model of 90 x 5 rows .*12 GiB.*nystroem"):
        IMCCClassifier(4, kernel=kernel, random_state=0, device="cpu").fit(X, Y)
    with pytest.raises(MemoryError, match="search with 90 x 5 rows"):
        IMCCClassifierCV(**GRID, kernels=[kernel], device="cpu").fit(X, Y)
    with pytest.raises(MemoryError, match=r"scoring 40 rows .* fewer rows at a time"):
        clf.decision_function(X_new)


@pytest.mark.parametrize("make", [IMCCClassifier, IMCCClassifierCV])
def test_device_with_numpy_in_and_out(small_problem, make):
    backend("torch")
    X, Y, X_new, _ = small_problem
    given = GRID if make is IMCCClassifierCV else {"n_clusters": 4, "clusterer": KMeans(n_init=1)}
    with torch_calls() as calls:
        on_host = make(**{**given, "random_state": 0}).fit(X, Y)
    assert not calls
    with torch_calls() as calls:
        found = make(**{**given, "random_state": 0}, device="cpu").fit(X, Y)
    assert {"matmul", "linalg_solve"} < calls
    inner = getattr(found, "best_estimator_", found)
    for name in ("cluster_centers_", "dual_coef_", "intercept_", "assignment_"):
        assert type(getattr(inner, name)) is np.ndarray
    scores = found.decision_function(X_new)
    assert type(scores) is np.ndarray
    assert type(found.predict(X_new)) is np.ndarray
    same(scores, on_host.decision_function(X_new))
    # Saved and loaded where there is no such device, the model works all the same.
    again = pickle.loads(pickle.dumps(inner)).set_params(device=None)
    same(again.decision_function(X_new), scores)
    narrow = found.decision_function(sp.csr_matrix(X_new))
    same(narrow, scores)


def test_sparse_rows_become_dense_on_a_device():
    backend("torch")
    rng = np.random.default_rng(0)
    X = rng.random((60, 20)) * (rng.random((60, 20)) < 0.2)
    Y = rng.random((60, 3)) < 0.4
    clf = IMCCClassifier(4, clusterer=KMeans(n_init=1), random_state=0)
    expected = clf.fit(X, Y).decision_function(X)
    found = clf.set_params(device="cpu").fit(sp.csr_matrix(X), sp.csr_matrix(Y.astype(int)))
    same(found.decision_function(sp.csr_matrix(X)), expected)


def test_rows_of_another_library_than_the_fit(small_problem):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier(4, clusterer=KMeans(n_init=1), random_state=0).fit(X, Y)
    expected = clf.decision_function(X_new)
    same(host("torch", clf.decision_function(array("torch", X_new))), expected)
    clf.fit(array("torch", X), Y)
    assert type(clf.decision_function(X_new)) is np.ndarray
    same(clf.decision_function(X_new), expected)


def test_metrics_take_arrays_of_a_device(small_problem, library):
    _, _, _, Y = small_problem
    scores = np.random.default_rng(0).normal(size=Y.shape)
    assert evaluate(array(library, Y), array(library, scores)) == evaluate(Y, scores)


def test_unusable_devices_are_reported(small_problem):
    torch = backend("torch")
    X, Y, *_ = small_problem
    unusable = ["gpu"] if torch.cuda.is_available() else ["gpu", "cuda"]
    linear = IMCCClassifier(4, kernel="linear")
    for clf, data in ((linear, (X, Y)), (linear, ([(X, Y)],)), (IMCCClassifierCV(), (X, Y))):
        for device in unusable:
            with pytest.raises(RuntimeError, match=f"device='{device}' cannot be used by torch"):
                clf.set_params(device=device).fit(*data)
        with pytest.raises(ValueError, match="device must be None or a name such as 'cuda', got 0"):
            clf.set_params(device=0).fit(*data)


def missing(*names):
    original = _array.importlib.import_module

    def import_module(name):
        if name.split(".")[0] in names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name)

    return import_module


def test_what_is_not_installed_is_reported(small_problem, monkeypatch):
    X, Y, *_ = small_problem
    rows = array("torch", X)
    with monkeypatch.context() as m:
        m.setattr(_array.importlib, "import_module", missing("torch", "cupy"))
        with pytest.raises(ImportError, match="device='cuda' needs torch or CuPy, and neither is"):
            IMCCClassifier(device="cuda").fit(X, Y)
    monkeypatch.setattr(_array.importlib, "import_module", missing("array_api_compat"))
    with pytest.raises(ImportError, match=r"pip install array-api-compat$"):
        IMCCClassifier().fit(rows, Y)
    with pytest.raises(ImportError, match=r"pip install array-api-compat$"):
        IMCCClassifier(device="cuda").fit(X, Y)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[:, 0], r"X must have two dimensions .* torch of shape \(90,\)"),
        (lambda X: X[:0, :], r"at least one row .* shape \(0, 5\)"),
        (lambda X: X * np.nan, "NaN or infinity"),
        (lambda X: X.half(), "float64 or float32, got torch.float16"),
    ],
    ids=["vector", "empty", "nan", "half"],
)
def test_bad_rows_on_a_device(small_problem, spoil, message):
    X, Y, *_ = small_problem
    rows = spoil(array("torch", X))
    with pytest.raises(ValueError, match=message):
        IMCCClassifier(4).fit(rows, Y[: len(rows)])


def test_rows_of_another_width_and_whole_numbers(small_problem, library):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(4, random_state=0).fit(array(library, X), Y)
    with pytest.raises(ValueError, match="X has 3 features, but IMCCClassifier is expecting 5"):
        clf.decision_function(array(library, X[:, :3]))
    whole = np.rint(X).astype(np.int64)
    same(
        host(library, clf.decision_function(array(library, whole))),
        host(library, clf.decision_function(array(library, whole.astype(float)))),
    )
