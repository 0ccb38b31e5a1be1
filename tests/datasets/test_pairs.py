"""Files of named matrices: MATLAB and NumPy."""

import io
import pickle
import struct
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset, read, write
from imcc.datasets._dataset import concatenate

RNG = np.random.RandomState(0)
X = np.round(RNG.randn(7, 3), 2) * (RNG.rand(7, 3) > 0.4)
Y = (RNG.rand(7, 2) > 0.5).astype(int)
KINDS = ["mat", "compressed mat", "npz", "compressed npz"]


def savez(path, variables, save=np.savez):
    arrays = {}
    for name, value in variables.items():
        parts = ("data", "indices", "indptr", "shape") if sp.issparse(value) else ()
        arrays |= {f"{name}_{part}": getattr(value, part) for part in parts} or {name: value}
    save(path, **arrays)


@pytest.fixture
def saved(tmp_path):
    """Save matrices in a file; sparse ones in the way of the format."""

    def make(variables, kind="mat", **options):
        path = tmp_path / f"toy.{kind.split()[-1]}"
        if kind.endswith("mat"):
            compressed = kind == "compressed mat"
            scipy.io.savemat(path, variables, do_compression=compressed, **options)
        else:
            savez(path, variables, np.savez if kind == "npz" else np.savez_compressed)
        return path

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_kind_of_file(saved, kind, sparse):
    features = (sp.csc_array if kind.endswith("mat") else sp.csr_array)(X) if sparse else X
    path = saved({"note": "text", "data": features, "target": 2.0 * Y - 1}, kind)
    dataset = read(path)
    assert dataset.is_sparse == sparse
    assert dataset == Dataset(X, Y)
    assert dataset.name == "toy"
    assert dataset.source == str(path)


@pytest.mark.parametrize("number", ["i1", "u2", "i4", "u8", "f4", "f8", "?"])
@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_every_kind_of_number(saved, kind, number):
    numbers = np.arange(1, 7).reshape(3, 2).astype(number)
    dataset = read(saved({"X": numbers, "Y": Y[:3].astype(bool)}, kind))
    np.testing.assert_array_equal(dataset.X, numbers.astype(float))


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
    path = mirror / "imcc-authors/genbase.mat"
    expected = scipy.io.loadmat(path)
    both = [np.vstack([expected[f"train_{v}"], expected[f"test_{v}"]]) for v in ("data", "target")]
    assert read(path) == Dataset(both[0], both[1] > 0)


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_training_and_test_parts_are_concatenated(saved, kind):
    path = saved(
        {"test_data": X[5:], "test_target": Y[5:], "train_data": X[:5], "train_target": Y[:5]}, kind
    )
    dataset = read(path)
    assert dataset == Dataset(X, Y)
    assert read(path, variables=("train_data", "train_target")) == dataset[:5]
    pairs = [("test_data", "test_target"), ("train_data", "train_target")]
    assert read(path, variables=pairs) == concatenate([dataset[5:], dataset[:5]])


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_names_can_be_given(saved, kind):
    path = saved({"bags": X, "tags": Y}, kind)
    with pytest.raises(DataFormatError, match=r"variables=.*'bags', 'tags'"):
        read(path)
    assert read(path, variables=("bags", "tags")).n_labels == 2
    with pytest.raises(DataFormatError, match="'nope'"):
        read(path, variables=("bags", "nope"))
    for wrong in ("ab", ("bags",), [], ("a", "b", "c"), [("a", 1)]):
        with pytest.raises(ValueError, match="variables"):
            read(path, variables=wrong)


@pytest.mark.parametrize("kind", ["mat", "npz"])
@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"data": X, "target": Y[:3]}, "'data', 'target'"),
        ({"data": X, "target": 3 * Y}, "'data', 'target'"),
        ({"data": X + 1j, "target": Y}, "data"),
        ({"data": np.zeros((0, 3)), "target": np.zeros((0, 2))}, "'data'"),
        ({"data": np.zeros((2, 2, 2)), "target": Y}, "data"),
        ({"data": np.array([["a"]]), "target": Y}, "data"),
    ],
)
def test_variables_that_do_not_fit(saved, kind, variables, named):
    with pytest.raises(DataFormatError, match=named):
        read(saved(variables, kind))


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


@pytest.mark.parametrize("sizes", [(9, 4), (4, 9), (9, 8)])
def test_all_parts_are_turned_in_the_same_way(saved, sizes):
    """A part with as many rows as labels does not say how it lies; the other part does."""
    parts, labels = labels_by_rows(*sizes, 4)
    np.testing.assert_array_equal(read(saved(parts)).Y, labels)
    straight = {k: v.T if k.endswith("target") else v for k, v in parts.items()}
    np.testing.assert_array_equal(read(saved(straight)).Y, labels)
    with pytest.raises(DataFormatError, match="transpose_labels=True"):
        read(saved(parts), transpose_labels=False)


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_as_many_rows_as_labels_must_be_said(saved, tmp_path, kind):
    parts, labels = labels_by_rows(4, 4, 4)
    path = saved(parts, kind)
    with pytest.raises(DataFormatError, match=r"transpose_labels=False .*transpose_labels=True"):
        read(path)
    np.testing.assert_array_equal(read(path, transpose_labels=True).Y, labels)
    turned = np.vstack([parts["train_target"], parts["test_target"]])
    np.testing.assert_array_equal(read(path, transpose_labels=False).Y, turned)
    square = Dataset(parts["train_data"], parts["train_target"])
    assert read(write(square, tmp_path / "ours.npz")) == square, "our own files are not ambiguous"


