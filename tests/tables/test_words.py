"""What words mean in every table: no and yes, missing values, ids and labels."""

import datetime
import warnings

import numpy as np
import pytest

from imcc._utils.cells import MISSING, YES_NO
from imcc.tables import TableEncoder, TableError, infer_schema, read_table
from imcc.tables._labels import indicator_columns

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


@pytest.mark.parametrize("pair", [*YES_NO, ("0.0", "1.0"), ("NO", "Yes"), ("no", "true")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_words_for_no_and_yes(pair, order):
    table = pa.table({"a": [pair[k] for k in order] * 15})
    assert infer_schema(table)["a"].kind == "yes/no"
    typed = TableEncoder().fit(table).typed_columns(table)
    np.testing.assert_array_equal(typed["a"], list(order) * 15)
    np.testing.assert_array_equal(indicator_columns(table, ["a"])[:, 0], list(order) * 15)


def test_capital_letters_are_no_further_words():
    table = pa.table({"a": ["Yes", "yes", "no", "NO"] * 10})
    typed = TableEncoder().fit(table).typed_columns(table)
    np.testing.assert_array_equal(typed["a"], [1, 1, 0, 0] * 10)


@pytest.mark.parametrize("words", [["yes", "no", "maybe"], ["f", "n", "y"], ["red", "blue"]])
def test_other_words_are_categories(words):
    """Several words with the same meaning may be codes of something else."""
    assert infer_schema({"a": words * 10})["a"].kind == "category"


def test_labels_of_signs_and_of_one_word():
    for cells, expected in ((["-1", "1"], [0, 1]), (["nein"] * 2, [0, 0])):
        np.testing.assert_array_equal(
            indicator_columns(pa.table({"y": cells}), ["y"])[:, 0], expected
        )
    found = indicator_columns(pa.table({"y": [-1, 1, None]}), ["y"], unknown=True)
    np.testing.assert_array_equal(found.ravel(), [0, 1, np.nan])
    for cells in (["-1", "0"], ["-1", "0", "1"], ["yes", "maybe"], ["2", "1"]):
        with pytest.raises(TableError, match="'y' must be 0 or 1"):
            indicator_columns(pa.table({"y": cells}), ["y"])


@pytest.mark.parametrize("word", sorted(MISSING - {""}))
def test_words_for_a_missing_value(word):
    schema = infer_schema({"a": ["1.5", word.upper(), "2.5"], "b": ["x", word, "z"]})
    assert [schema[name].missing for name in "ab"] == [1, 1]


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
def test_ids(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = infer_schema({name: (IDS | NO_IDS)[name]})[name].kind
    assert (kind == "id") == (name in IDS)


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
