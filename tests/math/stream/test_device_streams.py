"""Approximate kernels and streams on a device: the results of NumPy, of the kind that went in.

torch on the CPU and array_api_strict stand in for a GPU.
"""

import itertools
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._array import array as _array
from imcc._array import device as _device
from imcc._math.clustering import nearest
from imcc.metrics import METRICS
from tests.backends import BACKENDS, KernelThatFills, array, backend, host
from tests.calls import recorded_calls

HEAVY = {"alpha": 5.0, "beta": 0.1, "gamma": 2.0}
KINDS = {
    "linear": {"kernel": "linear"},
    "nystroem": {"approximation": "nystroem", "n_components": 20},
    "random": {"approximation": "nystroem", "n_components": 20, "landmarks": "random"},
    "laplacian": {"approximation": "nystroem", "n_components": 20, "kernel": "laplacian"},
    "poly": {"approximation": "nystroem", "n_components": 12, "kernel": "poly"},
}
APPROXIMATE = [kind for kind in KINDS if kind != "linear"]
EDGES = [0, 30, 31, 77, 90]


def same(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


def cut(X, Y, edges=EDGES):
    return [(X[a:b, :], Y[a:b, ...]) for a, b in itertools.pairwise(edges)]


def attributes(clf):
    weights = "coef_" if hasattr(clf, "coef_") else "dual_coef_"
    names = [weights, "intercept_", "cluster_centers_", "soft_labels_", "cluster_sizes_"]
    return [*names, "landmarks_"] if clf.approximation == "nystroem" else names


def same_models(found, expected, library="numpy", rtol=1e-8):
    """Compare all that was learned; the arrays found must be of a library."""
    assert found.width_ == pytest.approx(expected.width_)
    for name in attributes(expected):
        value = getattr(found, name)
        value = of_numpy(value) if library == "numpy" else host(library, value)
        assert value.dtype == getattr(expected, name).dtype, name
        same(value, getattr(expected, name), rtol)


def of_numpy(values):
    """As ``host``, for results that must be NumPy's."""
    assert type(values) is np.ndarray
    return values


@pytest.fixture(autouse=True)
def small_samples(config):
    """Samples that are smaller than the problem, so that it matters which rows are drawn."""
    config(width_rows=30, rows_per_landmark=2, cluster_rows=50, rows_per_cluster=1)


@pytest.fixture(params=BACKENDS)
def library(request):
    backend(request.param)
    return request.param


@contextmanager
def libraries_used():
    """The libraries of the arrays that chunks are summed, models solved and rows scored with."""
    modules = ("_math.stream.fitting", "_math.maps", "_math.solver", "_math.kernels")
    found = set()
    with recorded_calls(_array.namespace) as calls:
        yield found
    callers = {f"imcc.{module}" for module in modules}
    found |= {_array.library(call.arguments["x"]) for call in calls if call.caller in callers}


# Arrays in memory.


@pytest.mark.parametrize("solver", ["auto", "spectral"])
@pytest.mark.parametrize("kind", APPROXIMATE)
def test_fits_are_the_same(small_problem, library, kind, solver):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier(
        (3, 5), **KINDS[kind], **HEAVY, solver=solver, clusterer=KMeans(n_init=1), random_state=0
    )
    expected, found = clone(clf).fit(X, Y), clf.fit(array(library, X), array(library, Y))
    same_models(found, expected, library)
    scores = found.decision_function(array(library, X_new))
    same(host(library, scores), expected.decision_function(X_new))
    # Whichever the rows are of decides where scores are computed, and of what kind they are.
    same(of_numpy(found.decision_function(X_new)), expected.decision_function(X_new))
    same(
        host(library, expected.decision_function(array(library, X_new))),
        expected.decision_function(X_new),
    )


def test_float32_rows_are_scored_in_float32(small_problem, library):
    X, Y, X_new, _ = (part.astype(np.float32) for part in small_problem)
    clf = IMCCClassifier(4, **KINDS["nystroem"], clusterer=KMeans(n_init=1), random_state=0)
    expected = clf.fit(X, Y).decision_function(X_new)
    found = clf.fit(array(library, X), Y).decision_function(array(library, X_new))
    assert host(library, found).dtype == np.float32
    same(host(library, found), expected, 1e-4)


def test_prototypes_and_landmarks_given(small_problem, library):
    X, Y, X_new, _ = small_problem
    given = {"approximation": "nystroem", "clusterer": X[:6].copy(), "width": 2.0, **HEAVY}
    expected = IMCCClassifier(**given, landmarks=X[::7]).fit(X, Y).decision_function(X_new)
    for landmarks in (X[::7], array(library, X[::7])):
        clf = IMCCClassifier(**given, landmarks=landmarks).fit(array(library, X), Y)
        same(host(library, clf.decision_function(array(library, X_new))), expected)


def test_searches_are_the_same(small_problem, library):
    X, Y, X_new, _ = small_problem
    search = IMCCClassifierCV(
        alphas=[1e-3, 1e3],
        betas=[1e-2, 1.0],
        gammas=[0.0, 10.0],
        n_clusters=[3, (2, 9)],
        kernels=["rbf", "laplacian"],
        width_scales=[0.5, 1.0],
        cv=KFold(3),
        scoring=list(METRICS),
        refit="average_precision",
        clusterer=KMeans(n_init=1),
        random_state=0,
        **KINDS["nystroem"],
    )
    expected, found = clone(search).fit(X, Y), clone(search).fit(array(library, X), Y)
    for name in METRICS:
        key = f"mean_test_{name}"
        np.testing.assert_allclose(found.cv_results_[key], expected.cv_results_[key], atol=1e-12)
    assert found.best_params_ == expected.best_params_
    scores = found.decision_function(array(library, X_new))
    same(host(library, scores), expected.decision_function(X_new))
    if library == "torch":
        there = search.set_params(device="cpu").fit(X, Y)
        same(of_numpy(there.decision_function(X_new)), expected.decision_function(X_new))


def test_memory_for_a_few_rows_gives_the_same(small_problem, library, config):
    X, Y, X_new, _ = small_problem
    rows = array(library, X)
    clf = IMCCClassifier(4, **KINDS["nystroem"], random_state=0).fit(rows, Y)
    expected = host(library, clf.decision_function(array(library, X_new)))
    config(device_entries=200)
    again = clf.fit(rows, Y).decision_function(array(library, X_new))
    same(host(library, again), expected)


@pytest.mark.parametrize("entries", [30, 2**20])
def test_nearest_prototypes_block_by_block(small_problem, library, config, entries):
    X, *_ = small_problem
    config(device_entries=entries)
    expected = np.linalg.norm(X[:, np.newaxis] - X[:7], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(host(library, nearest(array(library, X), X[:7])), expected)


# Streams.


@pytest.mark.parametrize("passes_over", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_moved_to_a_device(small_problem, kind, passes_over):
    backend("torch")
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier((6, 3), **KINDS[kind], **HEAVY, lloyd_passes=passes_over, random_state=0)
    expected = clone(clf).fit(cut(X, Y))
    with libraries_used() as used:
        found = clf.set_params(device="cpu").fit(cut(X, Y))
    assert used == {"torch"}
    same_models(found, expected)
    with libraries_used() as used:
        scores = of_numpy(found.decision_function(X_new))
    assert used == {"torch"}
    same(scores, expected.decision_function(X_new))
    again = pickle.loads(pickle.dumps(found)).set_params(device=None)
    same(again.decision_function(X_new), expected.decision_function(X_new))


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_that_are_on_a_device(small_problem, library, kind):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier(6, **KINDS[kind], **HEAVY, lloyd_passes=2, random_state=0)
    expected = clone(clf).fit(cut(X, Y))
    for labels in (Y, array(library, Y)):
        found = clf.fit(cut(array(library, X), labels))
        same_models(found, expected, library)
    scores = found.decision_function(array(library, X_new))
    same(host(library, scores), expected.decision_function(X_new))


def test_chunks_of_several_kinds(small_problem, library):
    """What the first chunk is decides."""
    X, Y, *_ = small_problem
    clf = IMCCClassifier(6, **KINDS["nystroem"], lloyd_passes=1, random_state=0)
    expected = clone(clf).fit(cut(X, Y))
    mixed = [(array(library, x) if k % 2 == 0 else x, y) for k, (x, y) in enumerate(cut(X, Y))]
    same_models(clone(clf).fit(mixed), expected, library)
    for name in attributes(expected):
        found = clone(clf).fit([mixed[1], mixed[0], *mixed[2:]])
        assert type(getattr(found, name)) is np.ndarray


@pytest.mark.parametrize("kind", ["linear", "nystroem"])
def test_memory_mapped_arrays_and_a_device(small_problem, tmp_path, kind, config):
    backend("torch")
    X, Y, *_ = small_problem
    for name, values in (("X", X), ("Y", Y)):
        np.save(tmp_path / f"{name}.npy", values)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "Y")]
    config(slice_entries=100)
    clf = IMCCClassifier(6, **KINDS[kind], random_state=0)
    expected = clone(clf).fit(*mapped)
    with libraries_used() as used:
        found = clf.set_params(device="cpu").fit(*mapped)
    assert used == {"torch"}
    same_models(found, expected)


def test_sparse_rows_and_float32_on_a_stream(small_problem):
    backend("torch")
    X, Y, X_new, _ = small_problem
    common = {**KINDS["nystroem"], "clusterer": X[:6].copy(), "width": 2.0, "random_state": 0}
    common |= {"landmarks": X[::5].copy(), "n_components": None}
    for rows, labels, rtol in (
        (sp.csr_matrix(X), Y, 1e-8),
        (X.astype(np.float32), Y, 1e-6),
    ):
        clf = IMCCClassifier(**common).fit(cut(rows, labels))
        scores = clf.decision_function(X_new)
        found = clf.set_params(device="cpu").fit(cut(rows, labels))
        same(of_numpy(found.decision_function(X_new)), scores, rtol)
        np.testing.assert_array_equal(found.predict(X_new), clf.predict(X_new))


class FakeQueues:
    """As much of torch.cuda as the mover uses, which records the calls."""

    def __init__(self, torch):
        self.torch, self.log, self.count = torch, [], 0
        self.cuda = self
        self.from_numpy = torch.from_numpy

    def Stream(self, device):  # noqa: N802
        return "lane"

    def current_stream(self, device):
        return self

    @contextmanager
    def stream(self, lane):
        self.log.append(f"in {lane}:")
        yield
        self.log.append("out")

    def record_event(self):
        self.count += 1
        return FakeEvent(self.log, self.count)

    def wait_stream(self, lane):
        self.log.append(f"work waits for {lane}")

    def empty(self, shape, dtype, pin_memory):
        assert pin_memory
        return self.torch.empty(shape, dtype=dtype)


class FakeEvent:
    def __init__(self, log, number):
        self.log, self.number = log, number

    def synchronize(self):
        self.log.append(f"host waits for {self.number}")


def test_the_way_to_a_gpu(monkeypatch):
    """The queues, in their order; a GPU itself is checked by imcc_paper.gpu."""
    torch = backend("torch")
    mover = _device.ChunkMover("cpu")
    fake = FakeQueues(torch)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda x, q: fake.log.append("kept"))
    original = _device.importlib.import_module
    monkeypatch.setattr(
        _device.importlib, "import_module", lambda name: fake if name == "torch" else original(name)
    )
    for k in range(4):
        rows = np.full((3, 2), float(k))
        rows.flags.writeable = False
        moved = mover._moved_meanwhile(rows)
        np.testing.assert_array_equal(moved.numpy(), rows)
        assert not np.shares_memory(moved.numpy(), rows)
    way = ["in lane:", "out", "work waits for lane", "kept"]
    assert fake.log == [
        *way,
        *way,
        *("host waits for 1", *way),
        *("host waits for 2", *way),
    ]


