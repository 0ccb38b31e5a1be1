"""The svmlight text format with several labels per row: ``1,3 5:0.25 9:1``.

scikit-learn also reads it, but skips empty rows and does not report line numbers.  Files written
here contain the names of features and labels in a comment, which other programs ignore.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import given, message_of
from imcc._utils.files import save
from imcc._utils.validation import check_choice
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import Dataset, default_names
from imcc.datasets._errors import DataFormatError, warn_user
from imcc.datasets._files import (
    MAX_COLUMNS,
    Content,
    check_cells,
    check_columns,
    decode,
    each_line,
    joined_name,
)
from imcc.datasets._text import check_names, number_texts, plain_float

_MARK = "# imcc "
#: Values of the parameter ``index_base``.
INDEX_BASES = ("auto", "zero", "one")


class Rows:
    """Parsed rows: CSR arrays of the features and of the label numbers."""

    def __init__(self, header: dict[str, Any] | None = None) -> None:
        # Arrays instead of lists, which need four times the memory.
        self.indices = array("q")
        self.values = array("d")
        self.starts = array("q", [0])
        self.labels = array("q")
        self.label_starts = array("q", [0])
        self.header: dict[str, Any] = {} if header is None else header

    def __len__(self) -> int:
        return len(self.starts) - 1


def read_svmlight(
    contents: Sequence[Content],
    *,
    n_features: int | None = None,
    index_base: str = "auto",
    encoding: str | None = None,
    name: str | None = None,
    known_base: int | None = None,
    labelled: bool = True,
) -> Dataset:
    r"""Read svmlight (libsvm) files with a comma-separated list of labels at the start of a row.

    Parameters
    ----------
    contents : sequence of Content
        The files, whose rows are concatenated.
    n_features : int, default=None
        Number of features.  None uses the number that the file declares, or the largest index that
        occurs.
    index_base : {"auto", "zero", "one"}, default="auto"
        Whether features are counted from 0 or from 1.  "auto" means 0 if the file declares it or
        the index 0 occurs, 1 if the index ``n_features`` occurs, and otherwise 1 with a
        :class:`DataWarning`.  The result is stored in ``coding`` of the data set, so that files for
        a model of these data are read in the same way.
    encoding, name
        As for :func:`read_mulan`.
    known_base : {0, 1}, default=None
        Index base of the training data of a model, for files that do not declare it.
    labelled : bool, default=True
        Whether to read the labels; otherwise, there is one label that is always 0.

    Returns
    -------
    Dataset
        The data, with sparse features.

    Notes
    -----
    Labels are integers; each number that occurs is a label, whose name is the number.  Empty lines
    are ignored.  The first line can contain three numbers (rows, features, labels), as in the
    extreme classification repository; features and labels are then counted from 0.
    """
    check_choice("index_base", index_base, INDEX_BASES)
    if n_features is not None and not 1 <= n_features <= MAX_COLUMNS:
        raise ValueError(f"n_features must be from 1 to {MAX_COLUMNS}, got {n_features!r}")
    rows = Rows()
    declared = [_parse(content, rows, encoding) for content in contents]
    path = ", ".join(content.path for content in contents)
    base = base_of(rows, index_base, n_features, all(declared), known_base, path)
    max_columns = max(content.max_columns for content in contents)
    max_cells = max(content.max_cells for content in contents)
    try:
        X, feature_names = features_of(rows, n_features, base, max_columns)
        if labelled:
            Y, label_names = labels_of(rows, max_cells, max_columns)
        else:
            Y, label_names = np.zeros((len(rows), 1), np.int8), ()
        title = name or rows.header.get("name") or joined_name(contents)
        coding = None if base is None else Coding(index_base=base)
        return Dataset(X, Y, feature_names, label_names, title, path, coding)
    except (ValueError, TypeError) as error:
        raise DataFormatError(message_of(error), path) from error


def _parse(content: Content, rows: Rows, encoding: str | None) -> bool:
    """Append the rows of a file; return whether it declares that features start at 0."""
    before = len(rows)
    promised = None
    declares = False
    for number, line in enumerate(each_line(decode(content, encoding)), 1):
        declares = declares or line.startswith(_MARK)
        promised = parse_line(line, rows, content.path, number) or promised
    found = len(rows) - before
    if not found:
        raise DataFormatError("the file has no rows", content.path)
    if promised is not None and promised != found:
        raise DataFormatError(
            f"the first line declares {promised} rows, but there are {found}; the file may be "
            "incomplete",
            content.path,
        )
    return declares or promised is not None


def base_of(
    rows: Rows,
    index_base: str,
    n_features: int | None,
    declared: bool,
    known_base: int | None,
    path: str,
) -> int | None:
    """Return the index of the first feature, 0 or 1; None if it is unknown and not needed.

    Parameters
    ----------
    index_base : {"auto", "zero", "one"}
        Argument of the caller.
    declared : bool
        Whether every file declares that features start at 0.
    known_base : {0, 1} or None
        Index base of the training data.
    """
    if index_base != "auto":
        return INDEX_BASES.index(index_base) - 1
    if declared:
        return 0
    if not rows.indices:
        return known_base
    lowest, highest = min(rows.indices), max(rows.indices)
    # The base that follows from the indices with certainty.
    seen = 0 if lowest == 0 else 1 if n_features is not None and highest == n_features else None
    if known_base is not None:
        if seen not in (None, known_base):
            raise DataFormatError(
                f"the features of the training data are counted from {known_base}, but the index "
                f"{0 if seen == 0 else highest} occurs here, which is only possible if they are "
                f"counted from {seen}; pass "
                + given("index_base", INDEX_BASES[seen + 1])
                + " if this is the case",
                path,
            )
        return known_base
    if seen is not None:
        return seen
    warn_user(
        f"{path}: the file does not declare whether its features are counted from 0 or from 1; 1 "
        "is assumed, because the index 0 does not occur. If this is wrong, all columns are shifted "
        "by one: pass "
        + given("index_base", "zero")
        + " to correct it, or "
        + given("index_base", "one")
        + " to confirm it"
    )
    return 1


def parse_line(line: str, rows: Rows, path: str, number: int) -> int | None:
    """Append a line to the rows; return the number of rows if it is a first line of sizes."""
    if line.startswith(_MARK):
        _parse_header(line.removeprefix(_MARK), rows, path, number)
    text = line.partition("#")[0]
    sizes = text.split() if number == 1 else []
    if len(sizes) == 3 and all(_is_index(part) for part in sizes):
        promised, n_features, n_labels = map(int, sizes)
        for key, count in (("n_features", n_features), ("n_labels", n_labels)):
            if rows.header.setdefault(key, count) != count:
                raise DataFormatError(
                    f"the files cannot be concatenated: {key} is {count}, not {rows.header[key]}",
                    path,
                    number,
                )
        return promised
    if text.strip():
        _parse_row(text, rows, path, number)
    return None


def _parse_header(text: str, rows: Rows, path: str, line: int) -> None:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFormatError(
            f"the comment with the names is damaged: {error}", path, line
        ) from error
    names_ok = isinstance(header, dict) and all(
        isinstance(header.get(key), list) and all(isinstance(n, str) for n in header[key])
        for key in ("feature_names", "label_names")
    )
    if not names_ok or not isinstance(header.get("name"), str):
        raise DataFormatError("the comment with the names is incomplete", path, line)
    for key in ("feature_names", "label_names"):
        if rows.header.setdefault(key, header[key]) != header[key]:
            raise DataFormatError(f"the files cannot be concatenated: {key} differ", path, line)
    rows.header.setdefault("name", header["name"])


def _is_index(text: str) -> bool:
    # Nine digits are more than any valid index and cannot overflow.
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _parse_row(text: str, rows: Rows, path: str, line: int) -> None:
    parts = text.split()
    labels: list[int] = []
    if parts and ":" not in parts[0]:
        labels = [_label(part, path, line) for part in parts.pop(0).split(",") if part]
    last = -1
    for part in parts:
        place, colon, value = part.partition(":")
        if not colon or not _is_index(place):
            if place == "qid":
                raise DataFormatError("query numbers (qid:) are not supported", path, line)
            raise DataFormatError(f"expected index:value, found {part[:40]!r}", path, line)
        index = int(place)
        if index <= last:
            raise DataFormatError(
                f"the indices of a row must increase, but {index} follows {last}", path, line
            )
        last = index
        try:
            rows.values.append(plain_float(value))
        except ValueError:
            raise DataFormatError(
                f"the value of feature {index} is {value[:40]!r}, not a number", path, line
            ) from None
        rows.indices.append(index)
    rows.starts.append(len(rows.indices))
    rows.labels.extend(labels)
    rows.label_starts.append(len(rows.labels))


def _label(text: str, path: str, line: int) -> int:
    number = text.removeprefix("-").removeprefix("+")
    if number.endswith(".0"):  # scikit-learn writes float labels in this way
        number = number[:-2]
    if not _is_index(number):
        raise DataFormatError(
            f"the label {text[:40]!r} is not an integer; labels are written as '1,3' before the "
            "features",
            path,
            line,
        )
    return -int(number) if text.startswith("-") else int(number)


def features_of(
    rows: Rows, n_features: int | None, base: int | None, max_columns: int
) -> tuple[Any, tuple[str, ...]]:
    """Return the features of rows as a CSR matrix, and their names."""
    indices = np.array(rows.indices, dtype=np.int64) - (base or 0)
    declared = rows.header.get("n_features")
    names = tuple(rows.header.get("feature_names", ()))
    if indices.size and indices.min() < 0:
        raise ValueError(
            "the index 0 occurs, but " + given("index_base", "one") + " counts features from 1"
        )
    used = int(indices.max()) + 1 if indices.size else 1
    width = n_features or declared or len(names) or used
    if used > width:
        raise ValueError(f"the feature {used - 1} (counted from 0) occurs, but there are {width}")
    if n_features is None:
        check_columns(width, max_columns, "features")
    X = sp.csr_array(
        (np.array(rows.values, dtype=float), indices, np.array(rows.starts)),
        shape=(len(rows), width),
    )
    return X, names if len(names) == width else default_names("x", width)


def labels_of(rows: Rows, max_cells: int, max_columns: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the labels of rows as an indicator matrix, and their names."""
    names = tuple(rows.header.get("label_names", ()))
    count = len(names) or rows.header.get("n_labels")
    if count:
        check_columns(count, max_columns, "labels")
        check_cells(len(rows), count, max_cells, "labels")
        names = names or default_names("label", count)
        return indicators_of(rows, range(count)), names
    used = np.unique(np.array(rows.labels, dtype=np.int64)).tolist()
    if not used:
        raise ValueError("no row has a label")
    check_cells(len(rows), len(used), max_cells, "labels")
    return indicators_of(rows, used), tuple(str(label) for label in used)


