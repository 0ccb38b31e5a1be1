"""How much memory reading and encoding a table takes, against the size of its file.

    python -m imcc_paper.table_memory [--rows 100000] [--columns 50]
    python -m imcc_paper.table_memory --rows 20000 --text 200

A table of numbers and categories, half and half, or of one column of text, is written as CSV, read
and encoded in a process of its own; what that process takes on top of its imports is compared with
the file.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path

import numpy as np

from imcc.tables import TableEncoder, read_table
from imcc_paper._measured import in_own_process, memory


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


def measure(n_rows: int, n_columns: int, text: int = 0) -> dict[str, float]:
    """Return the size of the file in bytes, and the memory of fit and transform against it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        if text:
            write_text(path, n_rows, text)
        else:
            write(path, n_rows, n_columns)
        size = path.stat().st_size
        before, fitted, after, n_features = in_own_process(encode, path)
    return {
        "size": size,
        "fit": (fitted - before) / size,
        "transform": (after - before) / size,
        "n_features": n_features,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--text", type=int, default=0, help="one column of texts of this length")
    options = parser.parse_args()
    found = measure(options.rows, options.columns, options.text)
    columns = "text" if options.text else f"{options.columns} columns"
    print(f"file: {found['size'] / 1e6:.1f} MB, {options.rows:,} rows x {columns}")
    print(f"read, fitted and encoded into {found['n_features']:.0f} features: {found['fit']:.2f} x")
    print(f"the most, when it is then read and encoded again: {found['transform']:.2f} x the file")


if __name__ == "__main__":
    main()
