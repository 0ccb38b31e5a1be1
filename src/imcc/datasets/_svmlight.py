"""The svmlight text format with several labels per row: ``1,3 5:0.25 9:1``.

scikit-learn parses the rows, a block at a time, so that files of any size can be read.  Here are
the limits on what a file may declare, the index of the first feature, which few files declare, and
the numbers of lines in errors.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from imcc._utils.errors import given
from imcc._utils.progress import report_progress
from imcc._utils.validation import check_choice
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import Dataset, default_names
from imcc.datasets._errors import DataFormatError, warn_user
from imcc.datasets._files import (
    MAX_COLUMNS,
    Content,
    check_text,
    joined_name,
)

_INDEX_BASES = ("auto", "zero", "one")

# Nine digits are more than any valid index and cannot overflow.  Possessive quantifiers ("*+") do
# not backtrack, so that no input takes more than linear time.
_LABEL = rb"[-+]?+\d{1,9}+(?:\.0*+)?+"
_ROW = re.compile(
    rb"(?:%b(?:,%b)*+(?:\s++|$))?(?:\d{1,9}+:[^\s:_]++(?:\s++|$))*+" % (_LABEL, _LABEL)
)
# Rows, features and labels in the first line, as in the extreme classification repository.
_SIZES = re.compile(rb"\d{1,9}\s+\d{1,9}\s+\d{1,9}")

# Number of rows that are parsed at a time.
_BLOCK = 10_000

# Limit of the length of a line, which could otherwise exhaust the memory in a compressed file.
_LONGEST = 2**26


class _Rows(NamedTuple):
    """A block of rows: CSR features with the indices of the file, and the labels of each row."""

    X: Any
    labels: np.ndarray
    n_labels: np.ndarray


def _each_block(file: IO[bytes], path: str, size: int, declared: dict[str, Any]) -> Iterator[_Rows]:
    """Parse a file in blocks of ``size`` rows; sizes are stored in ``declared``."""
    block: list[tuple[int, bytes]] = []
    n_rows = 0
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
        if len(line) == _LONGEST:
            raise DataFormatError(f"the line is longer than {_LONGEST:,} bytes", path, number)
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        text = line.partition(b"#")[0].strip()
        if number == 1 and _SIZES.fullmatch(text):
            sizes = ("n_rows", "n_features", "n_labels")
            declared.update(zip(sizes, map(int, text.split()), strict=True))
            continue
        if not text:
            continue
        if not _ROW.fullmatch(text):
            shown = text[:40].decode("latin-1")
            raise DataFormatError(
                f"expected numbers of labels and index:value, as in '1,3 5:0.25', found {shown!r}",
                path,
                number,
            )
        block.append((number, text))
        if len(block) == size:
            yield _parse_rows(block, path)
            n_rows += size
            block = []
    if block:
        yield _parse_rows(block, path)
        n_rows += len(block)
    if not n_rows:
        raise DataFormatError("the file has no rows", path)
    if declared.get("n_rows", n_rows) != n_rows:
        raise DataFormatError(
            f"the first line declares {declared['n_rows']} rows, but there are {n_rows}; the file "
            "may be incomplete",
            path,
        )


def _parse_rows(block: list[tuple[int, bytes]], path: str) -> _Rows:
    lines = io.BytesIO(b"\n".join(text for _, text in block))
    try:
        # Counted from 0: nothing is subtracted before the base is known.
        X, labels = load_svmlight_file(lines, multilabel=True, zero_based=True)
    except (ValueError, OverflowError) as error:
        if len(block) == 1:
            raise DataFormatError(str(error), path, block[0][0]) from error
        # One of the halves has the line, and raises the error with its number.
        _parse_rows(block[: len(block) // 2], path)
        _parse_rows(block[len(block) // 2 :], path)
        raise DataFormatError(str(error), path) from error
    counts = np.array([len(row) for row in labels])
    numbers = (int(label) for row in labels for label in row)
    return _Rows(X, np.fromiter(numbers, np.int64, counts.sum()), counts)


class _Columns:
    """The features and labels of files, collected while their rows are read.

    Attributes
    ----------
    feature_names, label_names : tuple of str
        Names of the columns.
    index_base : {0, 1} or None
        Index of the first feature; None if it is unknown and not needed.
    declared : dict
        Sizes that the files declare.
    """

    def __init__(self, n_features: int | None, index_base: str) -> None:
        check_choice("index_base", index_base, _INDEX_BASES)
        if n_features is not None and not 1 <= n_features <= MAX_COLUMNS:
            raise ValueError(f"n_features must be from 1 to {MAX_COLUMNS}, got {n_features!r}")
        self.feature_names: tuple[str, ...] = ()
        self.label_names: tuple[str, ...] = ()
        self.index_base = None if index_base == "auto" else _INDEX_BASES.index(index_base) - 1
        self.declared: dict[str, Any] = {}
        self._n_features = n_features
        self._all_declared = True
        self._lowest, self._highest = MAX_COLUMNS, -1
        self._numbers: set[int] = set()

    def collect(self, file: IO[bytes], path: str) -> Iterator[_Rows]:
        """Yield the rows of a file, whose columns are added."""
        declared: dict[str, Any] = {}
        for rows in _each_block(file, path, _BLOCK, declared):
            self._lowest = min(self._lowest, rows.X.indices.min(initial=MAX_COLUMNS))
            self._highest = max(self._highest, rows.X.indices.max(initial=-1))
            self._numbers.update(rows.labels.tolist())
            yield rows
        self._all_declared = self._all_declared and bool(declared)
        for key, value in declared.items():
            if key != "n_rows" and self.declared.setdefault(key, value) != value:
                raise DataFormatError(f"its {key} differs from that of the other files", path)

    def settle(self, largest: Content, path: str, known_base: int | None = None) -> None:
        """Determine the columns, after the rows of all files were collected.

        Parameters
        ----------
        largest : Content
            The largest file, whose size limits what the files may declare.
        path : str
            Name of the files in messages.
        known_base : {0, 1} or None
            Index base of the training data.
        """
        if self.index_base is None:
            self.index_base = self._detect_base(known_base, path)
        base = self.index_base or 0
        if self._lowest < base:
            raise DataFormatError(
                "the index 0 occurs, but " + given("index_base", "one") + " counts features from 1",
                path,
            )
        used = max(1, int(self._highest) + 1 - base)
        width = self._n_features or self.declared.get("n_features") or used
        if used > width:
            raise DataFormatError(
                f"the feature {used - 1} (counted from 0) occurs, but there are {width}", path
            )
        if self._n_features is None:
            largest.check_columns(width, "features")
        self.feature_names = default_names("x", width)
        numbers = sorted(self._numbers)
        if count := self.declared.get("n_labels"):
            largest.check_columns(count, "labels")
            if numbers and not 0 <= numbers[0] <= numbers[-1] < count:
                odd = numbers[0] if numbers[0] < 0 else numbers[-1]
                raise DataFormatError(
                    f"the label {odd} occurs, but there are only {count}, from 0", path
                )
            self._label_numbers = np.arange(count)
            self.label_names = default_names("label", count)
        else:
            self._label_numbers = np.array(numbers, dtype=np.int64)
            self.label_names = tuple(map(str, numbers))

    def _detect_base(self, known_base: int | None, path: str) -> int | None:
        """Return the index of the first feature, from what the files declare or contain."""
        if self._all_declared:
            return 0
        if self._highest < 0:
            return known_base
        # The base that follows from the indices with certainty.
        certain = 0 if self._lowest == 0 else 1 if self._highest == self._n_features else None
        if known_base is not None:
            if certain not in (None, known_base):
                raise DataFormatError(
                    f"the features of the training data are counted from {known_base}, but the "
                    f"index {self._highest if certain else 0} occurs here, which is only possible "
                    f"if they are counted from {certain}; pass "
                    + given("index_base", _INDEX_BASES[certain + 1])
                    + " if this is the case",
                    path,
                )
            return known_base
        if certain is not None:
            return certain
        warn_user(
            f"{path}: the file does not declare whether its features are counted from 0 or from 1; "
            "1 is assumed, because the index 0 does not occur. If this is wrong, all columns are "
            "shifted by one: pass "
            + given("index_base", "zero")
            + " to correct it, or "
            + given("index_base", "one")
            + " to confirm it"
        )
        return 1

    def check_labels(self, path: str) -> None:
        """Raise an error if there are no labels."""
        if not self.label_names:
            raise DataFormatError("no row has a label", path)

    def features(self, rows: _Rows) -> Any:
        """Return the features of rows as a CSR matrix."""
        X, width = rows.X, len(self.feature_names)
        indices = X.indices - (self.index_base or 0)
        if indices.size and not 0 <= indices.min() <= indices.max() < width:
            raise ValueError(f"a feature occurs that is not one of the {width}")
        return sp.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], width))

    def labels(self, rows: _Rows) -> np.ndarray:
        """Return the labels of rows as an indicator matrix."""
        if not np.isin(rows.labels, self._label_numbers).all():
            raise ValueError(f"a label occurs that is not one of the {len(self.label_names)}")
        Y = np.zeros((len(rows.n_labels), len(self.label_names)), dtype=np.int8)
        samples = np.repeat(np.arange(len(Y)), rows.n_labels)
        Y[samples, np.searchsorted(self._label_numbers, rows.labels)] = 1
        return Y


def read_svmlight(
    contents: Sequence[Content],
    *,
    n_features: int | None = None,
    index_base: str = "auto",
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
    name : str, default=None
        Name of the data set; None uses the name of the file.
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
    columns = _Columns(n_features, index_base)
    blocks = []
    for content in contents:
        check_text(content.data, content.path)
        file = io.BytesIO(content.data)
        for rows in columns.collect(file, content.path):
            blocks.append(rows)
            report_progress(file.tell(), len(content.data))
    report_progress(1.0)
    path = ", ".join(content.path for content in contents)
    largest = max(contents, key=lambda content: content.size)
    columns.settle(largest, path, known_base)
    X = sp.vstack([columns.features(rows) for rows in blocks], format="csr")
    Y = np.zeros((X.shape[0], 1), np.int8)
    label_names: tuple[str, ...] = ()
    if labelled:
        columns.check_labels(path)
        label_names = columns.label_names
        largest.check_cells(X.shape[0], len(label_names), "labels")
        Y = np.concatenate([columns.labels(rows) for rows in blocks])
    title = name or joined_name(contents)
    coding = None if columns.index_base is None else Coding(index_base=columns.index_base)
    return Dataset(X, Y, columns.feature_names, label_names, title, path, coding)
