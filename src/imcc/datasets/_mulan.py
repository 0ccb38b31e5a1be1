"""ARFF files of MULAN, with label names in an XML file, and of MEKA, with a number of labels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any
from xml.parsers import expat

from imcc._utils.errors import InvalidArgumentError, given, named
from imcc.datasets._arff import parse_arff
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import choose_labels, count_columns, find_columns, to_dataset
from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content, joined_name, open_beside, open_content
from imcc.datasets._table import Table, join_tables

_MEKA_OPTION = re.compile(r"(?:^|[\s:])-[cC]\s*(-?\d{1,9})\b")

Labels = str | os.PathLike[str] | int | Sequence[str]


def read_mulan(
    contents: Sequence[Content],
    labels: Labels | None = None,
    *,
    label_prefix: str | None = None,
    nominal: str = "onehot",
    encoding: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read ARFF files whose label names are in an XML file.

    Parameters
    ----------
    contents : sequence of Content
        The ARFF files, dense or sparse, whose rows are concatenated.
    labels : path, list of str or int, default=None
        The XML file, which also sets the order of the labels; or their names; or their number,
        where a positive number means the first columns and a negative one the last columns.  None
        uses the XML file next to the ARFF file (``scene.xml`` for ``scene-train.arff``).
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
    if isinstance(labels, (str, os.PathLike)):
        if label_prefix is not None:
            raise InvalidArgumentError(
                "labels", "and " + named("label_prefix") + " cannot both be passed: use one of them"
            )
        columns = _xml_columns(table, open_content(labels, max_bytes=contents[0].max_bytes))
    elif labels is not None or label_prefix is not None:
        columns = choose_labels(table.names, labels, label_prefix, table.path)
    elif (beside := open_beside(contents[0], ".xml")) is not None:
        columns = _xml_columns(table, beside)
    else:
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
            table.path,
        )
    return to_dataset(table, columns, nominal, name or joined_name(contents))


def _xml_columns(table: Table, xml: Content) -> list[int]:
    """Return the positions of the labels in an XML file, in its order."""
    names = parse_label_xml(xml)
    return find_columns(table.names, names, f"the label file {xml.path}", table.path)


def read_meka(
    contents: Sequence[Content],
    *,
    nominal: str = "onehot",
    encoding: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read ARFF files whose relation contains the number of labels.

    With ``@relation 'Enron: -C 53'``, the first 53 attributes are labels; with ``-C -53``, the last
    53.  The parameters are those of :func:`read_mulan`.
    """
    table = join_tables([parse_arff(content, encoding) for content in contents])
    count = meka_count(table.title)
    if count is None:
        raise DataFormatError(
            f"the relation {table.title[:60]!r} does not contain the number of labels ('-C k'), as "
            "in MEKA; for a file of MULAN, pass its XML file with " + given("labels"),
            table.path,
        )
    columns = count_columns(table.names, count, f"'-C {count}'", table.path)
    return to_dataset(table, columns, nominal, name or joined_name(contents))


def meka_count(relation: str) -> int | None:
    """Return the number of labels in the name of a relation, negative for the last columns.

    >>> meka_count("Enron: -C 53"), meka_count("scene: -C -6"), meka_count("scene")
    (53, -6, None)
    """
    match = _MEKA_OPTION.search(relation)
    return int(match[1]) if match else None


def parse_label_xml(content: Content) -> list[str]:
    """Return the names in a MULAN label file, in file order.

    A hierarchy is read as a flat list of all labels, parents before children.  Document types, and
    with them entities and external references, are rejected.
    """
    names: list[str] = []
    parser = expat.ParserCreate()
    depth = 0

    def fail(reason: str) -> DataFormatError:
        return DataFormatError(reason, content.path, parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        plain = tag.rpartition(":")[2]
        if depth == 1:
            if plain != "labels":
                raise fail(f"a label file must start with <labels>, found <{tag[:40]}>")
        elif plain != "label":
            raise fail(f"expected <label name=...>, found <{tag[:40]}>")
        elif not attributes.get("name"):
            raise fail("a <label> has no name")
        else:
            names.append(attributes["name"])

    def end(_tag: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_ignored: Any) -> None:
        raise fail(
            "the file declares a document type, which is not supported; remove it (label files "
            "need no entities or external references)"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content.data, True)
    except expat.ExpatError as error:
        raise DataFormatError(
            f"this is not well-formed XML: {expat.ErrorString(error.code)}",
            content.path,
            error.lineno,
        ) from error
    except (LookupError, ValueError, TypeError) as error:  # an encoding that Python cannot provide
        if isinstance(error, DataFormatError):
            raise
        raise DataFormatError(
            f"the encoding of the XML file is not supported: {error}", content.path
        ) from error
    if not names:
        raise DataFormatError("the file contains no labels", content.path)
    if twice := repeated(names):
        raise DataFormatError(f"the file contains a label twice: {listed(twice)}", content.path)
    return names
