"""What the cells of a table of text mean, for all packages that read tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator


def csv_rows(
    lines: Iterable[str], delimiter: str, *, header: bool = True, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the rows of a CSV file, each with the number of the line in which it begins.

    An empty line is a row with a missing value if the table has a single column, and no row
    otherwise or above the header.  A row that cannot be parsed raises a ``csv.Error`` with two
    arguments, the problem and the line in which the row begins.

    >>> list(csv_rows(["a\n", "1\n", "\n", "3\n"], ","))
    [(1, ['a']), (2, ['1']), (3, ['']), (4, ['3'])]
    >>> list(csv_rows(["a,b\n", "1,2\n", "\n", "3,4\n"], ","))
    [(1, ['a', 'b']), (2, ['1', '2']), (4, ['3', '4'])]
    """
    rows = csv.reader(lines, delimiter=delimiter, strict=strict)
    width, line = 0, 1
    try:
        for cells in rows:
            if cells and not width:
                width = len(cells)
                if width == 1 and not header:
                    yield from ((above, [""]) for above in range(1, line))
            if cells or width == 1:
                yield line, cells or [""]
            line = rows.line_num + 1
    except csv.Error as error:
        raise csv.Error(str(error), line) from error
