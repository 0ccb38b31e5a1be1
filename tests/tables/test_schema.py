"""What the columns of a table are: the rules, what is refused, what can be overruled."""

import datetime
import warnings

import numpy as np
import pytest

from imcc._utils.cells import MISSING, YES_NO
from imcc.datasets import DataWarning
from imcc.tables import TableEncoder, TableError, infer_schema, read_table
from imcc.tables._columns import as_table
from imcc.tables._labels import indicator_columns
from imcc.tables._typed import typed_arrays

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

N = 60
RNG = np.random.default_rng(0)
WORDS = np.array(["red", "green", "blue", "apple", "car", "tree", "house", "river", "stone"])
SENTENCES = [" ".join(RNG.choice(WORDS, 5)) for _ in range(N)]


def kind_of(values, name="x", **options):
    return infer_schema({name: values}, **options)[name].kind


def read_as(table, later=None):
    """Return the schema of a table, and it or a later one as that schema reads it."""
    schema = infer_schema(table)
    return schema, typed_arrays(as_table({**table, **(later or {})}), schema)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2.5, None, 4.0], "number"),
        (["1.5", " 2 ", "+3e2", "-.5", ""], "number"),
        (list(RNG.normal(size=N)), "number"),  # all different, and no id
        ([f"{v:.3f}" for v in RNG.normal(size=N)], "number"),
        (list(RNG.permutation(1000)[:N] * 7), "number"),
        (list(range(N)), "id"),
        ([str(i + 500) for i in range(N)], "id"),
        ([f"A-{i:04d}" for i in range(N)], "id"),
        ([f"T-{i // 2:04}" for i in range(N)], "category"),
        (list(range(5)), "number"),  # too few to say
        ([None, *range(39)], "number"),  # an id is never missing
        (["yes", "no", "Yes", None], "yes/no"),
        ([0, 1, 1, 0], "yes/no"),
        ([True, False, None], "yes/no"),
        # Several words with the same meaning may be codes of something else.
        (["yes", "no", "maybe"] * 10, "category"),
        (["f", "n", "y"] * 10, "category"),
        (["Ulm", "Bonn", "Ulm", "Berlin"], "category"),
        (["New York", "Los Angeles", "New York", "Los Angeles"] * 5, "category"),
        (["1", "2", "a", "b"] * 5, "category"),
        (SENTENCES, "text"),
        (["2024-01-31", "2023-12-01", None], "date"),
        (["13/01/2024", "01/12/2023"], "date"),
        ([datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)], "date"),
        ([7, 7, 7], "constant"),
        ([None, None], "constant"),
        (["n/a", "-", ""], "constant"),
        (["x", None, "x"], "category"),  # present or not
    ],
)
def test_rules(values, kind):
    assert kind_of(values) == kind


def test_a_name_makes_numbers_an_id():
    values = list(RNG.permutation(1000)[:N] * 7)
    assert kind_of(values, "customer_id") == "id"
    assert kind_of(values, "paid") == "number"
    assert kind_of([i / 2 for i in range(N)], "half_key") == "number"


@pytest.mark.parametrize("pair", [*YES_NO, ("0.0", "1.0"), ("NO", "Yes"), ("no", "true")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_words_for_no_and_yes(pair, order):
    words = {"a": [pair[k] for k in order] * 15}
    schema, typed = read_as(words)
    assert schema["a"].kind == "yes/no"
    np.testing.assert_array_equal(typed["a"], list(order) * 15)
    np.testing.assert_array_equal(indicator_columns(pa.table(words), ["a"])[:, 0], list(order) * 15)
    # After a table of booleans or of 0 and 1, a later one may have any of these words.
    for fitted in ([True, False, None], [1, 0, None], [1.0, 0.0, None]):
        _, later = read_as({"a": fitted * 5}, {"a": [pair[1], pair[0].upper(), ""]})
        np.testing.assert_array_equal(later["a"], [1, 0, np.nan])
        with pytest.raises(TableError, match="'maybe'"):
            read_as({"a": fitted * 5}, {"a": ["maybe"]})


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["-1", "1"], [0, 1]),
        (["nein", "nein"], [0, 0]),
        ([-1, 1, None], [0, 1, np.nan]),
        (["yes", "", "no", "n/a"], [1, np.nan, 0, np.nan]),
        *((wrong, None) for wrong in (["-1", "0"], [-1, 0, 1], ["yes", "maybe"], ["2", "1"])),
    ],
)
def test_cells_of_a_label_column(cells, expected):
    table = pa.table({"y": cells})
    if expected is None:
        with pytest.raises(TableError, match="'y'"):
            indicator_columns(table, ["y"])
    else:
        found = indicator_columns(table, ["y"], unknown=True)
        np.testing.assert_array_equal(found[:, 0], expected)
        assert (found.dtype == np.int64) == (not np.isnan(expected).any())


