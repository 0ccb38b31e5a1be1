"""CSV and TSV files."""

from __future__ import annotations

import csv
import io
import os
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from imcc._utils.cells import csv_rows, is_missing
from imcc._utils.files import save
from imcc._utils.progress import report_progress
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import choose_labels, to_dataset
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import (
    Content,
    Source,
    decode,
    each_line,
    inner_name,
    joined_name,
    open_all,
    refuses_by_memory,
)
from imcc.datasets._table import Attribute, Table, join_tables, sorted_words
from imcc.datasets._text import check_names, number_texts, plain_float


@refuses_by_memory
def read_csv(
    path: Source | Sequence[Source],
    labels: int | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    nominal: str = "onehot",
    encoding: str | None = None,
    member: str | None = None,
    max_bytes: int | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Read a CSV or TSV file whose columns are features and labels.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several files are concatenated.
    labels : list of str or int, default=None
        Names of the labels, in the desired order; or their number, where a positive number means
        the first columns and a negative one the last columns.
    label_prefix : str, default=None
        Prefix of the names of the label columns, instead of ``labels``.
    delimiter : str, default=None
        Delimiter of the values.  None means a tab for ``.tsv`` files and a comma for others.
    header : bool, default=True
        Whether the first row contains the names of the columns; otherwise they are ``column0``,
        ``column1``, ...
    nominal : {"onehot", "ordinal", "error"}, default="onehot"
        How to encode columns of words with more than two values.
    encoding, member, max_bytes, name
        As for :func:`read_mulan`.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    DataFormatError
        If the file is invalid.

    See Also
    --------
    write_csv : Writes a CSV file.
    read : Detects the format of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pathlib.Path(folder.name, "films.csv")
    >>> _ = table.write_text("year,black_and_white,is_drama,is_comedy\n1942,yes,1,0\n1994,no,1,1\n")
    >>> films = read_csv(table, label_prefix="is_")
    >>> films.feature_names, films.label_names
    (('year', 'black_and_white'), ('is_drama', 'is_comedy'))
    >>> films.X
    array([[1.942e+03, 1.000e+00],
           [1.994e+03, 0.000e+00]])
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=max_bytes, member=member)
    tables = [parse_csv(content, delimiter, header, encoding) for content in contents]
    table = join_tables(tables)
    columns = choose_labels(table, labels, label_prefix)
    return to_dataset(table, columns, nominal, name or joined_name(contents), find_keys=True)


def parse_csv(
    content: Content,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    kept: Mapping[str, Collection[str]] | None = None,
) -> Table:
    """Return the columns of a CSV file; see :func:`read_csv`.

    ``kept`` are words for a missing value that are values in the column of that name.
    """
    text = decode(content, encoding)
    if delimiter is None:
        delimiter = "\t" if content.suffix == ".tsv" else ","
    elif len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character, got {delimiter!r}")
    rows = _rows(text, delimiter, header, content.path)
    _line, first = next(rows, (0, None))
    if first is None:
        raise DataFormatError("the file is empty", content.path)
    content.check_table(len(first))
    names = first if header else []
    names = [name or f"column{i}" for i, name in enumerate(names)]
    names = names or [f"column{i}" for i in range(len(first))]

    def body() -> Iterator[tuple[int, list[str]]]:
        again = _rows(text, delimiter, header, content.path)
        if header:
            next(again)
        return again

    kept_in = [(kept or {}).get(name, ()) for name in names]
    values, lines, wordy = _numbers(body(), kept_in, content.path)
    attributes = [Attribute(name) for name in names]
    if wordy:
        for position, (words, codes) in _words(body(), wordy, kept_in).items():
            attributes[position], values[:, position] = sorted_words(
                names[position], "words", tuple(words), np.frombuffer(codes)
            )
    return Table(
        tuple(attributes), values, np.array(lines), [content.path], max_cells=content.max_cells
    )


def _rows(text: str, delimiter: str, header: bool, path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows, each with the number of the line in which it begins."""
    lines = each_line(text, keep_ends=True)
    try:
        yield from csv_rows(lines, delimiter, header=header, strict=True)
    except csv.Error as error:
        problem, line = error.args
        raise DataFormatError(f"the row cannot be parsed: {problem}", path, line) from error


def _numbers(
    rows: Iterator[tuple[int, list[str]]], kept: Sequence[Collection[str]], path: str
) -> tuple[np.ndarray, array[int], list[int]]:
    """Return the numbers, the line of each row, and the columns that are not numeric."""
    numbers = array("d")
    lines = array("q")
    wordy: set[int] = set()
    width = len(kept)
    for line, row in rows:
        if len(row) != width:
            much = "too many" if len(row) > width else "too few"
            raise DataFormatError(
                f"the row has {much} values: {len(row)} for {width} columns", path, line
            )
        try:
            found = [plain_float(cell) for cell in row]
        except ValueError:
            found = [_number_or_nan(cell.strip()) for cell in row]
            wordy |= {
                i
                for i, (cell, number) in enumerate(zip(row, found, strict=True))
                if number != number and not _is_missing(cell, kept[i])
            }
        numbers.extend(found)
        lines.append(line)
    if not lines:
        raise DataFormatError("the file has no rows below its header", path)
    return np.frombuffer(numbers).reshape(len(lines), width), lines, sorted(wordy)


def _number_or_nan(word: str) -> float:
    try:
        return plain_float(word)
    except ValueError:
        return float("nan")


def _is_missing(cell: str, kept: Collection[str]) -> bool:
    return is_missing(cell) and cell.strip() not in kept


def _words(
    rows: Iterator[tuple[int, list[str]]], wordy: list[int], kept: Sequence[Collection[str]]
) -> dict[int, tuple[dict[str, int], array[float]]]:
    """Return the distinct words of each column of words, and the code of the word per row."""
    columns: dict[int, tuple[dict[str, int], array[float]]] = {
        position: ({}, array("d")) for position in wordy
    }
    for _line, row in rows:
        for position, (words, codes) in columns.items():
            word = row[position].strip()
            if _is_missing(word, kept[position]):
                codes.append(float("nan"))
            else:
                codes.append(words.setdefault(word, len(words)))
    return columns


def write_csv(
    dataset: Dataset, path: str | os.PathLike[str], *, delimiter: str | None = None
) -> Path:
    """Write a CSV or TSV file with the features followed by the labels.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The file; compressed if the suffix is ``.gz``, ``.bz2`` or ``.zip``.
    delimiter : str, default=None
        Delimiter of the values.  None means a tab for ``.tsv`` files and a comma for others.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    read_csv : Reads the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = write_csv(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.csv"))
    >>> print(table.read_text().strip())
    x0,label0
    0.5,1
    >>> folder.cleanup()
    """
    check_names(dataset, "CSV")
    if delimiter is None:
        delimiter = "\t" if inner_name(path).lower().endswith(".tsv") else ","
    buffer = io.StringIO(newline="")
    names = [*dataset.feature_names, *dataset.label_names]
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    if any("\r" in name for name in names):  # the csv module would not quote these
        careful = csv.writer(
            buffer, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL
        )
        careful.writerow(names)
    else:
        writer.writerow(names)
    for row in range(dataset.n_rows):
        features = dataset.X[[row]].toarray()[0] if dataset.is_sparse else dataset.X[row]
        writer.writerow([*number_texts(features, missing="?"), *dataset.Y[row].tolist()])
        report_progress(row + 1, dataset.n_rows)
    return save(path, buffer.getvalue().encode("utf-8"))
