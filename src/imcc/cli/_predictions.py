"""Predictions in parts, for tables (with the ids of the rows) and for other data."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import math
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.optional import require
from imcc._utils.progress import progress_reported_to
from imcc._utils.text import defused
from imcc.cli._tables import check_extra, located, table_model
from imcc.cli._terminal import json_text, print_result

if TYPE_CHECKING:
    import numpy as np

    from imcc.tables import TableFile


# Number of rows that are predicted at a time.
_ROWS = 4096
# Size of a row group of Parquet files in bytes, before compression.
_GROUP_BYTES = 2**22


@dataclass(frozen=True)
class Wanted:
    """What is written per row.

    Attributes
    ----------
    form : {"csv", "json", "jsonl", "parquet", "xlsx"}
    scores, proba : bool
        Whether scores or probabilities of the labels are written.
    top_k : int or None
        Number of labels with the highest scores to write, in separate columns.
    top : int or None
        Number of labels with the highest scores to write, as tags in one column.
    separator : str
        Separator of these tags.
    raw_csv : bool
        Whether cells that a spreadsheet would interpret as formulas are written unchanged.
    """

    form: str
    scores: bool = False
    proba: bool = False
    top_k: int | None = None
    top: int | None = None
    separator: str = "|"
    raw_csv: bool = False

    @property
    def word(self) -> str:
        """Name of the value of a label."""
        return "probability" if self.proba else "score"

    @property
    def plural(self) -> str:
        """Name of the values of labels."""
        return "probabilities" if self.proba else "scores"


@dataclass(frozen=True)
class Part:
    """Predictions of some rows.

    Attributes
    ----------
    names : list of str
        Names of the labels.
    ids : dict of str to list
        Columns of ids.
    id_types : dict
        Their types, if they are those of Arrow.
    scores : ndarray of shape (n_rows, n_labels) or None
        Scores or probabilities.
    best : ndarray of int, shape (n_rows, k) or None
        Indices of the labels with the highest scores.
    predicted : ndarray of shape (n_rows, n_labels), or (n_rows,) for classes; or None
    n_rows, total : int, int or None
        Number of these rows, and approximate total number.
    """

    names: list[str]
    ids: dict[str, list[Any]]
    id_types: dict[str, Any]
    scores: np.ndarray | None
    best: np.ndarray | None
    predicted: np.ndarray | None
    n_rows: int
    total: int | None


def write_predictions(parts: Iterator[Part], wanted: Wanted, output: str | None) -> int:
    """Write predictions in parts, and return the number of rows."""
    n_rows = 0

    def counted() -> Iterator[Part]:
        nonlocal n_rows
        with _warnings_once() as gather:
            for part in parts:
                n_rows += part.n_rows
                gather()
                yield part

    if output is None:
        for text in _texts(counted(), wanted):
            print_result(text)
    elif wanted.form in ("parquet", "xlsx"):
        write = _write_parquet if wanted.form == "parquet" else _write_xlsx
        with _appearing_whole(output) as temporary:
            write(counted(), wanted, temporary)
    else:
        with _appearing_whole(output) as temporary, _packing(temporary, output) as file:
            for text in _texts(counted(), wanted):
                file.write(text.encode("utf-8"))
    return n_rows


def counted_rows(parts: Iterator[Part], report: Callable[..., None]) -> Iterator[Part]:
    """Yield parts, and report the number of rows done."""
    done = 0
    while True:
        with progress_reported_to(None):  # the model would say how far it is with these rows
            part = next(parts, None)
        if part is None:
            return
        done += part.n_rows
        report(done, None if part.total is None else max(part.total, done), f"{done:,} rows")
        yield part


def predicted_tables(
    model: Any, files: Sequence[TableFile], wanted: Wanted, ignore_extra: bool
) -> Iterator[Part]:
    """Yield the predictions for tables, of which only parts are in memory."""
    from imcc.tables import TableError

    inner = table_model(model)
    assert inner is not None
    names = [str(name) for name in inner.label_names_]
    counts = [file.estimated_rows() for file in files]
    total = None if None in counts else sum(filter(None, counts))
    for file in files:
        start = 0
        for table in _slices(file.parts()):
            check_extra(inner, table.column_names, file.path, ignore_extra)
            kept = [
                name
                for name in inner.schema_.of_kind("id")
                if name in table.column_names and name not in names
            ]
            ids = {name: table[name].to_pylist() for name in kept}
            types = {name: table[name].type for name in kept}
            try:
                yield _predicted(model, table, table.num_rows, names, wanted, ids, types, total)
            except TableError as error:
                row = None if error.row is None else error.row + start
                raise located(error, file, row) from error
            start += table.num_rows


def predicted_rows(model: Any, X: Any, names: Sequence[str], wanted: Wanted) -> Iterator[Part]:
    """Yield the predictions for rows in memory: an array, a matrix or a data frame."""
    n = X.shape[0]
    for start in range(0, n, _ROWS):
        rows = X.iloc[start : start + _ROWS] if hasattr(X, "iloc") else X[start : start + _ROWS]
        yield _predicted(model, rows, rows.shape[0], list(names), wanted, {}, {}, n)


def _slices(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield smaller parts, since the features of text need far more memory than the text."""
    for part in parts:
        for start in range(0, part.num_rows, _ROWS):
            yield part.slice(start, _ROWS)


