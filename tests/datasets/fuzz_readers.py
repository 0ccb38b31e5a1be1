"""Throw damaged and hostile files at every reader; only the documented error may come out.

    python -m tests.datasets.fuzz_readers --inputs 120000 --seed 0

Each input is a valid file that was damaged: bytes flipped, cut out, doubled, swapped, replaced by
tokens that mean something to the format.  A reader may read it or refuse it with DataFormatError
(or TableError, for the kinds of the columns of a table).
Anything else, or an input that takes longer than a few seconds, is a failure: it is saved, named,
and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import scipy.io
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset, read
from imcc.datasets._files import Content
from imcc.datasets._mulan import parse_label_xml
from imcc.tables import TableEncoder, TableError, infer_schema, read_table
from tests.writers import write

SLOW = 5.0  # seconds

TOKENS = [
    b"{", b"}", b"{}", b"?", b",", b",,", b" ", b"\t", b"\n", b"\r\n", b"'", b'"', b"\\", b"%",
    b"#", b":", b"-1", b"0", b"1", b"1e999", b"nan", b"inf", b"1_0", b"99999999999999999999",
    b"@data", b"@attribute", b"@relation", b"@attribute x numeric\n", b"-C -99", b"-C 0",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"<label name='a'>", b"</labels>", b"\x00",
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"PK\x03\x04", b"\x1f\x8b", b"BZh9", b"PAR1",
    b"2021-02-31", b"1.2.99", b"+14:00", b"true", b"n/a", b"0.6\x1f", b"\r", b"\n\n",
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00",
]  # fmt: skip


def toy_dataset() -> Dataset:
    rng = np.random.RandomState(0)
    X = np.round(rng.rand(6, 4) * (rng.rand(6, 4) > 0.5), 3)
    names = ("a", "b c", "d'e", "é")
    return Dataset(X, rng.rand(6, 3) > 0.5, names, ("l1", "l 2", "ü3"), "toy")


def seeds(folder: Path) -> dict[str, tuple[str, bytes, dict]]:
    """Return, for each kind of input, a file name, a valid file and how to read it."""
    toy = toy_dataset()
    sparse = Dataset(sp.csr_array(toy.X), toy.Y, toy.feature_names, toy.label_names, "toy")
    found: dict[str, tuple[str, bytes, dict]] = {}

    def add(kind: str, name: str, options: dict, dataset: Dataset = toy, **how: str) -> None:
        write(dataset, folder / name, **how)
        found[kind] = (name, (folder / name).read_bytes(), options)

    add("mulan dense", "dense.arff", {"labels": -3})
    add("mulan sparse", "sparse.arff", {"labels": ["l1", "l 2"]}, sparse)
    add("meka", "meka.arff", {}, format="meka")
    (folder / "dense.xml").unlink()
    (folder / "sparse.xml").unlink()
    add("svmlight", "toy.svm", {})
    add("csv", "toy.csv", {"labels": -3})
    add("tsv", "toy.tsv", {"label_prefix": "l"})
    add("npz", "toy.npz", {})
    add("npz sparse", "sparse.npz", {}, sparse)
    names = (*toy.feature_names, *toy.label_names)
    columns = dict(zip(names, [*toy.X.T, *toy.Y.T], strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "toy.parquet")
    book = openpyxl.Workbook()
    for row in [names, *np.hstack([toy.X, toy.Y]).tolist()]:
        book.active.append(row)
    book.save(folder / "toy.xlsx")
    found["xlsx"] = ("toy.xlsx", (folder / "toy.xlsx").read_bytes(), {"labels": -3})
    found["parquet"] = ("toy.parquet", (folder / "toy.parquet").read_bytes(), {"labels": -3})
    add("gz", "toy.csv.gz", {"labels": -3, "max_bytes": 10**6})
    add("bz2", "toy.csv.bz2", {"labels": -3, "max_bytes": 10**6})
    add("zip", "toy.csv.zip", {"labels": -3, "max_bytes": 10**6})
    found["arff nominal"] = ("nominal.arff", NOMINAL, {"labels": ["y"]})
    found["arff quoted sparse"] = ("quoted.arff", QUOTED, {"labels": ["y"]})
    found["svmlight plain"] = ("plain.svm", b"3 9 4\n0,3 1:0.5 8:2\n 2:1\n1 1:1 # x\n", {})
    for kind, compress in (("mat", False), ("mat compressed", True)):
        scipy.io.savemat(
            folder / "toy.mat",
            {"data": sp.csc_array(toy.X), "target": toy.Y},
            do_compression=compress,
        )
        found[kind] = ("toy.mat", (folder / "toy.mat").read_bytes(), {"max_bytes": 10**7})
    return found


NOMINAL = b"""@relation 'x: -C 1'
@attribute y {no,yes}
@attribute colour {red, 'dark green', blue}
@attribute text string
@attribute n real
@data
no, red, 'some, text', 1
yes, 'dark green', "it's", ?
no, ?, plain, -1e-3
"""

QUOTED = b"""@relation x
@attribute y {0,1}
@attribute colour {red,'dark green'}
@attribute text string
@data
{1 'dark green', 2 'a, b'}
{0 1}
{}
"""

TABLE = b"""id;day;time;member;share;note
A1;2021-01-02;2021-01-01T10:00:00Z;yes;12 %;"some words; here"
A2;2020-02-29;2021-01-01T10:00:00.5+02:00;no;13,5 %;"more
words here"
A3;;2021-01-03T00:00:00Z;yes;n/a;
"""

ONE_COLUMN = b"day\r\n31.12.2021\r\n\r\n01.02.2021\r\n"

LABELS_XML = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">'
    b'<label name="a"><label name="b"/></label><label name="&#228;"></label></labels>'
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to a few damages."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5, 8))):
        chance.choice(DAMAGES)(data, chance)
    return bytes(data)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 9, 10, 32, 127, 128, 255))


def _cut(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    del data[start : start + chance.choice((1, 2, 4, 8, 32, 128))]


def _end(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _token(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    token = chance.choice(TOKENS)
    data[place : place + chance.choice((0, len(token)))] = token


def _double(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    data[start:start] = data[start : start + chance.choice((1, 4, 16, 64))] * chance.choice(
        (1, 2, 50)
    )


def _swap(data: bytearray, chance: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    chance.shuffle(lines)
    data[:] = b"\n".join(lines)


def _noise(data: bytearray, chance: random.Random) -> None:
    data[:] = chance.randbytes(chance.randrange(200))


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [
    _flip, _flip, _byte, _byte, _cut, _cut, _end, _token, _token, _token, _double, _swap, _noise,
]  # fmt: skip


def read_one(path: Path, data: bytes, options: dict) -> str:
    """Return what became of an input: "read" or "refused"."""
    path.write_bytes(data)
    try:
        read(path, **options)
    except DataFormatError:
        return "refused"
    return "read"


def read_xml(path: Path, data: bytes) -> str:
    try:
        parse_label_xml(Content(data, path.name, str(path), path))
    except DataFormatError:
        return "refused"
    return "read"


def read_as_table(path: Path, data: bytes) -> str:
    """Read a table, infer its schema, and encode it, by the schema of another table as well."""
    path.write_bytes(data)
    try:
        table = read_table(path)
        TableEncoder().fit_schema(table, infer_schema(table))
    except (DataFormatError, TableError):
        return "refused"
    with contextlib.suppress(TableError):
        TableEncoder().fit({"day": ["2021-01-02", "2021-01-03"]}).transform(table)
    return "read"


# Other kinds of input, with their readers.
OTHERS = {
    "label xml": ("labels.xml", LABELS_XML, read_xml),
    "table": ("table.csv", TABLE, read_as_table),
    "table of a column": ("column.csv", ONE_COLUMN, read_as_table),
}


def run(inputs: int, seed: int, folder: Path) -> int:
    chance = random.Random(seed)
    kinds = seeds(folder)
    for kind, (name, valid, options) in kinds.items():
        if read_one(folder / name, valid, options) != "read":
            raise AssertionError(f"the valid {kind} file was refused")
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    slowest = 0.0
    started = time.perf_counter()
    names = [*kinds, *OTHERS]
    for number in range(inputs):
        kind = names[number % len(names)]
        name, valid = (OTHERS[kind] if kind in OTHERS else kinds[kind])[:2]
        data = damaged(valid, chance)
        began = time.perf_counter()
        try:
            outcome = (
                OTHERS[kind][2](folder / name, data)
                if kind in OTHERS
                else read_one(folder / name, data, kinds[kind][2])
            )
        # The one thing that is being looked for: anything but the documented error.
        except BaseException:
            outcome = "FAILED"
            kept = Path(tempfile.gettempdir()) / f"fuzz-{number}-{name}"
            kept.write_bytes(data)
            print(f"input {number} ({kind}), saved as {kept}:\n{traceback.format_exc()}")
        took = time.perf_counter() - began
        slowest = max(slowest, took)
        if took > SLOW:
            outcome = "FAILED"
            print(f"input {number} ({kind}) took {took:.1f} s")
        outcomes[kind, outcome] += 1
    print(f"{inputs:,} inputs in {time.perf_counter() - started:.0f} s, slowest {slowest:.2f} s")
    print(f"{'kind':<20}{'read':>10}{'refused':>10}{'FAILED':>10}")
    for kind in names:
        counts = [outcomes[kind, outcome] for outcome in ("read", "refused", "FAILED")]
        print(f"{kind:<20}" + "".join(f"{count:>10,}" for count in counts))
    failures = sum(count for (_, outcome), count in outcomes.items() if outcome == "FAILED")
    print(f"{failures} failures")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=120_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        limit = 8 * 2**30  # an input that asks for more memory than this fails
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(run(arguments.inputs, arguments.seed, Path(folder)) > 0)


if __name__ == "__main__":
    main()
