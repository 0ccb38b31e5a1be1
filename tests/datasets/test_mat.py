import functools
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from imcc.datasets import DataFormatError, read, write
from imcc.datasets._dataset import concatenate

read_mat = functools.partial(read, format="mat")

RNG = np.random.RandomState(0)
X = np.round(RNG.randn(7, 3), 2) * (RNG.rand(7, 3) > 0.4)
Y = (RNG.rand(7, 2) > 0.5).astype(int)


@pytest.fixture
def mat(tmp_path):
    def make(variables, **options):
        path = tmp_path / "toy.mat"
        scipy.io.savemat(path, variables, **options)
        return path

    return make


@pytest.mark.parametrize("options", [{}, {"do_compression": True}])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_version(mat, options, sparse):
    features = sp.csc_array(X) if sparse else X
    dataset = read(mat({"note": "text", "data": features, "target": 2.0 * Y - 1}, **options))
    assert dataset.is_sparse == sparse
    np.testing.assert_array_equal(dataset.X.toarray() if sparse else dataset.X, X)
    np.testing.assert_array_equal(dataset.Y, Y)
    assert dataset.name == "toy"
    assert dataset.source.endswith("toy.mat")


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"])
def test_every_kind_of_number(mat, kind):
    numbers = np.arange(1, 7).reshape(3, 2).astype(kind)
    dataset = read(mat({"X": numbers, "Y": Y[:3].astype(bool)}))
    np.testing.assert_array_equal(dataset.X, numbers.astype(float))


def test_training_and_test_parts_are_stacked(mat):
    path = mat(
        {"test_data": X[5:], "test_target": Y[5:], "train_data": X[:5], "train_target": Y[:5]}
    )
    dataset = read(path)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.Y, Y)
    assert read(path, variables=("train_data", "train_target")) == dataset[:5]
    pairs = [("test_data", "test_target"), ("train_data", "train_target")]
    assert read(path, variables=pairs) == concatenate([dataset[5:], dataset[:5]])


def test_labels_by_rows_are_turned(mat):
    np.testing.assert_array_equal(read(mat({"data": X, "target": Y.T})).Y, Y)


def test_names_can_be_given(mat):
    path = mat({"bags": X, "tags": Y})
    with pytest.raises(DataFormatError, match=r"variables=.*'bags', 'tags'"):
        read(path)
    assert read_mat(path, variables=("bags", "tags")).n_labels == 2
    with pytest.raises(DataFormatError, match=r"no numeric variable 'nope'"):
        read(path, variables=("bags", "nope"))
    for wrong in ("bags", ("bags",), [], ("a", "b", "c"), [("a", 1)]):
        with pytest.raises(ValueError, match="variables must be a pair"):
            read(path, variables=wrong)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"data": X, "target": Y[:3]}, "the same number of rows"),
        ({"data": X, "target": 3 * Y}, "coded"),
        ({"data": X + 1j, "target": Y}, "the variables"),
        ({"data": np.zeros((0, 3)), "target": np.zeros((0, 2))}, "with rows"),
        ({"data": np.zeros((2, 2, 2)), "target": Y}, "the variables"),
    ],
)
def test_variables_that_do_not_fit(mat, variables, reason):
    with pytest.raises(DataFormatError, match=reason):
        read(mat(variables))


def test_version_7_3_says_how_to_save_it(tmp_path):
    path = tmp_path / "new.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: X".ljust(512) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataFormatError, match="'-v7'"):
        read(path)


@pytest.mark.parametrize("data", [b"", b"hello", b"\x00" * 50, bytes(range(256))])
def test_what_is_no_mat_file(tmp_path, data):
    path = tmp_path / "no.mat"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=r"no\.mat"):
        read(path)


@pytest.mark.parametrize("options", [{}, {"do_compression": True}])
def test_cut_off_anywhere(mat, options):
    path = mat({"data": X, "target": Y}, **options)
    whole = path.read_bytes()
    refused = 0
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataFormatError):
            read(path)
        refused += 1
    assert refused > 20


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    packed = zlib.compress(b"\0" * 50_000_000, 9)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path = tmp_path / "bomb.mat"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DataFormatError, match="larger than max_bytes"):
        read(path, max_bytes=1_000_000)


