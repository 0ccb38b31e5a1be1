"""Streams: the same model as from arrays, whatever the chunks; and streams that are not good."""

import contextlib
import itertools
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning

from imcc import IMCCClassifier, IMCCClassifierCV
from tests.naive import imcc as naive

HEAVY = {"alpha": 5.0, "beta": 0.1, "gamma": 2.0}
CUTS = ([0, 90], [0, 1, 90], [0, 30, 31, 77, 90], list(range(0, 91, 9)))
KINDS = {
    "linear": {"kernel": "linear"},
    "nystroem": {"approximation": "nystroem", "n_components": 20},
    "laplacian": {"approximation": "nystroem", "n_components": 20, "kernel": "laplacian"},
}


def cut(X, Y, edges):
    return [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(edges)]


def fixed(problem, kind):
    """Parameters that leave nothing to be learned but sums."""
    X = problem[0]
    parameters = {**KINDS[kind], **HEAVY, "clusterer": X[:90:15].copy(), "random_state": 0}
    if kind != "linear":
        parameters["width"] = 2.5
    if parameters.get("approximation") == "nystroem":
        parameters |= {"landmarks": X[::6].copy(), "n_components": None}
    return parameters


def nearest_of(X, prototypes):
    return np.linalg.norm(X[:, np.newaxis] - prototypes, axis=2).argmin(axis=1)


