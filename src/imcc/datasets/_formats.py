"""``read`` and ``write``, which detect the format from the name of the file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given
from imcc._utils.files import check_target
from imcc._utils.validation import check_choice
from imcc.datasets._csv import write_csv
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import Source, inner_name, open_all
from imcc.datasets._mat import load_mat
from imcc.datasets._mulan import read_arff
from imcc.datasets._npz import load_npz, write_npz
from imcc.datasets._pairs import read_pairs
from imcc.datasets._svmlight import read_svmlight

# Parameters of readers that are not options of :func:`read`, or that it has itself.
_NOT_OPTIONS = {"contents", "path", "member", "max_bytes", "known_base", "labelled"}


#: The suffixes of each file format.
SUFFIXES = {
    "arff": (".arff",),
    "mat": (".mat",),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "npz": (".npz",),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "xlsx": (".xlsx",),
}
#: The functions that read files; the other formats are tables, which :mod:`imcc.tables` reads.
READERS: dict[str, Callable[..., Dataset]] = {
    "arff": read_arff,
    "mat": partial(read_pairs, load_mat),
    "svmlight": read_svmlight,
    "npz": partial(read_pairs, load_npz),
}
_WRITERS = {"npz": write_npz, "csv": write_csv}


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
    chosen = format_of(contents[0].name, contents[0].path) if format is None else format
    reader = READERS.get(check_choice("format", chosen, SUFFIXES))
    if reader is None:
        # Not at the top: that package imports this one.
        from imcc.tables import read_dataset

        reader = read_dataset
    known = set(inspect.signature(reader).parameters) - _NOT_OPTIONS
    if unknown := sorted(set(options) - known):
        raise InvalidTypeError(
            unknown[0],
            f"is not an option of the format {chosen!r}, which has {', '.join(sorted(known))}",
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
    if chosen not in _WRITERS:
        raise InvalidArgumentError(
            "path",
            f"has the format {chosen!r}, which is read only; use one of {', '.join(_WRITERS)}",
        )
    check_target(path, overwrite=overwrite)
    return _WRITERS[chosen](dataset, path)


def format_of(name: str, path: str) -> str:
    """Return the format of a file by its name."""
    formats = {suffix: known for known, suffixes in SUFFIXES.items() for suffix in suffixes}
    suffix = PurePath(name).suffix.lower()
    if suffix in formats:
        return formats[suffix]
    raise DataFormatError(
        f"the format cannot be detected from the suffix (known: {', '.join(formats)}); specify it "
        "with " + given("format") + f", one of {', '.join(SUFFIXES)}",
        path,
    )
