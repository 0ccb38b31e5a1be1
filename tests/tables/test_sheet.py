"""Spreadsheets: cells of every type, and workbooks that are damaged or ask for much memory."""

import datetime
import io
import re
import zipfile

import numpy as np
import pytest

from imcc.datasets import DataFormatError, read
from imcc.tables import TableEncoder, read_table
from imcc.tables._read import TableFile, is_table

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("pyarrow")

DAY = datetime.datetime(2021, 5, 31)


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


def test_cells_of_every_type(tmp_path):
    rows = [
        ["whole", " real ", "flag", "day", "word", "mixed", None],
        [1, 0.5, True, DAY, "red", "n/a", None],
        [None] * 7,
        [2, None, False, None, "blue", 2.5, "x"],
    ]
    path = workbook(tmp_path / "t.xlsx", one=rows)
    assert is_table(path)
    found = read_table(path).to_pydict()
    assert found == {
        "whole": [1, 2],
        "real": [0.5, None],
        "flag": [True, False],
        "day": [DAY, None],
        "word": ["red", "blue"],
        "mixed": ["n/a", "2.5"],
        "column6": [None, "x"],
    }
    assert list(read_table(path, header=False).column_names)[:2] == ["column0", "column1"]
    assert sum(part.num_rows for part in TableFile(path).parts()) == 2


def test_a_sheet_means_the_same_as_its_csv(tmp_path):
    rows = [["a", "b", "t", "y"]]
    rows += [[i / 8, ["red", "blue", "green"][i % 3], DAY, i % 2] for i in range(30)]
    path = workbook(tmp_path / "t.xlsx", one=rows)
    text = "\n".join(",".join(str(cell) for cell in row) for row in rows)
    (tmp_path / "t.csv").write_text(text)
    tables = [read_table(tmp_path / name) for name in ("t.xlsx", "t.csv")]
    encoder = TableEncoder(drop=["y"]).fit(tables[0])
    first, second = (encoder.transform(table) for table in tables)
    np.testing.assert_allclose(np.asarray(first), np.asarray(second))
    with pytest.raises(DataFormatError, match="which columns are labels"):
        read(path)
    assert read(path, labels=["y"]) == read(tmp_path / "t.csv", labels=["y"])


def test_one_of_several_sheets(tmp_path):
    path = workbook(tmp_path / "t.xlsx", first=[["a"], [1]], second=[["b"], [2]])
    with pytest.raises(DataFormatError, match=r"'first', 'second'.*member="):
        read_table(path)
    assert read_table(path, member="second").to_pydict() == {"b": [2]}
    with pytest.raises(DataFormatError, match="no sheet 'third'"):
        read_table(path, member="third")
    with pytest.raises(ValueError, match="delimiter"):
        read_table(path, delimiter=";")
    with pytest.raises(DataFormatError, match=r"save it as \.xlsx"):
        read_table(tmp_path / "old.xls")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    import sys

    path = workbook(tmp_path / "t.xlsx", one=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"'tables'.*openpyxl"):
        read_table(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "no rows"), ([["a", "b"]], "no rows")],
)
def test_sheets_that_are_no_tables(tmp_path, rows, message):
    with pytest.raises(DataFormatError, match=message):
        read_table(workbook(tmp_path / "t.xlsx", one=rows))


def test_formulas_without_a_stored_value_are_not_missing_values(tmp_path):
    path = workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1, 2], [3, "=A2*2"]])
    with pytest.raises(DataFormatError, match="B3"):
        read_table(path)

    def stored(sheet):
        assert b"<v" in sheet
        return sheet.replace(b"<f>A2*2</f><v />", b"<f>A2*2</f><v>2</v>").replace(
            b"<f>A2*2</f><v></v>", b"<f>A2*2</f><v>2</v>"
        )

    assert read_table(changed(path, SHEET, stored)).to_pydict() == {"a": [1, 3], "b": [2, 2]}


