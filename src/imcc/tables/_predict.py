"""Predictions for files of any size, in parts, as CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.files import replacing
from imcc._utils.optional import require
from imcc._utils.plain import to_plain
from imcc._utils.progress import progress_reported_to, report_progress
from imcc._utils.text import escaped_formula, json_text
from imcc._utils.validation import check_choice, check_count
from imcc._utils.wrappers import layers, transformers
from imcc.datasets._coding import Coding
from imcc.datasets._files import Content, Source
from imcc.datasets._match import read_matching
from imcc.estimators import TunedThresholds
from imcc.estimators.base import LogOddsClassifierMixin
from imcc.estimators.cross_fit import highest, label_scores
from imcc.estimators.thresholds import decision_thresholds
from imcc.persistence._card import ModelCard
from imcc.tables._classifier import TableClassifier
from imcc.tables._columns import arrow
from imcc.tables._encoder import UnknownValuesWarning, add_counts
from imcc.tables._load import check_columns, frame_for_model, located, open_tables, rows_for_model
from imcc.tables._read import TableFile, is_table
from imcc.tables._schema import TableError

# Number of rows that are predicted at a time: features of text need far more memory than the text.
_ROWS = 4096
# Size of a row group of Parquet files in bytes, before compression.
_GROUP_BYTES = 2**22

FORMATS = ("csv", "json", "parquet")

# Columns of some rows by their names, and the approximate total number of rows, if it is known.
_Part = tuple[dict[str, Any], int | None]


def write_predictions(
    model: Any,
    rows: Any,
    output: Any,
    *,
    values: str | None = None,
    top: int | None = None,
    format: str | None = None,  # noqa: A002
    label_names: Sequence[str] | None = None,
    ignore_extra: bool = False,
    **reading: Any,
) -> int:
    """Predict the labels of rows, and write them to a file.

    Files are read in parts, so that neither they nor the predictions need fit into memory.  The
    columns of ids of a table come first.

    Parameters
    ----------
    model : fitted classifier
        A :class:`TableClassifier`, also inside of other estimators, for files.
    rows : path, list of paths, array, sparse matrix or data frame
        Tables in files with the columns of the model, in any order, or rows in memory.
    output : path or text file
        File to write, which is replaced if it exists, or a text file that is open for writing.
    values : {"score", "probability"}, default=None
        What is written of each label; None means whether it is predicted.
    top : int, default=None
        Number of labels with the highest scores to write, instead of all.
    format : {"csv", "json", "parquet"}, default=None
        Format to write; None means that of the suffix of ``output``, or CSV.
    label_names : sequence of str, default=None
        Names of the labels; by default those of the table that the model was fitted to.
    ignore_extra : bool, default=False
        Whether columns that the model does not have are ignored, and not an error.
    **reading
        Parameters of :func:`read_table`: ``delimiter``, ``header``, ``encoding``, ``max_bytes``,
        ``member``.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> import io
    >>> from imcc.tables import TableClassifier, example_table
    >>> table, labels = example_table(60)
    >>> model = TableClassifier().fit(table, labels)
    >>> file = io.StringIO()
    >>> write_predictions(model, table[:2], file, top=1)
    2
    >>> file.getvalue().splitlines()[0]
    'label1'
    """
    if values is not None:
        check_choice("values", values, ("score", "probability"))
    if top is not None:
        check_count("top", top)
    written = format_of(output) if format is None else check_choice("format", format, FORMATS)
    inner = table_model(model)
    if label_names is None:
        if inner is None:
            raise InvalidArgumentError(
                "label_names", "are needed for a model that was not fitted to a table"
            )
        label_names = inner.label_names_
    names = [str(name) for name in label_names]

    def predict(some: Any) -> dict[str, Any]:
        with progress_reported_to(None):  # the model would report on these rows only
            return predictions(model, some, names, values, top, written)

    files = [rows] if isinstance(rows, (str, os.PathLike, Content)) else rows
    if isinstance(files, list) and all(isinstance(f, (str, os.PathLike, Content)) for f in files):
        if inner is None:
            raise InvalidArgumentError(
                "rows", "are files, which only a TableClassifier reads; pass rows in memory"
            )
        tables = [TableFile(file, **reading) for file in files]
        parts = _of_files(inner, tables, predict, ignore_extra)
    else:
        parts = _in_memory(rows, predict)
    counted = _Counted(parts)
    if hasattr(output, "write"):
        if written == "parquet":
            raise InvalidArgumentError("output", "must be a path for Parquet")
        for text in _texts(counted, written):
            output.write(text)
        return counted.n_rows
    with replacing(output) as temporary:
        if written == "parquet":
            _write_parquet(counted, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                file.writelines(_texts(counted, written))
    return counted.n_rows


def format_of(output: Any) -> str:
    """Return the format in which predictions are written to a file, by its suffix."""
    if hasattr(output, "write"):
        return "csv"
    suffix = Path(output).suffix.lower().removeprefix(".")
    if suffix not in ("", *FORMATS):
        raise InvalidArgumentError(
            "output",
            f"is {os.fspath(output)}, and predictions are written as {', '.join(FORMATS)}: use one "
            "of these suffixes",
        )
    return suffix or "csv"


def table_model(model: Any) -> TableClassifier | None:
    """Return the table classifier in a model, or None."""
    return next((layer for layer in layers(model) if isinstance(layer, TableClassifier)), None)


def read_rows(
    model: Any,
    card: ModelCard,
    files: list[Source],
    *,
    with_labels: bool,
    ignore_extra: bool,
    **reading: Any,
) -> tuple[Any, np.ndarray | None]:
    """Return the rows of files for a model, and their labels if ``with_labels``.

    They are a table for a model of tables, a data frame for a pipeline that was fitted to one in
    Python, and otherwise an array or a sparse matrix.

    Parameters
    ----------
    model : fitted classifier
    card : ModelCard
        What its file says about its features and labels.
    files : list of paths
        Tables, or files of any format that :func:`imcc.datasets.read` reads.
    with_labels, ignore_extra : bool
        Whether labels are read, and whether columns that the model does not have are ignored.
    **reading
        How to read the files.
    """
    inner = table_model(model)
    are_tables = all(is_table(file, reading.get("member")) for file in files)
    wanted: dict[str, Any] = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    if inner is not None:
        if not are_tables:
            raise refused_data()
        return rows_for_model(inner, open_tables(files, **reading), **wanted)
    has_names = getattr(model, "feature_names_in_", None) is not None
    if are_tables and has_names and not card.columns and transformers(model):
        source = open_tables(files, **reading)
        return frame_for_model(source, card.feature_names, card.label_names, **wanted)
    coding = Coding.from_dict(card.columns) if card.columns else None
    return read_matching(
        files, card.feature_names, card.label_names, coding=coding, **wanted, **reading
    )


def refused_data() -> InvalidArgumentError:
    """Return the error for data that are not a table and a model that needs one."""
    return InvalidArgumentError(
        "model", "was fitted to a table, and reads CSV, TSV, Parquet files and spreadsheets"
    )


def _of_files(
    model: TableClassifier,
    files: list[TableFile],
    predict: Callable[[Any], dict[str, Any]],
    ignore_extra: bool,
) -> Iterator[_Part]:
    """Yield the predictions for tables, of which only parts are in memory."""
    counts = [file.estimated_rows() for file in files]
    total = None if None in counts else sum(filter(None, counts))
    ids = [name for name in model.schema_.of_kind("id") if name not in model.label_names_]
    for file in files:
        start = 0
        for read in file.parts():
            check_columns(model, read.column_names, file.path, ignore_extra)
            for begin in range(0, read.num_rows, _ROWS):
                table = read.slice(begin, _ROWS)
                columns = {name: table[name] for name in ids if name in table.column_names}
                try:
                    predicted = predict(table)
                except TableError as error:
                    row = None if error.row is None else error.row + start
                    raise located(error, file, row) from error
                for name, cells in predicted.items():
                    while name in columns:  # a column of ids keeps its name
                        name = f"predicted {name}"
                    columns[name] = cells
                yield columns, total
                start += table.num_rows


def _in_memory(X: Any, predict: Callable[[Any], dict[str, Any]]) -> Iterator[_Part]:
    """Yield the predictions for rows in memory: an array, a matrix or a data frame."""
    n = X.shape[0]
    for start in range(0, n, _ROWS):
        rows = X.iloc[start : start + _ROWS] if hasattr(X, "iloc") else X[start : start + _ROWS]
        yield predict(rows), n


def predictions(
    model: Any,
    rows: Any,
    names: list[str],
    values: str | None,
    top: int | None = None,
    form: str = "json",
) -> dict[str, list[Any]]:
    """Return the columns of the predictions of some rows; those of JSON have lists and dicts."""
    columns: dict[str, list[Any]] = {}
    scores, predicted = None, None
    if values == "probability":
        scores = label_scores(model, rows, len(names), method="predict_proba")
        if form == "json" and _decides_by_probability(model):
            predicted = scores >= decision_thresholds(model, len(names))
    elif values is not None or top is not None:
        scores = label_scores(model, rows, len(names))
    if scores is None or form == "json":
        predicted = np.asarray(model.predict(rows)) if predicted is None else predicted
        if predicted.ndim == 1:
            columns["class"] = predicted.tolist()
        elif form == "json":
            pairs = [zip(names, row, strict=True) for row in predicted]
            columns["labels"] = [[name for name, is_on in row if is_on] for row in pairs]
        else:
            columns = dict(zip(names, predicted.T.tolist(), strict=True))
    if scores is None:
        return columns
    if top is None and form == "json":
        plural = "probabilities" if values == "probability" else "scores"
        columns[plural] = [dict(zip(names, row, strict=True)) for row in scores.tolist()]
    elif top is None:
        columns = dict(zip(names, scores.T.tolist(), strict=True))
    else:
        best, chosen = highest(scores, top)
        labels = [[names[j] for j in row] for row in best]
        if form == "json":
            columns["top"] = [
                [{"label": name, values or "score": v} for name, v in zip(*row, strict=True)]
                for row in zip(labels, chosen.tolist(), strict=True)
            ]
        else:
            for k in range(best.shape[1]):
                columns[f"label{k + 1}"] = [row[k] for row in labels]
                if values is not None:
                    columns[f"{values}{k + 1}"] = chosen[:, k].tolist()
    return columns


def _decides_by_probability(model: Any) -> bool:
    """Return whether a model predicts labels by comparing probabilities with thresholds."""
    for layer in layers(model):
        if isinstance(layer, LogOddsClassifierMixin):
            return layer.target_kind_ == "multilabel"
        if not isinstance(layer, (TableClassifier, Pipeline, TunedThresholds)):
            break
    return False


class _Counted:
    """The columns of parts; reports the number of rows, and gives each warning once, at the end.

    Attributes
    ----------
    n_rows : int
        Number of rows until now.
    """

    def __init__(self, parts: Iterator[_Part]) -> None:
        self._parts = parts
        self.n_rows = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        counts: dict[str, dict[str, int]] = {}
        others: dict[str, Any] = {}

        def collect(message: Any, *_: Any, **__: Any) -> None:
            """Keep a warning; what is kept does not grow with the file."""
            if isinstance(message, UnknownValuesWarning):
                add_counts(counts, message.counts)
            else:
                others.setdefault(str(message), message)

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = collect
            for columns, total in self._parts:
                self.n_rows += len(next(iter(columns.values())))
                done = 0 if total is None else self.n_rows
                report_progress(done, max(total or 1, done), f"{self.n_rows:,} rows")
                yield columns
        for message in others.values():
            warnings.warn(message, stacklevel=2)
        if counts:
            warnings.warn(UnknownValuesWarning(counts), stacklevel=2)


def _texts(parts: _Counted, form: str) -> Iterator[str]:
    """Yield the text of a CSV or JSON file in pieces."""
    number = -1
    for number, columns in enumerate(parts):
        # Ids are columns of a table, and may have values that JSON does not have.
        lists = {
            name: cells if isinstance(cells, list) else cells.to_pylist()
            for name, cells in columns.items()
        }
        if form == "json":
            ids = {name for name in columns if columns[name] is not lists[name]}
            lists |= {name: to_plain(lists[name], other=str) for name in ids}
        rows = list(zip(*lists.values(), strict=True))
        if form == "csv":
            yield _csv_text(rows if number else [tuple(lists), *rows])
        else:
            records = [dict(zip(lists, row, strict=True)) for row in rows]
            # The records between the brackets of a list.
            yield ("," if number else "[") + json_text(records, indent=1)[1:-2]
    if form == "json":
        yield "[]\n" if number < 0 else "\n]\n"


def _csv_text(rows: list[tuple[Any, ...]]) -> str:
    """Return rows of a CSV file; text that looks like a formula is escaped."""
    # The csv module leaves a carriage return without quotes unless everything is quoted.
    odd = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
    )
    writer.writerows(map(escaped_formula, row) for row in rows)
    return buffer.getvalue()


def _write_parquet(parts: _Counted, path: Path) -> None:
    pa, parquet = arrow(), require("pyarrow.parquet", "Writing Parquet files")
    writer: Any = None
    waiting: list[Any] = []
    with contextlib.ExitStack() as opened:
        for columns in parts:
            # Ids have the types of their file: the first rows may have none to tell it from.
            table = pa.table(columns)
            if writer is None:
                writer = opened.enter_context(parquet.ParquetWriter(path, table.schema))
            waiting.append(table.cast(writer.schema))
            # What is known about groups of rows is kept until the end: so they are large.
            if sum(table.nbytes for table in waiting) >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
