"""ARFF files of MULAN, with label names in an XML file, and of MEKA, with a number of labels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from imcc._utils.errors import InvalidArgumentError, given, named
from imcc.datasets._arff import parse_arff
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import choose_labels, count_columns, to_dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import (
    Content,
    Source,
    joined_name,
    open_all,
    open_beside,
    open_content,
    refuses_by_memory,
)
from imcc.datasets._label_xml import parse_label_xml
from imcc.datasets._table import Table, find_columns, join_tables

MEKA_OPTION = re.compile(r"(?:^|[\s:])-[cC]\s*(-?\d{1,9})\b")

Labels = str | os.PathLike[str] | int | Sequence[str]


@refuses_by_memory
def read_mulan(
    path: Source | Sequence[Source],
    labels: Labels | None = None,
    *,
    label_prefix: str | None = None,
    nominal: str = "onehot",
    encoding: str | None = None,
    member: str | None = None,
    max_bytes: int | None = None,
    name: str | None = None,
) -> Dataset:
    """Read an ARFF file whose label names are in an XML file.

    Parameters
    ----------
    path : path or list of paths
        The ARFF file, dense or sparse; several files (training and test parts) are concatenated.
    labels : path, list of str or int, default=None
        The XML file, which also sets the order of the labels; or their names; or their number,
        where a positive number means the first columns and a negative one the last columns.  None
        uses the XML file next to the ARFF file (``scene.xml`` for ``scene-train.arff``).
    label_prefix : str, default=None
        Prefix of the names of the labels, instead of ``labels``.
    nominal : {"onehot", "ordinal", "error"}, default="onehot"
        How to encode nominal attributes with more than two values.
    encoding : str, default=None
        Encoding of the text.  None tries UTF-8 and then, with a warning, Latin-1.
    member : str, default=None
        File in a zip archive.
    max_bytes : int, default=None
        Limit of the decompressed size in bytes; see :func:`read`.
    name : str, default=None
        Name of the data set; None uses that of the file.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    DataFormatError
        If a file is invalid.

    See Also
    --------
    write_mulan : Writes the files.
    read : Detects the format of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> arff = pathlib.Path(folder.name, "birds.arff")
    >>> _ = arff.write_text('''@relation birds
    ... @attribute wren {0,1}
    ... @attribute loudness numeric
    ... @data
    ... 1,0.25
    ... 0,0.75
    ... ''')
    >>> _ = arff.with_suffix(".xml").write_text('<labels><label name="wren"/></labels>')
    >>> read_mulan(arff)
    Dataset 'birds': 2 rows, 1 feature (dense), 1 label, 0.500 labels per row
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=max_bytes, member=member)
    table = join_tables([parse_arff(content, encoding) for content in contents])
    if labels is None and label_prefix is None:
        columns = _xml_columns(table, _labels_beside(contents[0]))
    elif isinstance(labels, (str, os.PathLike)):
        if label_prefix is not None:
            raise InvalidArgumentError(
                "labels", "and " + named("label_prefix") + " cannot both be passed: use one of them"
            )
        columns = _xml_columns(table, open_content(labels, max_bytes=max_bytes))
    else:
        columns = choose_labels(table, labels, label_prefix)
    return to_dataset(table, columns, nominal, name or joined_name(contents))


@refuses_by_memory
def read_meka(
    path: Source | Sequence[Source],
    *,
    nominal: str = "onehot",
    encoding: str | None = None,
    member: str | None = None,
    max_bytes: int | None = None,
    name: str | None = None,
) -> Dataset:
    """Read an ARFF file whose relation contains the number of labels.

    With ``@relation 'Enron: -C 53'``, the first 53 attributes are labels; with ``-C -53``, the last
    53.

    Parameters
    ----------
    path : path or list of paths
        The ARFF file, dense or sparse; several files are concatenated.
    nominal, encoding, member, max_bytes, name
        As for :func:`read_mulan`.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    DataFormatError
        If the file is invalid.

    See Also
    --------
    write_meka : Writes the file.
    read : Detects the format of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> arff = pathlib.Path(folder.name, "birds.arff")
    >>> _ = arff.write_text('''@relation 'birds: -C 1'
    ... @attribute wren {0,1}
    ... @attribute loudness numeric
    ... @data
    ... {1 0.25}
    ... {0 1, 1 0.75}
    ... ''')
    >>> read_meka(arff).Y.ravel()
    array([0, 1], dtype=int32)
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=max_bytes, member=member)
    table = join_tables([parse_arff(content, encoding) for content in contents])
    count = meka_count(table.title)
    if count is None:
        raise DataFormatError(
            f"the relation {table.title[:60]!r} does not contain the number of labels ('-C k'), as "
            "in MEKA; for a file of MULAN, pass its XML file with " + given("labels"),
            table.path,
        )
    columns = count_columns(table, count, f"'-C {count}'")
    return to_dataset(table, columns, nominal, name or joined_name(contents))


def meka_count(relation: str) -> int | None:
    """Return the number of labels in the name of a relation, negative for the last columns.

    >>> meka_count("Enron: -C 53"), meka_count("scene: -C -6"), meka_count("scene")
    (53, -6, None)
    """
    match = MEKA_OPTION.search(relation)
    return int(match[1]) if match else None


def has_label_xml(content: Content) -> bool:
    """Return whether there is an XML file next to an ARFF file."""
    return open_beside(content, ".xml") is not None


def _labels_beside(content: Content) -> Content:
    found = open_beside(content, ".xml")
    if found is None:
        raise DataFormatError(
            "the labels are unknown, because there is no XML file next to the ARFF file: pass one "
            "with "
            + given("labels", text="FILE.xml")
            + ", or select the labels with "
            + given("labels", text="NAMES")
            + ", "
            + given("labels", text="k")
            + " or "
            + given("label_prefix"),
            content.path,
        )
    return found


def _xml_columns(table: Table, xml: Content) -> list[int]:
    """Return the positions of the labels in an XML file, in its order."""
    names = parse_label_xml(xml)
    return find_columns(table, names, f"the label file {xml.path}")
