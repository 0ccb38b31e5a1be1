"""Small files that ask for much memory: each must be read or refused within 1 GiB.

    python -m tests.datasets.hostile_files                     # all of them
    python -m tests.datasets.hostile_files "npz of names"      # some

Every file is under 1 MB and built to be as large as possible in memory: declared sizes that the
file does not hold, compressed zeros, many short rows, many distinct words.  Each is read in a
process of its own, whose peak of resident memory is measured.  More than the limit, an error that
is not the documented one, running out of memory, or more than a minute is a failure: it is named,
and makes the exit code 1.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import resource
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from imcc.datasets import DataFormatError, read
from imcc.tables import TableError, infer_schema, read_tags, tag_matrix
from imcc.tables._read import TableFile

MiB = 2**20
LIMIT = 1024 * MiB  # of resident memory, with Python and its libraries
SLOW = 60  # seconds of the processor; a file at the limit of what is read takes half of that
LARGEST = 10**6  # bytes of a file
TEXT = 16 * MiB - 2000  # what a small file of text may unpack to

# Name of the file, its content, and options for reading it.
Case = tuple[str, bytes, dict[str, Any]]
Y = {"labels": ["y"]}


def packed(name: str, head: bytes, row: bytes, options: dict[str, Any], end: bytes = b"") -> Case:
    """Return a compressed text that is as long as is read, of equal rows."""
    text = head + row * ((TEXT - len(head)) // len(row)) + end
    return name + ".gz", gzip.compress(text, 9), options


def arff(attributes: int, kind: bytes, rows: bytes, options: dict[str, Any] = Y) -> Case:
    """Return a file with many attributes, of which the last is a label, and many rows."""
    declared = b"".join(b"@attribute a%d %s\n" % (k, kind) for k in range(attributes))
    text = b"@relation r\n" + declared + b"@attribute y {0,1}\n@data\n" + rows
    return "t.arff", text, options


def npz(**arrays: np.ndarray) -> Case:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return "t.npz", buffer.getvalue(), {}


def npz_sparse(rows: int, columns: int) -> Case:
    parts = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1, 1])}
    X = {f"X_{part}": value for part, value in parts.items()}
    return npz(**X, X_shape=np.array((rows, columns)), Y=np.ones((2, 1)))


def npz_false_header() -> Case:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (500000000, 2), }\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    return "t.npz", zipped({"X.npy": array, "Y.npy": array}), {}


def npz_false_size() -> Case:
    """Return an archive that says of a member of 400 MiB that it has 100 bytes."""
    data = zipped({"X.npy": bytes(400 * MiB)})
    return "t.npz", data.replace(struct.pack("<I", 400 * MiB), struct.pack("<I", 100)), {}


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def zip_of_bzip2() -> Case:
    """Return an archive of 1.5 GiB of zeros in one stream of bzip2: about 1 kB."""
    packer = bz2.BZ2Compressor()
    piece = bytes(64 * MiB)
    data = b"".join([*(packer.compress(piece) for _ in range(24)), packer.flush()])
    # An archive of the packed bytes as they are, whose headers then name bzip2 as the method.
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("t.csv", data)
    content = bytearray(archive.getvalue())
    for place in (8, content.rindex(b"PK\x01\x02") + 10):
        content[place] = zipfile.ZIP_BZIP2
    return "t.csv.zip", bytes(content), Y


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name: bytes, rows: int, columns: int, is_sparse: bool = False) -> bytes:
    """Return a variable of zeros in MATLAB's format."""
    kind = 5 if is_sparse else 9
    body = element(6, struct.pack("<II", kind, 1)) + element(5, struct.pack("<ii", rows, columns))
    if is_sparse:
        starts = element(5, bytes(4 * (columns + 1)))
        return element(14, body + element(1, name) + element(5, b"") + starts + element(9, b""))
    return element(14, body + element(1, name) + element(2, bytes(rows * columns)))


