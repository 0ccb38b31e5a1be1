import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp

from imcc.datasets import Dataset
from imcc.datasets._dataset import concatenate


def test_labels_of_every_coding_become_zero_and_one():
    for Y in ([[1, 0]], [[1, -1]], [[True, False]], [[1.0, 0.0]], sp.csr_array([[1, 0]])):
        dataset = Dataset([[1.0]], Y)
        np.testing.assert_array_equal(dataset.Y, [[1, 0]])
        assert dataset.Y.dtype == np.int32


def test_sparse_features_become_canonical_csr_with_narrow_indices():
    X = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 0], [2, 2, 1])), shape=(1, 3))
    dataset = Dataset(X, [[1]])
    assert isinstance(dataset.X, sp.csr_array)
    assert dataset.X.nnz == 1
    assert dataset.X[0, 2] == 3.0
    assert dataset.X.indices.dtype == np.int32


def test_the_callers_sparse_matrix_is_left_alone():
    X = sp.csr_array(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2))
    Dataset(X, [[1]])
    assert X.indices.tolist() == [1, 0]


def test_default_names():
    dataset = Dataset(np.zeros((1, 2)), [[0, 1, 1]])
    assert dataset.feature_names == ("x0", "x1")
    assert dataset.label_names == ("label0", "label1", "label2")


@pytest.mark.parametrize("library", [pandas, polars])
def test_the_columns_of_data_frames_name_features_and_labels(library):
    X = library.DataFrame({"height": [1.5, 2.5], "width": [1, 2]})
    Y = library.DataFrame({"cat": [True, False], "dog": [False, False]})
    dataset = Dataset(X, Y)
    assert dataset.feature_names == ("height", "width")
    assert dataset.label_names == ("cat", "dog")
    np.testing.assert_array_equal(dataset.X, [[1.5, 1], [2.5, 2]])
    np.testing.assert_array_equal(dataset.Y, [[1, 0], [0, 0]])
    assert Dataset(X, Y, label_names=("a", "b")).label_names == ("a", "b")


def test_a_data_frame_without_names():
    dataset = Dataset(pandas.DataFrame([[1.0, 2.0]]), [[1]])
    assert dataset.feature_names == ("x0", "x1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[1], [0]]), "X has 1, Y has 2"),
        (([[1.0]], [[2]]), "got the values 2"),
        (([[1.0]], [[-1, 0, 1]]), "coded"),
        (([[1.0]], [1]), "Y must be two-dimensional"),
        (([1.0], [[1]]), "X must be two-dimensional"),
        (([["a"]], [[1]]), "X must contain numbers"),
        (([[1.0]], [["1"]]), "Y must contain numbers"),
        ((np.zeros((1, 0)), [[1]]), "X"),
        (([[1.0]], np.zeros((1, 0))), "Y"),
        (([[1.0]], [[1]], ["a", "b"]), "feature_names has 2 names for 1 columns"),
        (([[1.0]], [[1, 1]], (), ["a", "a"]), "label_names must be unique; repeated: 'a'"),
    ],
)
def test_wrong_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset(*arguments)


@pytest.mark.parametrize("names", ["ab", ["a", ""], ["a", 3], ["a", "b\0"]])
def test_wrong_names_are_type_errors(names):
    with pytest.raises(TypeError, match="label_names"):
        Dataset([[1.0]], [[1, 0]], label_names=names)


def test_slicing_by_rows(toy, sparse_toy):
    for dataset in (toy, sparse_toy):
        np.testing.assert_array_equal(dataset[1:3].Y, toy.Y[1:3])
        np.testing.assert_array_equal(dataset[[3, 0]].Y, toy.Y[[3, 0]])
        np.testing.assert_array_equal(dataset[toy.Y[:, 0] == 1].Y, toy.Y[[0, 2]])
        assert dataset[[3, 0]] == concatenate([dataset[3:], dataset[:1]])
        assert len(dataset[[]]) == 0
        assert dataset[1:].label_names == toy.label_names


def test_slicing_by_what_is_no_rows(toy):
    with pytest.raises(TypeError, match=r"use \[2:3\]"):
        toy[2]
    with pytest.raises(IndexError, match="4"):
        toy[[True, False]]
    with pytest.raises(IndexError, match="integer"):
        toy[[0.5]]


def test_equality_is_about_content(toy, sparse_toy):
    assert toy == sparse_toy
    assert toy == toy.renamed("other")
    assert toy != toy[:3]
    assert toy != Dataset(toy.X, 1 - toy.Y, toy.feature_names, toy.label_names)
    assert toy != Dataset(toy.X, toy.Y, toy.feature_names, ("cat", "dog"))
    assert toy != Dataset(toy.X + 1, toy.Y, toy.feature_names, toy.label_names)
    assert toy != "toy"


def test_missing_values_are_equal_to_themselves():
    dataset = Dataset([[np.nan, 1.0]], [[1]])
    assert dataset == Dataset([[np.nan, 1.0]], [[1]])
    assert dataset.has_missing
    assert not dataset[:0].has_missing


def test_statistics(toy):
    assert toy.cardinality == 1.0
    assert toy.density == 0.5
    assert toy.n_label_sets == 4
    assert (toy.n_rows, toy.n_features, toy.n_labels) == (4, 3, 2)


def test_fingerprint_does_not_depend_on_storage_but_on_content(toy, sparse_toy):
    assert toy.fingerprint() == sparse_toy.fingerprint() == toy.renamed("x").fingerprint()
    others = [
        toy[::-1],
        Dataset(toy.X, toy.Y),
        Dataset(toy.X, toy.Y[:, ::-1], toy.feature_names, toy.label_names),
        Dataset(-toy.X, toy.Y, toy.feature_names, toy.label_names),
    ]
    assert len({toy.fingerprint(), *(other.fingerprint() for other in others)}) == 5


def test_fingerprint_is_the_same_for_ever():
    dataset = Dataset([[0.5, -0.0], [np.nan, 1.0]], [[1], [0]], ("é", "b"), ("c",))
    assert (
        dataset.fingerprint() == "d3d4cd46ff9bedcf62f2d807ecd45b0e016a4dbf08ef6e70cfccb6a422e070a4"
    )


def test_prints_well(toy, sparse_toy):
    assert repr(toy) == "Dataset 'toy': 4 rows, 3 features (dense), 2 labels, 1.000 labels per row"
    assert "(sparse)" in repr(sparse_toy)


def test_concatenate(toy, sparse_toy):
    both = concatenate([toy, sparse_toy], name="both")
    assert both.name == "both"
    assert both.is_sparse
    np.testing.assert_array_equal(both.Y, np.vstack([toy.Y, toy.Y]))


def test_concatenate_refuses_other_columns(toy):
    other = Dataset(toy.X, toy.Y, toy.feature_names, ("cat", "fish"))
    with pytest.raises(ValueError, match="labels are different"):
        concatenate([toy, other])
    with pytest.raises(ValueError, match="features or labels"):
        concatenate([toy, Dataset(toy.X[:, :2], toy.Y)])


def test_a_data_set_cannot_be_changed(toy):
    with pytest.raises(AttributeError):
        toy.name = "other"
    with pytest.raises(TypeError):
        hash(toy)
