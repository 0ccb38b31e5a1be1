import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset, DataWarning, read
from imcc.datasets._coding import Coding
from imcc.datasets._match import match_dataset, read_matching
from tests.writers import write

ARFF = """@relation r
@attribute name string
@attribute size numeric
@attribute wet {no,yes}
@attribute hue {red,blue,green}
@attribute happy {0,1}
@attribute sad {0,1}
@data
a,1,yes,red,1,0
b,2,no,blue,0,1
c,3,no,green,1,1
"""


def match(data, file, **options):
    return read_matching(file, data.feature_names, data.label_names, coding=data.coding, **options)


def rows(tmp_path, text, name="new.arff"):
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.fixture
def trained(tmp_path):
    """The data a model was trained on, with words of all sorts."""
    with pytest.warns(DataWarning, match="'name'"):
        return read(rows(tmp_path, ARFF, "train.arff"), labels=["happy", "sad"])


def test_coding_says_what_the_reader_did(trained):
    assert trained.feature_names == ("size", "wet", "hue=red", "hue=blue", "hue=green")
    assert trained.coding.codes == {"wet": {"no": 0.0, "yes": 1.0}}
    assert trained.coding.indicators["hue=red"] == ("hue", "red")
    assert trained.coding.left_out == ("name",)
    assert trained[:2].renamed("x").coding == trained.coding
    assert Coding.from_dict(trained.coding.to_dict()) == trained.coding


@pytest.mark.parametrize("content", [{"codes": 3}, {"indicators": {"a": 1}}, {"left_out": 1}])
def test_coding_of_nonsense(content):
    with pytest.raises(ValueError, match="not a valid encoding"):
        Coding.from_dict(content)


def test_the_training_file_gives_the_training_rows(trained, tmp_path):
    X, Y = match(trained, tmp_path / "train.arff", with_labels=True)
    np.testing.assert_array_equal(X, trained.X)
    np.testing.assert_array_equal(Y, trained.Y)
    assert match(trained, tmp_path / "train.arff")[1] is None


HEAD = "@attribute hue {green,red}\n@attribute wet {yes,no}\n"
SIZE = "@attribute size real\n"


def test_words_that_are_declared_in_another_order(trained, tmp_path):
    """They must mean what they meant in training."""
    file = rows(tmp_path, "@relation r\n" + HEAD + SIZE + "@data\nred,yes,4\n?,no,?\n")
    nan = np.nan
    np.testing.assert_array_equal(match(trained, file)[0], [[4, 1, 1, 0, 0], [nan, 0, *[nan] * 3]])
    more = HEAD.replace("red", "pink") + SIZE + "@attribute z numeric\n@data\n"
    file = rows(tmp_path, "@relation r\n" + more + "pink,no,1,2\n")
    with pytest.warns(DataWarning, match="words that did not occur in the training data: 'pink'"):
        X, _ = match(trained, file, ignore_extra=True)
    np.testing.assert_array_equal(X, [[1, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("attributes", "row", "message"),
    [
        ("@attribute wet {no,yes}\n", "yes", r"2 column\(s\) .* needs are missing: 'size', 'hue'"),
        (HEAD + SIZE + "@attribute z real\n", "red,yes,1,2", "unknown.*'z'"),
        (HEAD.replace("no", "maybe") + SIZE, "red,maybe,1", "'maybe' here"),
        (HEAD + "@attribute size {big}\n", "red,yes,big", "'size' is 'big'"),
        (HEAD.replace("{yes,no}", "real") + SIZE, "red,3,1", "'wet' contains"),
        (HEAD.replace("{green,red}", "real") + SIZE, "3,no,1", "'hue' contains"),
    ],
)  # fmt: skip
def test_what_does_not_match(trained, tmp_path, attributes, row, message):
    with pytest.raises(DataFormatError, match=message):
        match(trained, rows(tmp_path, f"@relation r\n{attributes}@data\n{row}\n"))


def test_labels_by_name(trained, tmp_path):
    file = rows(tmp_path, ARFF.replace("happy", "glad"), "other.arff")
    with pytest.raises(DataFormatError, match="'happy'"):
        match(trained, file, with_labels=True, ignore_extra=True)


def test_ordinal_words(tmp_path):
    data = read(rows(tmp_path, ARFF.replace("string", "{a,b,c}")), labels=-2, nominal="ordinal")
    X, _ = match(data, tmp_path / "new.arff")
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(X[:, 0], [0, 1, 2])


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = (rng.random((12, 6)) * (rng.random((12, 6)) < 0.4)).round(2)
    Y = (rng.random((12, 2)) < 0.5).astype(int)
    Y[0], Y[1] = 0, 1
    return Dataset(X, Y, list("abcdef"), ["p", "q"], "numbers")


@pytest.mark.parametrize("name", ["n.arff", "n.csv", "n.npz", "n.csv.gz"])
def test_every_format(tmp_path, numbers, name):
    write(numbers, tmp_path / name)
    X, Y = match(numbers, tmp_path / name, with_labels=True)
    dense = X.toarray() if sp.issparse(X) else X
    np.testing.assert_allclose(dense, numbers.X)
    np.testing.assert_array_equal(Y, numbers.Y)


def test_sparse_arff_stays_sparse(tmp_path):
    text = """@relation r
@attribute a {0,1}
@attribute b numeric
@attribute l {0,1}
@data
{0 1, 2 1}
{1 3}
"""
    file = rows(tmp_path, text, "s.arff")
    X, Y = read_matching(file, ["b", "a"], ["l"], with_labels=True)
    assert sp.issparse(X)
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [3, 0]])
    assert Y.tolist() == [[1], [0]]
    coding = Coding({}, {"a=0": ("a", "0"), "a=1": ("a", "1")})
    X, _ = read_matching(file, ["a=0", "a=1"], ["l"], coding=coding, ignore_extra=True)
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [1, 0]])


