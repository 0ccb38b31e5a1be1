"""Time the reading of a sparse ARFF file of bibtex's size: 7395 rows, 1836 features, 159 labels.

    python -m benchmarks.read_speed

The file is made on the spot, with as many entries a row as bibtex has, so nothing needs to be
downloaded.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from imcc.datasets import Dataset, read, write

ROWS, FEATURES, LABELS = 7395, 1836, 159
FEATURES_A_ROW, LABELS_A_ROW = 68.7, 2.4


def bibtex_sized() -> Dataset:
    rng = np.random.RandomState(0)
    X = sp.csr_array(rng.rand(ROWS, FEATURES) < FEATURES_A_ROW / FEATURES, dtype=float)
    Y = rng.rand(ROWS, LABELS) < LABELS_A_ROW / LABELS
    return Dataset(X, Y, name="bibtex-sized")


def best_time(path: Path, repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        read(path)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    dataset = bibtex_sized()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bibtex.arff", "bibtex.arff.gz", "bibtex.svm", "bibtex.npz", "bibtex.parquet"):
            path = Path(folder) / name
            write(dataset, path)
            seconds = best_time(path, arguments.repetitions)
            print(f"{name:<16}{path.stat().st_size / 1e6:>8.1f} MB{seconds:>8.2f} s")


if __name__ == "__main__":
    main()
