"""``read`` and ``write``, which detect the format from the name of the file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given
from imcc._utils.validation import check_choice
from imcc.datasets._csv import write_csv
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import Source, inner_name, open_all
from imcc.datasets._mat import read_mat
from imcc.datasets._mulan import read_arff
from imcc.datasets._npz import read_npz, write_npz
from imcc.datasets._svmlight import read_svmlight

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
        Format("arff", (".arff",), read_arff),
        Format("mat", (".mat",), read_mat),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), read_svmlight),
        Format("npz", (".npz",), read_npz, write_npz),
        Format("csv", (".csv", ".tsv"), writer=write_csv),
        Format("parquet", (".parquet", ".pq")),
        Format("xlsx", (".xlsx",)),
    )
}


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
    format : {"arff", "mat", "svmlight", "npz", "csv", "parquet", "xlsx"}, default=None
        Format of the file; None detects it from the suffix.
    member : str, default=None
        File in a ``.zip`` archive, if it contains several.
    max_bytes : int, default=None
        Limit of the decompressed size in bytes; larger files are rejected before they exhaust the
        memory.  None means at most 1 GiB, and less for small files: 1 MB on disk may be 16 MiB of
        text or 128 MiB of arrays (.mat, .npz, Parquet).
    **options
        * ``name`` of the data set.
        * For ARFF: ``labels`` (an XML file, names, or a number of columns: the first ones, or the
          last ones if it is negative; by default the XML file next to it or, as in MEKA, the number
          in its relation), ``label_prefix``, ``nominal`` ("onehot" or "ordinal"; how to encode
          attributes with more than two values) and ``encoding``.
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
    if format is None:
        chosen = format_of(contents[0].name, contents[0].path)
    else:
        chosen = FORMATS[check_choice("format", format, FORMATS)]
    reader = chosen.reader
    if reader is None:
        # Not at the top: that package imports this one.
        from imcc.tables import read_dataset

        reader = read_dataset
    known = set(inspect.signature(reader).parameters) - _NOT_OPTIONS
    if unknown := sorted(set(options) - known):
        raise InvalidTypeError(
            unknown[0],
            f"is not an option of the format {chosen.name!r}, which has {', '.join(sorted(known))}",
        )
    return reader(contents, **options)


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
    chosen = format_of(inner_name(path), str(path))
    if chosen.writer is None:
        writable = ", ".join(known.name for known in FORMATS.values() if known.writer is not None)
        raise InvalidArgumentError(
            "path", f"has the format {chosen.name!r}, which is read only; use one of {writable}"
        )
    if Path(path).exists() and not overwrite:
        raise FileExistsError(
            f"{path} already exists; overwrite it with " + given("overwrite", True)
        )
    return chosen.writer(dataset, path)


def format_of(name: str, path: str) -> Format:
    """Return the format of a file by its name."""
    suffix = PurePath(name).suffix.lower()
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
