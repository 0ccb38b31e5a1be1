"""Opening files: compression, encodings and limits on sizes.

A small file must not be able to exhaust the memory: the decompressed size is limited during
decompression, and declared numbers of rows, columns and labels are compared with the size on disk
before memory is allocated.
"""

from __future__ import annotations

import bz2
import codecs
import functools
import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np

from imcc._utils.errors import given
from imcc._utils.progress import report_progress
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

COMPRESSIONS = (".gz", ".bz2", ".zip")

# Suffixes of archive members that are not data.
_NOT_DATA = (".xml", ".txt", ".md", ".pdf", ".html", ".names")

_CHUNK = 2**20

# All exceptions that the standard library raises for damaged compressed files.
UNPACK_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,  # a compression method that zipfile does not know
    RuntimeError,  # an encrypted archive
    ValueError,
    OverflowError,
    UnicodeDecodeError,
)

# Not bzip2: zipfile unpacks a chunk of it at once, and 3 kB can be 8 GiB.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"PK\x03\x04": "zip"}


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
        """Raise an error for more columns than a file of its size may declare.

        ``few`` columns may be declared by any file.
        """
        limit = min(MAX_COLUMNS, max(few, self.size, (self.max_bytes or 0) // 8))
        if count > limit:
            raise DataFormatError(
                f"{count:,} {what} are more than the limit of {limit:,} for a file of this size; "
                "if you trust it, raise the limit with " + given("max_bytes"),
                self.path,
            )

    def check_cells(self, rows: int, columns: int, what: str) -> None:
        """Raise an error for a matrix with more entries than a file of its size may declare."""
        if rows * columns > self.max_cells:
            raise DataFormatError(
                f"{rows:,} rows x {columns:,} {what} are more than {self.max_cells:,} numbers, "
                "which is too many for a file of this size; if you trust it, raise the limit with "
                + given("max_bytes"),
                self.path,
            )

    @property
    def stem(self) -> str:
        """Name without its suffix."""
        return PurePosixPath(self.name).stem or self.name

    @property
    def suffix(self) -> str:
        """Suffix in lower case, such as ".arff"."""
        return PurePosixPath(self.name).suffix.lower()


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


def check_sparse(matrix: Any) -> None:
    """Raise a ValueError for a sparse matrix with indices that compiled code must not follow.

    ``check_format`` does not look at the starts of the rows if the last one is 0.
    """
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError("the starts of its rows or columns decrease")
    matrix.check_format(full_check=True)


_P = ParamSpec("_P")
_T = TypeVar("_T")


def refuses_by_memory(reader: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a reader to raise a DataFormatError instead of a MemoryError."""

    @functools.wraps(reader)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return reader(*args, **kwargs)
        except MemoryError as error:
            source = args[0] if args else kwargs.get("path")
            raise DataFormatError(
                f"there is not enough memory to read it ({error})", _shown(source)
            ) from error

    return guarded


def _shown(source: Any) -> str:
    sources = [source] if isinstance(source, (str, os.PathLike, Content)) else list(source or ())
    return ", ".join(one.path if isinstance(one, Content) else str(one) for one in sources)


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
    if suffix in (".gz", ".bz2"):
        packed = path.stat().st_size
        data = _unpack(path, suffix, unpack_limit(packed, max_bytes))
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
    if len(contents) == 1:
        return contents[0].stem
    others = [set(_stems(content.stem)) for content in contents[1:]]
    shared = [s for s in _stems(contents[0].stem) if all(s in other for other in others)]
    return shared[0] if shared and shared[0] else contents[0].stem


def decode(content: Content, encoding: str | None = None) -> str:
    """Return the text of a file.

    Without ``encoding``, it is decoded by its byte-order mark, as UTF-8 or, with a warning, as
    Latin-1.
    """
    data = content.data
    if encoding is not None:
        return _decode_as(content, encoding)
    for mark, marked in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return _decode_as(content, marked)
    check_text(data, content.path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = data.decode("latin-1")
        odd = sum(not c.isprintable() and c not in "\t\r\n\f" for c in text[:4096])
        if odd > 0.1 * min(len(text), 4096):
            raise DataFormatError(
                "this is a binary file, not text in UTF-8 or Latin-1", content.path, line
            ) from error
        warn_user(
            f"{content.path}, line {line}: not UTF-8; read as Latin-1 instead. If names look "
            "wrong, specify the encoding with " + given("encoding")
        )
        return text


def check_text(data: bytes, path: str) -> None:
    """Raise an error for a file in an 8-bit encoding that is not text."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise DataFormatError(
                f"this is a {kind} file, not text; rename it with the corresponding suffix", path
            )
    if b"\0" in data:
        raise DataFormatError("this is a binary file, not text: it has NUL bytes", path)


_LINE = re.compile(r"([^\r\n]*+)(\r\n?|\n|\Z)")
# After so many lines it is said how far reading is.
_LINES_TOLD = 256


def each_line(text: str) -> Iterator[str]:
    r"""Yield the lines of a text one at a time, since a list of many short lines takes much memory.

    Unlike in ``str.splitlines``, only line feeds and carriage returns end a line, because other
    Unicode line separators may be part of a name.

    >>> list(each_line("a\r\nb"))
    ['a', 'b']
    """
    for number, match in enumerate(_LINE.finditer(text), 1):
        if match[0] or not match.end():
            yield match[1]
        if not number % _LINES_TOLD:
            report_progress(match.end(), len(text))
    report_progress(1.0)


def _decode_as(content: Content, encoding: str) -> str:
    try:
        text = content.data.decode(encoding)
    except LookupError as error:
        raise ValueError(f"unknown encoding {encoding!r}") from error
    except UnicodeError as error:
        raise DataFormatError(f"the file is not {encoding}: {error}", content.path) from error
    if "\0" in text:
        raise DataFormatError(f"the file has NUL characters if read as {encoding}", content.path)
    return text


def _stems(stem: str) -> list[str]:
    parts = stem.split("-")
    return ["-".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _unpack(path: Path, suffix: str, limit: int) -> bytes:
    opener: Any = gzip.open if suffix == ".gz" else bz2.open
    with path.open("rb"):  # A missing file is not a damaged one.
        pass
    try:
        with opener(path, "rb") as file:
            return read_limited(file, str(path), limit)
    except DataFormatError:
        raise
    except UNPACK_ERRORS as error:
        raise DataFormatError(
            f"the file cannot be decompressed: it is damaged or incomplete ({error})", path
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
    with path.open("rb"):
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist()]
            return [name for name in names if name and not name.endswith("/")]
    except UNPACK_ERRORS as error:
        raise DataFormatError(
            f"the archive cannot be opened: it is damaged or incomplete ({error})", path
        ) from error


def _open_member(path: Path, member: str | None, max_bytes: int | None) -> Content:
    names = _members(path)
    if member is None:
        offered = [n for n in names if not n.lower().endswith(_NOT_DATA) and "__MACOSX" not in n]
        if len(offered) != 1:
            holds = f"{len(offered)} data files ({listed(offered)})" if offered else "no data file"
            raise DataFormatError(
                f"the archive contains {holds}; select one with " + given("member"), path
            )
        member = offered[0]
    elif member not in names:
        raise DataFormatError(
            f"the archive has no member {member!r}; it has {listed(names, 10)}", path
        )
    shown = f"{path}:{member}"
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
            # The size that the archive declares may be wrong.
            packed = min(info.compress_size, path.stat().st_size)
            with open_member(archive, info, shown) as file:
                data = read_limited(file, shown, unpack_limit(packed, max_bytes))
    except DataFormatError:
        raise
    except (*UNPACK_ERRORS, KeyError) as error:
        raise DataFormatError(
            f"the file cannot be decompressed: it is damaged, incomplete or encrypted ({error})",
            shown,
        ) from error
    return Content(data, PurePosixPath(member).name, shown, path, max_bytes, packed)
