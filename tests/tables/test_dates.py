"""Dates: strict forms, years of two digits, numbers, time zones, other types of later tables."""

import datetime
import re
from pathlib import Path

import numpy as np
import pytest

from imcc.tables import TableEncoder, TableError, infer_schema
from imcc.tables._columns import as_table
from imcc.tables._dates import DATE_FORMATS, ISO
from imcc.tables._typed import typed_arrays

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

DAYS = [datetime.date(2021, 1, day) for day in range(1, 11)]
TIMES = [datetime.datetime(2021, 1, day, 14, 30, 5) for day in range(1, 11)]
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "tables.md"


def days(values, later=None, **options):
    """Return the days since 1970 of a column, or of a later one."""
    schema = infer_schema({"d": values}, **options)
    later = pa.table({"d": pa.array(values if later is None else later)})
    return typed_arrays(as_table(later), schema)["d: day"].tolist()


def number(year, month, day):
    return (datetime.date(year, month, day) - datetime.date(1970, 1, 1)).days


@pytest.mark.parametrize("layout", DATE_FORMATS)
def test_every_format_reads_what_it_writes(layout):
    written = [
        moment.isoformat(" ") if layout == ISO else moment.strftime(layout)
        for moment in (*TIMES, datetime.datetime(2024, 2, 29, 14, 30, 5))
    ]
    given = {} if "/%m/" not in layout[2:] and "%m/" not in layout else {"d": layout}
    assert days(written, date_formats=given) == [
        *(number(2021, 1, day) for day in range(1, 11)),
        number(2024, 2, 29),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("2021-05-31", "2021-05-31 14:30", "2021-05-31T14:30:05", "2021-05-31 14:30:05.25"),
        *("2021-05-31T14:30Z", "2021-05-31T14:30:05+02:00", "2021-05-31 14:30:05.123456789+0200"),
        *("2021/05/31", "2021/5/31 4:30", "31.05.2021", "31.5.2021 14:30:05", "31/05/2021 14:30"),
        *("05/31/2021", "2021-5-31"),
    ],
)
def test_what_is_recognised(text):
    again = text.replace("31", "30", 1)
    assert infer_schema({"d": [text, again]})["d"].kind == "date"
    assert days([text, again]) == [number(2021, 5, 31), number(2021, 5, 30)]


def test_the_forms_are_documented():
    text = DOCUMENTATION.read_text(encoding="utf-8").split("### Dates")[1].split("###")[0]
    written = {datetime.datetime(2021, 5, 31).strftime(layout) for layout in DATE_FORMATS[4:]}
    assert {day for day in written if ":" not in day} <= set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("2021-01-{:02}", "2021-02-31"),
        ("2021-01-{:02}", "2023-02-29"),
        ("2021-01-{:02}", "2021-13-01"),
        ("{:02}.01.2021", "31.04.2021"),
        ("{:02}/01/2021", "31/11/2021"),
        ("01/{:02}/2021", "02/30/2021"),
        ("2021-01-{:02} 10:00", "2021-01-01 24:30"),
        ("2021-01-{:02}T10:00:00Z", "2021-02-30T10:00:00Z"),
        ("{:02}.01.2021", "03.04.05"),
        ("{:02}.01.2021", "2021-01-03"),
        ("{:02}.01.2021", "tomorrow"),
    ],
)
def test_what_is_no_date_among_dates(good, bad):
    """2021-02-31 was 3 March, and 03.04.05 was in the year 5."""
    values = [good.format(day) for day in range(9, 25)]
    named = "'d'.*" + re.escape(repr(bad))
    with pytest.raises(TableError, match="row 5: .*" + named):
        infer_schema({"d": [*values[:5], bad, *values[5:]]})
    with pytest.raises(TableError, match="row 1: .*" + named):
        days(values, [values[0], bad])


def test_a_stated_format_is_checked_with_the_schema():
    with pytest.raises(TableError, match=r"row 1: .*'31\.02\.2021'"):
        infer_schema({"d": ["01.02.2021", "31.02.2021"]}, date_formats={"d": "%d.%m.%Y"})
    for layout in ("%Q", "%Y%Y", None):
        with pytest.raises(ValueError, match="date_formats"):
            infer_schema({"d": ["01.02.2021"]}, date_formats={"d": layout})
    with pytest.raises(TableError, match="date_formats"):  # day and month cannot be told apart
        infer_schema({"d": ["01/02/2024", "03/04/2024"]})
    with pytest.raises(TableError, match="3 of its 5 values are dates in the format ISO 8601"):
        infer_schema({"d": ["2021-01-01", "2021-01-02", "03.01.2021", "04.01.2021", "2021-01-05"]})