def test_missing_values():
    column = infer_schema({"x": ["1.5", "n/a", "-", "", None, "2.5", "NULL"]})["x"]
    assert (column.kind, column.missing, column.spelled) == ("number", 5, 3)
    assert "and a flag" in column.becomes
    for word in MISSING - {""}:
        schema = infer_schema({"a": ["1.5", word.upper(), "2.5"], "b": ["x", word, "z"]})
        assert [schema[name].missing for name in "ab"] == [1, 1]


def test_stray_words_among_numbers_are_an_error_with_two_ways_out():
    values = [str(v) for v in range(100, 120)] + ["abc"]
    with pytest.raises(TableError, match=r"'x'.*'abc'") as caught:
        kind_of(values)
    assert caught.value.row == 20
    assert "missing_words=['abc']" in str(caught.value)
    assert "kinds={'x': 'category'}" in str(caught.value)
    assert kind_of(values, missing_words=["ABC"]) == "number"
    assert kind_of(values, kinds={"x": "category"}) == "category"
    with pytest.raises(TableError, match="'1,2'"):
        kind_of(["1.5", "2.5", "3.5", "4.5", "1,2", "7"])


def test_overruled_kinds_are_checked():
    assert kind_of(["1", "2", "3"], kinds={"x": "category"}) == "category"
    assert infer_schema({"x": ["1", "2"]}, kinds={"x": "text"})["x"].overruled
    for values, kind in ((["a", "b"], "yes/no"), (["a", "b", "1"], "number"), ([1.5, 2], "date")):
        with pytest.raises(TableError, match="'x'"):
            kind_of(values, kinds={"x": kind})
    for kind in ("text", "date", "yes/no"):
        with pytest.raises(TableError, match="has no values"):
            kind_of([None, None], kinds={"x": kind})
    for argument, value in (
        *(("kinds", {"y": "date"}), ("kinds", {"x": "colour"}), ("drop", ["y"])),
        *(("labels", ["y"]), ("date_formats", {"y": "%d"}), ("date_formats", {"x": "%Q"})),
    ):
        with pytest.raises(ValueError, match=argument):
            kind_of([1.5, 2.5], **{argument: value})


def test_frames_of_all_libraries_give_the_same_schema():
    columns = {
        "a": [1.5, None, 2.0, 8.25],
        "b": ["x", "y", "x", None],
        "c": [True, False, True, True],
        "d": [datetime.datetime(2024, 1, i, 5) for i in range(1, 5)],
    }
    expected = infer_schema(pa.table(columns))
    assert [c.kind for c in expected] == ["number", "category", "yes/no", "date"]
    assert expected["d"].has_time
    frame = pandas.DataFrame(columns, index=[3, 5, 7, 9])
    frame["b"] = frame["b"].astype("category")
    for other in (frame, polars.DataFrame(columns), columns):
        found = infer_schema(other)
        assert [(c.name, c.kind, c.missing) for c in found] == [
            (c.name, c.kind, c.missing) for c in expected
        ]
    with pytest.raises(ValueError, match="X must be a table"):
        infer_schema(np.zeros((3, 2)))


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
    for fitted in tables:
        kinds = [column.kind for column in infer_schema(fitted)]
        assert kinds == ["yes/no", "date", "date", "date", "number", "number", "category"]
        encoder = TableEncoder().fit(fitted)
        first, second = (encoder.transform(table) for table in tables)
        np.testing.assert_allclose(first, second)