def test_labels_that_fit_neither_way(saved):
    parts, _ = labels_by_rows(9, 4, 3)
    parts["test_target"] = parts["test_target"][:2]
    with pytest.raises(DataFormatError, match="transpose_labels="):
        read(saved(parts))


def test_npz_keeps_everything(tmp_path, sparse_toy):
    path = write(sparse_toy, tmp_path / "file.npz")
    assert read(path) == sparse_toy
    assert read(path).is_sparse
    assert read(path).name == "toy"
    assert read(path, name="other").name == "other"
    np.savez(tmp_path / "t.npz", X=X, Y=Y, label_names=np.array(["a"]))
    with pytest.raises(DataFormatError, match="label_names"):
        read(tmp_path / "t.npz")


class Evil:
    def __reduce__(self):
        return (print, ("pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path, capsys):
    np.savez(tmp_path / "evil.npz", X=np.array([[Evil()]], dtype=object), Y=Y)
    with pytest.raises(DataFormatError, match=r"evil\.npz"):
        read(tmp_path / "evil.npz")
    with zipfile.ZipFile(tmp_path / "raw.npz", "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Evil()))
        archive.writestr("Y.npy", pickle.dumps(Evil()))
    with pytest.raises(DataFormatError, match=r"raw\.npz"):
        read(tmp_path / "raw.npz")
    assert "pickle was loaded" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["mat", "npz"])
@pytest.mark.parametrize("data", [b"", b"hello", b"\x00" * 50, bytes(range(256)), b"PK\x03\x04"])
def test_what_is_no_such_file(tmp_path, kind, data):
    path = tmp_path / f"no.{kind}"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=rf"no\.{kind}"):
        read(path)


def test_matlab_7_3_says_how_to_save_it(tmp_path):
    path = tmp_path / "new.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: X".ljust(512) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataFormatError, match="'-v7'"):
        read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_anywhere(saved, kind):
    path = saved({"data": X, "target": Y}, kind)
    whole = path.read_bytes()
    for length in range(0, len(whole), 31):
        path.write_bytes(whole[:length])
        with pytest.raises(DataFormatError):
            read(path)


@pytest.mark.parametrize("kind", ["compressed mat", "compressed npz"])
def test_a_bomb_is_refused(saved, kind):
    path = saved({"X": np.zeros((1000, 1000)), "Y": np.ones((1000, 1))}, kind)
    assert path.stat().st_size < 50_000
    with pytest.raises(DataFormatError, match="max_bytes"):
        read(path, max_bytes=1_000_000)
    assert read(path, max_bytes=10_000_000).n_rows == 1000


def test_a_bomb_of_nothing_is_refused_before_it_is_unpacked(tmp_path):
    packed = zlib.compress(b"\0" * 50_000_000, 9)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "bomb.mat").write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DataFormatError, match="max_bytes"):
        read(tmp_path / "bomb.mat", max_bytes=1_000_000)


def test_a_header_that_declares_more_than_there_is(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    )
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        for name in ("X.npy", "Y.npy"):
            archive.writestr(name, stream.getvalue() + b"\0" * 64)
    with pytest.raises(DataFormatError, match=r"declares the shape \(1000000000, 1000000\)"):
        read(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_a_sparse_matrix_that_declares_a_huge_shape(saved, tmp_path, kind):
    tall = sp.csc_array(([1.0], ([0], [0])), shape=(2**30, 2))
    wide = sp.csr_array(([1.0], ([0], [0])), shape=(7, 2**40))
    with pytest.raises(DataFormatError, match="for a file of this size"):
        read(saved({"data": tall if kind == "mat" else wide, "target": Y}, kind))


def test_sparse_parts_that_lie(tmp_path):
    good = sp.csr_array(X)
    parts = {"X_data": good.data, "X_indices": good.indices, "X_indptr": good.indptr, "Y": Y}
    np.savez(tmp_path / "t.npz", **parts | {"X_indices": good.indices + 10**6}, X_shape=X.shape)
    with pytest.raises(DataFormatError, match="'X'"):
        read(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", **parts)
    with pytest.raises(DataFormatError, match="'X_shape'"):
        read(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_starts_that_return_to_zero(saved, kind):
    """SciPy takes such a matrix for empty, and crashes when it follows them."""
    ones = np.ones((3, 3))
    features = sp.csc_array(ones) if kind == "mat" else sp.csr_array(ones)
    path = saved({"X": features, "Y": np.eye(3, 2)}, kind)
    good, bad = np.array([0, 3, 6, 9], np.int32), np.array([0, 3, 6, 0], np.int32)
    if kind == "mat":
        path.write_bytes(path.read_bytes().replace(good.tobytes(), bad.tobytes()))
    else:
        with np.load(path) as arrays:
            np.savez(path, **{**arrays, "X_indptr": bad})
    with pytest.raises(DataFormatError, match="starts"):
        read(path)
