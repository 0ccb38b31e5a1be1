"""Number of threads of BLAS, LAPACK and OpenMP, and of cores that this process may use.

The threads of LAPACK wait for each other many times per decomposition.  On small matrices this
takes longer than it saves, and on a machine that is busy with other processes, where a thread may
have to wait for a core, it takes many times as long (docs/performance.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import RLock

from threadpoolctl import ThreadpoolController

from imcc._utils.config import get_config


def limited_threads(size: int) -> AbstractContextManager[None]:
    """Limit the threads by the size of the matrices that are computed in a ``with`` statement.

    One thread for each ``thread_rows`` rows (see :mod:`imcc._utils.config`), but at least one, at
    most :func:`n_cores`, and never more than were allowed before, for example by OMP_NUM_THREADS.

    The number of threads of BLAS and LAPACK is that of the whole process: other Python threads are
    limited as well in the meantime, and while one of them limits it, the others leave it alone.
    Nested limits end with the number that was before, and never exceed the outer ones.

    Parameters
    ----------
    size : int
        Number of rows of the matrices.
    """
    return _limited(min(max(1, size // get_config().thread_rows), n_cores()))


def one_thread() -> AbstractContextManager[None]:
    """Limit BLAS, LAPACK and OpenMP to one thread; see :func:`limited_threads`.

    For sums whose last digits must not depend on the number of threads.
    """
    return _limited(1)


def n_cores() -> int:
    """Return the number of cores that this process may use.

    Those that it may run on, or fewer if its control group (such as a container) has a CPU quota.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, math.ceil(min(cores, cpu_quota())))


@cache
def cpu_quota(groups: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> float:
    """Return how many cores the control groups of this process may use; infinite without a limit.

    Parameters
    ----------
    groups : str
        Where control groups are mounted: a tree for version 2, a tree ``cpu`` inside for version 1.
    own : str
        The file with the groups of this process.
    """
    quotas = [math.inf]
    try:
        lines = Path(own).read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.inf  # there are no control groups
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = Path(groups, "cpu") if controllers else Path(groups)
        # In a container, its own group may be the root, whatever path it has outside.
        inside = [part for part in path.split("/") if part not in ("", "..")]
        quotas += [_quota_of(root.joinpath(*inside[:depth])) for depth in range(len(inside) + 1)]
    return min(quotas)


def _quota_of(group: Path) -> float:
    """Return the quota of one control group, of either version."""
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
    except OSError:
        return math.inf
    # Version 2 writes "max" for no limit, version 1 writes -1.
    return math.inf if quota == "max" or int(quota) <= 0 else int(quota) / int(period)


# Held by the Python thread that limits BLAS.
_holder = RLock()


@contextmanager
def _limited(limit: int) -> Iterator[None]:
    held = _holder.acquire(blocking=False)
    try:
        # OpenMP has a number for each Python thread, BLAS one for all.
        pools = _controller() if held else _controller().select(user_api="openmp")
        counts: dict[str, list[int]] = {}
        for library in pools.lib_controllers:
            # Some builds do not say how many threads they have.
            counts.setdefault(library.user_api, []).append(library.get_num_threads() or limit)
        lower = {api: min(limit, *found) for api, found in counts.items() if max(found) > limit}
        with pools.limit(limits=lower) if lower else nullcontext():
            yield
    finally:
        if held:
            _holder.release()


@cache
def _controller() -> ThreadpoolController:
    """Return the libraries that are loaded; a look-up takes milliseconds, a limit microseconds."""
    return ThreadpoolController()