def indicators_of(rows: Rows, numbers: Sequence[int]) -> np.ndarray:
    """Return the indicator matrix of the labels with these numbers, in ascending order."""
    labels = np.array(rows.labels, dtype=np.int64)
    known = np.array(numbers, dtype=np.int64)
    columns = np.searchsorted(known, labels)
    beyond = known[np.minimum(columns, len(known) - 1)] != labels
    if beyond.any():
        odd = int(labels[np.argmax(beyond)])
        raise ValueError(
            f"the label {odd} occurs, but there are only {len(known)}, from {known[0]}"
        )
    Y = np.zeros((len(rows), len(known)), dtype=np.int8)
    Y[np.repeat(np.arange(len(rows)), np.diff(np.array(rows.label_starts))), columns] = 1
    return Y


def write_svmlight(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write an svmlight file with features and labels counted from 0 and names in a comment."""
    check_names(dataset, "svmlight", unique=False)
    header = {key: getattr(dataset, key) for key in ("name", "feature_names", "label_names")}
    lines = [_MARK + json.dumps(header), *_row_texts(dataset), ""]
    return save(path, "\n".join(lines).encode("utf-8"))


def _row_texts(dataset: Dataset) -> Iterator[str]:
    X = sp.csr_array(dataset.X)
    for row, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        labels = ",".join(str(label) for label in np.flatnonzero(dataset.Y[row]))
        indices = X.indices[start:stop].tolist()
        values = number_texts(X.data[start:stop], missing="nan")
        features = [f"{i}:{v}" for i, v in zip(indices, values, strict=True)]
        # Readers skip empty lines, so a row of zeros contains an explicit zero.
        yield " ".join([labels, *(features or ["0:0"])])
