"""Every type of Arrow is read as a column, or refused with an error that names column and type."""

import datetime
import decimal

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc._utils.errors import ImccError, InvalidArgumentError
from imcc.tables import TableClassifier, TableEncoder, TableError, infer_schema, read_tags
from imcc.tables._labels import indicator_columns
from imcc.tables._read import table_fingerprint

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

N = 40
NUMBERS = [k % 7 for k in range(N)]
CODES = pa.array([k % 3 for k in range(N)], pa.int8())
LISTS = [[f"t{k}"] for k in NUMBERS]
SECONDS = pa.array(NUMBERS, pa.int64())


def coded(values):
    return pa.DictionaryArray.from_arrays(CODES, values)


def runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array([10, 20, N], pa.int32()), pa.array(values))


def stored(kind, values):
    return pa.ExtensionArray.from_storage(kind, values)


def read_columns():
    """Yield columns that can be features, and their kinds."""
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        yield pa.array(NUMBERS, getattr(pa, name)()), "number"
    for dtype in (np.float16, np.float32, np.float64):
        yield pa.array(np.array(NUMBERS, dtype)), "number"
    for name in ("decimal32", "decimal64", "decimal128", "decimal256"):
        if hasattr(pa, name):
            values = [decimal.Decimal(k) for k in NUMBERS]
            yield pa.array(values, getattr(pa, name)(5, 2)), "number"
    yield pa.array([k % 2 == 0 for k in NUMBERS]), "yes/no"
    for name in ("string", "large_string", "string_view"):
        if hasattr(pa, name):
            words = pa.array(["a", "b", "c"], getattr(pa, name)())
            yield pa.array([f"w{k}" for k in NUMBERS], words.type), "category"
            yield coded(words), "category"
    yield coded([1, 2, 3]), "number"
    yield coded([1.5, 2.5, None]), "number"
    yield coded([True, False, None]), "yes/no"
    yield coded([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None]), "date"
    yield coded([decimal.Decimal("1.5"), decimal.Decimal("2.5"), None]), "number"
    yield pa.array(NUMBERS, pa.int32()).cast(pa.date32()), "date"
    yield pa.array([k * 86_400_000 for k in NUMBERS], pa.int64()).cast(pa.date64()), "date"
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Berlin", "+05:30", "No/Where"):
            yield SECONDS.cast(pa.timestamp(unit, zone)), "date"


def refused_columns():
    """Yield columns that cannot be features."""
    for name in ("binary", "large_binary", "binary_view"):
        if hasattr(pa, name):
            yield pa.array([b"%d" % k for k in NUMBERS], getattr(pa, name)())
    yield pa.array([b"ab"] * N, pa.binary(2))
    yield coded([b"a", b"b", b"c"])
    for unit in ("s", "ms", "us", "ns"):
        yield SECONDS.cast(pa.duration(unit))
    yield pa.array([2**62] * N, pa.int64()).cast(pa.duration("s"))
    for kind in (pa.time32("s"), pa.time32("ms")):
        yield pa.array(NUMBERS, pa.int32()).cast(kind)
    for kind in (pa.time64("us"), pa.time64("ns")):
        yield SECONDS.cast(kind)
    yield coded([datetime.time(1), datetime.time(2), None])
    yield pa.array([(1, 2, k) for k in NUMBERS], pa.month_day_nano_interval())
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        if hasattr(pa, name):
            yield pa.array(LISTS, getattr(pa, name)(pa.string()))
    yield pa.array(LISTS, pa.list_(pa.string(), 1))
    yield pa.array([[[1]]] * N)
    yield pa.array([{"a": k} for k in NUMBERS])
    yield pa.array([[("k", k)] for k in NUMBERS], pa.map_(pa.string(), pa.int64()))
    which, places = pa.array([0, 1] * 20, pa.int8()), pa.array(np.arange(N) // 2, pa.int32())
    yield pa.UnionArray.from_dense(which, places, [pa.array(range(20)), pa.array(["a"] * 20)])
    yield pa.UnionArray.from_sparse(which, [pa.array(range(N)), pa.array(["a"] * N)])
    if hasattr(pa, "uuid"):
        yield stored(pa.uuid(), pa.array([b"%016d" % k for k in NUMBERS], pa.binary(16)))
    yield runs(["a", "b", "c"])
    if hasattr(pa, "json_"):
        yield stored(pa.json_(), pa.array([f'["{k}"]' for k in NUMBERS]))
    if hasattr(pa, "bool8"):
        yield stored(pa.bool8(), pa.array([k % 2 for k in NUMBERS], pa.int8()))
    yield pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((N, 2)))


