"""Time, memory, versions and hardware of a run."""

from __future__ import annotations

import functools
import os
import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import imcc
from imcc._array.device import device_name


@functools.cache
def environment(device: str | None = None) -> dict[str, Any]:
    """Return the versions and the hardware that results may depend on."""
    found = {
        "imcc": imcc.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "joblib": joblib.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _entry("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "memory_gib": _total_memory(),
    }
    return found if device is None else {**found, "device": device_name(device)}


def threads_in_use() -> int:
    """Return the current number of threads of the linear algebra."""
    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


def _entry(file: str, name: str) -> str | None:
    """Return the value of an entry in a file of Linux; None if it is not there."""
    with suppress(OSError):
        for line in Path(file).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return None


def _total_memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):  # not on this system
        return None


def now() -> str:
    """Return date and time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Meter:
    """Measures the processor time and, on Linux, the peak memory of a task."""

    def __init__(self) -> None:
        with suppress(OSError):  # resets the peak to the current memory
            Path("/proc/self/clear_refs").write_text("5")
        self._held = _status("VmRSS")
        self._cpu = time.process_time()

    def cpu_seconds(self) -> float:
        """Return the processor time since the start."""
        return time.process_time() - self._cpu

    def peak_memory(self) -> int | None:
        """Return the increase of the peak memory since the start in bytes; None if unknown."""
        peak = _status("VmHWM")
        return None if peak is None or self._held is None else max(peak - self._held, 0)


def _status(name: str) -> int | None:
    kib = _entry("/proc/self/status", name)
    return None if kib is None else int(kib.split()[0]) * 1024
