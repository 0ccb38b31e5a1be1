"""Small files that ask for much memory: each must be read or refused within 1 GiB.

    python -m tests.datasets.hostile_files --seconds 60 --seed 0

Every file is under 1 MB.  Some are built to be as large as possible in memory (declared sizes that
the file does not hold, compressed zeros, many short rows, many distinct words); the others are
valid files that were damaged (:mod:`tests.datasets.fuzz_readers`).  Each is read in a process of
its own, or a few damaged ones together, whose peak of resident memory is measured.  More than the
limit, an error that is not the documented one, running out of memory, or more than some seconds is
a failure: it is named, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import os
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from imcc.datasets import DataFormatError, read
from imcc.tables import TableError, infer_schema, read_tags, tag_matrix
from imcc.tables._read import TableFile
from tests.datasets.fuzz_readers import damaged, seeds

MiB = 2**20
LIMIT = 1024 * MiB  # of resident memory, with Python and its libraries
SLOW = 60  # seconds of the processor; a file at the limit of what is read takes a few
LARGEST = 10**6  # bytes of a file

# Those that take more than a few seconds to build or to read.
LONG = {
    "zip bzip2",
    "gz csv of words",
    "gz csv of short rows",
    "gz csv of distinct words",
    "gz csv of one wide row",
    "gz arff of short rows",
    "gz arff of sparse rows",
    "gz arff of attributes",
    "gz svmlight of short rows",
    "gz svmlight of labels",
    "gz svmlight of one line",
    "gz arff of one attribute",
    "npz of names",
    "parquet distinct words",
    "parquet repeated tag",
}

Case = tuple[str, bytes, dict[str, Any]]


def cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Yield the name of each built file and what builds it: its name, bytes and options."""
    just_read = 16 * MiB - 2000  # what a small file of text may unpack to
    y = {"labels": ["y"]}

    def packed(name: str, text: Callable[[], bytes], options: dict[str, Any]) -> Callable[[], Case]:
        return lambda: (name + ".gz", gzip.compress(text(), 9), options)

    def filled(head: bytes, row: bytes, end: bytes = b"") -> Callable[[], bytes]:
        return lambda: head + row * ((just_read - len(head)) // len(row)) + end

    arff = b"@relation r\n@attribute x numeric\n@attribute y {0,1}\n"
    yield "zip bzip2", _zip_bzip2
    yield "gz zeros", lambda: ("t.csv.gz", gzip.compress(b"x,y\n" + bytes(300 * MiB), 9), y)
    yield "bz2 zeros", lambda: ("t.csv.bz2", bz2.compress(b"x,y\n" + bytes(300 * MiB)), y)
    yield "gz csv of short rows", packed("t.csv", filled(b"x,y\n", b"0,1\n"), y)
    yield "gz csv of one wide row", packed(
        "t.csv", lambda: (b"0," * (just_read // 4) + b"1\n") * 2,
        {"labels": -1, "header": False},
    )  # fmt: skip
    yield "gz csv of words", packed("t.csv", filled(b"x,y\n", b"a,1\nb,0\nc,1\n"), y)
    yield (
        "gz csv of distinct words",
        packed(
            "t.csv",
            lambda: b"x,y\n" + b"".join(b"%x,1\n" % (k % 2**20) for k in range(200_000)),
            y,
        ),
    )
    yield (
        "gz csv of one cell",
        packed("t.csv", lambda: b"x,y\n" + b"a" * (just_read - 10) + b",1\n", y),
    )
    yield "gz csv of commas", packed("t.csv", lambda: b"," * just_read, {"labels": 1})
    yield "gz arff of short rows", packed("t.arff", filled(arff + b"@data\n", b"0,1\n"), y)
    yield "gz arff of one attribute", packed("t.arff", filled(arff + b"@data\n", b"{}\n"), y)
    yield "gz arff of sparse rows", packed("t.arff", filled(arff + b"@data\n", b"{0 12,1 1}\n"), y)
    yield (
        "gz arff of attributes",
        packed(
            "t.arff",
            filled(b"@relation r\n", b"@attribute a real\n", b"@data\n{}\n"),
            {"labels": 1},
        ),
    )
    yield "gz svmlight of short rows", packed("t.svm", filled(b"", b"1 0:1\n"), {})
    yield "gz svmlight of labels", packed("t.svm", filled(b"", b"1\n"), {})
    yield (
        "gz svmlight of one line",
        packed("t.svm", lambda: b"1," * (just_read // 2) + b"1 0:1\n", {}),
    )
    yield "svmlight labels declared", lambda: ("t.svm", b"1 5 500000000\n0 1:1\n", {})
    yield "svmlight features declared", lambda: ("t.svm", b"1 500000000 5\n0 1:1\n", {})
    yield "svmlight features used", lambda: ("t.svm", b"1 0:1 499999999:1\n", {})
    yield "svmlight 2 million features", lambda: ("t.svm", b"1 0:1 2000000:1\n", {})
    yield (
        "svmlight labels and rows",
        lambda: (
            "t.svm",
            b"".join(b"%d 0:1\n" % k for k in range(80_000)),
            {},
        ),
    )
    yield "svmlight 33 million labels", lambda: ("t.svm", b"1 5 33000000\n0 1:1\n", {})
    yield "csv half of distinct words", lambda: ("t.csv", _half_distinct(), y)
    yield (
        "csv of a few thousand words",
        lambda: (
            "t.csv",
            b"x,y\n" + b"".join(b"w%d,1\n" % (k % 5800) for k in range(5900)),
            y,
        ),
    )
    yield (
        "csv with a long name",
        lambda: (
            "t.csv",
            b"n" * 500_000 + b",y\n" + b"".join(b"%da,1\n%da,0\n" % (k, k) for k in range(20_000)),
            y,
        ),
    )
    yield "arff of labels and short rows", lambda: (
        "t.arff",
        b"@relation r\n"
        + b"".join(b"@attribute a%d {0,1}\n" % k for k in range(20_000))
        + b"@data\n" + b"{}\n" * 150_000,
        {"labels": -19_999},
    )  # fmt: skip
    yield (
        "arff of missing words",
        lambda: (
            "t.arff",
            b"@relation r\n@attribute x {" + b",".join(b"%d" % k for k in range(60_000)) + b"}\n"
            b"@attribute y {0,1}\n@data\n" + b"{0 ?}\n" * 90_000,
            y,
        ),
    )
    yield "arff of yes and no", lambda: (
        "t.arff",
        b"@relation r\n"
        + b"".join(b"@attribute a%d {yes,no}\n" % k for k in range(15_000))
        + b"@attribute y {0,1}\n@data\n" + b"{}\n" * 150_000,
        y,
    )  # fmt: skip
    yield "arff of nominal attributes", lambda: (
        "t.arff",
        b"@relation r\n"
        + b"".join(b"@attribute a%d {u,v,w}\n" % k for k in range(15_000))
        + b"@attribute y {0,1}\n@data\n" + b"{}\n" * 150_000,
        y,
    )  # fmt: skip
    yield (
        "npz of bytes",
        lambda: _npz(X=np.zeros((10_000, 20_000), np.int8), Y=np.ones((10_000, 1))),
    )
    yield "npz just read", lambda: _npz(X=np.zeros((4000, 4000)), Y=np.ones((4000, 1), np.int8))
    yield "npz of labels", lambda: _npz(X=np.ones((6000, 1)), Y=np.zeros((6000, 20_000), np.int8))
    yield (
        "npz of names",
        lambda: _npz(X=np.ones((2, 1)), Y=np.ones((2, 1)), feature_names=np.full(30_000_000, "a")),
    )
    yield "npz sparse columns", lambda: _npz_sparse((2, 500_000_000))
    yield "npz sparse rows", lambda: _npz_sparse((500_000_000, 2))
    yield "npz false header", _npz_false_header
    yield "npz false size", _npz_false_size
    yield (
        "mat of bytes",
        lambda: _mat_5(_dense_mat(b"data", 10_000, 8000), _dense_mat(b"target", 10_000, 1)),
    )
    yield (
        "mat sparse columns",
        lambda: _mat_5(_sparse_mat(b"data", 2, 100_000_000), _dense_mat(b"target", 2, 1)),
    )
    yield "mat of zeros", lambda: _mat_5(bytes(400 * MiB))
    yield (
        "parquet rows",
        lambda: _parquet(
            {
                "x": pyarrow.array(np.zeros(20_000_000)),
                "y": pyarrow.array(np.zeros(20_000_000, bool)),
            }
        ),
    )
    yield (
        "parquet just read",
        lambda: _parquet(
            {f"x{j}": pyarrow.array(np.zeros(160_000)) for j in range(99)}
            | {"y": pyarrow.array(np.zeros(160_000, bool))}
        ),
    )
    yield (
        "parquet repeated tag",
        lambda: _parquet({"x": _repeated("news", 1_500_000), "y": _falses(1_500_000)}),
    )
    yield "parquet distinct words", lambda: _parquet(
        {"x": pyarrow.array([f"{k % 300_000}a" for k in range(600_000)]),
         "y": pyarrow.array(np.zeros(600_000, bool))}
    )  # fmt: skip


def _zip_bzip2() -> Case:
    return "t.csv.zip", _zipped("t.csv", _bzip2_zeros(), 8 * 2**30 % 2**32), {"labels": ["y"]}


def _bzip2_zeros() -> bytes:
    """Return 1.5 GiB of zeros in one stream of bzip2: about 1 kB."""
    packer = bz2.BZ2Compressor()
    piece = bytes(64 * MiB)
    return b"".join([*(packer.compress(piece) for _ in range(24)), packer.flush()])


def _zipped(name: str, packed: bytes, claimed: int) -> bytes:
    """Return an archive of one member that is packed with bzip2 already."""
    local = struct.pack(
        "<4s5H3I2H", b"PK\x03\x04", 46, 0, 12, 0, 0, 0, len(packed), claimed, len(name), 0
    )
    central = struct.pack(
        "<4s6H3I5H2I",
        *(b"PK\x01\x02", 46, 46, 0, 12, 0, 0, 0, len(packed), claimed, len(name)),
        *(0, 0, 0, 0, 0, 0),
    )
    body = local + name.encode() + packed
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(central) + len(name), len(body), 0)
    return body + central + name.encode() + end


def _half_distinct() -> bytes:
    words = [b"%x" % k for k in range(60_000)]
    return b"x,y\n" + b"".join(word + b",1\n" + word + b",0\n" for word in words)


def _npz(**arrays: np.ndarray) -> Case:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return "t.npz", buffer.getvalue(), {}


def _npz_sparse(shape: tuple[int, int]) -> Case:
    rows = min(shape[0], 2)
    indptr = np.zeros(shape[0] + 1 if shape[0] < 100 else 3, np.int64)
    indptr[-1] = 1
    return _npz(
        X_data=np.ones(1), X_indices=np.zeros(1, np.int64), X_indptr=indptr,
        X_shape=np.array(shape),
        Y_data=np.ones(1), Y_indices=np.zeros(1, np.int64), Y_indptr=indptr,
        Y_shape=np.array((shape[0], 500_000_000 if rows == 2 else 1)),
    )  # fmt: skip


def _npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def _npz_false_header() -> Case:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key in ("X", "Y"):
            header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (500000000, 2), }\n"
            archive.writestr(f"{key}.npy", _npy(header))
    return "t.npz", buffer.getvalue(), {}


def _npz_false_size() -> Case:
    """Return an archive that says of a member of 400 MiB that it has 100 bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(400 * MiB))
    data = buffer.getvalue()
    return "t.npz", data.replace(struct.pack("<I", 400 * MiB), struct.pack("<I", 100)), {}


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _dense_mat(name: bytes, rows: int, columns: int) -> bytes:
    body = _element(6, struct.pack("<II", 9, 0)) + _element(5, struct.pack("<ii", rows, columns))
    return _element(14, body + _element(1, name) + _element(2, bytes(rows * columns)))


def _sparse_mat(name: bytes, rows: int, columns: int) -> bytes:
    body = _element(6, struct.pack("<II", 5, 1)) + _element(5, struct.pack("<ii", rows, columns))
    starts = _element(5, bytes(4 * (columns + 1)))
    return _element(14, body + _element(1, name) + _element(5, b"") + starts + _element(9, b""))


def _mat_5(*variables: bytes) -> Case:
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    packed = [zlib.compress(variable, 9) for variable in variables]
    body = b"".join(struct.pack("<II", 15, len(data)) + data for data in packed)
    return "t.mat", header + body, {}


def _parquet(columns: dict[str, Any], **options: Any) -> Case:
    buffer = io.BytesIO()
    table = pyarrow.table(columns)
    options |= {"compression": "zstd", "row_group_size": len(table)}
    pyarrow.parquet.write_table(table, buffer, **options)
    return "t.parquet", buffer.getvalue(), {"labels": ["y"]}


def _falses(count: int) -> Any:
    return pyarrow.array(np.zeros(count, bool))


def _repeated(word: str, count: int) -> Any:
    return pyarrow.DictionaryArray.from_arrays(np.zeros(count, np.int32), [word])


def peak_of(job: Callable[[], None]) -> tuple[int, str]:
    """Run a job in a process of its own; return its peak of memory and "" or what went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        said = ""
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SLOW, SLOW))
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            # So that a failure does not take the machine with it; untouched memory counts too.
            resource.setrlimit(resource.RLIMIT_AS, (size + 3 * LIMIT, size + 3 * LIMIT))
            job()
        except BaseException:
            said = traceback.format_exc()[-2000:]
        os.write(writer, said.encode("utf-8", "replace"))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8")
    _, status, usage = os.wait4(child, 0)
    if status:
        said = f"it ended with the status {status}, or took more than {SLOW} s"
    return usage.ru_maxrss * 1024, said


def take(path: Path, options: dict[str, Any]) -> None:
    """Read a file, as a whole and as a table with its columns of tags.

    Only the documented errors may come out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in (read, _as_table):
            try:
                way(path, **options)
            except (DataFormatError, TableError) as error:
                if isinstance(error.__cause__, MemoryError):
                    raise AssertionError("it was refused only when the memory was full") from error


def _as_table(path: Path, **_options: Any) -> None:
    if path.suffix == ".parquet":
        table = TableFile(path).read()
        for name in table.column_names:
            infer_schema(table.select([name]))
            tag_matrix(read_tags(table[name]))


def _built(build: Callable[[], Case], folder: Path) -> tuple[str, dict[str, Any]]:
    """Build a file in a process of its own: what that takes is not to be measured."""
    child = os.fork()
    if child == 0:
        try:
            file, data, options = build()
            (folder / file).write_bytes(data)
            (folder / "case.json").write_text(json.dumps([file, options]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    file, options = json.loads((folder / "case.json").read_text())
    (folder / "case.json").unlink()
    return file, options


def run_built(folder: Path, names: set[str] | None = None) -> list[str]:
    """Read every built file; return what went wrong."""
    failures = []
    built = dict(cases())
    if unknown := (names or set()) - set(built):
        raise ValueError(f"there are no built files {sorted(unknown)}")
    for name, build in built.items():
        if names is not None and name not in names:
            continue
        file, options = _built(build, folder)
        size = (folder / file).stat().st_size
        if size > LARGEST:
            failures.append(f"{name}: the file is too large to count, {size:,} bytes")
            continue
        began = time.perf_counter()
        peak, said = peak_of(lambda file=file, options=options: take(folder / file, options))
        took = time.perf_counter() - began
        print(f"{name:<32}{size:>10,} bytes {peak / MiB:>6.0f} MiB {took:>6.1f} s {said[:50]}")
        if said or peak > LIMIT:
            failures.append(f"{name}: {peak / MiB:.0f} MiB {said}")
    return failures


def run_damaged(folder: Path, seconds: float, seed: int, together: int = 100) -> list[str]:
    """Read damaged files for some time; return what went wrong."""
    chance = random.Random(seed)
    kinds = list(seeds(folder).items())
    failures = []
    stop = time.monotonic() + seconds
    count = 0
    while time.monotonic() < stop:
        batch = []
        for _ in range(together):
            kind, (name, valid, options) = chance.choice(kinds)
            # The limits that callers set are not used: it is the defaults that are looked at.
            options = {key: value for key, value in options.items() if key != "max_bytes"}
            batch.append((kind, name, damaged(valid, chance), options))

        def job(batch: list[tuple[str, str, bytes, dict[str, Any]]] = batch) -> None:
            for kind, name, data, options in batch:
                (folder / name).write_bytes(data)
                try:
                    take(folder / name, options)
                except BaseException as error:
                    raise AssertionError(f"{kind}: {data[:300]!r}") from error

        peak, said = peak_of(job)
        count += together
        if said or peak > LIMIT:
            failures.append(f"damaged files from {count - together}: {peak / MiB:.0f} MiB {said}")
    print(f"{count:,} damaged files")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("names", nargs="*", help="which built files; all unless given")
    arguments = parser.parse_args()
    names = set(arguments.names) or None
    if arguments.quick:
        names = {name for name, _ in cases()} - LONG
    with tempfile.TemporaryDirectory() as folder:
        failures = run_built(Path(folder), names)
        if not arguments.names:
            failures += run_damaged(Path(folder), arguments.seconds, arguments.seed)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
