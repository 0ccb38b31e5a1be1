import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from imcc.cli._app import app
from imcc.datasets import DataFormatError, DataWarning, read
from imcc.tables._read import TableFile

read_parquet = functools.partial(read, format="parquet")


def save(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b"a,b\n1,2\n"])
def test_what_is_no_parquet_file(tmp_path, data):
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=r"t\.parquet"):
        read(path, labels=["y"])
    with pytest.raises(FileNotFoundError):
        TableFile(tmp_path / "no.parquet").read()


def test_columns_that_are_nested_too_deeply(tmp_path):
    values = pa.array([1])
    for _ in range(120):
        values = pa.StructArray.from_arrays([values], ["x"])
    with pytest.raises(DataFormatError, match="nested too deeply"):
        TableFile(save(tmp_path / "t.parquet", x=values)).read()


def test_a_table_that_unpacks_beyond_the_limit_is_refused(tmp_path):
    path = save(tmp_path / "bomb.parquet", a=np.zeros(1_000_000), y=np.zeros(1_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataFormatError, match="max_bytes="):
        read(path, labels=["y"], max_bytes=1_000_000)


# Files that were damaged, or that ask for much memory.


WAYS = """
from imcc.datasets import read
from imcc.tables._read import TableFile

def in_parts(path):
    for _ in TableFile(path).parts():
        pass

ways = {
    "read": lambda path: read(path, labels=["y"]),
    "table": lambda path: TableFile(path).read(),
    "parts": in_parts,
}
"""


def in_a_child(program, *arguments):
    """Run a program in a process of its own, which may not take more than 2 GiB."""
    limit = """
import resource, sys, warnings
import imcc.tables, pyarrow.parquet
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**31, size + 2**31))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
warnings.simplefilter("ignore")
from imcc.datasets import DataFormatError
"""
    command = [sys.executable, "-c", limit + WAYS + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as on Linux")


@pytest.mark.slow
@on_linux
def test_no_damage_ends_the_process(tmp_path):
    """Of 300 files with a damaged byte, each is read or refused, in each of the ways."""
    table = pa.table(
        {
            "a": [1.5, 2.0, None, 4.0] * 5,
            "b": ["x", "y", "x", None] * 5,
            "t": [["p", "q"], [], None, ["r"]] * 5,
            "y": [True, False] * 10,
        }
    )
    pq.write_table(table.drop(["t"]), tmp_path / "0", use_dictionary=False, compression="none")
    pq.write_table(table, tmp_path / "1", data_page_version="2.0", compression="zstd")
    program = """
import json, pathlib, random
chance = random.Random(0)
valid = [pathlib.Path(path).read_bytes() for path in sys.argv[2:]]
path = pathlib.Path(sys.argv[1], "t.parquet")
outcomes = {"read": 0, "refused": 0}
for number in range(300):
    data = bytearray(valid[number % 2])
    data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)
    for way in list(ways)[number % 4 :: 2]:
        try:
            ways[way](path)
            outcomes["read"] += 1
        except DataFormatError:
            outcomes["refused"] += 1
print(json.dumps(outcomes))
"""
    outcomes = json.loads(in_a_child(program, tmp_path, tmp_path / "0", tmp_path / "1"))
    assert min(outcomes.values()) > 75


def varint(number, length=0):
    """Return a number as Thrift writes it, with needless bytes up to a length."""
    data = []
    while number > 127 or len(data) < length - 1:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def falses(count):
    return pa.array(np.zeros(count, bool))


def repeated(word, count):
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [word])


def one_each(values):
    return pa.ListArray.from_arrays(np.arange(len(values) + 1, dtype=np.int32), values)


def one_list(length):
    return pa.ListArray.from_arrays(pa.array([0, length], pa.int32()), np.zeros(length, np.int8))


LARGE = {
    "rows": lambda: {"x": pa.nulls(3_000_000, pa.int8()), "y": falses(3_000_000)},
    "a long word": lambda: {"x": repeated("x" * 2**20, 10_000), "y": falses(10_000)},
    "long tags": lambda: {"x": one_each(repeated("x" * 2**20, 10_000)), "y": falses(10_000)},
    "a list": lambda: {"x": one_list(20_000_000), "y": falses(1)},
    "a list that is said to be short": lambda: {"x": one_list(20_000_000), "y": falses(1)},
    "missing arrays": lambda: {"x": pa.nulls(2, pa.list_(pa.int8(), 2**26)), "y": falses(2)},
    "missing long bytes": lambda: {"x": pa.nulls(200, pa.binary(2**20)), "y": falses(200)},
    "repeated beginnings": lambda: {"x": pa.array(["a" * 200_000] * 800), "y": falses(800)},
}


def large(path, name):
    options = {"compression": "zstd", "row_group_size": 2**27}
    if name == "repeated beginnings":
        options |= {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}
    table = pa.table(LARGE[name]())
    pq.write_table(table, path, store_schema=name == "missing arrays", **options)
    if name == "a list that is said to be short":
        data = path.read_bytes()
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        true = varint(2 * 20_000_000)
        assert true in data[start:]
        path.write_bytes(data[:start] + data[start:].replace(true, varint(2, len(true))))
    assert path.stat().st_size < 200_000
    return path


@pytest.mark.slow
@on_linux
def test_small_files_that_ask_for_much_memory(tmp_path):
    """They are refused before the memory is taken, and not because there is no more of it."""
    paths = [large(tmp_path / f"{name}.parquet", name) for name in LARGE]
    program = """
for path in sys.argv[1:]:
    for name, way in ways.items():
        try:
            way(path)
            outcome = "read"
        except DataFormatError as error:
            outcome = "refused"
            if isinstance(error.__cause__, MemoryError):
                outcome = "out of memory"
        print(f"{path}\t{name}\t{outcome}")
"""
    lines = in_a_child(program, *paths).splitlines()
    found = {(Path(p).stem, way): outcome for p, way, outcome in (x.split("\t") for x in lines)}
    assert len(found) == 3 * len(LARGE)
    assert set(found.values()) == {"read", "refused"}
    assert {found[name, "table"] for name in LARGE} == {"refused"}
    # What is read a few rows at a time takes little memory.
    kept = {key for key, outcome in found.items() if outcome == "read"}
    assert kept == {
        ("rows", "parts"),
        *(("missing long bytes", "parts"), ("repeated beginnings", "parts")),
    }


def test_a_command_says_that_a_file_is_too_large(tmp_path):
    path = large(tmp_path / "t.parquet", "rows")
    done = CliRunner().invoke(app, ["datasets", "describe", str(path), "--labels", "y"])
    assert done.exit_code == 1
    assert "--read max_bytes=" in done.output


def test_the_limit_can_be_raised(tmp_path):
    path = large(tmp_path / "t.parquet", "a long word")
    for refused in (
        TableFile(path),
        TableFile(path, max_bytes=2**30),
        TableFile(path, max_bytes=0),
    ):
        with pytest.raises(DataFormatError, match="max_bytes="):
            refused.read()
    path = save(tmp_path / "rows.parquet", x=falses(3_000_000))
    with pytest.raises(DataFormatError, match="max_bytes="):
        TableFile(path).read()
    assert TableFile(path, max_bytes=2**28).read().num_rows == 3_000_000


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_encodings_of_text(tmp_path, encoding):
    table = pa.table({"x": ["b", None, "a"] * 1000, "y": [0, 1, 1] * 1000})
    options = {"use_dictionary": False, "column_encoding": {"x": encoding}, "row_group_size": 700}
    pq.write_table(table, tmp_path / "t.parquet", **options)
    with pytest.warns(DataWarning, match="missing value"):
        dataset = read(tmp_path / "t.parquet", labels=["y"])
    np.testing.assert_array_equal(dataset.X[:3].ravel(), [1, np.nan, 0])
    assert TableFile(tmp_path / "t.parquet").read().equals(table)


def test_every_type_is_read_as_pyarrow_does(tmp_path):
    table = pa.table(
        {
            "list": [["a"], [], None, ["b", "a"]] * 50,
            "array": pa.array([[1, 2], None, [3, 4], [5, 6]] * 50, pa.list_(pa.int8(), 2)),
            "struct": [{"a": "x", "b": 1}, None, {"a": None, "b": 2}, {"a": "y", "b": 3}] * 50,
            "map": pa.array([[("k", "v")], [], None, []] * 50, pa.map_(pa.string(), pa.string())),
            "bytes": [b"x", None, b"y", b"z"] * 50,
            "dictionary": pa.array(["a", None, "b", "a"] * 50).dictionary_encode(),
            "large": pa.array(["a", None, "b", "a"] * 50, pa.large_string()),
            "date": pa.array([1, None, 2, 3] * 50, pa.date32()),
            "decimal": pa.array([1, None, 2, 3] * 50, pa.decimal128(5, 2)),
            "null": pa.nulls(200),
        }
    )
    for version, size in (("1.0", 30), ("2.0", 2**20)):
        pq.write_table(
            table, tmp_path / "t.parquet", data_page_version=version, data_page_size=size,
            row_group_size=70, dictionary_pagesize_limit=1,
        )  # fmt: skip
        assert TableFile(tmp_path / "t.parquet").read().to_pylist() == table.to_pylist()
        parts = list(TableFile(tmp_path / "t.parquet").parts())
        assert pa.concat_tables(parts).to_pylist() == table.to_pylist()


def test_what_pandas_stored_comes_back(tmp_path):
    frame = pd.DataFrame({"x": pd.array([1, None], "Int64"), "c": pd.Categorical(["a", "b"])})
    frame.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(TableFile(tmp_path / "t.parquet").read().to_pandas(), frame)
