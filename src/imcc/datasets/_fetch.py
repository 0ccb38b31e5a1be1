"""Obtaining the files of named data sets from a mirror, the cache or the network.

Local files take precedence over the network.  A file is searched in this order:

1. the mirror, if ``IMCC_DATA_MIRROR`` is a folder;
2. the cache, ``IMCC_DATA_HOME`` or the cache folder of the platform;
3. the mirror, if ``IMCC_DATA_MIRROR`` is a URL;
4. its public URL.

The file must have the SHA-256 of the registry.  pooch downloads it to a temporary file next to its
destination and checks it; the file is moved only if it is complete and correct.  The cache
therefore never contains a damaged file, and concurrent downloads do not interfere.  This module
adds mirrors, the abortion of downloads that are too large, and messages that tell how to provide a
file manually.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from imcc._utils.optional import require
from imcc._utils.progress import report_progress
from imcc.datasets._errors import DataFetchError
from imcc.datasets._registry import RemoteFile

MIRROR = "IMCC_DATA_MIRROR"
HOME = "IMCC_DATA_HOME"

# Seconds to wait for a server.
_TIMEOUT = 30.0

# Number of bytes that are received at a time.
_CHUNK = 2**12


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
    mirror = _mirror()
    if mirror and not _is_address(mirror):
        folder = Path(mirror).expanduser()
        if not folder.is_dir():
            raise DataFetchError(
                f"{MIRROR} is {mirror!r}, but there is no such folder; set it to a folder or to a "
                "URL that starts with http:// or https://, or unset it"
            )
        there = folder / file.file
        if there.is_file():
            if (digest := _sha256(there)) != file.sha256:
                raise DataFetchError(
                    f"{there} is not the expected file: its SHA-256 is {digest}, not "
                    f"{file.sha256}; replace it with the file from {file.url}, or remove it"
                )
            return there
    cached = data_home() / file.file
    # A damaged or edited file is downloaded again.
    return cached if cached.is_file() and _sha256(cached) == file.sha256 else None


def get_file(file: RemoteFile) -> Path:
    """Return a file, downloading it to the cache if it is not on this machine."""
    if (local := local_file(file)) is not None:
        return local
    pooch = require("pooch", "Downloading data sets")
    pooch.get_logger().setLevel("WARNING")
    target = data_home() / file.file
    mirror = _mirror()
    mirrored = [f"{mirror.rstrip('/')}/{file.file}"] if _is_address(mirror) else []
    attempts, last = "", None
    for address in [*mirrored, file.url]:
        received = _Received(file)
        downloader = pooch.HTTPDownloader(
            progressbar=received,
            timeout=_TIMEOUT,
            chunk_size=_CHUNK,
            hooks={"response": received.begin},
        )
        try:
            pooch.retrieve(
                address, f"sha256:{file.sha256}", target.name, target.parent, None, downloader
            )
            target.chmod(0o644)  # pooch makes files readable by their owner only
            return target
        except (OSError, ValueError) as error:  # the latter for another SHA-256
            attempts += f"\n  {address}: {error}"
            last = error
        finally:
            received.close()
    raise DataFetchError(
        f"could not obtain the file {file.file} ({file.size:,} bytes):{attempts}\nTo provide it "
        f"manually, save {file.url} as {target}, or set {MIRROR} to a folder that contains "
        f"{file.file} (SHA-256 {file.sha256}).  {HOME} is the folder for downloaded files."
    ) from last


def _mirror() -> str:
    return os.environ.get(MIRROR, "").strip()


def _is_address(mirror: str) -> bool:
    return mirror.lower().startswith(("http://", "https://"))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Received:
    """A progress bar of pooch that reports progress, and ends a download that is too long."""

    def __init__(self, file: RemoteFile) -> None:
        self.file = file
        self.total = self.done = 0
        self.answer: Any = None

    def begin(self, answer: Any, **_: Any) -> None:
        """Keep the answer of the server."""
        self.answer = answer

    def update(self, count: int) -> None:
        """Count received bytes; the last chunk may have fewer than pooch says."""
        self.done += count
        if self.done - _CHUNK >= self.file.size:
            raise OSError(f"the server sends more than the {self.file.size:,} bytes of the file")
        done = min(self.done, self.file.size)
        report_progress(done, self.file.size, f"{self.file.file}, {done / 1e6:.1f} MB")

    def reset(self) -> None:
        """Start again: pooch then says how much it was in all."""
        self.done = 0

    def close(self) -> None:
        """Close the connection, which pooch does not do if a download fails."""
        if self.answer is not None:
            self.answer.close()
