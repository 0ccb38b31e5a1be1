"""Opening files: compression, encodings and limits on sizes.

A small file must not be able to exhaust the memory: the decompressed size is limited during
decompression, and declared numbers of rows, columns and labels are compared with the size on disk
before memory is allocated.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.progress import report_progress
from imcc._utils.validation import check_count
from imcc.datasets._errors import DataFormatError, listed, warn_user

#: Default limit of the decompressed size of a file in bytes: 1 GiB.  It is lower for small files
#: (see :func:`read`).
MAX_BYTES = 2**30

#: Limit of the number of entries of a matrix (4 GiB of floats), checked before it is allocated.
MAX_CELLS = 2**29

#: Limit of the number of features or labels, each of which has a name.
MAX_COLUMNS = 5_000_000

# Limits of the decompressed size of a file of up to 1 MiB: as text, which becomes many small
# objects during parsing, and as arrays.  Each further byte on disk may decompress to _RATIO bytes.
_SMALL_FILE = 2**20
_SMALL_TEXT = 2**24
SMALL_ARRAYS = 2**27
_RATIO = 100

# Numbers of matrix entries and columns that any file may declare.  A larger file may declare 64
# entries per byte on disk, and as many columns as it has bytes.
_FEW_CELLS = 2**24
_CELLS_PER_BYTE = 64
_FEW_COLUMNS = 2**21

_UNPACKERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
COMPRESSIONS = (*_UNPACKERS, ".zip")

# Suffixes of archive members that are not data.
_NOT_DATA = (".xml", ".txt", ".md", ".pdf", ".html", ".names")

_CHUNK = 2**20
# After so many lines, progress is reported.
_LINES = 256

# Not bzip2: zipfile unpacks a chunk of it at once, and 3 kB can be 8 GiB.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Content:
    """The decompressed content of a file.

    Attributes
    ----------
    data : bytes
        The decompressed bytes.
    name : str
        Name of the file without folders and without the suffix of the compression.
    path : str
        Name of the file in messages.
    location : Path
        The file on disk.
    max_bytes : int or None, default=None
        Limit of the decompressed size set by the caller, which also applies to files next to it.
    packed : int, default=0
        Size on disk of a compressed file; 0 if it is not compressed.
    """

    data: bytes
    name: str
    path: str
    location: Path
    max_bytes: int | None = None
    packed: int = 0

    @property
    def size(self) -> int:
        """Size on disk in bytes."""
        return self.packed or len(self.data)

    @property
    def max_arrays(self) -> int:
        """Limit of the decompressed size in bytes of arrays inside the file."""
        return unpack_limit(self.size, self.max_bytes, SMALL_ARRAYS)

    @property
    def max_cells(self) -> int:
        """Limit of the number of matrix entries that the file may declare."""
        allowed = max(_FEW_CELLS, _CELLS_PER_BYTE * self.size, (self.max_bytes or 0) // 8)
        return min(MAX_CELLS, allowed)

    def check_columns(self, count: int, what: str, few: int = _FEW_COLUMNS) -> None:
        """Raise an error for more columns than a file of its size, and any file, may declare."""
        allowed = max(few, self.size, (self.max_bytes or 0) // 8)
        check_size(1, count, what, min(MAX_COLUMNS, allowed), self.path)

    def check_cells(self, rows: int, columns: int, what: str) -> None:
        """Raise an error for a matrix with more entries than a file of its size may declare."""
        check_size(rows, columns, what, self.max_cells, self.path)

    @property
    def stem(self) -> str:
        """Name without its suffix."""
        return PurePosixPath(self.name).stem or self.name


Source = str | os.PathLike[str] | Content


def unpack_limit(packed: int, max_bytes: int | None, small: int = _SMALL_TEXT) -> int:
    """Return the limit of the decompressed size of a file.

    Parameters
    ----------
    packed : int
        Size on disk.
    max_bytes : int or None
        Limit set by the caller, which is returned unless it is None.
    small : int, default=2**24
        Limit for files of up to 1 MiB.
    """
    if max_bytes is not None:
        return max_bytes
    return min(MAX_BYTES, small + _RATIO * max(0, packed - _SMALL_FILE))


def check_size(rows: int, columns: int, what: str, limit: int, path: str) -> None:
    """Raise an error for a matrix with more entries than a limit."""
    if rows * columns > limit:
        raise DataFormatError(
            f"{rows:,} x {columns:,} {what} are more than {limit:,}, which is too many for a file "
            "of this size; if you trust it, raise the limit with " + given("max_bytes"),
            path,
        )


def check_sparse(matrix: Any) -> None:
    """Raise a ValueError for a sparse matrix with indices that compiled code must not follow.

    ``check_format`` does not look at the starts of the rows if the last one is 0.
    """
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError("the starts of its rows or columns decrease")
    matrix.check_format(full_check=True)


def open_content(
    source: Source, *, max_bytes: int | None = None, member: str | None = None
) -> Content:
    """Read a file and decompress it according to its suffix.

    Parameters
    ----------
    source : path or Content
        The file; a Content is returned unchanged.
    max_bytes : int, default=None
        Limit of the decompressed size in bytes; None means that of :func:`read`.
    member : str, default=None
        File in a zip archive; needed if the archive contains several data files.

    Returns
    -------
    Content
        The decompressed file.

    Raises
    ------
    DataFormatError
        If the file is damaged, or larger than the limit.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> packed = pathlib.Path(folder.name, "pets.csv.gz")
    >>> _ = packed.write_bytes(gzip.compress(b"size,cat"))
    >>> open_content(packed).name, open_content(packed).data
    ('pets.csv', b'size,cat')
    >>> folder.cleanup()
    """
    if isinstance(source, Content):
        return source
    path = Path(source)
    suffix = path.suffix.lower()
    if member is not None and suffix != ".zip":
        raise ValueError(f"member can only be used with .zip archives, but {path} is not one")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass a file")
    if suffix == ".zip":
        return _open_member(path, member, max_bytes)
    if suffix in _UNPACKERS:
        packed = path.stat().st_size
        with damage_reported(str(path)), _UNPACKERS[suffix](path, "rb") as file:
            data = read_limited(file, str(path), unpack_limit(packed, max_bytes))
        return Content(data, path.stem, str(path), path, max_bytes, packed)
    return Content(path.read_bytes(), path.name, str(path), path, max_bytes)


def inner_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without the suffix of its compression.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    str

    Examples
    --------
    >>> inner_name("data/yeast.arff.gz")
    'yeast.arff'
    """
    path = Path(path)
    return path.stem if path.suffix.lower() in COMPRESSIONS else path.name