@contextlib.contextmanager
def few_rows():
    """Chunks so small that some prototypes have no rows yet, which is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def coefficients(clf):
    coef = clf.coef_ if hasattr(clf, "coef_") else clf.dual_coef_
    return np.vstack([coef.ravel()[:, np.newaxis], clf.intercept_[:, np.newaxis]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edges", CUTS, ids=str)
def test_a_stream_with_everything_fixed_is_the_fit_on_arrays(small_problem, kind, edges):
    X, Y, X_new, _ = small_problem
    parameters = fixed(small_problem, kind)
    whole = IMCCClassifier(**parameters).fit(X, Y)
    chunks = cut(X, Y, edges)
    for stream in (chunks, lambda: iter(chunks)):
        clf = IMCCClassifier(**parameters).fit(stream)
        np.testing.assert_allclose(coefficients(clf), coefficients(whole), atol=1e-8)
    for name in ("cluster_centers_", "soft_labels_", "cluster_sizes_"):
        np.testing.assert_allclose(getattr(clf, name), getattr(whole, name), atol=1e-10)
    np.testing.assert_allclose(
        clf.decision_function(X_new), whole.decision_function(X_new), atol=1e-8
    )
    assert clf.n_features_in_ == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [0, 3])
def test_the_chunks_make_no_difference(small_problem, config, kind, passes):
    """Nothing fixed: width, landmarks and centres are learned from a sample of the rows."""
    config(width_rows=30, rows_per_landmark=2)
    config(cluster_rows=50, rows_per_cluster=1, sum_entries=300)
    X, Y, *_ = small_problem
    found = [
        IMCCClassifier(6, **KINDS[kind], **HEAVY, lloyd_passes=passes, random_state=0).fit(
            cut(X, Y, edges)
        )
        for edges in CUTS
    ]
    for clf in found[1:]:
        np.testing.assert_allclose(coefficients(clf), coefficients(found[0]), atol=1e-8)
        assert clf.width_ is None or clf.width_ == pytest.approx(found[0].width_, rel=1e-12)


def test_width_and_landmarks_are_those_of_arrays(small_problem):
    X, Y, *_ = small_problem
    parameters = {**KINDS["nystroem"], "clusterer": X[:5].copy(), "random_state": 0, **HEAVY}
    whole, stream = (
        IMCCClassifier(**parameters).fit(*data) for data in ((X, Y), (cut(X, Y, CUTS[2]),))
    )
    assert stream.width_ == pytest.approx(whole.width_, rel=1e-12)
    np.testing.assert_allclose(stream.landmarks_, whole.landmarks_, atol=1e-12)
    np.testing.assert_allclose(coefficients(stream), coefficients(whole), atol=1e-8)


def test_several_clusterings(small_problem):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier((4, 7), kernel="linear", lloyd_passes=1, random_state=0, **HEAVY)
    clf.fit(cut(X, Y, CUTS[2]))
    assert clf.cluster_sizes_.sum() == 180
    # The prototypes are the centres of a fit with a pass less.
    before = clone(clf).set_params(lloyd_passes=0).fit(cut(X, Y, CUTS[3]))
    parts = [nearest_of(X, before.cluster_centers_[rows]) for rows in (slice(4), slice(4, 11))]
    expected = naive.linear_scores(X, np.where(Y, 1.0, -1.0), X_new, parts, *HEAVY.values())
    np.testing.assert_allclose(clf.decision_function(X_new), expected, atol=1e-8)


def test_lloyd_passes_are_the_steps_of_k_means(small_problem, config):
    config(cluster_rows=25, rows_per_cluster=1)  # a start that is not good yet
    X, Y, *_ = small_problem
    start = IMCCClassifier(9, kernel="linear", random_state=0).fit(cut(X, Y, CUTS[2]))
    # Centres without a pass are the means of the rows nearest to the prototypes: that is one step.
    expected = KMeans(9, init=start.cluster_centers_, n_init=1, max_iter=2, tol=0)
    with few_rows():
        expected.fit(X)
    found = IMCCClassifier(9, kernel="linear", lloyd_passes=2, random_state=0)
    found.fit(cut(X, Y, CUTS[3]))
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, atol=1e-9)
    assert np.abs(found.cluster_centers_ - start.cluster_centers_).max() > 1e-3


def test_centres_are_true_means(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(6, **KINDS["nystroem"], random_state=0).fit(cut(X, Y, CUTS[2]))
    signs = np.where(Y, 1.0, -1.0)
    total = (clf.cluster_sizes_[:, np.newaxis] * clf.cluster_centers_).sum(axis=0)
    np.testing.assert_allclose(total, X.sum(axis=0), atol=1e-9)
    total = (clf.cluster_sizes_[:, np.newaxis] * clf.soft_labels_).sum(axis=0)
    np.testing.assert_allclose(total, signs.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_mapped_arrays(small_problem, tmp_path, config, kind):
    X, Y, *_ = small_problem
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "Y.npy")]
    config(slice_entries=100)  # 20 rows at a time
    parameters = {"n_clusters": 6, "random_state": 0, **KINDS[kind]}
    expected = IMCCClassifier(**parameters).fit(cut(X, Y, CUTS[2]))
    labels = [
        *(mapped[1], Y, Y.tolist(), sp.csr_matrix(Y), sp.coo_array(Y)),
        pd.DataFrame(Y, columns=list("abcd")),
    ]
    # One class per row is not a stream.
    classes = IMCCClassifier(**parameters).fit(mapped[0], Y[:, 0])
    assert (classes.target_kind_, len(classes.classes_)) == ("binary", 2)
    for y in labels:
        clf = IMCCClassifier(**parameters).fit(mapped[0], y)
        np.testing.assert_allclose(coefficients(clf), coefficients(expected), atol=1e-8)
    assert list(clf.label_names_) == list("abcd")
    with pytest.raises(ValueError, match=r"same number of rows.*\[90, 89\]"):
        IMCCClassifier(**parameters).fit(mapped[0], Y[:-1])


def test_a_memory_mapped_array_is_never_copied_as_a_whole(tmp_path, config):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=(100_000, 8))
    X[:] = np.random.default_rng(0).normal(size=X.shape)
    labels = X[:, :2] > 0
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    config(slice_entries=20_000, cluster_rows=500)
    clf = IMCCClassifier(4, kernel="linear", random_state=0)
    tracemalloc.start()
    clf.fit(mapped, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4


def test_the_exact_kernel_takes_a_memory_mapped_array_as_an_array(small_problem, tmp_path):
    X, Y, X_new, _ = small_problem
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected, found = (IMCCClassifier(4, random_state=0).fit(rows, Y) for rows in (X, mapped))
    np.testing.assert_array_equal(found.decision_function(X_new), expected.decision_function(X_new))


def test_memory_mapped_arrays_that_are_taken_as_arrays(small_problem, tmp_path):
    """By clusterers that need all rows; and those that joblib maps behind the caller's back."""
    X, Y, *_ = small_problem
    folder = tmp_path / "joblib_memmapping_folder_1"
    folder.mkdir()
    for place, change in ((tmp_path, {"clusterer": AgglomerativeClustering(5)}), (folder, {})):
        np.save(place / "X.npy", X)
        clf = IMCCClassifier(kernel="linear", n_clusters=5, random_state=0, **change)
        expected = clf.fit(X, Y).coef_
        found = clf.fit(np.load(place / "X.npy", mmap_mode="r"), Y)
        np.testing.assert_array_equal(found.coef_, expected)
        assert found.assignment_.shape == (90,)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_chunks(kind):
    rng = np.random.default_rng(0)
    X = rng.random((90, 12)) * (rng.random((90, 12)) < 0.3)
    Y = (rng.random((90, 3)) < 0.4).astype(int)
    landmarks = {} if kind == "linear" else {"landmarks": "random"}
    parameters = {**KINDS[kind], **landmarks, "clusterer": X[:5].copy(), "random_state": 0}
    expected = IMCCClassifier(**parameters).fit(cut(X, Y, CUTS[2]))
    sparse = IMCCClassifier(**parameters).fit(cut(sp.csr_matrix(X), sp.csr_matrix(Y), CUTS[2]))
    scores = expected.decision_function(X)
    np.testing.assert_allclose(sparse.decision_function(X), scores, atol=1e-7)
    mixed = [(sp.csr_matrix(X[:40]), Y[:40]), (X[40:], Y[40:])]
    some = IMCCClassifier(**parameters).fit(mixed)
    np.testing.assert_allclose(some.decision_function(X), scores, atol=1e-7)


