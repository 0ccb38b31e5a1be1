import numpy as np
import pytest

from imcc.datasets import DataFormatError, read
from imcc.datasets._files import Content
from imcc.datasets._mulan import parse_label_xml
from tests.writers import write

ARFF = """@relation '{relation}'
@attribute c {{0,1}}
@attribute x numeric
@attribute a {{0,1}}
@attribute y numeric
@attribute b {{0,1}}
@data
1,0.5,0,7,1
0,1.5,1,8,1
"""
XML = "<labels><label name='b'/><label name='a'/></labels>"


@pytest.fixture
def mulan(tmp_path):
    (tmp_path / "m.arff").write_text(ARFF.format(relation="m"))
    (tmp_path / "m.xml").write_text(XML)
    return tmp_path / "m.arff"


def check_ba(dataset):
    assert dataset.label_names == ("b", "a")
    np.testing.assert_array_equal(dataset.Y, [[1, 0], [1, 1]])
    assert dataset.feature_names == ("c", "x", "y")
    np.testing.assert_array_equal(dataset.X, [[1, 0.5, 7], [0, 1.5, 8]])


def test_the_order_of_labels_is_that_of_the_xml_file(mulan):
    check_ba(read(mulan))
    check_ba(read(mulan, labels=mulan.with_suffix(".xml")))
    check_ba(read(mulan, labels=str(mulan.with_suffix(".xml"))))


def test_labels_by_list_count_and_prefix(mulan):
    check_ba(read(mulan, labels=["b", "a"]))
    assert read(mulan, labels=1).label_names == ("c",)
    assert read(mulan, labels=-1).label_names == ("b",)
    assert read(mulan, label_prefix="a").label_names == ("a",)


def test_a_label_that_is_not_in_the_arff_file(mulan):
    mulan.with_suffix(".xml").write_text("<labels><label name='b'/><label name='z'/></labels>")
    with pytest.raises(DataFormatError, match=r"m\.xml contains 1 label.*not columns.*'z'"):
        read(mulan)


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"labels": 1, "label_prefix": "a"}, ValueError, "labels and label_prefix"),
        ({"labels": "m.xml", "label_prefix": "a"}, ValueError, "labels and label_prefix"),
        ({"labels": 5}, DataFormatError, "5 label"),
        ({"labels": 0}, DataFormatError, "0 label"),
        ({"label_prefix": "zzz"}, DataFormatError, "label_prefix="),
        ({"labels": []}, ValueError, "labels"),
        ({"labels": True}, TypeError, "labels"),
        ({"labels": ["a", "a"]}, ValueError, "'a'"),
    ],
)
def test_wrong_ways_to_name_labels(mulan, options, error, named):
    with pytest.raises(error, match=named):
        read(mulan, **options)


def test_without_an_xml_file_the_message_says_what_to_do(mulan):
    mulan.with_suffix(".xml").unlink()
    with pytest.raises(DataFormatError, match="labels="):
        read(mulan)


def test_repeated_attribute_names_are_only_wrong_for_labels(tmp_path):
    path = tmp_path / "d.arff"
    path.write_text(
        "@relation d\n@attribute x numeric\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
        "1,2,0\n"
    )
    assert read(path, labels=["y"]).feature_names == ("x", "x")
    with pytest.raises(DataFormatError, match="several columns have the name of a label: 'x'"):
        read(path, labels=["x"])


def test_training_and_test_files_are_joined(tmp_path, toy):
    write(toy[:1], tmp_path / "toy-train.arff")
    write(toy[1:], tmp_path / "toy-test.arff")
    (tmp_path / "toy-train.xml").rename(tmp_path / "toy.xml")
    joined = read([tmp_path / "toy-train.arff", tmp_path / "toy-test.arff"])
    assert joined == toy
    assert joined.name == "toy"
    assert "toy-train.arff" in joined.source
    assert "toy-test.arff" in joined.source
    with pytest.raises(ValueError, match="empty list"):
        read([])


