"""How much memory reading and encoding a table takes, against the size of its file.

    python -m imcc_paper.table_memory --csv results/table_memory.csv

A table of numbers and categories, half and half, and one of a column of text are written as CSV,
read and encoded, each in a process of its own; what that process takes on top of its imports is
compared with the file.

``python -m imcc_paper.reproduce`` shows the numbers on docs/tables.md.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import numpy as np

from imcc.tables import TableEncoder, read_table
from imcc_paper._measured import Measurements, in_own_process, make_parser, memory, paragraph

#: Rows and columns of numbers and categories; rows and characters of texts.
MIXED, TEXTS = (100_000, 50), (10_000, 200)


def encode(path: Path) -> tuple[int, int, int, int]:
    """Read and encode a table twice; return the peaks before, between and after, and the width."""
    for name in ("pandas", "pyarrow.compute", "pyarrow.csv"):  # so that only the work is counted
        importlib.import_module(name)
    TableEncoder().fit_transform({"a": np.arange(30.0) % 7, "b": ["x", "y", "z"] * 10})
    before = memory("VmHWM")
    encoder = TableEncoder()
    features = encoder.fit_transform(read_table(path))
    fitted, n_features = memory("VmHWM"), features.shape[1]
    del features
    again = encoder.transform(read_table(path))
    assert again.shape[1] == n_features
    return before, fitted, memory("VmHWM"), n_features


def write(path: Path, n_rows: int, n_columns: int, seed: int = 0) -> None:
    """Write a table of numbers and categories, half and half."""
    rng = np.random.default_rng(seed)
    n_numbers = n_columns // 2
    names = [f"number{j}" for j in range(n_numbers)]
    names += [f"category{j}" for j in range(n_columns - n_numbers)]
    words = np.array([f"value_{k:02d}" for k in range(20)])
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, n_rows, 1000):
            count = min(1000, n_rows - start)
            numbers = rng.normal(scale=100, size=(count, n_numbers))
            picks = words[rng.integers(len(words), size=(count, n_columns - n_numbers))]
            for row, cells in zip(numbers, picks, strict=True):
                file.write(",".join([*(f"{v:.4f}" for v in row), *cells]) + "\n")


def write_text(path: Path, n_rows: int, length: int, seed: int = 0) -> None:
    """Write a column of texts of about so many characters, of words by Zipf's law."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 12))) for _ in range(30_000)]
    chances = 1.0 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    with path.open("w", encoding="utf-8") as file:
        file.write("text\n")
        for start in range(0, n_rows, 1000):
            size = (min(1000, n_rows - start), max(length // 7, 3))
            for picks in rng.choice(len(words), size, p=chances):
                file.write(" ".join(words[k] for k in picks) + "\n")


def measure(found: Measurements) -> None:
    """Add the sizes of both files, and the memory of fit and transform."""
    with tempfile.TemporaryDirectory() as folder:
        for name, make, shape in (("mixed", write, MIXED), ("text", write_text, TEXTS)):
            path = Path(folder, f"{name}.csv")
            make(path, *shape)
            before, fitted, after, n_features = in_own_process(encode, path)
            found.add(
                "memory",
                name,
                rows=shape[0],
                file_bytes=path.stat().st_size,
                fit_bytes=fitted - before,
                most_bytes=after - before,
                features=n_features,
            )


def blocks(found: Measurements) -> dict[str, str]:
    """Return the sentences of docs/tables.md."""
    mixed, text = found.of("memory", "mixed"), found.of("memory", "text")
    half = MIXED[1] // 2
    return {
        "table-memory": paragraph(
            f"{mixed['rows']:,.0f} rows of {half} numbers and {half} categories "
            f"({mixed['file_bytes'] / 1e6:.0f} MB) are read, fitted and encoded in "
            f"{mixed['most_bytes'] / mixed['file_bytes']:.1f} times the size of the file; "
            f"{text['rows']:,.0f} texts of random words ({text['file_bytes'] / 1e6:.1f} MB) took "
            f"{text['most_bytes'] / text['file_bytes']:.0f} times the size of the file, with "
            f"{text['features']:,.0f} features (`python -m imcc_paper.table_memory`)."
        )
    }


def main() -> None:
    """Measure, and write the numbers if there is a file for them."""
    asked = make_parser(__doc__, "table_memory").parse_args()
    found = Measurements()
    measure(found)
    print(blocks(found)["table-memory"])
    found.save(asked.csv)


if __name__ == "__main__":
    main()
