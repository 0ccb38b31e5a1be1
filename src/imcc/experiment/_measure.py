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
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _total_memory(),
    }
    return found if device is None else {**found, "device": device_name(device)}


def threads_in_use() -> int:
    """Return the current number of threads of the linear algebra."""
    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


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
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None
