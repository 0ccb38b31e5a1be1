import pytest

from imcc.datasets import DataFormatError
from imcc.datasets._files import Content
from imcc.datasets._mulan import format_label_xml, parse_label_xml


def parse(text, tmp_path):
    data = text if isinstance(text, bytes) else text.encode()
    return parse_label_xml(Content(data, "labels.xml", "labels.xml", tmp_path / "labels.xml"))


def test_flat(tmp_path):
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<labels xmlns="http://mulan.sourceforge.net/labels">\n'
        '<label name="b"></label>\n<label name="a &amp; c"/></labels>'
    )
    assert parse(text, tmp_path) == ["b", "a & c"]


def test_a_hierarchy_is_read_as_a_flat_list(tmp_path):
    text = '<labels><label name="animal"><label name="cat"/></label><label name="car"/></labels>'
    assert parse(text, tmp_path) == ["animal", "cat", "car"]


def test_namespace_prefix_and_declared_encoding(tmp_path):
    text = (
        '<?xml version="1.0" encoding="iso-8859-1"?><m:labels xmlns:m="x"><m:label name="grün"/>'
        "</m:labels>"
    )
    assert parse(text.encode("latin-1"), tmp_path) == ["grün"]


HOSTILE = {
    "entity": '<!DOCTYPE labels [<!ENTITY a "b">]><labels><label name="&a;"/></labels>',
    "billion laughs": '<!DOCTYPE labels [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    '<labels><label name="&b;"/></labels>',
    "external file": '<!DOCTYPE labels [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    '<labels><label name="x">&a;</label></labels>',
    "external address": '<!DOCTYPE labels SYSTEM "http://127.0.0.1:9/x.dtd"><labels/>',
    "parameter entity": '<!DOCTYPE labels [<!ENTITY % p SYSTEM "file:///x"> %p;]><labels/>',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_entities_and_external_references_are_refused(tmp_path, text):
    with pytest.raises(DataFormatError, match="document type, which is not supported"):
        parse(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "not well-formed XML: no element found"),
        ("<labels>\n<label name='a'>", 2, "not well-formed"),
        ("<labels/>", None, "contains no labels"),
        ("<tags><label name='a'/></tags>", 1, "must start with <labels>"),
        ("<labels>\n<tag name='a'/></labels>", 2, "found <tag>"),
        ("<labels>\n\n<label/></labels>", 3, "has no name"),
        ("<labels><label name=''/></labels>", 1, "has no name"),
        ("<labels><label name='a'/><label name='a'/></labels>", None, "twice: 'a'"),
        ("<?xml version='1.0' encoding='klingon'?><labels/>", None, "unknown encoding"),
        (b"\x89PNG\r\n\x1a\n", 1, "not well-formed"),
    ],
)
def test_wrong_files(tmp_path, text, line, reason):
    with pytest.raises(DataFormatError, match=reason) as caught:
        parse(text, tmp_path)
    if line is not None:
        assert caught.value.line == line


def test_deep_nesting_does_no_harm(tmp_path):
    depth = 50_000
    text = "<labels>" + "".join(f"<label name='{i}'>" for i in range(depth)) + "</label>" * depth
    assert len(parse(text + "</labels>", tmp_path)) == depth


def test_what_is_written_can_be_read(tmp_path):
    names = ("a", "q\"u'o<t>e & é", "line\nbreak\ttab", "  ", "\U0001d518")
    assert parse(format_label_xml(names), tmp_path) == list(names)


def test_names_that_xml_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="XML cannot represent these label names"):
        format_label_xml(("ok", "bell\x07"))
