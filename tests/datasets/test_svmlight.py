import numpy as np
import pytest
import sklearn.datasets

from imcc.datasets import (
    DataFormatError,
    Dataset,
    DataWarning,
    read,
)
from imcc.datasets._coding import Coding
from imcc.datasets._match import read_matching
from tests.writers import write


@pytest.fixture
def svm(tmp_path):
    def make(text, **options):
        path = tmp_path / "toy.svm"
        path.write_text(text)
        return read(path, **options)

    return make


def test_labels_are_the_numbers_that_occur(svm):
    dataset = svm("3,7 1:0.5 4:-2\n\n3 2:1 # a comment\n 1:1\n\n", index_base="one")
    assert dataset.label_names == ("3", "7")
    np.testing.assert_array_equal(dataset.Y, [[1, 1], [1, 0], [0, 0]])
    assert dataset.is_sparse
    expected = [[0.5, 0, 0, -2], [0, 1, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_array_equal(dataset.X.toarray(), expected)


def test_index_base(svm):
    text = "1 1:5 2:6\n"
    with pytest.warns(DataWarning, match=r"toy\.svm: .*counted from 0 or from 1; 1 is assumed"):
        assert svm(text).n_features == 2
    assert svm(text, index_base="one").n_features == 2
    assert svm(text, index_base="zero").X.toarray().tolist() == [[0, 5, 6]]
    assert svm("1 0:5 2:6\n").X.toarray().tolist() == [[5, 0, 6]]
    with pytest.raises(DataFormatError, match="from 0 to 0 occur"):
        svm("1 0:5\n", index_base="one")
    with pytest.raises(ValueError, match="index_base must be one of"):
        svm(text, index_base="two")


def test_n_features(svm):
    assert svm("1 2:6\n", n_features=5, index_base="one").n_features == 5
    with pytest.raises(DataFormatError, match=r"there are 1 features.* to 2 occur"):
        svm("1 2:6\n", n_features=1, index_base="one")
    with pytest.raises(ValueError, match="n_features must be"):
        svm("1 2:6\n", n_features=0)


def test_header_of_the_extreme_classification_repository(svm):
    dataset = svm("2 5 4\n0,3 1:0.5\n1 0:2 4:1\n")
    assert dataset.label_names == ("0", "1", "2", "3")
    np.testing.assert_array_equal(dataset.Y, [[1, 0, 0, 1], [0, 1, 0, 0]])
    np.testing.assert_array_equal(dataset.X.toarray(), [[0, 0.5, 0, 0, 0], [2, 0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("# only a comment\n", None),
        ("1 1:1\nx 1:1\n", 2),
        ("1.5 1:1\n", 1),
        ("1 1:a\n", 1),
        ("1 1:1_0\n", 1),
        ("1 1:\n", 1),
        ("1 a:1\n", 1),
        ("1 1:1 7\n", 1),
        ("# x\n1 1:1\n\n1 1:1\n1 2:1 1:1\n1 1:1\n", 5),
        ("1 1:1\n1 1:1\n1 1:1 1:1\n", 3),
        ("1 qid:3 1:1\n", 1),
        ("1 99999999999:1\n", 1),
        ("1 0:1 900000000:1\n", None),
        ("1 -1:1\n", 1),
        ("99999999999 1:1\n", 1),
        ("11 3 99999999\n0 1:1\n" + " 1:1\n" * 10, None),
        ("3 5 2\n0 1:1\n", None),
        ("1 5 2\n7 1:1\n", None),
        (" 0:1\n", None),
    ],
)
def test_wrong_files(tmp_path, text, line):
    (tmp_path / "toy.svm").write_text(text)
    with pytest.raises(DataFormatError, match=r"toy\.svm") as caught:
        read(tmp_path / "toy.svm", index_base="zero")
    assert caught.value.line == line


def test_what_scikit_learn_writes(tmp_path):
    X, Y = np.array([[0.5, 0, 1], [0, 2, 0], [0, 0, 3]]), np.array([[1, 0], [1, 1], [0, 1]])
    path = tmp_path / "theirs.svm"
    sklearn.datasets.dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=False)
    assert read(path, index_base="one") == Dataset(X, Y, (), ("0", "1"))


def test_several_files_are_joined(tmp_path):
    (tmp_path / "d-1.svm").write_text("1 1:1\n")
    (tmp_path / "d-2.svm").write_text("2 3:1\n")
    dataset = read([tmp_path / "d-1.svm", tmp_path / "d-2.svm"], index_base="one")
    np.testing.assert_array_equal(dataset.Y, np.eye(2))
    assert dataset.n_features == 3
    assert dataset.name == "d"


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "toy.svm"
    path.write_bytes(b"\xef\xbb\xbf1 3 2\n0 1:5\n")
    assert read(path).X.toarray().tolist() == [[0, 5, 0]]
    assert (read(path).name, read(path, name="other").name) == ("toy", "other")


def test_the_index_base_belongs_to_the_data_set(svm):
    assert svm("1 0:5 2:6\n").coding == Coding(index_base=0)
    assert svm("1 1:5 2:6\n", index_base="one").coding == Coding(index_base=1)
    assert svm("1 1:5 2:6\n", index_base="one")[:1].coding.index_base == 1
    assert svm("1 2:5 3:6\n", n_features=3).coding.index_base == 1, "there is no index 3 from 0"
    assert Coding.from_dict(Coding(index_base=1).to_dict()).index_base == 1
    with pytest.raises(ValueError, match="index_base"):
        Coding.from_dict({"index_base": 2})


@pytest.mark.parametrize("base", ["zero", "one"])
def test_files_for_a_model_use_its_index_base(svm, tmp_path, base):
    """A test file without the index 0 must not be shifted by one."""
    first = 0 if base == "zero" else 1
    train = svm(f"1 {first}:5 {first + 2}:6\n2 {first + 1}:1\n", index_base=base)
    (tmp_path / "test.svm").write_text(f"1 {first + 1}:7\n")
    names = train.feature_names, train.label_names
    X, _ = read_matching(tmp_path / "test.svm", *names, coding=train.coding)
    assert X.toarray().tolist() == [[0, 7, 0]]
    with pytest.warns(DataWarning, match="counted from 0 or from 1"):
        read_matching(tmp_path / "test.svm", *names)


def test_a_file_that_contradicts_the_index_base_of_the_model(svm, tmp_path):
    (tmp_path / "test.svm").write_text("1 0:7\n")
    with pytest.raises(DataFormatError, match="counted from 1, but indices from 0"):
        read_matching(tmp_path / "test.svm", ["x0", "x1"], coding=Coding(index_base=1))
    (tmp_path / "test.svm").write_text("1 2:7\n")
    with pytest.raises(DataFormatError, match="counted from 0, but indices from 2"):
        read_matching(tmp_path / "test.svm", ["x0", "x1"], coding=Coding(index_base=0))


def test_a_file_that_declares_its_index_base_is_believed(tmp_path, toy):
    write(toy, tmp_path / "sizes.svm")
    X, _ = read_matching(tmp_path / "sizes.svm", ["x0", "x1", "x2"], coding=Coding(index_base=1))
    np.testing.assert_array_equal(X.toarray(), toy.X)


def test_one_of_several_files_declares_its_index_base(tmp_path):
    (tmp_path / "a.svm").write_text("1 3 2\n1 1:1\n")
    (tmp_path / "b.svm").write_text("1 1:1\n")
    with pytest.warns(DataWarning, match="counted from 0 or from 1"):
        read([tmp_path / "a.svm", tmp_path / "b.svm"])


def test_rows_without_labels_for_a_model(tmp_path):
    (tmp_path / "new.svm").write_text(" 0:1 2:3\n0:4\n")
    X, Y = read_matching(tmp_path / "new.svm", ["a", "b", "c"], ["cat", "dog"])
    assert X.toarray().tolist() == [[1, 0, 3], [4, 0, 0]]
    assert Y is None


def test_labels_that_never_occur(tmp_path):
    file = tmp_path / "test.svm"
    file.write_text("3 0:1 2:3\n3,9 0:4\n")
    names = ["x0", "x1", "x2"]
    _, Y = read_matching(file, names, ["3", "7", "9"], with_labels=True)
    assert Y.tolist() == [[1, 0, 0], [1, 0, 1]]
    file.write_text(" 0:1\n")
    with pytest.raises(DataFormatError, match="no row has a label"):
        read_matching(file, names, ["3", "7", "9"], with_labels=True)


def test_labels_that_the_model_does_not_know(tmp_path):
    file = tmp_path / "test.svm"
    file.write_text("3,5 0:1\n")
    with pytest.raises(DataFormatError, match=r"unknown to the model: '5'.*ignore_extra"):
        read_matching(file, ["x0"], ["3", "7"], with_labels=True)
    _, Y = read_matching(file, ["x0"], ["3", "7"], with_labels=True, ignore_extra=True)
    assert Y.tolist() == [[1, 0]]
    with pytest.raises(DataFormatError, match="not columns of the file"):
        read_matching(file, ["x0"], ["cat", "dog"], with_labels=True)
