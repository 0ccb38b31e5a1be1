"""Devices: moving arrays to them, their free memory, and errors when it is used up."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from imcc._backend.array import asarray, dense, is_numpy, library
from imcc._utils.config import get_config
from imcc._utils.optional import require


def on_device(X: Any, device: str | None) -> Any:
    """Return rows where they are to be worked on: on the device, or where they are.

    Parameters
    ----------
    X : array or CSR matrix
    device : str or None
        As torch names it ("cuda", "cuda:1", "cpu").  torch is used, or else CuPy.
    """
    return X if device is None or library(X) == "cupy" else asarray(X, _named(device))


def _named(device: Any) -> Any:
    """Return an array without entries on a device, the name being checked."""
    if not isinstance(device, str):
        raise ValueError(f"device must be None or a name such as 'cuda', got {device!r}")
    require("array_api_compat", "gpu", f"device={device!r}")
    return _empty_on(device)


class ChunkMover:
    """Brings the chunks of a stream to a device, one after the other.

    On the way to a GPU through torch, a chunk travels while the GPU works on the one before:
    through memory that the GPU reads by itself (page-locked), in a separate queue.  The host
    waits when it is a chunk or two ahead, so that the chunks on the device stay few.

    Parameters
    ----------
    device : str or None
        As for :func:`on_device`; None leaves everything where it is.
    """

    def __init__(self, device: str | None) -> None:
        self._like: Any = None if device is None else _named(device)
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
        # When the device gets here, it is done with all arrays that were moved before.
        self._begun.append(work.record_event())
        if len(self._begun) > get_config().chunks_ahead:
            self._begun.popleft().synchronize()
        with warnings.catch_warnings():
            # It is only read.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            source = torch.from_numpy(x)
        # torch keeps both pieces of memory until the queues that use them are through with them.
        locked = torch.empty(source.shape, dtype=source.dtype, pin_memory=True).copy_(source)
        with torch.cuda.stream(self._copies):
            moved = locked.to(device, non_blocking=True)
        work.wait_stream(self._copies)
        moved.record_stream(work)
        return moved


def device_name(device: str) -> str:
    """Return a device's name with that of the hardware, if torch has it; for records."""
    torch = sys.modules.get("torch")  # whoever worked on the device has imported it
    if torch is None or not device.startswith("cuda"):
        return device
    return f"{device}: {torch.cuda.get_device_name(device)}"


def _empty_on(device: str) -> Any:
    """Return an array with no entries on a device, or say why that cannot be."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return _empty_of_cupy(device)
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a device of torch: {error}") from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            f"device={device!r}: torch {torch.__version__} finds no GPU here; use device=None to "
            "compute on the CPU, or install a torch that is built for this machine's GPU"
        )
    try:
        return torch.empty(0, dtype=torch.float64, device=where)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise RuntimeError(
            f"device={device!r} cannot hold float64 arrays, which the solution needs: {error}"
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
            f"device={device!r}: CuPy finds no such GPU here ({error}); use device=None to compute "
            "on the CPU"
        ) from error


def synchronize(x: Any) -> None:
    """Wait until a device has done its work, so that its time can be measured."""
    if library(x) == "torch" and x.is_cuda:
        importlib.import_module("torch").cuda.synchronize(x.device)
    elif library(x) == "cupy":
        importlib.import_module("cupy").cuda.get_current_stream().synchronize()


# Memory.

HOST_REMEDY = ", or NumPy's arrays and device=None for the memory of the host"


def free_bytes(like: Any) -> float:
    """Return the memory that may be used on the device of an array; infinite on the host."""
    if not is_numpy(like) and (allowed := get_config().device_memory) is not None:
        return allowed
    if library(like) == "torch" and like.is_cuda:
        cuda = importlib.import_module("torch").cuda
        # memory_reserved and memory_allocated would each sort all of the statistics first.
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
    """Return how many entries a block of work may have beside an array; None for NumPy.

    A core works fastest on what its cache holds, which is for the work itself to know; a device
    wants blocks as large as its memory allows.
    """
    if is_numpy(like):
        return None
    config = get_config()
    return max(1, int(min(config.device_entries, free_bytes(like) * config.device_share / 8)))


# Where the control group of a process says how much memory it may use.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_bytes() -> float:
    """Return the memory of this machine, or what the process may use of it; infinite if unknown.

    What other programs use is not subtracted: it changes, and most of it can be freed.
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
    """Refuse work that cannot fit, before it is begun.

    Parameters
    ----------
    n_bytes : float
        What the work needs.
    like : array
        Beside which it is done: on a device, or on the host.
    what, remedy : str
        For the message.
    """
    if is_numpy(like):
        there, where = host_bytes(), f"of memory, and this machine has {_gib(host_bytes())}"
    else:
        there, remedy = free_bytes(like), remedy + HOST_REMEDY
        where = f"on the device, of which {_gib(there)} are free"
    if n_bytes > there:
        raise MemoryError(f"{what} needs about {_gib(n_bytes)} {where}: {remedy}")


@contextmanager
def explained_memory_errors(what: str, remedy: str) -> Iterator[None]:
    """Turn a library's own out-of-memory error into one that says what to do."""
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
