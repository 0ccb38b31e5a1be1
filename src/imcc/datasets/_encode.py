"""Conversion of a table to a data set: selection of the labels and encoding of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.cells import label_values, yes_no_words
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError, given, named
from imcc._utils.validation import check_choice
from imcc.datasets._coding import Coding, is_identity
from imcc.datasets._dataset import LABEL_DTYPE, Dataset
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._table import Attribute, Table, move_codes

#: How to encode a nominal attribute with more than two values.
NOMINAL = ("onehot", "ordinal")

# A column of words with a different value in every row is no feature, unless there are so few rows
# that this may be a coincidence.
_MOST_ORDINARY_VALUES = 5


def count_columns(names: Sequence[str], count: int, what: str, path: str) -> list[int]:
    """Return the first ``count`` columns, or the last ones of a negative count."""
    width = len(names)
    if count == 0 or abs(count) >= width:
        raise DataFormatError(
            f"{what} requests {abs(count)} label(s), but the file has {width} columns, and at "
            "least one of them must be a feature and one a label",
            path,
        )
    return list(range(count)) if count > 0 else list(range(width + count, width))


def find_columns(names: Sequence[str], wanted: Sequence[str], what: str, path: str) -> list[int]:
    """Return the positions of the columns with these names, in the order of the names."""
    known = set(names)
    if absent := [name for name in wanted if name not in known]:
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
    positions = {name: position for position, name in enumerate(names)}
    return [positions[name] for name in wanted]


def choose_labels(
    names: Sequence[str],
    labels: int | Sequence[str] | None,
    label_prefix: str | None,
    path: str,
) -> list[int]:
    """Return the positions of the label columns that the user selected."""
    if labels is None and label_prefix is None:
        raise DataFormatError(
            "the file does not say which columns are labels; specify them with "
            + given("labels", text="NAMES")
            + ", "
            + given("labels", text="k")
            + " (the first k columns), "
            + given("labels", text="-k")
            + " (the last k) or "
            + given("label_prefix"),
            path,
        )
    if labels is not None and label_prefix is not None:
        raise InvalidArgumentError(
            "labels", "and " + named("label_prefix") + " cannot both be passed: use one of them"
        )
    if label_prefix is not None:
        found = [i for i, name in enumerate(names) if name.startswith(label_prefix)]
        if not found or len(found) == len(names):
            which = "every column" if found else "no column"
            raise DataFormatError(
                f"{which} has a name that starts with "
                + given("label_prefix", label_prefix)
                + f"; the columns are {listed(names)}",
                path,
            )
        return found
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        return count_columns(names, int(labels), f"labels={labels}", path)
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
    label_names = [table.attributes[i].name for i in labels]
    if twice := repeated(label_names):
        raise table.error(f"label names must be unique; repeated: {listed(twice)}")
    Y = label_columns(table, labels)
    taken = set(labels)
    rest = [c for c in range(len(table.names)) if c not in taken]
    X, feature_names, coding = encode_features(table, rest, nominal)
    return Dataset(X, Y, tuple(feature_names), tuple(label_names), name, table.path, coding)


def encode_features(
    table: Table, columns: Sequence[int], nominal: str = "onehot"
) -> tuple[Any, list[str], Coding | None]:
    """Return columns of a table as numbers, the names of the features, and their encoding.

    Columns of words that are different in every row are left out, with a warning.
    """
    check_choice("nominal", nominal, NOMINAL)
    if dropped := [c for c in columns if _all_differ(table, c)]:
        warn_user(
            f"{table.path}: dropped {listed(table.names[c] for c in dropped)}, because words that "
            "are different in every row are not features"
        )
        columns = [c for c in columns if c not in dropped]
    if not columns:
        raise table.error("the file has no features: every column is a label or names rows")
    attributes = [table.attributes[c] for c in columns]
    codes: dict[str, dict[str, float]] = {}
    indicators: dict[str, tuple[str, str]] = {}
    moves: dict[int, np.ndarray] = {}
    for i, attribute in enumerate(attributes):
        name, words = attribute.name, attribute.categories
        if attribute.kind == "numeric":
            continue
        if nominal == "onehot" and not _is_plain(attribute):
            indicators |= {f"{name}={word}": (name, word) for word in words}
            continue
        numbers = _numbers(attribute)
        if not is_identity(code := dict(zip(words, numbers.tolist(), strict=True))):
            codes[name] = code
        if (numbers != np.arange(len(numbers))).any():
            moves[i] = numbers
    if sp.issparse(table.values):
        # Omitted entries of sparse rows are no longer 0 in these columns.
        table.check_cells(len(moves), "columns of yes and no")
    values = move_codes(table.values[:, columns], moves)
    _warn_of_missing(table, values, attributes)
    left_out = tuple(table.names[c] for c in dropped)
    coding = Coding(codes, indicators, left_out) if codes or indicators or left_out else None
    spread = [i for i, attribute in enumerate(attributes) if not _is_plain(attribute)]
    if not spread or nominal == "ordinal":
        return values, [attribute.name for attribute in attributes], coding
    return *_one_hot(table, values, attributes, spread), coding


def label_columns(table: Table, labels: Sequence[int]) -> np.ndarray:
    """Return columns as labels 0 and 1; raise an error that names the row if one is neither."""
    table.check_cells(len(labels), "labels")
    Y = np.empty((table.values.shape[0], len(labels)), dtype=LABEL_DTYPE)
    block = table.values[:, list(labels)]
    block = block.toarray() if sp.issparse(block) else block
    for j, position in enumerate(labels):
        Y[:, j] = _label(table, table.attributes[position], block[:, j])
    return Y


def _label(table: Table, attribute: Attribute, values: np.ndarray) -> np.ndarray:
    """Return a column as labels 0 and 1; raise an error that names the row if one is neither."""
    missing = np.isnan(values)
    if missing.any():
        raise table.error(
            f"the label {attribute.name!r} is missing; every row must have 0 or 1 for every label",
            int(np.argmax(missing)),
        )
    if attribute.kind == "numeric":
        on = values == 1
        wrong = ~on & (values != 0)
        if not wrong.any() or np.all(on | (values == -1)):
            return np.asarray(on)
    else:
        codes = values.astype(int)
        used = np.unique(codes)
        meanings = [*label_values([attribute.categories[code] for code in used]).values()]
        on = np.isin(codes, [code for code, m in zip(used, meanings, strict=True) if m == 1.0])
        wrong = np.isin(codes, [code for code, m in zip(used, meanings, strict=True) if m is None])
        if not wrong.any():
            return on
    row = int(np.argmax(wrong))
    shown = (
        f"{values[row]:g}"
        if attribute.kind == "numeric"
        else repr(attribute.categories[int(values[row])])
    )
    raise table.error(
        f"the label {attribute.name!r} is not binary: it is {shown} here, but labels must be 0 or "
        "1 (or -1 and 1, no and yes, false and true)",
        row,
    )


def _is_plain(attribute: Attribute) -> bool:
    """Return whether a column becomes a single feature: it is numeric or binary."""
    words = attribute.categories
    if attribute.kind == "numeric" or len(words) == 2 or yes_no_words(words) is not None:
        return True
    return len(words) == 1 and label_values(words)[words[0]] is not None


def _numbers(attribute: Attribute) -> np.ndarray:
    """Return the number of each word of a column: 0 for no and 1 for yes, or its position."""
    values = list(label_values(attribute.categories).values())
    if _is_plain(attribute) and (len(values) == 1 or set(values) == {0.0, 1.0}):
        return np.array(values)
    return np.arange(len(values), dtype=float)


def _all_differ(table: Table, column: int) -> bool:
    """Return whether a column has words that are different in every row."""
    attribute = table.attributes[column]
    n_rows = table.values.shape[0]
    least = 2 if attribute.kind == "string" else _MOST_ORDINARY_VALUES + 1
    if attribute.kind == "numeric" or n_rows < least or len(attribute.categories) < n_rows:
        return False
    return bool(len(np.unique(table.column(column))) == n_rows)


def _warn_of_missing(table: Table, values: Any, attributes: list[Attribute]) -> None:
    if sp.issparse(values):
        rows, columns = values.nonzero()
        holes = columns[np.isnan(values[rows, columns])] if np.isnan(values.data).any() else []
        counts = np.bincount(np.asarray(holes, dtype=int), minlength=len(attributes))
    else:
        counts = np.isnan(values).sum(axis=0)
    if not counts.any():
        return
    names = [attribute.name for attribute, count in zip(attributes, counts, strict=True) if count]
    warn_user(
        f"{table.path}: {int(counts.sum())} missing value(s) are read as NaN, in {listed(names)}; "
        "impute them before fitting, for example with sklearn.impute.SimpleImputer"
    )


def _one_hot(
    table: Table, values: Any, attributes: list[Attribute], spread: list[int]
) -> tuple[Any, list[str]]:
    sparse = sp.issparse(values)
    width = len(attributes) + sum(len(attributes[i].categories) - 1 for i in spread)
    _check_one_hot(table, values, attributes, spread, width)
    by_column = values.tocsc() if sparse else values
    spread_over = set(spread)
    names: list[str] = []
    parts: list[Any] = []
    for i, attribute in enumerate(attributes):
        part = by_column[:, [i]]
        if i in spread_over:
            names += [f"{attribute.name}={word}" for word in attribute.categories]
            codes = (part.toarray() if sparse else part).ravel()
            part = _indicators(codes, len(attribute.categories))
        else:
            names.append(attribute.name)
        parts.append(part if sparse or not sp.issparse(part) else part.toarray())
    return (sp.hstack(parts, format="csr") if sparse else np.hstack(parts)), names


def _check_one_hot(
    table: Table, values: Any, attributes: list[Attribute], spread: list[int], width: int
) -> None:
    """Raise an error if the indicators of columns with many words would exhaust the memory."""
    n_rows = values.shape[0]
    entries = n_rows * width
    if sp.issparse(values):
        # One indicator per row is 1; all are NaN where the word is missing.
        holes = values.indices[np.isnan(values.data)]
        missing = np.bincount(holes, minlength=len(attributes))
        entries = sum(n_rows + int(missing[i]) * len(attributes[i].categories) for i in spread)
    characters = sum(
        len(attributes[i].name) * len(attributes[i].categories)
        + sum(map(len, attributes[i].categories))
        for i in spread
    )
    if entries > table.max_cells or characters > table.max_cells:
        worst = max(spread, key=lambda i: len(attributes[i].categories))
        raise table.error(
            f"one column per value would give {n_rows} x {width} numbers, which is too many for a "
            f"file of this size; the attribute {attributes[worst].name[:80]!r} alone has "
            f"{len(attributes[worst].categories)} values. Read the file with "
            + given("nominal", "ordinal")
            + ", or remove the attribute from it"
        )


def _indicators(codes: np.ndarray, count: int) -> Any:
    missing = np.isnan(codes)
    known = np.flatnonzero(~missing)
    holes = np.flatnonzero(missing)
    rows = np.concatenate([known, np.repeat(holes, count)])
    columns = np.concatenate([codes[known].astype(int), np.tile(np.arange(count), len(holes))])
    data = np.concatenate([np.ones(len(known)), np.full(len(holes) * count, np.nan)])
    return sp.csc_array((data, (rows, columns)), shape=(len(codes), count))
