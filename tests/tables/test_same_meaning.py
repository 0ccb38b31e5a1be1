"""A CSV file means the same to ``imcc.datasets.read`` and to tables: words, ids, labels."""

import datetime
import warnings

import numpy as np
import pytest

from imcc._utils.cells import MISSING, YES_NO
from imcc.datasets import DataFormatError, read, read_matching
from imcc.tables import TableEncoder, TableError, indicator_columns, infer_schema, read_table

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


@pytest.fixture
def both(tmp_path):
    """Write columns to a file, and return its data set and its table."""

    def make(**columns):
        path = tmp_path / "x.csv"
        pandas.DataFrame(columns).to_csv(path, index=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(path, labels=["y"]), read_table(path)

    return make


def labels(n):
    return [i % 2 for i in range(n)]


@pytest.mark.parametrize("pair", [*YES_NO, ("0.0", "1.0"), ("NO", "Yes"), ("no", "true")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_words_for_no_and_yes(both, pair, order):
    cells = [pair[k] for k in order] * 15
    dataset, table = both(a=cells, b=np.arange(30) / 7, y=cells)
    expected = list(order) * 15
    assert infer_schema(table)["a"].kind == "yes/no"
    typed = TableEncoder(drop=["y"]).fit(table).typed_columns(table)
    np.testing.assert_array_equal(typed["a"], expected)
    np.testing.assert_array_equal(dataset.X[:, dataset.feature_names.index("a")], expected)
    np.testing.assert_array_equal(dataset.Y[:, 0], expected)
    np.testing.assert_array_equal(indicator_columns(table, ["y"])[:, 0], expected)


def test_capital_letters_are_no_further_words(both):
    cells = ["Yes", "yes", "no", "NO"] * 10
    dataset, table = both(a=cells, y=cells)
    expected = [1, 1, 0, 0] * 10
    np.testing.assert_array_equal(TableEncoder().fit(table).typed_columns(table)["a"], expected)
    np.testing.assert_array_equal(dataset.X.ravel(), expected)
    np.testing.assert_array_equal(dataset.Y.ravel(), expected)
    np.testing.assert_array_equal(indicator_columns(table, ["y"]).ravel(), expected)


@pytest.mark.parametrize("words", [["yes", "no", "maybe"], ["f", "n", "y"], ["red", "blue"]])
def test_other_words_are_categories(both, words):
    """Several words with the same meaning may be codes of something else."""
    dataset, table = both(a=words * 10, b=np.arange(len(words) * 10) / 7, y=labels(10 * len(words)))
    assert infer_schema(table)["a"].kind == "category"
    indicators = [name for name in dataset.feature_names if name.startswith("a=")]
    assert len(indicators) == (len(words) if len(words) > 2 else 0)


@pytest.mark.parametrize(("cells", "expected"), [(["-1", "1"], [0, 1]), (["nein"] * 2, [0, 0])])
def test_labels_of_a_sign_or_of_one_word(both, cells, expected):
    dataset, table = both(a=[1.5, 2.5], y=cells)
    np.testing.assert_array_equal(dataset.Y.ravel(), expected)
    np.testing.assert_array_equal(indicator_columns(table, ["y"]).ravel(), expected)
    typed = pa.table({"y": [-1, 1, None]})
    found = indicator_columns(typed, ["y"], unknown=True).ravel()
    np.testing.assert_array_equal(found, [0, 1, np.nan])


@pytest.mark.parametrize("cells", [["-1", "0"], ["-1", "0", "1"], ["yes", "maybe"], ["2", "1"]])
def test_other_labels_are_refused_by_both(both, cells):
    with pytest.raises(DataFormatError, match="'y' is not binary"):
        both(a=np.arange(len(cells)) / 7, y=cells)
    with pytest.raises(TableError, match="'y' must be 0 or 1"):
        indicator_columns(pa.table({"y": cells}), ["y"])


@pytest.mark.parametrize("word", sorted(MISSING - {""}))
def test_words_for_a_missing_value(both, word):
    dataset, table = both(a=["1.5", word.upper(), "2.5"], b=["x", word, "z"], y=[0, 1, 0])
    assert [infer_schema(table)[name].missing for name in "ab"] == [1, 1]
    assert dataset.feature_names == ("a", "b")
    assert np.isnan(dataset.X).tolist() == [[False, False], [True, True], [False, False]]


IDS = {
    "consecutive": [*range(100, 140)],
    "row_id": [i * i for i in range(40)],
    "code": [f"T-{i:04}" for i in range(40)],
    "repeated": [f"T-{max(i, 1):04}" for i in range(40)],
}
NO_IDS = {
    "squares": [i * i for i in range(40)],
    "holes_id": [None, *range(39)],
    "half_key": [i / 2 for i in range(40)],
    "group": [f"T-{i // 2:04}" for i in range(40)],
}


@pytest.mark.parametrize("name", [*IDS, *NO_IDS])
def test_ids(both, name):
    dataset, table = both(**{name: (IDS | NO_IDS)[name]}, b=labels(40), y=labels(40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = infer_schema(table)[name].kind
    assert (kind == "id") == (name in IDS)
    left_out = () if dataset.coding is None else dataset.coding.left_out
    assert left_out == ((name,) if name in IDS else ())


def test_ids_of_a_file_that_says_what_its_columns_are(tmp_path):
    """A data set that was written has no ids, and is read again as it was."""
    from imcc.datasets import Dataset, write

    dataset = Dataset(np.arange(40.0)[:, None], np.array(labels(40))[:, None], ("row_id",))
    assert read(write(dataset, tmp_path / "x.parquet")) == dataset
    pandas.DataFrame({"row_id": range(40), "b": 1.5, "y": labels(40)}).to_parquet(
        tmp_path / "y.parquet"
    )
    with pytest.warns(UserWarning, match="dropped 'row_id'"):
        assert read(tmp_path / "y.parquet", labels=["y"]).feature_names == ("b",)


@pytest.mark.parametrize("fitted", [[True, False, None], [1, 0, None], [1.0, 0.0, None]])
@pytest.mark.parametrize("words", [*YES_NO, ("False", "True"), ("0.0", "1.0")])
def test_the_text_of_booleans_and_of_0_and_1(fitted, words):
    """A model fitted on booleans refused the True and False of a CSV file."""
    encoder = TableEncoder().fit({"a": fitted * 5})
    found = encoder.typed_columns({"a": [words[1], words[0], ""]})["a"]
    np.testing.assert_array_equal(found, [1, 0, np.nan])
    with pytest.raises(TableError, match="'maybe' is neither"):
        encoder.typed_columns({"a": ["maybe"]})


def test_a_table_of_parquet_and_then_of_csv(tmp_path):
    """Each kind of column, as pandas writes it to both."""
    frame = pandas.DataFrame(
        {
            "flag": [True, False] * 10,
            "day": [datetime.date(2021, 1, 1 + i) for i in range(20)],
            "time": pandas.date_range("2021-01-01 10:00", periods=20, freq="7h"),
            "zoned": pandas.date_range("2021-01-01 10:00", periods=20, freq="7h", tz="UTC"),
            "number": np.arange(20) / 7,
            "count": np.arange(20) % 7,
            "word": ["red", "green", "blue", "red"] * 5,
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv", index=False)
    tables = [read_table(tmp_path / "x.parquet"), read_table(tmp_path / "x.csv")]
    kinds = [column.kind for column in infer_schema(tables[0])]
    assert kinds == ["yes/no", "date", "date", "date", "number", "number", "category"]
    for fitted in tables:
        encoder = TableEncoder().fit(fitted)
        first, second = (encoder.transform(table) for table in tables)
        np.testing.assert_allclose(first, second)


def test_a_model_of_one_column_has_a_prediction_per_line(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1.5\n\n2.5\n")
    encoder = TableEncoder().fit({"a": [0.5, 1.5, 2.5] * 5})
    assert encoder.transform(read_table(tmp_path / "x.csv")).shape[0] == 3
    assert read_matching(tmp_path / "x.csv", ["a"])[0].shape[0] == 3