def test_errors_in_a_joined_file_name_the_right_one(tmp_path):
    first, second = tmp_path / "d-1.arff", tmp_path / "d-2.arff"
    header = "@relation d\n@attribute x numeric\n@attribute y numeric\n@data\n"
    first.write_text(header + "1,0\n1,1\n")
    second.write_text(header + "1,1\n1,7\n")
    with pytest.raises(DataFormatError, match=r"d-2\.arff, line 6: the label 'y' is not binary"):
        read([first, second], labels=["y"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("@attribute y {0,1}\n", ""), "'no column for y'"),
        (("@attribute x", "@attribute z"), "'z for x'"),
        (("{p,q}", "{q,p}"), "'w for w'"),
        (("x numeric", "x {0,1}"), "'x for x'"),
    ],
)
def test_files_that_do_not_belong_together(tmp_path, change, reason):
    text = (
        "@relation d\n@attribute x numeric\n@attribute w {p,q}\n@attribute y {0,1}\n@data\n1,p,0\n"
    )
    (tmp_path / "a.arff").write_text(text)
    other = text.replace(*change)
    (tmp_path / "b.arff").write_text(other if "y {" in other else other.replace(",p,0", ",p"))
    with pytest.raises(DataFormatError, match=reason):
        read([tmp_path / "a.arff", tmp_path / "b.arff"], labels=["y"])


@pytest.mark.parametrize(
    ("relation", "labels", "features"),
    [("m: -C 2", ("c", "x"), 3), ("m: -c 1 -split 5", ("c",), 4), ("m: -C -1", ("b",), 4)],
)
def test_meka_counts_labels_in_the_relation(tmp_path, relation, labels, features):
    path = tmp_path / "meka.arff"
    path.write_text(ARFF.format(relation=relation).replace("0.5", "1").replace("1.5", "0"))
    dataset = read(path)
    assert dataset.label_names == labels
    assert dataset.n_features == features


@pytest.mark.parametrize("count", [0, 5, -5, 99])
def test_meka_counts_that_cannot_be(tmp_path, count):
    path = tmp_path / "meka.arff"
    path.write_text(ARFF.format(relation=f"m: -C {count}"))
    with pytest.raises(DataFormatError, match=f"{abs(count)} label"):
        read(path)


def test_an_xml_file_beside_it_wins_over_the_relation(mulan):
    mulan.write_text(ARFF.format(relation="MEDC: -C 1"))
    check_ba(read(mulan))


def test_a_count_in_a_comment_does_not_make_it_mekas(mulan):
    mulan.write_text("% made with -C 2\n" + mulan.read_text())
    mulan.with_suffix(".xml").unlink()
    with pytest.raises(DataFormatError, match="labels="):
        read(mulan)


def test_name_option(mulan):
    assert read(mulan).name == "m"
    assert read(mulan, name="mine").name == "mine"


def parse(text, tmp_path):
    data = text if isinstance(text, bytes) else text.encode()
    return parse_label_xml(Content(data, "labels.xml", "labels.xml", tmp_path / "labels.xml"))


def test_label_xml(tmp_path):
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
    with pytest.raises(DataFormatError, match="document type"):
        parse(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<labels>\n<label name='a'>",
        "<labels/>",
        "<tags><label name='a'/></tags>",
        "<labels>\n<tag name='a'/></labels>",
        "<labels>\n\n<label/></labels>",
        "<labels><label name=''/></labels>",
        "<labels><label name='a'/><label name='a'/></labels>",
        "<?xml version='1.0' encoding='klingon'?><labels/>",
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_wrong_label_files(tmp_path, text):
    with pytest.raises(DataFormatError, match=r"labels\.xml"):
        parse(text, tmp_path)


def test_deep_nesting_does_no_harm(tmp_path):
    depth = 50_000
    text = "<labels>" + "".join(f"<label name='{i}'>" for i in range(depth)) + "</label>" * depth
    assert len(parse(text + "</labels>", tmp_path)) == depth


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning")
def test_real_files(mirror):
    genbase = read(mirror / "mulan/genbase/genbase.arff")
    assert (genbase.n_rows, genbase.n_features, genbase.n_labels) == (662, 1185, 27)
    assert set(np.unique(genbase.X)) == {0.0, 1.0}
    medical = read(mirror / "mulan/medical/medical.arff")
    assert medical.is_sparse
    assert medical.label_names[0] == "Class-0-593_70"
    enron = read(mirror / "mulan/enron/enron.arff")
    meka = read(mirror / "meka/Enron.arff.bz2")
    assert sorted(enron.label_names) == sorted(meka.label_names)
    assert sorted(enron.feature_names) == sorted(meka.feature_names)
    assert enron.X.sum() == meka.X.sum()
    counts = dict(zip(enron.label_names, enron.Y.sum(axis=0), strict=True))
    assert counts == dict(zip(meka.label_names, meka.Y.sum(axis=0), strict=True))
