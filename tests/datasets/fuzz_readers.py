"""Throw damaged and hostile files at every reader; only the documented error may come out.

    python -m tests.datasets.fuzz_readers 120000

Each input is a valid file that was damaged: bytes flipped, cut out, doubled, swapped, replaced by
tokens that mean something to the format.  A reader may read it or refuse it with DataFormatError
(or TableError, for the kinds of the columns of a table).  Anything else, or an input that takes
longer than a few seconds, is saved, and makes the exit code 1.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import scipy.io
import scipy.sparse as sp

from imcc.datasets import DataFormatError, Dataset, read
from imcc.datasets._files import open_content
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

LABELS_XML = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">'
    b'<label name="a"><label name="b"/></label><label name="&#228;"></label></labels>'
)


class Kind(NamedTuple):
    """A valid file, and how it is read."""

    file: str
    data: bytes
    reader: Callable[[Path], Any]


def kinds(folder: Path) -> dict[str, Kind]:
    """Return the kinds of inputs, after writing their files."""
    rng = np.random.RandomState(0)
    X = np.round(rng.rand(6, 4) * (rng.rand(6, 4) > 0.5), 3)
    toy = Dataset(X, rng.rand(6, 3) > 0.5, ("a", "b c", "d'e", "é"), ("l1", "l 2", "ü3"), "toy")
    sparse = Dataset(sp.csr_array(X), toy.Y, toy.feature_names, toy.label_names, "toy")
    names = (*toy.feature_names, *toy.label_names)
    rows = np.hstack([X, toy.Y])
    for name in ("dense.arff", "toy.svm", "toy.csv", "toy.tsv", "toy.npz", *PACKED):
        write(toy, folder / name)
    write(toy, folder / "meka.arff", format="meka")
    write(sparse, folder / "sparse.arff")
    write(sparse, folder / "sparse.npz")
    for name in ("dense.xml", "sparse.xml"):
        (folder / name).unlink()
    columns = dict(zip(names, rows.T, strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "toy.parquet")
    book = openpyxl.Workbook()
    for row in [names, *rows.tolist()]:
        book.active.append(row)
    book.save(folder / "toy.xlsx")
    variables = {"data": sp.csc_array(X), "target": toy.Y}
    scipy.io.savemat(folder / "toy.mat", variables)
    scipy.io.savemat(folder / "packed.mat", variables, do_compression=True)
    for name, data in {
        "nominal.arff": NOMINAL,
        "quoted.arff": QUOTED,
        "plain.svm": b"3 9 4\n0,3 1:0.5 8:2\n 2:1\n1 1:1 # x\n",
        "labels.xml": LABELS_XML,
        "table.csv": TABLE,
        "column.csv": b"day\r\n31.12.2021\r\n\r\n01.02.2021\r\n",
    }.items():
        (folder / name).write_bytes(data)
    return {
        name: Kind(name, (folder / name).read_bytes(), reader) for name, reader in READERS.items()
    }


def reads(**options: Any) -> Callable[[Path], Any]:
    return lambda path: read(path, **options)


def as_table(path: Path) -> None:
    """Read a table, infer its schema, and encode it, by the schema of another table as well."""
    table = read_table(path)
    TableEncoder().fit_schema(table, infer_schema(table))
    with contextlib.suppress(TableError):
        TableEncoder().fit({"day": ["2021-01-02", "2021-01-03"]}).transform(table)


PACKED = ("toy.csv.gz", "toy.csv.bz2", "toy.csv.zip")
READERS: dict[str, Callable[[Path], Any]] = {
    "dense.arff": reads(labels=-3),
    "sparse.arff": reads(labels=["l1", "l 2"]),
    "meka.arff": reads(),
    "nominal.arff": reads(labels=["y"]),
    "quoted.arff": reads(labels=["y"]),
    "toy.svm": reads(),
    "plain.svm": reads(),
    "toy.csv": reads(labels=-3),
    "toy.tsv": reads(label_prefix="l"),
    "toy.npz": reads(),
    "sparse.npz": reads(),
    "toy.parquet": reads(labels=-3),
    "toy.xlsx": reads(labels=-3),
    "toy.mat": reads(max_bytes=10**7),
    "packed.mat": reads(max_bytes=10**7),
    "labels.xml": lambda path: parse_label_xml(open_content(path)),
    "table.csv": as_table,
    "column.csv": as_table,
    **dict.fromkeys(PACKED, reads(labels=-3, max_bytes=10**6)),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to a few damages."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5, 8))):
        place = chance.randrange(len(changed) + 1)
        length = chance.choice((1, 2, 4, 8, 16, 32, 64, 128))
        match chance.choice(DAMAGES):
            case "flip" if place < len(changed):
                changed[place] ^= 1 << chance.randrange(8)
            case "byte" if place < len(changed):
                changed[place] = chance.choice((0, 1, 9, 10, 32, 127, 128, 255))
            case "cut":
                del changed[place : place + length]
            case "end":
                del changed[place:]
            case "token":
                token = chance.choice(TOKENS)
                changed[place : place + chance.choice((0, len(token)))] = token
            case "double":
                changed[place:place] = changed[place : place + length] * chance.choice((1, 2, 50))
            case "swap":
                lines = bytes(changed).split(b"\n")
                chance.shuffle(lines)
                changed[:] = b"\n".join(lines)
            case "noise":
                changed[:] = chance.randbytes(chance.randrange(200))
    return bytes(changed)


# Some of them more often than others.
DAMAGES = [
    "flip", "flip", "byte", "byte", "cut", "cut", "end", "token", "token", "token", "double",
    "swap", "noise",
]  # fmt: skip


def is_read(kind: Kind, data: bytes, folder: Path) -> bool:
    """Return whether an input is read, or refused with a documented error."""
    path = folder / kind.file
    path.write_bytes(data)
    try:
        kind.reader(path)
    except (DataFormatError, TableError):
        return False
    return True


def run(inputs: int, folder: Path) -> int:
    """Read damaged files; return the number of failures."""
    chance = random.Random(0)
    every = list(kinds(folder).values())
    failures = 0
    for number in range(inputs):
        kind = every[number % len(every)]
        data = damaged(kind.data, chance)
        began = time.perf_counter()
        problem = ""
        try:
            is_read(kind, data, folder)
        # The one thing that is being looked for: anything but the documented error.
        except BaseException:
            problem = traceback.format_exc()
        if problem or time.perf_counter() - began > SLOW:
            failures += 1
            kept = Path(tempfile.gettempdir()) / f"fuzz-{number}-{kind.file}"
            kept.write_bytes(data)
            print(f"{kept}: {problem or 'too slow'}")
    print(f"{inputs:,} inputs, {failures} failures")
    return failures


def main() -> None:
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        limit = 8 * 2**30  # an input that asks for more memory than this fails
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(run(int(sys.argv[1]), Path(folder)) > 0)


if __name__ == "__main__":
    main()
