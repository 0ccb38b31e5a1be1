"""Reading tables from files, every cell as it is written."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc._utils.optional import require
from imcc.datasets import DataFormatError
from imcc.tabular._columns import arrow

#: What may stand between the values of a file of text.
DELIMITERS = (",", ";", "\t", "|")
#: Suffixes of the files that are tables.
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")
# How much of a file the delimiter is looked for in.
_SAMPLE = 2**16


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
) -> Any:
    r"""Read a table from a CSV, TSV or Parquet file.

    Cells of text files are kept as they are written: what they are is for the schema to say.

    Parameters
    ----------
    path : path
    delimiter : str, optional
        What stands between the values of a text file.  None recognises commas, semicolons, tabs
        and vertical bars; a file in which that cannot be decided is an error.
    header : bool, default=True
        Whether the first row names the columns; they are ``column0, column1, ...`` if not.
    encoding : str, optional
        None is UTF-8, or what the byte-order mark of the file says.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "films.csv")
    >>> _ = file.write_text("year;genre\n1942;drama|romance\n1994;comedy\n")
    >>> read_table(file).to_pydict()
    {'year': ['1942', '1994'], 'genre': ['drama|romance', 'comedy']}
    >>> folder.cleanup()
    """
    name = os.fspath(path)
    if name.lower().endswith(".parquet"):
        return _read_parquet(name)
    with open(name, "rb") as file:
        head = file.read(_SAMPLE)
    encoding = encoding or _encoding_of(head)
    if b"\0" in head and not encoding.startswith("utf-16"):
        raise DataFormatError("this is a binary file, not text: it holds NUL bytes", name)
    try:
        sample = head.decode(encoding, errors="ignore" if len(head) == _SAMPLE else "strict")
    except LookupError as error:
        raise InvalidArgumentError("encoding", f"{encoding!r} is not known to Python") from error
    except UnicodeDecodeError as error:
        raise DataFormatError(_not_utf8(), name) from error
    if not sample.strip():
        raise DataFormatError("the file is empty", name)
    if delimiter is None:
        delimiter = "\t" if name.lower().endswith(".tsv") else find_delimiter(sample, name)
    elif len(delimiter) != 1:
        raise InvalidArgumentError("delimiter", f"must be one character, got {delimiter!r}")
    first = next(csv.reader(io.StringIO(sample), delimiter=delimiter))
    names = [text.strip() for text in first] if header else [""] * len(first)
    names = [text or f"column{i}" for i, text in enumerate(names)]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise DataFormatError(f"columns have the same name: {twice}", name)
    return _read_text(name, names, delimiter, header, encoding)


def _not_utf8() -> Message:
    return "the file is not UTF-8: say what it is with " + given("encoding", "latin-1")


def _encoding_of(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8-sig" if head.startswith(b"\xef\xbb\xbf") else "utf-8"


def find_delimiter(sample: str, path: str) -> str:
    r"""Return what stands between the values: it gives all rows the same number of columns.

    >>> find_delimiter("a;b;c\n1,5;2;3\n", "x.csv")
    ';'
    """
    lines = sample.splitlines()
    complete = "\n".join(lines[:-1] if len(lines) > 1 and len(sample) >= _SAMPLE else lines)
    widths = {}
    for candidate in DELIMITERS:
        rows = [row for row in csv.reader(io.StringIO(complete), delimiter=candidate) if row]
        found = {len(row) for row in rows[:100]}
        if len(found) == 1 and found != {1}:
            widths[candidate] = found.pop()
    if len(widths) == 1:
        return next(iter(widths))
    if not widths:
        if not any(candidate in lines[0] for candidate in DELIMITERS):
            return ","  # a single column
        # Rows of different lengths: the reader will say where.
        return max(DELIMITERS, key=lines[0].count)
    shown = " or ".join(repr(candidate) for candidate in widths)
    raise DataFormatError(
        Message(
            f"what stands between the values could be {shown}: say it with ", given("delimiter")
        ),
        path,
    )


def _read_text(path: str, names: list[str], delimiter: str, header: bool, encoding: str) -> Any:
    pa = arrow()
    reader = require("pyarrow.csv", "tables", "Reading tables")
    try:
        return reader.read_csv(
            path,
            read_options=reader.ReadOptions(
                column_names=names,
                skip_rows=0,
                skip_rows_after_names=1 if header else 0,
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
            ),
            parse_options=reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except UnicodeDecodeError as error:
        raise DataFormatError(_not_utf8(), path) from error
    except pa.ArrowException as error:
        said = str(error).splitlines()[0]
        if "UTF8" in said:
            raise DataFormatError(_not_utf8(), path) from error
        raise DataFormatError(f"the file cannot be read as a table: {said}", path) from error


def _read_parquet(path: str) -> Any:
    pa = arrow()
    parquet = require("pyarrow.parquet", "tables", "Reading tables")
    with open(path, "rb"):  # A missing file is not a damaged one.
        pass
    try:
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        said = str(error).splitlines()[0]
        raise DataFormatError(f"the file cannot be read as Parquet: {said}", path) from error
