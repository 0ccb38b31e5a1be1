"""What the columns of a table are: the rules, what is refused, what can be overruled."""

import datetime

import numpy as np
import pytest

from imcc._utils.cells import MISSING
from imcc.datasets import DataWarning
from imcc.tables import TableError, infer_schema
from imcc.tables._columns import as_table
from imcc.tables._typed import typed_frame

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

N = 60
RNG = np.random.default_rng(0)
WORDS = np.array(["red", "green", "blue", "apple", "car", "tree", "house", "river", "stone"])


def sentences(n=N):
    return [" ".join(RNG.choice(WORDS, 5)) for _ in range(n)]


def kind_of(values, **options):
    return infer_schema({"x": values}, **options)["x"].kind


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
        (list(range(5)), "number"),  # too few to say
        (["yes", "no", "Yes", None], "yes/no"),
        ([0, 1, 1, 0], "yes/no"),
        (["0", "1", "1", "0"], "yes/no"),
        ([True, False, None], "yes/no"),
        (["ja", "nein", "ja", "ja"], "yes/no"),
        (["Ulm", "Bonn", "Ulm", "Berlin"], "category"),
        (["New York", "Los Angeles", "New York", "Los Angeles"] * 5, "category"),
        (sentences(), "text"),
        (["2024-01-31", "2023-12-01", None], "date"),
        (["31.01.2024", "01.12.2023"], "date"),
        (["13/01/2024", "01/12/2023"], "date"),
        (["2024-01-31 10:30", "2023-12-01 00:00"], "date"),
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
    assert infer_schema({"customer_id": values})["customer_id"].kind == "id"
    assert infer_schema({"paid": values})["paid"].kind == "number"


def test_spellings_of_missing_are_counted():
    column = infer_schema({"x": ["1.5", "n/a", "-", "", None, "2.5", "NULL"]})["x"]
    assert (column.kind, column.missing, column.spelled) == ("number", 5, 3)
    assert "and a flag" in column.becomes
    assert "n/a" in MISSING


def test_stray_words_among_numbers_are_an_error_with_two_ways_out():
    values = [str(v) for v in range(100, 120)] + ["abc"]
    with pytest.raises(TableError) as caught:
        infer_schema({"size": values})
    said = str(caught.value)
    assert "'size'" in said
    assert said.startswith("row 20: ")
    assert "1 are not ('abc')" in said
    assert caught.value.row == 20
    assert "missing_words=['abc']" in said
    assert "kinds={'size': 'category'}" in said
    assert kind_of(values, missing_words=["ABC"]) == "number"
    assert kind_of(values, kinds={"x": "category"}) == "category"
    # Half words and half numbers are no mistake: they are categories.
    assert kind_of(["1", "2", "a", "b"] * 5) == "category"


def test_decimal_commas_are_not_hundreds_of_categories():
    with pytest.raises(TableError, match="'1,2'"):
        kind_of(["1.5", "2.5", "3.5", "4.5", "1,2", "7"])


def test_dates_whose_day_and_month_cannot_be_told_apart():
    with pytest.raises(TableError, match="date_formats"):
        kind_of(["01/02/2024", "03/04/2024"])
    schema = infer_schema({"x": ["01/02/2024"] * 2}, date_formats={"x": "%d/%m/%Y"})
    assert (schema["x"].kind, schema["x"].date_format) == ("date", "%d/%m/%Y")


def test_overruled_kinds_are_checked():
    assert kind_of(["1", "2", "3"], kinds={"x": "category"}) == "category"
    assert infer_schema({"x": ["1", "2"]}, kinds={"x": "text"})["x"].overruled
    with pytest.raises(TableError, match="cannot be yes/no"):
        kind_of(["a", "b"], kinds={"x": "yes/no"})
    with pytest.raises(TableError, match="are numbers, and 2 are not"):
        kind_of(["a", "b", "1"], kinds={"x": "number"})
    with pytest.raises(TableError, match="not dates"):
        kind_of([1.5, 2.5], kinds={"x": "date"})
    with pytest.raises(ValueError, match="kinds names 'y'"):
        kind_of([1.5, 2.5], kinds={"y": "date"})
    with pytest.raises(ValueError, match="kinds must name kinds of"):
        kind_of([1.5, 2.5], kinds={"x": "colour"})


