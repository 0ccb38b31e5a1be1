import numpy as np
import pytest

from imcc.datasets import (
    DataFormatError,
    Dataset,
    DataWarning,
    read,
    read_csv,
    read_matching,
    write,
)

TEXT = "size,is_cat,colour,is_dog\n1.5,1,red,0\n2,0,green,1\n3,1,red,1\n"


@pytest.fixture
def csv(tmp_path):
    def make(text, name="toy.csv", **options):
        path = tmp_path / name
        path.write_text(text, newline="")
        return read_csv(path, **options)

    return make


def test_labels_by_prefix_list_and_count(csv):
    dataset = csv(TEXT, label_prefix="is_")
    assert dataset.label_names == ("is_cat", "is_dog")
    assert dataset.feature_names == ("size", "colour")
    np.testing.assert_array_equal(dataset.X, [[1.5, 1], [2, 0], [3, 1]])
    np.testing.assert_array_equal(dataset.Y, [[1, 0], [0, 1], [1, 1]])
    assert csv(TEXT, labels=["is_dog", "is_cat"]).label_names == ("is_dog", "is_cat")
    numbers = "a,b,c\n1,0,5\n0,1,6\n"
    assert csv(numbers, labels=2).label_names == ("a", "b")
    with pytest.raises(DataFormatError, match="line 2: the label 'c' is not binary: it is 5"):
        csv(numbers, labels=-1)


def test_tsv_and_delimiter(csv):
    assert csv("a\ty\n1\t0\n", "toy.tsv", labels=["y"]).n_features == 1
    assert csv("a;y\n1;0\n", labels=["y"], delimiter=";").n_features == 1
    with pytest.raises(DataFormatError, match="'y'"):
        csv("a;y\n1;0\n", labels=["y"])
    with pytest.raises(ValueError, match="delimiter must be one character"):
        csv("a;y\n1;0\n", labels=["y"], delimiter=";;")


def test_header(csv):
    dataset = csv("5,1\n6,0\n", labels=-1, header=False)
    assert dataset.feature_names == ("column0",)
    assert dataset.label_names == ("column1",)
    assert dataset.n_rows == 2
    assert csv("5,1\n6,0\n", labels=-1).n_rows == 1


@pytest.mark.parametrize("hole", ["", "?", "NA", "nan", "null", " NA "])
def test_missing_values(csv, hole):
    with pytest.warns(DataWarning, match="1 missing value"):
        dataset = csv(f"a,y\n{hole},1\n2,0\n", labels=["y"])
    np.testing.assert_array_equal(dataset.X, [[np.nan], [2]])


def test_missing_words(csv):
    with pytest.warns(DataWarning, match="1 missing value"):
        dataset = csv("c,y\nred,1\n,0\nblue,1\nred,0\ngreen,1\n", labels=["y"], nominal="ordinal")
    np.testing.assert_array_equal(dataset.X.ravel(), [2, np.nan, 0, 2, 1])


def test_nominal(csv):
    text = "c,y\nred,1\nblue,0\ngreen,1\nred,0\n"
    assert csv(text, labels=["y"]).feature_names == ("c=blue", "c=green", "c=red")
    assert csv(text, labels=["y"], nominal="ordinal").feature_names == ("c",)
    with pytest.raises(DataFormatError, match="neither numeric nor binary"):
        csv(text, labels=["y"], nominal="error")


def test_identifiers_are_dropped(csv):
    rows = "".join(f"row{i},{i},{i % 2}\n" for i in range(8))
    with pytest.warns(DataWarning, match="dropped 'id'"):
        assert csv("id,a,y\n" + rows, labels=["y"]).feature_names == ("a",)


def test_words_for_labels(csv):
    np.testing.assert_array_equal(csv("a,y\n1,True\n2,False\n", labels=["y"]).Y.ravel(), [1, 0])
    with pytest.raises(DataFormatError, match="line 3: the label 'y' is not binary: it is 'maybe'"):
        csv("a,y\n1,yes\n2,maybe\n", labels=["y"])


def test_quotes_and_line_breaks_in_cells(csv):
    dataset = csv('"a, b","c\nd",y\n1,2,0\n3,4,1\n', labels=["y"])
    assert dataset.feature_names == ("a, b", "c\nd")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "the file is empty"),
        ("a,y\n", None, "no rows below its header"),
        ("a,y\n1,0\n1,0,1\n", 3, "too many values: 3 for 2"),
        ("a,y\n1\n", 2, "too few values: 1 for 2"),
        ('a,y\n"1,0\n', 2, "cannot be parsed"),
        ("a,y\n1_0,?\n", 2, "the label 'y' is missing"),
    ],
)
def test_wrong_files(csv, text, line, reason):
    with pytest.raises(DataFormatError, match=reason) as caught:
        csv(text, labels=["y"])
    assert caught.value.line == line


def test_without_a_word_about_labels(csv):
    with pytest.raises(DataFormatError, match="does not say which columns are labels"):
        csv(TEXT)
    with pytest.raises(ValueError, match="not both"):
        csv(TEXT, labels=1, label_prefix="is_")


