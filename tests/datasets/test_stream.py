"""Files as streams: the same rows as the files read as a whole, a chunk at a time."""

import tracemalloc

import numpy as np
import pyarrow
import pytest
import scipy.sparse as sp

import imcc
import imcc.datasets
from imcc.datasets import DataFormatError, Dataset, DataWarning, open_stream, read


@pytest.fixture
def toy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 4)) * (rng.random((23, 4)) < 0.6)
    Y = (rng.random((23, 3)) < 0.4).astype(int)
    names = ["a", "b", "c", "d"]
    return Dataset(X, Y, names, ["one", "two", "three"], name="toy")


def gathered(stream):
    parts = list(stream)
    X = np.vstack([X.toarray() if sp.issparse(X) else X for X, _ in parts])
    return X, np.vstack([Y for _, Y in parts]), [len(Y) for _, Y in parts]


SUFFIXES = {"npz": ".npz", "sparse npz": ".npz", "svmlight": ".svm", "svmlight.gz": ".svm.gz"}
KINDS = ["parquet", *SUFFIXES]
OPTIONS = {"parquet": {"labels": -3}}


def write(kind, dataset, folder, name="toy"):
    if kind == "parquet":
        names = (*dataset.feature_names, *dataset.label_names)
        columns = dict(zip(names, [*dataset.X.T, *dataset.Y.T], strict=True))
        path = folder / f"{name}.parquet"
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
        return path
    if kind == "sparse npz":
        names = (dataset.feature_names, dataset.label_names)
        dataset = Dataset(sp.csr_array(dataset.X), dataset.Y, *names)
    return imcc.datasets.write(dataset, folder / f"{name}{SUFFIXES[kind]}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk_rows", [1, 5, 23, 100, None])
def test_the_rows_are_those_of_the_file(toy, tmp_path, kind, chunk_rows):
    path = write(kind, toy, tmp_path)
    stream = open_stream(path, chunk_rows=chunk_rows, **OPTIONS.get(kind, {}))
    for _ in range(2):  # it can be read again
        X, Y, sizes = gathered(stream)
        np.testing.assert_array_equal(X, toy.X)
        np.testing.assert_array_equal(Y, toy.Y)
    step = chunk_rows or 23
    assert sizes == [min(step, 23 - start) for start in range(0, 23, step)]
    assert stream.feature_names == toy.feature_names
    assert stream.label_names == toy.label_names
    assert "4 features, 3 labels" in repr(stream)


@pytest.mark.parametrize("kind", KINDS)
def test_folders_and_lists_of_files(toy, tmp_path, kind):
    paths = [write(kind, toy[s], tmp_path, n) for n, s in (("p2", slice(9, 23)), ("p1", slice(9)))]
    (tmp_path / "notes.txt").write_text("no data")
    options = OPTIONS.get(kind, {})
    X, Y, sizes = gathered(open_stream(tmp_path, chunk_rows=6, **options))
    np.testing.assert_array_equal(X, toy.X)
    np.testing.assert_array_equal(Y, toy.Y)
    assert sizes == [6, 3, 6, 6, 2]
    X, _, _ = gathered(open_stream(paths, **options))
    np.testing.assert_array_equal(X, np.vstack([toy.X[9:], toy.X[:9]]))
    assert open_stream(paths[::-1], **options).paths == paths[::-1]


def test_which_columns_of_parquet_are_labels(toy, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    plain = write("parquet", toy, tmp_path)
    for options in ({"labels": ["three", "one"]}, {"labels": -2}, {"label_prefix": "t"}):
        stream, whole = open_stream(plain, **options), read(plain, **options)
        X, Y, _ = gathered(stream)
        np.testing.assert_array_equal(X, whole.X)
        np.testing.assert_array_equal(Y, whole.Y)
        assert stream.label_names == whole.label_names
    with pytest.raises(DataFormatError, match="labels="):
        open_stream(plain)
    with pytest.raises(DataFormatError, match="nine"):
        open_stream(plain, labels=["nine"])
    words = tmp_path / "words.parquet"
    parquet.write_table(pyarrow.table({"x": ["red", "blue"], "y": [0, 1]}), words)
    with pytest.raises(DataFormatError, match="'x' has the type string"):
        open_stream(words, labels=["y"])
    holes = tmp_path / "holes.parquet"
    parquet.write_table(pyarrow.table({"x": [1.0, None], "y": [0, None]}), holes)
    X, Y, _ = gathered(open_stream(holes, labels=["y"]))
    np.testing.assert_array_equal(X, [[1.0], [np.nan]])
    np.testing.assert_array_equal(Y, [[0], [np.nan]])


def test_npz_variables(tmp_path):
    path = tmp_path / "toy.npz"
    np.savez(path, data=np.arange(12.0).reshape(4, 3), target=np.eye(4, 2))
    X, Y, _ = gathered(open_stream(path, variables=("data", "target"), chunk_rows=3))
    assert Dataset(X, Y) == read(path)


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"X": np.ones((4, 3)), "Z": np.eye(4, 2)}, "'Y'.*'X', 'Z'.*variables="),
        ({"features": np.ones((4, 3)), "Y": np.eye(4, 2)}, "'X'.*'Y', 'features'.*variables="),
        ({"Y": np.eye(4, 2), "X_indptr": np.zeros(5)}, "'X_data', 'X_indices', 'X_shape'"),
        ({}, "variables="),
        ({"X": np.ones((4, 3), order="F"), "Y": np.eye(4, 2)}, "'X' .*Fortran order"),
        ({"X": np.ones((4, 3)), "Y": np.eye(3, 2)}, r"\(4, 3\) .*\(3, 2\)"),
        ({"X": np.array([["a", None]], dtype=object), "Y": np.eye(1, 2)}, "'X' .*Python objects"),
    ],
)
def test_intact_npz_files_that_cannot_be_streamed_are_not_called_damaged(tmp_path, arrays, named):
    parts = [tmp_path / f"{name}.npz" for name in ("whole", "part")]
    np.savez(parts[0], X=np.ones((4, 3)), Y=np.eye(4, 2))
    np.savez(parts[1], **arrays)
    with pytest.raises(DataFormatError, match=rf"part\.npz: .*{named}") as caught:
        open_stream(parts)
    assert "damaged" not in str(caught.value)