def mat(*variables: bytes) -> Case:
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    data = [zlib.compress(variable, 9) for variable in variables]
    return "t.mat", header + b"".join(struct.pack("<II", 15, len(d)) + d for d in data), {}


def parquet(rows: int, **columns: Any) -> Case:
    buffer = io.BytesIO()
    table = pyarrow.table({**columns, "y": pyarrow.array(np.zeros(rows, bool))})
    pyarrow.parquet.write_table(table, buffer, compression="zstd", row_group_size=rows)
    return "t.parquet", buffer.getvalue(), Y


def repeated_tag(rows: int) -> Any:
    return pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["news"])


def words(count: int, *, names: bytes = b"x") -> bytes:
    return names + b",y\n" + b"".join(b"%da,1\n%da,0\n" % (k, k) for k in range(count))


ARFF = b"@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
NOMINAL = b"{" + b",".join(b"%d" % k for k in range(60_000)) + b"}"

CASES: dict[str, Callable[[], Case]] = {
    "zip of bzip2": zip_of_bzip2,
    "gz of zeros": lambda: ("t.csv.gz", gzip.compress(b"x,y\n" + bytes(300 * MiB), 9), Y),
    "bz2 of zeros": lambda: ("t.csv.bz2", bz2.compress(b"x,y\n" + bytes(300 * MiB)), Y),
    "gz csv of short rows": lambda: packed("t.csv", b"x,y\n", b"0,1\n", Y),
    "gz csv of words": lambda: packed("t.csv", b"x,y\n", b"a,1\nb,0\nc,1\n", Y),
    "gz csv of one wide row": lambda: packed("t.csv", b"1\n", b"0,", {"labels": -1}, b"1\n"),
    "gz csv of one cell": lambda: packed("t.csv", b"x,y\n", b"a", Y, b",1\n"),
    "gz csv of commas": lambda: packed("t.csv", b"", b",", {"labels": 1}),
    "gz csv of distinct words": lambda: ("t.csv.gz", gzip.compress(words(100_000), 9), Y),
    "gz arff of short rows": lambda: packed("t.arff", ARFF, b"0,1\n", Y),
    "gz arff of empty rows": lambda: packed("t.arff", ARFF, b"{}\n", Y),
    "gz arff of sparse rows": lambda: packed("t.arff", ARFF, b"{0 12,1 1}\n", Y),
    "gz arff of attributes": lambda: packed(
        "t.arff", b"@relation r\n", b"@attribute a real\n", {"labels": 1}, b"@data\n{}\n"
    ),
    "gz svmlight of short rows": lambda: packed("t.svm", b"", b"1 0:1\n", {}),
    "gz svmlight of labels": lambda: packed("t.svm", b"", b"1\n", {}),
    "gz svmlight of damaged entries": lambda: packed("t.svm", b"1 ", b": ", {}),
    "gz svmlight of one long row": lambda: packed("t.svm", b"1 ", b"1:1 ", {}),
    "gz svmlight of one line": lambda: packed("t.svm", b"1", b",1", {}, b" 0:1\n"),
    "svmlight labels declared": lambda: ("t.svm", b"1 5 500000000\n0 1:1\n", {}),
    "svmlight features declared": lambda: ("t.svm", b"1 500000000 5\n0 1:1\n", {}),
    "svmlight features used": lambda: ("t.svm", b"1 0:1 499999999:1\n", {}),
    "svmlight 2 million features": lambda: ("t.svm", b"1 0:1 2000000:1\n", {}),
    "svmlight 33 million labels": lambda: ("t.svm", b"1 5 33000000\n0 1:1\n", {}),
    "svmlight labels and rows": lambda: (
        "t.svm", b"".join(b"%d 0:1\n" % k for k in range(80_000)), {}
    ),
    "csv of words in two rows": lambda: ("t.csv", words(45_000), Y),
    "csv with a long name": lambda: ("t.csv", words(20_000, names=b"n" * 500_000), Y),
    "arff of labels and short rows": lambda: arff(
        20_000, b"{0,1}", b"{}\n" * 150_000, {"labels": -19_999}
    ),
    "arff of missing words": lambda: arff(1, NOMINAL, b"{0 ?}\n" * 90_000),
    "arff of yes and no": lambda: arff(15_000, b"{yes,no}", b"{}\n" * 150_000),
    "arff of nominal attributes": lambda: arff(15_000, b"{u,v,w}", b"{}\n" * 150_000),
    "npz of bytes": lambda: npz(X=np.zeros((10_000, 20_000), np.int8), Y=np.ones((10_000, 1))),
    "npz just read": lambda: npz(X=np.zeros((4000, 4000)), Y=np.ones((4000, 1), np.int8)),
    "npz of labels": lambda: npz(X=np.ones((6000, 1)), Y=np.zeros((6000, 20_000), np.int8)),
    "npz of names": lambda: npz(
        X=np.ones((2, 1)), Y=np.ones((2, 1)), feature_names=np.full(30_000_000, "a")
    ),
    "npz of sparse columns": lambda: npz_sparse(2, 500_000_000),
    "npz of sparse rows": lambda: npz_sparse(500_000_000, 2),
    "npz with a false header": npz_false_header,
    "npz with a false size": npz_false_size,
    "mat of bytes": lambda: mat(matrix(b"data", 10_000, 8000), matrix(b"target", 10_000, 1)),
    "mat of sparse columns": lambda: mat(
        matrix(b"data", 2, 100_000_000, is_sparse=True), matrix(b"target", 2, 1)
    ),
    "mat of zeros": lambda: mat(bytes(400 * MiB)),
    "parquet of rows": lambda: parquet(20_000_000, x=np.zeros(20_000_000)),
    "parquet just read": lambda: parquet(
        160_000, **{f"x{j}": pyarrow.array(np.zeros(160_000)) for j in range(99)}
    ),
    "parquet of a repeated tag": lambda: parquet(1_500_000, x=repeated_tag(1_500_000)),
    "parquet of distinct words": lambda: parquet(
        600_000, x=pyarrow.array([f"{k % 300_000}a" for k in range(600_000)])
    ),
}  # fmt: skip


