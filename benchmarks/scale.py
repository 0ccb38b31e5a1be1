"""Time and peak memory of training on more rows than one would like to have in memory.

    python -m benchmarks.scale                      100,000, 300,000 and 1,000,000 rows
    python -m benchmarks.scale --rows 100000        a quick look
    python -m benchmarks.scale --dask               one worker against two
    python -m benchmarks.scale --estimate 36        10^8 rows x 10^3 features on 100 machines, on
                                                    paper, at so many GFlop/s a core

Made-up rows (100 features, 20 labels) in a memory-mapped file, 64 clusters, Nyström with 1,000
components and the linear model.  Each fit runs in a process of its own, whose peak nothing else has
raised; afterwards, in the same process, the arithmetic that no method of the kind can avoid: for
Nyström the kernel values and their symmetric product, for the linear model X^T X and the passes of
k-means.  Both read the same file with the same number of threads.  The files are kept in
``--folder`` and used again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier

N_FEATURES, N_LABELS, N_CLUSTERS, N_COMPONENTS = 100, 20, 64, 1000
LLOYD_PASSES = 5
BLOCK = 8192  # rows at a time in the arithmetic that fits are held against
BLOCK_ROWS = 62_500  # of a Dask block, 50 MB
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


def blocks(X: np.ndarray):
    for start in range(0, len(X), BLOCK):
        yield X[start : start + BLOCK]


def symmetric_product_of_kernel_values(X: np.ndarray, clf: IMCCClassifier) -> None:
    landmarks = clf.landmarks_
    norms = (landmarks**2).sum(axis=1)
    total = np.zeros((len(landmarks), len(landmarks)))
    for rows in blocks(X):
        K = rows @ landmarks.T
        K *= -2
        K += (rows**2).sum(axis=1)[:, np.newaxis]
        K += norms
        K /= -2 * clf.width_**2
        np.exp(K, out=K)
        total += K.T @ K


def products_and_passes_of_k_means(X: np.ndarray, clf: IMCCClassifier) -> None:
    total = np.zeros((X.shape[1], X.shape[1]))
    for rows in blocks(X):
        total += rows.T @ rows
    centers = clf.cluster_centers_
    halves = (centers**2).sum(axis=1) / 2
    for _ in range(LLOYD_PASSES + 1):
        sums = np.zeros_like(centers)
        for rows in blocks(X):
            nearest = np.argmin(halves - rows @ centers.T, axis=1)
            order = np.argsort(nearest, kind="stable")
            edges = np.searchsorted(nearest[order], np.arange(len(centers)))
            used = np.bincount(nearest, minlength=len(centers)) > 0
            sums[used] += np.add.reduceat(rows[order], edges[used])


UNAVOIDABLE = {
    "nystroem": symmetric_product_of_kernel_values,
    "linear": products_and_passes_of_k_means,
}


def peak_mib() -> float:
    """Return the largest resident size so far, mapped parts of files included (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(case: str, folder: Path, rows: int) -> dict[str, float]:
    X, Y = (np.load(path, mmap_mode="r") for path in files(folder, rows))
    clf = IMCCClassifier(N_CLUSTERS, lloyd_passes=LLOYD_PASSES, random_state=0, **CASES[case])
    start = time.perf_counter()
    clf.fit(X, Y)
    fit, peak = time.perf_counter() - start, peak_mib()
    start = time.perf_counter()
    UNAVOIDABLE[case](X, clf)
    return {"fit": fit, "unavoidable": time.perf_counter() - start, "peak": peak}


def in_own_process(case: str, folder: Path, rows: int, threads: int) -> dict[str, float]:
    command = [sys.executable, "-m", f"{__package__}.scale", "--one", case]
    command += ["--folder", str(folder), "--rows", str(rows), "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_files(folder: Path, counts: list[int], threads: int) -> None:
    print("| model | rows | fit | unavoidable arithmetic | ratio | peak memory |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        for rows in counts:
            files(folder, rows)
            found = in_own_process(case, folder, rows, threads)
            print(
                f"| {case} | {rows:,} | {found['fit']:.1f} s | {found['unavoidable']:.1f} s | "
                f"{found['fit'] / found['unavoidable']:.2f} | {found['peak']:.0f} MiB |",
                flush=True,
            )


def load_block(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def bench_dask(folder: Path, counts: list[int]) -> None:
    """Time fits on local clusters of one and of two processes with a thread each."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    print("| model | rows | one worker | two workers | speed-up |")
    print("| --- | --- | --- | --- | --- |")
    for case, parameters in CASES.items():
        for rows in counts:
            paths = [str(path) for path in files(folder, rows)]
            edges = list(range(0, rows, BLOCK_ROWS))
            arrays = [
                da.concatenate(
                    [
                        da.from_delayed(
                            dask.delayed(load_block)(path, a, min(a + BLOCK_ROWS, rows)),
                            (min(a + BLOCK_ROWS, rows) - a, width),
                            dtype,
                        )
                        for a in edges
                    ]
                )
                for path, width, dtype in zip(
                    paths, (N_FEATURES, N_LABELS), (float, np.int8), strict=True
                )
            ]
            times = []
            for workers in (1, 2):
                with (
                    LocalCluster(
                        n_workers=workers, threads_per_worker=1, dashboard_address=":0"
                    ) as cluster,
                    Client(cluster),
                ):
                    clf = IMCCClassifier(
                        N_CLUSTERS, lloyd_passes=LLOYD_PASSES, random_state=0, **parameters
                    )
                    start = time.perf_counter()
                    clf.fit(*arrays)
                    times.append(time.perf_counter() - start)
            print(
                f"| {case} | {rows:,} | {times[0]:.1f} s | {times[1]:.1f} s | "
                f"{times[0] / times[1]:.2f} |",
                flush=True,
            )


def estimate(rate: float) -> None:
    """Print what 10^8 rows of 10^3 features cost on 100 machines with 8 cores each."""
    n, d, q, c, m = 1e8, 1e3, N_LABELS, N_CLUSTERS, N_COMPONENTS
    machines, cores, lloyd = 100, 8, 3
    passes = lloyd + 2
    kernel, product, labels = 2 * n * d * m, n * m * m, 2 * n * m * q
    assignment = 2 * n * d * c * (lloyd + 1)
    flops = kernel + product + labels + assignment
    block_rows = 50e6 / (8 * d)
    sums = 8 * (m * m + m * q + c * (m + d + q))
    each = n * d * 8 / machines
    moved = n / block_rows * sums / machines
    per_thread = 50e6 + 2 * 8 * 2**23 + 9 * sums
    lines = {
        "rows": f"{n * d * 8 / 1e9:.0f} GB in float64; {each / 1e9:.0f} GB a machine",
        "passes": f"{passes}: a look, {lloyd} Lloyd steps, the sums",
        "arithmetic": (
            f"{flops:.1e} flop (kernel values {kernel / flops:.0%}, products "
            f"{product / flops:.0%}, clusters {assignment / flops:.0%}); "
            f"{flops / machines / cores / rate:.0f} s at {rate / 1e9:.0f} GFlop/s a core"
        ),
        "read": (
            f"{each / 1e9:.0f} GB a machine and pass: {each / 2e9:.0f} s at 2 GB/s (local disk), "
            f"{each / 2e8:.0f} s at 200 MB/s (object store), once if it is persisted"
        ),
        "moved between machines": (
            f"{sums / 1e6:.1f} MB of sums a block of 50 MB, at most "
            f"{moved / 1e9:.1f} GB a machine: {moved / 1.25e9:.1f} s at 10 Gbit/s"
        ),
        "moved to the client": (
            f"{10 * m * d * 8 / 1e6:.0f} MB of sample, {sums / 1e6:.1f} MB of sums, "
            f"{8 * c * d / 1e6:.1f} MB a Lloyd step"
        ),
        "memory": (
            f"{per_thread / 1e6:.0f} MB a thread, {cores * per_thread / 1e9:.1f} GB a machine, "
            f"and {each / 1e9:.0f} GB more if the rows are persisted"
        ),
    }
    print("| what | how much |\n| --- | --- |")
    for what, how_much in lines.items():
        print(f"| {what} | {how_much} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "imcc_scale")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dask", action="store_true", help="one worker against two")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--estimate", type=float, metavar="GFLOPS", help="on paper, for a cluster")
    options = parser.parse_args()
    if options.estimate:
        estimate(1e9 * options.estimate)
        return
    if options.one:
        with threadpool_limits(options.threads):
            print(json.dumps(measure(options.one, options.folder, options.rows[0])))
        return
    print(
        f"{options.threads} threads; Python {platform.python_version()}, numpy {np.__version__}\n"
    )
    if options.dask:
        bench_dask(options.folder, options.rows)
    else:
        bench_files(options.folder, options.rows, options.threads)


if __name__ == "__main__":
    main()
