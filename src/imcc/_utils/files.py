"""Writing files atomically, compressed according to their suffix."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from imcc._utils.errors import given


def save(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file atomically, compressed according to its suffix."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # the same data give the same file
    elif suffix == ".bz2":
        data = bz2.compress(data)
    elif suffix == ".zip":
        data = _zipped(target.stem, data)
    return write_whole(target, data)


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file atomically; see :func:`replacing`."""
    with replacing(path) as file:
        file.write_bytes(data)
    return Path(path)


def check_target(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise an error if a file cannot be written, or already exists and must not be replaced."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; pass the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} into")
    if target.is_file() and not overwrite:
        raise FileExistsError(
            f"{target} already exists; overwrite it with " + given("overwrite", True)
        )


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file that replaces another one at the end.

    If writing fails, an existing file remains unchanged.  A target that exists and is not a regular
    file (a pipe, a device) is given itself.
    """
    target = Path(path)
    check_target(target)
    if target.exists() and not target.is_file():
        yield target
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink()
        raise


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _zipped(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@contextmanager
def removed_on_failure(path: str | os.PathLike[str], *suffixes: str) -> Iterator[None]:
    """Remove a file that came into being inside, if that ends in an error.

    Parameters
    ----------
    path : path
    *suffixes : str
        Of files beside it, which are removed, too.
    """
    path = Path(path)
    existed = path.exists()
    try:
        yield
    except BaseException:
        for suffix in ("", *suffixes) if not existed else ():
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        raise