def test_empty_names_get_some(csv):
    assert csv(",y\n1,0\n", labels=["y"]).feature_names == ("column0",)


def test_an_underscore_makes_no_number(csv):
    with pytest.warns(DataWarning, match=r"line 2: the column 'a' contains numbers, .*'1_0'"):
        table = csv("a,y\n1_0,0\n2,1\n2,1\n", labels=["y"])
    assert table.X.ravel().tolist() == [0, 1, 1]


def test_several_files_are_joined(tmp_path):
    (tmp_path / "d-a.csv").write_text("c,y\nred,1\nblue,0\nred,1\n")
    (tmp_path / "d-b.csv").write_text("c,y\ngreen,1\ngreen,0\nblue,1\n")
    dataset = read([tmp_path / "d-a.csv", tmp_path / "d-b.csv"], labels=["y"])
    assert dataset.feature_names == ("c=blue", "c=green", "c=red")
    np.testing.assert_array_equal(dataset.X.argmax(axis=1), [2, 0, 2, 1, 1, 0])


def test_write_delimiter(tmp_path, toy):
    path = write(toy, tmp_path / "toy.csv", delimiter=";")
    assert path.read_text().startswith("a;b c;it's;cat;big dog\n0.5;0.0;-1.25;1;0\n")
    assert read(path, labels=-2, delimiter=";") == toy
    assert "\t" in write(toy, tmp_path / "toy.tsv").read_text()
    assert "\t" not in write(Dataset([[1.0]], [[1]]), tmp_path / "my.tsv.notes.csv").read_text()


def numbers_with(*odd, n=50):
    values = [str(i / 7) for i in range(n)] + list(odd)
    return "a,b,y\n" + "".join(f'"{v}",{i % 5},{i % 2}\n' for i, v in enumerate(values))


def test_a_cell_that_makes_numbers_words_is_reported(csv):
    """Not 51 indicators without a word."""
    text = numbers_with("1,2", "1,2")
    with pytest.warns(DataWarning, match=r"line 52: the column 'a' contains numbers.*2 row.*'1,2'"):
        table = csv(text, labels=["y"])
    assert table.n_features == 52


def test_a_column_of_numbers_is_not_left_out_as_an_identifier(csv):
    with pytest.raises(DataFormatError, match=r"line 52: .*'a' contains numbers.*'1,2'.*dropped"):
        csv(numbers_with("1,2"), labels=["y"])
    assert csv(numbers_with(), labels=["y"]).n_features == 2, "unique numbers are kept"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_empty_line_in_a_single_column_is_a_row(tmp_path, end):
    (tmp_path / "one.csv").write_bytes(end.join(["", "a", "1", "", "3", "", ""]).encode())
    X, _ = read_matching(tmp_path / "one.csv", ["a"])
    np.testing.assert_array_equal(X.ravel(), [1, np.nan, 3, np.nan])


def test_a_row_of_several_lines_is_named_by_the_first(csv):
    with pytest.raises(DataFormatError, match="line 2: the row has too many"):
        csv('a,y\n"1\n2",0,1\n', labels=["y"])


@pytest.mark.parametrize("space", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2028"])
def test_all_spaces_around_numbers(csv, space):
    """Python's float and str.strip know different ones: it was an IndexError."""
    dataset = csv(f"a,b,y\n0.6{space},1,1\n{space}1,2,{space}0\n", labels=["y"])
    np.testing.assert_array_equal(dataset.X, [[0.6, 1], [1, 2]])
    np.testing.assert_array_equal(dataset.Y, [[1], [0]])


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


def test_the_text_of_booleans(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [True, False], "y": [1, 0]})
    parquet.write_table(table, tmp_path / "train.parquet")
    train = read(tmp_path / "train.parquet", labels=["y"])
    (tmp_path / "new.csv").write_text("a\nTrue\nFALSE\n1\n")
    X, _ = read_matching(tmp_path / "new.csv", train.feature_names, coding=train.coding)
    np.testing.assert_array_equal(X.ravel(), [1, 0, 1])
    (tmp_path / "new.csv").write_text("a\nno\n")
    with pytest.raises(DataFormatError, match="'a' is 'no' here, but the model expects numbers"):
        read_matching(tmp_path / "new.csv", train.feature_names, coding=train.coding)


def test_minus_one_and_zero_are_not_two_labels(csv, tmp_path):
    """As words, both were read as 0."""
    np.testing.assert_array_equal(csv("a,y\n1,-1\n2,+1\n", labels=["y"]).Y.ravel(), [0, 1])
    for values in (["-1", "0"], ["-1", "0", "1"]):
        path = tmp_path / "y.arff"
        header = f"@relation x\n@attribute a real\n@attribute y {{{','.join(values)}}}\n@data\n"
        path.write_text(header + "".join(f"1,{value}\n" for value in values))
        with pytest.raises(DataFormatError, match="the label 'y' is not binary: it is '-1'"):
            read(path, labels=["y"])
