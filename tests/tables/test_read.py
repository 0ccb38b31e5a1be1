"""Files as tables: every cell as it is written, delimiters recognised, damage said."""

import gzip
import json

import numpy as np
import pytest

from imcc.datasets import DataFormatError, DataWarning
from imcc.tables import read_table
from imcc.tables._read import TableFile, decoded, joined_tables, table_fingerprint

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


def written(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_recognised(tmp_path, delimiter):
    text = 'a,b,c\n1,"x,y;z|\tw",3\n4,,n/a\n'
    rows = [["1", "x,y;z|\tw", "3"], ["4", "", "n/a"]]
    if delimiter != ",":
        text = "\n".join(
            delimiter.join(f'"{cell}"' for cell in row) for row in [["a", "b", "c"], *rows]
        )
    found = read_table(written(tmp_path, text)).to_pydict()
    assert found == {"a": ["1", "4"], "b": ["x,y;z|\tw", ""], "c": ["3", "n/a"]}
    found = read_table(written(tmp_path, "a;b\n1,5;2\n3,25;4\n"))
    assert found.to_pydict() == {"a": ["1,5", "3,25"], "b": ["2", "4"]}


def test_what_cannot_be_decided_is_asked(tmp_path):
    path = written(tmp_path, "a,b;c\n1,2;3\n")
    with pytest.raises(DataFormatError, match="could be ',' or ';': specify it with delimiter="):
        read_table(path)
    assert read_table(path, delimiter=";").column_names == ["a,b", "c"]


def test_encodings(tmp_path):
    assert read_table(written(tmp_path, "\ufeffä,b\n1,2\n")).column_names == ["ä", "b"]
    latin = written(tmp_path, "ä,b\nö,2\n", encoding="latin-1")
    with pytest.raises(DataFormatError, match="specify the encoding with encoding='latin-1'"):
        read_table(latin)
    assert read_table(latin, encoding="latin-1").to_pydict() == {"ä": ["ö"], "b": ["2"]}
    late = written(tmp_path, "a,b\n" + "1,2\n" * 40_000 + "ö,2\n", encoding="latin-1")
    with pytest.raises(DataFormatError, match="specify the encoding with encoding='latin-1'"):
        read_table(late)


def test_newlines_in_quotes_and_no_header(tmp_path):
    path = written(tmp_path, '1,"two\nlines"\n3,four\n')
    found = read_table(path, header=False).to_pydict()
    assert found == {"column0": ["1", "3"], "column1": ["two\nlines", "four"]}
    path = written(tmp_path, '"größe, cm","he said ""hi""", x \n1,2,3\n')
    assert read_table(path).column_names == ["größe, cm", 'he said "hi"', "x"]


def test_columns_of_the_same_name_are_renamed(tmp_path):
    path = written(tmp_path, "a,b,a,a_2,a\n1,2,3,4,5\n")
    with pytest.warns(DataWarning, match="called 'a'.*column 3 is now 'a_3'"):
        table = read_table(path)
    assert table.column_names == ["a", "b", "a_3", "a_2", "a_4"]
    assert [column[0].as_py() for column in table.columns] == list("12345")


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson.gz"])
def test_json_lines(tmp_path, name):
    lines = [
        {"age": 31, "town": "Köln", "tags": ["new", "old"]},
        {"age": 2.5, "town": None, "vip": True},
        {"town": "Ulm", "age": None, "tags": []},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + "\n\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    table = read_table(path)
    assert table.to_pydict() == {
        "age": [31.0, 2.5, None],
        "town": ["Köln", None, "Ulm"],
        "tags": [["new", "old"], None, []],
        "vip": [None, True, None],
    }
    with pytest.raises(ValueError, match=r"^delimiter"):
        TableFile(path, delimiter=";")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: the line is not a JSON object"),
        ("[1]\n", "line 1: the line is not a JSON object"),
        ('{"a": {"b": 1}}\n', "'a'"),
        ('{"a": [1]}\n{"a": "x"}\n', "'a'"),
        ("\n", "no rows"),
        ("".join(f'{{"{i}": 1}}\n' for i in range(6000)), "too many"),
        ("[" * 100_000 + "\n", "line 1"),
        ('{"a": "\\ud800"}\n', "line 1"),
    ],
)
def test_damaged_json_lines(tmp_path, text, said):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=said):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("  \n", "the file is empty"),
        ("a,b\n1,2\n1,2,3\n", "line 3: the row has 3 cells, and the first has 2"),
        ("a\0b,c\n1,2\n", "binary file"),
        ("a,b\r1,2\r3,4,5\r", "line 3: the row has 3 cells"),
    ],
)
def test_damage(tmp_path, text, said):
    with pytest.raises(DataFormatError, match=said):
        read_table(written(tmp_path, text))


