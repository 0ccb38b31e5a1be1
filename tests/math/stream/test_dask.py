"""Dask: the same coefficients as on one machine, nothing large on the client, workers may die."""

import os
import pickle
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier, IMCCClassifierCV
from tests.calls import recorded_calls
from tests.math.search.test_search import SMALL
from tests.math.stream.test_fitting import CUTS, HEAVY, KINDS, coefficients, cut, fixed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROW_CHUNKS = [(90,), (1, 89), (30, 1, 46, 13), (9,) * 10]


@pytest.fixture(autouse=True)
def one_machine():
    """The plain scheduler, unless a test starts a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


def on_dask(X, Y, chunks, columns=-1):
    return da.from_array(X, chunks=(chunks, columns)), da.from_array(Y, chunks=(chunks, -1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", ROW_CHUNKS, ids=str)
def test_the_coefficients_are_those_of_arrays(small_problem, kind, chunks):
    X, Y, *_ = small_problem
    parameters = fixed(small_problem, kind)
    whole = IMCCClassifier(**parameters).fit(X, Y)
    clf = IMCCClassifier(**parameters).fit(*on_dask(X, Y, chunks))
    np.testing.assert_allclose(coefficients(clf), coefficients(whole), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", ROW_CHUNKS, ids=str)
def test_the_partitioning_makes_no_difference(small_problem, kind, chunks):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(6, **KINDS[kind], **HEAVY, lloyd_passes=2, random_state=0)
    expected = coefficients(clf.fit(cut(X, Y, CUTS[2])))
    np.testing.assert_allclose(coefficients(clf.fit(*on_dask(X, Y, chunks))), expected, atol=1e-8)


def test_labels_and_columns_that_are_cut_otherwise(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(6, kernel="linear", random_state=0)
    rows = da.from_array(X, chunks=(20, 2))
    expected = coefficients(clf.fit(cut(X, Y, CUTS[0])))
    for labels in (Y, da.from_array(Y, chunks=(7, 3)), pd.DataFrame(Y)):
        np.testing.assert_allclose(coefficients(clf.fit(rows, labels)), expected, atol=1e-8)


def test_data_frames(small_problem):
    X, Y, X_new, _ = small_problem
    rows = pd.DataFrame(X, columns=list("uvwxy"))
    labels = pd.DataFrame(Y, columns=list("abcd"))
    parameters = fixed(small_problem, "nystroem")
    expected = IMCCClassifier(**parameters).fit(rows, labels)
    frames = [dd.from_pandas(frame, npartitions=4) for frame in (rows, labels)]
    for y in (frames[1], frames[1].to_dask_array(lengths=True), Y):
        clf = IMCCClassifier(**parameters).fit(frames[0], y)
        np.testing.assert_allclose(coefficients(clf), coefficients(expected), atol=1e-8)
    clf = IMCCClassifier(**parameters).fit(*frames)
    assert list(clf.feature_names_in_) == list("uvwxy")
    assert list(clf.label_names_) == list("abcd")
    new = dd.from_pandas(pd.DataFrame(X_new, columns=list("uvwxy")), npartitions=3)
    np.testing.assert_allclose(
        clf.decision_function(new).compute(),
        expected.decision_function(pd.DataFrame(X_new, columns=list("uvwxy"))),
        atol=1e-8,
    )
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(new.rename(columns={"y": "z"}))
    # Partitions that a filter left empty are no rows.
    some = rows.index < 60
    kept = [dd.from_pandas(frame, npartitions=4) for frame in (rows, labels)]
    kept = [frame.map_partitions(lambda part: part[part.index < 60]) for frame in kept]
    np.testing.assert_allclose(
        coefficients(IMCCClassifier(**parameters).fit(*kept)),
        coefficients(IMCCClassifier(**parameters).fit(rows[some], labels[some])),
        atol=1e-8,
    )


def test_one_class_a_row(small_problem):
    X, _, X_new, _ = small_problem
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1.0, 1.0])]
    parameters = fixed(small_problem, "linear")
    expected = IMCCClassifier(**parameters).fit(X, y)
    rows = da.from_array(X, chunks=(40, -1))
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    series = dd.from_pandas(pd.Series(y), npartitions=4)
    for data in ((rows, da.from_array(y, chunks=13)), (rows, y), (frame, series)):
        clf = IMCCClassifier(**parameters).fit(*data)
        np.testing.assert_allclose(coefficients(clf), coefficients(expected), atol=1e-8)
    predicted = clf.predict(da.from_array(X_new, chunks=(11, -1)))
    np.testing.assert_array_equal(predicted.compute(), expected.predict(X_new))


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_blocks(kind):
    rng = np.random.default_rng(0)
    X = rng.random((90, 12)) * (rng.random((90, 12)) < 0.3)
    Y = (rng.random((90, 3)) < 0.4).astype(int)
    landmarks = {} if kind in ("linear", "fourier") else {"landmarks": "random"}
    parameters = {**KINDS[kind], **landmarks, "clusterer": X[:5].copy(), "random_state": 0}
    expected = IMCCClassifier(**parameters).fit(X, Y).decision_function(X)
    rows, labels = on_dask(X, Y, (30, 1, 46, 13))
    rows = rows.map_blocks(sp.csr_matrix)
    clf = IMCCClassifier(**parameters).fit(rows, labels)
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-7)
    np.testing.assert_allclose(clf.decision_function(rows).compute(), expected, atol=1e-7)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"kernel": "linear"}, {"approximation": "nystroem", "n_components": 20}],
    ids=str,
)
def test_prediction_is_lazy_and_the_same(small_problem, parameters):
    X, Y, X_new, _ = small_problem
    clf = IMCCClassifier(5, random_state=0, **parameters).fit(X, Y)
    asked = []

    def block(rows):
        asked.append(len(rows))
        return rows

    rows = da.from_array(X_new, chunks=(15, 2)).rechunk({1: -1})
    rows = rows.map_blocks(block, meta=np.empty((0, 0)))
    for method in ("decision_function", "predict"):
        expected = getattr(clf, method)(X_new)
        lazy = getattr(clf, method)(rows)
        assert asked == []
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)
        assert sum(asked) == 40
        asked.clear()
    higher = clf.predict(rows, thresholds=0.4).compute()
    assert np.array_equal(higher, clf.predict(X_new, thresholds=0.4))
    assert not np.array_equal(higher, clf.predict(X_new))
    lazy = clf.decision_function(rows)
    before = clf.decision_function(X_new)
    clf.set_params(alpha=50.0).fit(X, Y)
    np.testing.assert_allclose(lazy.compute(), before, atol=1e-12)
    one = IMCCClassifier(5, random_state=0).fit(X, Y[:, 0])
    assert one.decision_function(rows).shape == (40,)
    unknown = rows[rows[:, 0] > 0]
    np.testing.assert_allclose(
        clf.decision_function(unknown).compute(),
        clf.decision_function(X_new[X_new[:, 0] > 0]),
        atol=1e-12,
    )


def test_nothing_that_grows_with_the_rows_reaches_the_client(config):
    """Watch what comes back: the same few bytes for 2,000 rows and for 20,000."""
    config(cluster_rows=100, rows_per_cluster=1, width_rows=100)
    peaks = []
    for n in (2_000, 20_000):
        X = da.random.default_rng(0).normal(size=(n, 10), chunks=(1_000, -1))
        clf = IMCCClassifier(
            4, approximation="nystroem", n_components=10, lloyd_passes=2, random_state=0
        )
        with recorded_calls(dask.compute) as calls:
            clf.fit(X, X[:, :3] > 0)
        assert len(calls) == 4  # the summary, two steps and the sums
        peaks.append(max(len(pickle.dumps(call.result)) for call in calls))
    assert peaks[1] < 1.1 * peaks[0] < 50_000


def test_blocks_that_rows_and_labels_share_are_computed_once_a_pass(small_problem):
    X, Y, *_ = small_problem
    asked = []

    def block(rows):
        asked.append(len(rows))
        return rows

    both = da.from_array(np.hstack([X, Y]), chunks=(30, -1))
    both = both.map_blocks(block, meta=np.empty((0, 0)))
    IMCCClassifier(4, kernel="linear", lloyd_passes=1, random_state=0).fit(both[:, :5], both[:, 5:])
    assert asked == 3 * [30, 30, 30]  # the summary, a step and the sums


def test_merging_in_a_tree(small_problem, config):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(**fixed(small_problem, "linear"))
    rows, labels = on_dask(X, Y, (9,) * 10)
    scores = []
    # Ten blocks become four parts, two, and one; or two and one; or one: in each of two passes.
    for width, n_merges in ((3, 4 + 2 + 1), (8, 2 + 1), (10, 1)):
        merges = []
        config(dask_merge=width)
        with dask.callbacks.Callback(
            pretask=lambda key, *_, m=merges: "_merge_all" in str(key) and m.append(key)
        ):
            scores.append(clf.fit(rows, labels).decision_function(X))
        assert len(merges) == 2 * n_merges
    for found in scores[1:]:
        np.testing.assert_allclose(found, scores[0], atol=1e-12)


def test_bad_input_is_named(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(4, kernel="linear", random_state=0)
    rows, labels = on_dask(X, Y, 30)

    def refused(rows, labels, message, estimator=clf):
        with pytest.raises(ValueError, match=message):
            estimator.fit(rows, labels)

    unknown = rows[rows[:, 0] > 0]
    refused(unknown, labels, r"X is a Dask array with unknown chunk sizes.*compute_chunk_sizes")
    refused(rows, labels[rows[:, 0] > 0], "y is a Dask array with unknown chunk sizes")
    refused(rows, None, "y must be passed")
    refused(rows, labels[:80], "the same number of rows: X has 90, y has 80")
    refused(rows[:, 0], labels, "X must have two dimensions")
    refused(rows[:0], labels[:0], "the Dask collection has no rows")
    refused(rows, labels, "does not support streams", IMCCClassifier())
    refused(rows, labels, "IMCCClassifierCV does not support streams", IMCCClassifierCV())
    frames = [dd.from_pandas(pd.DataFrame(X), npartitions=k) for k in (2, 3)]
    refused(*frames, "y has 3 partitions, but X has 2")
    bad = X.copy()
    bad[70, 2] = np.inf
    refused(
        on_dask(bad, Y, 30)[0], labels, r"chunk 2, row 10 of the chunk \(row 70 of all\), column 2"
    )
    refused(rows, labels + 2, r"chunk \d .*y must contain labels coded")
    clf.fit(rows, labels)
    with pytest.raises(ValueError, match="X has 4 features, but IMCCClassifier is expecting 5"):
        clf.predict(rows[:, :4])


# What Dask's cluster says when it starts and when a worker is killed, none of it ours.
NOISE = [
    "ignore:Port .* is already in use:UserWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
    "ignore:Sending large graph:UserWarning",
]


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine."""
    local = pytest.importorskip("distributed").LocalCluster
    with local(n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings(*NOISE)
def test_a_killed_worker_changes_nothing_but_the_time(cluster):
    # Inside, so that it travels as it is: workers do not know this module.
    def slow_block(seed, seconds):
        time.sleep(seconds)
        return np.random.default_rng(seed).normal(size=(500, 8))

    blocks = [
        da.from_delayed(dask.delayed(slow_block, pure=True)(i, 0.1), (500, 8), float)
        for i in range(16)
    ]
    X = da.concatenate(blocks)
    Y = X[:, :3] > 0
    clf = IMCCClassifier(
        5, approximation="nystroem", n_components=30, lloyd_passes=2, random_state=0
    )
    whole = np.vstack([slow_block(i, 0.0) for i in range(16)])
    expected = coefficients(clf.fit([(whole, whole[:, :3] > 0)]))
    from distributed import Client

    with Client(cluster) as client, dask.config.set(scheduler="distributed"):
        before = coefficients(clf.fit(X, Y))
        np.testing.assert_allclose(before, expected, atol=1e-8)
        pids = client.run(os.getpid)
        victim = next(iter(pids.values()))
        killer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
        killer.start()
        after = coefficients(clf.fit(X, Y))
        assert killer.finished.is_set()  # in the middle of it
        killer.join()
        np.testing.assert_allclose(after, expected, atol=1e-8)
        client.wait_for_workers(2, timeout=60)
        assert victim not in client.run(os.getpid).values()


@pytest.mark.slow
@pytest.mark.filterwarnings(*NOISE)
def test_the_search_spreads_over_the_cluster(cluster, small_problem):
    X, Y, *_ = small_problem
    from distributed import Client

    search = IMCCClassifierCV(**SMALL, random_state=0)
    alone = search.fit(X, Y).cv_results_["mean_test_score"].copy()
    with Client(cluster) as client, dask.config.set(scheduler="distributed"):
        client.wait_for_workers(2, timeout=60)
        with joblib.parallel_config("dask"):
            found = search.fit(X, Y)
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert sum(done.values()) > 0
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], alone, atol=1e-10)
