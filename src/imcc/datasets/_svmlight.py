"""The svmlight text format with several labels per row: ``1,3 5:0.25 9:1``.

Here are, unlike in the reader of scikit-learn, limits on what a file may declare, the index of the
first feature, which few files declare, and the numbers of lines in errors.
"""

from __future__ import annotations

import codecs
import io
import re
from array import array
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.progress import report_progress
from imcc._utils.validation import check_choice, check_count
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import Dataset, default_names
from imcc.datasets._errors import DataFormatError, warn_user
from imcc.datasets._files import MAX_COLUMNS, Content, check_text, joined_name

_INDEX_BASES = ("auto", "zero", "one")

# Rows, features and labels in the first line, as in the extreme classification repository.
_SIZES = re.compile(rb"\d{1,9}\s+\d{1,9}\s+\d{1,9}")
# Larger than any valid index.
_LARGEST = 10**9
# After so many rows, progress is reported.
_ROWS = 256


class _Rows:
    """The rows of files: indices, values and labels, one after the other, and where rows begin."""

    def __init__(self) -> None:
        # Arrays instead of lists, which need much more memory than the file.
        self.indices, self.values, self.starts = array("q"), array("d"), array("q", [0])
        self.labels, self.n_labels = array("q"), array("q")
        self.sizes: list[tuple[int, ...] | None] = []  # that each file declares

    def read(self, content: Content) -> None:
        """Add the rows of a file."""
        check_text(content.data, content.path)
        file = io.BytesIO(content.data.removeprefix(codecs.BOM_UTF8))
        before = len(self.n_labels)
        self.sizes.append(None)
        for number, line in enumerate(file, 1):
            text = line.partition(b"#")[0].strip()
            if number == 1 and _SIZES.fullmatch(text):
                self.sizes[-1] = tuple(map(int, text.split()))
            elif text:
                try:
                    self._add(text)
                except (ValueError, OverflowError) as error:
                    raise DataFormatError(
                        "expected numbers of labels and index:value with ascending indices, as in "
                        f"'1,3 5:0.25', found {text[:40].decode('latin-1')!r}",
                        content.path,
                        number,
                    ) from error
            if not number % _ROWS:
                report_progress(file.tell(), len(content.data))
        n_rows = len(self.n_labels) - before
        sizes = self.sizes[-1] or (n_rows,)
        if not n_rows or sizes[0] != n_rows:
            raise DataFormatError(
                f"the file has {n_rows} rows, but must have {sizes[0] or 'some'}: it may be "
                "incomplete",
                content.path,
            )

    def _add(self, text: bytes) -> None:
        if b"_" in text:  # which int and float accept
            raise ValueError("an underscore is not part of a number")
        parts = text.split()
        numbers = [] if b":" in parts[0] else [float(label) for label in parts.pop(0).split(b",")]
        labels = [int(number) for number in numbers]
        if labels != numbers or any(abs(label) >= _LARGEST for label in labels):
            raise ValueError("a label is not an integer, or too large")
        last = -1
        # One after the other: lists of all entries need many times the memory of the file.
        for part in parts:
            entry, value = part.split(b":")
            index = int(entry)
            if not last < index < _LARGEST:
                raise ValueError("the indices do not ascend, or one is negative or too large")
            self.indices.append(index)
            self.values.append(float(value))
            last = index
        self.starts.append(len(self.values))
        self.labels.extend(labels)
        self.n_labels.append(len(labels))


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
    check_choice("index_base", index_base, _INDEX_BASES)
    if n_features is not None and check_count("n_features", n_features) > MAX_COLUMNS:
        raise InvalidArgumentError(
            "n_features", f"must be from 1 to {MAX_COLUMNS}, got {n_features!r}"
        )
    rows = _Rows()
    for content in contents:
        rows.read(content)
    report_progress(1.0)
    path = ", ".join(content.path for content in contents)
    # What the files may declare depends on the size of the largest.
    largest = max(contents, key=lambda content: content.size)
    declared = {sizes[1:] for sizes in rows.sizes if sizes is not None}
    if len(declared) > 1:
        raise DataFormatError("the numbers of features and labels in the files differ", path)
    n_declared, n_labels = next(iter(declared), (None, None))
    indices = np.array(rows.indices)
    base = known_base
    if index_base != "auto":
        base = _INDEX_BASES.index(index_base) - 1
    elif None not in rows.sizes:
        base = 0
    elif base is None:
        base = _find_base(indices, n_features, path)
    indices -= base or 0
    used = int(indices.max(initial=0)) + 1
    width = n_features or n_declared or used
    if indices.min(initial=0) < 0 or used > width:
        raise DataFormatError(
            f"there are {width} features, counted from {base or 0}, but indices from "
            f"{indices.min() + (base or 0)} to {indices.max() + (base or 0)} occur",
            path,
        )
    if n_features is None:
        largest.check_columns(width, "features")
    X = sp.csr_array(
        (np.array(rows.values), indices, np.array(rows.starts)), (len(rows.n_labels), width)
    )
    Y, label_names = np.zeros((X.shape[0], 1), np.int8), default_names("label", 1)
    if labelled:
        Y, label_names = _labels(rows, n_labels, largest, path)
    title = name or joined_name(contents)
    coding = None if base is None else Coding(index_base=base)
    return Dataset(X, Y, default_names("x", width), label_names, title, path, coding)


def _find_base(indices: np.ndarray, n_features: int | None, path: str) -> int | None:
    """Return the index of the first feature, from the indices that occur."""
    if not len(indices):
        return None
    if indices.min() == 0:
        return 0
    if indices.max() == n_features:
        return 1
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


def _labels(
    rows: _Rows, n_labels: int | None, limits: Content, path: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the labels as an indicator matrix, and their names."""
    labels = np.array(rows.labels)
    numbers = np.unique(labels)
    if n_labels is not None:
        limits.check_columns(n_labels, "labels")
        odd = numbers[(numbers < 0) | (numbers >= n_labels)]
        if len(odd):
            raise DataFormatError(
                f"the label {odd[0]} occurs, but there are {n_labels}, counted from 0", path
            )
        numbers = np.arange(n_labels)
    if not len(numbers):
        raise DataFormatError("no row has a label", path)
    limits.check_cells(len(rows.n_labels), len(numbers), "labels")
    Y = np.zeros((len(rows.n_labels), len(numbers)), dtype=np.int8)
    Y[np.repeat(np.arange(len(Y)), rows.n_labels), np.searchsorted(numbers, labels)] = 1
    return Y, tuple(map(str, numbers.tolist()))