def test_lists_are_no_features():
    with pytest.raises(TableError, match="list<item: string>"):
        kind_of([["a"], ["b", "c"]])
    assert infer_schema({"x": [["a"], []]}, labels=["x"])["x"].kind == "label"


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
    with pytest.raises(ValueError, match="must be a table with named columns"):
        infer_schema(np.zeros((3, 2)))


def test_it_can_be_read():
    schema = infer_schema({"age": [1.5, 2.5, None], "town": ["Ulm", "Ulm", "Bonn"]}, drop=[])
    lines = repr(schema).splitlines()
    assert lines[0].split()[:3] == ["column", "kind", "missing"]
    assert lines[1].startswith("age     number    33%")
    assert schema.to_dict()["columns"][1]["kind"] == "category"
    assert infer_schema({"a": [1.5, 2.5], "b": [1.5, 2]}, drop=["a"]).features == ["b"]


def test_numbers_with_a_decimal_comma():
    table = {
        "size": ["170,5", "160", "-3,25", "n/a"] * 10,
        "price": ["1.234,50", "7,5", "12.000", "3"] * 10,
        "point": ["1.234", "7.5", "12.25", "3"] * 10,
    }
    schema = infer_schema(table)
    assert [(c.kind, c.decimal) for c in schema] == [
        ("number", ","),
        ("number", ".,"),
        ("number", "."),
    ]
    frame = typed_frame(as_table(table), schema)
    np.testing.assert_array_equal(frame["size"][:4], [170.5, 160, -3.25, np.nan])
    np.testing.assert_array_equal(frame["price"][:4], [1234.5, 7.5, 12000, 3])
    np.testing.assert_array_equal(frame["point"][:4], [1.234, 7.5, 12.25, 3])
    # A point where the training table had none: 1.500 may be either.
    with pytest.raises(TableError, match=r"but '1\.500' is not a number"):
        typed_frame(as_table({**table, "size": ["1.500"] * 40}), schema)
    with pytest.raises(TableError, match="between thousands"):
        infer_schema({"sum": ["1,234", "22,500", "7"] * 10})
    assert infer_schema({"sum": ["1,234", "22,500", "7"] * 10}, kinds={"sum": "category"})
    # No number begins with a zero before its thousands.
    assert infer_schema({"share": ["0,125", "0,250", "1,000"] * 10})["share"].decimal == ","
    with pytest.raises(TableError, match=r"27 of its 30 values are numbers"):
        infer_schema({"size": ["1,5"] * 27 + ["abc"] * 3})
    with pytest.raises(TableError, match=r"\('k\.A\.'\)"):
        infer_schema({"size": ["1,5"] * 27 + ["k.A."] * 3})
    assert (
        infer_schema({"size": ["1,5", "2,5"] * 9}, kinds={"size": "number"})["size"].decimal == ","
    )


def test_percentages_are_numbers():
    table = {
        "share": ["12 %", "7%", "n/a", "3.5 %", "-1\u00a0%"] * 10,
        "comma": ["12,5 %", "7 %", "0,25%", "1,75 %", None] * 10,
        "count": [f"{i}%" for i in range(50)],  # consecutive, and no id
    }
    schema = infer_schema(table)
    assert [(c.kind, c.decimal, c.percent) for c in schema] == [
        ("number", ".", True),
        ("number", ",", True),
        ("number", ".", True),
    ]
    assert schema["share"].becomes.endswith("; 12 % is read as 12")
    frame = typed_frame(as_table(table), schema)
    np.testing.assert_array_equal(frame["share"][:5], [12, 7, np.nan, 3.5, -1])
    np.testing.assert_array_equal(frame["comma"][:5], [12.5, 7, 0.25, 1.75, np.nan])
    # 0.12 may be 12 %, as text and as a number.
    with pytest.raises(TableError, match=r"'0\.12' is not a number with a percent sign"):
        typed_frame(as_table({**table, "share": ["0.12"] * 50}), schema)
    with pytest.raises(TableError, match=r"0\.12 has no percent sign"):
        typed_frame(as_table({**table, "share": [0.12] * 50}), schema)
    with pytest.raises(TableError, match="between thousands"):
        infer_schema({"share": ["1,250 %", "2,500 %"] * 10})
    assert infer_schema({"x": ["5 %", "6 %"] * 9}, kinds={"x": "number"})["x"].percent
    with pytest.raises(TableError, match=r"27 of its 30 values are numbers.*'about %'"):
        infer_schema({"x": ["5 %", "6 %", "7%"] * 9 + ["about %"] * 3}, kinds={"x": "number"})


