"""JSON lines: a table with one JSON object per line, whose keys are the columns."""

from __future__ import annotations

import json
from typing import IO, Any

from imcc.datasets import DataFormatError
from imcc.datasets._errors import listed
from imcc.datasets._files import Content
from imcc.tables._columns import arrow
from imcc.tables._sheet import typed_cells


def read_json_lines(file: IO[bytes], limits: Content) -> Any:
    """Return the objects of a file of JSON lines as a table.

    Parameters
    ----------
    file : binary file
        In UTF-8.
    limits : Content
        Its path and size on disk, from which the limit on the number of cells follows.

    Returns
    -------
    pyarrow.Table
        Columns of numbers, booleans, text or lists; a key that an object does not have is a missing
        value.  A column with values of several types is text, as in a CSV file.
    """
    records: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            json.dumps(record, ensure_ascii=False).encode()  # half a character cannot be written
            if not isinstance(record, dict):
                raise ValueError(f"it is of type {type(record).__name__}")
        except (ValueError, RecursionError) as error:
            raise DataFormatError("the line is not a JSON object", limits.path, number) from error
        if nested := [name for name, value in record.items() if isinstance(value, dict)]:
            raise DataFormatError(
                f"objects inside of objects are not read: {listed(nested)}", limits.path, number
            )
        records.append(record)
        names |= dict.fromkeys(record)
        # Every object may have keys of its own.
        limits.check_cells(len(records), len(names), "columns")
    columns = {}
    for name in names:
        cells = [record.get(name) for record in records]
        if not any(isinstance(cell, list) for cell in cells):
            columns[name] = typed_cells(name, cells, limits.path)
            continue
        try:
            columns[name] = arrow().array(cells)
        except (arrow().ArrowException, OverflowError) as error:
            raise DataFormatError(
                f"the column {name!r} has lists and other values, or lists of several types",
                limits.path,
            ) from error
    return arrow().table(columns)
