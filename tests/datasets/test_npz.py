import functools
import io
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset, open_stream, read, write

read_npz = functools.partial(read, format="npz")

X, Y = np.arange(6.0).reshape(3, 2), np.array([[1, 0], [0, 0], [1, 1]])


def test_well_known_names(tmp_path):
    np.savez(tmp_path / "t.npz", data=X, target=Y)
    assert read(tmp_path / "t.npz") == Dataset(X, Y)
    np.savez_compressed(
        tmp_path / "s.npz", X_train=X[:1], Y_train=Y[:1], X_test=X[1:], Y_test=Y[1:]
    )
    assert read(tmp_path / "s.npz") == Dataset(X, Y)


def test_names_can_be_given(tmp_path):
    np.savez(tmp_path / "t.npz", bags=X, tags=Y, more=X + 1)
    assert read_npz(tmp_path / "t.npz", variables=("more", "tags")).X[0, 0] == 1.0
    with pytest.raises(DataFormatError, match="'bags', 'more', 'tags'"):
        read(tmp_path / "t.npz")
    with pytest.raises(DataFormatError, match="no numeric variable 'rags'"):
        read(tmp_path / "t.npz", variables=("rags", "tags"))


def test_everything_is_kept(tmp_path, sparse_toy):
    path = write(sparse_toy, tmp_path / "file.npz")
    found = read(path)
    assert found == sparse_toy
    assert found.is_sparse
    assert found.name == "toy"
    assert read(path, name="other").name == "other"
    assert found.source == str(path)


class Evil:
    def __reduce__(self):
        return (print, ("pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path, capsys):
    np.savez(tmp_path / "evil.npz", X=np.array([[Evil()]], dtype=object), Y=Y)
    with pytest.raises(DataFormatError, match="contains Python objects, which are not supported"):
        read(tmp_path / "evil.npz")
    with zipfile.ZipFile(tmp_path / "raw.npz", "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Evil()))
        archive.writestr("Y.npy", pickle.dumps(Evil()))
    with pytest.raises(DataFormatError, match="magic"):
        read(tmp_path / "raw.npz")
    assert "pickle was loaded" not in capsys.readouterr().out


def test_a_header_that_promises_more_than_there_is(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    )
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", stream.getvalue() + b"\0" * 64)
    with pytest.raises(DataFormatError, match="declares 8000000000000000 bytes"):
        read(tmp_path / "t.npz")


def test_a_bomb_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((1000, 1000)), Y=np.ones((1000, 1)))
    assert (tmp_path / "bomb.npz").stat().st_size < 50_000
    with pytest.raises(DataFormatError, match="max_bytes="):
        read(tmp_path / "bomb.npz", max_bytes=1_000_000)
    assert read(tmp_path / "bomb.npz", max_bytes=10_000_000).n_rows == 1000


def test_sparse_parts_that_lie(tmp_path):
    good = sp.csr_array(X)
    parts = {"X_data": good.data, "X_indices": good.indices, "X_indptr": good.indptr}
    np.savez(
        tmp_path / "far.npz", **{**parts, "X_indices": good.indices + 10**6}, X_shape=X.shape, Y=Y
    )
    with pytest.raises(DataFormatError, match=r"indices|index"):
        read(tmp_path / "far.npz")
    np.savez(tmp_path / "wide.npz", **parts, X_shape=(3, 10**12), Y=Y)
    with pytest.raises(DataFormatError, match="more than the limit"):
        read(tmp_path / "wide.npz")
    np.savez(tmp_path / "part.npz", **parts, Y=Y)
    with pytest.raises(DataFormatError, match="'X_shape' is missing"):
        read(tmp_path / "part.npz")


def test_starts_of_rows_that_return_to_zero(tmp_path):
    """SciPy takes such a matrix for empty, and crashes when it follows them."""
    parts = {"X_data": np.empty(0), "X_indices": np.empty(0, np.int32), "X_shape": (3, 2)}
    np.savez(tmp_path / "t.npz", **parts, X_indptr=np.array([0, 10**6, 10**7, 0], np.int32), Y=Y)
    with pytest.raises(DataFormatError, match="starts"):
        read(tmp_path / "t.npz")
    with pytest.raises(DataFormatError, match="starts"):
        list(open_stream(tmp_path / "t.npz"))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"hello"])
def test_what_is_no_npz_file(tmp_path, data):
    (tmp_path / "t.npz").write_bytes(data)
    with pytest.raises(DataFormatError, match=r"t\.npz"):
        read(tmp_path / "t.npz")


def test_arrays_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, Y=Y[:2])
    with pytest.raises(DataFormatError, match="the same number of rows"):
        read(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", X=X, Y=Y, label_names=np.array(["a"]))
    with pytest.raises(DataFormatError, match="1 names for 2 columns"):
        read(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", X=np.array([["a"]]), Y=Y)
    with pytest.raises(DataFormatError, match="real numbers"):
        read(tmp_path / "t.npz")


def test_names_that_would_lose_their_end_are_refused(tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        write(Dataset([[1.0]], [[1]], ("a\0",)), tmp_path / "t.npz")