def test_thousands_separators_that_cannot_be_decimal_commas():
    table = {
        "price": ["1,234.50", "999.5", "12", "-12,000", "n/a"] * 10,
        "people": ["1,234,567", "12,345", "7", "999", None] * 10,
        "change": ["1,250.5 %", "1,000 %", "3 %", "12.5%", None] * 10,
    }
    schema = infer_schema(table)
    assert [(c.kind, c.decimal, c.percent) for c in schema] == [
        ("number", ",.", False),
        ("number", ",.", False),
        ("number", ",.", True),
    ]
    assert schema["price"].becomes.endswith("; 1,234.5 is read as 1234.5")
    frame = typed_frame(as_table(table), schema)
    np.testing.assert_array_equal(frame["price"][:5], [1234.5, 999.5, 12, -12000, np.nan])
    np.testing.assert_array_equal(frame["people"][:5], [1234567, 12345, 7, 999, np.nan])
    np.testing.assert_array_equal(frame["change"][:5], [1250.5, 1000, 3, 12.5, np.nan])
    for wrong in ("1,5", "12,34", "1.234,5", "1234,567"):
        with pytest.raises(TableError, match=f"'{wrong}' is not a number"):
            typed_frame(as_table({**table, "price": [wrong] * 50}), schema)
    with pytest.raises(TableError, match=r"40 of its 44 values are numbers.*'abc'"):
        infer_schema({"price": table["price"] + ["abc"] * 4})


def test_numbers_that_are_written_in_different_ways_give_a_warning():
    for values, shown in [
        (["12 %", "7"] * 20, "'12 %', '7'"),
        (["1,234", "999.5"] * 20, "'1,234', '999.5'"),
        (["1,5", "2.5"] * 20, "'1,5', '2.5'"),
        (["1,5 %", "2.5"] * 20, "'1,5 %', '2.5'"),
    ]:
        with pytest.warns(DataWarning) as caught:
            assert kind_of(values) == "category"
        assert len(caught) == 1
        said = str(caught[0].message)
        assert said.startswith("column 'x' is of the kind category: most of its values look like")
        assert f"not all are written in the same way ({shown})" in said
        assert said.endswith("; correct them, or state the kind with kinds={'x': 'category'}")
        assert kind_of(values, kinds={"x": "category"}) == "category"  # without a warning
    with pytest.warns(DataWarning, match=r"\('12 %', 'none yet'\).*missing_words=\['none yet'\]"):
        assert kind_of(["12 %"] * 9 + ["none yet"]) == "category"
    assert kind_of(["12 %", "7%"] * 9 + ["none yet"], missing_words=["none yet"]) == "number"
    # Words with a comma or a percent sign are no numbers.
    assert kind_of(["10% off", "5, 6", "a", "b"] * 10) == "category"
    # Whoever says that these are numbers rules out that 999.5 is mixed with decimal commas.
    with pytest.warns(DataWarning, match="look like numbers"):
        assert kind_of(["1,234", "999.5"] * 20) == "category"
    column = infer_schema({"x": ["1,234", "999.5"] * 20}, kinds={"x": "number"})["x"]
    assert (column.kind, column.decimal) == ("number", ",.")
    with pytest.raises(TableError, match="between thousands"):
        kind_of(["1,234", "22,500", "7"] * 10, kinds={"x": "number"})


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
    with pytest.warns(DataWarning) as caught:
        column = infer_schema({name: repeated})[name]
    said = str(caught[0].message)
    assert f"column '{name}' is left out" in said
    assert f"only {N} of {N + 1} are distinct" in said
    assert f"kinds={{'{name}': '{otherwise}'}}" in said
    assert column.kind == "id"
    assert column.becomes == "left out: it names rows, although some values are repeated"
    # What is stated is not doubted.
    for kind in (otherwise, "id"):
        assert infer_schema({name: repeated}, kinds={name: kind})[name].kind == kind
    # Values of which more than one in twenty is repeated are no ids.
    often = [*values, *values[:4]]
    assert infer_schema({name: often})[name].kind == otherwise
