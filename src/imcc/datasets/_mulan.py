"""ARFF files of MULAN, with label names in an XML file, and of MEKA, with a number of labels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from imcc._utils.errors import given
from imcc.datasets._arff import parse_arff
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import choose_labels, find_columns, to_dataset
from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content, joined_name, open_beside, open_content
from imcc.datasets._table import join_tables

# The number of labels in the relation, negative for the last columns: "Enron: -C 53".
_MEKA_OPTION = re.compile(r"(?:^|[\s:])-[cC]\s*(-?\d{1,9})\b")

Labels = str | os.PathLike[str] | int | Sequence[str]


def read_arff(
    contents: Sequence[Content],
    labels: Labels | None = None,
    *,
    label_prefix: str | None = None,
    nominal: str = "onehot",
    encoding: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read ARFF files of MULAN or MEKA.

    Parameters
    ----------
    contents : sequence of Content
        The files, dense or sparse, whose rows are concatenated.
    labels : path, list of str or int, default=None
        An XML file of MULAN, which also sets the order of the labels; or their names; or their
        number, where a positive number means the first columns and a negative one the last columns.
        None uses the XML file next to the ARFF file (``scene.xml`` for ``scene-train.arff``) or, if
        there is none, the number in the relation, as in MEKA: ``@relation 'Enron: -C 53'``.
    label_prefix : str, default=None
        Prefix of the names of the labels, instead of ``labels``.
    nominal : {"onehot", "ordinal"}, default="onehot"
        How to encode nominal attributes with more than two values.
    encoding : str, default=None
        Encoding of the text.  None tries UTF-8 and then, with a warning, Latin-1.
    name : str, default=None
        Name of the data set; None uses that of the file.
    """
    table = join_tables([parse_arff(content, encoding) for content in contents])
    xml = None
    if isinstance(labels, (str, os.PathLike)) and label_prefix is None:
        xml, labels = open_content(labels, max_bytes=contents[0].max_bytes), None
    elif labels is None and label_prefix is None:
        xml = open_beside(contents[0], ".xml")
        if match := _MEKA_OPTION.search(table.title):
            labels = int(match[1])
        elif xml is None:
            raise DataFormatError(
                "the labels are unknown: there is no XML file next to the ARFF file, and its "
                "relation has no number of labels ('-C k'); pass one with "
                + given("labels", text="FILE.xml")
                + ", or name the labels with "
                + given("labels", text="NAMES")
                + " or "
                + given("label_prefix"),
                table.path,
            )
    if xml is not None:
        what = f"the label file {xml.path}"
        columns = find_columns(table.names, parse_label_xml(xml), what, table.path)
    else:
        columns = choose_labels(table.names, labels, label_prefix, table.path)
    return to_dataset(table, columns, nominal, name or joined_name(contents))


class _WithoutDocumentType(ElementTree.TreeBuilder):
    """The elements of an XML file, which cannot have entities or external references."""

    def doctype(self, *_: Any) -> None:
        raise ValueError("the file declares a document type, which is not supported; remove it")


def parse_label_xml(content: Content) -> list[str]:
    """Return the names in a MULAN label file, in file order.

    A hierarchy is read as a flat list of all labels, parents before children.
    """
    parser = ElementTree.XMLParser(target=_WithoutDocumentType())
    try:
        root = ElementTree.fromstring(content.data, parser)
    except (SyntaxError, ValueError, LookupError, TypeError) as error:
        raise DataFormatError(f"this is not a label file in XML: {error}", content.path) from error
    names = [element.get("name", "") for element in root.iter()][1:]
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    if not names or tags != ["labels", *["label"] * len(names)] or "" in names:
        raise DataFormatError(
            "a label file has the element <labels>, and in it <label name=...> for each label",
            content.path,
        )
    if twice := repeated(names):
        raise DataFormatError(f"the file contains a label twice: {listed(twice)}", content.path)
    return names
