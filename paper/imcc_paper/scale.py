"""Time and peak memory of training on more rows than one would like to have in memory.

    python -m imcc_paper.scale --csv results/scale.csv          100,000 to 1,000,000 rows
    python -m imcc_paper.scale --rows 100000                    a quick look
    OPENBLAS_NUM_THREADS=1 python -m imcc_paper.scale --dask --rows 1000000
                                                                one worker against two
    python -m imcc_paper.scale --estimate                       10^8 rows x 10^3 features on 100
                                                                machines, on paper

``python -m imcc_paper.reproduce`` makes the tables of docs/scale.md from the file.

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
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier
from imcc_paper import _measured
from imcc_paper._measured import Measurements
from imcc_paper.places import RESULTS

N_FEATURES, N_LABELS, N_CLUSTERS, N_COMPONENTS = 100, 20, 64, 1000
LLOYD_PASSES = 5
BLOCK = 8192  # rows at a time in the arithmetic that fits are held against
BLOCK_ROWS = 62_500  # of a Dask block, 50 MB
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
    arithmetic = time.perf_counter() - start
    return {"fit_seconds": fit, "arithmetic_seconds": arithmetic, "peak_mib": peak}


def in_own_process(case: str, folder: Path, rows: int, threads: int) -> dict[str, float]:
    command = [sys.executable, "-m", f"{__package__}.scale", "--one", case]
    command += ["--folder", str(folder), "--rows", str(rows), "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_files(folder: Path, counts: list[int], threads: int, found: Measurements) -> None:
    """Time fits of rows in a file, each in a process of its own."""
    for case in CASES:
        for rows in counts:
            files(folder, rows)
            found.add("files", f"{case} {rows}", **in_own_process(case, folder, rows, threads))


def load_block(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def bench_dask(folder: Path, counts: list[int], found: Measurements) -> None:
    """Time fits on local clusters of one and of two processes with a thread each."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

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
            name = f"{case} {rows}"
            found.add("dask", name, one_worker_seconds=times[0], two_workers_seconds=times[1])


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


def dask_table(found: Measurements) -> str:
    """Lay out fits on one worker and on two."""
    rows = []
    for name in found.cases("dask"):
        case, _, count = name.partition(" ")
        one, two = found.of("dask", name).values()
        rows.append([case, f"{int(count):,}", f"{one:.1f} s", f"{two:.1f} s", f"{one / two:.2f}"])
    return _measured.table(["model", "rows", "one worker", "two workers", "speed-up"], rows)


def core_rate(found: Measurements) -> float:
    """Return the flop per second of one core in the arithmetic of the largest Nyström fit."""
    rows = max(int(name.split()[1]) for name in found.cases("files") if name.startswith("nys"))
    seconds = found.of("files", f"nystroem {rows}")["arithmetic_seconds"]
    flop = rows * (2 * N_FEATURES * N_COMPONENTS + N_COMPONENTS**2)  # the product is symmetric
    return flop / seconds / int(found.where("files", "threads"))


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/scale.md, and the number of the front pages."""
    cores, threads = (found.where("files", column) for column in ("cores", "threads"))
    million = found.of("files", "nystroem 1000000")["fit_seconds"]
    return {
        "scale-machine": f"{cores} cores ({threads} threads)",
        "scale": files_table(found),
        "dask": dask_table(found)
        if found.cases("dask")
        else _measured.not_measured(
            "OPENBLAS_NUM_THREADS=1 python -m imcc_paper.scale --dask --rows 1000000 "
            "--csv results/scale.csv",
            "a machine without other programs",
        ),
        "estimate": estimate_table(core_rate(found)),
        "million-rows": f"{million:.1f} s on {cores} cores",
    }


def estimate_table(rate: float) -> str:
    """Lay out what 10^8 rows of 10^3 features cost on 100 machines with 8 cores each.

    Parameters
    ----------
    rate : float
        Flop per second of a core.
    """
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
        "rows": f"{n * d * 8 / 1e9:.0f} GB in float64; {each / 1e9:.0f} GB per machine",
        "passes": f"{passes}: a look, {lloyd} Lloyd steps, the sums",
        "arithmetic": (
            f"{flops:.1e} flop (kernel values {kernel / flops:.0%}, products "
            f"{product / flops:.0%}, clusters {assignment / flops:.0%}); "
            f"{flops / machines / cores / rate:.0f} s at {rate / 1e9:.0f} GFlop/s per core"
        ),
        "read": (
            f"{each / 1e9:.0f} GB per machine and pass: {each / 2e9:.0f} s at 2 GB/s (local disk), "
            f"{each / 2e8:.0f} s at 200 MB/s (object store), once if it is persisted"
        ),
        "moved between machines": (
            f"{sums / 1e6:.1f} MB of sums per block of 50 MB, at most "
            f"{moved / 1e9:.1f} GB per machine: {moved / 1.25e9:.1f} s at 10 Gbit/s"
        ),
        "moved to the client": (
            f"{10 * m * d * 8 / 1e6:.0f} MB of sample, {sums / 1e6:.1f} MB of sums, "
            f"{8 * c * d / 1e6:.1f} MB per Lloyd step"
        ),
        "memory": (
            f"{per_thread / 1e6:.0f} MB per thread, {cores * per_thread / 1e9:.1f} GB per machine, "
            f"and {each / 1e9:.0f} GB more if the rows are persisted"
        ),
    }
    return _measured.table(["what", "how much"], lines.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "imcc_scale")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dask", action="store_true", help="one worker against two")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument(
        "--estimate",
        type=float,
        nargs="?",
        const=np.nan,
        metavar="GFLOPS",
        help="on paper, for a cluster; by default with the speed of a core in results/scale.csv",
    )
    _measured.add_csv_option(parser, "scale")
    options = parser.parse_args()
    if options.estimate is not None:
        measured = np.isnan(options.estimate)
        rate = core_rate(Measurements.read(ROWS)) if measured else 1e9 * options.estimate
        print(estimate_table(rate))
        return
    # Workers have one thread each, and so has the client that they are compared on.
    with threadpool_limits(1 if options.dask else options.threads):
        if options.one:
            print(json.dumps(measure(options.one, options.folder, options.rows[0])))
            return
        found = Measurements()
        if options.dask:
            bench_dask(options.folder, options.rows, found)
            print(dask_table(found))
        else:
            bench_files(options.folder, options.rows, options.threads, found)
            print(files_table(found))
    if options.csv:
        found.save(options.csv)


if __name__ == "__main__":
    main()