def test_names_of_features_and_labels_are_kept(small_problem):
    X, Y, X_new, _ = small_problem
    frames = [
        (pd.DataFrame(a, columns=list("uvwxy")), pd.DataFrame(b, columns=list("abcd")))
        for a, b in cut(X, Y, CUTS[2])
    ]
    clf = IMCCClassifier(4, kernel="linear", random_state=0).fit(frames)
    assert list(clf.feature_names_in_) == list("uvwxy")
    assert list(clf.label_names_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(pd.DataFrame(X_new, columns=list("uvwxz")))
    clf.fit(cut(X, Y, CUTS[2]))
    assert not hasattr(clf, "feature_names_in_")
    frames[2][1].columns = list("abce")
    with pytest.raises(ValueError, match=r"chunk 2 .*other label_names.*'e' instead of 'd'"):
        clf.fit(frames)


def test_prototypes_as_clusterer(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(clusterer=X[:4].copy()).fit(X, Y)
    distances = np.linalg.norm(X[:, np.newaxis] - X[:4], axis=2)
    np.testing.assert_array_equal(clf.assignment_, distances.argmin(axis=1))
    far = np.vstack([X[:4], [[1e3] * 5]])
    with pytest.warns(ConvergenceWarning, match="1 of 5 prototypes have no rows"):
        some = IMCCClassifier(clusterer=far).fit(X, Y)
    np.testing.assert_allclose(some.dual_coef_, clf.dual_coef_)
    with pytest.warns(ConvergenceWarning, match="1 of 5 prototypes have no rows"):
        stream = IMCCClassifier(clusterer=far, kernel="linear").fit(cut(X, Y, CUTS[1]))
    assert stream.cluster_centers_.shape == (4, 5)
    shifted = IMCCClassifier(clusterer=X[:4] + 1e6).fit(X + 1e6, Y)
    np.testing.assert_array_equal(shifted.assignment_, clf.assignment_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"clusterer": np.ones(5)},
            "clusterer must contain finite numbers, with one point per row",
        ),
        ({"clusterer": np.full((2, 5), np.nan)}, "finite numbers"),
        ({"clusterer": np.ones((2, 3))}, "clusterer must have 5 features"),
        ({"clusterer": np.ones((2, 5)), "n_clusters": 3}, "n_clusters is 3, but 2 rows"),
        ({"lloyd_passes": -1}, "lloyd_passes must be an integer >= 0"),
        ({"lloyd_passes": 1.5}, "lloyd_passes must be an integer >= 0"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(small_problem, parameters, message):
    X, Y, *_ = small_problem
    for data in ((X, Y), ([(X, Y)],)):
        with pytest.raises(ValueError, match=message):
            IMCCClassifier(kernel="linear", **parameters).fit(*data)


class Shrinking:
    """A stream that gives fewer rows each time."""

    def __init__(self, chunks):
        self.chunks = chunks
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        return iter(self.chunks[: len(self.chunks) + 1 - self.passes])


def test_bad_streams_are_named(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(4, **KINDS["nystroem"], random_state=0)
    chunks = cut(X, Y, CUTS[2])

    def refused(stream, message, estimator=clf):
        with pytest.raises(ValueError, match=message):
            estimator.fit(stream)

    refused(Shrinking(chunks), "77 rows in a later pass, but 90 before")
    refused(iter(chunks), "can be read only once")
    refused([], "the stream is empty")
    refused([chunks[0], (X[:, :4], Y)], r"chunk 1 \(starting at row 30\): it has 4 features")
    refused([chunks[0], (X, Y[:, :3])], "chunk 1 .* has 3 labels instead of 4")
    refused([chunks[0], (X, Y[:, 0])], "chunk 1 .*y must be two-dimensional")
    refused(
        [chunks[0], (X, Y[:-1])],
        r"chunk 1 .*the same number of rows: X has 90, y has the shape \(89, 4\)",
    )
    refused([chunks[0], (X, Y + 2)], "chunk 1 .*y must contain labels coded")
    refused([chunks[0], (X, None)], "chunk 1 .*it has no labels")
    refused([chunks[0], X], "chunk 1 of the stream must be a pair")
    refused([chunks[0], (np.char.add(X.astype(str), "x"), Y)], "chunk 1 .*could not convert string")
    refused(chunks, "does not support streams.*approximation='nystroem'", IMCCClassifier())
    refused(
        chunks, "KMeans is not supported for streams", clone(clf).set_params(clusterer=KMeans())
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_the_row_that_is_not_finite_is_named(small_problem, sparse):
    X, Y = small_problem[0].copy(), small_problem[1]
    X[80, 3] = np.nan
    rows = sp.csr_matrix(X) if sparse else X
    message = r"NaN or infinite: chunk 3, row 3 of the chunk \(row 80 of all\), column 3"
    for clf in (
        IMCCClassifier(4, **KINDS["nystroem"]),
        IMCCClassifier(**fixed(small_problem, "linear")),
    ):
        with pytest.raises(ValueError, match=message):
            clf.fit(cut(rows, Y, CUTS[2]))
        assert not hasattr(clf, "classes_")


def test_the_search_needs_arrays(small_problem):
    X, Y, *_ = small_problem
    with pytest.raises(
        ValueError, match=r"IMCCClassifierCV does not support streams.*search on a sample"
    ):
        IMCCClassifierCV(approximation="nystroem").fit(cut(X, Y, CUTS[2]))


def test_a_stream_of_too_many_features_is_refused():
    wide = sp.csr_matrix((3, 2**15 + 1))
    with pytest.raises(ValueError, match=r"linear model of 32769 features needs a matrix of 8 GiB"):
        IMCCClassifier(1, kernel="linear").fit([(wide, np.eye(3))])
