"""The ARFF parser, through the reader that uses it."""

import numpy as np
import pytest

from imcc.datasets import DataFormatError, DataWarning, read

HEADER = "@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n"


@pytest.fixture
def arff(tmp_path):
    def make(text, **options):
        path = tmp_path / "file.arff"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        options.setdefault("labels", ["y"])
        return read(path, **options)

    return make


def test_dense(arff):
    dataset = arff(HEADER + "0.5,1\n-2e-3,0\n")
    assert dataset.feature_names == ("x",)
    np.testing.assert_array_equal(dataset.X, [[0.5], [-0.002]])
    np.testing.assert_array_equal(dataset.Y, [[1], [0]])
    assert not dataset.is_sparse


def test_sparse_stays_sparse(arff):
    dataset = arff(HEADER + "{0 0.5, 1 1}\n{}\n{ 1 1 , 0 2 }\n")
    assert dataset.is_sparse
    np.testing.assert_array_equal(dataset.X.toarray(), [[0.5], [0], [2]])
    np.testing.assert_array_equal(dataset.Y.ravel(), [1, 0, 1])


def test_case_comments_blank_lines_tabs_and_carriage_returns(arff):
    text = (
        "% a comment\r\n@RELATION r\r\n\r\n@Attribute\tx\tREAL\r\n@ATTRIBUTE y{0,1}\r\n@Data\r\n"
        "% another\r\n1,0\r\n\r\n2\t1\r\n"
    )
    np.testing.assert_array_equal(arff(text).X, [[1], [2]])


def test_quoted_names_and_values(arff):
    text = (
        "@relation 'a \\'b\\' c'\n@attribute 'it\\'s, odd' numeric\n"
        "@attribute \"dou ble\" {'a, b', \"c\"}\n@attribute y {0,1}\n@data\n1,'a, b',0\n2,c,1\n"
    )
    dataset = arff(text)
    assert dataset.feature_names == ("it's, odd", "dou ble")
    np.testing.assert_array_equal(dataset.X, [[1, 0], [2, 1]])


def test_escapes(arff):
    text = "@relation r\n@attribute 'a\\tb\\u00e9\\\\' numeric\n@attribute y {0,1}\n@data\n1,0\n"
    assert arff(text).feature_names == ("a\tbé\\",)


@pytest.mark.parametrize(
    ("values", "cells", "expected"),
    [
        ("{0,1}", "0 1", [0, 1]),
        ("{1,0}", "0 1", [0, 1]),
        ("{YES,NO}", "YES NO", [1, 0]),
        ("{no,yes}", "yes no", [1, 0]),
        ("{True, False}", "True False", [1, 0]),
        ("{small,large}", "small large", [0, 1]),
        ("{1}", "1 1", [1, 1]),
    ],
)
def test_binary_nominal_attributes_become_zero_and_one(arff, values, cells, expected):
    header = f"@relation r\n@attribute x {values}\n@attribute y {{0,1}}\n@data\n"
    first, second = cells.split()
    dense = arff(header + f"{first},0\n{second},1\n")
    np.testing.assert_array_equal(dense.X.ravel(), expected)
    assert dense.feature_names == ("x",)
    sparse = arff(header + f"{{0 {first}}}\n{{0 {second},1 1}}\n")
    np.testing.assert_array_equal(sparse.X.toarray().ravel(), expected)


def test_what_a_sparse_row_leaves_out_is_the_first_value(arff):
    header = "@relation r\n@attribute x {YES,NO}\n@attribute z {a,b,c}\n@attribute y {0,1}\n@data\n"
    dataset = arff(header + "{0 NO}\n{1 c,2 1}\n")
    assert dataset.is_sparse
    assert dataset.feature_names == ("x", "z=a", "z=b", "z=c")
    np.testing.assert_array_equal(dataset.X.toarray(), [[0, 1, 0, 0], [1, 0, 0, 1]])


def test_flipped_columns_of_a_sparse_file_stay_in_their_places(arff):
    kinds = ["{YES,NO}", "numeric", "{0,1}", "{true,false}", "numeric"]
    header = "".join(f"@attribute a{i} {kind}\n" for i, kind in enumerate(kinds))
    text = f"@relation r\n{header}@attribute y {{0,1}}\n@data\n{{0 NO,1 5}}\n{{2 1,3 false,4 7}}\n"
    dataset = arff(text)
    assert dataset.is_sparse
    np.testing.assert_array_equal(dataset.X.toarray(), [[0, 5, 0, 1, 0], [1, 0, 1, 0, 7]])