def _predicted(
    model: Any,
    rows: Any,
    n_rows: int,
    names: list[str],
    wanted: Wanted,
    ids: dict[str, list[Any]],
    id_types: dict[str, Any],
    total: int | None,
) -> Part:
    """Return the predictions of some rows."""
    import numpy as np

    from imcc.calibration import label_probabilities, label_scores

    best_of = wanted.top or wanted.top_k
    if wanted.top and (odd := [name for name in names if wanted.separator in name]):
        raise InvalidArgumentError(
            "top",
            f"puts {wanted.separator!r} between labels, which is in the name of {odd[0]!r}: use "
            + given("top_k"),
        )
    scores = best = predicted = None
    if wanted.proba:
        scores = label_probabilities(model, rows, len(names))
    elif wanted.scores or best_of:
        scores = label_scores(model, rows, len(names))
    if scores is not None and best_of:
        best = np.argsort(-scores, axis=1, kind="stable")[:, :best_of]
    if (best is None and scores is None) or wanted.form in ("json", "jsonl"):
        predicted = np.asarray(model.predict(rows))
    return Part(names, ids, id_types, scores, best, predicted, n_rows, total)


def _flat(part: Part, wanted: Wanted) -> dict[str, list[Any]]:
    """Return a part as columns, for CSV, Parquet and Excel."""
    import numpy as np

    columns: dict[str, list[Any]] = {}

    def add(name: str, values: list[Any]) -> None:
        while name in part.ids:  # a column of ids has this name
            name = f"predicted {name}"
        columns[name] = values

    names, scores, best, predicted = part.names, part.scores, part.best, part.predicted
    if best is not None and scores is not None:
        of_best = np.take_along_axis(scores, best, axis=1)
        shown = wanted.scores or wanted.proba
        if wanted.top is not None:
            join = wanted.separator.join
            add("tags", [join(names[j] for j in row) for row in best.tolist()])
            if shown:
                add(wanted.plural, [join(map(repr, row)) for row in of_best.tolist()])
        else:
            for k in range(best.shape[1]):
                add(f"label{k + 1}", [names[j] for j in best[:, k]])
                if shown:
                    add(f"{wanted.word}{k + 1}", of_best[:, k].tolist())
    elif scores is not None:
        for j, name in enumerate(names):
            add(name, scores[:, j].tolist())
    elif predicted is not None and predicted.ndim == 1:
        add("class", predicted.tolist())
    elif predicted is not None:
        for j, name in enumerate(names):
            add(name, predicted[:, j].tolist())
    return {**part.ids, **columns}


def _records(part: Part, wanted: Wanted) -> list[dict[str, Any]]:
    """Return a part as one record per row, for JSON."""
    names, scores, best, predicted = part.names, part.scores, part.best, part.predicted
    assert predicted is not None
    rows = []
    for i in range(part.n_rows):
        row: dict[str, Any] = {name: _plain(values[i]) for name, values in part.ids.items()}
        if predicted.ndim == 1:
            row["class"] = predicted[i].item() if hasattr(predicted[i], "item") else predicted[i]
        else:
            row["labels"] = [name for name, on in zip(names, predicted[i], strict=True) if on]
        if best is not None and scores is not None:
            of_best = [float(scores[i, j]) for j in best[i]]
            if wanted.top is None:
                pairs = zip(best[i], of_best, strict=True)
                row["top"] = [{"label": names[j], wanted.word: value} for j, value in pairs]
            else:
                row["tags"] = [names[j] for j in best[i]]
                if wanted.scores or wanted.proba:
                    row[wanted.plural] = of_best
        elif scores is not None:
            row[wanted.plural] = dict(zip(names, map(float, scores[i]), strict=True))
        rows.append(row)
    return rows


def _plain(cell: Any) -> Any:
    """Return an id for JSON: dates as text, NaN as null."""
    if cell is None or isinstance(cell, (str, bool, int)):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return str(cell)


def _texts(parts: Iterator[Part], wanted: Wanted) -> Iterator[str]:
    """Yield the text of a file in pieces."""
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


def _write_parquet(parts: Iterator[Part], wanted: Wanted, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    waiting: list[Any] = []
    try:
        for part in parts:
            types = part.id_types  # the first rows may have no id to tell it from
            columns = {
                name: pa.array(values, types.get(name))
                for name, values in _flat(part, wanted).items()
            }
            table = pa.table(columns)
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


# Limits of an Excel sheet.
_SHEET_ROWS, _SHEET_COLUMNS, _CELL_CHARACTERS = 2**20, 2**14, 32_767
# Whole numbers up to this are the same in Excel, whose numbers are floating point.
_LARGEST_INTEGER = 2**53


def _write_xlsx(parts: Iterator[Part], wanted: Wanted, path: str) -> None:
    """Write an Excel sheet row by row; text is never interpreted as a formula."""
    xlsxwriter = require("xlsxwriter", "Writing .xlsx files")
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
    """Return a file that is compressed according to the suffix of the output."""
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
    """Return the name of a temporary file that replaces ``path`` at the end."""
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
def _warnings_once() -> Iterator[Callable[[], None]]:
    """Join the warnings of all parts: one about unknown values, and one of each other text.

    Gives a function to call after every part, so that what is kept does not grow with the file.
    """
    from imcc.tables import UnknownValuesWarning

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