# What cannot be.


def test_bad_chunks_on_a_device(small_problem, library):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(4, **KINDS["nystroem"], random_state=0)
    bad = X.copy()
    bad[80, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"chunk 3, row 3 of the chunk \(row 80 of all\), column 2"
    ):
        clf.fit(cut(array(library, bad), Y))
    with pytest.raises(ValueError, match=r"chunk 1 .* has 4 features instead of 5"):
        clf.fit([(array(library, X), Y), (array(library, X[:, :4]), Y)])
    with pytest.raises(ValueError, match=r"chunk 0 .* X must have two dimensions"):
        clf.fit([(array(library, X[:, 0]), Y)])
    with pytest.raises(ValueError, match="landmarks must have 5 features"):
        IMCCClassifier(4, approximation="nystroem", landmarks=X[:9, :4]).fit(array(library, X), Y)


def test_a_chunk_that_does_not_fit_is_explained(small_problem):
    backend("torch")
    X, Y, *_ = small_problem
    kernel = KernelThatFills()
    kernel.is_full = True
    options = {**KINDS["nystroem"], "kernel": kernel}
    clf = IMCCClassifier(4, **options, random_state=0, device="cpu")
    with pytest.raises(MemoryError, match=r"model of the stream .*12 GiB.*smaller chunks"):
        clf.fit(cut(X, Y))
