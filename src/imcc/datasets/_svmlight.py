"""svmlight's text format with several labels a row: ``1,3 5:0.25 9:1``.

scikit-learn reads it too, but passes over rows that are empty and says no line numbers; our own
files carry the names of features and labels in comments, which other programs leave alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.files import save
from imcc._utils.validation import check_choice
from imcc.datasets._dataset import Dataset, default_names
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import (
    MAX_BYTES,
    Content,
    Source,
    decode,
    joined_name,
    open_all,
    split_lines,
)
from imcc.datasets._limits import MAX_FEATURES, check_size
from imcc.datasets._text import check_names, number_texts, plain_float

_MARK = "# imcc "
INDEX_BASES = ("auto", "zero", "one")


@dataclass
class Rows:
    """What has been read so far."""

    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    labels: list[list[int]] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=dict)


def read_svmlight(
    path: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    index_base: str = "auto",
    encoding: str | None = None,
    member: str | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> Dataset:
    r"""Read svmlight (libsvm) text with a comma-separated list of labels before each row.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several are joined.
    n_features : int, optional
        How many features there are; the largest index unless given.
    index_base : {"auto", "zero", "one"}
        Whether features are counted from 0 or from 1; "auto" takes 0 if an index 0 occurs.
    encoding, member, max_bytes, name
        As for :func:`read_mulan`.

    Notes
    -----
    Labels are whole numbers; each number that occurs is a label, and its name.  Empty lines are
    passed over.  A first line of three numbers (rows, features, labels), as the
    extreme-classification repository has it, is understood: features and labels are then counted
    from 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> text = pathlib.Path(folder.name, "toy.svm")
    >>> _ = text.write_text("1,4 1:0.5 3:2\n 2:1\n4 1:1\n")
    >>> toy = read_svmlight(text)
    >>> toy
    Dataset 'toy': 3 rows, 3 features (sparse), 2 labels, 1.000 labels a row
    >>> toy.label_names
    ('1', '4')
    >>> folder.cleanup()
    """
    check_choice("index_base", index_base, INDEX_BASES)
    if n_features is not None and not 1 <= n_features <= MAX_FEATURES:
        raise ValueError(f"n_features must be from 1 to {MAX_FEATURES}, got {n_features!r}")
    contents = open_all(path, max_bytes=max_bytes, member=member)
    rows = Rows()
    for content in contents:
        _parse(content, rows, encoding)
    shown = ", ".join(content.path for content in contents)
    try:
        X, feature_names = features_of(rows, n_features, index_base)
        Y, label_names = labels_of(rows)
        title = name or rows.header.get("name") or joined_name(contents)
        return Dataset(X, Y, feature_names, label_names, title, shown)
    except (ValueError, TypeError) as error:
        raise DataFormatError(str(error), shown) from error


def _parse(content: Content, rows: Rows, encoding: str | None) -> None:
    before = len(rows.labels)
    promised = None
    for number, line in enumerate(split_lines(decode(content, encoding)), 1):
        promised = parse_line(line, rows, content.path, number) or promised
    found = len(rows.labels) - before
    if not found:
        raise DataFormatError("the file has no rows", content.path)
    if promised is not None and promised != found:
        raise DataFormatError(
            f"the first line promises {promised} rows, and there are {found}; the file may be cut "
            "off",
            content.path,
        )


def parse_line(line: str, rows: Rows, path: str, number: int) -> int | None:
    """Add a line to the rows; return the number of rows that a first line of sizes promises."""
    if line.startswith(_MARK):
        _parse_header(line.removeprefix(_MARK), rows, path, number)
    text = line.partition("#")[0]
    sizes = text.split() if number == 1 else []
    if len(sizes) == 3 and all(_is_index(part) for part in sizes):
        promised, n_features, n_labels = map(int, sizes)
        rows.header.setdefault("n_features", n_features)
        rows.header.setdefault("n_labels", n_labels)
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
        raise DataFormatError("the comment with the names lacks some", path, line)
    for key in ("feature_names", "label_names"):
        if rows.header.setdefault(key, header[key]) != header[key]:
            raise DataFormatError(f"cannot be joined: its {key} are others", path, line)
    rows.header.setdefault("name", header["name"])


def _is_index(text: str) -> bool:
    # Nine digits: more than any index that is allowed, less than what overflows.
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
                f"the indices of a row must rise, and {index} follows {last}", path, line
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
    rows.labels.append(labels)


def _label(text: str, path: str, line: int) -> int:
    number = text.removeprefix("-").removeprefix("+")
    if number.endswith(".0"):  # scikit-learn writes labels as floats when they are
        number = number[:-2]
    if not _is_index(number):
        raise DataFormatError(
            f"the label {text[:40]!r} is not a whole number; labels are written '1,3' before the "
            "features",
            path,
            line,
        )
    return -int(number) if text.startswith("-") else int(number)


def features_of(rows: Rows, n_features: int | None, index_base: str) -> tuple[Any, tuple[str, ...]]:
    """Return the features of rows as a CSR matrix, and their names."""
    indices = np.array(rows.indices, dtype=np.int64)
    declared = rows.header.get("n_features")
    names = tuple(rows.header.get("feature_names", ()))
    if index_base == "auto":
        from_zero = declared is not None or bool(names) or bool((indices == 0).any())
    else:
        from_zero = index_base == "zero"
    if not from_zero:
        if (indices == 0).any():
            raise ValueError("the index 0 occurs, and index_base='one' counts from 1")
        indices -= 1
    used = int(indices.max()) + 1 if indices.size else 1
    width = n_features or declared or len(names) or used
    if used > width:
        raise ValueError(f"the feature {used - 1} (counted from 0) occurs, but there are {width}")
    check_size(width, (1, 1))
    X = sp.csr_array(
        (np.array(rows.values, dtype=float), indices, np.array(rows.starts)),
        shape=(len(rows.labels), width),
    )
    return X, names if len(names) == width else default_names("x", width)


def labels_of(rows: Rows) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the labels of rows as an indicator matrix, and their names."""
    used = {label for labels in rows.labels for label in labels}
    names = tuple(rows.header.get("label_names", ()))
    count = len(names) or rows.header.get("n_labels")
    if count:
        if beyond := sorted(label for label in used if not 0 <= label < count):
            raise ValueError(f"the label {beyond[0]} occurs, but there are only {count}, from 0")
        columns = {label: label for label in used}
        names = names or default_names("label", _checked_count(count, rows))
    else:
        if not used:
            raise ValueError("no row has a label")
        columns = {label: column for column, label in enumerate(sorted(used))}
        names = tuple(str(label) for label in sorted(used))
    check_size(1, (len(rows.labels), len(names)))
    Y = np.zeros((len(rows.labels), len(names)), dtype=np.int8)
    for row, labels in enumerate(rows.labels):
        Y[row, [columns[label] for label in labels]] = 1
    return Y, names


def _checked_count(count: int, rows: Rows) -> int:
    check_size(1, (len(rows.labels), count))
    return count


def write_svmlight(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write svmlight text, features and labels counted from 0, with their names in a comment.

    Parameters
    ----------
    dataset : Dataset
        What to write.
    path : path
        The file; ``.gz``, ``.bz2`` and ``.zip`` pack it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> text = write_svmlight(Dataset([[0.5, 2]], [[1, 1]]), pathlib.Path(folder.name, "one.svm"))
    >>> print(text.read_text().splitlines()[-1])
    0,1 0:0.5 1:2
    >>> folder.cleanup()
    """
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
        # An empty line is no row to anybody: a row of nothing says that its first feature is 0.
        yield " ".join([labels, *(features or ["0:0"])])