def in_process(job: Callable[[], Any]) -> tuple[int, str, Any]:
    """Run a job in a process of its own; return its peak of memory, what went wrong or "", result.

    The result has to be JSON.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        said, result = "", None
        try:
            result = job()
        except BaseException:
            said = traceback.format_exc()[-2000:]
        os.write(writer, json.dumps([said, result]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status, usage = os.wait4(child, 0)
    said, result = json.loads(answer) if not status else (f"it ended with {status}", None)
    return usage.ru_maxrss * 1024, said, result


def take(path: Path, options: dict[str, Any]) -> None:
    """Read a file, and a Parquet file as a table with columns of tags as well.

    Only the documented errors may come out; a MemoryError is none of them.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (SLOW, SLOW))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # So that a failure does not take the machine with it; untouched memory counts too.
    resource.setrlimit(resource.RLIMIT_AS, (size + 3 * LIMIT, size + 3 * LIMIT))
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


def check(name: str, folder: Path) -> str:
    """Build a file and read it; return a line about it, which begins with FAILED if it did."""

    def build() -> list[Any]:
        file, data, options = CASES[name]()
        (folder / file).write_bytes(data)
        return [file, options]

    _, problem, built = in_process(build)  # what building takes is not to be measured
    if problem:
        return f"FAILED {name}: {problem}"
    file, options = built
    size = (folder / file).stat().st_size
    peak, problem, _ = in_process(lambda: take(folder / file, options))
    failed = "FAILED " if problem or peak > LIMIT or size > LARGEST else ""
    return f"{failed}{name}: {size:,} bytes, {peak / MiB:.0f} MiB {problem}"


def main() -> None:
    names = sys.argv[1:] or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for name in names:
            lines.append(check(name, Path(folder)))
            print(lines[-1], flush=True)
    failures = sum(line.startswith("FAILED") for line in lines)
    print(f"{failures} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
