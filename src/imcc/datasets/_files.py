"""Opening files: compression, encodings, and the sizes that a file may have.

A file of a few bytes must not be able to fill the memory: what it unpacks to is counted while it is
unpacked, and what it merely declares (rows, columns, labels) is compared with its size on disk
before anything is allocated.
"""

from __future__ import annotations

import bz2
import codecs
import copy
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

from imcc._utils.errors import given
from imcc._utils.progress import tell
from imcc.datasets._errors import DataFormatError, listed, warn_user

#: How many bytes a compressed file may unpack to, unless the caller says otherwise: 1 GiB, and less
#: for small files (see :meth:`Content.max_unpacked`).
MAX_BYTES = 2**30

#: A matrix of more numbers than this (4 GiB of floats) is refused before it is made.
MAX_CELLS = 2**29

#: More features or labels than this are refused: each has a name.
MAX_COLUMNS = 5_000_000

# What a file of up to 1 MiB may unpack to: as text, which becomes many small objects while it is
# parsed, and as arrays, which do not.  Every further byte on disk may unpack to _RATIO bytes.
_SMALL_FILE = 2**20
_SMALL_TEXT = 2**24
_SMALL_ARRAYS = 2**27
_RATIO = 100

# What any file may declare: numbers of a matrix, and columns.  A larger file may declare as many
# numbers as 64 per byte on disk, and as many columns as it has bytes.
_FEW_CELLS = 2**24
_CELLS_PER_BYTE = 64
_FEW_COLUMNS = 2**21
_FEW_TABLE_COLUMNS = 2**18  # those of a table have more to them than a name

COMPRESSIONS = (".gz", ".bz2", ".zip")

# What a file holds that is not data: members of an archive that are not offered.
_NOT_DATA = (".xml", ".txt", ".md", ".pdf", ".html", ".names")

_CHUNK = 2**20

# Everything that the standard library's unpackers raise for a damaged file.
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

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"PK\x03\x04": "zip"}