def open_all(
    sources: Source | Sequence[Source], *, max_bytes: int | None = None, member: str | None = None
) -> list[Content]:
    """Open one source or each of several."""
    if max_bytes is not None:
        check_count("max_bytes", max_bytes)
    if isinstance(sources, (str, os.PathLike, Content)):
        sources = [sources]
    if not sources:
        raise ValueError("path must not be an empty list")
    return [open_content(source, max_bytes=max_bytes, member=member) for source in sources]


def open_beside(content: Content, suffix: str) -> Content | None:
    """Return the file with another suffix that belongs to this one, or None.

    For ``scene-train.arff`` this is ``scene-train.xml`` or ``scene.xml``, in the same folder or
    archive.
    """
    zipped = content.location.suffix.lower() == ".zip"
    members = _members(content.location) if zipped else []
    for wanted in (stem + suffix for stem in _stems(content.stem)):
        for member in members:
            if PurePosixPath(member).name == wanted:
                return _open_member(content.location, member, content.max_bytes)
        beside = content.location.with_name(wanted)
        if beside.is_file():
            return open_content(beside, max_bytes=content.max_bytes)
    return None


def joined_name(contents: Sequence[Content]) -> str:
    """Return the common name of several files: ``scene`` for scene-train and scene-test."""
    shared = set.intersection(*(set(_stems(content.stem)) for content in contents))
    return max(shared, key=len, default="") or contents[0].stem