def test_it_can_be_read():
    schema = infer_schema({"age": [1.5, 2.5, None], "town": ["Ulm", "Ulm", "Bonn"]})
    lines = repr(schema).splitlines()
    assert lines[0].split()[:3] == ["column", "kind", "missing"]
    assert lines[1].startswith("age     number    33%")
    assert schema.to_dict()["columns"][1]["kind"] == "category"
    assert infer_schema({"a": [1.5, 2.5], "b": [1.5, 2]}, drop=["a"]).features == ["b"]


# Numbers as text: for each column, how its numbers are written, and what they are.
NUMBERS = {
    "comma": (["170,5", "160", "-3,25", "n/a"], ",", False, [170.5, 160, -3.25, np.nan]),
    "exponent": (["1,5", "1e5", "-3,25", "2"], ",", False, [1.5, 1e5, -3.25, 2]),
    "points": (["1.234,50", "7,5", "12.000", "3"], ".,", False, [1234.5, 7.5, 12000, 3]),
    "point": (["1.234", "7.5", "12.25", "3"], ".", False, [1.234, 7.5, 12.25, 3]),
    # No number begins with a zero before its thousands.
    "zero": (["0,125", "0,250", "1,000", None], ",", False, [0.125, 0.25, 1, np.nan]),
    "percent": (["12 %", "n/a", "3.5 %", "-1\u00a0%"], ".", True, [12, np.nan, 3.5, -1]),
    "comma, percent": (["12,5 %", "7 %", "0,25%", None], ",", True, [12.5, 7, 0.25, np.nan]),
    "price": (
        ["1,234.50", "999.5", "-12,000", "n/a"],
        ",.",
        False,
        [1234.5, 999.5, -12000, np.nan],
    ),
    "people": (["1,234,567", "12,345", "7", None], ",.", False, [1234567, 12345, 7, np.nan]),
    "change": (["1,250.5 %", "1,000 %", "3 %", None], ",.", True, [1250.5, 1000, 3, np.nan]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_text(name):
    cells, decimal, percent, expected = NUMBERS[name]
    schema, typed = read_as({"x": cells * 10})
    column = schema["x"]
    assert (column.kind, column.decimal, column.percent) == ("number", decimal, percent)
    assert ("12 %" in column.becomes) == percent
    np.testing.assert_array_equal(typed["x"], expected * 10)
    stated = infer_schema({"x": cells * 10}, kinds={"x": "number"})["x"]
    assert (stated.decimal, stated.percent) == (decimal, percent)
    with pytest.raises(TableError, match=r"'k\.A\.'"):
        kind_of(cells * 10 + ["k.A."], kinds={"x": "number"})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("comma", ["1.500"]),  # a point where the training table had none: it may be either
        ("percent", ["0.12"]),  # which may be 12 %
        ("percent", [0.12]),
        *(("price", [text]) for text in ("1,5", "12,34", "1.234,5", "1234,567")),
    ],
)
def test_numbers_of_a_later_table_are_written_in_the_same_way(name, wrong):
    with pytest.raises(TableError, match=f"{wrong[0]!r}"):
        read_as({"x": NUMBERS[name][0] * 10}, {"x": wrong})


def test_commas_that_may_stand_for_decimals_or_thousands():
    for values in (["1,234", "22,500", "7"] * 10, ["1,250 %", "2,500 %"] * 10):
        for kinds in ({}, {"x": "number"}):
            with pytest.raises(TableError, match="between thousands"):
                kind_of(values, kinds=kinds)
        assert kind_of(values, kinds={"x": "category"}) == "category"
    assert kind_of([f"{i}%" for i in range(50)]) == "number"  # consecutive, and no id


def test_numbers_that_are_written_in_different_ways_give_a_warning():
    for first, second in (("12 %", "7"), ("1,234", "999.5"), ("1,5", "2.5"), ("1,5 %", "2.5")):
        with pytest.warns(DataWarning) as caught:
            assert kind_of([first, second] * 20) == "category"
        assert len(caught) == 1
        said = str(caught[0].message)
        assert "'x'" in said
        assert f"({first!r}, {second!r})" in said
        assert said.endswith("kinds={'x': 'category'}")
    with pytest.warns(DataWarning, match=r"\('12 %', 'none yet'\).*missing_words=\['none yet'\]"):
        assert kind_of(["12 %"] * 9 + ["none yet"]) == "category"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kind_of(["12 %", "7"] * 20, kinds={"x": "category"}) == "category"
        assert kind_of(["12 %", "7%"] * 9 + ["none yet"], missing_words=["none yet"]) == "number"
        # Words with a comma or a percent sign are no numbers.
        assert kind_of(["10% off", "5, 6", "a", "b"] * 10) == "category"
        # Whoever says that these are numbers rules out that 999.5 is mixed with decimal commas.
        column = infer_schema({"x": ["1,234", "999.5"] * 20}, kinds={"x": "number"})["x"]
    assert (column.kind, column.decimal) == ("number", ",.")


