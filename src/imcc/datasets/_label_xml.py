"""Label files of MULAN: XML with the label names, as a flat list or a hierarchy."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Content

_NAMESPACE = "http://mulan.sourceforge.net/labels"

# Characters that XML 1.0 cannot represent, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    _run(parser, content)
    if not names:
        raise DataFormatError("the file contains no labels", content.path)
    if twice := repeated(names):
        raise DataFormatError(f"the file contains a label twice: {listed(twice)}", content.path)
    return names


def _run(parser: Any, content: Content) -> None:
    try:
        parser.Parse(content.data, True)
    except DataFormatError:
        raise
    except expat.ExpatError as error:
        raise DataFormatError(
            f"this is not well-formed XML: {expat.ErrorString(error.code)}",
            content.path,
            error.lineno,
        ) from error
    except (LookupError, ValueError, TypeError) as error:  # an encoding that Python cannot provide
        raise DataFormatError(
            f"the encoding of the XML file is not supported: {error}", content.path
        ) from error


def format_label_xml(names: tuple[str, ...]) -> str:
    """Return the text of a label file.

    >>> print(format_label_xml(("R&B",)))
    <?xml version="1.0" encoding="utf-8"?>
    <labels xmlns="http://mulan.sourceforge.net/labels">
    <label name="R&amp;B"></label>
    </labels>
    """
    if odd := [name for name in names if _NOT_XML.search(name)]:
        raise ValueError(f"XML cannot represent these label names: {listed(odd)}; rename them")
    labels = [f"<label name={quoteattr(name)}></label>" for name in names]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            f'<labels xmlns="{_NAMESPACE}">',
            *labels,
            "</labels>",
            "",
        ]
    )