def test_svmlight_is_scanned_for_sizes_and_labels(tmp_path):
    one, two = tmp_path / "1.svm", tmp_path / "2.svm"
    one.write_text("7 1:1\n\n 2:2\n")
    two.write_text("3,7 1:0.5 5:1\n")
    with pytest.warns(DataWarning, match="index_base="):
        open_stream(tmp_path, chunk_rows=1)
    stream = open_stream(tmp_path, chunk_rows=1, index_base="one")
    X, Y, _ = gathered(stream)
    whole = read([one, two], index_base="one")
    np.testing.assert_array_equal(X, whole.X.toarray())
    np.testing.assert_array_equal(Y, whole.Y)
    assert stream.label_names == whole.label_names == ("3", "7")
    assert len(open_stream(tmp_path, n_features=9, index_base="one").feature_names) == 9
    assert len(open_stream(tmp_path, index_base="zero").feature_names) == 6
    with pytest.raises(DataFormatError, match="feature 4"):
        open_stream(tmp_path, n_features=3, index_base="one")
    one.write_text("7 0:1\n")
    with pytest.raises(DataFormatError, match="index_base='one'"):
        open_stream(tmp_path, index_base="one")
    one.write_text("7 1:1\n")
    stream = open_stream(one, index_base="one")
    one.write_text("8 1:1\n")
    with pytest.raises(DataFormatError, match="has changed since it was opened"):
        list(stream)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_named(toy, tmp_path, kind):
    path = write(kind, toy, tmp_path)
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    if kind == "svmlight":
        path.write_text(path.read_text() + "\n1 x")
    with pytest.raises(DataFormatError, match="toy"):
        list(open_stream(path))
    path.write_bytes(b"")
    with pytest.raises(DataFormatError, match="toy"):
        list(open_stream(path))


def test_files_that_are_no_stream(toy, tmp_path):
    npz, _ = (write(kind, toy, tmp_path) for kind in ("npz", "parquet"))
    (tmp_path / "toy.csv").write_text("a,b\n1,0\n")
    (tmp_path / "empty").mkdir()
    imcc.datasets.write(Dataset(toy.X, toy.Y[:, :2]), tmp_path / "odd.npz")
    for path, named in [
        (tmp_path, "npz and parquet"),
        ([], "path"),
        (tmp_path / "empty", "empty"),
        (tmp_path / "toy.csv", r"toy\.csv"),
        ([npz, tmp_path / "odd.npz"], r"odd\.npz.*feature_names"),
    ]:
        with pytest.raises(ValueError, match=named):
            open_stream(path)
    with pytest.raises(FileNotFoundError, match="none"):
        open_stream(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("npz", {"chunk_rows": 0}),
        ("npz", {"labels": ["one"]}),
        ("parquet", {"variables": ("X", "Y")}),
        ("parquet", {"index_base": "one"}),
    ],
)
def test_arguments_that_do_not_fit_are_named(toy, tmp_path, kind, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        open_stream(write(kind, toy, tmp_path), **options)


@pytest.mark.parametrize("kind", ["parquet", "npz", "sparse npz"])
def test_only_a_chunk_is_in_memory(tmp_path, kind):
    rng = np.random.default_rng(0)
    big = Dataset(rng.normal(size=(20_000, 50)), rng.random((20_000, 3)) < 0.5)
    path = write(kind, big, tmp_path)
    stream = open_stream(path, chunk_rows=500, **OPTIONS.get(kind, {}))
    tracemalloc.start()
    rows = sum(len(Y) for _, Y in stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 20_000
    assert peak < big.X.nbytes / 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_is_trained_on_files(toy, tmp_path, kind):
    path = write(kind, toy, tmp_path)
    clf = imcc.IMCCClassifier(clusterer=toy.X[:3], kernel="linear")
    found = clf.fit(imcc.open_stream(path, chunk_rows=7, **OPTIONS.get(kind, {}))).coef_
    expected = clf.fit(toy.X, toy.Y).coef_
    np.testing.assert_allclose(found, expected, atol=1e-8)