COLOURS = (
    "@relation r\n@attribute c {red,green,blue}\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
    "red,1,0\nblue,2,1\n?,3,0\nred,4,1\n"
)


@pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning")
def test_nominal(arff):
    dataset = arff(COLOURS)
    assert dataset.feature_names == ("c=red", "c=green", "c=blue", "x")
    nan = np.nan
    expected = [[1, 0, 0, 1], [0, 0, 1, 2], [nan, nan, nan, 3], [1, 0, 0, 4]]
    np.testing.assert_array_equal(dataset.X, expected)
    assert arff(COLOURS, nominal="onehot") == dataset
    dataset = arff(COLOURS, nominal="ordinal")
    assert dataset.feature_names == ("c", "x")
    np.testing.assert_array_equal(dataset.X[:, 0], [0, 2, np.nan, 0])
    with pytest.raises(ValueError, match="nominal"):
        arff(COLOURS, nominal="maybe")


def test_missing_values_become_nan_and_say_what_to_do(arff):
    with pytest.warns(DataWarning, match=r"missing value.*'x'"):
        dataset = arff(HEADER + "?,1\n2,0\n")
    np.testing.assert_array_equal(dataset.X, [[np.nan], [2]])
    with pytest.warns(DataWarning, match="missing value"):
        sparse = arff(HEADER + "{0 ?,1 1}\n{0 2}\n")
    assert sparse.is_sparse
    assert sparse == dataset


@pytest.mark.parametrize("kind", ["string", "date 'yyyy'", "{p1,p2,p3,p4,p5,p6}"])
def test_text_and_identifiers_are_dropped_with_a_warning(arff, kind):
    rows = "".join(f"p{i},{i},{i % 2}\n" for i in range(1, 7))
    text = f"@relation r\n@attribute id {kind}\n@attribute x real\n@attribute y {{0,1}}\n@data\n"
    with pytest.warns(DataWarning, match="dropped 'id'") as caught:
        dataset = arff(text + rows)
    assert dataset.feature_names == ("x",)
    assert dataset.coding.left_out == ("id",)
    assert caught[0].filename == __file__, "the warning points at the caller"


def test_a_few_distinct_values_are_no_identifier(arff):
    text = "@relation r\n@attribute c {a,b,c}\n@attribute y {0,1}\n@data\na,0\nb,1\nc,0\n"
    np.testing.assert_array_equal(arff(text).X, np.eye(3))


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("", None, "empty"),
        ("\n  \n", None, "empty"),
        ("@relation r\n@attribute x numeric\n", None, "@data"),
        (HEADER, None, "@data"),
        ("@relation r\n@data\n1\n", 2, "@attribute"),
        ("@relation r\n@attribute x\n@data\n1\n", 2, "@attribute x"),
        ("@relation r\n@attribute x wrong\n@data\n1\n", 2, "'wrong'"),
        ("@relation r\n@attribute x string\n@attribute y string\n@data\na,b\n", 5, "'y'"),
        ("@relation r\n@attribute x {a,b\n@data\na\n", 2, "'x'"),
        ("@relation r\n@attribute x {a,a}\n@data\na\n", 2, "'a'"),
        ("x,y\n1,0\n", 1, "'x,y'"),
        (HEADER + "1,0\n1,0,1\n1,0\n", 6, "3 values for 2"),
        (HEADER + "1,0\n1\n1,0\n", 6, "1 values for 2"),
        (HEADER + "1,0\nabc,1\n", 6, "'x': 'abc'"),
        (HEADER + "1_0,1\n", 5, "'1_0'"),
        (HEADER + "1,2\n", 5, "'y': '2'"),
        (HEADER + "1,?\n", 5, "'y'"),
        (HEADER + "'1,0\n", 5, "quote"),
        (HEADER + "{0 1\n", 5, "'}'"),
        (HEADER + "{0 1,\n{0 1}\n", 5, "'}'"),
        (HEADER + "{0 1, 0 2}\n", 5, "twice: '0'"),
        (HEADER + "{0 1}\n{5 1}\n", 6, "'5'"),
        (HEADER + "{0 1}\n{-1 1}\n", 6, "'-1'"),
        (HEADER + "{0 1}\n{1_0 1}\n", 6, "'1_0'"),
        (HEADER + "{0 1 1}\n", 5, "3 parts"),
        (HEADER + "{0 1}\n{1 2}\n", 6, "'2'"),
        (HEADER + "{0 1}\n{1 0.5}\n", 6, "'0.5'"),
        (HEADER + "{0 1}\n1,0\n", 6, "dense"),
        (HEADER + "1,0\n{0 1}\n", 6, "sparse"),
        (HEADER + "{0 1}, {3}\n", 5, "3 parts"),
    ],
)
def test_errors_name_the_file_the_line_and_the_cell(arff, text, line, named):
    with pytest.raises(DataFormatError, match=r"file\.arff") as caught:
        arff(text)
    assert caught.value.line == line
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "rows", "named"),
    [
        ("{a,b,c}", "1,a\n", "line 5: .*'tag' .*'a'"),
        ("real", "1,1\n1,0.5\n", r"line 6: .*'tag' .*0\.5"),
        ("{-1,0,1}", "1,1\n1,0\n1,-1\n", "'tag'"),
    ],
)
def test_a_label_that_is_not_binary_is_named_with_its_line(arff, kind, rows, named):
    with pytest.raises(DataFormatError, match=named):
        arff(
            f"@relation r\n@attribute x real\n@attribute tag {kind}\n@data\n{rows}", labels=["tag"]
        )


