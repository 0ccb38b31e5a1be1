"""Predictions for tables: part by part, with the ids of the rows."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc._utils.text import defused
from imcc.cli._tables import check_extra, located, table_files, table_model
from imcc.cli._terminal import json_text, print_result, stderr

if TYPE_CHECKING:
    import numpy as np

    from imcc.tabular import TableClassifier, TableFile


# Rows that are predicted at a time.
_ROWS = 4096
# Bytes of a group of rows in Parquet files, before they are packed.
_GROUP_BYTES = 2**22


@dataclass(frozen=True)
class Wanted:
    """What is to be written about each row.

    Attributes
    ----------
    form : {"csv", "json", "jsonl", "parquet", "xlsx"}
    scores, proba : bool
        Whether the labels' scores or probabilities are written.
    top_k : int or None
        The best labels only: in columns of their own.
    top : int or None
        The best labels only: as tags in one column.
    separator : str
        What stands between these tags.
    raw_csv : bool
        Whether cells that a spreadsheet would take for formulas are written as they are.
    """

    form: str
    scores: bool = False
    proba: bool = False
    top_k: int | None = None
    top: int | None = None
    separator: str = "|"
    raw_csv: bool = False


def predict_table(
    model: Any,
    inputs: tuple[str, ...],
    reading: dict[str, Any],
    wanted: Wanted,
    output: str | None,
    *,
    ignore_extra: bool,
    quiet: bool,
) -> int:
    """Write the predictions for tables, and return the number of rows.

    Neither the table nor the predictions are held in memory as a whole.
    """
    files = table_files(inputs, reading)
    n_rows = 0

    def parts() -> Iterator[dict[str, Any]]:
        nonlocal n_rows
        with _progress(files, quiet) as moved, _warnings_once() as gather:
            for predicted, size in _predicted(model, files, wanted, ignore_extra):
                n_rows += size
                moved(n_rows)
                gather()
                yield predicted

    if output is None:
        for text in _texts(parts(), wanted):
            print_result(text)
    elif wanted.form in ("parquet", "xlsx"):
        write = _write_parquet if wanted.form == "parquet" else _write_xlsx
        with _appearing_whole(output) as temporary:
            write(parts(), wanted, temporary)
    else:
        with _appearing_whole(output) as temporary, _packing(temporary, output) as file:
            for text in _texts(parts(), wanted):
                file.write(text.encode("utf-8"))
    return n_rows


def _predicted(
    model: Any, files: Sequence[TableFile], wanted: Wanted, ignore_extra: bool
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield columns to write, part by part, and the rows in each."""
    from imcc.tabular import TableError

    inner = table_model(model)
    assert inner is not None
    names = [str(name) for name in inner.label_names_]
    for file in files:
        start = 0
        for table in _slices(file.parts()):
            check_extra(inner, table.column_names, file.path, ignore_extra)
            try:
                yield _columns(model, inner, names, table, wanted), table.num_rows
            except TableError as error:
                row = None if error.row is None else error.row + start
                raise located(error, file, row) from error
            start += table.num_rows


