"""Predictions in parts, for tables (with the ids of the rows) and for other data."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.files import replacing
from imcc._utils.progress import progress_reported_to
from imcc._utils.text import defused
from imcc.cli._tables import table_model
from imcc.cli._terminal import json_text, print_result

if TYPE_CHECKING:
    import numpy as np

    from imcc.tables._read import TableFile


# Number of rows that are predicted at a time.
_ROWS = 4096
# Size of a row group of Parquet files in bytes, before compression.
_GROUP_BYTES = 2**22


@dataclass(frozen=True)
class Wanted:
    """What is written per row.

    Attributes
    ----------
    form : {"csv", "json", "parquet"}
    values : {"score", "probability"} or None
        What is written of each label, instead of whether it is predicted.
    top : int or None
        Number of labels with the highest scores to write, instead of all.
    """

    form: str
    values: str | None = None
    top: int | None = None


@dataclass(frozen=True)
class Part:
    """Predictions of some rows.

    Attributes
    ----------
    cells : dict of str to list, or list of dict
        Columns; for JSON one record per row.
    types : dict
        Types of columns of ids, if they are those of Arrow.
    n_rows, total : int, int or None
        Number of these rows, and approximate total number.
    """

    cells: Any
    types: dict[str, Any]
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

    texts = _json_texts if wanted.form == "json" else _csv_texts
    if output is None:
        for text in texts(counted()):
            print_result(text)
        return n_rows
    with replacing(output) as temporary:
        if wanted.form == "parquet":
            _write_parquet(counted(), temporary)
        else:
            with temporary.open("wb") as file:
                for text in texts(counted()):
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
    from imcc.tables._load import check_columns, located

    inner = table_model(model)
    assert inner is not None
    names = [str(name) for name in inner.label_names_]
    counts = [file.estimated_rows() for file in files]
    total = None if None in counts else sum(filter(None, counts))
    for file in files:
        start = 0
        for table in _slices(file.parts()):
            check_columns(inner, table.column_names, file.path, ignore_extra)
            kept = [
                name
                for name in inner.schema_.of_kind("id")
                if name in table.column_names and name not in names
            ]
            ids = {name: table[name].to_pylist() for name in kept}
            types = {name: table[name].type for name in kept}
            try:
                cells = _predicted(model, table, names, wanted, ids)
            except TableError as error:
                row = None if error.row is None else error.row + start
                raise located(error, file, row) from error
            yield Part(cells, types, table.num_rows, total)
            start += table.num_rows


def predicted_rows(model: Any, X: Any, names: Sequence[str], wanted: Wanted) -> Iterator[Part]:
    """Yield the predictions for rows in memory: an array, a matrix or a data frame."""
    n = X.shape[0]
    for start in range(0, n, _ROWS):
        rows = X.iloc[start : start + _ROWS] if hasattr(X, "iloc") else X[start : start + _ROWS]
        yield Part(_predicted(model, rows, list(names), wanted, {}), {}, rows.shape[0], n)


def _slices(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield smaller parts, since the features of text need far more memory than the text."""
    for part in parts:
        for start in range(0, part.num_rows, _ROWS):
            yield part.slice(start, _ROWS)


def _predicted(
    model: Any, rows: Any, names: list[str], wanted: Wanted, ids: dict[str, list[Any]]
) -> Any:
    """Return the predictions of some rows as the cells of a part."""
    import numpy as np

    from imcc.estimators.cross_fit import label_probabilities, label_scores

    scores = best = predicted = None
    if wanted.values == "probability":
        scores = label_probabilities(model, rows, len(names))
    elif wanted.values == "score" or wanted.top:
        scores = label_scores(model, rows, len(names))
    if scores is not None and wanted.top:
        best = np.argsort(-scores, axis=1, kind="stable")[:, : wanted.top]
    if scores is None or wanted.form == "json":
        predicted = np.asarray(model.predict(rows))
    if wanted.form == "json":
        assert predicted is not None
        return _records(predicted, scores, best, names, wanted, ids)
    columns: dict[str, list[Any]] = {}
    if best is not None and scores is not None:
        values = np.take_along_axis(scores, best, axis=1)
        for k in range(best.shape[1]):
            columns[f"label{k + 1}"] = [names[j] for j in best[:, k]]
            if wanted.values is not None:
                columns[f"{wanted.values}{k + 1}"] = values[:, k].tolist()
    elif scores is None and predicted is not None and predicted.ndim == 1:
        columns["class"] = predicted.tolist()
    else:
        cells = predicted if scores is None else scores
        assert cells is not None
        columns = {name: cells[:, j].tolist() for j, name in enumerate(names)}
    for name, column in columns.items():
        while name in ids:  # a column of ids keeps its name
            name = f"predicted {name}"
        ids[name] = column
    return ids


def _records(
    predicted: np.ndarray,
    scores: np.ndarray | None,
    best: np.ndarray | None,
    names: list[str],
    wanted: Wanted,
    ids: dict[str, list[Any]],
) -> list[dict[str, Any]]:
    """Return one record per row, for JSON."""
    word = wanted.values or "score"
    rows = []
    for i, decisions in enumerate(predicted):
        row: dict[str, Any] = {name: _plain(values[i]) for name, values in ids.items()}
        if predicted.ndim == 1:
            row["class"] = decisions.item() if hasattr(decisions, "item") else decisions
        else:
            row["labels"] = [name for name, on in zip(names, decisions, strict=True) if on]
        if scores is not None and best is not None:
            row["top"] = [{"label": names[j], word: float(scores[i, j])} for j in best[i]]
        elif scores is not None:
            plural = "probabilities" if word == "probability" else "scores"
            row[plural] = dict(zip(names, map(float, scores[i]), strict=True))
        rows.append(row)
    return rows


def _plain(cell: Any) -> Any:
    """Return an id for JSON: dates as text, NaN as null."""
    if cell is None or isinstance(cell, (str, bool, int)):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return str(cell)


def _json_texts(parts: Iterator[Part]) -> Iterator[str]:
    """Yield the text of a list of records in pieces."""
    opened = False
    for part in parts:
        # The records between the brackets of a list.
        yield ("," if opened else "[") + json_text(part.cells, indent=1)[1:-2]
        opened = True
    yield "\n]\n" if opened else "[]\n"


def _csv_texts(parts: Iterator[Part]) -> Iterator[str]:
    """Yield the text of a CSV file in pieces; text that looks like a formula is escaped."""
    for number, part in enumerate(parts):
        buffer = io.StringIO(newline="")
        # The csv module leaves a carriage return without quotes unless everything is quoted.
        odd = any("\r" in name for name in part.cells)
        writer = csv.writer(
            buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
        )
        if number == 0:
            writer.writerow(map(defused, part.cells))
        for row in zip(*part.cells.values(), strict=True):
            cells = [repr(cell) if isinstance(cell, float) else cell for cell in row]
            writer.writerow(map(defused, cells))
        yield buffer.getvalue()


def _write_parquet(parts: Iterator[Part], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    waiting: list[Any] = []
    try:
        for part in parts:
            # With the types of ids: the first rows may have no id to tell it from.
            columns = {
                name: pa.array(cells, part.types.get(name)) for name, cells in part.cells.items()
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
