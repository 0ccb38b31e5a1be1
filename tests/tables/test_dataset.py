"""Tables as arrays: read_dataset, and files for models that were fitted to arrays."""

import datetime
import warnings

import numpy as np
import pytest

from imcc.datasets import DataFormatError, Dataset, DataWarning, read, write
from imcc.datasets._match import read_matching
from imcc.tables import KnownColumns, TableError, read_dataset, read_schema, write_schema
from imcc.tables._schema import Column, Schema

pa = pytest.importorskip("pyarrow")

TEXT = "size,is_cat,colour,is_dog\n1.5,1,red,0\n2,0,green,1\n3,1,red,1\n"


@pytest.fixture
def file(tmp_path):
    def make(text, name="toy.csv"):
        path = tmp_path / name
        path.write_text(text, newline="", encoding="utf-8")
        return path

    return make


def test_labels_by_prefix_names_and_count(file):
    dataset = read_dataset(file(TEXT), label_prefix="is_")
    assert dataset.label_names == ("is_cat", "is_dog")
    assert dataset.feature_names == ("size", "colour")
    np.testing.assert_array_equal(dataset.X, [[1.5, 1], [2, 0], [3, 1]])
    np.testing.assert_array_equal(dataset.Y, [[1, 0], [0, 1], [1, 1]])
    assert read_dataset(file(TEXT), ["is_dog", "is_cat"]).label_names == ("is_dog", "is_cat")
    numbers = file("a,b,c\n1,0,5\n0,1,6\n")
    assert read_dataset(numbers, 2).label_names == ("a", "b")
    with pytest.raises(DataFormatError, match=r"line 2: .*'c' must be 0 or 1"):
        read_dataset(numbers, -1)
    with pytest.raises(DataFormatError, match="does not say which columns are labels"):
        read_dataset(numbers)
    with pytest.raises(ValueError, match="labels and label_prefix"):
        read_dataset(numbers, 1, label_prefix="is_")
    with pytest.raises(ValueError, match="tags"):
        read_dataset(numbers, 1, tags="b")


def test_tags(file):
    dataset = read_dataset(file("a;t\n1,5;x|y\n2,5;\n3;y\n"), tags="t")
    assert dataset.label_names == ("x", "y")
    np.testing.assert_array_equal(dataset.X.ravel(), [1.5, 2.5, 3])
    np.testing.assert_array_equal(dataset.Y, [[1, 1], [0, 0], [0, 1]])


def test_read_of_datasets_gives_the_same(file, tmp_path):
    path = file(TEXT)
    assert read(path, labels=["is_cat"]) == read_dataset(path, ["is_cat"])
    assert read(file(TEXT, "toy.txt"), labels=["is_cat"], format="csv").name == "toy"
    with pytest.raises(TypeError, match="nominal is not an option"):
        read(path, labels=["is_cat"], nominal="ordinal")
    (tmp_path / "d-b.csv").write_text("is_cat,size,colour,is_dog\n1,7,blue,1\n")
    both = read([path, tmp_path / "d-b.csv"], label_prefix="is_")
    assert both.feature_names == ("size", "colour=blue", "colour=green", "colour=red")
    np.testing.assert_array_equal(both.X[-1], [7, 1, 0, 0])


def test_what_a_column_becomes():
    frame = {
        "number": [1.5, None, 3.0, 4.0],
        "text": ["1,5", "2,5", "n/a", "3"],
        "flag": [True, False, None, True],
        "words": ["no", "Yes", "YES", "?"],
        "two": ["b", "a", "b", None],
        "more": ["x", "y", "z", "x"],
        "same": [7, 7, 7, 7],
        "same word": ["on", "on", "on", "on"],
        "none": [None] * 4,
        "y": [0, 1, 1, 0],
    }
    with pytest.warns(DataWarning, match="missing value"):
        dataset = read_dataset(frame, ["y"], name="toy")
    nan = np.nan
    expected = {
        "number": [1.5, nan, 3, 4],
        "text": [1.5, 2.5, nan, 3],
        "flag": [1, 0, nan, 1],
        "words": [0, 1, 1, nan],
        "two": [1, 0, 1, nan],
        "more=x": [1, 0, 0, 1],
        "more=y": [0, 1, 0, 0],
        "more=z": [0, 0, 1, 0],
        "same": [7] * 4,
        "same word": [1] * 4,
        "none": [nan] * 4,
    }
    assert dataset.feature_names == tuple(expected)
    np.testing.assert_array_equal(dataset.X, np.column_stack(list(expected.values())))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("text", [f"some words about {i} things" for i in range(30)]),
        ("date", [datetime.date(2021, 1, 1 + i) for i in range(30)]),
    ],
)
def test_columns_that_are_no_numbers(name, values):
    frame = {"a": np.arange(30) / 7, name: values, "y": [0, 1] * 15}
    with pytest.raises(TableError, match=rf"'{name}' \({name}\).*drop=.*TableClassifier"):
        read_dataset(frame, ["y"])
    dataset = read_dataset(frame, ["y"], drop=[name])
    assert dataset.feature_names == ("a",)
    assert dataset.coding.left_out == (name,)


