"""What a computation may use: devices, memory and threads.

The threads of LAPACK wait for each other many times per decomposition.  On small matrices this
takes longer than it saves, and on a machine that is busy with other processes, where a thread may
have to wait for a core, it takes many times as long (docs/performance.md).
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from imcc._array.array import asarray, dense, is_numpy, library
from imcc._utils.config import get_config
from imcc._utils.optional import require


def on_device(X: Any, device: str | None) -> Any:
    """Return rows on a device, or unchanged if the device is None.

    Parameters
    ----------
    X : array or CSR matrix
    device : str or None
        Name of the device in torch ("cuda", "cuda:1", "cpu").  CuPy is used if torch is not
        installed.
    """
    return X if device is None or library(X) == "cupy" else asarray(X, _empty_on(device))


class ChunkMover:
    """Moves the chunks of a stream to a device, one after the other.

    With torch on a GPU, a chunk is copied while the GPU processes the previous one, from
    page-locked memory and in a separate CUDA stream.  The host waits if it is ``chunks_ahead``
    chunks ahead, so that only few chunks are on the device.

    Parameters
    ----------
    device : str or None
        As for :func:`on_device`; None does not move anything.
    """

    def __init__(self, device: str | None) -> None:
        self._like: Any = None if device is None else _empty_on(device)
        self._copies: Any = None
        self._begun: deque[Any] = deque()

    def move(self, x: Any) -> Any:
        """Return an array (or CSR matrix, which becomes dense) on the device."""
        if self._like is None or library(x) == "cupy":
            return x
        if is_numpy(x) and library(self._like) == "torch" and self._like.is_cuda:
            return self._moved_meanwhile(np.ascontiguousarray(dense(x)))
        return asarray(x, self._like)

    def _moved_meanwhile(self, x: np.ndarray) -> Any:
        torch, device = importlib.import_module("torch"), self._like.device
        if self._copies is None:
            self._copies = torch.cuda.Stream(device)
        work = torch.cuda.current_stream(device)
        # When the device reaches this event, it has processed all arrays that were moved before.
        self._begun.append(work.record_event())
        if len(self._begun) > get_config().chunks_ahead:
            self._begun.popleft().synchronize()
        with warnings.catch_warnings():
            # The array is only read.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            source = torch.from_numpy(x)
        # torch keeps both buffers until the CUDA streams that use them are done.
        locked = torch.empty(source.shape, dtype=source.dtype, pin_memory=True).copy_(source)
        with torch.cuda.stream(self._copies):
            moved = locked.to(device, non_blocking=True)
        work.wait_stream(self._copies)
        moved.record_stream(work)
        return moved


def device_name(device: str) -> str:
    """Return the name of a device with that of the hardware, if torch knows it; for records."""
    torch = sys.modules.get("torch")  # already imported if the device was used
    if torch is None or not device.startswith("cuda"):
        return device
    return f"{device}: {torch.cuda.get_device_name(device)}"


def _empty_on(device: Any) -> Any:
    """Return an empty array on a device, or raise an error that tells why it is unavailable."""
    if not isinstance(device, str):
        raise ValueError(f"device must be None or a name such as 'cuda', got {device!r}")
    require("array_api_compat", f"device={device!r}")
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return _empty_of_cupy(device)
    try:
        return torch.empty(0, dtype=torch.float64, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise RuntimeError(
            f"device={device!r} cannot be used by torch {torch.__version__} for numbers in float64 "
            f"({error}): use device=None to compute on the CPU, or install a build of torch for "
            "the GPU of this machine"
        ) from error


def _empty_of_cupy(device: str) -> Any:
    try:
        cupy = importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"device={device!r} needs torch or CuPy, and neither is installed: pip install torch "
            "(or cupy-cuda12x, cupy-cuda13x), or use device=None to compute on the CPU",
            name="torch",
        ) from error
    kind, _, number = device.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"device must be 'cuda' or 'cuda:N' with CuPy, got {device!r}")
    try:
        with cupy.cuda.Device(int(number or 0)):
            return cupy.empty(0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"device={device!r}: CuPy finds no such GPU ({error}); use device=None to compute on "
            "the CPU"
        ) from error


def synchronize(x: Any) -> None:
    """Wait until a device has finished, so that its time can be measured."""
    if library(x) == "torch" and x.is_cuda:
        importlib.import_module("torch").cuda.synchronize(x.device)
    elif library(x) == "cupy":
        importlib.import_module("cupy").cuda.get_current_stream().synchronize()


# Memory.

HOST_REMEDY = ", or use NumPy arrays and device=None to compute in the memory of the host"


def free_bytes(like: Any) -> float:
    """Return the available memory in bytes of the device of an array; infinite on the host."""
    if not is_numpy(like) and (allowed := get_config().device_memory) is not None:
        return allowed
    if library(like) == "torch" and like.is_cuda:
        cuda = importlib.import_module("torch").cuda
        # memory_reserved and memory_allocated would each sort all statistics first.
        stats = cuda.memory_stats_as_nested_dict(like.device)
        held, used = (
            stats[name]["all"]["current"] for name in ("reserved_bytes", "allocated_bytes")
        )
        cached = held - used
        return float(cuda.mem_get_info(like.device)[0] + cached)
    if library(like) == "cupy":
        cupy = importlib.import_module("cupy")
        return float(like.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    return np.inf


def block_entries(like: Any) -> int | None:
    """Return the maximum number of entries of a block on the device of an array; None for NumPy.

    On the CPU, blocks should fit into the cache and are chosen by the caller; on a device, they
    should be as large as the memory allows.
    """
    if is_numpy(like):
        return None
    config = get_config()
    return max(1, int(min(config.device_entries, free_bytes(like) * config.device_share / 8)))


# Files with the memory limit of the control group of the process.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_bytes() -> float:
    """Return the memory in bytes of this machine or control group; infinite if unknown.

    Memory used by other programs is not subtracted, because it changes and can often be freed.
    """
    if (allowed := get_config().host_memory) is not None:
        return allowed
    known = [np.inf]
    names = getattr(os, "sysconf_names", {})  # not on Windows
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        known.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    for path in _LIMITS:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.isdecimal():
            known.append(float(text))
    return min(size for size in known if size > 0)


def require_memory(n_bytes: float, like: Any, what: str, remedy: str) -> None:
    """Raise a MemoryError if a computation does not fit into memory, before it starts.

    Parameters
    ----------
    n_bytes : float
        Memory that the computation needs.
    like : array
        Determines the device.
    what, remedy : str
        What needs the memory, and what to do, for the message.
    """
    if is_numpy(like):
        there, where = host_bytes(), f"of memory, but this machine has {_gib(host_bytes())}"
    else:
        there, remedy = free_bytes(like), remedy + HOST_REMEDY
        where = f"on the device, but {_gib(there)} are free"
    if n_bytes > there:
        raise MemoryError(f"{what} needs about {_gib(n_bytes)} {where}: {remedy}")


@contextmanager
def explained_memory_errors(what: str, remedy: str) -> Iterator[None]:
    """Convert the out-of-memory error of a library to one that tells what to do."""
    try:
        yield
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        reason = ". ".join(str(error).split(". ")[:2])
        raise MemoryError(
            f"{what} does not fit on the device ({reason}): {remedy}{HOST_REMEDY}"
        ) from error


def _is_out_of_memory(error: BaseException) -> bool:
    return type(error).__name__ in ("OutOfMemoryError", "AcceleratorError") and (
        "memory" in str(error).lower()
    )


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"


# Threads.


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


@cache
def n_cores() -> int:
    """Return the number of cores that this process may use.

    Those that it may run on, or fewer if its control group (such as a container) has a CPU quota.
    """
    return int(cpu_count())


def n_threads() -> int:
    """Return the number of threads that may compute: :func:`n_cores`, or fewer if it is limited.

    For example by OMP_NUM_THREADS or by a ``with`` statement around the call.
    """
    counts = (library.get_num_threads() for library in _controller().lib_controllers)
    return min(n_cores(), max((count for count in counts if count), default=1))


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