READ, REFUSED = list(read_columns()), list(refused_columns())
# Dates that Python does not have.
FAR = [
    pa.array([2**60] * N, pa.int64()).cast(pa.timestamp("s")),
    pa.array([-(2**60)] * N, pa.int64()).cast(pa.timestamp("us", "Asia/Tokyo")),
    pa.array([2**31 - 1] * N, pa.int32()).cast(pa.date32()),
    pa.array([2**62 // 86_400_000 * 86_400_000] * N, pa.int64()).cast(pa.date64()),
]
KINDS = ("number", "category", "text", "date", "yes/no")


def named(column):
    return str(column[0].type if isinstance(column, tuple) else column.type)


def table_of(values):
    columns = {"a": np.arange(N) * 1.5, "x": values, "l": [0, 1] * 20}
    return pa.table({name: pa.array(v) if name != "x" else v for name, v in columns.items()})


@pytest.fixture(scope="module")
def encoders():
    """An encoder for each kind of the column x."""
    values = {
        "number": np.arange(N) + 0.5,
        "category": ["u", "v"] * 20,
        "text": ["one two three", "four five six"] * 20,
        "date": ["2020-01-01", "2020-02-02"] * 20,
        "yes/no": ["yes", "no"] * 20,
    }
    return {
        kind: TableEncoder(kinds={"x": kind}).fit(table_of(pa.array(column)))
        for kind, column in values.items()
    }


def problem(call):
    """Return what an error of ours says, and that nothing is wrong with x if there is none."""
    try:
        call()
    except ImccError as error:
        return str(error)
    return "nothing is wrong with 'x'"


@pytest.mark.filterwarnings("ignore::imcc.tables.UnknownValuesWarning")
@pytest.mark.parametrize("column", READ, ids=named)
def test_what_is_read(column, encoders):
    values, kind = column
    table = table_of(values)
    assert infer_schema(table)["x"].kind == kind
    made = TableEncoder().fit_transform(table)
    assert made.shape[1] > TableEncoder(drop=["x"]).fit_transform(table).shape[1]
    # As every kind it is read or refused, as a label or a column of a later table as well.
    for other in (*KINDS, "id", "constant"):
        assert "'x'" in problem(lambda kind=other: infer_schema(table, kinds={"x": kind}))
    for encoder in encoders.values():
        assert "'x'" in problem(lambda encoder=encoder: encoder.transform(table))
    assert "'x'" in problem(lambda: indicator_columns(table, ["x"], unknown=True))
    assert table_fingerprint(table) != table_fingerprint(table.drop(["x"]))


@pytest.mark.parametrize("values", REFUSED, ids=named)
def test_what_is_refused(values, encoders):
    table = table_of(values)
    shown = str(values.type)
    calls = [lambda: infer_schema(table), lambda: indicator_columns(table, ["x"])]
    calls += [lambda e=encoder: e.transform(table) for encoder in encoders.values()]
    for call in calls:
        with pytest.raises(TableError) as caught:
            call()
        assert "'x'" in str(caught.value)
        assert shown in str(caught.value)
    # It may be there if it is not used.
    TableEncoder(drop=["x"]).fit(table)
    assert infer_schema(table, kinds={"x": "id"})["x"].kind == "id"
    assert infer_schema(table, labels=["x"])["x"].kind == "label"


@pytest.mark.parametrize("values", FAR, ids=named)
def test_dates_that_python_does_not_have(values, encoders):
    for call in (infer_schema, encoders["date"].transform, encoders["category"].transform):
        with pytest.raises(TableError, match=r"row 0: column 'x' .* years 1 to 9999"):
            call(table_of(values))
    with pytest.raises(TableError, match="cannot be represented in Python"):
        read_tags(table_of(values)["x"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_without_values_is_missing_whatever_its_type(kind, encoders):
    expected = encoders[kind].transform(table_of(pa.nulls(N)))
    types = {values.type for values in (*(values for values, _ in READ), *REFUSED, *FAR)}
    empty = [
        pa.nulls(N, t)
        for t in types
        if not (pa.types.is_union(t) or pa.types.is_run_end_encoded(t))
    ]
    for values in (*empty, pa.array(np.full(N, np.nan))):  # or as a data frame has it
        found = encoders[kind].transform(table_of(values))
        assert (found != expected).sum() == 0, values.type


@pytest.mark.parametrize("values", [[2**70, 1], [1j, 2j], ["\ud800", "a"], np.ones((2, 2)), None])
def test_values_without_a_type(values):
    with pytest.raises(InvalidArgumentError, match="column 'x'"):
        infer_schema({"x": values, "y": [1, 2]})


def test_views_of_text_in_lists_and_columns():
    """As data frames of polars have them."""
    if not hasattr(pa, "string_view"):
        pytest.skip("this version has no views")
    words = [f"word{k % 9} and word{k % 5} of {k}" for k in range(120)]
    table = pa.table(
        {
            "text": pa.array(words, pa.string_view()),
            "n": np.arange(120) % 11 + 0.5,
            "tags": pa.array([["p"], ["q"]] * 60, pa.list_(pa.string_view())),
        }
    )
    model = TableClassifier(IMCCClassifier(n_clusters=2, random_state=0)).fit(table, "tags")
    assert model.predict(table).shape == (120, 2)