@dataclass(frozen=True)
class Content:
    """The unpacked bytes of one file, and its name in messages.

    Attributes
    ----------
    data : bytes
        The bytes.
    name : str
        The file's name without directories and without the compression's suffix.
    path : str
        How to call it in messages.
    location : Path
        The file on disk that it was read from.
    max_bytes : int or None
        The limit on unpacking that the caller gave, if any; files beside it are held to the same.
    packed : int
        The size on disk of a compressed file; 0 for one that is not compressed.
    """

    data: bytes
    name: str
    path: str
    location: Path
    max_bytes: int | None = None
    packed: int = 0

    @property
    def size(self) -> int:
        """The size on disk, in bytes."""
        return self.packed or len(self.data)

    @property
    def max_arrays(self) -> int:
        """The most bytes that arrays packed inside the file may unpack to."""
        return unpack_limit(self.size, self.max_bytes, _SMALL_ARRAYS)

    @property
    def max_cells(self) -> int:
        """The most numbers of a matrix that the file may declare."""
        allowed = max(_FEW_CELLS, _CELLS_PER_BYTE * self.size, (self.max_bytes or 0) // 8)
        return min(MAX_CELLS, allowed)

    @property
    def max_columns(self) -> int:
        """The most columns that the file may declare."""
        return min(MAX_COLUMNS, max(_FEW_COLUMNS, self.size, (self.max_bytes or 0) // 8))

    def check_table(self, n_columns: int) -> None:
        """Refuse a table of more columns than a file of its size should have."""
        allowed = max(_FEW_TABLE_COLUMNS, self.size, (self.max_bytes or 0) // 8)
        if n_columns > allowed:
            raise DataFormatError(
                f"there are more than {allowed:,} columns, which is too much for a file of this "
                "size; if you trust it, allow more with " + given("max_bytes"),
                self.path,
            )

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem or self.name

    @property
    def suffix(self) -> str:
        """The suffix in small letters: ".arff"."""
        return PurePosixPath(self.name).suffix.lower()


Source = str | os.PathLike[str] | Content


def unpack_limit(packed: int, max_bytes: int | None, small: int = _SMALL_TEXT) -> int:
    """Return how many bytes a file may unpack to.

    Parameters
    ----------
    packed : int
        Its size on disk.
    max_bytes : int or None
        What the caller allows; if given, it is the limit.
    small : int
        What a file of up to 1 MiB may unpack to.
    """
    if max_bytes is not None:
        return max_bytes
    return min(MAX_BYTES, small + _RATIO * max(0, packed - _SMALL_FILE))


def check_cells(rows: int, columns: int, limit: int, what: str) -> None:
    """Refuse, with a ValueError, a matrix of more numbers than a file of its size may declare."""
    if rows * columns > limit:
        raise ValueError(
            f"{rows:,} rows x {columns:,} {what} are more than {limit:,} numbers, which is too "
            "much for a file of this size"
        )


def check_columns(count: int, limit: int, what: str) -> None:
    """Refuse, with a ValueError, more columns than a file of its size may declare."""
    if count > limit:
        raise ValueError(
            f"{count:,} {what} are more than the limit of {limit:,} for a file of this size"
        )


_P = ParamSpec("_P")
_T = TypeVar("_T")


def refuses_by_memory(reader: Callable[_P, _T]) -> Callable[_P, _T]:
    """Turn a MemoryError of a reader into its documented error."""

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
    """Read a file, unpacking it as its suffix says.

    Parameters
    ----------
    source : path or Content
        What to read; a Content is returned as it is.
    max_bytes : int, optional
        The most bytes that a compressed file may unpack to; :func:`unpack_limit` says how many
        unless given.
    member : str, optional
        Which file of a zip archive; needed when it has several data files.

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
        raise ValueError(f"member names a file in a .zip archive, and {path} is not one")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the file in it")
    if suffix == ".zip":
        return _open_member(path, member, max_bytes)
    if suffix in (".gz", ".bz2"):
        packed = path.stat().st_size
        data = _unpack(path, suffix, unpack_limit(packed, max_bytes))
        return Content(data, path.stem, str(path), path, max_bytes, packed)
    return Content(path.read_bytes(), path.name, str(path), path, max_bytes)


def inner_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without the suffix of its compression.

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
        raise ValueError("path is an empty list: there is nothing to read")
    return [open_content(source, max_bytes=max_bytes, member=member) for source in sources]


def open_beside(content: Content, suffix: str) -> Content | None:
    """Return the file with another suffix that belongs to this one, if there is one.

    ``scene-train.arff`` belongs to ``scene-train.xml`` or ``scene.xml``, in the same folder or in
    the same archive.
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
    """Return a name for what several files hold: ``scene`` for scene-train and scene-test."""
    if len(contents) == 1:
        return contents[0].stem
    others = [set(_stems(content.stem)) for content in contents[1:]]
    shared = [s for s in _stems(contents[0].stem) if all(s in other for other in others)]
    return shared[0] if shared and shared[0] else contents[0].stem


def decode(content: Content, encoding: str | None = None) -> str:
    """Return a file's text: UTF-8 or what its byte-order mark says, else Latin-1 and a warning."""
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
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise DataFormatError(
                f"this is a {kind} file, not text; give it the suffix that says so", content.path
            )
    if b"\0" in data:
        raise DataFormatError("this is a binary file, not text: it holds NUL bytes", content.path)
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
            "wrong, say which it is with " + given("encoding")
        )
        return text


_LINE = re.compile(r"([^\r\n]*+)(\r\n?|\n|\Z)")
# After so many lines it is said how far reading is.
_LINES_TOLD = 256


def each_line(text: str, *, keep_ends: bool = False) -> Iterator[str]:
    r"""Yield the lines of a text, one at a time: a list of many short ones takes much memory.

    Unlike for ``str.splitlines``, only line feeds and carriage returns end a line: the other
    characters that Unicode lists may well be part of a name.

    >>> list(each_line("a\r\nb"))
    ['a', 'b']
    """
    group = 0 if keep_ends else 1
    for number, match in enumerate(_LINE.finditer(text), 1):
        if match[0] or not match.end():
            yield match[group]
        if not number % _LINES_TOLD:
            tell(match.end(), len(text))
    tell(1.0)


def _decode_as(content: Content, encoding: str) -> str:
    try:
        text = content.data.decode(encoding)
    except LookupError as error:
        raise ValueError(f"encoding {encoding!r} is not known to Python") from error
    except UnicodeError as error:
        raise DataFormatError(f"the file is not {encoding}: {error}", content.path) from error
    if "\0" in text:
        raise DataFormatError(f"read as {encoding} it holds NUL characters", content.path)
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
            f"the file cannot be unpacked: it is damaged or cut off ({error})", path
        ) from error


def read_limited(file: IO[bytes], path: str, limit: int) -> bytes:
    """Read a stream that unpacks as it is read, and stop when it gives more than the limit."""
    unpacked = io.BytesIO()
    while chunk := file.read(_CHUNK):
        if unpacked.tell() + len(chunk) > limit:
            raise DataFormatError(
                f"the file unpacks to more than {limit:,} bytes, and was not read further; "
                "if you trust it, allow more with " + given("max_bytes"),
                path,
            )
        unpacked.write(chunk)
    return unpacked.getvalue()


def open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> IO[bytes]:
    """Open a member of a zip archive as a stream that unpacks no more than what is read of it."""
    if info.compress_type not in _METHODS:
        raise DataFormatError(
            f"{info.filename!r} is packed with the compression method {info.compress_type}; pack "
            "it as an ordinary (deflated) zip file",
            path,
        )
    if info.compress_type != zipfile.ZIP_BZIP2:
        return archive.open(info)
    # zipfile unpacks a whole piece of bzip2 at once, whatever it gives: 3 kB can be 8 GiB.  So it
    # returns the packed bytes, as if they were stored; bzip2 has its own checksum.
    packed = copy.copy(info)
    packed.compress_type = zipfile.ZIP_STORED
    packed.file_size = info.compress_size
    del packed.CRC
    with archive.open(packed) as stream:
        return bz2.BZ2File(io.BytesIO(stream.read()))


def _members(path: Path) -> list[str]:
    with path.open("rb"):
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist()]
            return [name for name in names if name and not name.endswith("/")]
    except UNPACK_ERRORS as error:
        raise DataFormatError(
            f"the archive cannot be opened: it is damaged or cut off ({error})", path
        ) from error


def _open_member(path: Path, member: str | None, max_bytes: int | None) -> Content:
    names = _members(path)
    if member is None:
        offered = [n for n in names if not n.lower().endswith(_NOT_DATA) and "__MACOSX" not in n]
        if len(offered) != 1:
            holds = f"{len(offered)} data files ({listed(offered)})" if offered else "no data file"
            raise DataFormatError(
                f"the archive holds {holds}; say which with " + given("member"), path
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
            # Not the size that the archive claims: it may be wrong.
            packed = min(info.compress_size, path.stat().st_size)
            with open_member(archive, info, shown) as file:
                data = read_limited(file, shown, unpack_limit(packed, max_bytes))
    except DataFormatError:
        raise
    except (*UNPACK_ERRORS, KeyError) as error:
        raise DataFormatError(
            f"the file cannot be unpacked: it is damaged, cut off or encrypted ({error})", shown
        ) from error
    return Content(data, PurePosixPath(member).name, shown, path, max_bytes, packed)
