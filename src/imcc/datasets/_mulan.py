"""MULAN: an ARFF file with an XML file that names the labels.  MEKA: an ARFF that counts them."""

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
    """Read ARFF whose labels are named by an XML file.

    Parameters
    ----------
    path : path or list of paths
        The ARFF file, dense or sparse; several (a training and a test part) are joined.
    labels : path, list of str or int, optional
        The XML file, whose order the labels get; or the labels' names; or their number, of the
        first columns or, when negative, of the last.  Unless given, the XML file beside the ARFF
        file is used (``scene.xml`` for ``scene-train.arff``).
    label_prefix : str, optional
        Instead of ``labels``: what the labels' names begin with.
    nominal : {"onehot", "ordinal", "error"}
        What to do with nominal attributes of more than two values.
    encoding : str, optional
        The text's encoding: UTF-8, and Latin-1 with a warning, are tried unless given.
    member : str, optional
        Which file of a zip archive.
    max_bytes : int, optional
        The most bytes that a compressed file may unpack to.
    name : str, optional
        The data set's name; the file's unless given.

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
                "labels", "and " + named("label_prefix") + " cannot both be given: use one of them"
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
    """Read ARFF whose relation says how many labels there are.

    ``@relation 'Enron: -C 53'`` makes the first 53 attributes labels; ``-C -53`` the last 53.

    Parameters
    ----------
    path : path or list of paths
        The ARFF file, dense or sparse; several are joined.
    nominal, encoding, member, max_bytes, name
        As for :func:`read_mulan`.

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
            f"the relation {table.title[:60]!r} does not say how many labels there are (MEKA's "
            "'-C k'); for a MULAN file give its XML file with " + given("labels"),
            table.path,
        )
    columns = count_columns(table, count, f"'-C {count}'")
    return to_dataset(table, columns, nominal, name or joined_name(contents))


def meka_count(relation: str) -> int | None:
    """Return the number of labels that a relation's name states, negative for the last columns.

    >>> meka_count("Enron: -C 53"), meka_count("scene: -C -6"), meka_count("scene")
    (53, -6, None)
    """
    match = MEKA_OPTION.search(relation)
    return int(match[1]) if match else None


def has_label_xml(content: Content) -> bool:
    """Return whether an ARFF file has its XML file beside it."""
    return open_beside(content, ".xml") is not None


def _labels_beside(content: Content) -> Content:
    found = open_beside(content, ".xml")
    if found is None:
        raise DataFormatError(
            "which attributes are labels? There is no XML file beside the ARFF file: give one with "
            + given("labels", text="FILE.xml")
            + ", or name the labels with "
            + given("labels", text="NAMES")
            + ", "
            + given("labels", text="k")
            + " or "
            + given("label_prefix"),
            content.path,
        )
    return found


def _xml_columns(table: Table, xml: Content) -> list[int]:
    """Return the positions of the labels that an XML file names, in its order."""
    names = parse_label_xml(xml)
    return find_columns(table, names, f"the label file {xml.path}")