@pytest.mark.parametrize(
    ("name", "values", "otherwise"),
    [
        ("code", [f"A-{i:04d}" for i in range(N)], "category"),
        ("code", [*(f"A-{i:04d}" for i in range(N)), None], "category"),
        ("customer_id", list(RNG.permutation(1000)[:N] * 7), "number"),
        ("row", list(range(N)), "number"),
        ("row", [str(i) for i in range(N)], "number"),
    ],
)
def test_repeated_values_of_an_id_are_reported(name, values, otherwise):
    repeated = [*values, values[3]]
    with pytest.warns(DataWarning, match=rf"'{name}'.* {N} of {N + 1}.*'{otherwise}'"):
        column = infer_schema({name: repeated})[name]
    assert column.kind == "id"
    assert "repeated" in column.becomes
    # What is stated is not doubted.
    for kind in (otherwise, "id"):
        assert kind_of(repeated, name, kinds={name: kind}) == kind
    # Values of which more than one in twenty is repeated are no ids.
    assert kind_of([*values, *values[:4]], name) == otherwise


@pytest.mark.parametrize(
    ("cells", "numbers", "currency"),
    [
        (["€ 3.682,18", "€ 1.000.000,00", "-€ 5,5"], [3682.18, 1e6, -5.5], "€"),
        (["12,50 €", "7\u00a0€", None], [12.5, 7, np.nan], "€"),
        (["$1,234.50", "$12.00", "$-3.25"], [1234.5, 12, -3.25], "$"),
        (["CHF 10", "CHF 20.5", "n/a"], [10, 20.5, np.nan], "CHF"),
    ],
)
def test_amounts_are_numbers(cells, numbers, currency):
    schema = infer_schema({"price": cells})
    assert (schema["price"].kind, schema["price"].currency) == ("number", currency)
    assert f"{currency} 12 is read as 12" in schema["price"].becomes
    found = typed_arrays(as_table({"price": cells}), schema)["price"]
    np.testing.assert_allclose(found, numbers)
    # Another currency later is not the same number.
    other = "£" if currency != "£" else "€"
    with pytest.raises(TableError, match="price"):
        typed_arrays(as_table({"price": [f"{other} 12"]}), schema)


def test_amounts_in_two_currencies_are_said_to_be_no_numbers():
    with pytest.warns(DataWarning, match=r"'price'.*€.*\$"):
        schema = infer_schema({"price": ["€ 12", "$ 13", "€ 14", "$ 15"]})
    assert schema["price"].kind != "number"


def test_digits_with_a_leading_zero_are_codes():
    zips = ["01067", "50667", "80331"] * 10
    assert infer_schema({"zip": zips})["zip"].kind == "category"
    assert infer_schema({"zip": zips}, kinds={"zip": "number"})["zip"].kind == "number"
    for numbers in (["0", "10", "20"], ["0.5", "07.5", "1"], [1067, 50667, 80331]):
        assert infer_schema({"x": numbers * 10})["x"].kind == "number"


def test_labels_may_be_marked_with_an_x():
    table = as_table({"vip": ["x", "", "X", None], "late": ["1", "0", "0", "1"]})
    found = indicator_columns(table, ["vip", "late"])
    assert found.tolist() == [[1, 1], [0, 0], [1, 0], [0, 1]]
    with pytest.raises(TableError, match="vip"):  # are they unknown, or not marked?
        indicator_columns(table, ["vip"], unknown=True)
    with pytest.raises(TableError, match="vip"):
        indicator_columns(as_table({"vip": ["x", "y", ""]}), ["vip"])
