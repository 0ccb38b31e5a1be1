"""Conversion of a table to a data set: selection of the labels and encoding of words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.cells import label_values, truth, yes_no_words
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given, named
from imcc._utils.validation import check_choice
from imcc.datasets._coding import Coding, number
from imcc.datasets._dataset import LABEL_DTYPE, Dataset
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._table import Attribute, Table

#: How to encode a nominal attribute with more than two values.
NOMINAL = ("onehot", "ordinal")

# A column of words with a different value in every row is no feature, unless there are so few rows
# that this may be a coincidence.
_MOST_ORDINARY_VALUES = 5


def find_columns(names: Sequence[str], wanted: Sequence[str], what: str, path: str) -> list[int]:
    """Return the positions of the columns with these names, in the order of the names."""
    positions = {name: position for position, name in enumerate(names)}
    if absent := [name for name in wanted if name not in positions]:
        raise DataFormatError(
            f"{what} contains {len(absent)} label(s) that are not columns of the file: "
            f"{listed(absent)}; the columns are {listed(names)}",
            path,
        )
    twice = set(repeated(names))
    if ambiguous := [name for name in wanted if name in twice]:
        raise DataFormatError(
            f"several columns have the name of a label: {listed(ambiguous)}", path
        )
    return [positions[name] for name in wanted]


def choose_labels(
    names: Sequence[str],
    labels: int | Sequence[str] | os.PathLike[str] | None,
    label_prefix: str | None,
    path: str,
) -> list[int]:
    """Return the positions of the label columns that the user selected."""
    if labels is None and label_prefix is None:
        raise DataFormatError(
            "the file does not say which columns are labels; specify their names, or the number "
            "of the first or (negative) last columns, with "
            + given("labels")
            + ", or a prefix with "
            + given("label_prefix"),
            path,
        )
    if label_prefix is not None:
        if labels is not None:
            raise InvalidArgumentError(
                "labels", "and " + named("label_prefix") + " cannot both be passed: use one of them"
            )
        chosen = [i for i, name in enumerate(names) if name.startswith(label_prefix)]
        if not chosen:
            raise DataFormatError(
                "no column has a name that starts with "
                + given("label_prefix", label_prefix)
                + f"; the columns are {listed(names)}",
                path,
            )
        return chosen
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        width = len(names)
        if labels == 0 or abs(labels) >= width:
            raise DataFormatError(
                f"{abs(labels)} label(s) are requested, but the file has {width} columns, and at "
                "least one of them must be a feature and one a label",
                path,
            )
        return list(range(labels)) if labels > 0 else list(range(width + labels, width))
    if isinstance(labels, (str, bool)) or not isinstance(labels, Sequence):
        raise InvalidTypeError("labels", f"must be a list of names or a count, got {labels!r}")
    if not labels:
        raise InvalidArgumentError("labels", "is empty: at least one label is needed")
    return find_columns(names, labels, "labels=", path)


def to_dataset(table: Table, labels: Sequence[int], nominal: str, name: str) -> Dataset:
    """Convert a table to a data set.

    Parameters
    ----------
    table : Table
        The columns of the file.
    labels : sequence of int
        Positions of the label columns, in the order of the labels.
    nominal : {"onehot", "ordinal"}
        How to encode columns of words with more than two values.
    name : str
        Name of the data set.
    """
    Y = label_columns(table, labels)
    taken = set(labels)
    rest = [c for c in range(len(table.names)) if c not in taken]
    X, feature_names, coding = encode_features(table, rest, nominal)
    label_names = tuple(table.names[i] for i in labels)
    return Dataset(X, Y, tuple(feature_names), label_names, name, table.path, coding)


def encode_features(
    table: Table, columns: Sequence[int], nominal: str = "onehot"
) -> tuple[Any, list[str], Coding | None]:
    """Return columns of a table as numbers, the names of the features, and their encoding.

    Columns of text, and of words that are different in every row, are left out with a warning.
    """
    check_choice("nominal", nominal, NOMINAL)
    left_out = {c: table.names[c] for c in columns if _is_no_feature(table, c)}
    if left_out:
        warn_user(
            f"{table.path}: dropped {listed(left_out.values())}, because text, and words that are "
            "different in every row, are not features"
        )
    kept = [c for c in columns if c not in left_out]
    if not kept:
        raise table.error("the file has no features: every column is a label, text or names rows")
    spread = [c for c in kept if nominal == "onehot" and not _is_single(table.attributes[c])]
    _check_one_hot(table, spread)
    codes: dict[str, dict[str, float]] = {}
    indicators: dict[str, tuple[str, str]] = {}
    places: list[int] = []
    names: list[str] = []
    several = set(spread)
    for c in kept:
        attribute = table.attributes[c]
        if c in several:
            shown = {f"{attribute.name}={word}": word for word in attribute.categories}
            indicators |= {feature: (attribute.name, word) for feature, word in shown.items()}
        else:
            shown = {attribute.name: ""}
            code = _code(attribute)
            if any(number(word) != value for word, value in code.items()):
                codes[attribute.name] = code
        names += shown
        places += [c] * len(shown)
    if twice := [name for name in repeated(names) if name in codes or name in indicators]:
        raise table.error(f"several features made of words have the same name: {listed(twice)}")
    coding = Coding(codes, indicators, tuple(left_out.values()))
    X = encode_as_before(table, places, names, coding)
    _warn_of_missing(table, X, places)
    return X, names, None if coding == Coding() else coding


def encode_as_before(
    table: Table, places: Sequence[int], feature_names: Sequence[str], coding: Coding
) -> Any:
    """Return the columns of features, with words encoded as in the training data.

    Parameters
    ----------
    table : Table
        The columns of the file.
    places : sequence of int
        Position of the column of each feature.
    feature_names : sequence of str
        Names of the features.
    coding : Coding
        Encoding of the training data.
    """
    _warn_of_new_words(table, coding)
    # For each feature that is not the numbers of the table: the position of the word that it
    # indicates, or the number of each word.
    changes: dict[int, int | np.ndarray] = {}
    positions: dict[int, dict[str, int]] = {}  # of the words of a column
    for j, (feature, place) in enumerate(zip(feature_names, places, strict=True)):
        name, kind, words = table.attributes[place]
        had_words = feature in coding.codes or feature in coding.indicators
        if kind == "text" or (kind == "numeric" and had_words):
            raise table.error(
                f"the column {name!r} contains {'text' if kind == 'text' else 'numbers'}, but in "
                "the training data of the model it did not"
            )
        if feature in coding.indicators:
            if place not in positions:
                positions[place] = {word: i for i, word in enumerate(words)}
            changes[j] = positions[place].get(coding.indicators[feature][1], -1)
        elif kind == "nominal":
            numbers = _numbers(words, coding.codes.get(feature))
            if not np.array_equal(numbers, np.arange(len(numbers))):
                changes[j] = numbers
    table.check_cells(len(changes), "features made of words")
    X = table.values[:, places]
    if not changes:
        return X
    rows, data = [], []
    for j, change in changes.items():
        column = _changed(table, places[j], change)
        if sp.issparse(X):
            rows.append(np.flatnonzero(column))
            data.append(column[rows[-1]])
        else:
            X[:, j] = column
    if not sp.issparse(X):
        return X
    X.data[np.isin(X.indices, list(changes))] = 0.0
    where = np.concatenate(rows), np.repeat(list(changes), [len(some) for some in rows])
    return X + sp.csr_array((np.concatenate(data), where), shape=X.shape)


def _changed(table: Table, place: int, change: int | np.ndarray) -> np.ndarray:
    """Return a column of words as an indicator of one of them, or as their numbers."""
    codes = table.column(place)
    there = ~np.isnan(codes)
    values = np.full(len(codes), np.nan)
    known = codes[there].astype(int)
    values[there] = known == change if isinstance(change, int) else change[known]
    wrong = there & np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        attribute = table.attributes[place]
        raise table.error(
            f"the column {attribute.name!r} is {attribute.categories[int(codes[row])]!r} here, "
            "which is neither a number nor a word that the training data of the model contain",
            row,
        )
    return values


def _numbers(words: Sequence[str], code: Mapping[str, float] | None) -> np.ndarray:
    """Return the number of each word by the code of the training data; NaN if it has none."""
    numbers: list[float | None]
    if code is None:
        numbers = [number(word, truth(word)) for word in words]
    else:
        by_truth = {truth(known): value for known, value in code.items()}
        if None in by_truth:
            by_truth = {}
        numbers = [code.get(word, by_truth.get(truth(word))) for word in words]
    return np.array(numbers, dtype=float)


def _warn_of_new_words(table: Table, coding: Coding) -> None:
    """Warn about words that the training data did not have, for which all indicators are 0."""
    known: dict[str, set[str]] = {}
    for column, word in coding.indicators.values():
        known.setdefault(column, set()).add(word)
    for attribute in table.attributes:
        words = known.get(attribute.name)
        if words and (new := [word for word in attribute.categories if word not in words]):
            warn_user(
                f"{table.path}: the column {attribute.name!r} has words that did not occur in the "
                f"training data: {listed(new)}; all features of the column are 0 there"
            )


def label_columns(table: Table, labels: Sequence[int]) -> np.ndarray:
    """Return columns as labels 0 and 1; raise an error that names the row if one is neither."""
    table.check_cells(len(labels), "labels")
    Y = np.empty((table.values.shape[0], len(labels)), dtype=LABEL_DTYPE)
    for j, place in enumerate(labels):
        Y[:, j] = _label(table, place)
    return Y


def _label(table: Table, place: int) -> np.ndarray:
    attribute, values = table.attributes[place], table.column(place)
    missing = np.isnan(values)
    if missing.any():
        raise table.error(
            f"the label {attribute.name!r} is missing or text; every row must have 0 or 1 for "
            "every label",
            int(np.argmax(missing)),
        )
    if attribute.kind == "numeric":
        signs = values > 0 if np.all(np.abs(values) == 1) else values
    else:
        codes, positions = np.unique(values.astype(int), return_inverse=True)
        meanings = label_values([attribute.categories[code] for code in codes])
        signs = np.array(list(meanings.values()), dtype=float)[positions]
    wrong = (signs != 0) & (signs != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = values[row]
        cell = f"{value:g}" if attribute.kind == "numeric" else attribute.categories[int(value)]
        raise table.error(
            f"the label {attribute.name!r} is not binary: it is {cell!r} here, but labels must be "
            "0 or 1 (or -1 and 1, no and yes, false and true)",
            row,
        )
    return signs == 1


def _is_single(attribute: Attribute) -> bool:
    """Return whether a column becomes a single feature: it is numeric or binary."""
    words = attribute.categories
    if attribute.kind == "numeric" or len(words) == 2 or yes_no_words(words) is not None:
        return True
    return len(words) == 1 and label_values(words)[words[0]] is not None


def _code(attribute: Attribute) -> dict[str, float]:
    """Return the number of each word of a column: 0 for no and 1 for yes, or its position."""
    words = attribute.categories
    values = [value for value in label_values(words).values() if value is not None]
    if (
        not _is_single(attribute)
        or len(values) < len(words)
        or len(set(values)) < min(len(words), 2)
    ):
        values = [float(position) for position in range(len(words))]
    return dict(zip(words, values, strict=True))


def _is_no_feature(table: Table, place: int) -> bool:
    """Return whether a column is text, or has words that are different in every row."""
    attribute = table.attributes[place]
    n_rows = table.values.shape[0]
    if attribute.kind != "nominal" or len(attribute.categories) < n_rows:
        return attribute.kind == "text"
    return n_rows > _MOST_ORDINARY_VALUES and len(np.unique(table.column(place))) == n_rows


def _check_one_hot(table: Table, places: Sequence[int]) -> None:
    """Raise an error if the indicators of columns with many words would exhaust the memory."""
    words = {table.names[place]: table.attributes[place].categories for place in places}
    n_rows, width = table.values.shape[0], sum(map(len, words.values()))
    characters = sum(len(name) + len(word) for name in words for word in words[name])
    if max(n_rows * width, characters) > table.max_cells:
        raise table.error(
            f"one column per value of {listed(words)} would give {n_rows} x {width} numbers, which "
            "is too many for a file of this size; read the file with " + given("nominal", "ordinal")
        )


def _warn_of_missing(table: Table, X: Any, places: Sequence[int]) -> None:
    if sp.issparse(X):
        holes = np.unique(X.indices[np.isnan(X.data)])
    else:
        holes = np.flatnonzero(np.isnan(X).any(axis=0))
    if len(holes):
        names = dict.fromkeys(table.names[places[j]] for j in holes)
        warn_user(
            f"{table.path}: missing values are read as NaN, in {listed(names)}; impute them before "
            "fitting, for example with sklearn.impute.SimpleImputer"
        )