def test_what_becomes_of_ids_is_said():
    """Words are left out, as in tables; numbers are used, as a year may be."""
    frame = {"row": range(30), "key": [f"T-{i:03}" for i in range(30)], "y": [0, 1] * 15}
    with (
        pytest.warns(UserWarning, match="'row'.*used as a number"),
        pytest.warns(UserWarning, match="'key'.*left out"),
    ):
        dataset = read_dataset(frame, ["y"])
    np.testing.assert_array_equal(dataset.X.ravel(), range(30))
    assert dataset.coding.left_out == ("key",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_dataset(frame, ["y"], kinds={"row": "number"}, drop=["key"])


def test_dates_that_are_said_to_be_ids_are_left_out():
    days = np.array(["2021-05-31", "2021-06-01"], "datetime64[D]")
    with pytest.warns(UserWarning, match="'day'.*left out"):
        dataset = read_dataset({"day": days, "a": [1, 2], "y": [0, 1]}, ["y"], kinds={"day": "id"})
    assert dataset.feature_names == ("a",)


@pytest.mark.filterwarnings("ignore:the column 'key' seems to be an id")
def test_a_table_of_ids_only_has_no_features():
    frame = {"key": [f"T-{i:03}" for i in range(30)], "y": [0, 1] * 15}
    with pytest.raises(TableError, match="features"):
        read_dataset(frame, ["y"])


def test_data_sets_are_the_same_after_writing_and_reading(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), (rng.random((30, 2)) < 0.5).astype(int)
    X[:, 0] = np.arange(30)
    with pytest.warns(UserWarning, match="'x0'"):
        found = read(write(Dataset(X, Y), tmp_path / "a.csv"), labels=-2)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        write(Dataset(X, Y), tmp_path / "b.csv")


def test_infinite_values_are_refused(file):
    with pytest.raises(DataFormatError, match=r"'a'.*'-inf'"):
        read_dataset(file("a,b,y\n-inf,2,0\n3,4,1\n"), ["y"])


def test_cells_of_the_wrong_kind_are_named_with_their_line(file):
    rows = "".join(f'"{i / 7}",{i % 2}\n' for i in range(50))
    with pytest.raises(DataFormatError, match=r"line 52: .*'a'.*'12 kg'"):
        read_dataset(file("a,y\n" + rows + "12 kg,1\n"), ["y"])
    with pytest.raises(DataFormatError, match=r"line 3: .*'maybe'"):
        read_dataset(file("a,y\n1,yes\n2,maybe\n"), ["y"])
    with pytest.raises(DataFormatError, match=r"line 2: .*'y' has missing values"):
        read_dataset(file("a,y\n1,?\n2,1\n"), ["y"])


def test_a_schema_file(file, tmp_path):
    columns = (Column("a", "number"), Column("b", "category"), Column("y", "label"))
    schema = write_schema(
        Schema(columns, ("none of it",)),
        tmp_path / "schema.toml",
        KnownColumns(drop=("c",), reading={"delimiter": ";", "encoding": "latin-1"}),
    )
    path = tmp_path / "x.csv"
    path.write_text("a;b;c;y\n1;1;ä;0\n2;2;ö;1\nnone of it;3;ü;1\n", encoding="latin-1")
    with pytest.warns(DataWarning, match="missing value"):
        dataset = read_dataset(path, schema=schema)
    assert dataset.feature_names == ("a", "b=1", "b=2", "b=3")
    assert dataset.label_names == ("y",)


@pytest.mark.parametrize(
    "text", ["missing = " + "[" * 100_000, "[columns]\n" + ".".join("a" * 3000) + " = 1"]
)
def test_a_schema_that_is_nested_too_deeply(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=r"schema\.toml: this is not a schema"):
        read_schema(path)


def test_one_hot_encoding_is_limited_by_the_size_of_the_file(file):
    words = "".join(f"w{i},{j}\n" for i in range(20_000) for j in (0, 1))
    with pytest.raises(DataFormatError, match="too many for a file of this size"):
        read_dataset(file("x,y\n" + words), ["y"], kinds={"x": "category"})


# Files for models that were fitted to arrays.

TABLE = """id,size,wet,hue,kind,happy,sad
a1,1,yes,red,x,1,0
a2,2,no,blue,y,0,1
a3,3,no,green,x,1,1
a4,4,yes,red,x,0,0
"""


@pytest.fixture
def trained(file):
    return read_dataset(file(TABLE, "train.csv"), ["happy", "sad"], drop=["id"])


def match(data, path, **options):
    return read_matching(path, data.feature_names, data.label_names, coding=data.coding, **options)


def test_the_training_file_gives_the_training_rows(trained, tmp_path):
    X, Y = match(trained, tmp_path / "train.csv", with_labels=True)
    np.testing.assert_array_equal(X, trained.X)
    np.testing.assert_array_equal(Y, trained.Y)
    assert match(trained, tmp_path / "train.csv")[1] is None


def test_words_mean_what_they_meant_in_training(trained, file):
    """Also in a file that has few of them, in another order."""
    assert trained.feature_names == ("size", "wet", "hue=blue", "hue=green", "hue=red", "kind")
    X, _ = match(trained, file("kind,hue,size,wet\ny,red,4,yes\n"))
    np.testing.assert_array_equal(X, [[4, 1, 0, 0, 1, 1]])
    X, _ = match(trained, file("kind,hue,size,wet\nx,blue,4,No\n"))
    np.testing.assert_array_equal(X, [[4, 0, 1, 0, 0, 0]])
    X, _ = match(trained, file("kind,hue,size,wet\nx,?,?,1\n"))
    np.testing.assert_array_equal(X, [[np.nan, 1, np.nan, np.nan, np.nan, 0]])
    X, _ = match(trained, file("kind,hue,size,wet\nx,red,12 %,off\n"))
    np.testing.assert_array_equal(X[0, :2], [12, 0])
    with pytest.warns(DataWarning, match="did not occur in the training data: 'pink'"):
        X, _ = match(trained, file("size,wet,hue,kind\n1,yes,pink,x\n"))
    np.testing.assert_array_equal(X, [[1, 1, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,wet,hue\n1,yes,red\n", r"1 column\(s\) that the model needs are missing: 'kind'"),
        ("size,wet,hue,kind,more\n1,yes,red,x,3\n", r"1 column.*unknown.*'more'.*ignore_extra"),
        ("size,wet,hue,kind\nbig,no,red,x\n", "line 2: .*'size'.*'big' is not a number"),
        ("size,wet,hue,kind\n1,no,red,z\n", "line 2: .*'kind' is 'z' here"),
        ('size,wet,hue,kind\n"1,234",no,red,x\n', "'size' holds numbers such as '1,234'"),
        ("size,wet,hue,kind\n", "no rows"),
    ],
)
def test_what_does_not_match(trained, file, text, message):
    with pytest.raises(DataFormatError, match=message):
        match(trained, file(text))


def test_labels_and_other_columns(trained, file):
    path = file("sad,kind,hue,size,wet,happy,more\n1,y,red,4,yes,0,9\n")
    X, Y = match(trained, path, with_labels=True, ignore_extra=True)
    np.testing.assert_array_equal(X, [[4, 1, 0, 0, 1, 1]])
    assert Y.tolist() == [[0, 1]]
    with pytest.raises(DataFormatError, match="labels are not in the data: 'sad'"):
        match(trained, file("kind,hue,size,wet,happy\ny,red,4,yes,0\n"), with_labels=True)


def test_a_word_of_the_training_data_is_not_missing(tmp_path):
    """ARFF files declare their words, and "none" may be one of them."""
    (tmp_path / "train.arff").write_text(
        "@relation x\n@attribute pain {none,mild,severe}\n@attribute new {-,yes}\n"
        "@attribute y {0,1}\n@data\nnone,-,0\nmild,yes,1\nsevere,-,1\n"
    )
    train = read(tmp_path / "train.arff", labels=["y"])
    (tmp_path / "new.csv").write_text("pain,new\nnone,-\nNA,yes\n")
    X, _ = read_matching(tmp_path / "new.csv", train.feature_names, coding=train.coding)
    np.testing.assert_array_equal(X, [[1, 0, 0, 0], [np.nan, np.nan, np.nan, 1]])


def test_types_of_parquet_for_a_model_of_arrays(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    data = read_dataset({"a": [True, False], "g": ["1", "2"], "h": ["u", "v"], "y": [1, 0]}, ["y"])
    new = pa.table({"a": [True, None], "g": [2, 1], "h": ["v", "u"]})
    parquet.write_table(new, tmp_path / "new.parquet")
    X, _ = match(data, tmp_path / "new.parquet")
    np.testing.assert_array_equal(X, [[1, 2, 1], [np.nan, 1, 0]])


def test_a_written_data_set_is_read_again(tmp_path):
    toy = Dataset([[0.5, 0, -1.25], [0, 0, 3e-7], [1, 2, 0]], [[1, 0], [0, 0], [1, 1]], name="toy")
    path = write(toy, tmp_path / "toy.csv")
    assert path.read_text().startswith("x0,x1,x2,label0,label1\n0.5,0.0,-1.25,1,0\n")
    assert read(path, labels=-2) == toy
    assert "\t" in write(toy, tmp_path / "toy.tsv").read_text()