def text_lines(content: Content, encoding: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file one at a time; a list of short lines takes much memory.

    Without ``encoding``, the file is UTF-8 or, with a warning, Latin-1.
    """
    if encoding is None:
        encoding = "utf-8-sig"
        check_text(content.data, content.path)
        try:
            content.data.decode("utf-8")
        except UnicodeDecodeError as error:
            encoding = "latin-1"
            place = content.data.count(b"\n", 0, error.start) + 1
            warn_user(
                f"{content.path}, line {place}: not UTF-8; read as Latin-1 instead. If names look "
                "wrong, specify the encoding with " + given("encoding")
            )
    data = io.BytesIO(content.data)
    try:
        for number, line in enumerate(io.TextIOWrapper(data, encoding), 1):
            yield line
            if not number % _LINES:
                report_progress(data.tell(), len(content.data))
    except LookupError as error:
        raise InvalidArgumentError("encoding", f"{encoding!r} is not known to Python") from error
    except UnicodeError as error:
        raise DataFormatError(f"the file is not {encoding}: {error}", content.path) from error
    report_progress(1.0)


def check_text(data: bytes, path: str) -> None:
    """Raise an error for a file in an 8-bit encoding that is not text."""
    if b"\0" in data:
        raise DataFormatError(
            "this is a binary file, not text: it has NUL bytes (a compressed file needs the suffix "
            ".gz, .bz2 or .zip)",
            path,
        )


def _stems(stem: str) -> list[str]:
    parts = stem.split("-")
    return ["-".join(parts[:n]) for n in range(len(parts), 0, -1)]


@contextmanager
def damage_reported(path: str) -> Iterator[None]:
    """Raise a DataFormatError instead of what unpacking a damaged file raises."""
    try:
        yield
    except (DataFormatError, FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # of many kinds, from the standard library and NumPy
        raise DataFormatError(
            f"the file is damaged, incomplete or encrypted ({error})", path
        ) from error


def read_limited(file: IO[bytes], path: str, limit: int) -> bytes:
    """Read a stream that decompresses as it is read; raise an error above the limit."""
    unpacked = io.BytesIO()
    while chunk := file.read(_CHUNK):
        if unpacked.tell() + len(chunk) > limit:
            raise DataFormatError(
                f"the decompressed file is larger than the limit of {limit:,} bytes; if you trust "
                "it, raise the limit with " + given("max_bytes"),
                path,
            )
        unpacked.write(chunk)
    return unpacked.getvalue()


def open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> IO[bytes]:
    """Open a member of a zip archive as a stream that decompresses only what is read."""
    if info.compress_type not in _METHODS:
        raise DataFormatError(
            f"{info.filename!r} is compressed with the unsupported method {info.compress_type}; "
            "compress it as an ordinary (deflated) zip file",
            path,
        )
    return archive.open(info)


def _members(path: Path) -> list[str]:
    with damage_reported(str(path)), zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if name and not name.endswith("/")]


def _open_member(path: Path, member: str | None, max_bytes: int | None) -> Content:
    names = _members(path)
    offered = [n for n in names if not n.lower().endswith(_NOT_DATA) and "__MACOSX" not in n]
    if member is None and len(offered) == 1:
        member = offered[0]
    if member not in names:
        no_such = "" if member is None else f"no file {member!r}, but "
        raise DataFormatError(
            f"the archive has {no_such}{len(offered)} data files ({listed(offered, 10)}); select "
            "one with " + given("member"),
            str(path),
        )
    shown = f"{path}:{member}"
    with damage_reported(shown), zipfile.ZipFile(path) as archive:
        info = archive.getinfo(member)
        # The size that the archive declares may be wrong.
        packed = min(info.compress_size, path.stat().st_size)
        with open_member(archive, info, shown) as file:
            data = read_limited(file, shown, unpack_limit(packed, max_bytes))
    return Content(data, PurePosixPath(member).name, shown, path, max_bytes, packed)