def test_starts_of_columns_that_return_to_zero(tmp_path):
    """SciPy takes such a matrix for empty, and crashes when it follows them."""
    features = sp.csc_array(np.ones((3, 4)))
    scipy.io.savemat(tmp_path / "t.mat", {"data": features, "target": np.eye(3)})
    good, bad = np.array([0, 3, 6, 9, 12], np.int32), np.array([0, 3, 6, 9, 0], np.int32)
    data = (tmp_path / "t.mat").read_bytes()
    assert data.count(good.tobytes()) == 1
    (tmp_path / "t.mat").write_bytes(data.replace(good.tobytes(), bad.tobytes()))
    with pytest.raises(DataFormatError, match="starts"):
        read(tmp_path / "t.mat")


def test_a_sparse_matrix_that_claims_to_be_huge(mat):
    path = mat({"data": sp.csc_array(([1.0], ([0], [0])), shape=(2**30, 2)), "target": Y})
    with pytest.raises(DataFormatError, match="too many for a file of this size"):
        read(path)


def test_big_endian(tmp_path):
    def element(kind, data):
        return struct.pack(">II", kind, len(data)) + data + b"\0" * (-len(data) % 8)

    def matrix(name, values):
        body = element(6, struct.pack(">II", 6, 0))
        body += element(5, struct.pack(">ii", *values.shape)) + element(1, name)
        body += element(9, values.astype(">f8").tobytes(order="F"))
        return element(14, body)

    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    path = tmp_path / "big.mat"
    path.write_bytes(header + matrix(b"data", X) + matrix(b"target", Y))
    np.testing.assert_array_equal(read(path).X, X)
    np.testing.assert_array_equal(scipy.io.loadmat(path)["data"], X)


@pytest.mark.data
def test_the_authors_files_are_read_as_scipy_reads_them(mirror):
    for name in ("cal500", "genbase", "bibtex"):
        path = mirror / f"imcc-authors/{name}.mat"
        expected = scipy.io.loadmat(path)
        dataset = read(path)
        both = np.vstack([expected["train_data"], expected["test_data"]])
        np.testing.assert_array_equal(dataset.X, both)
        both = np.vstack([expected["train_target"], expected["test_target"]])
        np.testing.assert_array_equal(dataset.Y, both > 0)


def labels_by_rows(n_train, n_test, n_labels):
    rng = np.random.RandomState(1)
    features, labels = rng.rand(n_train + n_test, 3), rng.rand(n_train + n_test, n_labels) > 0.5
    parts = {
        "train_data": features[:n_train],
        "train_target": labels[:n_train].T,
        "test_data": features[n_train:],
        "test_target": labels[n_train:].T,
    }
    return parts, labels


@pytest.mark.parametrize("which", ["train_target", "test_target"])
def test_all_parts_are_turned_in_the_same_way(mat, which):
    """A part with as many rows as labels does not say how it lies; the other part does."""
    sizes = (9, 4) if which == "test_target" else (4, 9)
    parts, labels = labels_by_rows(*sizes, 4)
    assert parts[which].shape == (4, 4)
    np.testing.assert_array_equal(read(mat(parts)).Y, labels)
    straight = {k: v.T if k.endswith("target") else v for k, v in parts.items()}
    np.testing.assert_array_equal(read(mat(straight)).Y, labels)


def test_as_many_rows_as_labels_must_be_said(mat, tmp_path):
    parts, labels = labels_by_rows(4, 4, 4)
    path = mat(parts)
    with pytest.raises(DataFormatError, match=r"transpose_labels=False .*transpose_labels=True"):
        read(path)
    np.testing.assert_array_equal(read(path, transpose_labels=True).Y, labels)
    turned = np.vstack([parts["train_target"], parts["test_target"]])
    np.testing.assert_array_equal(read(path, transpose_labels=False).Y, turned)
    np.savez(tmp_path / "square.npz", X=parts["train_data"], Y=parts["train_target"])
    with pytest.raises(DataFormatError, match="transpose_labels="):
        read(tmp_path / "square.npz")
    kept = read(tmp_path / "square.npz", transpose_labels=False)
    assert read(write(kept, tmp_path / "ours.npz")) == kept, "our own files are not ambiguous"


def test_labels_that_fit_neither_way(mat):
    parts, _ = labels_by_rows(9, 4, 3)
    parts["test_target"] = parts["test_target"].T
    with pytest.raises(DataFormatError, match="do not match, neither as rows x labels"):
        read(mat(parts))
    parts, _ = labels_by_rows(9, 4, 3)
    with pytest.raises(DataFormatError, match=r"rows x labels; change .* transpose_labels=True"):
        read(mat(parts), transpose_labels=False)
