"""Time and peak memory of training on more rows than one would like to have in memory.

    python -m imcc_paper.scale --csv results/scale.csv          100,000 to 1,000,000 rows
    python -m imcc_paper.scale --rows 100000                    a quick look

``python -m imcc_paper.reproduce`` makes the tables of docs/scale.md from the file.

Made-up rows (100 features, 20 labels) in a memory-mapped file, 64 clusters, Nyström with 1,000
components and the linear model.  Each fit runs in a process of its own, whose peak nothing else has
raised; afterwards, in the same process, the arithmetic that no method of the kind can avoid: for
Nyström the kernel values and their symmetric product, for the linear model X^T X and the passes of
k-means.  Both read the same file with the same number of threads.  The files are kept in
``--folder`` and used again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier
from imcc_paper import _measured
from imcc_paper._measured import Measurements, in_own_process, memory, seconds
from imcc_paper.places import RESULTS

N_FEATURES, N_LABELS, N_CLUSTERS, N_COMPONENTS = 100, 20, 64, 1000
LLOYD_PASSES = 5
BLOCK = 8192  # rows at a time in the arithmetic that fits are held against
ROWS = RESULTS / "scale.csv"
CASES = {
    "nystroem": {"approximation": "nystroem", "n_components": N_COMPONENTS},
    "linear": {"kernel": "linear"},
}


def make_rows(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in 64 clumps, and labels that depend on them."""
    shared = np.random.default_rng(0)
    middles = shared.normal(size=(64, N_FEATURES))
    weights = shared.normal(size=(N_FEATURES, N_LABELS))
    rng = np.random.default_rng([1, seed])
    X = middles[rng.integers(64, size=n)] + rng.normal(size=(n, N_FEATURES))
    Y = X @ weights + 10 * rng.normal(size=(n, N_LABELS)) > 8
    return X, Y.astype(np.int8)


def files(folder: Path, rows: int) -> tuple[Path, Path]:
    """Make the files of so many rows, unless they are there."""
    paths = folder / f"X{rows}.npy", folder / f"Y{rows}.npy"
    if not all(path.exists() for path in paths):
        folder.mkdir(parents=True, exist_ok=True)
        X = np.lib.format.open_memmap(folder / "X.part", "w+", float, (rows, N_FEATURES))
        Y = np.lib.format.open_memmap(folder / "Y.part", "w+", np.int8, (rows, N_LABELS))
        for seed, start in enumerate(range(0, rows, 10_000)):
            stop = min(start + 10_000, rows)
            X[start:stop], Y[start:stop] = make_rows(seed, stop - start)
        for array, part, path in zip((X, Y), ("X.part", "Y.part"), paths, strict=True):
            array.flush()
            (folder / part).rename(path)
    return paths


def in_blocks(X: np.ndarray):
    for start in range(0, len(X), BLOCK):
        yield X[start : start + BLOCK]


def symmetric_product_of_kernel_values(X: np.ndarray, clf: IMCCClassifier) -> None:
    landmarks = clf.landmarks_
    norms = (landmarks**2).sum(axis=1)
    total = np.zeros((len(landmarks), len(landmarks)))
    for rows in in_blocks(X):
        K = rows @ landmarks.T
        K *= -2
        K += (rows**2).sum(axis=1)[:, np.newaxis]
        K += norms
        K /= -2 * clf.width_**2
        np.exp(K, out=K)
        total += K.T @ K


def products_and_passes_of_k_means(X: np.ndarray, clf: IMCCClassifier) -> None:
    total = np.zeros((X.shape[1], X.shape[1]))
    for rows in in_blocks(X):
        total += rows.T @ rows
    centers = clf.cluster_centers_
    halves = (centers**2).sum(axis=1) / 2
    for _ in range(LLOYD_PASSES + 1):
        sums = np.zeros_like(centers)
        for rows in in_blocks(X):
            nearest = np.argmin(halves - rows @ centers.T, axis=1)
            order = np.argsort(nearest, kind="stable")
            edges = np.searchsorted(nearest[order], np.arange(len(centers)))
            used = np.bincount(nearest, minlength=len(centers)) > 0
            sums[used] += np.add.reduceat(rows[order], edges[used])


UNAVOIDABLE = {
    "nystroem": symmetric_product_of_kernel_values,
    "linear": products_and_passes_of_k_means,
}


def measure(case: str, folder: Path, rows: int, threads: int | None = None) -> dict[str, float]:
    X, Y = (np.load(path, mmap_mode="r") for path in files(folder, rows))
    clf = IMCCClassifier(N_CLUSTERS, lloyd_passes=LLOYD_PASSES, random_state=0, **CASES[case])
    with threadpool_limits(threads):
        fit, peak = seconds(lambda: clf.fit(X, Y)), memory("VmHWM") / 2**20
        arithmetic = seconds(lambda: UNAVOIDABLE[case](X, clf))
    return {"fit_seconds": fit, "arithmetic_seconds": arithmetic, "peak_mib": peak}


def bench_files(folder: Path, counts: list[int], threads: int, found: Measurements) -> None:
    """Time fits of rows in a file, each in a process of its own."""
    for case in CASES:
        for rows in counts:
            files(folder, rows)
            values = in_own_process(measure, case, folder, rows, threads)
            found.add("files", f"{case} {rows}", **values)


def files_table(found: Measurements) -> str:
    """Lay out fits of rows in a file."""
    rows = []
    for name in found.cases("files"):
        case, _, count = name.partition(" ")
        values = found.of("files", name)
        fit, arithmetic = values["fit_seconds"], values["arithmetic_seconds"]
        times = [f"{fit:.1f} s", f"{arithmetic:.1f} s", f"{fit / arithmetic:.2f}"]
        rows.append([case, f"{int(count):,}", *times, f"{values['peak_mib']:.0f} MiB"])
    header = ["model", "rows", "fit", "unavoidable arithmetic", "ratio", "peak memory"]
    return _measured.table(header, rows)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/scale.md, and the number of the front pages."""
    cores, threads = (found.where("files", column) for column in ("cores", "threads"))
    million = found.of("files", "nystroem 1000000")["fit_seconds"]
    return {
        "scale-machine": f"{cores} cores ({threads} threads)",
        "scale": files_table(found),
        "million-rows": f"{million:.1f} s on {cores} cores (one Nyström model, not the ensemble)",
    }


def main() -> None:
    parser = _measured.make_parser(__doc__, "scale")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "imcc_scale")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    found = Measurements()
    with threadpool_limits(options.threads):  # which the rows say
        bench_files(options.folder, options.rows, options.threads, found)
    print(files_table(found))
    found.save(options.csv)


if __name__ == "__main__":
    main()