@pytest.mark.parametrize(
    ("values", "layout"),
    [
        (["31.05.99", "01.06.05"], "%d.%m.%y"),
        (["99-05-31", "05-06-01"], "%y-%m-%d"),
        (["31/05/99 10:30", "01/06/05 11:00"], "%d/%m/%y %H:%M"),
    ],
)
def test_years_of_two_digits_are_asked_for(values, layout):
    with pytest.raises(TableError, match="two digits.*" + re.escape(layout) + ".*1969 to 1999"):
        infer_schema({"d": values})
    assert infer_schema({"d": values}, kinds={"d": "category"})["d"].kind == "category"
    assert days(values, date_formats={"d": layout}) == [number(1999, 5, 31), number(2005, 6, 1)]


@pytest.mark.parametrize("seconds", [2**61, -(2**40), 253_402_300_800])
def test_later_dates_that_do_not_exist(seconds):
    encoder = TableEncoder().fit({"d": DAYS, "x": np.arange(len(DAYS)) + 0.5})
    values = pa.array([0, seconds], pa.int64()).cast(pa.timestamp("s"))
    with pytest.raises(TableError, match=r"row 1: .*years 1 to 9999"):
        encoder.transform(pa.table({"d": values, "x": [0.5, 1.5]}))


@pytest.mark.parametrize("fitted", [DAYS, TIMES, [day.isoformat() for day in DAYS]])
@pytest.mark.parametrize("later", [[20210501], [20210501.0], [True], [1.5, None], ["20210501"]])
def test_numbers_are_no_dates(fitted, later):
    """20210501 was read as seconds since 1970."""
    for values in (later, pandas.Series(later)):
        with pytest.raises(TableError, match=r"row 0: .*'d'.* is not a date"):
            days(fitted, values)


@pytest.mark.parametrize("fitted", [DAYS, TIMES, [day.isoformat() for day in DAYS]])
@pytest.mark.parametrize("later", [[None, None], [np.nan, np.nan], ["", "n/a"]])
def test_missing_dates_of_any_type(fitted, later):
    assert np.isnan(days(fitted, later)).all()


@pytest.mark.parametrize("fitted", [DAYS, TIMES])
def test_text_after_a_typed_column(fitted):
    """As in a CSV file after a Parquet file; it was a TypeError."""
    written = pandas.Series(fitted).astype(str).tolist()
    assert days(fitted, written) == days(fitted)
    assert days(written, fitted) == days(written)
    with pytest.raises(TableError, match=r"row 1: .*'1\.2\.2021' is not a date in the format ISO"):
        days(fitted, ["2021-01-01", "1.2.2021"])


# Time zones: everything in UTC, all or none.

BERLIN = [f"2021-07-{day:02} 01:30:00+02:00" for day in range(1, 11)]


def test_times_with_a_zone_are_in_utc_however_they_are_given():
    stamps = pandas.to_datetime(pandas.Series(BERLIN))
    forms = {
        "text": BERLIN,
        "other zone": ["2021-06-30T18:30:00-05:00", *BERLIN[1:]],
        "stamps": stamps,
        "utc": stamps.dt.tz_convert("UTC"),
        "named": stamps.dt.tz_convert("America/New_York"),
    }
    expected = [number(2021, 6, 30) + k for k in range(10)]
    for fitted in forms.values():
        for later in forms.values():
            assert days(fitted, later) == expected
    column = infer_schema({"d": BERLIN})["d"]
    assert column.has_zone
    assert column.becomes.endswith("hour (UTC)")


def test_a_time_zone_in_all_dates_or_in_none():
    bare = [text[:19] for text in BERLIN]
    with pytest.raises(TableError, match=r"with a time zone.*and without"):
        infer_schema({"d": [BERLIN[0], *bare[1:]]})
    typed, typed_bare = (pandas.to_datetime(pandas.Series(v)) for v in (BERLIN, bare))
    for zoned, naive in ((BERLIN, bare), (typed, typed_bare), (BERLIN, typed_bare), (typed, bare)):
        with pytest.raises(TableError, match=r"'d'.*has a time zone, unlike"):
            days(naive, zoned)
        with pytest.raises(TableError, match=r"'d'.*has no time zone, unlike"):
            days(zoned, naive)


def test_dates_promise_what_they_become():
    table = {"day": ["2024-01-01", "2024-02-03"], "time": ["2024-01-01 10:00", "2024-02-03 11:30"]}
    schema, names = infer_schema(table), TableEncoder().fit(table).get_feature_names_out()
    for column in schema:
        parts = {n.split(": ")[1].split(" ")[0] for n in names if n.startswith(column.name)}
        assert parts == set(column.becomes.split(", "))
    assert schema["time"].becomes == schema["day"].becomes + ", hour"
