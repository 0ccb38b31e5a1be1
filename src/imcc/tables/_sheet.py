"""Spreadsheets (.xlsx), read with openpyxl within limits on what they unpack to.

A workbook is a zip archive of XML.  The sizes that the archive declares bound what can be unpacked;
document types, with which a kilobyte of XML can become gigabytes, are refused; and the cells are
counted while they are read, because a single cell can stand in row 1,048,576.
"""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from imcc._utils.errors import given
from imcc._utils.optional import require
from imcc.datasets import DataFormatError
from imcc.datasets._errors import listed
from imcc.datasets._files import Content, open_member, unpack_limit
from imcc.tables._columns import arrow, column_names, damage_reported

_FORBIDDEN = (b"<!DOCTYPE", b"<!ENTITY")
# Of which some programs write the name with a prefix.
_FORMULAS = (b"<f>", b"<f ", b":f>", b":f ")
_BLOCK = 2**20


def read_sheet(file: IO[bytes], limits: Content, sheet: str | None, header: bool) -> Any:
    """Return a sheet of a workbook as a table.

    Parameters
    ----------
    file : binary file
        The workbook.
    limits : Content
        Its path and size on disk, from which the limits follow.
    sheet : str or None
        Name of the sheet; None if there is only one.
    header : bool
        Whether the first row has the column names.

    Returns
    -------
    pyarrow.Table
        Columns of numbers, booleans, dates or text.  A column with cells of several types is text,
        as in a CSV file.  Rows without a value are left out.
    """
    openpyxl = require("openpyxl", "Reading spreadsheets (the extra 'tables')")
    path = limits.path
    with damage_reported(path, "a spreadsheet in the format .xlsx"):
        has_formulas = _check_archive(file, limits)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        names = book.sheetnames
        if sheet is None and len(names) != 1:
            raise DataFormatError(
                f"the workbook has the sheets {listed(names)}; select one with " + given("member"),
                path,
            )
        if sheet is not None and sheet not in names:
            raise DataFormatError(
                f"the workbook has no sheet {sheet!r}; it has {listed(names)}", path
            )
        page = book[names[0] if sheet is None else sheet]
        page.reset_dimensions()  # which the file only declares
        rows = _rows(page, limits)  # which also counts the cells
        if has_formulas:
            file.seek(0)
            formulas = openpyxl.load_workbook(file, read_only=True, keep_links=False)[page.title]
            formulas.reset_dimensions()
            _refuse_unknown_values(page, formulas, path)
    return _table(rows, header, path)


def _refuse_unknown_values(page: Any, formulas: Any, path: str) -> None:
    """Refuse formulas whose value is not stored: programs that only write do not compute it."""
    for values, texts in zip(page.iter_rows(), formulas.iter_rows(), strict=True):
        for value, text in zip(values, texts, strict=True):
            # A stored value that is an empty text has that type.
            is_unknown = value.value is None and value.data_type != "str"
            if is_unknown and text.value is not None:
                raise DataFormatError(
                    f"the cell {text.coordinate} is a formula without a stored value: open and "
                    "save the file in a spreadsheet program",
                    path,
                )


def _check_archive(file: IO[bytes], limits: Content) -> bool:
    """Refuse an archive that unpacks to too much, or that has document types.

    Return whether there are formulas.
    """
    has_formulas = False
    allowed = unpack_limit(limits.size, limits.max_bytes)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > allowed:
            raise DataFormatError(
                f"the unpacked workbook is larger than the limit of {allowed:,} bytes; if you "
                "trust it, raise the limit with " + given("max_bytes"),
                limits.path,
            )
        for member in members:
            with open_member(archive, member, limits.path) as stream:
                tail = b""
                while block := stream.read(_BLOCK):
                    # In UTF-16, which spreadsheet programs do not write, they would not be found.
                    is_xml = member.filename.endswith((".xml", ".rels", ".vml"))
                    if any(word in tail + block for word in _FORBIDDEN) or (
                        is_xml and b"\0" in block
                    ):
                        raise ValueError("its XML has a document type")
                    has_formulas |= any(word in tail + block for word in _FORMULAS)
                    tail = block[-16:]
    file.seek(0)
    return has_formulas


def _rows(page: Any, limits: Content) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet that have a value, without empty cells at their ends."""
    rows, n_cells = [], 0
    for row in page.iter_rows(values_only=True):
        n_cells += len(row) + 1
        if n_cells > limits.max_cells:
            raise DataFormatError(
                f"the sheet has more than {limits.max_cells:,} cells, which is too many for a file "
                "of this size",
                limits.path,
            )
        width = len(row)
        while width and row[width - 1] in (None, ""):
            width -= 1
        if width:
            rows.append(row[:width])
    return rows


def _table(rows: list[tuple[Any, ...]], header: bool, path: str) -> Any:
    if len(rows) <= int(header):
        raise DataFormatError("the sheet has no rows", path)
    width = max(map(len, rows))
    first = rows[0] if header else ()
    cells = ["" if cell is None else str(cell) for cell in first]
    names = column_names([*cells, *[""] * (width - len(cells))], path)
    body = rows[int(header) :]
    if width * len(body) > 2 * sum(map(len, body)) + 2**24:
        raise DataFormatError("the rows of the sheet have very different lengths", path)
    return arrow().table(
        {
            name: typed_cells(name, [row[j] if j < len(row) else None for row in body], path)
            for j, name in enumerate(names)
        }
    )


def typed_cells(name: str, cells: list[Any], path: str) -> Any:
    """Return cells as an array: of their type if it is the same, otherwise as text."""
    pa = arrow()
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds & {time, timedelta}:
        raise DataFormatError(
            f"the column {name!r} has times of day or durations, which are not supported: turn "
            "them into numbers or dates",
            path,
        )
    if kinds <= {int, float} or (len(kinds) == 1 and kinds <= {bool, str}):
        try:
            return pa.array(cells, pa.float64() if float in kinds else None)
        except (pa.ArrowInvalid, OverflowError):  # an integer of more than 64 bits
            return pa.array([None if cell is None else float(cell) for cell in cells])
    if kinds <= {date, datetime}:
        return pa.array(
            [cell if cell is None else datetime(*cell.timetuple()[:6]) for cell in cells],
            pa.timestamp("s"),
        )
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.15g}"
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
