"""``read`` and ``write``, which detect the format from the name of the file."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given
from imcc.datasets._csv import write_csv
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import (
    Content,
    Source,
    inner_name,
    open_all,
    open_beside,
    refuses_by_memory,
)
from imcc.datasets._mat import read_mat
from imcc.datasets._mulan import (
    meka_count,
    read_meka,
    read_mulan,
)
from imcc.datasets._npz import read_npz, write_npz
from imcc.datasets._svmlight import read_svmlight

# Relation of an ARFF file, and the number of bytes that are searched for it.
_RELATION = re.compile(rb"^[ \t]*@relation[ \t]+(.*)", re.IGNORECASE | re.MULTILINE)
_BEGINNING = 2**16
# Parameters of readers that are not options of :func:`read`, or that it has itself.
_NOT_OPTIONS = {"contents", "path", "member", "max_bytes", "known_base", "labelled"}


class Format(NamedTuple):
    """A file format: its suffixes, the function that reads files, and that which writes one.

    Tables have no reader here: :mod:`imcc.tables` reads them.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: Callable[..., Dataset] | None = None
    writer: Callable[..., Path] | None = None


#: The file formats by name.
FORMATS = {
    known.name: known
    for known in (
        Format("mulan", (".arff",), read_mulan),
        Format("meka", (".arff",), read_meka),
        Format("mat", (".mat",), read_mat),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), read_svmlight),
        Format("npz", (".npz",), read_npz, write_npz),
        Format("csv", (".csv", ".tsv"), writer=write_csv),
        Format("parquet", (".parquet", ".pq")),
        Format("xlsx", (".xlsx",)),
    )
}


@refuses_by_memory
def read(
    path: Source | Sequence[Source],
    *,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Dataset:
    r"""Read a multi-label data set from a file.

    Parameters
    ----------
    path : path or list of paths
        The file, which can be compressed (``.gz``, ``.bz2``, ``.zip``).  The rows of several files
        with the same columns, such as a training and a test part, are concatenated.
    format : {"mulan", "meka", "mat", "svmlight", "npz", "csv", "parquet", "xlsx"}, default=None
        Format of the file; None detects it from the suffix.  An ``.arff`` file is read as "meka" if
        its relation contains the number of labels (``-C``), and as "mulan" otherwise, or if
        ``labels`` or ``label_prefix`` is passed or there is an XML file next to it.
    member : str, default=None
        File in a ``.zip`` archive, if it contains several.
    max_bytes : int, default=None
        Limit of the decompressed size in bytes; larger files are rejected before they exhaust the
        memory.  None means at most 1 GiB, and less for small files: 1 MB on disk may be 16 MiB of
        text or 128 MiB of arrays (.mat, .npz, Parquet).
    **options
        * ``name`` of the data set.
        * For ARFF: ``labels`` (an XML file, names, or a number of columns: the first ones, or the
          last ones if it is negative), ``label_prefix``, ``nominal`` ("onehot" or "ordinal"; how to
          encode attributes with more than two values) and ``encoding``.
        * For ``.mat`` and ``.npz``: ``variables``, the names of the feature and the label variable
          or a list of such pairs, and ``transpose_labels``, whether labels are labels x rows.
        * For svmlight: ``n_features`` and ``index_base`` ("auto", "zero" or "one").
        * For tables: those of :func:`imcc.tables.read_dataset`, which reads them.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    DataFormatError
        If the file is invalid; the message names the file, the line and the reason.

    See Also
    --------
    imcc.tables.read_dataset : Reads CSV, TSV, Parquet files and spreadsheets.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pathlib.Path(folder.name, "mood.csv")
    >>> _ = table.write_text("tempo,happy,sad\n120,1,0\n60,0,1\n")
    >>> read(table, labels=["happy", "sad"])
    Dataset 'mood': 2 rows, 1 feature (dense), 2 labels, 1.000 labels per row
    >>> read(table)
    Traceback (most recent call last):
        ...
    imcc.datasets._errors.DataFormatError: ...mood.csv: the file does not say which columns ...
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=max_bytes, member=member)
    chosen = format_to_read(contents[0], format, options)
    return checked_reader(chosen, options)(contents, **options)


def write(
    dataset: Dataset,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
) -> Path:
    """Write a data set to a file, which :func:`read` can read.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The file, with the suffix ``.npz``, ``.csv`` or ``.tsv``, and compressed if ``.gz``,
        ``.bz2`` or ``.zip`` follows.
    overwrite : bool, default=True
        Whether to overwrite an existing file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileExistsError
        If the file already exists and ``overwrite=False``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset, read, write
    >>> folder = tempfile.TemporaryDirectory()
    >>> toy = Dataset([[0.5, 1.0], [0.0, 2.0]], [[1], [0]], name="toy")
    >>> file = write(toy, pathlib.Path(folder.name, "toy.npz"))
    >>> read(file) == toy
    True
    >>> folder.cleanup()
    """
    chosen = _by_suffix(PurePath(inner_name(path)).suffix.lower(), str(path))
    if chosen.writer is None:
        writable = ", ".join(known.name for known in FORMATS.values() if known.writer is not None)
        raise ValueError(f"the format {chosen.name!r} is read only; use one of {writable}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent} to write {path} into")
    if Path(path).exists() and not overwrite:
        raise FileExistsError(
            f"{path} already exists; overwrite it with " + given("overwrite", True)
        )
    return chosen.writer(dataset, path)


def format_to_read(content: Content, wanted: str | None, options: dict[str, Any]) -> Format:
    """Return the format of a file from the argument, its name and its content."""
    if wanted is not None:
        return _named(wanted)
    if content.suffix == ".arff":
        return FORMATS[_arff_dialect(content, options)]
    return _by_suffix(content.suffix, content.path)


def _named(wanted: str) -> Format:
    if wanted not in FORMATS:
        raise InvalidArgumentError("format", f"must be one of {', '.join(FORMATS)}, got {wanted!r}")
    return FORMATS[wanted]


def _by_suffix(suffix: str, path: str) -> Format:
    for candidate in FORMATS.values():
        if suffix in candidate.suffixes:
            return candidate
    known = ", ".join(s for candidate in FORMATS.values() for s in candidate.suffixes)
    raise DataFormatError(
        f"the format cannot be detected from the suffix (known: {known}); specify it with "
        + given("format")
        + f", one of {', '.join(FORMATS)}",
        path,
    )


def _arff_dialect(content: Content, options: dict[str, Any]) -> str:
    if options.get("labels") is not None or options.get("label_prefix") is not None:
        return "mulan"
    if open_beside(content, ".xml") is not None:
        return "mulan"
    relation = _RELATION.search(content.data[:_BEGINNING])
    counted = relation and meka_count(relation[1].decode("latin-1")) is not None
    return "meka" if counted else "mulan"


def checked_reader(chosen: Format, options: dict[str, Any]) -> Callable[..., Dataset]:
    """Return the reader of a format; an error names an option that it does not have."""
    if chosen.reader is not None:
        reader = chosen.reader
    else:
        # Not at the top: that package imports this one.
        from imcc.tables import read_dataset

        reader = read_dataset
    known = set(inspect.signature(reader).parameters) - _NOT_OPTIONS
    if unknown := sorted(set(options) - known):
        raise InvalidTypeError(
            unknown[0],
            f"is not an option of the format {chosen.name!r}, which has {', '.join(sorted(known))}",
        )
    return reader
