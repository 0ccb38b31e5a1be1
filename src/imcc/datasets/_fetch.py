"""Obtaining the files of named data sets from a mirror, the cache or the network.

Local files take precedence over the network.  A file is searched in this order:

1. the mirror, if ``IMCC_DATA_MIRROR`` is a folder;
2. the cache, ``IMCC_DATA_HOME`` or the cache folder of the platform;
3. the mirror, if ``IMCC_DATA_MIRROR`` is a URL;
4. its public URL.

The file must have the SHA-256 of the registry.  pooch downloads it to a temporary folder next to
its destination and checks it; the file is moved only if it is complete and correct.  The cache
therefore never contains a damaged file, and concurrent downloads do not interfere.  This module
adds mirrors, the abortion of downloads that are too large, and messages that tell how to provide a
file manually.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from imcc._utils.optional import require
from imcc.datasets._errors import DataFetchError
from imcc.datasets._registry import RemoteFile

#: Called with the name of a file, the number of bytes received and its total size.
Progress = Callable[[str, int, int], None]

MIRROR = "IMCC_DATA_MIRROR"
HOME = "IMCC_DATA_HOME"

#: Seconds to wait for a server.
TIMEOUT = 30.0

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Number of bytes that are received at a time.
_CHUNK = 2**12

# Suffix of the temporary folders of downloads, and the age in seconds (one day) after which one is
# considered abandoned.
_PART = ".part"
_OLD = 24 * 3600.0


def data_home() -> Path:
    r"""Return the folder for downloaded files.

    This is the environment variable ``IMCC_DATA_HOME`` or, if it is not set, ``imcc`` in the cache
    folder of the platform: ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on
    macOS, and ``%LOCALAPPDATA%\imcc\Cache`` on Windows.

    Returns
    -------
    Path
        An absolute path.

    Examples
    --------
    >>> from imcc.datasets import data_home
    >>> data_home().is_absolute()
    True
    """
    if chosen := os.environ.get(HOME):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(base) / "imcc" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "imcc"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "imcc"


def local_file(file: RemoteFile) -> Path | None:
    """Return a file if it is in the mirror folder or in the cache with the correct SHA-256."""
    mirror = _mirror_folder()
    if mirror is not None and (there := _place(mirror, file)).is_file():
        found = _sha256(there)
        if found != file.sha256:
            raise DataFetchError(
                f"{there} is not the expected file: its SHA-256 is {found}, not {file.sha256}; "
                f"replace it with the file from {file.url}, or remove it"
            )
        return there
    cached = _place(data_home(), file)
    if cached.is_file():
        if _sha256(cached) == file.sha256:
            return cached
        # Damaged or edited: remove it, so that it is downloaded again.
        cached.unlink(missing_ok=True)
    return None


def get_file(
    file: RemoteFile, *, progress: Progress | None = None, timeout: float = TIMEOUT
) -> Path:
    """Return a file, downloading it to the cache if it is not on this machine."""
    found = local_file(file)
    if found is not None:
        if progress is not None:
            progress(file.file, file.size, file.size)
        return found
    tried = []
    for address in _addresses(file):
        try:
            return _download(address, file, progress, timeout)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise _disk_full(file, str(error)) from error
            tried.append((address, error))
    attempts = "".join(f"\n  {address}: {_reason(error)}" for address, error in tried)
    raise DataFetchError(
        f"could not obtain the file {file.file} ({file.size:,} bytes):{attempts}\n{_by_hand(file)}"
    ) from tried[-1][1]


def _by_hand(file: RemoteFile) -> str:
    return (
        f"To provide it manually, save {file.url} as {_place(data_home(), file)}, or set {MIRROR} "
        f"to a folder that contains {file.file} (SHA-256 {file.sha256})."
    )


def _reason(error: BaseException) -> str:
    """Return the innermost message, because the outer ones repeat the URL."""
    inner = [getattr(error, "reason", None), *error.args]
    for cause in inner:
        if isinstance(cause, BaseException):
            return _reason(cause)
    return str(error) or type(error).__name__


def _place(folder: Path, file: RemoteFile) -> Path:
    return folder.joinpath(*file.file.split("/"))


def _mirror() -> str:
    return os.environ.get(MIRROR, "").strip()


def _is_address(mirror: str) -> bool:
    return mirror.lower().startswith(("http://", "https://"))


def _mirror_folder() -> Path | None:
    mirror = _mirror()
    if not mirror or _is_address(mirror):
        return None
    folder = Path(mirror).expanduser()
    if not folder.is_dir():
        raise DataFetchError(
            f"{MIRROR} is {mirror!r}, but there is no such folder; set it to a folder or to a URL "
            "that starts with http:// or https://, or unset it"
        )
    return folder


def _addresses(file: RemoteFile) -> list[str]:
    mirror = _mirror()
    mirrored = [f"{mirror.rstrip('/')}/{file.file}"] if _is_address(mirror) else []
    return [*mirrored, file.url]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(address: str, file: RemoteFile, progress: Progress | None, timeout: float) -> Path:
    """Download a file to the cache; pooch downloads and checks it in a temporary folder."""
    pooch = require("pooch", "Downloading data sets")
    target = _place(data_home(), file)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target.parent)
    if shutil.disk_usage(target.parent).free < file.size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".", suffix=_PART) as folder:
        answers: list[Any] = []
        downloader = pooch.HTTPDownloader(
            progressbar=_Received(file, progress),
            timeout=timeout,
            chunk_size=_CHUNK,
            hooks={"response": lambda answer, **_: answers.append(answer)},
        )
        logger = pooch.get_logger()
        level = logger.level
        logger.setLevel("WARNING")  # progress is shown by the callback
        try:
            found = pooch.retrieve(
                address, f"sha256:{file.sha256}", target.name, folder, downloader=downloader
            )
        except ValueError as error:  # raised by pooch for a wrong hash
            raise OSError(
                f"the server sent another file, not {file.size:,} bytes with the SHA-256 "
                f"{file.sha256} ({error})"
            ) from error
        finally:
            logger.setLevel(level)
            for answer in answers:  # pooch does not close the connection if a download fails
                answer.close()
        # pooch makes files readable by their owner only; apply the umask instead.
        fresh = Path(folder, "mode")
        fresh.touch()
        os.chmod(found, stat.S_IMODE(fresh.stat().st_mode))
        _move(Path(found), target, file)
    return target


class _Received:
    """A progress bar of pooch that reports progress, and ends a download that is too long."""

    def __init__(self, file: RemoteFile, progress: Progress | None) -> None:
        self.file, self.progress = file, progress
        self.total = self.done = 0

    def update(self, count: int) -> None:
        """Count received bytes; the last chunk may have fewer than pooch says."""
        self.done += count
        if self.done - _CHUNK >= self.file.size:
            raise OSError(f"the server sends more than the {self.file.size:,} bytes of the file")
        if self.progress is not None:
            self.progress(self.file.file, min(self.done, self.file.size), self.file.size)

    def reset(self) -> None:
        """Start again: pooch then says how much it was in all."""
        self.done = 0

    def close(self) -> None:
        """Do nothing: there is no bar."""


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary folders of downloads that were killed long ago."""
    for part in folder.glob(f".*{_PART}"):
        with contextlib.suppress(OSError):  # another process may remove it at the same time
            if time.time() - part.stat().st_mtime > _OLD:
                shutil.rmtree(part)


def _move(temporary: Path, target: Path, file: RemoteFile) -> None:
    try:
        os.replace(temporary, target)
    except PermissionError:
        # Fails on Windows while another process reads the file; keep that file if it is correct.
        if not target.is_file() or _sha256(target) != file.sha256:
            raise


def _disk_full(file: RemoteFile, reason: str) -> DataFetchError:
    return DataFetchError(
        f"there is not enough disk space for the file {file.file} ({file.size:,} bytes): "
        f"{reason}. Free some space, or choose another folder with {HOME}.\n{_by_hand(file)}"
    )