def _slices(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield fewer rows at a time: the features of text take far more memory than the text."""
    for part in parts:
        for start in range(0, part.num_rows, _ROWS):
            yield part.slice(start, _ROWS)


def _columns(
    model: Any, inner: TableClassifier, names: list[str], table: Any, wanted: Wanted
) -> dict[str, Any]:
    """Return the columns to write for some rows: ids first."""
    import numpy as np

    from imcc.calibration import label_scores

    ids = {
        name: table[name].to_pylist()
        for name in inner.schema_.of_kind("id")
        if name in table.column_names and name not in names
    }
    scores: np.ndarray | None = None
    if wanted.proba:
        scores = np.asarray(model.predict_proba(table))
    elif wanted.scores or wanted.top or wanted.top_k:
        scores = label_scores(model, table, len(names))
    out: dict[str, Any] = {"ids": ids, "names": names, "scores": scores}
    if scores is not None and (best_of := wanted.top or wanted.top_k):
        out["best"] = np.argsort(-scores, axis=1, kind="stable")[:, :best_of]
    if "best" not in out and (scores is None or wanted.form in ("json", "jsonl")):
        out["predicted"] = np.asarray(model.predict(table))
    return out


def _flat(part: dict[str, Any], wanted: Wanted) -> dict[str, list[Any]]:
    """Return a part as plain columns, for CSV and Parquet."""
    names, scores = part["names"], part["scores"]
    columns: dict[str, list[Any]] = dict(part["ids"])
    word = "probability" if wanted.proba else "score"
    if wanted.top is not None:
        columns["tags"] = [
            wanted.separator.join(names[j] for j in row) for row in part["best"].tolist()
        ]
    elif wanted.top_k is not None:
        for k in range(part["best"].shape[1]):
            best = part["best"][:, k]
            columns[f"label{k + 1}"] = [names[j] for j in best]
            if wanted.scores or wanted.proba:
                columns[f"{word}{k + 1}"] = scores[range(len(best)), best].tolist()
    elif scores is not None:
        columns |= {name: scores[:, j].tolist() for j, name in enumerate(names)}
    else:
        columns |= {name: part["predicted"][:, j].tolist() for j, name in enumerate(names)}
    return columns


def _records(part: dict[str, Any], wanted: Wanted) -> list[dict[str, Any]]:
    """Return a part as one record per row, for JSON."""
    names, scores = part["names"], part["scores"]
    word = "probability" if wanted.proba else "score"
    n_rows = len(part["best"] if "best" in part else part["predicted"])
    rows = []
    for i in range(n_rows):
        row: dict[str, Any] = {name: values[i] for name, values in part["ids"].items()}
        if wanted.top is not None:
            row["tags"] = [names[j] for j in part["best"][i]]
        elif "best" in part:
            row["top"] = [{"label": names[j], word: float(scores[i, j])} for j in part["best"][i]]
        else:
            on = part["predicted"][i]
            row["labels"] = [name for name, yes in zip(names, on, strict=True) if yes]
            if scores is not None:
                key = "probabilities" if wanted.proba else "scores"
                row[key] = dict(zip(names, map(float, scores[i]), strict=True))
        rows.append(row)
    return rows


def _texts(parts: Iterator[dict[str, Any]], wanted: Wanted) -> Iterator[str]:
    """Yield the text of a file, piece by piece."""
    if wanted.form == "csv":
        for number, part in enumerate(parts):
            yield _csv_text(_flat(part, wanted), number == 0, wanted.raw_csv)
    elif wanted.form == "jsonl":
        for part in parts:
            rows = _records(part, wanted)
            yield "".join(json_text(row, indent=None) + "\n" for row in rows)
    else:
        opened = False
        for part in parts:
            # The records between the brackets of a list.
            text = json_text(_records(part, wanted), indent=1)[1:-2]
            yield ("," if opened else "[") + text
            opened = True
        yield "\n]\n" if opened else "[]\n"


def _csv_text(columns: dict[str, list[Any]], heading: bool, raw: bool) -> str:
    buffer = io.StringIO(newline="")
    # The csv module leaves a carriage return without quotes unless everything is quoted.
    odd = any("\r" in name for name in columns)
    writer = csv.writer(
        buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
    )
    if heading:
        writer.writerow(columns if raw else map(defused, columns))
    for row in zip(*columns.values(), strict=True):
        cells = [repr(cell) if isinstance(cell, float) else cell for cell in row]
        writer.writerow(cells if raw else map(defused, cells))
    return buffer.getvalue()


def _write_parquet(parts: Iterator[dict[str, Any]], wanted: Wanted, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    waiting: list[Any] = []
    try:
        for part in parts:
            table = pa.table(_flat(part, wanted))
            writer = writer or pq.ParquetWriter(path, table.schema)
            waiting.append(table.cast(writer.schema))
            # What is known about groups of rows is kept until the end: so they are large.
            if sum(table.nbytes for table in waiting) >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
        if writer is not None and waiting:
            writer.write_table(pa.concat_tables(waiting))
    finally:
        if writer is not None:
            writer.close()


# What a sheet of Excel holds.
_SHEET_ROWS, _SHEET_COLUMNS, _CELL_CHARACTERS = 2**20, 2**14, 32_767
# Whole numbers up to this are the same in Excel, whose numbers are floating point.
_LARGEST_INTEGER = 2**53


def _write_xlsx(parts: Iterator[dict[str, Any]], wanted: Wanted, path: str) -> None:
    """Write a sheet row by row; words are always words, also those that look like formulas."""
    xlsxwriter = require("xlsxwriter", "tables", "Writing .xlsx files")
    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "use_zip64": True,
    }
    book = xlsxwriter.Workbook(path, options)
    try:
        sheet = book.add_worksheet("predictions")
        at = 0
        for part in parts:
            columns = _flat(part, wanted)
            if at == 0:
                if len(columns) > _SHEET_COLUMNS:
                    raise InvalidArgumentError(
                        "output",
                        f"is a sheet, which has {_SHEET_COLUMNS:,} columns, and {len(columns):,} "
                        "are to be written: use .csv or .parquet",
                    )
                for j, name in enumerate(columns):
                    _write_cell(sheet, 0, j, name)
                at = 1
            for row in zip(*columns.values(), strict=True):
                if at >= _SHEET_ROWS:
                    raise InvalidArgumentError(
                        "output",
                        f"is a sheet, which has {_SHEET_ROWS - 1:,} rows besides the names of the "
                        "columns, and there are more: use .csv or .parquet",
                    )
                for j, cell in enumerate(row):
                    _write_cell(sheet, at, j, cell)
                at += 1
    finally:
        book.close()


def _write_cell(sheet: Any, row: int, column: int, cell: Any) -> None:
    if cell is None or cell != cell:
        return
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, (int, float)) and abs(cell) <= _LARGEST_INTEGER:
        sheet.write_number(row, column, cell)
    else:
        text = str(cell)
        if len(text) > _CELL_CHARACTERS:
            raise InvalidArgumentError(
                "output",
                f"is a sheet, whose cells hold {_CELL_CHARACTERS:,} characters, and one in row "
                f"{row} has {len(text):,}: use .csv or .parquet",
            )
        sheet.write_string(row, column, text)


@contextlib.contextmanager
def _packing(path: str, output: str) -> Iterator[Any]:
    """Give a file that is packed as the suffix of the output says."""
    suffix = Path(output).suffix.lower()
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "wb"))
        if suffix == ".gz":
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        elif suffix == ".bz2":
            file = stack.enter_context(bz2.BZ2File(file, "wb"))
        elif suffix == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
            member = zipfile.ZipInfo(Path(output).stem)
            member.compress_type = zipfile.ZIP_DEFLATED
            file = stack.enter_context(archive.open(member, "w", force_zip64=True))
        yield file


@contextlib.contextmanager
def _appearing_whole(path: str) -> Iterator[str]:
    """Give the name of a file to write to, which takes the place of ``path`` at the end."""
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe, a device
        yield path
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    os.close(handle)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


@contextlib.contextmanager
def _progress(files: Sequence[TableFile], quiet: bool) -> Iterator[Any]:
    """Give a function that shows how many rows are done, on a terminal."""
    console = stderr()
    if quiet or not console.is_terminal or sys.stdout.isatty():
        yield lambda _: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    total = sum(rows for file in files if (rows := file.estimated_rows()) is not None) or None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("predicting", total=total)
        yield lambda done: bars.update(task, completed=done)


@contextlib.contextmanager
def _warnings_once() -> Iterator[Callable[[], None]]:
    """Join the warnings of all parts: one about unknown values, and one of each other text.

    Gives a function to call after every part, so that what is kept does not grow with the file.
    """
    from imcc.tabular import UnknownValuesWarning

    counts: dict[str, dict[str, int]] = {}
    others: dict[str, Warning] = {}

    def gather() -> None:
        for warning in caught:
            message = warning.message
            if isinstance(message, UnknownValuesWarning):
                message.add_to(counts)
            else:
                others.setdefault(str(message), message)  # type: ignore[arg-type]
        caught.clear()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield gather
        finally:
            gather()
    for message in others.values():
        warnings.warn(message, stacklevel=2)
    if counts:
        warnings.warn(UnknownValuesWarning(counts), stacklevel=2)