def test_columns_of_few_values_are_coded_with_the_same_cells(tmp_path):
    rng = np.random.default_rng(0)
    n = 60_000  # several parts
    columns = {
        "town": rng.choice(["Ulm", "Bonn ", "", 'ü, "x"'], n).tolist(),
        "size": [f"{value:.6f}" for value in rng.normal(size=n)],
        # Few values in the first parts, many later.
        "late": ["a"] * (n // 2) + [f"b{i}" for i in range(n // 2)],
        "many": [f"v{i % 300}" for i in range(n)],
        # Too many for the last part, which is short, to have a quarter of them.
        "last": ["a"] * (n - 40) + [f"c{i}" for i in range(40)],
    }
    path = tmp_path / "t.csv"
    pandas.DataFrame(columns).to_csv(path, index=False)
    found = read_table(path)
    assert found.to_pydict() == columns
    coded = {name for name in columns if pa.types.is_dictionary(found[name].type)}
    assert coded == {"town", "many", "last"}
    assert found["size"].num_chunks == 1
    assert joined_tables([found, found]).to_pydict() == {k: v * 2 for k, v in columns.items()}
    plain = decoded(found)
    assert not any(pa.types.is_dictionary(kind) for kind in plain.schema.types)
    assert plain.to_pydict() == columns
    assert table_fingerprint(found) == table_fingerprint(plain)
    assert joined_tables([found, plain]).to_pydict() == {k: v * 2 for k, v in columns.items()}


def test_the_fingerprint_of_a_table_does_not_change():
    """Model files carry it."""
    table = pa.table({"a": ["x", 'ü "y"', None], "b": [1.5, None, 3.0], "c": [["t"], [], None]})
    expected = "c25634d1f444f4fbe9e1381351a24010b916bd0de3f85abfdd8c8409a2a9e78d"
    assert table_fingerprint(table) == expected
    longer = pa.table({"a": ["x", "y,", ""] * 9000})
    expected = "dcb62be4e0f5a1313f260e750cb2053e531bd604667197396a6eb42b9653718f"
    assert table_fingerprint(longer) == expected


def test_rows_longer_than_a_piece(tmp_path):
    long = "x" * 700_000
    rows = [["a", str(i)] for i in range(50_000)] + [[long, "y"], ["b", "z"]]
    path = written(tmp_path, "p,q\n" + "".join(f"{p},{q}\n" for p, q in rows))
    found = read_table(path)
    assert found["p"].to_pylist() == [row[0] for row in rows]
    assert found["q"].to_pylist() == [row[1] for row in rows]
    parts = list(TableFile(path).parts())
    assert len(parts) < 10
    assert sum(part.num_rows for part in parts) == len(rows)


# Lines: empty ones, long ones, and other ends than line feeds.

ENDS = ["\n", "\r\n", "\r"]


@pytest.mark.parametrize("end", ENDS)
def test_an_empty_line_in_a_single_column_is_a_row(tmp_path, end):
    """Three rows had two predictions."""
    path = written(tmp_path, end.join(["", "a", "1", "", '"3"', "", ""]))
    assert read_table(path).to_pydict() == {"a": ["1", "", "3", ""]}
    assert [TableFile(path).line_of(row) for row in range(5)] == [3, 4, 5, 6, None]
    found = read_table(path, header=False).to_pydict()
    assert found == {"column0": ["", "a", "1", "", "3", ""]}
    assert TableFile(path, header=False).line_of(0) == 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_empty_lines_in_several_columns_are_no_rows(tmp_path, end, encoding):
    """Below empty lines, the header was a row."""
    lines = ["", "", "a,b", "", "1,2", "", '3,"4', '5"', ""]
    path = written(tmp_path, end.join(lines), encoding=encoding)
    assert read_table(path).to_pydict() == {"a": ["1", "3"], "b": ["2", f"4{end}5"]}
    assert [TableFile(path).line_of(row) for row in range(3)] == [5, 7, None]
    found = read_table(path, header=False).to_pydict()
    assert found == {"column0": ["a", "1", "3"], "column1": ["b", "2", f"4{end}5"]}


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_long_header(tmp_path, delimiter):
    """It was cut after 64 KiB."""
    names = [f"a name, with a comma, of column {j}" for j in range(5000)]
    text = delimiter.join(f'"{name}"' for name in names) + "\n"
    cells = [f"{j:014}" for j in range(5000)]
    table = read_table(written(tmp_path, text + delimiter.join(cells) + "\n"))
    assert table.column_names == names
    assert [table[name][0].as_py() for name in names] == cells


def test_too_many_columns(tmp_path):
    """Arrow takes 10 kB for each."""
    path = written(tmp_path, "," * 70_000 + "\n" + "," * 70_000 + "\n")
    with pytest.raises(DataFormatError, match=r"70,001 columns.*max_bytes="):
        read_table(path)


def test_a_long_last_name(tmp_path):
    name = "x" * 70_000 + '"\n' + "y" * 30_000
    path = written(tmp_path, 'a,"' + name.replace('"', '""') + '"\n1,2\n')
    assert read_table(path).column_names == ["a", name]
    with pytest.raises(DataFormatError, match="line 1: the first row cannot be parsed: field lar"):
        read_table(written(tmp_path, "a," + "x" * 140_000 + "\n1,2\n"))


def test_a_long_cell_beside_another_error(tmp_path):
    """The csv module, which finds the lines of errors, reads no cells of more than 128 KiB."""
    start = "a,b\n1," + "x" * 140_000 + "\n"
    path = written(tmp_path, start + "3,4\n")
    assert [len(cell) for cell in read_table(path)["b"].to_pylist()] == [140_000, 1]
    assert TableFile(path).line_of(1) is None
    again = written(tmp_path, start.replace(",", ";") + "3;4\n", "semicolons.csv")
    assert read_table(again).equals(read_table(path))
    with pytest.raises(DataFormatError, match=r"Row #3: Expected 2 columns, got 3"):
        read_table(written(tmp_path, start + "3,4,5\n"))
    with pytest.raises(DataFormatError, match=r"line 2: the row has 3 cells"):
        read_table(written(tmp_path, "a,b\n3,4,5\n1," + "x" * 140_000 + "\n"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_quotation_mark_that_is_not_closed(tmp_path, encoding):
    """All rows below it were a part of its cell."""
    path = written(tmp_path, 'a,b\n1,2\n3,"4\n5,6\n7,8\n', encoding=encoding)
    with pytest.raises(DataFormatError, match=r"line 3: .*quotation mark"):
        read_table(path)
    closed = written(tmp_path, 'a,b\n1,2\n3,"4\n5,6\n7,8"\n', encoding=encoding)
    assert read_table(closed).to_pydict() == {"a": ["1", "3"], "b": ["2", "4\n5,6\n7,8"]}
