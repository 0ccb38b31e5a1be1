import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from imcc.datasets import (
    Coding,
    DataFormatError,
    Dataset,
    DataWarning,
    match_dataset,
    read,
    read_matching,
    write,
)

TABLE = """id,size,wet,hue,kind,happy,sad
a1,1,yes,red,x,1,0
a2,2,no,blue,y,0,1
a3,3,no,green,x,1,1
a4,4,yes,red,x,0,0
a5,5,yes,blue,y,1,0
a6,6,no,red,x,0,1
"""


@pytest.fixture
def trained(tmp_path):
    """The data a model was trained on, with words of all sorts."""
    (tmp_path / "train.csv").write_text(TABLE)
    with pytest.warns(DataWarning, match="'id'"):
        return read(tmp_path / "train.csv", labels=["happy", "sad"])


def match(data, file, **options):
    return read_matching(file, data.feature_names, data.label_names, coding=data.coding, **options)


def rows(tmp_path, text, name="new.csv"):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_coding_says_what_the_reader_did(trained):
    assert trained.feature_names == ("size", "wet", "hue=blue", "hue=green", "hue=red", "kind")
    assert trained.coding.codes == {"wet": {"no": 0.0, "yes": 1.0}, "kind": {"x": 0.0, "y": 1.0}}
    assert trained.coding.indicators["hue=red"] == ("hue", "red")
    assert trained.coding.left_out == ("id",)
    assert trained[:2].coding == trained.coding
    assert Coding.from_dict(trained.coding.to_dict()) == trained.coding
    assert trained.renamed("x").coding == trained.coding


@pytest.mark.parametrize("content", [{"codes": 3}, {"indicators": {"a": 1}}, {"left_out": 1}])
def test_coding_of_nonsense(content):
    with pytest.raises(ValueError, match="not a valid encoding"):
        Coding.from_dict(content)


def test_the_training_file_gives_the_training_rows(trained, tmp_path):
    X, Y = match(trained, tmp_path / "train.csv", with_labels=True)
    np.testing.assert_array_equal(X, trained.X)
    np.testing.assert_array_equal(Y, trained.Y)
    assert match(trained, tmp_path / "train.csv")[1] is None


def test_columns_in_another_order_and_without_labels(trained, tmp_path):
    """Few rows have few of the words: they must mean what they meant in training."""
    file = rows(tmp_path, "kind,hue,size,wet\ny,red,4,yes\n")
    np.testing.assert_array_equal(match(trained, file)[0], [[4, 1, 0, 0, 1, 1]])
    file = rows(tmp_path, "kind,hue,size,wet\nx,blue,4,No\n")
    np.testing.assert_array_equal(match(trained, file)[0], [[4, 0, 1, 0, 0, 0]])
    file = rows(tmp_path, "kind,hue,size,wet\nx,?,?,1\n")
    X = match(trained, file)[0]
    assert np.isnan(X[0, [0, 2, 3, 4]]).all()
    assert X[0, [1, 5]].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,wet,hue\n1,yes,red\n", r"1 column\(s\) that the model needs are missing: 'kind'"),
        ("size,wet,hue,kind,more\n1,yes,red,x,3\n", r"1 column.*unknown.*'more'.*ignore_extra"),
        ("size,wet,hue,kind\n1,yes,red,x\n2,perhaps,red,x\n", "line 3: .*'wet' is 'perhaps'"),
        ("size,wet,hue,kind\n1,3,red,x\n", "'wet' is 3 here.*'no', 'yes'"),
        ("size,wet,hue,kind\nbig,no,red,x\n", "'size' is 'big' here.*expects numbers"),
        ("size,wet,hue,kind\n1,no,red,z\n", "'kind' is 'z' here"),
        ("size,size,wet,hue,kind\n1,1,no,red,x\n", "several columns have the same name"),
        ("size,wet,hue,kind\n", "no rows"),
        ("", "empty"),
    ],
)
def test_what_does_not_match(trained, tmp_path, text, message):
    with pytest.raises(DataFormatError, match=message):
        match(trained, rows(tmp_path, text))


def test_extra_columns_and_new_words(trained, tmp_path):
    file = rows(tmp_path, "more,size,wet,hue,kind\n9,1,yes,red,x\n")
    np.testing.assert_array_equal(match(trained, file, ignore_extra=True)[0], [[1, 1, 0, 0, 1, 0]])
    file = rows(tmp_path, "size,wet,hue,kind\n1,yes,pink,x\n")
    with pytest.warns(DataWarning, match="words that did not occur in the training data: 'pink'"):
        np.testing.assert_array_equal(match(trained, file)[0], [[1, 1, 0, 0, 0, 0]])


def test_labels_by_name(trained, tmp_path):
    file = rows(tmp_path, "sad,kind,hue,size,wet,happy\n1,y,red,4,yes,0\n")
    assert match(trained, file, with_labels=True)[1].tolist() == [[0, 1]]
    file = rows(tmp_path, "kind,hue,size,wet,happy\ny,red,4,yes,0\n")
    with pytest.raises(DataFormatError, match="'sad'"):
        match(trained, file, with_labels=True)


