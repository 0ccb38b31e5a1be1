"""A Nyström fit of rows that stream from host memory through a GPU; a part of benchmarks.gpu.

What the time is held against, measured on the same chunks in the same process:

* the transfer limit: every pass moves all rows; page-locked chunks, one after the other, with
  nothing else to do;
* the arithmetic limit: kernel values with the landmarks and their symmetric product, chunk after
  chunk, on a chunk that is on the device already.  Where the landmarks' kernel matrix is badly
  conditioned, a fit has to turn the values into features before it sums, by a product as large as
  the symmetric one, and cannot reach more than about half of this limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks import _measured
from benchmarks._measured import Measurements
from benchmarks.scale import N_CLUSTERS, N_FEATURES, N_LABELS, make_rows
from imcc import IMCCClassifier
from imcc._backend.device import ChunkMover
from imcc._utils.config import get_config

N_COMPONENTS = 2000
PASSES = 2  # a look, and the sums
CHECK_ROWS = 50_000
REPEATS = 10  # of what takes milliseconds
FITS = ("everything learned", "landmarks and prototypes given")

Chunks = list[tuple[np.ndarray, np.ndarray]]


def made_chunks(rows: int, chunk_rows: int) -> Chunks:
    """Make rows in 64 clumps with labels that depend on them, by all cores."""

    def make(start: int) -> tuple[np.ndarray, np.ndarray]:
        X, Y = make_rows(start // chunk_rows, min(chunk_rows, rows - start))
        return X, Y.view(bool)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(make, range(0, rows, chunk_rows)))


def first_rows(chunks: Chunks, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of all chunks as one array."""
    taken = -(-rows // len(chunks[0][0]))
    X, Y = (np.concatenate(parts)[:rows] for parts in zip(*chunks[:taken], strict=True))
    return X, Y


def classifier(n_components: int, device: str | None) -> IMCCClassifier:
    return IMCCClassifier(
        N_CLUSTERS,
        approximation="nystroem",
        n_components=n_components,
        random_state=0,
        device=device,
    )


def check_stream(chunks: Chunks, n_components: int, device: str) -> list[tuple[str, float]]:
    """Return the largest relative differences to the CPU on the first rows, in ten chunks."""
    X, Y = first_rows(chunks, CHECK_ROWS)
    step = -(-len(X) // 10)
    cut = [(X[i : i + step], Y[i : i + step]) for i in range(0, len(X), step)]
    on_host, there = (classifier(n_components, d).fit(cut) for d in (None, device))
    found = [
        (f"stream, {name}", _difference(*(getattr(clf, name) for clf in (there, on_host))))
        for name in ("landmarks_", "cluster_centers_", "soft_labels_")
    ]
    scores = [clf.decision_function(X[:5000]) for clf in (there, on_host)]
    found.append((f"stream of {len(X)} rows, scores", _difference(*scores)))
    return found


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def add_limits(chunks: Chunks, clf: IMCCClassifier, device: str, found: Measurements) -> None:
    """Measure what no fit on the same chunks can be faster than, after a fit."""
    import torch

    rows = sum(len(X) for X, _ in chunks)
    largest = max((X for X, _ in chunks), key=len)
    n_bytes = sum(X.nbytes + Y.nbytes for X, Y in chunks)
    locked = torch.from_numpy(largest)
    locked = locked.pin_memory() if device.startswith("cuda") else locked
    resident = locked.to(device, copy=True)
    speed = largest.nbytes / _seconds(lambda: resident.copy_(locked, non_blocking=True), device)
    mover = ChunkMover(device)
    start = time.perf_counter()
    for X, Y in chunks:
        mover.move(X)
        mover.move(Y)
    _wait(device)
    alone = time.perf_counter() - start

    landmarks = torch.from_numpy(clf.landmarks_).to(device)
    squares, factor = (landmarks**2).sum(dim=1), -0.5 / clf.width_**2
    total = torch.zeros(len(landmarks), len(landmarks), dtype=torch.float64, device=device)

    def values_of(rows: Any) -> Any:
        K = rows @ landmarks.T
        return K.mul_(-2).add_((rows**2).sum(dim=1)[:, None]).add_(squares).mul_(factor).exp_()

    def one_chunk() -> None:
        K = values_of(resident)
        total.addmm_(K.T, K)

    of_chunk = _seconds(one_chunk, device)
    flop = 2 * len(largest) * len(landmarks) * (N_FEATURES + len(landmarks))
    eigenvalues = torch.linalg.eigvalsh(values_of(landmarks))
    condition = float(eigenvalues[-1] / eigenvalues[0])
    found.add(
        "stream",
        "transfer limit",
        seconds=PASSES * n_bytes / speed,
        gb_per_pass=n_bytes / 1e9,
        gb_per_second=speed / 1e9,
        pass_seconds=alone,  # as the fit moves it, with nothing else to do
    )
    found.add(
        "stream",
        "arithmetic limit",
        seconds=of_chunk * rows / len(largest),
        tflop_per_second=flop / of_chunk / 1e12,
    )
    late = condition <= get_config().late_condition
    found.add("stream", "kernel of the landmarks", condition=condition, summed_first=late)


def _seconds(call: Callable[[], object], device: str) -> float:
    """Return the seconds of a call, of which many are queued."""
    for _ in range(2):
        call()
    _wait(device)
    start = time.perf_counter()
    for _ in range(REPEATS):
        call()
    _wait(device)
    return (time.perf_counter() - start) / REPEATS


def _wait(device: str) -> None:
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def add_stream(
    chunks: Chunks,
    n_components: int,
    device: str,
    timed: Callable[[Callable[[], object]], dict[str, float]],
    found: Measurements,
) -> None:
    """Measure the fits and what they are held against.

    ``timed`` gives the times of a call and the peak of device memory.
    """
    clf = classifier(n_components, device)
    learned = timed(lambda: clf.fit(chunks))
    # What is learned on the host, from a sample: how long it takes is seen without it.
    given = {"landmarks": clf.landmarks_, "width": clf.width_, "clusterer": clf.cluster_centers_}
    fixed = classifier(n_components, device).set_params(n_components=None, n_clusters=None, **given)
    not_learned = timed(lambda: fixed.fit(chunks))
    found.add("stream", "data", rows=sum(len(X) for X, _ in chunks), components=n_components)
    add_limits(chunks, clf, device, found)
    transfer, arithmetic = (
        found.of("stream", f"{what} limit")["seconds"] for what in ("transfer", "arithmetic")
    )
    for case, values in zip(FITS, (learned, not_learned), strict=True):
        seconds = values["seconds"]
        shares = {
            "of_transfer_limit": transfer / seconds,
            "of_arithmetic_limit": arithmetic / seconds,
        }
        found.add("stream", case, **values, **shares)


def stream_blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/gpu.md about the stream."""
    data, transfer, arithmetic, kernel = (
        found.of("stream", case)
        for case in ("data", "transfer limit", "arithmetic limit", "kernel of the landmarks")
    )
    rows = []
    for case in FITS:
        values = found.of("stream", case)
        shares = [values["of_transfer_limit"], values["of_arithmetic_limit"]]
        cells = [f"{values['seconds']:.1f} s", *(f"{100 * share:.0f} %" for share in shares)]
        rows.append([case, *cells, f"{values['peak_gib']:.1f} GiB"])
    size = f"{data['rows']:,.0f} x {N_FEATURES}, {N_LABELS} labels, {N_CLUSTERS} clusters"
    limits = ["of the transfer limit", "of the arithmetic limit"]
    text = (
        f"The transfer limit is the time for two passes at {transfer['gb_per_second']:.0f} GB/s "
        f"(page-locked memory), {transfer['seconds']:.2f} s; the arithmetic limit is the time for "
        "the kernel values and their symmetric product at "
        f"{arithmetic['tflop_per_second']:.0f} TFlop/s, {arithmetic['seconds']:.2f} s."
    )
    if not kernel["summed_first"]:
        condition = f"{kernel['condition']:.1e}".replace("e+0", "e")
        text += (
            " The arithmetic limit is not reached because the condition number of the landmarks' "
            f"kernel matrix is {condition}, so the kernel values are transformed into features "
            "before they are summed, which takes another product of the same size."
        )
    return {
        "gpu-pass": f"{transfer['gb_per_pass']:.1f} GB per pass",
        "gpu-stream": _measured.table([size, "time", *limits, "peak device memory"], rows),
        "gpu-limits": _measured.paragraph(text),
    }