@pytest.mark.parametrize("prefix", [b"", b"x:"])
def test_a_formula_may_have_an_empty_text_as_its_value(tmp_path, prefix):
    path = workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1, 2], [3, "=A2*2"]])

    def stored(sheet):
        return re.sub(
            rb'<c r="B3"><f>(.*?)</f>.*?</c>', rb'<c r="B3" t="str"><f>\1</f><v/></c>', sheet
        )

    def prefixed(sheet):
        if not prefix:
            return sheet
        sheet = re.sub(rb"<(/?)(\w)", rb"<\1x:\2", sheet)
        return sheet.replace(b"xmlns=", b"xmlns:x=")

    changed(path, SHEET, prefixed)
    with pytest.raises(DataFormatError, match="B3"):
        read_table(path)
    path = workbook(tmp_path / "u.xlsx", one=[["a", "b"], [1, 2], [3, "=A2*2"]])
    found = read_table(changed(path, SHEET, lambda sheet: prefixed(stored(sheet))))
    assert found.to_pydict() == {"a": [1, 3], "b": [2, None]}


def test_cells_are_counted_before_formulas_are_looked_at(tmp_path):
    """A formula in the last column of each row makes a sheet of 16,384 columns."""
    path = workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1, "=A2"]])
    far = "".join(f'<row r="{i}"><c r="XFD{i}"><f>A1</f></c></row>' for i in range(3, 20_000))
    rows = f"{far}</sheetData>".encode()
    with pytest.raises(DataFormatError, match="cells"):
        read_table(changed(path, SHEET, lambda sheet: sheet.replace(b"</sheetData>", rows)))


@pytest.mark.parametrize("cell", [datetime.time(3, 4), datetime.timedelta(hours=30)])
def test_times_and_durations_are_refused(tmp_path, cell):
    with pytest.raises(DataFormatError, match="'b'"):
        read_table(workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1, cell]]))


def changed(path, name, change):
    """Rewrite a member of a workbook."""
    data = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, change(content) if member == name else content)
    path.write_bytes(data.getvalue())
    return path


SHEET = "xl/worksheets/sheet1.xml"


def test_hostile_workbooks(tmp_path):
    def fresh():
        return workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1, 2]])

    bomb = b'<!DOCTYPE x [<!ENTITY e "ha"><!ENTITY f "&e;&e;">]>'
    with pytest.raises(DataFormatError, match="document type"):
        read_table(changed(fresh(), SHEET, lambda xml: bomb + xml))
    with pytest.raises(DataFormatError, match="document type"):
        read_table(changed(fresh(), SHEET, lambda xml: (bomb + xml).decode().encode("utf-16")))
    with pytest.raises(DataFormatError, match=r"larger than the limit.*max_bytes"):
        read_table(changed(fresh(), SHEET, lambda xml: xml + b" " * 20_000_000))
    # A single cell far away: its row is read, and what is between is not.
    far = changed(fresh(), SHEET, lambda xml: xml.replace(b'r="A2"', b'r="A1048576"'))
    far = changed(far, SHEET, lambda xml: xml.replace(b'<row r="2"', b'<row r="1048576"'))
    assert read_table(far).num_rows == 1
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(3, 2000))
    end = b"</sheetData>"
    many = changed(fresh(), SHEET, lambda xml: xml.replace(end, rows + end))
    with pytest.raises(DataFormatError, match="cells, which is too many"):
        read_table(many)


def test_damaged_workbooks_are_refused(tmp_path):
    data = workbook(tmp_path / "t.xlsx", one=[["a", "b"], [1.5, "x"], [2, "y"]]).read_bytes()
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(150):
        bad = bytearray(data)
        for place in rng.integers(len(bad), size=rng.integers(1, 6)):
            bad[place] = rng.integers(256)
        (tmp_path / "t.xlsx").write_bytes(bad)
        try:
            outcomes.append(read_table(tmp_path / "t.xlsx").num_rows > 0)
        except DataFormatError:
            outcomes.append(None)
    assert None in outcomes
    (tmp_path / "t.xlsx").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DataFormatError, match="not a spreadsheet"):
        read_table(tmp_path / "t.xlsx")