@pytest.mark.parametrize("values", ["{-1,1}", "{0,1}", "{no,yes}", "{false,true}", "numeric"])
def test_labels_of_two_values(arff, values):
    off, on = ("-1", "1") if values == "numeric" else values.strip("{}").split(",")
    text = f"@relation r\n@attribute x numeric\n@attribute y {values}\n@data\n1,{on}\n1,{off}\n"
    np.testing.assert_array_equal(arff(text).Y.ravel(), [1, 0])


def test_features_of_words_need_distinct_names(arff):
    header = "@relation r\n@attribute a {b=c,d,e}\n@attribute a=b {c,f,g}\n@attribute y {0,1}\n"
    with pytest.raises(DataFormatError, match="'a=b=c'"):
        arff(header + "@data\nd,f,0\nd,g,1\n")


def test_nothing_but_labels_is_refused(arff):
    text = "@relation r\n@attribute x {0,1}\n@attribute y {0,1}\n@data\n1,0\n"
    with pytest.raises(DataFormatError, match="no features"):
        arff(text, labels=["x", "y"])


def test_a_row_of_many_blanks_and_an_open_quote_takes_no_time(arff):
    with pytest.raises(DataFormatError, match="quote"):
        arff(HEADER + " " * 200_000 + "'" + "\\" * 100_000 + "\n")


def test_one_hot_that_would_fill_the_memory_is_refused(arff):
    values = ",".join(f"v{i}" for i in range(60_000))
    rows = "v0,1\n" * 10_000
    text = f"@relation r\n@attribute c {{{values}}}\n@attribute y {{0,1}}\n@data\n" + rows
    with pytest.raises(DataFormatError, match=r"'c'.*nominal='ordinal'"):
        arff(text)
    assert arff(text, nominal="ordinal").n_features == 1


def test_encoding(tmp_path):
    path = tmp_path / "latin.arff"
    path.write_bytes(HEADER.replace("x numeric", "größe numeric").encode("latin-1") + b"1,0\n")
    with pytest.warns(DataWarning, match=r"line 2: not UTF-8; read as Latin-1"):
        assert read(path, labels=["y"]).feature_names == ("größe",)
    assert read(path, labels=["y"], encoding="latin-1").feature_names == ("größe",)
    assert read(path, labels=["y"], encoding="cp437").feature_names != ("größe",)
    with pytest.raises(DataFormatError, match="not utf-8"):
        read(path, labels=["y"], encoding="utf-8")
    with pytest.raises(ValueError, match="encoding"):
        read(path, labels=["y"], encoding="klingon")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "marked.arff"
    path.write_bytes((HEADER.replace("x ", "größe ") + "1,0\n").encode("utf-8-sig"))
    assert read(path, labels=["y"]).feature_names == ("größe",)
