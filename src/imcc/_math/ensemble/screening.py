"""Screening: all kernels on a part of the rows, the best ones on larger parts."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from imcc._array.array import take_rows
from imcc._math.ensemble.job import Job
from imcc._math.ensemble.model import distances, make_kernel
from imcc._math.ensemble.records import Kernel
from imcc._math.ensemble.tries import try_kernel
from imcc._utils.config import get_config

#: At most so many widths of one view and kernel go on: kernels that differ make better ensembles.
SCREEN_WIDTHS = 2


def screening_rounds(n: int) -> tuple[list[int], list[int]]:
    """Return the rows of each round and how many kernels it keeps, for n training rows."""
    rounds, kept = get_config().screen_rows, get_config().screen_keep
    sizes = [min(n, rounds[0])] + [rows for rows in rounds[1:] if rows < n]
    return sizes, [*kept[: len(sizes) - 1], kept[-1]]


def screen(job: Job) -> tuple[list[Kernel], dict[Kernel, int]]:
    """Return the best kernels, best first, and the index of the best penalty of each."""
    kernels: list[Kernel] = []
    found: dict[Kernel, tuple[float, int]] = {}
    for number, (size, count) in enumerate(zip(*screening_rounds(job.data.n), strict=True)):
        if number > 0 and job.clock.must_skip():
            break
        part = np.sort(job.order[:size])
        job.clock.begin_stage(f"screening kernels on {size:,} rows")
        found = screen_part(job, part, kernels, {k: i for k, (_, i) in found.items()})
        ranked = sorted(found, key=lambda kernel: -found[kernel][0])
        kernels = spread(ranked)[:count]
    return kernels, {kernel: found[kernel][1] for kernel in kernels}


def screen_part(
    job: Job, part: np.ndarray, kernels: list[Kernel], starts: dict[Kernel, int]
) -> dict[Kernel, tuple[float, int]]:
    """Score kernels on a part of the rows; all of them if none are given."""
    options = job.options
    held = job.data.held(part, job.folds)
    criterion = job.data.criterion(part)
    found: dict[Kernel, tuple[float, int]] = {}
    parallel = Parallel(n_jobs=job.n_jobs)
    middle = len(options.penalties) // 2
    for view in options.views:
        for name in options.kernels:
            own = [k for k in kernels if (k.view, k.name) == (view, name)]
            if kernels and not own:
                continue
            if found and not kernels and job.clock.must_skip():
                return found
            rows = take_rows(job.data.rows(view), part)
            base = distances(name, rows)
            if not kernels:
                width = make_kernel(name).mean_distance(base)
                if not width > 0:
                    continue  # all rows are the same here
                own = [Kernel(view, name, scale, scale * width) for scale in options.width_scales]
            results = parallel(
                delayed(try_kernel)(
                    base,
                    kernel,
                    held,
                    criterion,
                    options.penalties,
                    starts.get(kernel, middle),
                    options.calibrate,
                )
                for kernel in own
            )
            for kernel, (value, best, trials) in zip(own, results, strict=True):
                job.trials += trials
                found[kernel] = (value, best)
            job.clock.worked(
                len(own) * job.work.screened(len(part)), f"{view} {name} on {len(part)} rows"
            )
    return found


def spread(kernels: list[Kernel]) -> list[Kernel]:
    """Return ranked kernels, those beyond the best SCREEN_WIDTHS of a view and kernel last."""
    seen: dict[tuple[str, str], int] = {}
    first: list[Kernel] = []
    last: list[Kernel] = []
    for kernel in kernels:
        key = (kernel.view, kernel.name)
        seen[key] = seen.get(key, 0) + 1
        (first if seen[key] <= SCREEN_WIDTHS else last).append(kernel)
    return first + last