def test_a_data_set_by_name(numbers):
    X, Y = match_dataset(numbers, list("fb"), ["q"], with_labels=True, ignore_extra=True)
    np.testing.assert_array_equal(X, numbers.X[:, [5, 1]])
    np.testing.assert_array_equal(Y, numbers.Y[:, 1:])
    with pytest.raises(DataFormatError, match="4 column"):
        match_dataset(numbers, list("fb"))
    with pytest.raises(DataFormatError, match=r"not columns.*'z'"):
        match_dataset(numbers, list("abcdef"), ["z"], with_labels=True)
    with pytest.raises(DataFormatError, match="needs are missing: 'z'"):
        match_dataset(numbers, list("abcdez"))


def test_features_of_the_same_name():
    twins = Dataset([[1.0, 2.0, 3.0]], [[1]], ("a", "a", "b"))
    np.testing.assert_array_equal(match_dataset(twins, ["a", "a", "b"])[0], twins.X)
    with pytest.raises(DataFormatError, match="same name"):
        match_dataset(twins, ["b", "a"])
    other = Dataset([[1.0, 2.0, 3.0]], [[1]], ("a", "b", "c"))
    with pytest.raises(DataFormatError, match="in the same order"):
        match_dataset(other, ["b", "a", "a"], ignore_extra=True)


@pytest.mark.parametrize("sparse", [False, True])
def test_npz_and_mat_files_without_labels(tmp_path, sparse):
    X = np.array([[1.0, 0, 2], [0, 3, 0]])
    held = sp.csr_array(X) if sparse else X
    np.savez(tmp_path / "n.npz", **(
        {f"X_{part}": getattr(held, part) for part in ("data", "indices", "indptr", "shape")}
        if sparse else {"X": X}
    ))  # fmt: skip
    scipy.io.savemat(tmp_path / "n.mat", {"data": held})
    names = ["x0", "x1", "x2"]
    for file in ("n.npz", "n.mat"):
        found, Y = read_matching(tmp_path / file, names, ["cat"])
        assert sp.issparse(found) == sparse
        np.testing.assert_array_equal(found.toarray() if sparse else found, X)
        assert Y is None
    np.savez(tmp_path / "n.npz", X=X[:, ::-1], feature_names=np.array(["c", "b", "a"]))
    found, _ = read_matching(tmp_path / "n.npz", ["a", "b", "c"])
    np.testing.assert_array_equal(found, X)
    with pytest.raises(DataFormatError, match="variables="):
        read_matching(tmp_path / "n.npz", ["a", "b", "c"], ["cat"], with_labels=True)


def test_labels_that_the_model_does_not_know(toy):
    wanted = {"with_labels": True}
    with pytest.raises(DataFormatError, match="unknown to the model: 'big dog'"):
        match_dataset(toy, toy.feature_names, ["cat"], **wanted)
    _, Y = match_dataset(toy, toy.feature_names, ["cat"], ignore_extra=True, **wanted)
    np.testing.assert_array_equal(Y, toy.Y[:, :1])