def test_numbers_where_words_were_one_hot(tmp_path):
    (tmp_path / "train.csv").write_text("grade,l\n1,1\n2,0\nx,1\n1,0\n")
    with pytest.warns(DataWarning, match=r"line 4: the column 'grade' contains numbers.*'x'"):
        data = read(tmp_path / "train.csv", labels=["l"])
    assert data.feature_names == ("grade=1", "grade=2", "grade=x")
    X, _ = match(data, rows(tmp_path, "grade\n2\n1\n"))
    np.testing.assert_array_equal(X, [[0, 1, 0], [1, 0, 0]])
    with pytest.warns(
        DataWarning, match="'grade' has words that did not occur .*: '7'; all features of the"
    ):
        X, _ = match(data, rows(tmp_path, "grade\n7\n1\n"))
    np.testing.assert_array_equal(X, [[0, 0, 0], [1, 0, 0]])


def test_numbers_where_training_had_words_are_an_error(trained, tmp_path):
    file = rows(tmp_path, "size,wet,hue,kind\n1,yes,3,x\n2,yes,4,x\n")
    with pytest.raises(
        DataFormatError, match=r"'hue' contains numbers .*contained words \('blue', 'green'"
    ):
        match(trained, file)


def test_words_where_training_had_numbers_are_an_error(trained, tmp_path):
    file = rows(tmp_path, 'size,wet,hue,kind\n1,yes,red,x\n"1,2",yes,red,x\n')
    with pytest.raises(DataFormatError, match=r"line 3: .*'size' is '1,2'.*expects numbers"):
        match(trained, file)


def test_ordinal_words(tmp_path):
    (tmp_path / "train.csv").write_text("hue,l\nred,1\nblue,0\ngreen,1\nred,0\n")
    data = read(tmp_path / "train.csv", labels=["l"], nominal="ordinal")
    X, _ = match(data, rows(tmp_path, "hue\nred\n"))
    np.testing.assert_array_equal(X, [[2]])


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = (rng.random((12, 6)) * (rng.random((12, 6)) < 0.4)).round(2)
    Y = (rng.random((12, 2)) < 0.5).astype(int)
    Y[0], Y[1] = 0, 1
    return Dataset(X, Y, list("abcdef"), ["p", "q"], "numbers")


@pytest.mark.parametrize("name", ["n.arff", "n.svm", "n.csv", "n.parquet", "n.npz", "n.csv.gz"])
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
    with pytest.raises(DataFormatError, match="of the model are not in the data: 'z'"):
        match_dataset(numbers, list("abcdef"), ["z"], with_labels=True)
    with pytest.raises(DataFormatError, match="needs are missing: 'z'"):
        match_dataset(numbers, list("abcdez"))


def test_features_of_the_same_name(tmp_path):
    twins = Dataset([[1.0, 2.0, 3.0]], [[1]], ("a", "a", "b"))
    np.testing.assert_array_equal(match_dataset(twins, ["a", "a", "b"])[0], twins.X)
    with pytest.raises(DataFormatError, match="same name"):
        match_dataset(twins, ["b", "a"])
    other = Dataset([[1.0, 2.0, 3.0]], [[1]], ("a", "b", "c"))
    with pytest.raises(DataFormatError, match="in the same order"):
        match_dataset(other, ["b", "a", "a"], ignore_extra=True)
    file = rows(tmp_path, "a,a,b\n1,2,3\n")
    np.testing.assert_array_equal(read_matching(file, ["a", "a", "b"])[0], [[1, 2, 3]])


def test_options_of_the_format(tmp_path):
    file = rows(tmp_path, "a;b\n1;2\n")
    np.testing.assert_array_equal(read_matching(file, ["b", "a"], delimiter=";")[0], [[2, 1]])
    with pytest.raises(TypeError, match="variables is not an option of the format"):
        read_matching(file, ["a"], variables=[("a", "b")])


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
    np.savez(tmp_path / "n.npz", rows=X[:, ::-1], feature_names=np.array(["c", "b", "a"]))
    found, _ = read_matching(tmp_path / "n.npz", ["a", "b", "c"], variables=("rows", "none"))
    np.testing.assert_array_equal(found, X)
    with pytest.raises(DataFormatError, match="the variable of the features is unknown"):
        read_matching(tmp_path / "n.npz", ["a", "b", "c"])
    with pytest.raises(
        DataFormatError, match="the variables of the features and labels are unknown"
    ):
        read_matching(tmp_path / "n.npz", ["a", "b", "c"], ["cat"], with_labels=True)


def test_labels_that_the_model_does_not_know(toy):
    wanted = {"with_labels": True}
    with pytest.raises(DataFormatError, match="unknown to the model: 'big dog'"):
        match_dataset(toy, toy.feature_names, ["cat"], **wanted)
    _, Y = match_dataset(toy, toy.feature_names, ["cat"], ignore_extra=True, **wanted)
    np.testing.assert_array_equal(Y, toy.Y[:, :1])


class Counted(str):
    """A name that counts how often it is hashed."""

    hashed = 0

    def __hash__(self):
        Counted.hashed += 1
        return str.__hash__(self)


def test_the_work_of_matching_grows_with_the_number_of_columns():
    """Not with its square: 20,000 features took 26 s."""

    def work(count):
        names = tuple(f"x{i}" for i in range(count))
        data = Dataset(sp.csr_array((2, count)), [[1], [0]], names)
        object.__setattr__(data, "feature_names", tuple(map(Counted, names)))
        Counted.hashed = 0
        match_dataset(data, [Counted(name) for name in names[::-1]], ["label0"])
        return Counted.hashed

    assert work(100) > 0
    assert work(800) <= 8.5 * work(100)
